/* SPDX-License-Identifier: BSD-2-Clause */
/* The path cache: see paths.h. Its size is fixed; a new entry replaces the oldest of a full set. */
#include "mad/sa/paths.h"

#include <string.h>

#include "base/hash.h"

/* Comparable with memcmp(). */
static void fill_question(const struct sa_msg *msg, struct sa_question *ret)
{
	uint64_t mask = msg->sa.comp_mask;
	int i;

	memset(ret, 0, sizeof(*ret));
	for (i = 7; i >= 0; i--, mask >>= 8)
		ret->comp_mask[i] = (uint8_t)mask;
	wire_encode(&sa_path_layout, &msg->path, ret->record);
}

static unsigned int set_of(const struct sa_question *question)
{
	return hash_bytes(question, sizeof(*question)) & (SA_PATHS_SETS - 1);
}

const struct sa_msg *sa_paths_find(const struct sa_paths *paths, const struct sa_msg *question,
				   struct cm_time since, struct cm_time now)
{
	const struct cm_time oldest = cm_time_after(since, since.ns ? SA_PATH_LIFE_NS : 0);
	const struct sa_known_path *known;
	struct sa_question wanted;
	int i;

	fill_question(question, &wanted);
	for (i = 0; i < SA_PATHS_WAYS; i++) {
		known = &paths->known[set_of(&wanted)][i];
		if (!cm_time_reached(known->expires, now) &&
		    !cm_time_reached(known->expires, oldest) &&
		    memcmp(&known->question, &wanted, sizeof(wanted)) == 0)
			return &known->answer;
	}
	return NULL;
}

static struct sa_known_path *place_for(struct sa_paths *paths, const struct sa_question *question)
{
	unsigned int set = set_of(question);
	int i;

	for (i = 0; i < SA_PATHS_WAYS; i++)
		if (memcmp(&paths->known[set][i].question, question, sizeof(*question)) == 0)
			return &paths->known[set][i];
	return &paths->known[set][paths->victim[set]++ % SA_PATHS_WAYS];
}

void sa_paths_keep(struct sa_paths *paths, const struct sa_msg *question,
		   const struct sa_msg *answer, struct cm_time now)
{
	struct sa_known_path *known;
	struct sa_question asked;

	fill_question(question, &asked);
	known = place_for(paths, &asked);
	known->question = asked;
	known->answer = *answer;
	known->expires = cm_time_after(now, SA_PATH_LIFE_NS);
}

void sa_paths_forget(struct sa_paths *paths)
{
	memset(paths->known, 0, sizeof(paths->known));
}

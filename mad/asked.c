/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests received from peers: see asked.h. */
#include "mad/asked.h"

#include <string.h>

/* Return: the index of a request in its set, or -1. */
static int find_question(const struct question *set, const struct mad_gid *gid, uint32_t id)
{
	int i;

	for (i = 0; i < ASKED_IN_SET; i++)
		if (set[i].id == id && !memcmp(&set[i].gid, gid, sizeof(*gid)))
			return i;
	return -1;
}

bool asked_note(struct asked *asked, const struct mad_gid *gid, const struct mad_talk *talk)
{
	struct question *question;
	unsigned int set;
	int i;

	if (!talk->asks || !talk->sender_id)
		return false;
	set = mad_gid_hash(gid, talk->sender_id, ASKED_SETS_LOG2);
	i = find_question(asked->of[set], gid, talk->sender_id);
	if (i < 0) {
		i = asked->next[set]++ % ASKED_IN_SET;
		asked->of[set][i] = (struct question){ .gid = *gid, .id = talk->sender_id };
	}
	question = &asked->of[set][i];
	question->again = question->attr_id == talk->attr_id;
	question->attr_id = talk->attr_id;
	return question->again;
}

bool asked_again(const struct asked *asked, const struct mad_gid *gid, const struct mad_talk *talk)
{
	const struct question *set;
	int i;

	if (!talk->answers || !talk->receiver_id)
		return false;
	set = asked->of[mad_gid_hash(gid, talk->receiver_id, ASKED_SETS_LOG2)];
	i = find_question(set, gid, talk->receiver_id);
	return i >= 0 && set[i].again;
}

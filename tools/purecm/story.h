/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All messages of a capture and what they did, kept. Called by those who need the end to tell the
 * beginning: timeline.c.
 */
#ifndef TOOLS_PURECM_STORY_H
#define TOOLS_PURECM_STORY_H

#include "tools/purecm/filter.h"
#include "tools/purecm/reading.h"

#define STORY_MAX 5000 /* messages; more make no picture */

/* One message. */
struct told {
	uint64_t time_ns;
	struct flow_step step;
	enum cm_attr attr;
	char *brief; /* show_brief() of it */
};

struct story {
	struct flows *flows;
	const struct filter *filter;
	struct told *told;
	uint32_t count;
	uint64_t end_ns; /* of the last message, shown or not */
	bool is_cut;	 /* there were more */
};

/**
 * story_read() - the messages that a filter lets through
 * @reading: where they are
 * @filter: by its outcome too; kept until story_fini()
 * @ret:    to be given back with story_fini()
 *
 * Return: 0; SOURCE_CUT, also with @ret; -errno. After a complaint, if not 0.
 */
int story_read(const struct reading *reading, const struct filter *filter, struct story *ret);

/** story_fini() - forget it. */
void story_fini(struct story *story);

#endif

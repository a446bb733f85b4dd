/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All messages of a capture and what they did to their flows, kept in memory.
 */
#ifndef TOOLS_PURECM_MESSAGE_LOG_H
#define TOOLS_PURECM_MESSAGE_LOG_H

#include "tools/purecm/filter.h"
#include "tools/purecm/reading.h"

#define MESSAGE_LOG_MAX 5000 /* messages; more make no picture */

/* One message. */
struct log_entry {
	uint64_t time_ns;
	struct flow_step step;
	enum cm_attr attr;
	char *brief; /* show_brief() of it */
};

struct message_log {
	struct flows *flows;
	const struct filter *filter;
	struct log_entry *told;
	uint32_t count;
	uint64_t end_ns; /* of the last message, shown or not */
	bool is_cut;	 /* there were more */
};

/**
 * message_log_read() - the messages that a filter lets through
 * @reading: where they are
 * @filter: by its outcome too; kept until message_log_fini()
 * @ret:    to be given back with message_log_fini()
 *
 * Return: 0; SOURCE_CUT, also with @ret; -errno. After a complaint, if not 0.
 */
int message_log_read(const struct reading *reading, const struct filter *filter,
		     struct message_log *ret);

/** message_log_fini() - forget it. */
void message_log_fini(struct message_log *log);

#endif

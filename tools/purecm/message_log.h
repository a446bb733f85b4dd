/* SPDX-License-Identifier: BSD-2-Clause */
/* All messages of a capture with their effects on flows, in memory. */
#ifndef TOOLS_PURECM_MESSAGE_LOG_H
#define TOOLS_PURECM_MESSAGE_LOG_H

#include "tools/purecm/filter.h"
#include "tools/purecm/reading.h"

#define MESSAGE_LOG_MAX 5000 /* more do not make a readable picture */

/* One message. */
struct log_entry {
	uint64_t time_ns;
	struct flow_step step;
	enum cm_attr attr;
	char *brief; /* from show_brief() */
};

struct message_log {
	struct flows *flows;
	const struct filter *filter;
	struct log_entry *told;
	uint32_t count;
	uint64_t end_ns; /* of the last message, selected or not */
	bool is_cut;	 /* there were more messages */
};

/**
 * message_log_read() - read the messages selected by a filter
 * @reading: the source
 * @filter: including --outcome; must stay valid until message_log_fini()
 * @ret:    to be released with message_log_fini()
 *
 * Return: 0; SOURCE_CUT, also with @ret; -errno. After an error message, if not 0.
 */
int message_log_read(const struct reading *reading, const struct filter *filter,
		     struct message_log *ret);

/** message_log_fini() - free the messages */
void message_log_fini(struct message_log *log);

#endif

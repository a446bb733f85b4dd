/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading a capture into memory.
 */
#include "tools/purecm/message_log.h"

#include <errno.h>
#include <stdlib.h>

#include "tools/purecm/show.h"

static int append_message(struct message_log *log, const struct observation *observation,
			  const struct cm_msg *msg, const struct flow_step *step)
{
	if (log->count == MESSAGE_LOG_MAX) {
		log->is_cut = true;
		return 0;
	}
	log->told[log->count++] = (struct log_entry){ .time_ns = observation->time_ns,
						      .step = *step,
						      .attr = (enum cm_attr)msg->hdr.attr_id,
						      .brief = show_brief(msg) };
	return 0;
}

static int take_observation(void *arg, const struct observation *observation)
{
	struct message_log *log = arg;
	struct flow_step step;
	struct cm_msg msg;
	int err;

	if (!observation_is_cm(observation) || cm_msg_decode(observation->mad, MAD_BYTES, &msg))
		return 0;
	err = flows_take(log->flows, observation, &msg, &step);
	if (err)
		return err;
	log->end_ns = observation->time_ns;
	if (step.is_copy || !filter_takes_flow(log->filter, step.flow) ||
	    !filter_takes_message(log->filter, &msg))
		return 0;
	return append_message(log, observation, &msg, &step);
}

/* The outcomes are known only after the last message. */
static void drop_other_outcomes(struct message_log *log)
{
	uint32_t i, kept = 0;

	for (i = 0; i < log->count; i++) {
		if (filter_takes_outcome(log->filter, log->told[i].step.flow->outcome))
			log->told[kept++] = log->told[i];
		else
			free(log->told[i].brief);
	}
	log->count = kept;
}

int message_log_read(const struct reading *reading, const struct filter *filter,
		     struct message_log *ret)
{
	struct message_log log = { .filter = filter };
	int err = -ENOMEM;

	log.flows = flows_new(FLOWS_MAX, false);
	log.told = calloc(MESSAGE_LOG_MAX, sizeof(*log.told));
	if (log.flows && log.told)
		err = reading_run(reading, take_observation, &log);
	if (err && err != SOURCE_CUT) {
		message_log_fini(&log);
		return err;
	}
	drop_other_outcomes(&log);
	*ret = log;
	return err;
}

void message_log_fini(struct message_log *log)
{
	uint32_t i;

	for (i = 0; i < log->count; i++)
		free(log->told[i].brief);
	free(log->told);
	flows_free(log->flows);
}

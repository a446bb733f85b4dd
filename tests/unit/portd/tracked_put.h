/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A tracked connection in any state, without the messages that lead to it; a message; and what the
 * tracker holds.
 */
#ifndef TESTS_UNIT_PORTD_TRACKED_PUT_H
#define TESTS_UNIT_PORTD_TRACKED_PUT_H

#include <errno.h>
#include <stdlib.h>

#include "lib/portd/server/files/tracked_file.h"
#include "lib/portd/server/ledger/tracked_table.h"

/* Return: the messages that lead to a state. */
static inline uint8_t passed_until(const struct cm_record *is)
{
	unsigned int passed = 0;

	while (passed_state((uint8_t)passed, is->active) != is->state)
		if (++passed > UINT8_MAX)
			abort();
	return (uint8_t)passed;
}

/**
 * tracked_put() - track a connection, or replace that of this comm id
 *
 * Return: 0 or -ENOMEM.
 */
static inline int tracked_put(struct tracker *tracker, uint16_t client, const struct cm_record *is)
{
	struct tracked *tracked = tracked_of_local(tracker, is->local_comm_id);

	if (!tracked)
		tracked = tracked_add(tracker, client);
	if (!tracked)
		return -ENOMEM;
	tracked_replace(tracker, tracked, is, passed_until(is));
	return 0;
}

/** tracked_put_sent() - a client sends a message. Return: as tracker_sent(). */
static inline int tracked_put_sent(struct tracker *tracker, uint16_t client, uint8_t port,
				   const struct mad_path *path, const struct cm_msg *msg,
				   bool may_add)
{
	const struct tracked *of = tracker_of_sent(tracker, client, path, msg);

	return tracker_sent(tracker, of, client, port, path, msg, may_add);
}

/** tracker_is_empty() - return whether there are no connections of clients or ended clients */
static inline bool tracker_is_empty(const struct tracker *tracker)
{
	return tracker->n_tracked == 0;
}

/** tracker_bytes() - the current memory use in bytes */
static inline size_t tracker_bytes(const struct tracker *tracker)
{
	return sizeof(*tracker) + tracker->n_chunks * TRACKED_CHUNK * sizeof(struct tracked) +
	       tracker->n_chunks_max *
		       (sizeof(struct tracked *) + TRACKED_CHUNK * sizeof(uint32_t)) +
	       (size_t)tracker->n_buckets_max * TRACKED_N_TABLES * sizeof(uint32_t) +
	       tracker->n_clients * sizeof(struct tracked_client);
}

#endif

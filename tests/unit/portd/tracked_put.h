/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A tracked connection in any state, without the messages that lead there.
 */
#ifndef TESTS_UNIT_PORTD_TRACKED_PUT_H
#define TESTS_UNIT_PORTD_TRACKED_PUT_H

#include <errno.h>

#include "lib/portd/server/ledger/tracked_view.h"

/**
 * tracked_put() - track a connection, or replace what is tracked of this comm id
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
	tracked_replace(tracker, tracked, is);
	return 0;
}

#endif

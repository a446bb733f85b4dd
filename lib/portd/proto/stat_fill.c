/* SPDX-License-Identifier: BSD-2-Clause */
/* Conversion of connections and counters to records: see stat.h. */
#include "lib/portd/proto/stat.h"

static const enum portd_stat_counter counters[CM_N_COUNTERS] = {
	[CM_COUNT_MALFORMED] = PORTD_COUNT_MALFORMED,
	[CM_COUNT_UNKNOWN] = PORTD_COUNT_UNKNOWN,
	[CM_COUNT_ALIEN] = PORTD_COUNT_ALIEN,
	[CM_COUNT_UNEXPECTED] = PORTD_COUNT_UNEXPECTED,
	[CM_COUNT_DUPLICATE] = PORTD_COUNT_DUPLICATE,
	[CM_COUNT_NO_MEMORY] = PORTD_COUNT_NO_MEMORY,
	[CM_COUNT_RETRIED] = PORTD_COUNT_REPEATED,
	[CM_COUNT_UNSUPPORTED] = PORTD_COUNT_UNSUPPORTED,
};

void portd_stat_conn(const struct cm_conn *conn, struct portd_stat_id *ret)
{
	ret->conn_state = (uint8_t)conn->state;
	ret->active = conn->active;
	ret->peer_gid = mad_path_peer(&conn->path);
	ret->local_comm_id = conn->local_comm_id;
	ret->remote_comm_id = conn->remote_comm_id;
	ret->local_qpn = conn->local_qpn;
	ret->remote_qpn = conn->remote_qpn;
	ret->retries = conn->n_repeated;
}

static void put_row(const uint64_t row[CM_TALLY_KINDS], enum portd_stat_counter what,
		    void (*put)(struct portd_stat_count *count, void *arg), void *arg)
{
	struct portd_stat_count count = { .what = (uint8_t)what };

	for (count.message = 0; count.message < CM_TALLY_KINDS; count.message++) {
		count.value = row[count.message];
		if (count.value)
			put(&count, arg);
	}
}

void portd_stat_tally(const struct cm_tally *tally,
		      void (*put)(struct portd_stat_count *count, void *arg), void *arg)
{
	unsigned int i;

	put_row(tally->sent, PORTD_COUNT_SENT, put, arg);
	put_row(tally->received, PORTD_COUNT_RECEIVED, put, arg);
	for (i = 0; i < CM_N_COUNTERS; i++)
		put_row(tally->count[i], counters[i], put, arg);
}

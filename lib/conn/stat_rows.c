/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A snapshot of the ids of this process: see stat_rows.h. It is taken at once, under the engine's
 * lock, so that it is consistent; that takes 0.1 us per id.
 */
#include "lib/conn/stat_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "lib/engine/engine.h"
#include "lib/engine/cmportd.h"
#include "lib/id/claims.h"

#define AGAIN_NS (4 * CM_NS_PER_MS)

/* Used by the engine's thread only. A new query replaces an unfinished one. */
static struct {
	uint32_t ask_id; /* 0: no query */
	bool is_partial;
	struct portd_stat_id *id;
	size_t n_ids, ids_max;
	struct portd_stat_count *count;
	size_t n_counts;
	size_t at; /* next row to send; ids first */
} answer;

/* --- taking the snapshot, under the engine's lock ------------------------ */

static uint8_t handle_of(const struct cm_port *port)
{
	int handle = port ? ((const struct port *)port)->handle : -1;

	return handle < 0 ? PORTD_STAT_NO_PORT : (uint8_t)handle;
}

static void write_id(const struct id *id, struct cm_time now, struct portd_stat_id *row)
{
	struct portd_claim claim = claims_show(id);

	*row = (struct portd_stat_id){
		.id_state = (uint8_t)id->state,
		.conn_state = PORTD_STAT_NONE,
		.port = id->path.port ? handle_of(&id->path.port->cm) : PORTD_STAT_NO_PORT,
		.qp_type = (uint8_t)id_transport(id),
		.ps = id->claim.ps,
		.family = claim.local_family ? claim.local_family : claim.peer_family,
		.local_port = claim.local_port,
		.peer_port = claim.peer_port,
		.n_requests = id->n_requests,
		.age_ms = (now.ns - id->born.ns) / CM_NS_PER_MS,
	};
	memcpy(row->local_addr, claim.local_addr, sizeof(row->local_addr));
	memcpy(row->peer_addr, claim.peer_addr, sizeof(row->peer_addr));
	if (!id->conn)
		return;
	portd_stat_conn(id->conn, row);
	if (id->conn->port)
		row->port = handle_of(id->conn->port);
}

/* An orphan stays until the peer has confirmed its disconnect. */
static void write_orphan(struct cm_conn *conn, void *arg)
{
	struct portd_stat_id *row;

	(void)arg;
	if (conn->owner || answer.n_ids == answer.ids_max)
		return;
	row = &answer.id[answer.n_ids++];
	*row = (struct portd_stat_id){
		.id_state = PORTD_STAT_NONE,
		.port = handle_of(conn->port),
		.age_ms = UINT64_MAX,
	};
	portd_stat_conn(conn, row);
}

static void write_ids(struct engine *engine)
{
	struct cm_time now = clock_now();
	struct id *id;

	answer.ids_max = list_length(&engine->ids) + engine->core.n_conns;
	answer.id = calloc(answer.ids_max + 1, sizeof(*answer.id));
	if (!answer.id) {
		answer.is_partial = true;
		return;
	}
	list_for_each_entry (id, &engine->ids, link)
		write_id(id, now, &answer.id[answer.n_ids++]);
	cm_core_walk(&engine->core, write_orphan, NULL);
}

static void write_count(struct portd_stat_count *count, void *arg)
{
	const struct port *port = arg;

	count->port = handle_of(&port->cm);
	answer.count[answer.n_counts++] = *count;
}

static void write_counts(struct port *const *port, size_t n_ports)
{
	size_t i;

	answer.count =
		calloc(n_ports * (CM_N_COUNTERS + 2) * CM_TALLY_KINDS + 1, sizeof(*answer.count));
	if (!answer.count) {
		answer.is_partial = true;
		return;
	}
	for (i = 0; i < n_ports; i++)
		portd_stat_tally(&port[i]->cm.tally, write_count, port[i]);
}

/* --- sending it ---------------------------------------------------------- */

void stat_forget(void)
{
	free(answer.id);
	free(answer.count);
	memset(&answer, 0, sizeof(answer));
}

void stat_after_fork(void)
{
	memset(&answer, 0, sizeof(answer));
}

void stat_asked(uint32_t ask_id)
{
	struct port *port[PORTD_PORTS_MAX];
	unsigned int i, n = cmportd_get_ports(port);
	struct engine *engine;

	stat_forget();
	engine = engine_lock();
	write_ids(engine);
	write_counts(port, n);
	engine_unlock();
	answer.ask_id = ask_id;
	for (i = 0; i < n; i++)
		port_put(port[i]);
}

/* Return: false if there is no further record. */
static bool next_record(struct portd_record *ret)
{
	size_t n = answer.n_ids + answer.n_counts;

	if (answer.at > n)
		return false;
	if (answer.at < answer.n_ids) {
		ret->type = PORTD_STAT_ID;
		ret->stat_id = answer.id[answer.at];
	} else if (answer.at < n) {
		ret->type = PORTD_STAT_COUNT;
		ret->stat_count = answer.count[answer.at - answer.n_ids];
	} else {
		ret->type = PORTD_STAT_END;
		ret->stat_end.n_rows = (uint32_t)n;
		ret->stat_end.is_partial = answer.is_partial;
	}
	ret->stat_row.ask_id = answer.ask_id;
	return true;
}

void stat_send_rows(struct portd_client *client)
{
	struct portd_datagram out;
	struct portd_record record;
	size_t before;
	int err = 0;

	while (answer.ask_id && !err) {
		before = answer.at;
		for (out.bytes = 0; next_record(&record) && portd_put(&out, &record);)
			answer.at++;
		if (out.bytes)
			err = portd_try_data(client, &out);
		if (err == -EAGAIN)
			answer.at = before;
		else if (err || !out.bytes)
			stat_forget();
	}
}

struct cm_time stat_deadline(void)
{
	return answer.ask_id ? cm_time_after(clock_now(), AGAIN_NS) : CM_TIME_NEVER;
}

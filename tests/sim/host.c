/* SPDX-License-Identifier: BSD-2-Clause */
/* A host, and how it carries out the effects of its core: see host.h. */
#include "tests/sim/host.h"

#include <stdlib.h>
#include <string.h>

#include "tests/sim/app.h"
#include "tests/sim/chart.h"
#include "tests/sim/net.h"
#include "tests/sim/oracle.h"

#define FIRST_QPN 0x100

struct cm_time host_now(const struct sim_host *host)
{
	return (struct cm_time){ host->sim->now_ns + host->skew_ns };
}

static uint32_t id_mask(const struct sim_host *host)
{
	struct rng rng = rng_fork(host->sim->seed, 100 + host->number + 7u * host->incarnation);

	return (uint32_t)rng_next(&rng);
}

static void welcome(struct sim_host *host)
{
	struct mad_gid gid = host->gid;

	cm_port_init(&host->port, host->guid, &gid);
	host->service = host->lookups = (struct cm_service){ 0 };
	if (cm_core_serve(&host->core, &host->service, SIM_SERVICE) ||
	    cm_core_serve(&host->core, &host->lookups, SIM_LOOKUP))
		abort();
	host->next_qpn = FIRST_QPN;
	host->deadline_ns = UINT64_MAX;
	host->is_up = true;
}

void host_start(struct sim_host *host)
{
	host->incarnation++;
	if (cm_core_init(&host->core, id_mask(host)))
		abort();
	cm_ids_init(&host->core.ids, id_mask(host));
	welcome(host);
}

void host_rewind(struct sim_host *host)
{
	cm_ids_init(&host->core.ids, id_mask(host));
	host->next_qpn = FIRST_QPN;
	host->skew_ns = host->asleep_ns = 0;
	host->n_ids = 0;
	host->odd_ns = host->doubts = 0;
	host->has_crashed = host->is_liar = false;
	memset(host->by_comm_id, 0, sizeof(host->by_comm_id));
	host->rng = rng_fork(host->sim->seed, 200 + host->number);
}

void host_crash(struct sim_host *host)
{
	for (uint32_t i = 0; i < host->n_ids; i++)
		host->id[i]->conn = NULL;
	cm_core_fini(&host->core);
	host->is_up = false;
	host->has_crashed = true;
	host->deadline_ns = UINT64_MAX;
}

void host_fini(struct sim_host *host)
{
	for (uint32_t i = 0; i < host->n_room; i++)
		free(host->id[i]);
	free(host->id);
	if (host->is_up)
		cm_core_fini(&host->core);
}

/* --- ids ----------------------------------------------------------------- */

static struct sim_id *id_of(struct sim_host *host)
{
	if (host->n_ids == host->n_room) {
		host->n_room = host->n_room ? 2 * host->n_room : 4;
		host->id = realloc(host->id, host->n_room * sizeof(host->id[0]));
		if (!host->id)
			abort();
		for (uint32_t i = host->n_ids; i < host->n_room; i++)
			host->id[i] = calloc(1, sizeof(struct sim_id));
	}
	return host->id[host->n_ids];
}

static struct sim_id *id_begin(struct sim_host *host, struct cm_conn *conn, uint8_t peer)
{
	struct sim_id *id = id_of(host), **bucket;

	if (!id)
		abort();
	*id = (struct sim_id){ .host = host,
			       .conn = conn,
			       .number = host->n_ids++,
			       .comm_id = conn->local_comm_id,
			       .incarnation = host->incarnation,
			       .peer = peer };
	bucket = &host->by_comm_id[id->comm_id % SIM_ID_BUCKETS];
	id->next = *bucket;
	*bucket = id;
	conn->owner = id;
	return id;
}

struct sim_id *host_id_new(struct sim_host *host, uint8_t peer)
{
	struct cm_conn *conn = cm_core_conn_new(&host->core, host);

	return conn ? id_begin(host, conn, peer) : NULL;
}

struct sim_id *host_find(struct sim_host *host, uint32_t comm_id)
{
	struct sim_id *id = host->by_comm_id[comm_id % SIM_ID_BUCKETS];

	while (id && (id->comm_id != comm_id || id->incarnation != host->incarnation))
		id = id->next;
	return id;
}

/* --- effects of the core ------------------------------------------------- */

static void deal_with(struct sim_host *host, const struct cm_report *report, uint8_t peer)
{
	struct sim *sim = host->sim;
	struct sim_id *id = report->conn->owner;

	if (report->kind == CM_REPORT_REQUEST)
		id = id_begin(host, report->conn, peer);
	oracle_check_report(sim, id, report);
	chart_report(sim, host, report);
	if (!sim->failed && !sim->is_ending)
		app_report(id, report);
}

/* The messages are sent before an application gets a report, as in the library. */
static void carry_out(struct sim_host *host, enum oracle_cause cause, uint16_t attr, uint8_t peer)
{
	struct sim *sim = host->sim;
	struct cm_effects *fx = &sim->fx;

	host->deadline_ns = cm_core_deadline(&host->core).ns;
	for (unsigned int i = 0; i < fx->n_sends; i++) {
		oracle_sent(host, fx->send[i].mad, cause, attr);
		net_send(sim, host, &fx->send[i].path, fx->send[i].mad);
	}
	for (unsigned int i = 0; i < fx->n_reports; i++)
		deal_with(host, &fx->report[i], peer);
	if (fx->n_sends)
		oracle_in_turn(host);
}

void host_receive(struct sim_host *host, const struct net_packet *packet, bool doubtful)
{
	struct mad_path path = { .grh = true, .hop_limit = 64, .dgid = packet->gid };
	struct sim *sim = host->sim;
	uint8_t from = packet->from, mad[MAD_BYTES];

	sim->n_messages++;
	if (cm_core_reserve(&host->core))
		abort();
	if (doubtful)
		host->doubts |= UINT64_C(1) << from;
	memcpy(mad, packet->mad, sizeof(mad)); /* the pool may move while the message is handled */
	cm_core_input(&host->core, &host->port, &path, mad, sizeof(mad), host_now(host), &sim->fx);
	oracle_note_accepted(host, mad);
	carry_out(host, ORACLE_MESSAGE, cm_mad_attr(mad), from);
}

uint64_t host_due_ns(const struct sim_host *host)
{
	uint64_t due = host->deadline_ns;

	if (!host->is_up || due == UINT64_MAX)
		return UINT64_MAX;
	due = due > host->skew_ns ? due - host->skew_ns : 0;
	return due > host->asleep_ns ? due : host->asleep_ns;
}

void host_expire(struct sim_host *host)
{
	struct sim *sim = host->sim;

	while (cm_core_expire(&host->core, host_now(host), &sim->fx))
		carry_out(host, ORACLE_TIMER, 0, 0);
	host->deadline_ns = cm_core_deadline(&host->core).ns;
}

int host_call(struct sim_id *id, enum cm_event verb, const struct cm_args *args)
{
	struct sim_host *host = id->host;
	struct sim *sim = host->sim;
	int err;

	sim->n_calls++;
	err = cm_core_call(&host->core, id->conn, verb, args, host_now(host), &sim->fx);
	chart_call(sim, id, verb, err);
	if (!err && (verb == CM_CALL_DESTROY || verb == CM_CALL_FORGET))
		id->conn = NULL;
	oracle_called(id, verb, err);
	carry_out(host, ORACLE_CALL, (uint16_t)verb, id->peer);
	return err;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules about a world after all activity: see oracle.h. */
#include "tests/sim/host.h"
#include "tests/sim/oracle.h"

static bool is_alive(const struct sim_id *id)
{
	return id->conn && id->host->is_up && id->incarnation == id->host->incarnation;
}

/* Ends of a link with corrupted messages may be in any state. */
static bool is_doubtful(const struct sim *sim, const struct sim_id *id)
{
	return id->host->doubts >> id->peer & 1 ||
	       sim->host[id->peer].doubts >> id->host->number & 1;
}

static struct sim_id *peer_of(struct sim *sim, const struct sim_id *id)
{
	return host_find(&sim->host[id->peer], id->peer_comm_id);
}

/* Attributes of the peer's queue pair are right; app.c derives the PSNs from the numbers. */
static void check_queue_pairs(struct sim *sim, const struct sim_id *id, const struct sim_id *peer)
{
	uint32_t psn = peer->qpn ^ (peer->order.role == ORDER_ACTIVE ? 0xaaaa : 0xbbbb);

	if (id->conn->remote_qpn != peer->qpn || id->conn->remote_starting_psn != psn)
		sim_fail(sim, "host %c id %u takes the peer's queue pair for %#x, but it is %#x",
			 'A' + id->host->number, id->number, id->conn->remote_qpn, peer->qpn);
}

/*
 * An id that is connected has a connected peer, unless the peer could not report its end: it
 * crashed, or sent REJ, which is sent once, or gave up while the network had faults.
 */
static void check_agreement(struct sim *sim, const struct sim_id *id)
{
	const struct sim_id *peer = peer_of(sim, id);

	if (is_doubtful(sim, id))
		return;
	if (!peer) {
		if (!sim->host[id->peer].has_crashed)
			sim_fail(sim, "host %c id %u: '%s' and its peer does not exist",
				 'A' + id->host->number, id->number, id->letters);
		return;
	}
	/* After CM_CALL_ESTABLISH only, the peer may not know of this end. */
	if (peer->peer_comm_id != id->comm_id)
		return;
	if (peer->up && !peer->destroyed) {
		check_queue_pairs(sim, id, peer);
		return;
	}
	if (!peer->is_premature && (peer->over_clean || peer->dreq_healed))
		sim_fail(sim, "host %c id %u: '%s', but its peer is disconnected: '%s'",
			 'A' + id->host->number, id->number, id->letters, peer->letters);
}

static void check_at_rest(struct sim *sim, const struct sim_id *id)
{
	if (id->begun && !order_may_rest(&id->order))
		sim_fail(sim, "host %c id %u waits for ever: '%s'", 'A' + id->host->number,
			 id->number, id->letters);
	if (id->up)
		check_agreement(sim, id);
}

void oracle_quiet(struct sim *sim)
{
	for (unsigned int i = 0; i < sim->n_hosts; i++)
		for (uint32_t n = 0; n < sim->host[i].n_ids; n++)
			if (is_alive(sim->host[i].id[n]))
				check_at_rest(sim, sim->host[i].id[n]);
}

static void check_pace(const struct sim_host *host, const struct cm_pace *pace, const char *what)
{
	if (pace->out || !list_is_empty(&pace->lane[0].waiting))
		sim_fail(host->sim, "host %c keeps %u turns to send %s", 'A' + host->number,
			 pace->out, what);
}

static void check_empty(struct sim *sim, const struct sim_host *host)
{
	const struct cm_core *core = &host->core;

	if (core->n_conns || core->by_local.table.n_nodes)
		sim_fail(sim, "host %c keeps %zu connections", 'A' + host->number, core->n_conns);
	if (core->by_remote.table.n_nodes || core->by_qpn.table.n_nodes)
		sim_fail(sim, "host %c keeps %zu peers and %zu queue pairs in its tables",
			 'A' + host->number, core->by_remote.table.n_nodes,
			 core->by_qpn.table.n_nodes);
	if (core->timers.first || host->deadline_ns != UINT64_MAX)
		sim_fail(sim, "host %c keeps a timer", 'A' + host->number);
	check_pace(host, &host->port.requests, "requests");
	check_pace(host, &host->port.disconnects, "DREQs");
	check_pace(host, &host->port.to_unresponsive, "messages to unresponsive peers");
}

void oracle_empty(struct sim *sim)
{
	for (unsigned int i = 0; i < sim->n_hosts; i++)
		if (sim->host[i].is_up)
			check_empty(sim, &sim->host[i]);
	if (sim->clock.n_plans)
		sim_fail(sim, "%zu plans are left", sim->clock.n_plans);
}

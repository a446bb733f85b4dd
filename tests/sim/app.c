/* SPDX-License-Identifier: BSD-2-Clause */
/* Behaviour of applications: see app.h. */
#include "tests/sim/app.h"

#include <string.h>

#include "tests/sim/host.h"

#define LIFE_TIME      18
#define RESPONSE_TIME  20
#define CM_RETRIES     15
#define QKEY	       0x01234567
#define PROBE_PERMILLE 30 /* requests for an unknown service */

struct app_traits app_accepts(void)
{
	return (struct app_traits){ .accept = 1000, .confirm = 1000, .answer = 1000 };
}

/* --- arguments of a call ------------------------------------------------- */

static void fill_req(struct sim_id *id, struct cm_msg *msg)
{
	struct sim_host *host = id->host;
	struct cm_req *req = &msg->req;

	cm_msg_init(msg, CM_ATTR_REQ, 0);
	id->qpn = host->next_qpn++;
	req->service_id = SIM_SERVICE;
	req->local_qpn = id->qpn;
	req->starting_psn = id->qpn ^ 0xaaaa;
	req->initiator_depth = 1;
	req->responder_resources = 2;
	req->local_cm_response_timeout = req->remote_cm_response_timeout = RESPONSE_TIME;
	req->max_cm_retries = CM_RETRIES;
	req->path_mtu = 3;
	req->pkey = 0xffff;
	req->primary.hop_limit = 64;
	req->primary.local_ack_timeout = LIFE_TIME + 1;
	req->primary.local_gid = host->gid;
	req->primary.remote_gid = host->sim->host[id->peer].gid;
}

static void fill_rep(struct sim_id *id, struct cm_msg *msg)
{
	cm_msg_init(msg, CM_ATTR_REP, 0);
	id->qpn = id->host->next_qpn++;
	msg->rep.local_qpn = id->qpn;
	msg->rep.starting_psn = id->qpn ^ 0xbbbb;
	msg->rep.responder_resources = 2;
	msg->rep.initiator_depth = 1;
	msg->rep.target_ack_delay = 15;
}

/* Return: @msg, or NULL for a verb without a message. */
static struct cm_msg *fill(struct sim_id *id, enum cm_event verb, struct cm_msg *msg)
{
	bool lookup = id->order.role == ORDER_LOOKS_UP || id->order.role == ORDER_LOOKED_UP;

	if (verb == CM_CALL_REQ) {
		fill_req(id, msg);
	} else if (verb == CM_CALL_REP) {
		fill_rep(id, msg);
	} else if (verb == CM_CALL_SIDR_REQ) {
		cm_msg_init(msg, CM_ATTR_SIDR_REQ, 0);
		msg->sidr_req.service_id = SIM_LOOKUP;
		msg->sidr_req.pkey = 0xffff;
	} else if (verb == CM_CALL_SIDR_REP && lookup) {
		cm_msg_init(msg, CM_ATTR_SIDR_REP, 0);
		msg->sidr_rep.qpn = id->host->next_qpn++;
		msg->sidr_rep.qkey = QKEY;
	} else {
		return NULL;
	}
	return msg;
}

int app_call(struct sim_id *id, enum cm_event verb)
{
	struct mad_path path = { .grh = true,
				 .hop_limit = 64,
				 .dgid = id->host->sim->host[id->peer].gid };
	struct cm_msg msg;
	struct cm_args args = { .port = &id->host->port,
				.path = &path,
				.packet_life_time = LIFE_TIME };
	uint32_t qpn = id->qpn;
	int err;

	args.msg = fill(id, verb, &msg);
	err = host_call(id, verb, &args);
	if (err)
		id->qpn = qpn;
	return err;
}

void app_call_later(struct sim_id *id, enum cm_event verb, uint64_t after_us)
{
	struct sim *sim = id->host->sim;

	clock_plan(&sim->clock, (struct plan){ .at_ns = sim->now_ns + after_us * SIM_NS_PER_US,
					       .kind = PLAN_CALL,
					       .host = id->host->number,
					       .what = id->number,
					       .more = verb });
}

static void data_overtakes_rtu(struct sim_id *id)
{
	struct sim_host *host = &id->host->sim->host[id->peer];
	struct sim_id *peer = host_find(host, id->peer_comm_id);

	if (peer && peer->conn && rng_chance(&host->rng, host->traits.early))
		app_call_later(peer, CM_CALL_ESTABLISH, 0);
}

void app_due(struct sim *sim, const struct plan *plan)
{
	struct sim_host *host = &sim->host[plan->host];
	struct sim_id *id = plan->what < host->n_ids ? host->id[plan->what] : NULL;

	if (!id || !id->conn)
		return;
	if (host->asleep_ns > sim->now_ns) {
		app_call_later(id, (enum cm_event)plan->more,
			       (host->asleep_ns - sim->now_ns) / SIM_NS_PER_US + 1);
		return;
	}
	if (app_call(id, (enum cm_event)plan->more) == 0 && plan->more == CM_CALL_RTU)
		data_overtakes_rtu(id);
}

/* --- reactions to reports ------------------------------------------------ */

static uint64_t think_us(struct sim_host *host)
{
	return host->traits.think_min_us + rng_tail(&host->rng, host->traits.think_max_us);
}

static void on_request(struct sim_id *id)
{
	const struct app_traits *traits = &id->host->traits;
	struct rng *rng = &id->host->rng;
	bool lookup = id->order.role == ORDER_LOOKED_UP;

	if (!lookup && rng_chance(rng, traits->patience))
		app_call_later(id, CM_CALL_MRA, 0);
	if (rng_chance(rng, traits->accept)) {
		app_call_later(id, lookup ? CM_CALL_SIDR_REP : CM_CALL_REP, think_us(id->host));
	} else if (rng_chance(rng, traits->reject)) {
		app_call_later(id, lookup ? CM_CALL_DESTROY : CM_CALL_REJ, think_us(id->host));
	} else if (!lookup && rng_chance(rng, traits->forget)) {
		app_call_later(id, CM_CALL_FORGET, think_us(id->host));
	}
}

static void on_connected(struct sim_id *id, uint64_t after_us)
{
	struct sim_host *host = id->host;

	if (rng_chance(&host->rng, host->traits.hang_up))
		app_call_later(id, CM_CALL_DREQ,
			       after_us + rng_tail(&host->rng, host->traits.life_max_us));
}

static void on_response(struct sim_id *id)
{
	const struct app_traits *traits = &id->host->traits;
	struct rng *rng = &id->host->rng;
	uint64_t after_us = think_us(id->host);

	if (rng_chance(rng, traits->patience))
		app_call_later(id, CM_CALL_MRA, 0);
	if (rng_chance(rng, traits->confirm)) {
		app_call_later(id, CM_CALL_RTU, after_us);
		on_connected(id, after_us);
	} else if (rng_chance(rng, traits->refuse_rep)) {
		app_call_later(id, CM_CALL_REJ, after_us);
	}
}

/* A new attempt uses a new connection, and may keep the old one. */
static void on_over(struct sim_id *id)
{
	struct sim_host *host = id->host;
	bool asked = id->order.role == ORDER_ACTIVE || id->order.role == ORDER_LOOKS_UP;
	struct sim_id *next;

	if (asked && rng_chance(&host->rng, host->traits.again)) {
		next = host_id_new(host, id->peer);
		if (next)
			app_call_later(next,
				       id->order.role == ORDER_ACTIVE ? CM_CALL_REQ
								      : CM_CALL_SIDR_REQ,
				       think_us(host));
	}
	if (host->traits.destroy_over)
		app_call_later(id, CM_CALL_DESTROY, think_us(host));
}

static void on_disconnected(struct sim_id *id)
{
	struct sim_host *host = id->host;

	if (rng_chance(&host->rng, host->traits.answer))
		app_call_later(id, CM_CALL_DREP, think_us(host));
	if (host->traits.destroy_over)
		on_over(id);
}

void app_report(struct sim_id *id, const struct cm_report *report)
{
	struct sim_host *host = id->host;

	if (rng_chance(&host->rng, host->traits.destroy)) {
		app_call_later(id, CM_CALL_DESTROY, think_us(host));
		return;
	}
	switch (report->kind) {
	case CM_REPORT_REQUEST:
		on_request(id);
		break;
	case CM_REPORT_RESPONSE:
		on_response(id);
		break;
	case CM_REPORT_ESTABLISHED:
		on_connected(id, 0);
		break;
	case CM_REPORT_DISCONNECTED:
		on_disconnected(id);
		break;
	case CM_REPORT_REJECTED:
	case CM_REPORT_UNREACHABLE:
	case CM_REPORT_TIMEWAIT_EXIT:
	case CM_REPORT_ANSWERED:
		on_over(id);
		break;
	}
}

/* --- beginning and end --------------------------------------------------- */

static struct sim_id *begin(struct sim_host *host, uint8_t peer, enum cm_event verb)
{
	struct sim_id *id = host_id_new(host, peer);

	if (id)
		app_call(id, verb);
	return id;
}

struct sim_id *app_connect(struct sim_host *host, uint8_t peer)
{
	return begin(host, peer, CM_CALL_REQ);
}

struct sim_id *app_look_up(struct sim_host *host, uint8_t peer)
{
	return begin(host, peer, CM_CALL_SIDR_REQ);
}

void app_destroy_all(struct sim *sim)
{
	sim->is_ending = true;
	for (unsigned int i = 0; i < sim->n_hosts; i++)
		for (uint32_t n = 0; n < sim->host[i].n_ids; n++)
			if (sim->host[i].id[n]->conn)
				app_call(sim->host[i].id[n], CM_CALL_DESTROY);
}

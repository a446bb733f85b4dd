/* SPDX-License-Identifier: BSD-2-Clause */
/* Random forged messages, and one forgery in every field: see lie.h. */
#include "tests/sim/lie.h"

#include <inttypes.h>
#include <string.h>

#include "tests/sim/app.h"
#include "tests/sim/host.h"
#include "tests/sim/net.h"
#include "tests/sim/world.h"

#define CLIENT	0
#define SERVER	1
#define LIAR	2
#define N_HOSTS 3
#define SEED	7
#define SLOW_US 1500000
#define STEP_NS (SIM_NS_PER_S / 4) /* between two forged messages */

/* --- messages ------------------------------------------------------------ */

/* A message as the peer of an id would send it, as far as a third party can know. */
static void forge(const struct sim_id *id, enum cm_attr attr, struct cm_msg *msg)
{
	const struct sim_host *peer = &id->host->sim->host[id->peer];

	cm_msg_init(msg, attr, id->peer_comm_id);
	msg->rtu.local_comm_id = id->peer_comm_id;
	msg->rtu.remote_comm_id = id->comm_id;
	if (attr == CM_ATTR_REQ) {
		msg->req.vendor_id = 0;
		msg->req.local_ca_guid = peer->guid;
		msg->req.service_id = SIM_SERVICE;
		msg->req.local_qpn = peer->next_qpn - 1;
	} else if (attr == CM_ATTR_REP) {
		msg->rep.local_ca_guid = peer->guid;
		msg->rep.local_qpn = peer->next_qpn - 1;
	} else if (attr == CM_ATTR_DREQ) {
		msg->dreq.remote_qpn = id->qpn;
	} else if (attr == CM_ATTR_REJ) {
		msg->rej.message = CM_ANSWERED_OTHER;
		msg->rej.reason = CM_REJ_TIMEOUT;
		for (int i = 0; i < 8; i++)
			msg->rej.ari[i] = (uint8_t)(peer->guid >> (56 - 8 * i));
	} else if (attr == CM_ATTR_SIDR_REQ) {
		msg->sidr_req.pkey = 0xffff;
		msg->sidr_req.service_id = SIM_LOOKUP;
	} else if (attr == CM_ATTR_SIDR_REP) {
		msg->sidr_rep.request_id = id->comm_id;
		msg->sidr_rep.service_id = SIM_LOOKUP;
	}
}

static void set_member(struct sim *sim, struct sim_host *from, const struct sim_host *to,
		       const struct cm_msg *msg)
{
	struct mad_path path = { .grh = true, .hop_limit = 64, .dgid = to->gid };
	uint8_t mad[MAD_BYTES];

	cm_msg_encode(msg, mad);
	from->is_liar = true;
	net_send(sim, from, &path, mad);
}

enum lie_value {
	LIE_TRUE, /* a true value, but not for this host to send */
	LIE_ZERO,
	LIE_ONES,
	LIE_NEXT, /* the right value plus one */
	LIE_OWN,  /* an own value in place of another host's */
	LIE_N_VALUES,
};

static uint64_t member_get(const struct wire_field *field, const uint8_t *host)
{
	uint64_t value = 0;

	memcpy(&value, host + field->offset, field->size > 8 ? 8 : field->size);
	return value;
}

static void falsify(struct cm_msg *msg, const struct wire_field *field, enum lie_value how,
		    uint64_t own)
{
	uint8_t *body = (uint8_t *)&msg->req;
	uint64_t value = how == LIE_OWN ? own : member_get(field, body) + 1;

	if (how == LIE_TRUE)
		return;
	if (how == LIE_ZERO || how == LIE_ONES)
		memset(body + field->offset, how == LIE_ZERO ? 0 : 0xff, field->size);
	else
		memcpy(body + field->offset, &value, field->size > 8 ? 8 : field->size);
}

void falsify_at_random(struct sim *sim, struct sim_host *liar, struct sim_host *to)
{
	struct rng *rng = &liar->rng;
	enum cm_attr attr = (enum cm_attr)(CM_ATTR_REQ + rng_below(rng, NET_KINDS));
	const struct wire_layout *layout = cm_msg_layout((uint16_t)attr);
	struct cm_msg msg;

	if (!to->n_ids)
		return;
	forge(to->id[rng_below(rng, to->n_ids)], attr, &msg);
	for (uint64_t n = rng_below(rng, 4); n; n--)
		falsify(&msg, &layout->field[rng_below(rng, layout->n_fields)],
			(enum lie_value)rng_below(rng, LIE_N_VALUES), rng_next(rng));
	set_member(sim, liar, to, &msg);
}

/* --- one forgery in every field ------------------------------------------ */

struct lie {
	unsigned int exchange;
	unsigned int moment;
	int to;		/* the receiver */
	bool about_own; /* about the forger's own connection, not one of the two others */
	enum cm_attr attr;
	unsigned int field;
	enum lie_value value;
};

static void connect_slowly(struct sim *sim)
{
	sim->host[CLIENT].traits.think_min_us = sim->host[SERVER].traits.think_min_us = SLOW_US;
	sim->host[CLIENT].traits.hang_up = 1000;
	app_connect(&sim->host[CLIENT], SERVER);
}

static void connect_patiently(struct sim *sim)
{
	sim->host[CLIENT].traits.patience = sim->host[SERVER].traits.patience = 1000;
	connect_slowly(sim);
}

static void reject_slowly(struct sim *sim)
{
	sim->host[SERVER].traits.accept = 0;
	sim->host[SERVER].traits.reject = 1000;
	connect_slowly(sim);
}

static void look_up_slowly(struct sim *sim)
{
	sim->host[SERVER].traits.think_min_us = 2 * SLOW_US;
	app_look_up(&sim->host[CLIENT], SERVER);
}

static void (*const exchanges[])(struct sim *sim) = { connect_slowly, connect_patiently,
						      reject_slowly, look_up_slowly };

#define N_EXCHANGES (sizeof(exchanges) / sizeof(exchanges[0]))

static struct sim_id *id_with(struct sim_host *host, uint8_t peer)
{
	for (uint32_t i = host->n_ids; i--;)
		if (host->id[i]->peer == peer)
			return host->id[i];
	return NULL;
}

static void falsify_field(struct sim *sim, const struct lie *lie)
{
	struct sim_host *liar = &sim->host[LIAR], *to = &sim->host[lie->to];
	uint8_t about = lie->about_own ? LIAR : lie->to == CLIENT ? SERVER : CLIENT;
	const struct sim_id *victim = id_with(to, about);
	const struct wire_layout *layout = cm_msg_layout((uint16_t)lie->attr);
	struct cm_msg msg;

	if (!victim)
		return;
	forge(victim, lie->attr, &msg);
	falsify(&msg, &layout->field[lie->field], lie->value, id_with(liar, SERVER)->comm_id);
	set_member(sim, liar, to, &msg);
}

/* A hash of the events of the two hosts and their times, without comm ids. */
static uint64_t run_conversation(const struct sim *sim)
{
	uint64_t sum = 0;

	for (int h = CLIENT; h <= SERVER; h++)
		for (uint32_t i = 0; i < sim->host[h].n_ids; i++)
			if (sim->host[h].id[i]->peer != LIAR)
				sum = (sum ^ sim->host[h].id[i]->history) *
				      UINT64_C(0x9e3779b97f4a7c15);
	return sum;
}

/* The forger has a connection of its own to each of the two, like an honest host. */
static uint64_t run(struct sim *sim, const struct lie *lie, bool lies)
{
	uint64_t start_ns, sum;

	world_rewind(sim, SEED);
	for (int i = 0; i < N_HOSTS; i++)
		sim->host[i].traits = app_accepts();
	app_connect(&sim->host[LIAR], SERVER);
	app_connect(&sim->host[LIAR], CLIENT);
	world_run(sim, UINT64_MAX);
	start_ns = sim->now_ns;
	sim->host[LIAR].is_liar = true;
	exchanges[lie->exchange](sim);
	world_run(sim, start_ns + lie->moment * STEP_NS);
	if (lies)
		falsify_field(sim, lie);
	world_run(sim, UINT64_MAX);
	sum = run_conversation(sim);
	world_end(sim);
	return sum;
}

static int check(struct sim *sim, const struct lie *lie, uint64_t honest)
{
	uint64_t sum = run(sim, lie, true);

	if (sum == honest && !sim->failed)
		return 0;
	printf("FAIL a lie about %s.%s (%d) to host %c, %.2f s into exchange %u%s: %s\n",
	       cm_msg_layout((uint16_t)lie->attr)->name,
	       cm_msg_layout((uint16_t)lie->attr)->field[lie->field].name, lie->value,
	       'A' + lie->to, (double)lie->moment * STEP_NS / SIM_NS_PER_S, lie->exchange,
	       lie->about_own ? ", about its own connection" : "",
	       sim->failed ? sim->why : "others are hurt");
	return -1;
}

static int falsify_fields(struct sim *sim, struct lie lie, uint64_t honest, struct lie_counts *n)
{
	int ret = 0;

	for (lie.attr = CM_ATTR_REQ; lie.attr <= CM_ATTR_APR; lie.attr++) {
		size_t n_fields = cm_msg_layout((uint16_t)lie.attr)->n_fields;

		for (lie.field = 0; lie.field < n_fields && !ret; lie.field++) {
			for (lie.value = LIE_TRUE; lie.value < LIE_N_VALUES && !ret; lie.value++) {
				ret = check(sim, &lie, honest);
				n->lies++;
			}
		}
		if (lie.exchange + lie.moment + lie.to + lie.about_own == 0)
			n->fields += n_fields;
	}
	return ret;
}

int falsify_every_field(unsigned int moments, struct lie_counts *counts)
{
	struct lie lie = { 0 };
	struct sim sim;
	uint64_t honest;
	int ret = 0;

	*counts = (struct lie_counts){ 0 };
	world_init(&sim, SEED, N_HOSTS);
	for (lie.exchange = 0; lie.exchange < N_EXCHANGES; lie.exchange++) {
		honest = run(&sim, &lie, false);
		for (lie.moment = 0; lie.moment < moments && !ret; lie.moment++)
			for (int which = 0; which < 4 && !ret; which++) {
				lie.to = which & 1;
				lie.about_own = which & 2;
				ret = falsify_fields(&sim, lie, honest, counts);
			}
	}
	world_fini(&sim);
	return ret;
}

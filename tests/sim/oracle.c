/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules about single steps: see oracle.h. Those about whole worlds are in verdict.c. */
#include "tests/sim/oracle.h"

#include <string.h>

#include "tests/sim/host.h"

#define TRANSMISSIONS_MAX 16
#define APART_MIN_NS	  SIM_NS_PER_S
#define WAIT_MAX_NS	  (5 * SIM_NS_PER_S) /* between two transmissions, without MRA */
#define PATIENCE_MAX	  24		     /* encoded; the maximum for a peer */
#define LIFE_TIME_MS	  4096		     /* the maximum that a peer can have */
#define TIMEWAIT_MAX_NS	  (UINT64_C(65536) * CM_NS_PER_MS)

#define ATTR(name)	  (1u << (CM_ATTR_##name - CM_ATTR_REQ))

/* --- orders -------------------------------------------------------------- */

/* clang-format off */
static const char call_letter[] = {
	[CM_CALL_REQ] = 'Q',  [CM_CALL_REP] = 'P',       [CM_CALL_RTU] = 'R',
	[CM_CALL_REJ] = 'J',  [CM_CALL_MRA] = 'M',       [CM_CALL_DREQ] = 'D',
	[CM_CALL_DREP] = 'A', [CM_CALL_ESTABLISH] = 'E', [CM_CALL_SIDR_REQ] = 'S',
	[CM_CALL_SIDR_REP] = 'B', [CM_CALL_DESTROY] = 'X', [CM_CALL_FORGET] = 'F',
};
/* clang-format on */

static char letter_of_call(const struct cm_msg *msg, const struct cm_report *report)
{
	switch (report->kind) {
	case CM_REPORT_REQUEST:
		return 'r';
	case CM_REPORT_RESPONSE:
		return 'p';
	case CM_REPORT_ESTABLISHED:
		return 'e';
	case CM_REPORT_REJECTED:
		return msg->rej.reason == CM_REJ_STALE_CONNECTION ? 's' : 'j';
	case CM_REPORT_UNREACHABLE:
		return 'u';
	case CM_REPORT_DISCONNECTED:
		if (report->status)
			return 'x';
		return msg->hdr.attr_id == CM_ATTR_DREQ ? 'd' : 'f';
	case CM_REPORT_TIMEWAIT_EXIT:
		return 't';
	case CM_REPORT_ANSWERED:
		return 'a';
	}
	return '?';
}

static void note(struct sim_id *id, char letter)
{
	size_t n = sizeof(id->letters) - 1;

	if (id->n_letters == n) {
		memmove(id->letters, id->letters + 1, n - 1);
		id->n_letters--;
	}
	id->letters[id->n_letters++] = letter;
	id->last_ns = host_now(id->host).ns;
	id->history = (id->history ^ id->host->sim->now_ns ^ (uint64_t)letter << 56) *
		      UINT64_C(0xd6e8feb86659fd93);
}

static char last_letter(const struct sim_id *id)
{
	return id->n_letters ? id->letters[id->n_letters - 1] : 0;
}

static void step(struct sim_id *id, char letter)
{
	note(id, letter);
	if (!id->begun || !order_step(&id->order, letter))
		sim_fail(id->host->sim, "host %c id %u: '%s' is not a legal order: %s",
			 'A' + id->host->number, id->number, id->letters,
			 id->begun ? order_text(id->order.role) : "nothing has begun");
}

static void begin(struct sim_id *id, enum order_role role)
{
	if (id->begun)
		sim_fail(id->host->sim, "host %c id %u: '%s' begins anew", 'A' + id->host->number,
			 id->number, id->letters);
	id->order = order_begin(role);
	id->begun = true;
}

/*
 * A DREQ that the core began itself, because the peer has lost the connection, or a DREP that has
 * crossed our own, leaves the caller nothing to do.
 */
static bool may_refuse(const struct sim_id *id, enum cm_event verb)
{
	if (!id->begun)
		return true;
	if (verb == CM_CALL_DREQ || verb == CM_CALL_DREP)
		return true;
	return !order_may(&id->order, call_letter[verb]);
}

void oracle_called(struct sim_id *id, enum cm_event verb, int err)
{
	struct sim *sim = id->host->sim;
	const struct sim_id *peer;

	if (err) {
		if (verb == CM_CALL_DESTROY || !may_refuse(id, verb))
			sim_fail(sim, "host %c id %u: '%s' and then %c was refused: %d",
				 'A' + id->host->number, id->number, id->letters, call_letter[verb],
				 err);
		return;
	}
	if (verb == CM_CALL_DESTROY || verb == CM_CALL_FORGET) {
		note(id, call_letter[verb]);
		id->destroyed = true;
		return;
	}
	if (verb == CM_CALL_REQ)
		begin(id, ORDER_ACTIVE);
	if (verb == CM_CALL_SIDR_REQ)
		begin(id, ORDER_LOOKS_UP);
	step(id, call_letter[verb]);
	if (verb == CM_CALL_RTU)
		id->up = true;
	if (verb == CM_CALL_ESTABLISH) {
		peer = host_find(&sim->host[id->peer], id->peer_comm_id);
		id->is_premature = !peer || !peer->up;
	}
}

/*
 * The answer to the last message, or its timeout, and the end of timewait. If an answer was due
 * ('d'), timewait may have begun without a report.
 */
static void check_wait(struct sim_id *id, char before, char letter)
{
	uint64_t mra_wait_ns = id->mra_wait_ns > WAIT_MAX_NS ? id->mra_wait_ns : WAIT_MAX_NS;
	uint64_t busy_ns = id->host->busy_ns[id->peer];
	uint64_t now_ns = host_now(id->host).ns; /* it may have been set back since the MRA */
	uint64_t since_ns = busy_ns > id->asked_ns && busy_ns < now_ns ? busy_ns : id->asked_ns;
	uint64_t waited_ns = now_ns - since_ns;
	uint64_t max_ns = (TRANSMISSIONS_MAX + 1) * mra_wait_ns;

	if (letter == 't') {
		waited_ns = host_now(id->host).ns - id->last_ns;
		max_ns = before == 'd' ? UINT64_MAX / 2 : TIMEWAIT_MAX_NS;
	} else if (!id->asked_ns || !strchr("upxf", letter)) {
		return;
	}
	if (waited_ns > max_ns + id->host->odd_ns)
		sim_fail(id->host->sim, "host %c id %u: '%s' after %llu ms", 'A' + id->host->number,
			 id->number, id->letters, (unsigned long long)(waited_ns / CM_NS_PER_MS));
}

void oracle_check_report(struct sim *sim, struct sim_id *id, const struct cm_report *report)
{
	char letter = letter_of_call(&sim->fx.msg, report), before;

	if (!id || id->conn != report->conn || id->destroyed) {
		sim_fail(sim, "%c is told to an id that is gone", letter);
		return;
	}
	if (letter == 'r') {
		bool lookup = sim->fx.msg.hdr.attr_id == CM_ATTR_SIDR_REQ;

		begin(id, lookup ? ORDER_LOOKED_UP : ORDER_PASSIVE);
		id->peer_comm_id = sim->fx.msg.req.local_comm_id;
		oracle_no_duplicate(id);
	}
	before = last_letter(id);
	check_wait(id, before, letter);
	step(id, letter);
	if (letter == 'p')
		id->peer_comm_id = sim->fx.msg.rep.local_comm_id;
	if (letter == 'e')
		id->up = true;
	if (strchr("djsfxu", letter)) {
		id->over_clean = id->up && (letter == 'd' || letter == 'f');
		id->up = false;
	}
}

/* --- the wire ------------------------------------------------------------ */

/* The answers to a message that the protocol permits without a call. */
static const uint16_t answers[] = {
	[CM_ATTR_REQ] = ATTR(MRA) | ATTR(REJ) | ATTR(DREQ),
	[CM_ATTR_REP] = ATTR(RTU) | ATTR(MRA) | ATTR(REJ) | ATTR(DREQ),
	[CM_ATTR_DREQ] = ATTR(DREP),
	[CM_ATTR_SIDR_REQ] = ATTR(SIDR_REP),
	[CM_ATTR_APR] = 0,
};

static const uint16_t says[] = {
	[CM_CALL_REQ] = ATTR(REQ),
	[CM_CALL_REP] = ATTR(REP),
	[CM_CALL_RTU] = ATTR(RTU),
	[CM_CALL_REJ] = ATTR(REJ),
	[CM_CALL_DREQ] = ATTR(DREQ),
	[CM_CALL_DREP] = ATTR(DREP),
	[CM_CALL_SIDR_REQ] = ATTR(SIDR_REQ),
	[CM_CALL_SIDR_REP] = ATTR(SIDR_REP),
	[CM_CALL_DESTROY] = ATTR(REJ) | ATTR(DREQ) | ATTR(DREP) | ATTR(SIDR_REP),
	[CM_CALL_FORGET] = 0,
};

static bool is_due(const struct sim_id *id, uint16_t attr, enum oracle_cause cause, uint16_t what)
{
	bool first = id && id->sent[0].n + id->sent[3].n == 0;
	uint16_t bit = 1u << (attr - CM_ATTR_REQ);

	/* Any step may free a slot for waiting messages. */
	if ((attr == CM_ATTR_REQ || attr == CM_ATTR_SIDR_REQ) && (first || !id))
		return true;
	if (attr == CM_ATTR_DREQ && (!id || id->sent[2].n == 0))
		return true;
	switch (cause) {
	case ORACLE_CALL:
		return says[what] & bit;
	case ORACLE_MESSAGE:
		return what <= CM_ATTR_APR && (answers[what] & bit);
	case ORACLE_TIMER:
		return bit & (ATTR(REQ) | ATTR(REP) | ATTR(DREQ) | ATTR(SIDR_REQ));
	}
	return false;
}

static int tally_of(uint16_t attr)
{
	static const uint16_t attrs[] = { CM_ATTR_REQ, CM_ATTR_REP, CM_ATTR_DREQ,
					  CM_ATTR_SIDR_REQ };

	for (int i = 0; i < 4; i++)
		if (attrs[i] == attr)
			return i;
	return -1;
}

static uint32_t local_comm_id(const uint8_t *mad)
{
	mad += MAD_HDR_BYTES;
	return (uint32_t)mad[0] << 24 | (uint32_t)mad[1] << 16 | (uint32_t)mad[2] << 8 | mad[3];
}

static void count(struct sim_id *id, uint16_t attr, int tally)
{
	static const char waits_after[] = { 'Q', 'P', 0, 'S' };
	struct sim *sim = id->host->sim;
	uint64_t now_ns = host_now(id->host).ns;
	uint64_t apart_ns = now_ns - id->sent[tally].last_ns;
	const char *name = cm_msg_layout(attr)->name;

	if (id->sent[tally].n && apart_ns < APART_MIN_NS)
		sim_fail(sim, "host %c id %u says %s again after %llu us", 'A' + id->host->number,
			 id->number, name, (unsigned long long)(apart_ns / SIM_NS_PER_US));
	if (++id->sent[tally].n > TRANSMISSIONS_MAX)
		sim_fail(sim, "host %c id %u says %s %u times", 'A' + id->host->number, id->number,
			 name, id->sent[tally].n);
	if (id->sent[tally].n > 1 && waits_after[tally] && last_letter(id) != waits_after[tally])
		sim_fail(sim, "host %c id %u: '%s', and it says %s again", 'A' + id->host->number,
			 id->number, id->letters, name);
	if (id->sent[tally].n == 1)
		id->asked_ns = now_ns;
	id->sent[tally].last_ns = now_ns;
	if (attr == CM_ATTR_DREQ && sim->is_healed)
		id->dreq_healed = true;
}

void oracle_sent(struct sim_host *host, const uint8_t mad[MAD_BYTES], enum oracle_cause cause,
		 uint16_t what)
{
	uint16_t attr = cm_mad_attr(mad);
	struct sim_id *id = host_find(host, local_comm_id(mad));
	int tally = tally_of(attr);

	if (!is_due(id, attr, cause, what))
		sim_fail(host->sim, "host %c says %s for no reason (%s %u)", 'A' + host->number,
			 cm_msg_layout(attr)->name,
			 cause == ORACLE_CALL	 ? "call"
			 : cause == ORACLE_TIMER ? "timer"
						 : "message",
			 what);
	if (tally < 0)
		return;
	if (id)
		count(id, attr, tally);
	else
		sim_fail(host->sim, "host %c says %s for nobody", 'A' + host->number,
			 cm_msg_layout(attr)->name);
}

static uint64_t mra_wait_ns(uint8_t service_timeout)
{
	uint8_t t = service_timeout < PATIENCE_MAX ? service_timeout : PATIENCE_MAX;

	return ((UINT64_C(1) << (t > 8 ? t - 8 : 0)) + 2 * LIFE_TIME_MS) * CM_NS_PER_MS;
}

void oracle_note_accepted(struct sim_host *host, const uint8_t mad[MAD_BYTES])
{
	const struct cm_msg *msg = &host->sim->fx.msg;
	struct sim_id *id;

	if (host->sim->fx.n_sends > 2 + 2 * (cm_mad_attr(mad) != CM_ATTR_REQ))
		sim_fail(host->sim, "host %c answers one message with %u", 'A' + host->number,
			 host->sim->fx.n_sends);
	if (cm_mad_attr(mad) != CM_ATTR_MRA)
		return;
	id = host_find(host, msg->mra.remote_comm_id);
	if (id)
		host->busy_ns[id->peer] = host_now(host).ns;
	if (id && mra_wait_ns(msg->mra.service_timeout) > id->mra_wait_ns)
		id->mra_wait_ns = mra_wait_ns(msg->mra.service_timeout);
}

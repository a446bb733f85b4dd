/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two hosts and a wire in virtual time: see pair.h.
 */
#include "tests/unit/cm/pair.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/cm/text.h"

#define START_NS  UINT64_C(1000000000)
#define STEPS_MAX 20000

static const uint64_t guids[] = { 0xc, 0x5 };
static const uint32_t first_qpn[] = { 0x100, 0x200 };
static const struct mad_gid gids[] = {
	{ .raw = { [10] = 0xff, 0xff, 10, 0, 0, 1 } },
	{ .raw = { [10] = 0xff, 0xff, 10, 0, 0, 2 } },
};

static void host_start(struct pair_host *host, uint64_t secret)
{
	ck_assert_int_eq(cm_core_init(&host->core, secret), 0);
	cm_port_init(&host->port, guids[host->side], &gids[host->side]);
	memset(&host->service, 0, sizeof(host->service));
	ck_assert_int_eq(cm_core_serve(&host->core, &host->service, PAIR_SERVICE), 0);
}

void pair_init(struct pair *pair)
{
	*pair = (struct pair){ .now.ns = START_NS };
	for (int side = 0; side < 2; side++) {
		struct pair_host *host = &pair->host[side];

		host->pair = pair;
		host->side = (enum pair_side)side;
		host->path = (struct mad_path){ .grh = true, .dgid = gids[!side] };
		host_start(host, 0x1000 + side);
	}
}

void pair_restart(struct pair_host *host)
{
	cm_core_fini(&host->core);
	memset(host->end, 0, sizeof(host->end));
	host->n_ends = 0;
	host_start(host, 0x2000 + host->pair->n_packets);
}

struct pair_end *pair_end(struct pair *pair, enum pair_side side, unsigned int nth)
{
	ck_assert_uint_lt(nth, pair->host[side].n_ends);
	return &pair->host[side].end[nth];
}

uint64_t pair_ms(const struct pair *pair)
{
	return (pair->now.ns - START_NS) / CM_NS_PER_MS;
}

void pair_forget_chart(struct pair *pair)
{
	pair->chart[0] = '\0';
}

static void append(char *text, size_t bytes, const char *between, const char *item)
{
	size_t used = strlen(text);

	ck_assert_uint_lt(used + strlen(between) + strlen(item), bytes);
	snprintf(text + used, bytes - used, "%s%s", used ? between : "", item);
}

/* --- the wire ------------------------------------------------------------ */

void pair_fault(struct pair *pair, enum pair_side from, enum cm_attr attr, unsigned int nth,
		enum pair_fate fate)
{
	ck_assert_uint_lt(pair->n_faults, PAIR_FAULTS_MAX);
	pair->fault[pair->n_faults++] =
		(struct pair_fault){ .from = from, .attr = attr, .nth = nth, .fate = fate };
}

static enum pair_fate fate_of(struct pair_host *from, uint16_t attr)
{
	struct pair *pair = from->pair;
	enum pair_fate fate = PAIR_DELIVER;
	unsigned int n = pair->n_transmissions++;

	if (n < pair->n_fates)
		fate = pair->fates[n];
	for (unsigned int i = 0; i < pair->n_faults; i++) {
		struct pair_fault *fault = &pair->fault[i];

		if (fault->from == from->side && fault->attr == attr && fault->nth &&
		    --fault->nth == 0)
			fate = fault->fate;
	}
	return from->dead || pair->host[!from->side].dead ? PAIR_DROP : fate;
}

static void carry(struct pair *pair, struct pair_host *to, const uint8_t *mad, uint64_t delay_ms)
{
	int i = 0;

	while (pair->packet[i].to)
		ck_assert_int_lt(++i, PAIR_PACKETS_MAX);
	pair->packet[i].to = to;
	pair->packet[i].due = cm_time_after(pair->now, delay_ms * CM_NS_PER_MS);
	pair->packet[i].number = pair->n_packets++;
	memcpy(pair->packet[i].mad, mad, MAD_BYTES);
}

static void draw(struct pair_host *from, const struct cm_msg *msg, enum pair_fate fate)
{
	static const char *const mark[] = { "", "*", "+", "~" };
	char name[32], arrow[40];

	text_of_msg(msg, name, sizeof(name));
	if (from->side == PAIR_CLIENT)
		snprintf(arrow, sizeof(arrow), "%s%s>", name, mark[fate]);
	else
		snprintf(arrow, sizeof(arrow), "<%s%s", name, mark[fate]);
	append(from->pair->chart, sizeof(from->pair->chart), " ", arrow);
}

static void transmit(struct pair_host *from, const uint8_t *mad)
{
	struct pair *pair = from->pair;
	struct pair_host *to = &pair->host[!from->side];
	enum pair_fate fate;
	struct cm_msg msg;

	ck_assert_int_eq(cm_msg_decode(mad, MAD_BYTES, &msg), 0);
	fate = fate_of(from, msg.hdr.attr_id);
	draw(from, &msg, fate);
	if (fate == PAIR_DELIVER || fate == PAIR_DUPLICATE)
		carry(pair, to, mad, PAIR_LATENCY_MS);
	if (fate == PAIR_DUPLICATE)
		carry(pair, to, mad, PAIR_LATENCY_MS);
	if (fate == PAIR_DELAY)
		carry(pair, to, mad, PAIR_DELAY_MS);
}

/* --- the callers --------------------------------------------------------- */

static struct pair_end *new_end(struct pair_host *host, struct cm_conn *conn)
{
	struct pair_end *end = &host->end[host->n_ends];

	ck_assert_uint_lt(host->n_ends++, PAIR_ENDS_MAX);
	end->host = host;
	end->conn = conn;
	return end;
}

static void leave(struct pair_end *end)
{
	switch (end->host->haste) {
	case PAIR_STAYS:
	case PAIR_N_HASTES:
		break;
	case PAIR_DISCONNECTS:
		ck_assert_int_eq(pair_call(end, CM_CALL_DREQ), 0);
		break;
	case PAIR_DESTROYS:
		ck_assert_int_eq(pair_call(end, CM_CALL_DESTROY), 0);
		break;
	}
}

static void behave(struct pair_end *end, enum cm_report_kind kind)
{
	struct pair_host *host = end->host;

	if (host->manual)
		return;
	if (kind == CM_REPORT_REQUEST)
		pair_call(end,
			  end->conn->state == CM_SIDR_REQ_RCVD ? CM_CALL_SIDR_REP : CM_CALL_REP);
	if (kind == CM_REPORT_RESPONSE)
		pair_call(end, CM_CALL_RTU);
	if (kind == CM_REPORT_RESPONSE || kind == CM_REPORT_ESTABLISHED)
		leave(end);
	if (kind == CM_REPORT_DISCONNECTED)
		pair_call(end, CM_CALL_DREP); /* EINVAL if this side disconnected */
}

static void hand_over(struct pair_host *host, const struct cm_report *report)
{
	char text[32];

	if (report->kind == CM_REPORT_REQUEST)
		report->conn->owner = new_end(host, report->conn);
	ck_assert_ptr_nonnull(report->conn->owner);
	append(((struct pair_end *)report->conn->owner)->log, sizeof(host->end[0].log), ", ",
	       text_of_report(report, text, sizeof(text)));
	behave(report->conn->owner, report->kind);
}

static void carry_out(struct pair_host *host, const struct cm_effects *out)
{
	for (unsigned int i = 0; i < out->n_sends; i++)
		transmit(host, out->send[i].mad);
	for (unsigned int i = 0; i < out->n_reports; i++)
		hand_over(host, &out->report[i]);
}

static struct cm_msg offer(const struct pair_end *end, enum cm_attr attr)
{
	struct pair_host *host = end->host;
	uint32_t qpn = first_qpn[host->side] + (uint32_t)(end - host->end);
	struct cm_msg msg;

	cm_msg_init(&msg, attr, 0);
	if (attr == CM_ATTR_REP)
		msg.rep.local_qpn = qpn;
	if (attr == CM_ATTR_SIDR_REP)
		msg.sidr_rep.qpn = qpn;
	if (attr == CM_ATTR_SIDR_REQ)
		msg.sidr_req.service_id = PAIR_SERVICE;
	if (attr != CM_ATTR_REQ)
		return msg;
	msg.req.local_qpn = qpn;
	msg.req.service_id = PAIR_SERVICE;
	msg.req.local_cm_response_timeout = 20;
	msg.req.remote_cm_response_timeout = 20;
	msg.req.max_cm_retries = 15;
	msg.req.primary.local_ack_timeout = 19;
	return msg;
}

int pair_call(struct pair_end *end, enum cm_event verb)
{
	static const enum cm_attr attrs[CM_N_EVENTS] = {
		[CM_CALL_REQ] = CM_ATTR_REQ,
		[CM_CALL_REP] = CM_ATTR_REP,
		[CM_CALL_SIDR_REQ] = CM_ATTR_SIDR_REQ,
		[CM_CALL_SIDR_REP] = CM_ATTR_SIDR_REP,
	};
	struct pair_host *host = end->host;
	bool has_msg = attrs[verb] != 0;
	struct cm_msg msg = offer(end, has_msg ? attrs[verb] : CM_ATTR_REP);
	struct cm_args args = { .port = &host->port,
				.path = &host->path,
				.packet_life_time = 18,
				.msg = has_msg ? &msg : NULL };
	struct cm_effects out;
	int err;

	err = cm_core_call(&host->core, end->conn, verb, &args, host->pair->now, &out);
	if (err)
		return err;
	if (verb == CM_CALL_DESTROY || verb == CM_CALL_FORGET)
		end->conn = NULL;
	carry_out(host, &out);
	return 0;
}

static struct pair_end *ask(struct pair *pair, enum cm_event verb)
{
	struct pair_host *client = &pair->host[PAIR_CLIENT];
	struct pair_end *end = new_end(client, NULL);

	end->conn = cm_core_conn_new(&client->core, end);
	ck_assert_ptr_nonnull(end->conn);
	ck_assert_int_eq(pair_call(end, verb), 0);
	return end;
}

struct pair_end *pair_connect(struct pair *pair)
{
	return ask(pair, CM_CALL_REQ);
}

struct pair_end *pair_look_up(struct pair *pair)
{
	return ask(pair, CM_CALL_SIDR_REQ);
}

/* --- time ---------------------------------------------------------------- */

static struct pair_packet *next_packet(struct pair *pair)
{
	struct pair_packet *next = NULL;

	for (int i = 0; i < PAIR_PACKETS_MAX; i++) {
		struct pair_packet *packet = &pair->packet[i];

		if (!packet->to)
			continue;
		if (!next || packet->due.ns < next->due.ns ||
		    (packet->due.ns == next->due.ns && packet->number < next->number))
			next = packet;
	}
	return next;
}

static void deliver(struct pair *pair, struct pair_packet *packet)
{
	struct pair_host *to = packet->to;
	struct cm_effects out;

	pair->now = packet->due;
	packet->to = NULL;
	if (to->dead)
		return;
	ck_assert_int_eq(cm_core_reserve(&to->core), 0);
	cm_core_input(&to->core, &to->port, &to->path, packet->mad, MAD_BYTES, pair->now, &out);
	carry_out(to, &out);
}

static bool expire(struct pair *pair)
{
	struct cm_time deadline[] = { cm_core_deadline(&pair->host[0].core),
				      cm_core_deadline(&pair->host[1].core) };
	struct pair_host *host = &pair->host[deadline[1].ns < deadline[0].ns];
	struct cm_effects out;

	if (deadline[host->side].ns == UINT64_MAX)
		return false;
	pair->now = deadline[host->side];
	ck_assert(cm_core_expire(&host->core, pair->now, &out));
	carry_out(host, &out);
	return true;
}

/* Return: false if nothing is left to do. */
static bool turn(struct pair *pair)
{
	struct cm_time timer = cm_time_earlier(cm_core_deadline(&pair->host[0].core),
					       cm_core_deadline(&pair->host[1].core));
	struct pair_packet *packet = next_packet(pair);

	if (!packet || timer.ns < packet->due.ns)
		return expire(pair);
	deliver(pair, packet);
	return true;
}

void pair_run(struct pair *pair)
{
	unsigned int n = 0;

	while (turn(pair))
		ck_assert_msg(n++ < STEPS_MAX, "no end: %s", pair->chart);
}

void pair_deliver(struct pair *pair)
{
	struct pair_packet *packet;

	while ((packet = next_packet(pair)))
		deliver(pair, packet);
}

static bool is_in(const struct pair_host *host, enum cm_state state)
{
	for (unsigned int i = 0; i < host->n_ends; i++)
		if (host->end[i].conn && host->end[i].conn->state == state)
			return true;
	return false;
}

void pair_run_until(struct pair *pair, enum pair_side side, enum cm_state state)
{
	while (!is_in(&pair->host[side], state))
		ck_assert_msg(turn(pair), "%s never comes: %s", cm_state_str(state), pair->chart);
}

void pair_run_until_sent(struct pair *pair, unsigned int n)
{
	while (pair->n_transmissions < n)
		ck_assert_msg(turn(pair), "there is no more to be said: %s", pair->chart);
}

/* --- the end ------------------------------------------------------------- */

static void assert_empty(const struct pair_host *host)
{
	ck_assert_uint_eq(host->core.n_conns, 0);
	ck_assert_uint_eq(host->core.by_local.table.n_nodes, 0);
	ck_assert_uint_eq(host->core.by_remote.table.n_nodes, 0);
	ck_assert_uint_eq(host->core.by_qpn.table.n_nodes, 0);
	ck_assert_uint_eq(host->port.requests.out, 0);
	ck_assert(list_is_empty(&host->port.requests.lane[0].waiting));
	ck_assert_uint_eq(host->port.to_unresponsive.out, 0);
	ck_assert(list_is_empty(&host->port.to_unresponsive.lane[0].waiting));
	ck_assert_uint_eq(cm_core_deadline(&host->core).ns, UINT64_MAX);
}

void pair_fini(struct pair *pair)
{
	for (int side = 0; side < 2; side++) {
		struct pair_host *host = &pair->host[side];

		host->manual = true;
		cm_core_unserve(&host->core, &host->service);
		for (unsigned int i = 0; i < host->n_ends; i++)
			if (host->end[i].conn)
				ck_assert_int_eq(pair_call(&host->end[i], CM_CALL_DESTROY), 0);
	}
	pair_run(pair);
	for (int side = 0; side < 2; side++) {
		assert_empty(&pair->host[side]);
		cm_core_fini(&pair->host[side].core);
	}
}

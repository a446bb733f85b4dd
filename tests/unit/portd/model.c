/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A model of a client, its peer and the tracked connections between them: see model.h.
 */
#include "tests/unit/portd/model.h"
#include "tests/unit/portd/tracked_put.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SERVICE	    UINT64_C(0x01061b58)
#define SETTLES_MAX 20000
#define N_QPNS	    6 /* few, so that a live one is sometimes reused */
#define ID_BLOCK_AT UINT32_C(0x00120000)

struct model model;

static struct cm_effects out; /* of the latest step */

static const struct mad_gid gids[] = { { { [10] = 0xff, 0xff, 10, 0, 0, 1 } },
				       { { [10] = 0xff, 0xff, 10, 0, 0, 2 } } };

static void carry_out(enum who who);

static bool chance(int percent)
{
	return random() % 100 < percent;
}

static void push(struct queue *queue, const struct packet *packet)
{
	ck_assert_uint_lt(queue->n, MODEL_PACKETS);
	queue->packet[queue->n++] = *packet;
}

static struct packet pop(struct queue *queue)
{
	struct packet first = queue->packet[0];

	ck_assert_uint_gt(queue->n, 0);
	memmove(&queue->packet[0], &queue->packet[1], --queue->n * sizeof(first));
	return first;
}

/* --- the wire ------------------------------------------------------------ */

static struct packet *random_packet(void)
{
	struct packet *packet = &model.wire[random() % MODEL_PACKETS];

	for (int i = 0; i < MODEL_PACKETS;
	     i++, packet = packet == &model.wire[MODEL_PACKETS - 1] ? model.wire : packet + 1)
		if (packet->kind == MAD)
			return packet;
	return NULL;
}

/* A packet without room is lost. */
static void put_on_wire(enum who to, const uint8_t *mad)
{
	for (int i = 0; i < MODEL_PACKETS; i++) {
		if (model.wire[i].kind != NONE)
			continue;
		model.wire[i].kind = MAD;
		model.wire[i].to = to;
		memcpy(model.wire[i].mad, mad, MAD_BYTES);
		return;
	}
}

/* A GID belongs to one CA only, and 0 is no comm id. */
static void make_credible(struct cm_msg *msg)
{
	if (msg->hdr.attr_id == CM_ATTR_REQ)
		msg->req.local_ca_guid = MODEL_PEER_GUID;
	if (msg->hdr.attr_id == CM_ATTR_REP)
		msg->rep.local_ca_guid = MODEL_PEER_GUID;
	if (msg->rtu.local_comm_id == 0)
		msg->rtu.local_comm_id = 1;
}

/* Changes mostly the ids; sometimes one message becomes another. */
static void garble(uint8_t *mad)
{
	int at = MAD_HDR_BYTES + (int)(random() % (chance(70) ? 12 : 48));
	struct cm_msg msg;

	ck_assert_int_eq(cm_msg_decode(mad, MAD_BYTES, &msg), 0);
	if (chance(20))
		msg.hdr.attr_id = (uint16_t)(CM_ATTR_REQ + random() % 11);
	cm_msg_encode(&msg, mad);
	mad[at] ^= (uint8_t)(1 << random() % 8);
	ck_assert_int_eq(cm_msg_decode(mad, MAD_BYTES, &msg), 0);
	make_credible(&msg);
	cm_msg_encode(&msg, mad);
}

/* --- messages through cmportd -------------------------------------------- */

static void record_send(const struct packet *packet)
{
	struct cm_msg msg;
	int err;

	ck_assert_int_eq(cm_msg_decode(packet->mad, MAD_BYTES, &msg), 0);
	err = tracked_put_sent(model.tracker, MODEL_CLIENT, MODEL_HANDLE, &model.side[OURS].path,
			       &msg, true);
	if (err == 0) {
		put_on_wire(PEER, packet->mad);
		return;
	}
	ck_assert_int_eq(err, -EPERM);
	if (model.refused)
		model.refused(&msg);
}

static void record_tracked(const struct cm_record *tracked)
{
	ck_assert_int_eq(tracker_set(model.tracker, MODEL_CLIENT, tracked, false), 0);
}

static void record_received(const struct packet *packet)
{
	switch (packet->kind) {
	case NONE:
		break;
	case MAD:
		record_send(packet);
		break;
	case CLOSE:
		tracker_close(model.tracker, MODEL_CLIENT, &packet->close);
		break;
	case TRACK:
		record_tracked(&packet->tracked);
		break;
	}
}

static void report_to_portd(const struct packet *packet)
{
	if (model.crosses)
		push(&model.to_portd, packet);
	else
		record_received(packet);
}

static void receive_mad(enum who who, const uint8_t *mad)
{
	ck_assert_int_eq(cm_core_reserve(&model.side[who].core), 0);
	model.n_heard += who == OURS;
	cm_core_input(&model.side[who].core, &model.side[who].port, &model.side[who].path, mad,
		      MAD_BYTES, model.now, &out);
	carry_out(who);
}

static void portd_receives(const struct packet *packet)
{
	struct cm_msg msg;

	if (cm_msg_decode(packet->mad, MAD_BYTES, &msg))
		return;
	ck_assert_int_eq(tracker_received(model.tracker, MODEL_CLIENT, MODEL_HANDLE,
					  &model.side[OURS].path, &msg, &(bool){ false }),
			 0);
	tracker_handed(model.tracker, MODEL_CLIENT);
	if (model.crosses)
		push(&model.to_client, packet);
	else
		receive_mad(OURS, packet->mad);
}

static void note_release(struct cm_core *core, const struct cm_conn *conn)
{
	struct packet packet = { .kind = CLOSE,
				 .close = { .local_comm_id = conn->local_comm_id,
					    .remote_comm_id = conn->remote_comm_id,
					    .remote_ca_guid = conn->remote_ca_guid,
					    .peer_gid = mad_path_peer(&conn->path),
					    .n_heard = model.n_heard } };

	(void)core;
	push(&model.closes, &packet);
}

static struct cm_record record_of(const struct cm_conn *conn)
{
	struct cm_record record = cm_conn_record(conn);

	record.handle = MODEL_HANDLE;
	return record;
}

/* A connection is not reported before its REQ. */
static bool is_waiting(enum cm_attr attr, uint32_t local_comm_id)
{
	struct cm_msg msg;

	for (unsigned int i = 0; i < model.to_portd.n; i++) {
		if (model.to_portd.packet[i].kind != MAD)
			continue;
		cm_msg_decode(model.to_portd.packet[i].mad, MAD_BYTES, &msg);
		if (msg.hdr.attr_id == attr && msg.rtu.local_comm_id == local_comm_id)
			return true;
	}
	return false;
}

/* Data has established it, which no message shows. */
static void report_tracked(const struct cm_conn *conn)
{
	struct packet packet = { .kind = TRACK, .tracked = record_of(conn) };

	if (model.crosses && chance(50) && !is_waiting(CM_ATTR_REQ, conn->local_comm_id))
		record_received(&packet); /* it takes another way than messages */
	else
		report_to_portd(&packet);
}

/* --- the two ends -------------------------------------------------------- */

static struct cm_conn **slot_of(enum who who, const struct cm_conn *conn)
{
	for (int i = 0; i < MODEL_CONNS; i++)
		if (model.side[who].conn[i] == conn)
			return &model.side[who].conn[i];
	return NULL;
}

static bool is_of_lookup(enum cm_event verb)
{
	return verb == CM_CALL_SIDR_REQ || verb == CM_CALL_SIDR_REP;
}

static struct cm_msg lookup_offer(enum cm_event verb, uint32_t qpn)
{
	struct cm_msg msg;

	cm_msg_init(&msg, verb == CM_CALL_SIDR_REQ ? CM_ATTR_SIDR_REQ : CM_ATTR_SIDR_REP, 0);
	if (verb == CM_CALL_SIDR_REQ) {
		msg.sidr_req.service_id = SERVICE + chance(5);
		return msg;
	}
	msg.sidr_rep.qpn = qpn;
	msg.sidr_rep.status = chance(20) ? CM_SIDR_REJECT : CM_SIDR_OK;
	return msg;
}

static struct cm_msg offer(enum cm_event verb)
{
	uint32_t qpn = 0x100 + (uint32_t)(random() % N_QPNS);
	struct cm_msg msg;

	if (is_of_lookup(verb))
		return lookup_offer(verb, qpn);
	cm_msg_init(&msg, verb == CM_CALL_REQ ? CM_ATTR_REQ : CM_ATTR_REP, 0);
	if (verb != CM_CALL_REQ) {
		msg.rep.local_qpn = qpn;
		return msg;
	}
	msg.req.local_qpn = qpn;
	msg.req.starting_psn = (uint32_t)random() & 0xffffff;
	msg.req.service_id = SERVICE + chance(5);
	msg.req.primary.local_ack_timeout = 19;
	return msg;
}

/* Return: 0, or -EINVAL. */
static int call(enum who who, struct cm_conn **slot, enum cm_event verb)
{
	struct cm_conn *conn = *slot;
	struct cm_msg msg = offer(verb);
	struct cm_args args = { .port = &model.side[who].port,
				.path = &model.side[who].path,
				.packet_life_time = 18,
				.give_up_ns = chance(50) ? 1500 * CM_NS_PER_MS : 0 };
	bool is_end = verb == CM_CALL_DESTROY || verb == CM_CALL_FORGET;

	if (verb == CM_CALL_REQ || verb == CM_CALL_REP || is_of_lookup(verb))
		args.msg = &msg;
	if (cm_core_call(&model.side[who].core, conn, verb, &args, model.now, &out))
		return -EINVAL;
	if (is_end)
		*slot = NULL;
	carry_out(who);
	return 0;
}

static void take_request(enum who who, struct cm_conn *conn)
{
	struct cm_conn **slot = slot_of(who, NULL);

	if (!slot || chance(10)) {
		call(who, &conn,
		     conn->state == CM_SIDR_REQ_RCVD ? CM_CALL_DESTROY : CM_CALL_FORGET);
		return;
	}
	*slot = conn;
	conn->owner = slot;
	if (chance(50))
		call(who, slot, CM_CALL_MRA); /* EINVAL for a lookup */
}

static void take_report(enum who who, const struct cm_report *report)
{
	struct cm_conn **slot;

	if (report->kind == CM_REPORT_REQUEST) {
		take_request(who, report->conn);
		return;
	}
	slot = report->conn->owner;
	if (who == OURS && report->status == -ETIMEDOUT)
		model.has_given_up[report->conn->local_comm_id % CM_ID_BLOCK] = true;
	if (report->kind == CM_REPORT_TIMEWAIT_EXIT)
		call(who, slot, CM_CALL_DESTROY);
}

static void carry_out(enum who who)
{
	struct cm_effects done = out;
	struct packet packet = { .kind = MAD };

	for (unsigned int i = 0; i < done.n_sends; i++) {
		memcpy(packet.mad, done.send[i].mad, MAD_BYTES);
		if (who == OURS)
			report_to_portd(&packet);
		else
			put_on_wire(OURS, packet.mad);
	}
	while (model.closes.n) {
		packet = pop(&model.closes);
		report_to_portd(&packet);
	}
	for (unsigned int i = 0; i < done.n_reports; i++)
		take_report(who, &done.report[i]);
}

static enum cm_event usual_call(enum cm_state state)
{
	static const enum cm_event verb[CM_N_STATES] = {
		[CM_IDLE] = CM_CALL_DESTROY,	       [CM_REQ_SENT] = CM_CALL_MRA,
		[CM_MRA_REQ_RCVD] = CM_CALL_MRA,       [CM_REP_RCVD] = CM_CALL_RTU,
		[CM_MRA_REP_SENT] = CM_CALL_RTU,       [CM_REQ_RCVD] = CM_CALL_REP,
		[CM_MRA_REQ_SENT] = CM_CALL_REP,       [CM_REP_SENT] = CM_CALL_MRA,
		[CM_MRA_REP_RCVD] = CM_CALL_MRA,       [CM_ESTABLISHED] = CM_CALL_DREQ,
		[CM_DREQ_SENT] = CM_CALL_MRA,	       [CM_DREQ_RCVD] = CM_CALL_DREP,
		[CM_TIMEWAIT] = CM_CALL_DESTROY,       [CM_SIDR_REQ_SENT] = CM_CALL_MRA,
		[CM_SIDR_REQ_RCVD] = CM_CALL_SIDR_REP, [CM_SIDR_REP_SENT] = CM_CALL_DESTROY,
	};

	return verb[state];
}

static void act(enum who who)
{
	struct cm_conn **slot = &model.side[who].conn[random() % MODEL_CONNS];
	enum cm_event verb = (enum cm_event)(random() % (CM_CALL_FORGET + 1));

	if (!*slot) {
		*slot = cm_core_conn_new(&model.side[who].core, slot);
		ck_assert_ptr_nonnull(*slot);
		verb = chance(80) ? CM_CALL_REQ : CM_CALL_SIDR_REQ;
	} else if (chance(70)) {
		verb = usual_call((*slot)->state);
	}
	if (call(who, slot, verb))
		return;
	if (who == OURS && *slot && verb == CM_CALL_ESTABLISH)
		report_tracked(*slot);
}

static void begin(enum who who)
{
	struct side *it = &model.side[who];

	memset(it, 0, sizeof(*it));
	ck_assert_int_eq(cm_core_init(&it->core, (uint64_t)random() << 32 | (uint64_t)random()), 0);
	cm_port_init(&it->port, who == OURS ? MODEL_OUR_GUID : MODEL_PEER_GUID, &gids[who]);
	ck_assert_int_eq(cm_core_serve(&it->core, &it->service, SERVICE), 0);
	it->path = (struct mad_path){ .grh = true, .dgid = gids[!who] };
	if (who == OURS) {
		it->core.released = note_release;
		ck_assert_int_eq(cm_core_lend_ids(&it->core, ID_BLOCK_AT, CM_ID_BLOCK), 0);
	}
}

static void restart_peer(void)
{
	cm_core_fini(&model.side[PEER].core);
	begin(PEER);
}

/* Return: false if no timer runs. */
static bool pass_time(void)
{
	enum who who = cm_core_deadline(&model.side[PEER].core).ns <
		       cm_core_deadline(&model.side[OURS].core).ns;
	struct cm_time deadline = cm_core_deadline(&model.side[who].core);

	if (deadline.ns == UINT64_MAX)
		return false;
	if (deadline.ns > model.now.ns)
		model.now = deadline;
	if (cm_core_expire(&model.side[who].core, model.now, &out))
		carry_out(who);
	return true;
}

static void arrive(bool is_bad_wire)
{
	struct packet *packet = random_packet(), copy;

	if (!packet)
		return;
	copy = *packet;
	if (!is_bad_wire || !chance(10))
		packet->kind = NONE;
	if (is_bad_wire && chance(10))
		return;
	if (is_bad_wire && chance(5))
		garble(copy.mad);
	if (copy.to == OURS)
		portd_receives(&copy);
	else
		receive_mad(PEER, copy.mad);
}

/* --- the model ----------------------------------------------------------- */

static void drain(void)
{
	struct packet packet;

	while (model.to_client.n || model.to_portd.n) {
		while (model.to_portd.n) {
			packet = pop(&model.to_portd);
			record_received(&packet);
		}
		if (model.to_client.n) {
			packet = pop(&model.to_client);
			receive_mad(OURS, packet.mad);
		}
	}
}

static void move_queues(void)
{
	struct packet packet;

	if (model.to_portd.n && chance(40)) {
		packet = pop(&model.to_portd);
		record_received(&packet);
	}
	if (model.to_client.n && chance(40)) {
		packet = pop(&model.to_client);
		receive_mad(OURS, packet.mad);
	}
	if (model.to_portd.n > MODEL_PACKETS / 2 || model.to_client.n > MODEL_PACKETS / 2 ||
	    chance(10))
		drain();
}

void model_step(void)
{
	int what = (int)(random() % 100);

	if (what < 55)
		arrive(true);
	else if (what < 85)
		act(chance(50) ? OURS : PEER);
	else if (what < 98)
		pass_time();
	else if (chance(20))
		restart_peer();
	if (model.crosses)
		move_queues();
}

void model_begin(unsigned int seed, bool crosses)
{
	model = (struct model){ .seed = seed, .crosses = crosses, .now.ns = 1000000000 };
	srandom(seed);
	begin(OURS);
	begin(PEER);
	model.tracker = tracker_new(seed);
	ck_assert_ptr_nonnull(model.tracker);
}

void model_end(void)
{
	tracker_free(model.tracker);
	cm_core_fini(&model.side[OURS].core);
	cm_core_fini(&model.side[PEER].core);
}

static void accept_all(enum who who)
{
	for (int i = 0; i < MODEL_CONNS; i++) {
		struct cm_conn **slot = &model.side[who].conn[i];

		if (*slot && call(who, slot, CM_CALL_REP) != 0 &&
		    call(who, slot, CM_CALL_SIDR_REP) != 0)
			call(who, slot, CM_CALL_RTU);
	}
}

void model_settle(void)
{
	drain();
	for (int i = 0; i < SETTLES_MAX; i++) {
		accept_all(OURS);
		accept_all(PEER);
		if (random_packet())
			arrive(false);
		else if (!pass_time())
			return;
		drain();
	}
	ck_abort_msg("walk %u: no end", model.seed);
}

struct cm_conn *model_conn(enum who who, uint32_t local_comm_id)
{
	struct cm_key key = { .id = local_comm_id };
	struct cm_node *node = cm_index_find(&model.side[who].core.by_local, &key);

	return node ? container_of(node, struct cm_conn, by_local) : NULL;
}

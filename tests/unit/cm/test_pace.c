/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits of outstanding requests and DREQs: struct cm_pace. */
#include <string.h>

#include "tests/unit/cm/inputs.h"
#include "tests/unit/test.h"

#define OUT_MAX 128

static struct rig rig;

static void set_up(void)
{
	rig_init(&rig);
}

static void tear_down(void)
{
	rig_fini(&rig);
}

/*
 * Sends as many REQs as a port may have outstanding, and one more, which waits. Return: the first.
 */
static struct cm_conn *fill_port(void)
{
	struct cm_conn *first = NULL;

	for (unsigned int i = 0; i < OUT_MAX; i++) {
		rig_reach(&rig, CM_REQ_SENT, false);
		ck_assert_str_eq(rig_sent(&rig), "REQ");
		first = first ? first : rig.conn;
	}
	rig_reach(&rig, CM_REQ_SENT, false);
	ck_assert_str_eq(rig_sent(&rig), "");
	return first;
}

static void take(struct cm_conn *conn)
{
	rig.conn = conn;
	rig.comm_id = conn->local_comm_id;
}

static const struct {
	const char *input;
	const char *sent;
} releases[] = {
	{ "REP", "REQ" },
	{ "REJ", "REQ" },
	{ "MRA(REQ)", "REQ" },
	{ "timer", "REQ, REQ" },
	{ "local destroy", "REJ(other) 4, REQ" },
};

FIXTURE(set_up, tear_down);

TEST_LOOP(req_waits_until_a_slot_is_freed, 0, sizeof(releases) / sizeof(releases[0]))
{
	take(fill_port());
	do /* a timer may find that it is too early */
		rig_input(&rig, releases[_i].input);
	while (rig.out.n_sends == 0);
	ck_assert_str_eq(rig_sent(&rig), releases[_i].sent);
	ck_assert_uint_eq(rig.port.requests.out, OUT_MAX);
	ck_assert(list_is_empty(&rig.port.requests.lane[0].waiting));
}

TEST(waiting_reqs_are_sent_in_order)
{
	struct cm_conn *first = fill_port();
	uint32_t waiting = rig.comm_id;

	rig_reach(&rig, CM_REQ_SENT, false);
	take(first);
	rig_input(&rig, "REJ");
	ck_assert_uint_eq(rig_sent_msg(&rig, 0).req.local_comm_id, waiting);
}

TEST(destroyed_connection_leaves_the_queue)
{
	struct cm_conn *first = fill_port();

	rig_call(&rig, CM_CALL_DESTROY);
	ck_assert(list_is_empty(&rig.port.requests.lane[0].waiting));
	ck_assert_uint_eq(rig.port.requests.out, OUT_MAX);
	take(first);
	rig_input(&rig, "REJ");
	ck_assert_str_eq(rig_sent(&rig), "");
}

TEST(waiting_req_has_its_full_time_once_it_is_sent)
{
	struct cm_conn *first = fill_port();
	struct cm_conn *waiting = rig.conn;

	rig.now = cm_time_after(rig.now, 500 * CM_NS_PER_MS);
	take(first);
	rig_input(&rig, "REJ");
	take(waiting);
	ck_assert_uint_eq(waiting->timer.deadline.ns, rig.now.ns + 1000 * CM_NS_PER_MS);
}

/* Return: the first of so many connections that one more DREQ must wait. */
static struct cm_conn *disconnect_all(void)
{
	struct cm_conn *first = NULL;

	for (int i = 0; i < OUT_MAX + 1; i++) {
		rig.peer_comm_id++;
		rig.peer_qpn++;
		rig_reach(&rig, CM_ESTABLISHED, true);
		first = first ? first : rig.conn;
		rig_call(&rig, CM_CALL_DREQ);
	}
	return first;
}

TEST(dreq_waits_until_another_has_been_answered)
{
	struct cm_conn *first = disconnect_all();
	struct cm_conn *waiting = rig.conn;

	ck_assert_uint_eq(rig.core.sent[CM_ATTR_DREQ], OUT_MAX);
	take(first);
	rig.peer_comm_id = first->remote_comm_id;
	rig_input(&rig, "DREP");
	ck_assert_str_eq(rig_sent(&rig), "DREQ");
	ck_assert_uint_eq(rig_sent_msg(&rig, 0).dreq.local_comm_id, waiting->local_comm_id);
	ck_assert_uint_eq(rig.port.disconnects.out, OUT_MAX);
}

/* Of two users of a host, when their programs end. */
TEST(lanes_take_turns)
{
	struct cm_conn *conn[2 * OUT_MAX + 1], *other;
	unsigned int i;

	for (i = 0; i < 2 * OUT_MAX + 1; i++) {
		rig.peer_comm_id++;
		rig.peer_qpn++;
		rig_reach(&rig, CM_ESTABLISHED, true);
		conn[i] = rig.conn;
		conn[i]->lane = i == 2 * OUT_MAX;
		rig_call(&rig, CM_CALL_DREQ);
	}
	other = rig.conn;
	for (i = 0; i < 2; i++) {
		take(conn[i]);
		rig.peer_comm_id = conn[i]->remote_comm_id;
		rig_input(&rig, "DREP");
	}
	ck_assert_int_eq(other->retry.transmissions, 1);
}

TEST(peers_dreq_replaces_a_waiting_one)
{
	disconnect_all();
	rig_input(&rig, "DREQ");
	rig_call(&rig, CM_CALL_DREP);
	ck_assert_str_eq(rig_sent(&rig), "DREP");
	ck_assert(list_is_empty(&rig.port.disconnects.lane[0].waiting));
}

TEST(dreqs_do_not_wait_for_requests)
{
	fill_port();
	rig_reach(&rig, CM_ESTABLISHED, true);
	rig_call(&rig, CM_CALL_DREQ);
	ck_assert_str_eq(rig_sent(&rig), "DREQ");
}

TEST(rep_and_drep_never_wait)
{
	fill_port();
	rig_reach(&rig, CM_REQ_RCVD, true);
	rig_input(&rig, "local REP");
	ck_assert_str_eq(rig_sent(&rig), "REP");
	rig_input(&rig, "RTU");
	rig_input(&rig, "DREQ");
	rig_input(&rig, "local DREP");
	ck_assert_str_eq(rig_sent(&rig), "DREP");
}

TEST(every_waiting_req_is_sent_without_answers)
{
	for (int i = 0; i < 1000; i++)
		rig_reach(&rig, CM_REQ_SENT, false);
	while (!list_is_empty(&rig.port.requests.lane[0].waiting) ||
	       !list_is_empty(&rig.port.to_unresponsive.lane[0].waiting))
		ck_assert(rig_timer(&rig));
	ck_assert_uint_eq(rig.core.sent[CM_ATTR_REQ], 1000);
	ck_assert_uint_lt(rig.now.ns, 11000 * CM_NS_PER_MS);
}

TEST(many_freed_slots_are_used_step_by_step)
{
	struct cm_conn *first = fill_port();

	for (int i = 0; i < 9; i++)
		rig_reach(&rig, CM_REQ_SENT, false);
	rig.core.out_max *= 2;
	take(first);
	rig_input(&rig, "REJ");
	ck_assert_str_eq(rig_sent(&rig), "REQ, REQ, REQ, REQ");
	ck_assert(!list_is_empty(&rig.port.requests.lane[0].waiting));
}

/* A caller ends many at once, whose effects share one outbox. */
TEST(dropped_requests_and_idle_connections_send_nothing)
{
	struct cm_conn *request, *idle;

	rig_reach(&rig, CM_REQ_RCVD, true);
	idle = rig.conn;
	rig_call(&rig, CM_CALL_REJ);
	ck_assert_int_eq(rig_state(&rig), CM_IDLE);
	rig_reach(&rig, CM_REQ_RCVD, true);
	request = rig.conn;
	rig.core.out_max = 0;
	rig_reach(&rig, CM_REQ_SENT, false);
	rig.core.out_max = OUT_MAX;
	take(request);
	rig_call(&rig, CM_CALL_FORGET);
	ck_assert_str_eq(rig_sent(&rig), "");
	take(idle);
	rig_call(&rig, CM_CALL_DESTROY);
	ck_assert_str_eq(rig_sent(&rig), "");
	rig_reach(&rig, CM_REQ_SENT, false);
	ck_assert_str_eq(rig_sent(&rig), "REQ, REQ");
}

TEST(ports_have_separate_slots)
{
	struct mad_gid gid = { .raw = { 1 } };
	struct cm_port other, *full = &rig.port;
	struct cm_msg msg = rig_msg(&rig, CM_ATTR_REQ);
	struct cm_args args = { .port = &other, .path = &rig.path, .msg = &msg };

	fill_port();
	cm_port_init(&other, 1, &gid);
	rig_reach(&rig, CM_IDLE, false);
	cm_core_call(&rig.core, rig.conn, CM_CALL_REQ, &args, rig.now, &rig.out);
	ck_assert_str_eq(rig_sent(&rig), "REQ");
	ck_assert_uint_eq(full->requests.out, OUT_MAX);
}

static void count_gone(struct cm_conn *conn, void *n)
{
	(void)conn;
	++*(unsigned int *)n;
}

TEST(waiting_reqs_of_a_removed_port_are_dropped)
{
	unsigned int n = 0;

	fill_port();
	cm_core_port_gone(&rig.core, &rig.port, count_gone, &n);
	ck_assert_uint_eq(n, OUT_MAX + 1);
	ck_assert(list_is_empty(&rig.port.requests.lane[0].waiting));
}

/* --- peers that do not answer ------------------------------------------------ */

/* Many connections to as many dead peers end at once. */
static void end_unreachable_peers(int n_conns, int n_peers)
{
	for (int i = 0; i < n_conns; i++) {
		rig.path.dgid.raw[15] = (uint8_t)(i % n_peers);
		rig.peer_comm_id++;
		rig.peer_qpn++;
		rig_reach(&rig, CM_ESTABLISHED, false);
		rig_call(&rig, CM_CALL_DREQ);
	}
}

static unsigned int n_sent(void)
{
	return (unsigned int)rig.core.sent[CM_ATTR_DREQ];
}

TEST(dead_peers_delay_no_disconnect_of_others)
{
	end_unreachable_peers(20000, 64);
	while (list_is_empty(&rig.port.to_unresponsive.lane[0].waiting))
		ck_assert(rig_timer(&rig));
	while (!list_is_empty(&rig.port.disconnects.lane[0].waiting) || rig.port.disconnects.out)
		ck_assert(rig_timer(&rig));
	ck_assert_uint_lt(rig.now.ns, 5000 * CM_NS_PER_MS);
	ck_assert_uint_lt(n_sent(), 20000);
	rig.path.dgid.raw[15] = 99;
	rig.peer_comm_id++;
	rig.peer_qpn++;
	rig_reach(&rig, CM_ESTABLISHED, false);
	rig_call(&rig, CM_CALL_DREQ);
	ck_assert_str_eq(rig_sent(&rig), "DREQ");
}

TEST(all_dead_peers_are_given_up)
{
	end_unreachable_peers(1000, 16);
	while (rig_timer(&rig))
		;
	ck_assert_uint_eq(n_sent(), 1000);
	ck_assert_uint_eq(rig.port.to_unresponsive.out, 0);
	ck_assert_uint_eq(rig.port.disconnects.out, 0);
	ck_assert_uint_lt(rig.now.ns, 62000 * CM_NS_PER_MS);
}

/* --- peers that answer rarely -------------------------------------------------- */

#define OTHER_HOST 99

/* Return: a new connection whose message waits for an answer or for a slot. */
static struct cm_conn *begin_conn_to(enum cm_state state, uint8_t host)
{
	rig.path.dgid.raw[15] = host;
	rig.peer_comm_id++;
	rig.peer_qpn++;
	rig_reach(&rig, state == CM_DREQ_SENT ? CM_ESTABLISHED : state, false);
	if (state == CM_DREQ_SENT)
		rig_call(&rig, CM_CALL_DREQ);
	return rig.conn;
}

static void receive_after_900_ms(struct cm_conn *conn, const char *answer)
{
	const struct cm_time until = cm_time_after(rig.now, 900 * CM_NS_PER_MS);
	const uint32_t latest = rig.peer_comm_id;

	while (!cm_time_reached(until, cm_core_deadline(&rig.core)))
		ck_assert(rig_timer(&rig));
	rig.now = until;
	take(conn);
	rig.path = conn->path;
	rig.peer_comm_id = conn->remote_comm_id;
	rig_input(&rig, answer);
	rig.peer_comm_id = latest;
}

static const struct {
	enum cm_state state;
	const char *answer;
	uint64_t after_ms;
} slow_ones[] = {
	{ CM_DREQ_SENT, "DREP", 3000 },
	{ CM_REQ_SENT, "REJ", 8000 },
};

/* Answers the oldest message every 900 ms, so that the rest seems to be queued there. */
TEST_LOOP(rarely_answering_peer_delays_no_other, 0, 2)
{
	const struct cm_time begin = rig.now;
	struct cm_conn *slow[20 * OUT_MAX], *honest;
	unsigned int i;

	for (i = 0; i < 20 * OUT_MAX; i++)
		slow[i] = begin_conn_to(slow_ones[_i].state, 1);
	honest = begin_conn_to(slow_ones[_i].state, OTHER_HOST);
	for (i = 0; i < 40 && !honest->retry.transmissions; i++)
		receive_after_900_ms(slow[i], slow_ones[_i].answer);
	ck_assert_int_eq(honest->retry.transmissions, 1);
	ck_assert_uint_eq(honest->retry.first.ns - begin.ns, slow_ones[_i].after_ms * CM_NS_PER_MS);
}

TEST(recovered_peer_shares_slots_with_others)
{
	struct cm_conn *conn[3];
	int i;

	for (i = 0; i < 3; i++)
		conn[i] = begin_conn_to(CM_DREQ_SENT, 1);
	for (i = 0; i < 2; i++)
		receive_after_900_ms(conn[i], "DREP");
	while (rig.port.disconnects.out)
		ck_assert(rig_timer(&rig));
	ck_assert_int_eq(conn[2]->retry.transmissions, 1);
	begin_conn_to(CM_DREQ_SENT, 1);
	ck_assert_uint_eq(rig.port.to_unresponsive.out, 1);
	rig_input(&rig, "DREP");
	ck_assert(begin_conn_to(CM_DREQ_SENT, 1)->pace == &rig.port.disconnects);
}

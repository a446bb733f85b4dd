/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An unanswered REQ, whose peer may be busy with others.
 *
 * After an answer with a round trip of 900 ms, an unanswered REQ is retransmitted two round trips
 * later, at 2700 ms.
 */
#include "tests/unit/cm/inputs.h"
#include "tests/unit/test.h"

static struct rig rig;

static void set_up(void)
{
	rig_init(&rig);
}

static void tear_down(void)
{
	rig_fini(&rig);
}

FIXTURE(set_up, tear_down);

static struct cm_conn *ask(void)
{
	rig_reach(&rig, CM_REQ_SENT, false);
	return rig.conn;
}

static void take(struct cm_conn *conn)
{
	rig.conn = conn;
	rig.comm_id = conn->local_comm_id;
	if (conn->remote_comm_id)
		rig.peer_comm_id = conn->remote_comm_id;
}

static void receive_after_ms(struct cm_conn *conn, const char *input, unsigned int ms)
{
	rig.now = cm_time_after(rig.now, ms * CM_NS_PER_MS);
	take(conn);
	rig_input(&rig, input);
}

/* Return: when a timer sends the next message, in ms after @since. */
static uint64_t repeated_after_ms(struct cm_time since)
{
	do
		ck_assert(rig_timer(&rig));
	while (rig.out.n_sends == 0);
	return (rig.now.ns - since.ns) / CM_NS_PER_MS;
}

static struct cm_conn *reach(enum cm_state state)
{
	rig.peer_comm_id++;
	rig.peer_qpn++;
	rig_reach(&rig, state, state == CM_REP_SENT);
	return rig.conn;
}

static const struct {
	enum cm_state state;
	const char *answer;
	uint64_t again_ms;
} kinds[] = {
	{ CM_REQ_SENT, "REP", 2700 },		{ CM_REQ_SENT, "REJ", 2700 },
	{ CM_REQ_SENT, "MRA(REQ)", 1900 },	{ CM_REP_SENT, "RTU", 2700 },
	{ CM_REP_SENT, "MRA(REP)", 1900 },	{ CM_DREQ_SENT, "DREP", 2700 },
	{ CM_SIDR_REQ_SENT, "SIDR_REP", 2900 },
};

TEST_LOOP(nothing_is_retransmitted_while_its_receiver_answers_others, 0,
	  sizeof(kinds) / sizeof(kinds[0]))
{
	struct cm_time start = rig.now;
	struct cm_conn *first = reach(kinds[_i].state);
	struct cm_conn *second = reach(kinds[_i].state);
	uint64_t again_ms;

	receive_after_ms(first, kinds[_i].answer, 900);
	take(second);
	again_ms = repeated_after_ms(start);
	ck_assert_uint_eq(again_ms, kinds[_i].again_ms);
	ck_assert_uint_eq(rig.conn->n_repeated, 1);
}

/* A REQ that is sent after @later_ms is rejected 900 ms from now. */
static void receive_later_one(unsigned int later_ms)
{
	rig.now = cm_time_after(rig.now, later_ms * CM_NS_PER_MS);
	receive_after_ms(ask(), "REJ", 900 - later_ms);
}

static const struct {
	unsigned int later_ms;
	uint64_t again_ms;
} laters[] = {
	{ 99, 2502 },
	{ 100, 1000 },
};

TEST_LOOP(req_is_lost_when_one_that_was_sent_100_ms_later_is_answered, 0, 2)
{
	struct cm_time start = rig.now;
	struct cm_conn *lost = ask();
	uint64_t again_ms;

	receive_later_one(laters[_i].later_ms);
	take(lost);
	again_ms = repeated_after_ms(start);
	ck_assert_uint_eq(again_ms, laters[_i].again_ms);
}

TEST(lost_message_is_remembered_without_its_representative)
{
	struct cm_time start = rig.now;
	struct cm_conn *first = ask();
	struct cm_conn *lost = ask();

	receive_later_one(100);
	take(first);
	rig_call(&rig, CM_CALL_DESTROY);
	take(lost);
	ck_assert_uint_eq(repeated_after_ms(start), 1000);
}

TEST(req_is_retransmitted_in_time_when_another_peer_answers)
{
	struct cm_time start = rig.now;
	struct cm_conn *first, *second;

	first = ask();
	rig.path.dgid.raw[15] ^= 1;
	second = ask();
	rig.path.dgid.raw[15] ^= 1;
	receive_after_ms(first, "REJ", 900);
	take(second);
	ck_assert_uint_eq(repeated_after_ms(start), 1000);
}

TEST(answers_of_a_peer_are_remembered_without_their_representative)
{
	struct cm_time start = rig.now;
	struct cm_conn *first = ask();
	struct cm_conn *second = ask();
	struct cm_conn *third = ask();

	receive_after_ms(second, "REJ", 900);
	take(first);
	rig_call(&rig, CM_CALL_DESTROY);
	take(third);
	ck_assert_uint_eq(repeated_after_ms(start), 2700);
}

TEST(retransmitted_req_waits_for_later_answers_of_its_peer)
{
	struct cm_time start = rig.now;
	struct cm_conn *first = ask();
	struct cm_conn *second = ask();

	receive_after_ms(first, "REJ", 100);
	take(second);
	ck_assert_uint_eq(repeated_after_ms(start), 1100);
	ck_assert_uint_eq(repeated_after_ms(start), 2100);
}

TEST(peer_that_only_answers_others_is_given_up_in_time)
{
	struct cm_time start = rig.now;
	struct cm_conn *patient = ask();
	struct cm_conn *other;

	patient->retry.give_up = cm_time_after(start, 3000 * CM_NS_PER_MS);
	while (rig.now.ns < start.ns + 2800 * CM_NS_PER_MS) {
		other = ask();
		other->retry.first = start;
		receive_after_ms(other, "REJ", 500);
	}
	take(patient);
	while (rig_state(&rig) == CM_REQ_SENT)
		ck_assert(rig_timer(&rig));
	ck_assert_uint_eq(rig.now.ns, start.ns + 3000 * CM_NS_PER_MS);
	ck_assert_str_eq(rig_reported(&rig), "UNREACHABLE -110");
}

TEST(last_transmission_is_not_waited_for_longer_because_others_are_answered)
{
	struct cm_time start = rig.now;
	struct cm_conn *last = ask();

	last->retry.transmissions_max = 1;
	receive_after_ms(ask(), "REJ", 900);
	take(last);
	while (rig_state(&rig) == CM_REQ_SENT)
		ck_assert(rig_timer(&rig));
	ck_assert_uint_eq(rig.now.ns, start.ns + 1000 * CM_NS_PER_MS);
	ck_assert_str_eq(rig_reported(&rig), "UNREACHABLE -110");
}

TEST(peer_without_outstanding_messages_has_no_state)
{
	struct cm_conn *only = ask();

	ck_assert_uint_eq(rig.core.peers.table.n_nodes, 1);
	receive_after_ms(only, "REP", 100);
	ck_assert_uint_eq(rig.core.peers.table.n_nodes, 0);
}

/* --- many messages to one peer ------------------------------------------- */

static void ask_many(struct cm_conn *conn[], unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		conn[i] = ask();
}

static const struct {
	unsigned int n;
	uint64_t again_ms;
} crowds[] = {
	{ 1, 1000 }, { 2, 1016 }, { 11, 1160 }, { 126, 3000 }, { 128, 3000 },
};

TEST_LOOP(more_outstanding_messages_delay_retransmission, 0, sizeof(crowds) / sizeof(crowds[0]))
{
	struct cm_time start = rig.now;
	struct cm_conn *conn[128];

	ask_many(conn, crowds[_i].n);
	ck_assert_uint_eq(repeated_after_ms(start), crowds[_i].again_ms);
}

TEST(answered_connection_delays_no_other)
{
	struct cm_time start = rig.now;
	struct cm_conn *conn[11];

	ask_many(conn, 11);
	for (int i = 0; i < 10; i++) {
		take(conn[i]);
		rig_call(&rig, CM_CALL_DESTROY);
	}
	take(conn[10]);
	ck_assert_uint_eq(repeated_after_ms(start), 1000);
}

TEST(timeout_of_a_program_is_not_extended_by_others)
{
	struct cm_time start = rig.now;
	struct cm_conn *conn[11];

	ask_many(conn, 11);
	conn[0]->retry.waits.first_ms = 1000;
	conn[0]->retry.waits.last_ms = 1000;
	ck_assert_uint_eq(repeated_after_ms(start), 1000);
	ck_assert_uint_eq(conn[0]->n_repeated, 1);
}

static struct cm_conn *repeated_one(struct cm_conn *const conn[], unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (conn[i]->n_repeated && conn[i]->state == CM_REQ_SENT)
			return conn[i];
	ck_abort_msg("none is repeated");
}

/* Return: when the @n-th retransmission from now on is sent, in ms after @since. */
static uint64_t nth_repeated_after_ms(unsigned int n, struct cm_time since)
{
	while (--n)
		repeated_after_ms(since);
	return repeated_after_ms(since);
}

TEST(retransmissions_to_a_peer_are_sent_one_by_one_until_it_is_unresponsive)
{
	struct cm_time start = rig.now;
	struct cm_conn *conn[11];

	ask_many(conn, 11);
	ck_assert_uint_eq(nth_repeated_after_ms(8, start), 1230);
	ck_assert_uint_eq(nth_repeated_after_ms(3, start), 1240);
}

TEST(unresponsive_peer_gets_no_extra_time)
{
	struct cm_conn *conn[11];
	struct cm_time start;

	ask_many(conn, 11);
	nth_repeated_after_ms(8, rig.now);
	start = rig.now;
	take(ask());
	while (rig.conn->n_repeated == 0)
		ck_assert(rig_timer(&rig));
	ck_assert_uint_eq(rig.now.ns - start.ns, 1000 * CM_NS_PER_MS);
}

TEST(mra_for_one_of_many_spares_the_others)
{
	struct cm_time start = rig.now;
	struct cm_conn *conn[11];

	ask_many(conn, 11);
	ck_assert_uint_eq(repeated_after_ms(start), 1160);
	receive_after_ms(repeated_one(conn, 11), "MRA(REQ)", 5);
	ck_assert_uint_eq(repeated_after_ms(start), 1165 + 1000 + 9 * 16);
}

TEST(mra_does_not_prove_that_earlier_messages_were_lost)
{
	struct cm_time start = rig.now;
	struct cm_conn *first = ask();
	struct cm_conn *later;

	rig.now = cm_time_after(start, 500 * CM_NS_PER_MS);
	later = ask();
	receive_after_ms(later, "MRA(REQ)", 400);
	take(first);
	ck_assert_uint_eq(repeated_after_ms(start), 1900);
}

/* All were lost: the answer to the first retransmission must not delay that of the others. */
TEST(reply_to_a_retransmission_does_not_delay_others)
{
	struct cm_time start = rig.now;
	struct cm_conn *conn[11];

	ask_many(conn, 11);
	ck_assert_uint_eq(repeated_after_ms(start), 1160);
	receive_after_ms(repeated_one(conn, 11), "REP", 1);
	ck_assert_uint_eq(repeated_after_ms(start), 1170);
}

/*
 * Seven retransmissions, one after the other; the eighth message is another one; then the rest at
 * once.
 */
TEST(responding_peer_gets_extra_time_again)
{
	struct cm_conn *conn[30];
	struct cm_time heard;

	ask_many(conn, 30);
	nth_repeated_after_ms(8, rig.now);
	receive_after_ms(repeated_one(conn, 30), "MRA(REQ)", 1);
	heard = rig.now;
	ck_assert_uint_eq(repeated_after_ms(heard), 1000);
	ck_assert_uint_eq(nth_repeated_after_ms(6, heard), 1060);
	ck_assert_uint_eq(repeated_after_ms(heard), 1000 + 28 * 16);
	ck_assert_uint_eq(nth_repeated_after_ms(2, heard), 1010 + 28 * 16);
}

/* --- a storm: 500 requests at once to a server with one thread ------------------------------ */

#define STORM 500

static const struct {
	unsigned int stall_ms; /* time until it answers the first */
	unsigned int each_ms;  /* and the time for each */
	bool says_mra;	       /* in answer to retransmissions */
	unsigned int n_repeated;
} storms[] = {
	{ 15, 15, false, 0 },
	{ 2900, 8, false, 0 },
	{ 6000, 8, true, 2 },
	{ 20, 60, false, 0 },
};

static void run_timers_until(struct cm_time until, struct cm_conn *const conn[], bool says_mra)
{
	struct cm_conn *repeated;

	while (!cm_time_reached(until, cm_core_deadline(&rig.core))) {
		ck_assert(rig_timer(&rig));
		if (rig.out.n_sends == 0 || !says_mra)
			continue;
		repeated = repeated_one(conn, STORM);
		take(repeated);
		rig_input(&rig, "MRA(REQ)");
	}
}

TEST_LOOP(storm_to_a_busy_server_is_not_retransmitted, 0, sizeof(storms) / sizeof(storms[0]))
{
	struct cm_time answer = cm_time_after(rig.now, storms[_i].stall_ms * CM_NS_PER_MS);
	struct cm_conn *conn[STORM];
	unsigned int i, n_repeated = 0;

	ask_many(conn, STORM);
	for (i = 0; i < STORM; i++) {
		run_timers_until(answer, conn, storms[_i].says_mra);
		rig.now = answer;
		take(conn[i]);
		rig.peer_comm_id++;
		rig.peer_qpn++;
		rig_input(&rig, "REP");
		n_repeated += conn[i]->n_repeated;
		answer = cm_time_after(answer, storms[_i].each_ms * CM_NS_PER_MS);
	}
	ck_assert_uint_le(n_repeated, storms[_i].n_repeated);
}

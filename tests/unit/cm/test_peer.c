/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A REQ that is not answered in time: its peer may be busy with others.
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

static void hear_after_ms(struct cm_conn *conn, const char *input, unsigned int ms)
{
	rig.now = cm_time_after(rig.now, ms * CM_NS_PER_MS);
	take(conn);
	rig_input(&rig, input);
}

/* Return: when the next message leaves because of a timer, in ms after @since. */
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
	rig_reach(&rig, state, false);
	return rig.conn;
}

static const struct {
	enum cm_state state;
	const char *answer;
	uint64_t again_ms;
} kinds[] = {
	{CM_REQ_SENT,       "REP",      1900},
	{ CM_REQ_SENT,      "REJ",      1900},
	{ CM_REQ_SENT,      "MRA(REQ)", 1900},
	{ CM_DREQ_SENT,	"DREP",	1900},
	{ CM_SIDR_REQ_SENT, "SIDR_REP", 2900},
};

TEST_LOOP(nothing_is_repeated_while_its_receiver_answers_others, 0,
	  sizeof(kinds) / sizeof(kinds[0]))
{
	struct cm_time start = rig.now;
	struct cm_conn *first = reach(kinds[_i].state);
	struct cm_conn *second = reach(kinds[_i].state);
	uint64_t again_ms;

	hear_after_ms(first, kinds[_i].answer, 900);
	take(second);
	again_ms = repeated_after_ms(start);
	ck_assert_uint_eq(again_ms, kinds[_i].again_ms);
	ck_assert_uint_eq(rig.conn->n_repeated, 1);
}

/* A REQ that leaves after @later_ms is refused 900 ms from now. */
static void hear_later_one(unsigned int later_ms)
{
	rig.now = cm_time_after(rig.now, later_ms * CM_NS_PER_MS);
	hear_after_ms(ask(), "REJ", 900 - later_ms);
}

static const struct {
	unsigned int later_ms;
	uint64_t again_ms;
} laters[] = {
	{99,   1900},
	{ 100, 1000},
};

TEST_LOOP(req_is_lost_when_one_that_was_sent_100_ms_later_is_answered, 0, 2)
{
	struct cm_time start = rig.now;
	struct cm_conn *lost = ask();
	uint64_t again_ms;

	hear_later_one(laters[_i].later_ms);
	take(lost);
	again_ms = repeated_after_ms(start);
	ck_assert_uint_eq(again_ms, laters[_i].again_ms);
}

TEST(what_is_lost_is_known_when_others_that_wait_for_it_go)
{
	struct cm_time start = rig.now;
	struct cm_conn *first = ask();
	struct cm_conn *lost = ask();

	hear_later_one(100);
	take(first);
	rig_call(&rig, CM_CALL_DESTROY);
	take(lost);
	ck_assert_uint_eq(repeated_after_ms(start), 1000);
}

TEST(req_is_repeated_in_time_when_another_peer_answers)
{
	struct cm_time start = rig.now;
	struct cm_conn *first, *second;

	first = ask();
	rig.path.dgid.raw[15] ^= 1;
	second = ask();
	rig.path.dgid.raw[15] ^= 1;
	hear_after_ms(first, "REJ", 900);
	take(second);
	ck_assert_uint_eq(repeated_after_ms(start), 1000);
}

TEST(what_a_peer_said_is_known_when_others_that_wait_for_it_go)
{
	struct cm_time start = rig.now;
	struct cm_conn *first = ask();
	struct cm_conn *second = ask();
	struct cm_conn *third = ask();

	hear_after_ms(second, "REJ", 900);
	take(first);
	rig_call(&rig, CM_CALL_DESTROY);
	take(third);
	ck_assert_uint_eq(repeated_after_ms(start), 1900);
}

TEST(repeated_req_waits_for_what_its_peer_says_after_the_repetition)
{
	struct cm_time start = rig.now;
	struct cm_conn *first = ask();
	struct cm_conn *second = ask();

	hear_after_ms(first, "REJ", 100);
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
		hear_after_ms(other, "REJ", 500);
	}
	take(patient);
	while (rig_state(&rig) == CM_REQ_SENT)
		ck_assert(rig_timer(&rig));
	ck_assert_uint_eq(rig.now.ns, start.ns + 3000 * CM_NS_PER_MS);
	ck_assert_str_eq(rig_reported(&rig), "UNREACHABLE -110");
}

TEST(nothing_is_known_of_a_peer_to_which_nothing_is_outstanding)
{
	struct cm_conn *only = ask();

	ck_assert_uint_eq(rig.core.peers.table.n_nodes, 1);
	hear_after_ms(only, "REP", 100);
	ck_assert_uint_eq(rig.core.peers.table.n_nodes, 0);
}

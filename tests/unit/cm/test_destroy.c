/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One end of a connection is destroyed, in each of its states: messages to the other side, and its
 * next states.
 */
#include "tests/unit/cm/pair.h"
#include "tests/unit/test.h"

static struct pair pair;

static void set_up(void)
{
	pair_init(&pair);
}

static void tear_down(void)
{
	pair_fini(&pair);
}

/* Calls of both sides, and messages between them, until one end is destroyed. */
#define C PAIR_CLIENT
#define S PAIR_SERVER

struct said {
	enum pair_side who;
	enum cm_event verb;
};

static const struct destroyed {
	enum pair_side who;
	enum cm_state state;
	unsigned int n_before;
	struct said before[4];
	const char *chart; /* the messages from then on */
	const char *other; /* the reports to the other caller */
} destroyed[] = {
	/* clang-format off */
	{ C, CM_REQ_SENT, 0, { { 0 } },
	  "REJ(other) 4> <REP", "REQUEST, REJECTED" },
	{ C, CM_MRA_REQ_RCVD, 1, { { S, CM_CALL_MRA } },
	  "REJ(other) 4>", "REQUEST, REJECTED" },
	{ C, CM_REP_RCVD, 1, { { S, CM_CALL_REP } },
	  "REJ(REP) 28>", "REQUEST, REJECTED" },
	{ C, CM_MRA_REP_SENT, 2, { { S, CM_CALL_REP }, { C, CM_CALL_MRA } },
	  "REJ(REP) 28>", "REQUEST, REJECTED" },
	{ C, CM_ESTABLISHED, 2, { { S, CM_CALL_REP }, { C, CM_CALL_RTU } },
	  "DREQ> <DREP", "REQUEST, ESTABLISHED, DISCONNECTED, TIMEWAIT_EXIT" },
	{ C, CM_DREQ_SENT, 3, { { S, CM_CALL_REP }, { C, CM_CALL_RTU }, { C, CM_CALL_DREQ } },
	  "<DREP", "REQUEST, ESTABLISHED, DISCONNECTED, TIMEWAIT_EXIT" },
	{ C, CM_DREQ_RCVD, 3, { { S, CM_CALL_REP }, { C, CM_CALL_RTU }, { S, CM_CALL_DREQ } },
	  "DREP>", "REQUEST, ESTABLISHED, DISCONNECTED, TIMEWAIT_EXIT" },
	{ C, CM_TIMEWAIT, 4, { { S, CM_CALL_REP }, { C, CM_CALL_RTU }, { C, CM_CALL_DREQ },
			       { S, CM_CALL_DREP } },
	  "", "REQUEST, ESTABLISHED, DISCONNECTED, TIMEWAIT_EXIT" },

	{ S, CM_REQ_RCVD, 0, { { 0 } },
	  "<REJ(REQ) 28", "REJECTED" },
	{ S, CM_MRA_REQ_SENT, 1, { { S, CM_CALL_MRA } },
	  "<REJ(REQ) 28", "REJECTED" },
	{ S, CM_REP_SENT, 1, { { S, CM_CALL_REP } },
	  "<REJ(other) 28 RTU>", "RESPONSE, REJECTED, TIMEWAIT_EXIT" },
	{ S, CM_MRA_REP_RCVD, 2, { { S, CM_CALL_REP }, { C, CM_CALL_MRA } },
	  "<REJ(other) 28", "RESPONSE, REJECTED, TIMEWAIT_EXIT" },
	{ S, CM_ESTABLISHED, 2, { { S, CM_CALL_REP }, { C, CM_CALL_RTU } },
	  "<DREQ DREP>", "RESPONSE, DISCONNECTED, TIMEWAIT_EXIT" },
	{ S, CM_DREQ_SENT, 3, { { S, CM_CALL_REP }, { C, CM_CALL_RTU }, { S, CM_CALL_DREQ } },
	  "DREP>", "RESPONSE, DISCONNECTED, TIMEWAIT_EXIT" },
	{ S, CM_DREQ_RCVD, 3, { { S, CM_CALL_REP }, { C, CM_CALL_RTU }, { C, CM_CALL_DREQ } },
	  "<DREP", "RESPONSE, DISCONNECTED, TIMEWAIT_EXIT" },
	{ S, CM_TIMEWAIT, 4, { { S, CM_CALL_REP }, { C, CM_CALL_RTU }, { C, CM_CALL_DREQ },
			       { S, CM_CALL_DREP } },
	  "", "RESPONSE, DISCONNECTED, TIMEWAIT_EXIT" },
	/* clang-format on */
};

static void set_manual(bool manual)
{
	pair.host[PAIR_CLIENT].manual = manual;
	pair.host[PAIR_SERVER].manual = manual;
}

FIXTURE(set_up, tear_down);

TEST_LOOP(destroy_ends_the_other_side, 0, sizeof(destroyed) / sizeof(destroyed[0]))
{
	const struct destroyed *row = &destroyed[_i];

	set_manual(true);
	pair_connect(&pair);
	for (unsigned int i = 0; i < row->n_before; i++) {
		pair_deliver(&pair);
		ck_assert_int_eq(
			pair_call(pair_end(&pair, row->before[i].who, 0), row->before[i].verb), 0);
	}
	pair_run_until(&pair, row->who, row->state);
	pair_forget_chart(&pair);
	set_manual(false);
	pair_call(pair_end(&pair, row->who, 0), CM_CALL_DESTROY);
	pair_run(&pair);
	ck_assert_chart(&pair, row->chart);
	ck_assert_log(pair_end(&pair, !row->who, 0), row->other);
}

TEST(destroyed_connection_retransmits_its_lost_dreq)
{
	pair_fault(&pair, PAIR_CLIENT, CM_ATTR_DREQ, 1, PAIR_DROP);
	pair_connect(&pair);
	pair_run(&pair);
	pair_forget_chart(&pair);
	pair_call(pair_end(&pair, PAIR_CLIENT, 0), CM_CALL_DESTROY);
	pair_run(&pair);
	ck_assert_chart(&pair, "DREQ*> DREQ> <DREP");
	ck_assert_log(pair_end(&pair, PAIR_SERVER, 0),
		      "REQUEST, ESTABLISHED, DISCONNECTED, TIMEWAIT_EXIT");
}

TEST(two_destroyed_ends_disconnect_and_are_freed)
{
	pair_connect(&pair);
	pair_run(&pair);
	pair_forget_chart(&pair);
	pair_call(pair_end(&pair, PAIR_CLIENT, 0), CM_CALL_DESTROY);
	pair_call(pair_end(&pair, PAIR_SERVER, 0), CM_CALL_DESTROY);
	pair_run(&pair);
	ck_assert_chart(&pair, "DREQ> <DREQ <DREP DREP>");
	ck_assert_uint_eq(pair.host[PAIR_CLIENT].core.n_conns, 0);
	ck_assert_uint_eq(pair.host[PAIR_SERVER].core.n_conns, 0);
}

TEST(orphan_of_a_dead_peer_is_freed_after_50_seconds)
{
	pair_connect(&pair);
	pair_run(&pair);
	pair.host[PAIR_SERVER].dead = true;
	pair_call(pair_end(&pair, PAIR_CLIENT, 0), CM_CALL_DESTROY);
	pair_run(&pair);
	ck_assert_uint_eq(pair_ms(&pair), 3 * PAIR_LATENCY_MS + 50000);
	ck_assert_uint_eq(pair.host[PAIR_CLIENT].core.n_conns, 0);
}

/* The queue pair of a destroyed connection is free for the next one at once. */
TEST(orphan_does_not_make_a_new_connection_stale)
{
	pair_connect(&pair);
	pair_run(&pair);
	pair.host[PAIR_CLIENT].dead = true; /* its DREP is never sent */
	pair_call(pair_end(&pair, PAIR_SERVER, 0), CM_CALL_DESTROY);
	pair_restart(&pair.host[PAIR_CLIENT]);
	pair.host[PAIR_CLIENT].dead = false;
	pair_forget_chart(&pair);
	pair_connect(&pair);
	pair_run_until(&pair, PAIR_CLIENT, CM_ESTABLISHED);
	ck_assert_chart(&pair, "REQ> <REP RTU>");
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Events that have passed of a connection, and the messages for a client that is gone. */
#include "lib/portd/server/ledger/tracked_passed.h"
#include "tests/unit/test.h"

static enum cm_state after(bool is_active, const enum cm_event *events, unsigned int n)
{
	uint8_t passed = 0;

	while (n--)
		passed =
			passed_after(passed, passed_state(passed, is_active), is_active, *events++);
	return passed_state(passed, is_active);
}

#define AFTER(is_active, ...)                                            \
	cm_state_str(                                                    \
		after(is_active, (const enum cm_event[]){ __VA_ARGS__ }, \
		      sizeof((const enum cm_event[]){ __VA_ARGS__ }) / sizeof(enum cm_event)))

TEST(active_side_is_tracked_by_its_messages)
{
	ck_assert_str_eq(AFTER(true, CM_RX_MRA_REQ), "REQ_SENT");
	ck_assert_str_eq(AFTER(true, CM_RX_REP), "REP_RCVD");
	ck_assert_str_eq(AFTER(true, CM_RX_REP, CM_CALL_RTU), "ESTABLISHED");
}

TEST(passive_side_is_tracked_by_its_messages)
{
	ck_assert_str_eq(AFTER(false, CM_CALL_MRA), "REQ_RCVD");
	ck_assert_str_eq(AFTER(false, CM_CALL_REP), "REP_SENT");
	ck_assert_str_eq(AFTER(false, CM_CALL_REP, CM_RX_RTU), "ESTABLISHED");
	ck_assert_str_eq(AFTER(false, CM_CALL_REP, CM_CALL_ESTABLISH), "ESTABLISHED");
}

/* Messages in both directions cross. */
TEST(order_in_which_both_disconnect_does_not_matter)
{
	ck_assert_str_eq(AFTER(false, CM_CALL_REP, CM_RX_DREQ, CM_CALL_DREQ), "DREQ_RCVD");
	ck_assert_str_eq(AFTER(false, CM_CALL_REP, CM_CALL_DREQ, CM_RX_DREQ), "DREQ_RCVD");
	ck_assert_str_eq(AFTER(false, CM_CALL_REP, CM_CALL_DREQ, CM_RX_DREQ, CM_CALL_DREP),
			 "TIMEWAIT");
}

TEST(rejection_after_an_answer_enters_timewait)
{
	ck_assert_str_eq(AFTER(false, CM_CALL_REJ), "IDLE");
	ck_assert_str_eq(AFTER(false, CM_CALL_REP, CM_CALL_REJ), "TIMEWAIT");
	ck_assert_str_eq(AFTER(false, CM_CALL_REP, CM_RX_REJ), "IDLE");
	ck_assert_str_eq(AFTER(false, CM_CALL_REP, CM_RX_RTU, CM_RX_REJ), "TIMEWAIT");
	ck_assert_str_eq(AFTER(true, CM_RX_REP, CM_CALL_REJ), "IDLE");
	ck_assert_str_eq(AFTER(true, CM_RX_REP, CM_CALL_RTU, CM_CALL_REJ), "TIMEWAIT");
	ck_assert_str_eq(AFTER(true, CM_RX_REP, CM_CALL_RTU, CM_RX_REJ), "TIMEWAIT");
}

TEST(peer_that_lost_the_connection_may_connect_again)
{
	ck_assert_str_eq(AFTER(false, CM_CALL_REP, CM_RX_RTU, CM_RX_REJ_STALE), "IDLE");
}

/* Events that are impossible for the side, or too early. */
TEST(impossible_message_has_no_effect)
{
	ck_assert_str_eq(AFTER(true, CM_CALL_REP, CM_CALL_RTU, CM_RX_RTU, CM_CALL_ESTABLISH,
			       CM_RX_DREQ, CM_RX_DREP, CM_CALL_SIDR_REP),
			 "REQ_SENT");
	ck_assert_str_eq(AFTER(false, CM_RX_REP, CM_RX_RTU, CM_CALL_RTU, CM_CALL_ESTABLISH,
			       CM_RX_DREQ, CM_RX_DREP, CM_CALL_SIDR_REP),
			 "REQ_RCVD");
}

TEST_LOOP(ended_connection_stays_ended, 0, 2 * (UINT8_MAX + 1))
{
	const uint8_t passed = (uint8_t)(_i / 2);
	const enum cm_state state = passed_state(passed, _i % 2);
	unsigned int event;

	for (event = 0; event < CM_N_EVENTS && (state == CM_IDLE || state == CM_TIMEWAIT); event++)
		ck_assert_uint_eq(passed_after(passed, state, _i % 2, (enum cm_event)event),
				  passed);
}

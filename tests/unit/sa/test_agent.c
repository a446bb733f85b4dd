/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mad/sa/agent.c, mad/sa/paths.c and mad/sa/joined_group.c: shared requests, cached paths, and
 * memberships.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/sa/wire.h"
#include "tests/unit/test.h"

#define ASKS	 8
#define JOINMASK UINT64_C(0x130c7)

static struct sa_agent agent;
static struct sa_ask asks[ASKS];
static int n_done[ASKS], err_of[ASKS];
static uint16_t lid_of[ASKS];
static int rejoins = -1;   /* the ask that starts again from done() */
static int withdraws = -1; /* the ask that is cancelled from done() of any other */

static void done(struct sa_ask *ask, int err, const struct sa_msg *answer)
{
	long i = ask - asks;

	n_done[i]++;
	err_of[i] = err;
	lid_of[i] = 0;
	if (answer)
		lid_of[i] = answer->hdr.attr_id == SA_ATTR_PATH_RECORD ? answer->path.dlid
								       : answer->member.mlid;
	if (withdraws >= 0 && i != withdraws) {
		sa_agent_withdraw(&agent, &asks[withdraws], at_ms(50));
		withdraws = -1;
	}
	if (i == rejoins) {
		rejoins = -1;
		sa_agent_ask(&agent, ask, at_ms(50));
	}
}

static void begin(void)
{
	wire_clear();
	memset(asks, 0, sizeof(asks));
	memset(n_done, 0, sizeof(n_done));
	rejoins = withdraws = -1;
	sa_agent_init(&agent, 1, 2, wire_send, NULL);
	sa_agent_subnet(&agent, &(struct sa_subnet){ 3, 1, 0, true }, false, at_ms(0));
}

static void end(void)
{
	sa_agent_fini(&agent);
}

static void set_question(int i, uint64_t ms, unsigned int timeout_ms)
{
	asks[i].timeout_ms = timeout_ms;
	asks[i].done = done;
	sa_agent_ask(&agent, &asks[i], at_ms(ms));
}

static void ask_path_for(int i, uint8_t peer, uint64_t ms, unsigned int timeout_ms)
{
	sa_msg_init(&asks[i].msg, SA_METHOD_GET, SA_ATTR_PATH_RECORD, SA_PATH_DGID, 0);
	asks[i].msg.path.dgid.raw[15] = peer;
	set_question(i, ms, timeout_ms);
}

/* Asks with request i for the path to port @peer. */
static void ask_path(int i, uint8_t peer, uint64_t ms)
{
	ask_path_for(i, peer, ms, 2000);
}

static void ask_join_with(int i, uint8_t group, uint8_t join_state, uint64_t comp_mask)
{
	sa_msg_init(&asks[i].msg, SA_METHOD_SET, SA_ATTR_MCMEMBER_RECORD, comp_mask, 0);
	asks[i].msg.member.mgid.raw[0] = 0xff;
	asks[i].msg.member.mgid.raw[15] = group;
	asks[i].msg.member.join_state = join_state;
	set_question(i, 1, 2000);
}

static void ask_join(int i, uint8_t group, uint8_t join_state)
{
	ask_join_with(i, group, join_state, JOINMASK);
}

static void answer_at(unsigned int n, uint16_t status, uint16_t lid, uint64_t ms)
{
	uint8_t mad[MAD_BYTES];

	wire_answer(n, status, lid, mad);
	sa_agent_input(&agent, mad, sizeof(mad), at_ms(ms));
}

static void answer(unsigned int n, uint16_t lid)
{
	answer_at(n, 0, lid, 2);
}

static void withdraw(int i)
{
	sa_agent_withdraw(&agent, &asks[i], at_ms(3));
}

FIXTURE(begin, end);

/* --- paths --------------------------------------------------------------- */

TEST(equal_requests_are_sent_once)
{
	ask_path(0, 1, 0);
	ask_path(1, 1, 1);
	ck_assert_uint_eq(n_sent, 1);
	answer(0, 7);
	ck_assert_int_eq(n_done[0] + n_done[1], 2);
	ck_assert_uint_eq(lid_of[1], 7);
}

/* Each is found among all others, and removed from among them. */
TEST(many_requests_are_each_sent_once)
{
	int i;

	for (i = 0; i < ASKS; i++)
		ask_path(i, (uint8_t)(i / 2), 0);
	ck_assert_uint_eq(agent.queries.n_nodes, ASKS / 2);
	for (i = 0; i < ASKS; i += 2)
		withdraw(i);
	ck_assert_uint_eq(agent.queries.n_nodes, ASKS / 2);
	for (i = 1; i < ASKS; i += 2)
		withdraw(i);
	ck_assert_uint_eq(agent.queries.n_nodes, ASKS / 2); /* the kernel waits for the responses */
	sa_agent_expire(&agent, at_ms(3000));
	ck_assert_uint_eq(agent.queries.n_nodes, 0);
}

TEST(cached_path_needs_no_request)
{
	ask_path(0, 1, 0);
	answer(0, 7);
	ask_path(1, 1, 100);
	ck_assert_uint_eq(n_sent, 1);
	ck_assert_uint_eq(lid_of[1], 7);
	ck_assert_uint_eq(agent.n_from_cache, 1);
}

TEST(different_request_is_sent)
{
	ask_path(0, 1, 0);
	answer(0, 7);
	ask_path(1, 2, 100);
	ck_assert_uint_eq(n_sent, 2);
}

TEST(path_is_requested_again_after_a_minute)
{
	ask_path(0, 1, 0);
	answer(0, 7);
	ask_path(1, 1, 60003);
	ck_assert_uint_eq(n_sent, 2);
}

TEST(refusal_is_not_cached)
{
	ask_path(0, 1, 0);
	answer_at(0, 0x300, 0, 2);
	ask_path(1, 1, 3);
	ck_assert_int_eq(err_of[0], -EINVAL);
	ck_assert_uint_eq(n_sent, 2);
}

TEST(revalidated_path_is_requested_again)
{
	ask_path(0, 1, 0);
	ask_path(2, 2, 0);
	answer(0, 7);
	answer(1, 8);
	asks[1].since = at_ms(3);
	ask_path(1, 1, 3);
	answer_at(2, 0, 9, 4);
	ask_path(1, 1, 5);
	ck_assert_uint_eq(lid_of[1], 9);
	ask_path(3, 2, 3);
	ck_assert_uint_eq(n_sent, 3);
	ck_assert_uint_eq(lid_of[3], 8);
}

TEST_LOOP(change_of_the_subnet_drops_all_paths, 0, 4)
{
	static const struct sa_subnet changed[] = {
		{ 4, 1, 0, true }, { 3, 2, 0, true }, { 3, 1, 1, true }, { 3, 1, 0, true }
	};

	ask_path(0, 1, 0);
	answer(0, 7);
	sa_agent_subnet(&agent, &changed[_i], _i == 3, at_ms(3));
	ask_path(1, 1, 4);
	ck_assert_uint_eq(n_sent, 2);
}

TEST(no_change_drops_nothing)
{
	ask_path(0, 1, 0);
	answer(0, 7);
	sa_agent_subnet(&agent, &(struct sa_subnet){ 3, 1, 0, true }, false, at_ms(3));
	ask_path(1, 1, 4);
	ck_assert_uint_eq(n_sent, 1);
}

TEST(new_administrator_gets_outstanding_requests)
{
	ask_path(0, 1, 0);
	sa_agent_subnet(&agent, &(struct sa_subnet){ 3, 9, 0, true }, false, at_ms(3));
	ck_assert_uint_eq(n_sent, 2);
	answer(1, 7);
	ck_assert_int_eq(n_done[0], 1);
}

TEST(cancelled_request_is_not_retransmitted)
{
	ask_path(0, 1, 0);
	withdraw(0);
	sa_agent_expire(&agent, at_ms(3000));
	ck_assert_int_eq(n_done[0], 0);
	ck_assert_uint_eq(n_sent, 1);
	ck_assert_uint_eq(sa_agent_deadline(&agent).ns, CM_TIME_NEVER.ns);
}

TEST(shared_request_continues_for_the_other_client)
{
	ask_path(0, 1, 0);
	ask_path(1, 1, 0);
	withdraw(0);
	answer(0, 7);
	ck_assert_int_eq(n_done[0], 0);
	ck_assert_int_eq(n_done[1], 1);
}

/* Its response is cached. */
TEST(cancelled_request_may_be_made_again)
{
	ask_path(0, 1, 0);
	withdraw(0);
	ask_path(1, 1, 100);
	ck_assert_uint_eq(n_sent, 1);
	sa_agent_expire(&agent, at_ms(301));
	ck_assert_uint_eq(n_sent, 2);
	withdraw(1);
	answer(1, 7);
	ask_path(2, 1, 400);
	ck_assert_uint_eq(n_sent, 2);
	ck_assert_uint_eq(lid_of[2], 7);
}

TEST(each_client_has_its_own_timeout)
{
	ask_path_for(0, 1, 0, 100);
	ask_path_for(1, 1, 0, 2000);
	ask_path_for(2, 1, 0, 600000);
	sa_agent_expire(&agent, at_ms(101));
	ck_assert_int_eq(err_of[0], -ETIMEDOUT);
	ck_assert_int_eq(n_done[1], 0);
	sa_agent_expire(&agent, at_ms(2001));
	ck_assert_int_eq(err_of[1], -ETIMEDOUT);
	answer_at(0, 0, 7, 2002);
	ck_assert_int_eq(n_done[0] + n_done[1] + n_done[2], 3);
	ck_assert_uint_eq(lid_of[2], 7);
}

TEST(retransmission_follows_the_shortest_timeout)
{
	ask_path_for(0, 1, 0, 600000);
	ask_path_for(1, 1, 0, 2000);
	sa_agent_expire(&agent, at_ms(201));
	ck_assert_uint_eq(n_sent, 2);
}

TEST(paths_beyond_the_cache_are_requested)
{
	for (int peer = 0; peer < 256; peer++) {
		ask_path(0, (uint8_t)peer, 0);
		answer((unsigned int)peer, (uint16_t)(peer + 1));
		ck_assert_uint_eq(lid_of[0], peer + 1);
	}
	ask_path(1, 255, 5);
	ck_assert_uint_eq(lid_of[1], 256);
}

/* --- groups -------------------------------------------------------------- */

TEST(group_is_joined_once_for_two)
{
	ask_join(0, 1, SA_JOIN_FULL);
	ask_join(1, 1, SA_JOIN_FULL);
	ck_assert_uint_eq(n_sent, 1);
	answer(0, 0xc001);
	ck_assert_uint_eq(lid_of[0], 0xc001);
	ck_assert_uint_eq(lid_of[1], 0xc001);
	ask_join(2, 1, SA_JOIN_FULL);
	ck_assert_uint_eq(lid_of[2], 0xc001);
	ck_assert_uint_eq(n_sent, 1);
}

TEST(last_member_leaves_the_group)
{
	ask_join(0, 1, SA_JOIN_FULL);
	answer(0, 0xc001);
	ask_join(1, 1, SA_JOIN_FULL);
	withdraw(0);
	ck_assert_uint_eq(n_sent, 1);
	withdraw(1);
	ck_assert_uint_eq(n_sent, 2);
	ck_assert_uint_eq(sent[1].msg.hdr.method, SA_METHOD_DELETE);
	ck_assert_uint_eq(sent[1].msg.sa.comp_mask, 0x10003);
	ck_assert_uint_eq(sent[1].msg.member.join_state, SA_JOIN_FULL);
	answer(1, 0);
	ck_assert_uint_eq(agent.n_groups, 0);
}

TEST(send_only_is_a_separate_membership)
{
	ask_join(0, 1, SA_JOIN_FULL);
	answer(0, 0xc001);
	ask_join(1, 1, SA_JOIN_SEND_ONLY_FULL);
	ck_assert_uint_eq(n_sent, 2);
	ck_assert_uint_eq(sent[1].msg.member.join_state, SA_JOIN_SEND_ONLY_FULL);
}

TEST(unanswered_leave_is_given_up)
{
	ask_join(0, 1, SA_JOIN_FULL);
	answer(0, 0xc001);
	withdraw(0);
	for (uint64_t ms = 0; ms <= SA_LEAVE_MS + 10; ms += 10)
		sa_agent_expire(&agent, at_ms(ms));
	ck_assert_uint_eq(agent.n_groups, 0);
	ck_assert_uint_ge(n_sent, 4);
}

TEST(join_during_a_leave_follows_it)
{
	ask_join(0, 1, SA_JOIN_FULL);
	answer(0, 0xc001);
	withdraw(0);
	ask_join(1, 1, SA_JOIN_FULL);
	ck_assert_uint_eq(n_sent, 2);
	answer(1, 0);
	ck_assert_uint_eq(n_sent, 3);
	ck_assert_uint_eq(sent[2].msg.hdr.method, SA_METHOD_SET);
	answer(2, 0xc002);
	ck_assert_uint_eq(lid_of[1], 0xc002);
}

TEST(refused_join_leaves_no_state)
{
	ask_join(0, 1, SA_JOIN_FULL);
	ask_join(1, 1, SA_JOIN_FULL);
	answer_at(0, 0x200, 0, 2);
	ck_assert_int_eq(err_of[0], -EINVAL);
	ck_assert_int_eq(err_of[1], -EINVAL);
	ck_assert_uint_eq(agent.n_groups, 0);
	withdraw(0);
	ck_assert_uint_eq(n_sent, 1);
}

TEST(cancelled_join_gets_no_refusal)
{
	withdraws = 1;
	ask_join(0, 1, SA_JOIN_FULL);
	ask_join(1, 1, SA_JOIN_FULL);
	answer_at(0, 0x200, 0, 2);
	ck_assert_int_eq(n_done[0], 1);
	ck_assert_int_eq(n_done[1], 0);
}

TEST(refused_join_may_be_tried_again_at_once)
{
	rejoins = 0;
	ask_join(0, 1, SA_JOIN_FULL);
	answer_at(0, 0x200, 0, 2);
	ck_assert_uint_eq(n_sent, 2);
	answer(1, 0xc001);
	ck_assert_uint_eq(lid_of[0], 0xc001);
}

TEST(memberships_are_renewed_without_reports)
{
	ask_join(0, 1, SA_JOIN_FULL);
	answer(0, 0xc001);
	sa_agent_subnet(&agent, &(struct sa_subnet){ 3, 9, 0, true }, false, at_ms(3));
	ck_assert_uint_eq(n_sent, 2);
	ck_assert_uint_eq(sent[1].msg.hdr.method, SA_METHOD_SET);
	answer(1, 0xc001);
	ck_assert_int_eq(n_done[0], 1);
}

TEST(members_get_enetreset_when_the_group_changed)
{
	ask_join(0, 1, SA_JOIN_FULL);
	answer(0, 0xc001);
	sa_agent_subnet(&agent, &(struct sa_subnet){ 3, 9, 0, true }, false, at_ms(3));
	answer(1, 0xc002);
	ck_assert_int_eq(n_done[0], 2);
	ck_assert_int_eq(err_of[0], -ENETRESET);
	ck_assert_uint_eq(sent[2].msg.hdr.method, SA_METHOD_DELETE);
	withdraw(0);
	ck_assert_uint_eq(n_sent, 3);
}

TEST(notified_member_can_join_again)
{
	ask_join(0, 1, SA_JOIN_FULL);
	answer(0, 0xc001);
	sa_agent_subnet(&agent, &(struct sa_subnet){ 3, 9, 0, true }, false, at_ms(3));
	rejoins = 0;
	answer(1, 0xc002);
	answer(2, 0);
	answer(3, 0xc002);
	ck_assert_int_eq(err_of[0], 0);
	ck_assert_uint_eq(lid_of[0], 0xc002);
}

TEST(a_port_that_is_down_renews_nothing)
{
	ask_join(0, 1, SA_JOIN_FULL);
	answer(0, 0xc001);
	sa_agent_subnet(&agent, &(struct sa_subnet){ 3, 1, 0, false }, false, at_ms(3));
	ck_assert_uint_eq(n_sent, 1);
	sa_agent_subnet(&agent, &(struct sa_subnet){ 3, 1, 0, true }, false, at_ms(4));
	ck_assert_uint_eq(n_sent, 2);
}

TEST_LOOP(cancelled_join_is_left, 0, 2)
{
	ask_join(0, 1, SA_JOIN_FULL);
	withdraw(0);
	if (_i == 0)
		answer(0, 0xc001);
	else
		sa_agent_expire(&agent, at_ms(2001));
	ck_assert_uint_eq(n_sent, 2);
	ck_assert_uint_eq(sent[1].msg.hdr.method, SA_METHOD_DELETE);
	answer(1, 0);
	ck_assert_int_eq(n_done[0], 0);
	ck_assert_uint_eq(agent.n_groups, 0);
}

TEST(cancelled_and_refused_join_needs_no_leave)
{
	ask_join(0, 1, SA_JOIN_FULL);
	withdraw(0);
	answer_at(0, 0x200, 0, 2);
	ck_assert_uint_eq(n_sent, 1);
	ck_assert_uint_eq(agent.n_groups, 0);
}

/* As a user's impossible requests, for which others must not be refused. */
TEST(refusal_of_another_request_fails_no_other_join)
{
	ask_join_with(0, 1, SA_JOIN_FULL, SA_MEMBER_MGID);
	ask_join(1, 1, SA_JOIN_FULL);
	answer_at(0, 0x200, 0, 2);
	ck_assert_int_eq(err_of[0], -EINVAL);
	ck_assert_int_eq(n_done[1], 0);
	answer(1, 0xc001);
	ck_assert_uint_eq(lid_of[1], 0xc001);
}

TEST(two_requests_that_succeed_are_one_membership)
{
	ask_join_with(0, 1, SA_JOIN_FULL, SA_MEMBER_MGID);
	ask_join(1, 1, SA_JOIN_FULL);
	ask_join(2, 1, SA_JOIN_FULL);
	answer(0, 0xc001);
	answer(1, 0xc001);
	ck_assert_int_eq(n_done[0] + n_done[1] + n_done[2], 3);
	ck_assert_uint_eq(agent.n_groups, 1);
	withdraw(0);
	withdraw(2);
	ck_assert_uint_eq(n_sent, 2);
	withdraw(1);
	ck_assert_uint_eq(sent[2].msg.hdr.method, SA_METHOD_DELETE);
}

TEST(withdrawn_join_does_not_end_the_membership_of_others)
{
	ask_join_with(0, 1, SA_JOIN_FULL, SA_MEMBER_MGID);
	ask_join(1, 1, SA_JOIN_FULL);
	withdraw(0);
	answer(1, 0xc001);
	answer(0, 0xc001);
	ck_assert_uint_eq(n_sent, 2);
	ck_assert_uint_eq(agent.n_groups, 1);
}

/* The administrator may have handled the leave after the join. */
TEST(join_answered_during_a_leave_is_repeated)
{
	ask_join_with(0, 1, SA_JOIN_FULL, SA_MEMBER_MGID);
	ask_join(1, 1, SA_JOIN_FULL);
	withdraw(0);
	answer(0, 0xc001);
	ck_assert_uint_eq(sent[2].msg.hdr.method, SA_METHOD_DELETE);
	answer(1, 0xc001);
	ck_assert_int_eq(n_done[1], 0);
	answer(2, 0);
	ck_assert_uint_eq(sent[3].msg.hdr.method, SA_METHOD_SET);
	answer(3, 0xc001);
	ck_assert_uint_eq(lid_of[1], 0xc001);
}

/* --- groups of others, too ------------------------------------------------------ */

static bool is_shared(const struct mad_gid *mgid)
{
	return mgid->raw[3] == 0x1b;
}

static void ask_join_shared(int i)
{
	agent.is_shared = is_shared;
	sa_msg_init(&asks[i].msg, SA_METHOD_SET, SA_ATTR_MCMEMBER_RECORD, JOINMASK, 0);
	asks[i].msg.member.mgid = (struct mad_gid){ { 0xff, 0x12, 0x40, 0x1b } };
	asks[i].msg.member.join_state = SA_JOIN_FULL;
	set_question(i, 1, 2000);
}

TEST(shared_group_is_not_left)
{
	ask_join_shared(0);
	answer(0, 0xc001);
	withdraw(0);
	ck_assert_uint_eq(n_sent, 1);
	ck_assert_uint_eq(agent.n_groups, 0);
}

TEST(cancelled_join_of_a_shared_group_is_not_left)
{
	ask_join_shared(0);
	withdraw(0);
	answer(0, 0xc001);
	ck_assert_uint_eq(n_sent, 1);
	ck_assert_uint_eq(agent.n_groups, 0);
}

TEST(changed_shared_group_is_joined_again_without_a_leave)
{
	ask_join_shared(0);
	answer(0, 0xc001);
	sa_agent_subnet(&agent, &(struct sa_subnet){ 3, 9, 0, true }, false, at_ms(3));
	rejoins = 0;
	answer(1, 0xc002);
	ck_assert_int_eq(err_of[0], -ENETRESET);
	ck_assert_uint_eq(n_sent, 3);
	ck_assert_uint_eq(sent[2].msg.hdr.method, SA_METHOD_SET);
	answer(2, 0xc002);
	ck_assert_uint_eq(lid_of[0], 0xc002);
	ck_assert_uint_eq(agent.n_groups, 1);
}

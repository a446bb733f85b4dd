/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mad/sa/agent.c, mad/sa/paths.c and mad/sa/group.c: what is asked once, what is remembered, and
 * who is a member of what.
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
static int rejoins = -1;   /* this one asks again from done() */
static int withdraws = -1; /* and from done() of any other, this one loses interest */

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

static void pose(int i, uint64_t ms)
{
	asks[i].timeout_ms = 2000;
	asks[i].done = done;
	sa_agent_ask(&agent, &asks[i], at_ms(ms));
}

/* From ask i, for the path to port @peer. */
static void ask_path(int i, uint8_t peer, uint64_t ms)
{
	sa_msg_init(&asks[i].msg, SA_METHOD_GET, SA_ATTR_PATH_RECORD, SA_PATH_DGID, 0);
	asks[i].msg.path.dgid.raw[15] = peer;
	pose(i, ms);
}

static void ask_join(int i, uint8_t group, uint8_t join_state)
{
	sa_msg_init(&asks[i].msg, SA_METHOD_SET, SA_ATTR_MCMEMBER_RECORD, JOINMASK, 0);
	asks[i].msg.member.mgid.raw[0] = 0xff;
	asks[i].msg.member.mgid.raw[15] = group;
	asks[i].msg.member.join_state = join_state;
	pose(i, 1);
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

/* --- paths --------------------------------------------------------------- */

START_TEST(same_question_is_asked_once)
{
	ask_path(0, 1, 0);
	ask_path(1, 1, 1);
	ck_assert_uint_eq(n_sent, 1);
	answer(0, 7);
	ck_assert_int_eq(n_done[0] + n_done[1], 2);
	ck_assert_uint_eq(lid_of[1], 7);
}
END_TEST

/* Each is found among all the others, and taken out from among them. */
START_TEST(many_questions_are_each_asked_once)
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
	ck_assert_uint_eq(agent.queries.n_nodes, 0);
}
END_TEST

START_TEST(known_path_is_not_asked_for)
{
	ask_path(0, 1, 0);
	answer(0, 7);
	ask_path(1, 1, 100);
	ck_assert_uint_eq(n_sent, 1);
	ck_assert_uint_eq(lid_of[1], 7);
	ck_assert_uint_eq(agent.n_from_cache, 1);
}
END_TEST

START_TEST(other_question_is_asked)
{
	ask_path(0, 1, 0);
	answer(0, 7);
	ask_path(1, 2, 100);
	ck_assert_uint_eq(n_sent, 2);
}
END_TEST

START_TEST(path_is_asked_for_anew_after_a_minute)
{
	ask_path(0, 1, 0);
	answer(0, 7);
	ask_path(1, 1, 60003);
	ck_assert_uint_eq(n_sent, 2);
}
END_TEST

START_TEST(refusal_is_not_remembered)
{
	ask_path(0, 1, 0);
	answer_at(0, 0x300, 0, 2);
	ask_path(1, 1, 3);
	ck_assert_int_eq(err_of[0], -EINVAL);
	ck_assert_uint_eq(n_sent, 2);
}
END_TEST

START_TEST(revalidated_path_is_asked_for_anew)
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
END_TEST

START_TEST(change_of_the_subnet_drops_all_paths)
{
	static const struct sa_subnet changed[] = {
		{4,  1, 0, true},
		   { 3, 2, 0, true},
		      { 3, 1, 1, true},
		 { 3, 1, 0, true}
	};

	ask_path(0, 1, 0);
	answer(0, 7);
	sa_agent_subnet(&agent, &changed[_i], _i == 3, at_ms(3));
	ask_path(1, 1, 4);
	ck_assert_uint_eq(n_sent, 2);
}
END_TEST

START_TEST(no_change_drops_nothing)
{
	ask_path(0, 1, 0);
	answer(0, 7);
	sa_agent_subnet(&agent, &(struct sa_subnet){ 3, 1, 0, true }, false, at_ms(3));
	ask_path(1, 1, 4);
	ck_assert_uint_eq(n_sent, 1);
}
END_TEST

START_TEST(new_administrator_gets_what_is_under_way)
{
	ask_path(0, 1, 0);
	sa_agent_subnet(&agent, &(struct sa_subnet){ 3, 9, 0, true }, false, at_ms(3));
	ck_assert_uint_eq(n_sent, 2);
	answer(1, 7);
	ck_assert_int_eq(n_done[0], 1);
}
END_TEST

START_TEST(withdrawn_question_stops)
{
	ask_path(0, 1, 0);
	withdraw(0);
	sa_agent_expire(&agent, at_ms(3000));
	ck_assert_int_eq(n_done[0], 0);
	ck_assert_uint_eq(n_sent, 1);
	ck_assert_uint_eq(sa_agent_deadline(&agent).ns, CM_TIME_NEVER.ns);
}
END_TEST

START_TEST(question_goes_on_for_who_is_left)
{
	ask_path(0, 1, 0);
	ask_path(1, 1, 0);
	withdraw(0);
	answer(0, 7);
	ck_assert_int_eq(n_done[0], 0);
	ck_assert_int_eq(n_done[1], 1);
}
END_TEST

START_TEST(more_paths_than_there_is_room_for_are_found_or_asked)
{
	for (int peer = 0; peer < 256; peer++) {
		ask_path(0, (uint8_t)peer, 0);
		answer((unsigned int)peer, (uint16_t)(peer + 1));
		ck_assert_uint_eq(lid_of[0], peer + 1);
	}
	ask_path(1, 255, 5);
	ck_assert_uint_eq(lid_of[1], 256);
}
END_TEST

/* --- groups -------------------------------------------------------------- */

START_TEST(group_is_joined_once_for_two)
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
END_TEST

START_TEST(only_the_last_leaves)
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
END_TEST

START_TEST(sending_only_is_a_membership_of_its_own)
{
	ask_join(0, 1, SA_JOIN_FULL);
	answer(0, 0xc001);
	ask_join(1, 1, SA_JOIN_SEND_ONLY_FULL);
	ck_assert_uint_eq(n_sent, 2);
	ck_assert_uint_eq(sent[1].msg.member.join_state, SA_JOIN_SEND_ONLY_FULL);
}
END_TEST

START_TEST(unanswered_leave_is_given_up)
{
	ask_join(0, 1, SA_JOIN_FULL);
	answer(0, 0xc001);
	withdraw(0);
	for (uint64_t ms = 0; ms <= SA_LEAVE_MS + 10; ms += 10)
		sa_agent_expire(&agent, at_ms(ms));
	ck_assert_uint_eq(agent.n_groups, 0);
	ck_assert_uint_ge(n_sent, 4);
}
END_TEST

START_TEST(who_comes_while_it_is_left_joins_afterwards)
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
END_TEST

START_TEST(refused_join_leaves_nothing)
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
END_TEST

START_TEST(who_withdraws_while_another_hears_of_the_refusal_hears_nothing)
{
	withdraws = 1;
	ask_join(0, 1, SA_JOIN_FULL);
	ask_join(1, 1, SA_JOIN_FULL);
	answer_at(0, 0x200, 0, 2);
	ck_assert_int_eq(n_done[0], 1);
	ck_assert_int_eq(n_done[1], 0);
}
END_TEST

START_TEST(refused_join_may_be_tried_again_at_once)
{
	rejoins = 0;
	ask_join(0, 1, SA_JOIN_FULL);
	answer_at(0, 0x200, 0, 2);
	ck_assert_uint_eq(n_sent, 2);
	answer(1, 0xc001);
	ck_assert_uint_eq(lid_of[0], 0xc001);
}
END_TEST

START_TEST(memberships_are_renewed_without_a_word_to_members)
{
	ask_join(0, 1, SA_JOIN_FULL);
	answer(0, 0xc001);
	sa_agent_subnet(&agent, &(struct sa_subnet){ 3, 9, 0, true }, false, at_ms(3));
	ck_assert_uint_eq(n_sent, 2);
	ck_assert_uint_eq(sent[1].msg.hdr.method, SA_METHOD_SET);
	answer(1, 0xc001);
	ck_assert_int_eq(n_done[0], 1);
}
END_TEST

START_TEST(members_are_told_when_the_group_is_another)
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
END_TEST

START_TEST(who_was_told_joins_anew)
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
END_TEST

START_TEST(a_port_that_is_down_renews_nothing)
{
	ask_join(0, 1, SA_JOIN_FULL);
	answer(0, 0xc001);
	sa_agent_subnet(&agent, &(struct sa_subnet){ 3, 1, 0, false }, false, at_ms(3));
	ck_assert_uint_eq(n_sent, 1);
	sa_agent_subnet(&agent, &(struct sa_subnet){ 3, 1, 0, true }, false, at_ms(4));
	ck_assert_uint_eq(n_sent, 2);
}
END_TEST

START_TEST(join_that_is_withdrawn_is_taken_back)
{
	ask_join(0, 1, SA_JOIN_FULL);
	withdraw(0);
	ck_assert_uint_eq(sent[1].msg.hdr.method, SA_METHOD_DELETE);
	answer(1, 0);
	ck_assert_int_eq(n_done[0], 0);
	ck_assert_uint_eq(agent.n_groups, 0);
}
END_TEST

static TCase *path_tests(void)
{
	TCase *tcase = tcase_create("paths");

	tcase_add_checked_fixture(tcase, begin, end);
	tcase_add_test(tcase, same_question_is_asked_once);
	tcase_add_test(tcase, many_questions_are_each_asked_once);
	tcase_add_test(tcase, known_path_is_not_asked_for);
	tcase_add_test(tcase, other_question_is_asked);
	tcase_add_test(tcase, path_is_asked_for_anew_after_a_minute);
	tcase_add_test(tcase, refusal_is_not_remembered);
	tcase_add_test(tcase, revalidated_path_is_asked_for_anew);
	tcase_add_loop_test(tcase, change_of_the_subnet_drops_all_paths, 0, 4);
	tcase_add_test(tcase, no_change_drops_nothing);
	tcase_add_test(tcase, new_administrator_gets_what_is_under_way);
	tcase_add_test(tcase, withdrawn_question_stops);
	tcase_add_test(tcase, question_goes_on_for_who_is_left);
	tcase_add_test(tcase, more_paths_than_there_is_room_for_are_found_or_asked);
	return tcase;
}

static TCase *group_tests(void)
{
	TCase *tcase = tcase_create("groups");

	tcase_add_checked_fixture(tcase, begin, end);
	tcase_add_test(tcase, group_is_joined_once_for_two);
	tcase_add_test(tcase, only_the_last_leaves);
	tcase_add_test(tcase, sending_only_is_a_membership_of_its_own);
	tcase_add_test(tcase, unanswered_leave_is_given_up);
	tcase_add_test(tcase, who_comes_while_it_is_left_joins_afterwards);
	tcase_add_test(tcase, refused_join_leaves_nothing);
	tcase_add_test(tcase, who_withdraws_while_another_hears_of_the_refusal_hears_nothing);
	tcase_add_test(tcase, refused_join_may_be_tried_again_at_once);
	tcase_add_test(tcase, memberships_are_renewed_without_a_word_to_members);
	tcase_add_test(tcase, members_are_told_when_the_group_is_another);
	tcase_add_test(tcase, who_was_told_joins_anew);
	tcase_add_test(tcase, a_port_that_is_down_renews_nothing);
	tcase_add_test(tcase, join_that_is_withdrawn_is_taken_back);
	return tcase;
}

int main(void)
{
	Suite *suite = suite_create("agent");
	SRunner *runner;
	int failed;

	suite_add_tcase(suite, path_tests());
	suite_add_tcase(suite, group_tests());
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

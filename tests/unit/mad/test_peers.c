/* SPDX-License-Identifier: BSD-2-Clause */
/* mad/peers.c: by which way, and to which queue pair of whom. Time is an argument. */
#include <check.h>
#include <stdlib.h>

#include "mad/peers.h"

#define NOW_NS UINT64_C(77000000000000)
#define MS_NS  UINT64_C(1000000)
#define QPN    0x4711
#define ID     0x701 /* of a question */
#define NO_ID  0

static const struct mad_gid bob = {
	{0xfe, 0x80, [15] = 1}
};

static struct peers peers;

static void setup(void)
{
	peers = (struct peers){ 0 };
}

static uint32_t qpn_after(const struct mad_gid *gid, uint64_t ms)
{
	return peers_qpn(&peers, gid, true, NOW_NS + ms * MS_NS);
}

static void hear_after(const struct mad_gid *gid, uint32_t qpn, uint64_t ms)
{
	peers_heard(&peers, gid, qpn, NOW_NS + ms * MS_NS);
}

static void unanswered_after(const struct mad_gid *gid, uint64_t ms)
{
	peers_unanswered(&peers, gid, NO_ID, NOW_NS + ms * MS_NS);
}

static struct mad_gid stranger(unsigned int number)
{
	return (struct mad_gid){
		{0xfd, [14] = (uint8_t)(number >> 8), [15] = (uint8_t)number}
	};
}

/* Another peer who has bob's slot: with bob known there, hearing of him forgets bob. */
static struct mad_gid rival_of_bob(void)
{
	for (unsigned int i = 0; i < 64 * PEERS; i++) {
		struct mad_gid gid = stranger(i);

		setup();
		hear_after(&bob, QPN, 0);
		hear_after(&gid, QPN, 0);
		if (qpn_after(&bob, 0) == PEER_QP1) {
			setup();
			return gid;
		}
	}
	ck_abort_msg("nobody falls together with him");
	return bob;
}

START_TEST(a_peer_nobody_has_heard_of_is_sent_to_qp1)
{
	ck_assert_uint_eq(qpn_after(&bob, 0), PEER_QP1);
}
END_TEST

START_TEST(a_peer_is_answered_where_he_sends_from)
{
	hear_after(&bob, QPN, 0);
	ck_assert_uint_eq(qpn_after(&bob, 0), QPN);
}
END_TEST

START_TEST(what_was_heard_holds_for_a_second)
{
	hear_after(&bob, QPN, 0);
	ck_assert_uint_eq(qpn_after(&bob, 1000), QPN);
	ck_assert_uint_eq(qpn_after(&bob, 1001), PEER_QP1);
}
END_TEST

START_TEST(each_message_begins_another_second)
{
	hear_after(&bob, QPN, 0);
	hear_after(&bob, QPN, 900);
	ck_assert_uint_eq(qpn_after(&bob, 1800), QPN);
}
END_TEST

START_TEST(the_queue_pair_heard_last_counts)
{
	hear_after(&bob, QPN, 0);
	hear_after(&bob, QPN + 1, 1);
	ck_assert_uint_eq(qpn_after(&bob, 2), QPN + 1);
}
END_TEST

START_TEST(queue_pairs_0_and_1_teach_nothing)
{
	for (uint32_t qpn = 0; qpn <= PEER_QP1; qpn++) {
		hear_after(&bob, qpn, 0);
		ck_assert_uint_eq(qpn_after(&bob, 0), PEER_QP1);
		hear_after(&bob, QPN, 1);
		hear_after(&bob, qpn, 2);
		ck_assert_uint_eq(qpn_after(&bob, 3), QPN);
		setup();
	}
}
END_TEST

START_TEST(whoever_does_not_answer_is_sent_to_qp1)
{
	hear_after(&bob, QPN, 0);
	unanswered_after(&bob, 1);
	ck_assert_uint_eq(qpn_after(&bob, 1), PEER_QP1);
}
END_TEST

START_TEST(own_queue_pair_is_avoided_for_ten_seconds_although_it_is_heard)
{
	hear_after(&bob, QPN, 0);
	unanswered_after(&bob, 0);
	hear_after(&bob, QPN, 9999);
	ck_assert_uint_eq(qpn_after(&bob, 9999), PEER_QP1);
	hear_after(&bob, QPN, 10000);
	ck_assert_uint_eq(qpn_after(&bob, 10000), QPN);
}
END_TEST

START_TEST(a_new_queue_pair_is_avoided_as_well)
{
	hear_after(&bob, QPN, 0);
	unanswered_after(&bob, 1);
	hear_after(&bob, QPN + 1, 2);
	ck_assert_uint_eq(qpn_after(&bob, 3), PEER_QP1);
}
END_TEST

/* A second message that is repeated must not count against QP1. */
START_TEST(a_second_unanswered_message_changes_nothing)
{
	hear_after(&bob, QPN, 0);
	unanswered_after(&bob, 0);
	unanswered_after(&bob, 5000);
	hear_after(&bob, QPN, 9999);
	ck_assert_uint_eq(qpn_after(&bob, 9999), PEER_QP1);
	hear_after(&bob, QPN, 10000);
	ck_assert_uint_eq(qpn_after(&bob, 10000), QPN);
}
END_TEST

START_TEST(only_the_peer_that_did_not_answer_is_avoided)
{
	struct mad_gid carol = stranger(1);

	hear_after(&bob, QPN, 0);
	hear_after(&carol, QPN, 0);
	unanswered_after(&carol, 1);
	ck_assert_uint_eq(qpn_after(&bob, 2), QPN);
}
END_TEST

/* They differ in the last byte alone. */
START_TEST(hosts_of_a_subnet_are_not_in_each_others_way)
{
	const struct mad_gid subnet[] = { { { [10] = 0xff, [11] = 0xff, [12] = 10, [13] = 77 } },
					  { { 0xfd, 0, 0, 0x77 } },
					  { { 0xfe, 0x80, [8] = 0x50, 0x54, 0, 0xff, 0xfe, 0x77,
					      0 } } };
	struct mad_gid gid = subnet[_i];

	for (unsigned int host = 1; host < 255; host++) {
		gid.raw[15] = (uint8_t)host;
		hear_after(&gid, QPN + host, 0);
	}
	for (unsigned int host = 1; host < 255; host++) {
		gid.raw[15] = (uint8_t)host;
		ck_assert_uint_eq(qpn_after(&gid, 0), QPN + host);
	}
}
END_TEST

START_TEST(of_two_peers_in_one_slot_the_other_is_sent_to_qp1)
{
	struct mad_gid rival = rival_of_bob();

	hear_after(&bob, QPN, 0);
	hear_after(&rival, QPN + 1, 1);
	ck_assert_uint_eq(qpn_after(&rival, 2), QPN + 1);
	ck_assert_uint_eq(qpn_after(&bob, 2), PEER_QP1);
}
END_TEST

START_TEST(an_unanswered_message_does_not_touch_another_peer_in_the_slot)
{
	struct mad_gid rival = rival_of_bob();

	hear_after(&rival, QPN, 0);
	unanswered_after(&bob, 1);
	ck_assert_uint_eq(qpn_after(&rival, 2), QPN);
}
END_TEST

START_TEST(a_new_peer_in_a_slot_is_not_avoided)
{
	struct mad_gid rival = rival_of_bob();

	hear_after(&bob, QPN, 0);
	unanswered_after(&bob, 1);
	hear_after(&rival, QPN, 2);
	ck_assert_uint_eq(qpn_after(&rival, 3), QPN);
}
END_TEST

/* --- a way that is in vain ----------------------------------------------- */

static void ask_after(uint32_t id, uint64_t ms)
{
	peers_asked(&peers, &bob, id, NOW_NS + ms * MS_NS);
}

static void ask_again_after(uint32_t id, uint64_t ms)
{
	peers_unanswered(&peers, &bob, id, NOW_NS + ms * MS_NS);
}

static void answer_after(uint32_t id, uint64_t ms)
{
	peers_answered(&peers, &bob, id, NOW_NS + ms * MS_NS);
}

static uint32_t answers_way_after(const struct mad_gid *gid, uint64_t ms)
{
	return peers_qpn(&peers, gid, false, NOW_NS + ms * MS_NS);
}

static void reach_after(uint64_t ms)
{
	ask_after(ID, ms);
	answer_after(ID, ms);
}

static void fail_after(uint64_t ms)
{
	ask_after(ID, ms);
	ask_again_after(ID, ms + 1000);
	answer_after(ID, ms + 1001);
}

START_TEST(an_answer_to_a_peer_whom_nothing_has_reached_goes_through_umad)
{
	ck_assert_uint_eq(answers_way_after(&bob, 0), PEER_BY_UMAD);
	ask_after(ID, 0);
	ck_assert_uint_eq(answers_way_after(&bob, 1), PEER_BY_UMAD);
}
END_TEST

START_TEST(an_answer_to_a_peer_who_was_reached_leaves_from_a_queue_pair_of_ours)
{
	reach_after(0);
	ck_assert_uint_eq(answers_way_after(&bob, 3600000), PEER_QP1);
}
END_TEST

START_TEST(what_was_not_asked_proves_nothing)
{
	answer_after(ID, 0);
	ask_after(ID, 0);
	answer_after(ID + 1, 1);
	answer_after(NO_ID, 1);
	ck_assert_uint_eq(answers_way_after(&bob, 2), PEER_BY_UMAD);
}
END_TEST

START_TEST(what_is_asked_again_goes_through_umad_with_all_that_follows_for_ten_seconds)
{
	ask_after(ID, 0);
	ask_again_after(ID, 1000);
	ck_assert_uint_eq(qpn_after(&bob, 1000), PEER_BY_UMAD);
	ck_assert_uint_eq(qpn_after(&bob, 10999), PEER_BY_UMAD);
	ck_assert_uint_eq(qpn_after(&bob, 11000), PEER_QP1);
}
END_TEST

START_TEST(each_time_that_it_was_in_vain_the_way_is_avoided_twice_as_long)
{
	uint64_t at = 0, s = 10;
	unsigned int i;

	for (i = 0; i < 12; i++) {
		fail_after(at);
		at += 1001 + s * 1000;
		ck_assert_uint_eq(qpn_after(&bob, at - 1), PEER_BY_UMAD);
		ck_assert_uint_eq(qpn_after(&bob, at), PEER_QP1);
		s *= i < 8 ? 2 : 1;
	}
}
END_TEST

START_TEST(when_he_was_reached_it_begins_anew)
{
	fail_after(0);
	fail_after(11001);
	reach_after(100000);
	fail_after(110000);
	ck_assert_uint_eq(qpn_after(&bob, 121001), PEER_QP1);
}
END_TEST

START_TEST(a_peer_who_is_not_there_says_nothing_about_the_way)
{
	unsigned int i;

	for (i = 0; i < 5; i++) {
		ask_after(ID + i, 20000 * i);
		ask_again_after(ID + i, 20000 * i + 1000);
		ck_assert_uint_eq(qpn_after(&bob, 20000 * i + 11000), PEER_QP1);
	}
}
END_TEST

START_TEST(a_peer_who_was_reached_just_now_is_slow_or_loses_a_packet)
{
	reach_after(0);
	ask_after(ID + 1, 500);
	ask_again_after(ID + 1, 1500);
	ck_assert_uint_eq(qpn_after(&bob, 1501), PEER_QP1);
	ck_assert_uint_eq(answers_way_after(&bob, 1501), PEER_QP1);
}
END_TEST

START_TEST(a_way_that_was_good_and_is_so_no_more_is_avoided)
{
	reach_after(0);
	fail_after(60000);
	ck_assert_uint_eq(qpn_after(&bob, 61002), PEER_BY_UMAD);
	ck_assert_uint_eq(answers_way_after(&bob, 72000), PEER_BY_UMAD);
}
END_TEST

START_TEST(of_many_questions_the_first_that_is_open_counts)
{
	ask_after(ID, 0);
	ask_after(ID + 1, 1);
	answer_after(ID + 1, 2);
	ck_assert_uint_eq(answers_way_after(&bob, 3), PEER_BY_UMAD);
	answer_after(ID, 4);
	ck_assert_uint_eq(answers_way_after(&bob, 5), PEER_QP1);
}
END_TEST

START_TEST(a_question_that_was_given_up_makes_room_for_another)
{
	ask_after(ID, 0);
	ask_after(ID + 1, 3000);
	answer_after(ID + 1, 3001);
	ck_assert_uint_eq(answers_way_after(&bob, 3002), PEER_QP1);
}
END_TEST

START_TEST(where_nobody_was_ever_reached_the_way_is_avoided_with_all)
{
	struct mad_gid carol = stranger(1);

	ck_assert_uint_eq(qpn_after(&carol, 0), PEER_QP1);
	fail_after(0);
	ck_assert_uint_eq(qpn_after(&carol, 1002), PEER_BY_UMAD);
	ck_assert_uint_eq(qpn_after(&carol, 11001), PEER_QP1);
}
END_TEST

START_TEST(where_somebody_was_reached_others_are_tried)
{
	struct mad_gid carol = stranger(1);

	peers_asked(&peers, &carol, ID, NOW_NS);
	peers_answered(&peers, &carol, ID, NOW_NS);
	fail_after(10000);
	ck_assert_uint_eq(qpn_after(&bob, 11002), PEER_BY_UMAD);
	ck_assert_uint_eq(qpn_after(&carol, 11002), PEER_QP1);
	ck_assert_uint_eq(qpn_after(&(struct mad_gid){ { 0xfe } }, 11002), PEER_QP1);
}
END_TEST

START_TEST(who_asks_again_has_not_been_reached)
{
	reach_after(0);
	peers_missed(&peers, &bob, NOW_NS + 1999 * MS_NS);
	ck_assert_uint_eq(answers_way_after(&bob, 2000), PEER_QP1);
	peers_missed(&peers, &bob, NOW_NS + 2000 * MS_NS);
	ck_assert_uint_eq(answers_way_after(&bob, 2000), PEER_BY_UMAD);
	ck_assert_uint_eq(qpn_after(&bob, 2000), PEER_QP1);
}
END_TEST

/* A DREQ that goes there would overtake an RTU that does not. */
START_TEST(an_answer_goes_to_his_own_queue_pair_as_all_does)
{
	hear_after(&bob, QPN, 0);
	ck_assert_uint_eq(answers_way_after(&bob, 1), QPN);
	fail_after(2);
	hear_after(&bob, QPN, 20000);
	ck_assert_uint_eq(answers_way_after(&bob, 20001), QPN);
	ck_assert_uint_eq(answers_way_after(&bob, 21001), PEER_BY_UMAD);
}
END_TEST

/* Else each would make the other's messages be lost, one by one. */
START_TEST(of_two_peers_in_one_slot_both_go_through_umad_if_one_has_to)
{
	struct mad_gid rival = rival_of_bob();

	fail_after(0);
	hear_after(&rival, QPN, 1002);
	ck_assert_uint_eq(qpn_after(&rival, 1003), PEER_BY_UMAD);
	ck_assert_uint_eq(qpn_after(&bob, 1003), PEER_BY_UMAD);
}
END_TEST

static void add_ways(TCase *tc)
{
	tcase_add_test(tc, an_answer_to_a_peer_whom_nothing_has_reached_goes_through_umad);
	tcase_add_test(tc, an_answer_to_a_peer_who_was_reached_leaves_from_a_queue_pair_of_ours);
	tcase_add_test(tc, what_was_not_asked_proves_nothing);
	tcase_add_test(tc,
		       what_is_asked_again_goes_through_umad_with_all_that_follows_for_ten_seconds);
	tcase_add_test(tc, each_time_that_it_was_in_vain_the_way_is_avoided_twice_as_long);
	tcase_add_test(tc, when_he_was_reached_it_begins_anew);
	tcase_add_test(tc, a_peer_who_is_not_there_says_nothing_about_the_way);
	tcase_add_test(tc, a_peer_who_was_reached_just_now_is_slow_or_loses_a_packet);
	tcase_add_test(tc, a_way_that_was_good_and_is_so_no_more_is_avoided);
	tcase_add_test(tc, of_many_questions_the_first_that_is_open_counts);
	tcase_add_test(tc, a_question_that_was_given_up_makes_room_for_another);
	tcase_add_test(tc, where_nobody_was_ever_reached_the_way_is_avoided_with_all);
	tcase_add_test(tc, where_somebody_was_reached_others_are_tried);
	tcase_add_test(tc, who_asks_again_has_not_been_reached);
	tcase_add_test(tc, an_answer_goes_to_his_own_queue_pair_as_all_does);
	tcase_add_test(tc, of_two_peers_in_one_slot_both_go_through_umad_if_one_has_to);
}

static Suite *make_suite(void)
{
	Suite *suite = suite_create("peers");
	TCase *tc = tcase_create("queue pairs of peers");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, a_peer_nobody_has_heard_of_is_sent_to_qp1);
	tcase_add_test(tc, a_peer_is_answered_where_he_sends_from);
	tcase_add_test(tc, what_was_heard_holds_for_a_second);
	tcase_add_test(tc, each_message_begins_another_second);
	tcase_add_test(tc, the_queue_pair_heard_last_counts);
	tcase_add_test(tc, queue_pairs_0_and_1_teach_nothing);
	tcase_add_test(tc, whoever_does_not_answer_is_sent_to_qp1);
	tcase_add_test(tc, own_queue_pair_is_avoided_for_ten_seconds_although_it_is_heard);
	tcase_add_test(tc, a_new_queue_pair_is_avoided_as_well);
	tcase_add_test(tc, a_second_unanswered_message_changes_nothing);
	tcase_add_test(tc, only_the_peer_that_did_not_answer_is_avoided);
	tcase_add_loop_test(tc, hosts_of_a_subnet_are_not_in_each_others_way, 0, 3);
	tcase_add_test(tc, of_two_peers_in_one_slot_the_other_is_sent_to_qp1);
	tcase_add_test(tc, an_unanswered_message_does_not_touch_another_peer_in_the_slot);
	tcase_add_test(tc, a_new_peer_in_a_slot_is_not_avoided);
	add_ways(tc);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	SRunner *runner = srunner_create(make_suite());
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

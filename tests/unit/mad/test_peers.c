/* SPDX-License-Identifier: BSD-2-Clause */
/* mad/peers.c: to which queue pair of whom. Time is an argument. */
#include <check.h>
#include <stdlib.h>

#include "mad/peers.h"

#define NOW_NS UINT64_C(77000000000000)
#define MS_NS  UINT64_C(1000000)
#define QPN    0x4711

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
	return peers_qpn(&peers, gid, NOW_NS + ms * MS_NS);
}

static void hear_after(const struct mad_gid *gid, uint32_t qpn, uint64_t ms)
{
	peers_heard(&peers, gid, qpn, NOW_NS + ms * MS_NS);
}

static void doubt_after(const struct mad_gid *gid, uint64_t ms)
{
	peers_doubt(&peers, gid, NOW_NS + ms * MS_NS);
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
	doubt_after(&bob, 1);
	ck_assert_uint_eq(qpn_after(&bob, 1), PEER_QP1);
}
END_TEST

START_TEST(a_doubt_lasts_ten_seconds_although_he_is_heard)
{
	hear_after(&bob, QPN, 0);
	doubt_after(&bob, 0);
	hear_after(&bob, QPN, 9999);
	ck_assert_uint_eq(qpn_after(&bob, 9999), PEER_QP1);
	hear_after(&bob, QPN, 10000);
	ck_assert_uint_eq(qpn_after(&bob, 10000), QPN);
}
END_TEST

START_TEST(a_new_queue_pair_does_not_end_the_doubt)
{
	hear_after(&bob, QPN, 0);
	doubt_after(&bob, 1);
	hear_after(&bob, QPN + 1, 2);
	ck_assert_uint_eq(qpn_after(&bob, 3), PEER_QP1);
}
END_TEST

/* A second message that is repeated must not take the first one's doubt for that of QP1. */
START_TEST(a_second_doubt_changes_nothing)
{
	hear_after(&bob, QPN, 0);
	doubt_after(&bob, 0);
	doubt_after(&bob, 5000);
	hear_after(&bob, QPN, 9999);
	ck_assert_uint_eq(qpn_after(&bob, 9999), PEER_QP1);
	hear_after(&bob, QPN, 10000);
	ck_assert_uint_eq(qpn_after(&bob, 10000), QPN);
}
END_TEST

START_TEST(doubt_of_one_is_no_doubt_of_another)
{
	struct mad_gid carol = stranger(1);

	hear_after(&bob, QPN, 0);
	hear_after(&carol, QPN, 0);
	doubt_after(&carol, 1);
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

START_TEST(doubt_of_one_does_not_touch_who_has_his_slot)
{
	struct mad_gid rival = rival_of_bob();

	hear_after(&rival, QPN, 0);
	doubt_after(&bob, 1);
	ck_assert_uint_eq(qpn_after(&rival, 2), QPN);
}
END_TEST

START_TEST(who_comes_into_a_slot_does_not_inherit_the_doubt)
{
	struct mad_gid rival = rival_of_bob();

	hear_after(&bob, QPN, 0);
	doubt_after(&bob, 1);
	hear_after(&rival, QPN, 2);
	ck_assert_uint_eq(qpn_after(&rival, 3), QPN);
}
END_TEST

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
	tcase_add_test(tc, a_doubt_lasts_ten_seconds_although_he_is_heard);
	tcase_add_test(tc, a_new_queue_pair_does_not_end_the_doubt);
	tcase_add_test(tc, a_second_doubt_changes_nothing);
	tcase_add_test(tc, doubt_of_one_is_no_doubt_of_another);
	tcase_add_loop_test(tc, hosts_of_a_subnet_are_not_in_each_others_way, 0, 3);
	tcase_add_test(tc, of_two_peers_in_one_slot_the_other_is_sent_to_qp1);
	tcase_add_test(tc, doubt_of_one_does_not_touch_who_has_his_slot);
	tcase_add_test(tc, who_comes_into_a_slot_does_not_inherit_the_doubt);
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

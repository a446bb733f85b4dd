/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mad/sender.c on a device that does not exist: to which queue pair messages go, which have to go
 * through umad, and that all is given back. test_inbox.c has what arrives.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mad/inbox.h"
#include "mad/sender.h"
#include "verbs_fake.h"

#define QPN	 0x4711
#define V4_INDEX 1
#define V6_INDEX 2
#define V1_INDEX 3

#define OWN_V4	 "10.77.0.1"
#define OWN_V6	 "fd00:77::1"
#define PEER_V4	 "10.77.0.2"
#define PEER_V6	 "fd00:77::2"

static struct mad_sender *sender;
static uint8_t mad[MAD_BYTES];

static void setup(void)
{
	struct ibv_context *context = set_up_fake_verbs();

	add_gid(OWN_V4, V4_INDEX, IBV_GID_TYPE_ROCE_V2);
	add_gid(OWN_V6, V6_INDEX, IBV_GID_TYPE_ROCE_V2);
	add_gid("10.77.1.1", V1_INDEX, IBV_GID_TYPE_ROCE_V1);
	ck_assert_int_eq(mad_sender_open(context, 1, &sender), 0);
	for (int i = 0; i < MAD_BYTES; i++)
		mad[i] = (uint8_t)i;
}

static void teardown(void)
{
	mad_sender_close(sender);
	ck_assert_int_eq(verbs.n_made, 0);
}

static struct mad_path path_to(const char *address, uint8_t sgid_index)
{
	return (struct mad_path){
		.grh = true, .sgid_index = sgid_index, .hop_limit = 64, .dgid = gid_of(address)
	};
}

/* Return: to which queue pair a message to an address went; 0: it has to go through umad. */
static uint32_t qpn_to(const char *address, uint8_t sgid_index)
{
	struct mad_path path = path_to(address, sgid_index);
	int before = verbs.n_sent;
	int err = mad_sender_send(sender, &path, mad);

	if (err == -EAGAIN)
		return 0;
	ck_assert_int_eq(err, 0);
	ck_assert_int_eq(verbs.n_sent, before + 1);
	return verbs.sent[before].qpn;
}

/* --- sending ------------------------------------------------------------- */

START_TEST(the_first_message_to_a_peer_goes_to_qp1)
{
	ck_assert_uint_eq(qpn_to(PEER_V4, V4_INDEX), 1);
	ck_assert_uint_eq(verbs.sent[0].qkey, 0x80010000);
	ck_assert_mem_eq(verbs.sent[0].mad, mad, MAD_BYTES);
}
END_TEST

START_TEST(a_message_leaves_along_its_path)
{
	struct mad_path path = path_to(PEER_V6, V6_INDEX);
	const struct ibv_ah_attr *ah = &verbs.sent[0].ah;

	path.traffic_class = 0xb8;
	path.sl = 5;
	ck_assert_int_eq(mad_sender_send(sender, &path, mad), 0);
	ck_assert_mem_eq(&ah->grh.dgid, &path.dgid, sizeof(path.dgid));
	ck_assert_uint_eq(ah->grh.sgid_index, V6_INDEX);
	ck_assert_uint_eq(ah->grh.traffic_class, 0xb8);
	ck_assert_uint_eq(ah->grh.hop_limit, 64);
	ck_assert_uint_eq(ah->sl, 5);
	ck_assert_uint_eq(ah->port_num, 1);
}
END_TEST

START_TEST(a_peer_that_was_heard_sending_from_his_own_queue_pair_is_answered_there)
{
	struct mad_gid gid = gid_of(PEER_V4);

	mad_sender_heard(sender, &gid, QPN);
	ck_assert_uint_eq(qpn_to(PEER_V4, V4_INDEX), QPN);
	ck_assert_uint_eq(verbs.sent[0].qkey, 0x80010000);
}
END_TEST

START_TEST(a_kernel_is_answered_at_qp1)
{
	struct mad_gid gid = gid_of(PEER_V4);

	mad_sender_heard(sender, &gid, 1);
	ck_assert_uint_eq(qpn_to(PEER_V4, V4_INDEX), 1);
}
END_TEST

START_TEST(one_that_does_not_answer_is_sent_to_qp1_again)
{
	struct mad_gid gid = gid_of(PEER_V4);

	mad_sender_heard(sender, &gid, QPN);
	mad_sender_doubt(sender, &gid);
	ck_assert_uint_eq(qpn_to(PEER_V4, V4_INDEX), 1);
	mad_sender_heard(sender, &gid, QPN);
	ck_assert_uint_eq(qpn_to(PEER_V4, V4_INDEX), 1);
}
END_TEST

START_TEST(held_messages_go_to_the_queue_pair_that_was_known_when_they_came)
{
	struct mad_path path = path_to(PEER_V4, V4_INDEX);

	ck_assert_int_eq(mad_sender_hold(sender, &path, mad), 0);
	mad_sender_heard(sender, &path.dgid, QPN);
	ck_assert_int_eq(mad_sender_hold(sender, &path, mad), 0);
	ck_assert_int_eq(verbs.n_sent, 0);
	ck_assert_uint_eq(mad_sender_release(sender), 0);
	ck_assert_int_eq(verbs.n_sent, 2);
	ck_assert_uint_eq(verbs.sent[0].qpn, 1);
	ck_assert_uint_eq(verbs.sent[1].qpn, QPN);
}
END_TEST

START_TEST(what_has_no_grh_goes_through_umad)
{
	struct mad_path path = path_to(PEER_V4, V4_INDEX);

	path.grh = false;
	ck_assert_int_eq(mad_sender_send(sender, &path, mad), -EAGAIN);
	ck_assert_int_eq(mad_sender_hold(sender, &path, mad), -EAGAIN);
}
END_TEST

/* A peer could answer to it here, where nothing says which of the two it was. */
START_TEST(a_gid_that_two_interfaces_share_goes_through_umad)
{
	struct mad_path path = path_to(PEER_V6, 7);

	add_gid("fe80::1", 7, IBV_GID_TYPE_ROCE_V2);
	add_gid("fe80::1", 8, IBV_GID_TYPE_ROCE_V2);
	ck_assert_uint_eq(qpn_to(PEER_V6, 7), 0);
	ck_assert_uint_eq(qpn_to(PEER_V6, 8), 0);
	ck_assert(!mad_sender_is_ready(sender, &path));
}
END_TEST

START_TEST(a_gid_of_roce_v1_goes_through_umad)
{
	ck_assert_uint_eq(qpn_to(PEER_V4, V1_INDEX), 0);
}
END_TEST

START_TEST(a_gid_index_that_is_empty_goes_through_umad)
{
	ck_assert_uint_eq(qpn_to(PEER_V4, 9), 0);
}
END_TEST

START_TEST(a_second_port_with_the_same_gid_is_in_nobodys_way)
{
	add_gid(OWN_V4, V4_INDEX, IBV_GID_TYPE_ROCE_V2);
	verbs.gid[verbs.n_gids - 1].port_num = 2;
	ck_assert_uint_eq(qpn_to(PEER_V4, V4_INDEX), 1);
}
END_TEST

START_TEST(a_handle_is_made_once_for_each_peer)
{
	struct mad_path path = path_to(PEER_V4, V4_INDEX);
	int n_made;

	ck_assert(!mad_sender_is_ready(sender, &path));
	qpn_to(PEER_V4, V4_INDEX);
	ck_assert(mad_sender_is_ready(sender, &path));
	n_made = verbs.n_made;
	qpn_to(PEER_V4, V4_INDEX);
	ck_assert_int_eq(verbs.n_made, n_made);
}
END_TEST

START_TEST(an_address_that_has_become_shared_is_not_sent_from_after_forgetting)
{
	ck_assert_uint_eq(qpn_to(PEER_V4, V4_INDEX), 1);
	add_gid(OWN_V4, 8, IBV_GID_TYPE_ROCE_V2);
	mad_sender_forget(sender);
	ck_assert_uint_eq(qpn_to(PEER_V4, V4_INDEX), 0);
}
END_TEST

START_TEST(a_hundred_thousand_peers_need_no_more_than_the_handles_that_are_kept)
{
	struct mad_path path = path_to(PEER_V6, V6_INDEX);

	for (unsigned int i = 0; i < 100000; i++) {
		memcpy(&path.dgid.raw[12], &i, sizeof(i));
		verbs.n_sent = 0;
		ck_assert_int_eq(mad_sender_send(sender, &path, mad), 0);
	}
	ck_assert_int_lt(verbs.n_made, 600);
}
END_TEST

START_TEST(a_queue_pair_that_broke_is_left_for_umad)
{
	struct mad_path path = path_to(PEER_V4, V4_INDEX);

	flush_queue_pair();
	ck_assert_int_eq(mad_sender_send(sender, &path, mad), 0); /* it learns from this one */
	ck_assert_uint_eq(qpn_to(PEER_V4, V4_INDEX), 0);
}
END_TEST

/* --- beginning and end --------------------------------------------------- */

START_TEST(whatever_fails_in_opening_all_is_given_back)
{
	struct ibv_context *context = set_up_fake_verbs();
	int err;

	do {
		verbs.n_calls = 0;
		/* Of the slots, which are all alike, some will do. */
		verbs.fails_at += verbs.fails_at > 20 && verbs.fails_at < INBOX_SLOTS ? 97 : 1;
		err = mad_sender_open(context, 1, &sender);
		ck_assert_int_le(err, 0);
		if (err)
			ck_assert_int_eq(verbs.n_made, 0);
	} while (err);
	ck_assert_int_gt(verbs.fails_at, INBOX_SLOTS);
	mad_sender_close(sender);
	ck_assert_int_eq(verbs.n_made, 0);
}
END_TEST

START_TEST(a_device_without_room_for_a_message_inline_is_not_used)
{
	struct ibv_context *context = set_up_fake_verbs();

	verbs.max_inline = MAD_BYTES - 1;
	ck_assert_int_eq(mad_sender_open(context, 1, &sender), -EOPNOTSUPP);
	ck_assert_int_eq(verbs.n_made, 0);
}
END_TEST

START_TEST(infiniband_is_not_served)
{
	struct ibv_context *context = set_up_fake_verbs();

	verbs.link_layer = IBV_LINK_LAYER_INFINIBAND;
	ck_assert_int_eq(mad_sender_open(context, 1, &sender), -EOPNOTSUPP);
	ck_assert_int_eq(verbs.n_made, 0);
}
END_TEST

static TCase *sending(void)
{
	TCase *tc = tcase_create("sending");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, the_first_message_to_a_peer_goes_to_qp1);
	tcase_add_test(tc, a_message_leaves_along_its_path);
	tcase_add_test(tc, a_peer_that_was_heard_sending_from_his_own_queue_pair_is_answered_there);
	tcase_add_test(tc, a_kernel_is_answered_at_qp1);
	tcase_add_test(tc, one_that_does_not_answer_is_sent_to_qp1_again);
	tcase_add_test(tc, held_messages_go_to_the_queue_pair_that_was_known_when_they_came);
	tcase_add_test(tc, what_has_no_grh_goes_through_umad);
	tcase_add_test(tc, a_gid_that_two_interfaces_share_goes_through_umad);
	tcase_add_test(tc, a_gid_of_roce_v1_goes_through_umad);
	tcase_add_test(tc, a_gid_index_that_is_empty_goes_through_umad);
	tcase_add_test(tc, a_second_port_with_the_same_gid_is_in_nobodys_way);
	tcase_add_test(tc, a_handle_is_made_once_for_each_peer);
	tcase_add_test(tc, a_queue_pair_that_broke_is_left_for_umad);
	tcase_add_test(tc, an_address_that_has_become_shared_is_not_sent_from_after_forgetting);
	tcase_add_test(tc, a_hundred_thousand_peers_need_no_more_than_the_handles_that_are_kept);
	return tc;
}

static TCase *opening(void)
{
	TCase *tc = tcase_create("opening");

	tcase_add_test(tc, whatever_fails_in_opening_all_is_given_back);
	tcase_add_test(tc, a_device_without_room_for_a_message_inline_is_not_used);
	tcase_add_test(tc, infiniband_is_not_served);
	return tc;
}

int main(void)
{
	Suite *suite = suite_create("sender");
	SRunner *runner;
	int failed;

	suite_add_tcase(suite, sending());
	suite_add_tcase(suite, opening());
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

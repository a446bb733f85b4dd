/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a user who asks for as much as he can, and a host of the network that does, leave to others:
 * places in queues, and time. Mallory is a user, Bob another.
 */
#include "tests/unit/portd/scene.h"
#include "tests/unit/test.h"

#define MALLORY	       1001
#define BOB	       1002
#define N_CLIENTS      6
#define FIRST_STRANGER 20 /* hosts, see rig_peer() */

static struct rig_client mallory[N_CLIENTS];
static struct rig_client bob;

static void set_up(void)
{
	unsigned int i;

	scene_set_up();
	rig_come_as_user(BOB);
	rig_join(&bob);
	rig_come_as_user(MALLORY);
	for (i = 0; i < N_CLIENTS; i++)
		rig_join(&mallory[i]);
}

/* As many as a datagram takes, @n_datagrams times, to one host after the other. */
static void fill_with_reqs(const struct rig_client *client, unsigned int n_datagrams)
{
	struct portd_record record = { .type = PORTD_MAD, .mad = { .port = client->handle } };
	struct portd_datagram out;
	struct cm_msg req;
	uint32_t n = 0;

	for (; n_datagrams; n_datagrams--) {
		out = (struct portd_datagram){ .bytes = 0 };
		do {
			n++;
			req = scene_req(client, n);
			cm_msg_encode(&req, record.mad.mad);
			record.mad.path = rig_peer((uint8_t)(FIRST_STRANGER + n % 64));
		} while (portd_put(&out, &record));
		rig_put(client->data, out.data, out.bytes, NULL, 0);
	}
}

static void bob_asks(void)
{
	struct portd_record record = {
		.type = PORTD_MAD, .mad = {.port = bob.handle, .path = rig_peer(SCENE_PEER)}
	};
	struct cm_msg req = scene_req(&bob, 1);

	cm_msg_encode(&req, record.mad.mad);
	rig_tell(&bob, &record);
}

/* Return: after how many others; UINT_MAX if it has not left. */
static unsigned int sent_before_bobs(void)
{
	struct rig_sent sent;
	struct cm_msg msg;
	unsigned int n;

	for (n = 0; rig_sent(&sent, &msg); n++)
		if (msg.hdr.attr_id == CM_ATTR_REQ && msg.req.local_comm_id == bob.first + 1)
			return n;
	return UINT_MAX;
}

FIXTURE(set_up, scene_tear_down);

TEST(a_request_does_not_wait_for_those_of_a_user_with_many_clients)
{
	unsigned int i;

	for (i = 0; i < N_CLIENTS; i++)
		fill_with_reqs(&mallory[i], 8);
	for (i = 0; i < N_CLIENTS; i++)
		rig_turn();
	scene_wire();
	bob_asks();
	rig_settle();
	ck_assert_uint_lt(sent_before_bobs(), 64);
}

TEST(requests_of_a_client_that_has_gone_are_not_taken_back_before_they_are_sent)
{
	struct rig_sent sent;
	struct cm_msg msg;
	bool taken_back = false;

	fill_with_reqs(&mallory[0], 1);
	rig_turn();
	rig_leave(&mallory[0]);
	while (rig_sent(&sent, &msg)) {
		taken_back = taken_back || msg.hdr.attr_id == CM_ATTR_REJ;
		ck_assert(!taken_back || msg.hdr.attr_id == CM_ATTR_REJ);
	}
	ck_assert(taken_back);
}

TEST(a_user_whose_peers_are_not_there_leaves_others_room_to_wait)
{
	unsigned int i;

	rig_hops_are_ready(false);
	for (i = 0; i < N_CLIENTS; i++)
		fill_with_reqs(&mallory[i], 8);
	rig_settle();
	bob_asks();
	rig_settle();
	rig_hops_are_ready(true);
	rig_pass(100);
	ck_assert_uint_ne(sent_before_bobs(), UINT_MAX);
}

TEST(answers_to_strangers_who_are_not_there_leave_others_room_to_wait)
{
	unsigned int i;

	rig_hops_are_ready(false);
	for (i = 0; i < 2000; i++) {
		struct mad_path from = rig_peer((uint8_t)(FIRST_STRANGER + i % 200));
		struct cm_msg req = scene_peer_req(0x701 + i, SCENE_ADDR);

		rig_arrive(&from, &req);
	}
	bob_asks();
	rig_settle();
	rig_hops_are_ready(true);
	rig_pass(100);
	ck_assert_uint_ne(sent_before_bobs(), UINT_MAX);
}

/* Each turn of a busy cmportd would ask the kernel for each of them. */
TEST(who_is_not_there_is_not_looked_for_in_each_turn)
{
	uint64_t before;
	unsigned int i;

	rig_hops_are_ready(false);
	for (i = 0; i < N_CLIENTS; i++)
		fill_with_reqs(&mallory[i], 8);
	rig_settle();
	before = rig_hop_questions();
	for (i = 0; i < 10; i++)
		rig_turn();
	ck_assert_uint_eq(rig_hop_questions(), before);
	rig_pass(60);
	ck_assert_uint_gt(rig_hop_questions(), before);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Limits of one client, which protect the others: rate, queues, memory, tables. The limits are
 * those of lib/portd/server/limits.h.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/portd/scene.h"
#include "tests/unit/test.h"

#define alice (&scene_alice)
#define bob   (&scene_bob)

#define RATE  5000

static uint64_t n_closed;

/* Bob's client is a user's. */
static void set_up(void)
{
	scene_set_up();
	rig_server()->options.quotas.is[QUOTA_USER_RATE] = RATE;
	rig_leave(bob);
	rig_client_as_user(61001);
	rig_join(bob);
}

/* Records that only use up the client's rate, as many as its socket takes. */
static void fill_with_closes(const struct rig_client *client)
{
	struct portd_record record = { .type = PORTD_CLOSE };
	struct portd_datagram out = { .bytes = 0 };
	unsigned int n = 0;

	while (portd_put(&out, &record))
		n++;
	while (rig_put(client->data, out.data, out.bytes, NULL, 0))
		n_closed += n;
}

/* Sends them until no more are accepted. */
static void flood_with_closes(const struct rig_client *client)
{
	uint64_t before;

	do {
		before = n_closed;
		rig_settle();
		fill_with_closes(client);
	} while (n_closed != before);
}

static struct portd_record mad_of(const struct rig_client *client, const struct cm_msg *msg)
{
	struct portd_record record = {
		.type = PORTD_MAD, .mad = { .port = client->handle, .path = rig_peer(SCENE_PEER) }
	};

	rig_encode(&record.mad, msg);
	return record;
}

/* --- rate ---------------------------------------------------------------- */

FIXTURE(set_up, scene_tear_down);

TEST(client_without_credit_can_disconnect)
{
	flood_with_closes(bob);
	ck_assert_uint_eq(rig_server()->n_throttled, 1);
	rig_leave(bob);
	ck_assert_uint_eq(rig_server()->n_clients, 1);
	ck_assert_uint_eq(rig_server()->n_throttled, 0);
}

TEST(client_without_credit_ends_with_its_data_socket)
{
	unsigned int i;

	flood_with_closes(bob);
	close(bob->data);
	for (i = 0; i < 100; i++)
		rig_pass(10);
	ck_assert_uint_eq(rig_server()->n_clients, 1);
}

TEST(flooding_client_does_not_delay_replies_to_another)
{
	scene_connect(alice, 1);
	fill_with_closes(bob);
	rig_turn();
	fill_with_closes(bob);
	scene_receive(scene_peer_dreq(0x701, alice, 1));
	scene_sends(alice, talk_msg_of(CM_ATTR_DREP, alice->first + 1, 0x701));
	ck_assert_str_eq(scene_wire(), "DREP");
}

/* --- outgoing requests --------------------------------------------------- */

static void flood_with_reqs(struct rig_client *client)
{
	struct cm_msg req = scene_req(client, 1);
	struct portd_record record = mad_of(client, &req);
	struct portd_datagram out = { .bytes = 0 };
	unsigned int i;

	while (portd_put(&out, &record))
		;
	for (i = 0; i < 100; i++) {
		rig_put(client->data, out.data, out.bytes, NULL, 0);
		if (i % 4 == 0)
			rig_turn();
	}
}

/* Each is refused, since RoCE has no subnet administrator; a refusal is a reply too. */
static void flood_with_questions(const struct rig_client *client)
{
	struct portd_record record = { .type = PORTD_SA_ASK, .sa_ask = { .port = client->handle } };
	struct portd_datagram out = { .bytes = 0 };
	unsigned int i;

	while (portd_put(&out, &record))
		;
	for (i = 0; i < 1000; i++) {
		rig_put(client->data, out.data, out.bytes, NULL, 0);
		rig_pass(10);
	}
}

TEST(replies_to_a_client_that_does_not_read_are_limited)
{
	const struct client *client = rig_server()->client[1];

	flood_with_questions(bob);
	ck_assert_uint_le(client == rig_server()->client[1] ? client->n_backlog : 0,
			  2 * BACKLOG_MAX);
}

TEST(client_that_reads_gets_all_replies)
{
	struct portd_record record = { .type = PORTD_SA_ASK, .sa_ask = { .port = bob->handle } };
	unsigned int i;

	for (i = 0; i < 10000; i++) {
		ck_assert(rig_send_record(bob, &record));
		rig_pass(1);
		ck_assert(rig_next(bob, &record));
		record.type = PORTD_SA_ASK;
	}
}

static unsigned int n_queued(void)
{
	struct server *server = rig_server();
	unsigned int n = server->nobody.n_requests;
	struct user *user;

	list_for_each_entry (user, &server->users.all, link)
		n += user->n_requests;
	return n;
}

/* They get no response. */
static void end_clients(void)
{
	unsigned int i;

	for (i = 0; i < 12; i++)
		rig_pass(250);
}

TEST(requests_of_a_flooding_client_are_limited)
{
	flood_with_reqs(bob);
	ck_assert_uint_gt(n_queued(), 0);
	ck_assert_uint_lt(n_queued(), 1000);
	end_clients();
	ck_assert_uint_eq(n_queued(), 0);
}

TEST(request_waits_for_few_of_a_flooding_client)
{
	struct cm_msg req = scene_req(alice, 1), msg;
	struct portd_record record = mad_of(alice, &req);
	struct rig_sent sent;
	unsigned int n = 0;

	flood_with_reqs(bob);
	while (rig_sent(&sent, &msg))
		;
	rig_send_record(alice, &record);
	end_clients();
	do {
		n++;
		ck_assert(rig_sent(&sent, &msg));
	} while (msg.req.local_comm_id != alice->first + 1);
	ck_assert_uint_lt(n, 1000);
}

TEST(ended_flooding_client_leaves_no_state)
{
	flood_with_reqs(bob);
	rig_leave(bob);
	end_clients();
	ck_assert_uint_eq(n_queued(), 0);
	ck_assert_uint_eq(rig_server()->n_clients, 1);
}

/* The peers of Bob's requests have no link address. */
TEST(messages_to_missing_peers_leave_room_for_another_client)
{
	struct rig_sent sent;
	bool found = false;
	struct cm_msg msg;

	rig_set_hops_ready(false);
	flood_with_reqs(bob);
	rig_settle();
	scene_sends(alice, scene_req(alice, 1));
	rig_set_hops_ready(true);
	rig_pass(100);
	while (!found && rig_sent(&sent, &msg))
		found = msg.req.local_comm_id == alice->first + 1;
	ck_assert(found);
}

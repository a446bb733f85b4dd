/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosts that do not answer, or have lost a connection, and the users who send to them. Mallory is a
 * user with two clients.
 */
#include "tests/unit/portd/scene.h"
#include "tests/unit/portd/talk.h"
#include "tests/unit/test.h"

#define MALLORY	     61001
#define OTHER_HOST   20 /* a host, see rig_peer() */
#define FIRST_SILENT 30 /* the first of ... */
#define N_SILENT     64 /* ... so many that have not answered for long */

static struct rig_client mallory[2];

static void set_up(void)
{
	scene_set_up();
	rig_client_as_user(MALLORY);
	rig_join(&mallory[0]);
	rig_join(&mallory[1]);
}

FIXTURE(set_up, scene_tear_down);

/* Sends a full datagram of copies. Return: the number. */
static unsigned int fill(struct portd_datagram *out, const struct rig_client *client,
			 const struct cm_msg *msg)
{
	struct portd_record record = {
		.type = PORTD_MAD, .mad = { .port = client->handle, .path = rig_peer(SCENE_PEER) }
	};
	unsigned int n = 0;

	*out = (struct portd_datagram){ .bytes = 0 };
	rig_encode(&record.mad, msg);
	while (portd_put(out, &record))
		n++;
	return n;
}

static void send_datagrams(const struct rig_client *client, const struct cm_msg *msg,
			   unsigned int n_messages)
{
	struct portd_datagram out;
	const unsigned int n_each = fill(&out, client, msg);

	for (; n_messages >= n_each; n_messages -= n_each) {
		rig_put(client->data, out.data, out.bytes, NULL, 0);
		rig_settle();
	}
}

TEST(unresponsive_host_delays_no_requests_to_another)
{
	const struct mad_path other = rig_peer(OTHER_HOST);
	struct cm_msg to_silent = scene_req(&mallory[0], 1), req = scene_req(&mallory[1], 1);
	struct rig_sent sent;
	struct cm_msg msg;

	send_datagrams(&mallory[0], &to_silent, UNANSWERED_MAX + 100);
	scene_wire();
	rig_send(&mallory[1], &other, &req);
	ck_assert(rig_sent(&sent, &msg));
	ck_assert_mem_eq(&sent.path.dgid, &other.dgid, sizeof(other.dgid));
}

static void leave_unanswered(const struct mad_path *path)
{
	struct server *server = rig_server();
	const struct mad_gid host = mad_path_peer(path);

	while (bucket_take(&hosts_at(&server->hosts, &host)->unanswered, UNANSWERED_S,
			   UNANSWERED_MAX, server->now))
		continue;
}

TEST(waiting_requests_of_many_users_delay_none_of_another)
{
	const struct mad_path other = rig_peer(OTHER_HOST);
	struct rig_client users[N_SILENT];
	struct cm_msg req = scene_req(&mallory[0], 1);
	struct mad_path silent;
	struct rig_sent sent;
	struct cm_msg msg;
	uint8_t i;

	for (i = 0; i < N_SILENT; i++) {
		silent = rig_peer(FIRST_SILENT + i);
		rig_client_as_user(MALLORY + 1u + i);
		rig_join(&users[i]);
		leave_unanswered(&silent);
		msg = scene_req(&users[i], 1);
		rig_send(&users[i], &silent, &msg);
	}
	scene_wire();
	rig_send(&mallory[0], &other, &req);
	ck_assert(rig_sent(&sent, &msg));
	ck_assert_mem_eq(&sent.path.dgid, &other.dgid, sizeof(other.dgid));
	ck_assert_int_eq(rig_wait_ms(), 1);
	rig_pass(2);
	ck_assert_uint_gt(rig_n_sent(), N_SILENT / 2);
}

/* Return: the number of DREQs for one connection sent in @n_s seconds. */
static unsigned int repeat_dreq(unsigned int n_s)
{
	struct cm_msg dreq = talk_msg_of(CM_ATTR_DREQ, mallory[0].first + 1, 0x701);
	unsigned int i;

	scene_connect(&mallory[0], 1);
	scene_wire();
	for (i = 0; i < 10 * n_s; i++) {
		send_datagrams(&mallory[0], &dreq, 5000);
		rig_pass(100);
	}
	return rig_n_sent();
}

/* It counts requests of this host for all its users together. */
TEST(messages_for_a_lost_connection_are_limited)
{
	const unsigned int n_s = 3;
	const unsigned int n_sent = repeat_dreq(n_s);

	ck_assert_uint_gt(n_sent, SAID_FEW);
	ck_assert_uint_le(n_sent, SAID_FEW + SAID_EACH + (n_s + 1) * SAID_S);
}

TEST(all_connections_of_a_user_can_be_ended_at_once)
{
	const struct mad_path peer = rig_peer(SCENE_PEER);
	struct cm_msg dreq;
	unsigned int i;

	for (i = 1; i <= 2 * SAID_FEW; i++)
		scene_connect(&mallory[0], i);
	scene_wire();
	for (i = 1; i <= 2 * SAID_FEW; i++) {
		dreq = talk_msg_of(CM_ATTR_DREQ, mallory[0].first + i, 0x700 + i);
		rig_send(&mallory[0], &peer, &dreq);
	}
	ck_assert_uint_eq(rig_n_sent(), 2 * SAID_FEW);
}

/* The peer does not know of it, and must get a message when the client ends. */
TEST(a_message_that_is_not_sent_changes_nothing)
{
	struct bucket *said = rig_server()->hosts.said;
	const uint32_t comm_id = mallory[0].first + 1;
	unsigned int i;

	scene_connect(&mallory[0], 1);
	for (i = 0; i < HOSTS; i++)
		said[i] = (struct bucket){ .taken = SAID_MAX, .at = rig_server()->now };
	scene_sends(&mallory[0], talk_msg_of(CM_ATTR_DREQ, comm_id, 0x701));
	ck_assert_str_eq(scene_wire(), "");
	ck_assert_str_eq(scene_tracked(comm_id), "ESTABLISHED");
}

/* Otherwise a job with many connections could not end them all at once. */
TEST(messages_of_a_host_permit_as_many_to_it)
{
	const struct mad_path peer = rig_peer(SCENE_PEER);
	struct cm_msg said, dreq;
	unsigned int i;

	repeat_dreq(3);
	rig_pass(20);
	dreq = talk_msg_of(CM_ATTR_DREQ, mallory[0].first + 1, 0x701);
	said = talk_msg_of(CM_ATTR_RTU, 0x701, mallory[0].first + 1);
	scene_wire();
	for (i = 0; i < 100; i++)
		rig_arrive(&peer, &said);
	send_datagrams(&mallory[0], &dreq, 500);
	ck_assert_uint_ge(rig_n_sent(), 100);
	ck_assert_uint_le(rig_n_sent(), 100 + SAID_S / 8);
}

TEST(low_rate_of_a_host_is_a_rate)
{
	struct cm_msg req = scene_req(&mallory[0], 1);
	unsigned int i, n;

	rig_server()->options.quotas.is[QUOTA_HOST_RATE] = 3;
	for (i = 0; i < 20; i++) {
		send_datagrams(&mallory[0], &req, 500);
		rig_pass(1000);
	}
	n = rig_n_sent();
	for (i = 0; i < 20; i++) {
		send_datagrams(&mallory[0], &req, 500);
		rig_pass(1000);
	}
	ck_assert_uint_gt(rig_n_sent() - n, 20);
	n = rig_n_sent();
	scene_receive(talk_msg_of(CM_ATTR_DREQ, 0x701, ~mallory[0].first));
	ck_assert_uint_eq(rig_n_sent() - n, 1);
}

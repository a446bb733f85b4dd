/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The share of others when a user, or a host of the network, sends as many requests as possible:
 * places in queues, and time. Mallory is one user, Bob another.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cm/guard.h"
#include "tests/unit/portd/scene.h"
#include "tests/unit/test.h"
#include "lib/portd/server/ledger/tracked_adopt.h"

#define MALLORY	       61001
#define BOB	       61002
#define N_CLIENTS      6
#define NOT_BOBS       3  /* mallory[0] among the clients: after Alice, another Bob, and this one */
#define FIRST_STRANGER 20 /* hosts, see rig_peer() */

static struct rig_client mallory[N_CLIENTS];
static struct rig_client bob;

static void set_up(void)
{
	unsigned int i;

	scene_set_up();
	rig_client_as_user(BOB);
	rig_join(&bob);
	rig_client_as_user(MALLORY);
	for (i = 0; i < N_CLIENTS; i++)
		rig_join(&mallory[i]);
}

/* Sends @n_datagrams full datagrams, to one host after the other. */
static void ask_hosts(const struct rig_client *client, unsigned int n_datagrams, uint8_t first,
		      unsigned int n_hosts)
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
			record.mad.path = rig_peer((uint8_t)(first + n % n_hosts));
			rig_encode(&record.mad, &req);
		} while (portd_put(&out, &record));
		rig_put(client->data, out.data, out.bytes, NULL, 0);
	}
}

static void fill_with_reqs(const struct rig_client *client, unsigned int n_datagrams)
{
	ask_hosts(client, n_datagrams, FIRST_STRANGER, 64);
}

static void send_req_of_bob(void)
{
	struct portd_record record = {
		.type = PORTD_MAD, .mad = { .port = bob.handle, .path = rig_peer(SCENE_PEER) }
	};
	struct cm_msg req = scene_req(&bob, 1);

	rig_encode(&record.mad, &req);
	rig_send_record(&bob, &record);
}

/* Return: the number of messages before it; UINT_MAX if it was not sent. */
static unsigned int n_sent_before_bobs(void)
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
	send_req_of_bob();
	rig_settle();
	ck_assert_uint_lt(n_sent_before_bobs(), 64);
}

/* A peer drops messages beyond that, of any user. Return: the number of sent messages. */
static unsigned int flood_peer_of_bob(void)
{
	unsigned int n_before, n_sent = 0, i;

	do {
		n_before = n_sent;
		for (i = 0; i < N_CLIENTS; i++)
			ask_hosts(&mallory[i], 4, SCENE_PEER, 1);
		rig_settle();
		n_sent = rig_n_sent();
	} while (n_sent > n_before);
	return n_sent;
}

/* More messages than its queue pair holds are lost while it does not run, Bob's among them. */
TEST(a_peer_that_does_not_answer_gets_few_requests)
{
	ck_assert_uint_le(flood_peer_of_bob(), UNANSWERED_MAX);
	scene_wire();
	rig_pass(100);
	ck_assert_uint_gt(rig_n_sent(), UNANSWERED_S / 20);
	ck_assert_uint_le(rig_n_sent(), UNANSWERED_S / 10 + 1);
}

/* Return: the number of sent requests until no more are sent, or as many as requested. */
static unsigned int refuse_all(unsigned int n_max)
{
	const struct mad_path from = rig_peer(SCENE_PEER);
	struct cm_msg msg, refusal;
	struct rig_sent sent;
	unsigned int n = 0;

	flood_peer_of_bob();
	while (n < n_max && rig_sent(&sent, &msg)) {
		n++;
		refusal = talk_msg_of(CM_ATTR_REJ, 0, msg.req.local_comm_id);
		refusal.rej.reason = CM_REJ_INVALID_SERVICE_ID;
		rig_arrive(&from, &refusal);
	}
	return n;
}

TEST(a_peer_that_answers_gets_no_more_requests_than_it_accepts)
{
	const unsigned int rate = 15000;
	unsigned int i, n = 0;

	for (i = 0; i < 4; i++)
		n += refuse_all(10 * REQUEST_BURST);
	ck_assert_uint_gt(n, 2 * UNANSWERED_MAX);
	ck_assert_uint_le(n, REQUEST_BURST);
	rig_pass(100);
	ck_assert_uint_le(rig_n_sent(), rate / 10 + 1);
}

TEST(flooding_a_peer_leaves_others_their_share)
{
	flood_peer_of_bob();
	scene_wire();
	send_req_of_bob();
	rig_settle();
	rig_pass(1);
	ck_assert_uint_le(n_sent_before_bobs(), 1);
}

TEST(flooding_a_peer_does_not_delay_requests_to_another)
{
	struct cm_msg req = scene_req(&bob, 1);

	flood_peer_of_bob();
	scene_wire();
	rig_send(&bob, &(struct mad_path[]){ rig_peer(FIRST_STRANGER) }[0], &req);
	ck_assert_uint_eq(n_sent_before_bobs(), 0);
}

TEST(requests_of_an_ended_client_are_not_withdrawn_before_sending)
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

TEST(messages_to_missing_peers_leave_room_for_others)
{
	unsigned int i;

	rig_set_hops_ready(false);
	for (i = 0; i < N_CLIENTS; i++)
		fill_with_reqs(&mallory[i], 8);
	rig_settle();
	send_req_of_bob();
	rig_settle();
	rig_set_hops_ready(true);
	rig_pass(100);
	ck_assert_uint_ne(n_sent_before_bobs(), UINT_MAX);
}

TEST(answers_to_missing_hosts_leave_room_for_others)
{
	unsigned int i;

	rig_set_hops_ready(false);
	for (i = 0; i < 2000; i++) {
		struct mad_path from = rig_peer((uint8_t)(FIRST_STRANGER + i % 200));
		struct cm_msg req = scene_peer_req(0x701 + i, SCENE_ADDR);

		rig_arrive(&from, &req);
	}
	send_req_of_bob();
	rig_settle();
	rig_set_hops_ready(true);
	rig_pass(100);
	ck_assert_uint_ne(n_sent_before_bobs(), UINT_MAX);
}

/* Otherwise each turn of a busy cmportd would query the kernel for each of them. */
TEST(missing_host_is_not_checked_in_each_turn)
{
	uint64_t before;
	unsigned int i;

	rig_set_hops_ready(false);
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

/* One REQ each to hosts of their own. */
static void ask_for_hosts(const struct rig_client *client, uint32_t n_hosts)
{
	struct portd_record record = { .type = PORTD_MAD, .mad = { .port = client->handle } };
	struct cm_msg req;
	uint32_t n;

	for (n = 1; n <= n_hosts; n++) {
		req = scene_req(client, n);
		record.mad.path = rig_peer((uint8_t)n);
		record.mad.path.dgid.raw[13] = (uint8_t)(n >> 8);
		rig_encode(&record.mad, &req);
		rig_send_record(client, &record);
		if (n % 64 == 0)
			rig_settle();
	}
	rig_settle();
}

static void neighbour_is_known(uint8_t host)
{
	union addr addr = { .in6.sin6_family = AF_INET6 };
	const struct mad_path path = rig_peer(host);

	memcpy(&addr.in6.sin6_addr, &path.dgid, sizeof(path.dgid));
	waiting_neighbour(rig_server(), &addr);
}

/* A check costs two or three system calls. */
TEST(a_hop_is_checked_once_for_all_messages_of_a_user)
{
	uint64_t before;

	rig_set_hops_ready(false);
	fill_with_reqs(&mallory[0], 8); /* for 64 hosts */
	rig_settle();
	before = rig_hop_questions();
	fill_with_reqs(&mallory[1], 8);
	rig_settle();
	ck_assert_uint_eq(rig_hop_questions(), before);
	rig_pass(50);
	rig_pass(4);
	rig_pass(4);
	rig_pass(4);
	ck_assert_uint_eq(rig_hop_questions() - before, 64);
}

TEST(a_turn_checks_few_missing_hosts)
{
	uint64_t before;
	unsigned int i;

	rig_set_hops_ready(false);
	ask_for_hosts(&mallory[0], 250);
	ask_for_hosts(&mallory[1], 250);
	for (i = 0; i < 100; i++) {
		before = rig_hop_questions();
		rig_pass(5);
		ck_assert_uint_le(rig_hop_questions() - before, WAITING_LOOKS_MAX);
	}
}

TEST(messages_to_a_resolved_neighbour_are_sent_at_once)
{
	uint64_t before;

	rig_set_hops_ready(false);
	ask_for_hosts(&mallory[0], 250);
	send_req_of_bob();
	rig_settle();
	before = rig_hop_questions();
	rig_set_hops_ready(true);
	neighbour_is_known(SCENE_PEER);
	rig_settle();
	ck_assert_uint_eq(rig_n_sent(), 2); /* Mallory has a request to that host, too */
	ck_assert_uint_le(rig_hop_questions() - before, 4);
}

TEST(waiting_for_many_hosts_does_not_delay_checks_for_others)
{
	rig_set_hops_ready(false);
	ask_for_hosts(&mallory[0], 250);
	ask_for_hosts(&mallory[1], 250);
	send_req_of_bob();
	rig_settle();
	rig_set_hops_ready(true);
	rig_pass(50);
	ck_assert_uint_lt(n_sent_before_bobs(), WAITING_LEAVES_MAX);
}

TEST(withdrawal_does_not_overtake_its_request_at_a_hop)
{
	struct portd_record rej = { .type = PORTD_MAD };
	struct cm_msg msg = talk_msg_of(CM_ATTR_REJ, bob.first + 1, 0);

	rig_set_hops_ready(false);
	send_req_of_bob();
	rig_settle();
	rig_set_hops_ready(true); /* but there was no check */
	msg.rej.message = CM_ANSWERED_REQ;
	cm_rej_timeout(&msg.rej, RIG_GUID);
	rej.mad.port = bob.handle;
	rej.mad.path = rig_peer(SCENE_PEER);
	rig_encode(&rej.mad, &msg);
	rig_send_record(&bob, &rej);
	rig_settle();
	rig_pass(100);
	ck_assert_str_eq(scene_wire(), "REQ, REJ(REQ) 4");
}

/* --- entries that would be compared with all others ------------------------ */

TEST(claims_of_a_port_are_limited)
{
	struct portd_record bind = { .type = PORTD_BIND, .claim = rig_claim(1, "10.0.0.1") };
	int err = 0;

	bind.claim.reuseaddr = 1;
	for (; !err && bind.claim.claim_id < 3000; bind.claim.claim_id++) {
		err = rig_ask(&mallory[0], &bind);
		rig_pass(1);
	}
	ck_assert_int_eq(err, ENOSPC);
}

/* Each of them would be compared with all earlier ones. */
TEST(requests_of_a_peer_under_one_id_are_limited)
{
	struct cm_msg req;
	unsigned int i, n = 0;

	ck_assert_int_eq(rig_listen(&bob, SCENE_ADDR), 0);
	for (i = 0; i < 100; i++) {
		req = scene_peer_req(0x701, SCENE_ADDR);
		req.req.local_ca_guid += i;
		scene_receive(req);
	}
	while (rig_next_msg(&bob, &req))
		n++;
	ck_assert_uint_eq(n, 16);
}

TEST(requests_of_a_peer_under_one_queue_pair_are_limited)
{
	struct cm_msg req;
	unsigned int i, n = 0;

	ck_assert_int_eq(rig_listen(&bob, SCENE_ADDR), 0);
	for (i = 0; i < 100; i++) {
		req = scene_peer_req(0x701 + i, SCENE_ADDR);
		req.req.local_ca_guid += i;
		req.req.local_qpn = 5;
		scene_receive(req);
	}
	while (rig_next_msg(&bob, &req))
		n++;
	ck_assert_uint_eq(n, 16);
}

/* --- ends of connections -------------------------------------------------- */

#define N_ENDED 3000

static void ask_and_disconnect(struct rig_client *client)
{
	struct mad_path peer = rig_peer(SCENE_PEER);
	struct cm_msg req;
	uint32_t n;

	for (n = 1; n <= N_ENDED; n++) {
		req = scene_req(client, n);
		rig_send(client, &peer, &req);
		if (n % UNANSWERED_MAX == 0)
			rig_pass(1000);
	}
	rig_pass(1000);
	close(client->control);
	close(client->data);
}

TEST(a_turn_ends_few_connections_of_an_ended_client)
{
	struct tracker *tracker = rig_server()->tracker;
	uint32_t left;

	ask_and_disconnect(&mallory[0]);
	left = tracker_count(tracker, NOT_BOBS);
	ck_assert_uint_eq(left, N_ENDED);
	while (tracker_count(tracker, NOT_BOBS)) {
		left = tracker_count(tracker, NOT_BOBS);
		rig_turn();
		ck_assert_uint_le(left - tracker_count(tracker, NOT_BOBS), USER_TURN + 1);
	}
	rig_settle();
	ck_assert_ptr_null(rig_server()->client[NOT_BOBS]);
}

TEST(withdrawals_of_ended_clients_are_limited)
{
	unsigned int i;

	for (i = 0; i < N_CLIENTS; i++) {
		ask_and_disconnect(&mallory[i]);
		rig_settle();
		ck_assert_uint_le(rig_server()->nobody.n_requests, NOBODYS_MAX);
	}
}

/* --- kept state ---------------------------------------------------------- */

/* There is room for 64 names, and they outlive the process. */
TEST(missing_device_gets_no_handle)
{
	struct portd_record open = { .type = PORTD_OPEN_PORT, .open_port = { .port_num = 1 } };
	struct tracked_port port;
	uint8_t i, n = 0;

	for (i = 0; i < HOST_PORTS_MAX; i++) {
		snprintf(open.open_port.device, sizeof(open.open_port.device), "none%u", i);
		ck_assert_int_eq(rig_ask(&mallory[0], &open), ENODEV);
		rig_pass(100);
	}
	for (i = 0; i < HOST_PORTS_MAX; i++)
		n += tracker_port(rig_server()->tracker, i, &port);
	ck_assert_uint_eq(n, 1);
}

TEST(ended_connections_of_dead_clients_no_longer_count)
{
	uint32_t first = mallory[0].first;

	rig_server()->options.quotas.is[QUOTA_USER_CONNS] = 1;
	scene_connect(&mallory[0], 1);
	rig_leave(&mallory[0]);
	scene_receive(talk_msg_of(CM_ATTR_DREP, 0x701, first + 1));
	rig_pass(3600 * 1000);
	scene_wire();
	scene_connect(&mallory[1], 1);
	scene_wire();
	rig_leave(&mallory[1]);
	ck_assert_str_eq(scene_wire(), "DREQ");
}

/* client_new() has looked it up, and says whom it turns away when memory is short. */
TEST(a_user_is_not_forgotten_while_it_connects)
{
	struct rig_client again;
	uint16_t number;

	rig_client_as_user(MALLORY + 100);
	rig_meet(&again);
	number = rig_server()->client[NOT_BOBS + N_CLIENTS]->user->number;
	rig_leave(&again);
	rig_pass(10 * 1000);
	rig_meet(&again);
	ck_assert_uint_eq(rig_server()->client[NOT_BOBS + N_CLIENTS]->user->number, number);
}

/* Each block may have a connection to a peer that does not answer: those end slowly. */
TEST(comm_ids_beside_ended_connections_are_lent_if_there_are_no_others)
{
	const struct server *server = rig_server();
	struct rig_client more;
	unsigned int i;

	scene_connect(&mallory[0], 1);
	rig_leave(&mallory[0]);
	for (i = 1; i < ID_BLOCKS; i++)
		if (!tracker_hold_block(server->tracker, (uint16_t)i, true))
			rig_server()->block_owner[i] = NOT_BOBS;
	rig_meet(&more);
	ck_assert_uint_eq(more.first, mallory[0].first);
}

static int free_bytes_of(const struct client *client)
{
	socklen_t bytes = sizeof(int);
	int room = 0;

	getsockopt(client->data.fd, SOL_SOCKET, SO_SNDBUF, &room, &bytes);
	return room;
}

/* 1,024 with a megabyte each would reach the limit of the unit. */
TEST(the_sockets_of_a_user_with_many_clients_hold_less_each)
{
	struct rig_client more;
	unsigned int i;

	for (i = N_CLIENTS; i < 200; i++)
		rig_meet(&more);
	ck_assert_int_gt(free_bytes_of(rig_server()->client[NOT_BOBS]), 1 << 20);
	ck_assert_int_lt(free_bytes_of(rig_server()->client[rig_server()->n_clients - 1]), 1 << 20);
}

/* --- connections of ended clients ------------------------------------------- */

#define N_LEFT 1000
#define BOBS   (N_LEFT + 1) /* no queue pair has two users */

static unsigned int n_dreqs_of_bob(void)
{
	struct rig_sent sent;
	struct cm_msg msg;
	unsigned int n = 0;

	while (rig_sent(&sent, &msg))
		n += msg.hdr.attr_id == CM_ATTR_DREQ && msg.dreq.local_comm_id == bob.first + BOBS;
	return n;
}

/* Their peer does not answer, so 128 of all are ended a second. */
TEST(connections_that_another_user_has_left_delay_no_disconnect)
{
	unsigned int n_seconds;
	uint32_t n;

	scene_connect(&bob, BOBS);
	for (n = 1; n <= N_LEFT; n++)
		scene_connect(&mallory[0], n);
	rig_leave(&mallory[0]);
	rig_leave(&bob);
	for (n_seconds = 0; !n_dreqs_of_bob(); n_seconds++)
		rig_pass(1000);
	ck_assert_uint_le(n_seconds, 4);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting requests: HELLO, while clients of an earlier cmportd may still resume, and a BIND that is
 * handled again a turn later.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/portd/folder.h"
#include "tests/unit/portd/scene.h"
#include "tests/unit/test.h"

#define alice	 (&scene_alice)
#define bob	 (&scene_bob)

#define GRACE_MS 3000
#define MALLORY	 61001
#define N_READY	 (2 * LOOP_EVENTS_MAX)

static struct rig_client carol;

/* Alice and Bob are alive, as this process is, and may resume. */
static void begin_again(void)
{
	rig_tear_down();
	rig_set_up(socket_path);
}

static void send_hello(struct rig_client *client)
{
	struct portd_record hello = { .type = PORTD_HELLO, .hello = { .version = PORTD_VERSION } };

	*client = (struct rig_client){ .control = rig_dial(), .data = -1, .page_fd = -1 };
	ck_assert_int_eq(rig_ask(client, &hello), -1);
}

static void resume(struct rig_client *client)
{
	struct portd_record resumed = { .type = PORTD_RESUMED };

	client->control = rig_dial();
	ck_assert_int_eq(rig_resume(client, client->page_fd), 0);
	ck_assert_int_eq(rig_hold(client), 0);
	ck_assert_int_eq(rig_ask(client, &resumed), 0);
}

FIXTURE(scene_set_up, scene_tear_down);

TEST(a_new_client_waits_until_those_of_the_past_have_come)
{
	begin_again();
	send_hello(&carol);
	resume(alice);
	ck_assert_int_eq(rig_answer(&carol), -1);
	resume(bob);
	rig_pass(10);
	ck_assert_int_eq(rig_answer(&carol), 0);
}

TEST(a_new_client_waits_for_three_seconds_at_most)
{
	begin_again();
	send_hello(&carol);
	rig_pass(GRACE_MS - 1);
	ck_assert_int_eq(rig_answer(&carol), -1);
	rig_pass(1);
	ck_assert_int_eq(rig_answer(&carol), 0);
}

TEST(no_turn_is_in_vain_while_a_bind_waits_for_the_others)
{
	struct portd_record bind = { .type = PORTD_BIND, .claim = rig_claim(1, SCENE_ADDR) };

	begin_again();
	resume(alice);
	ck_assert_int_eq(rig_ask(alice, &bind), 0);
	bind.claim.claim_id = 2;
	ck_assert_int_eq(rig_ask(alice, &bind), -1);
	ck_assert_int_ne(rig_wait_ms(), 0);
	rig_pass(GRACE_MS);
	ck_assert_int_eq(rig_answer(alice), EADDRINUSE);
}

/* Their neighbours are resolved without a limit, see hosts.h. */
static bool is_peer_known(void)
{
	const struct mad_path path = rig_peer(SCENE_PEER);
	const struct mad_gid peer = mad_path_peer(&path);

	return host_is_known(hosts_at(&rig_server()->hosts, &peer), &peer);
}

TEST(peer_of_a_client_of_the_past_is_known)
{
	scene_connect(alice, 1);
	begin_again();
	ck_assert(!is_peer_known());
	resume(alice);
	ck_assert(is_peer_known());
}

TEST(peer_of_a_dead_one_of_the_past_is_known)
{
	scene_connect(alice, 1);
	rig_leave(alice);
	begin_again();
	rig_pass(GRACE_MS);
	ck_assert(is_peer_known());
}

TEST(who_has_only_asked_in_the_past_is_not_known)
{
	ck_assert_int_eq(rig_listen(alice, "0.0.0.0"), 0);
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	begin_again();
	resume(alice);
	ck_assert(!is_peer_known());
}

TEST(nobody_is_answered_for_before_all_have_come_back)
{
	struct portd_record open = { .type = PORTD_OPEN_PORT,
				     .open_port = { .port_num = 1, .device = RIG_DEVICE } };

	begin_again();
	resume(alice);
	ck_assert_int_eq(rig_ask(alice, &open), 0);
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	scene_receive(scene_peer_dreq(0x702, bob, 1));
	ck_assert_str_eq(scene_wire(), "");
	ck_assert_uint_eq(rig_count(PORTD_COUNT_HELD_BACK), 2);
	resume(bob);
	rig_pass(10);
	scene_receive(scene_peer_dreq(0x702, bob, 1));
	ck_assert_str_eq(scene_wire(), "DREP");
}

TEST(with_all_ports_open_a_peer_is_answered_before_a_client_has_come)
{
	rig_set_opens_ports(true);
	begin_again();
	rig_pass(GRACE_MS);
	scene_receive(scene_peer_dreq(0x702, bob, 1));
	ck_assert_str_eq(scene_wire(), "DREP");
}

TEST(a_client_finds_the_port_that_is_open_already)
{
	rig_set_opens_ports(true);
	begin_again();
	rig_pass(GRACE_MS);
	rig_join(&carol);
	ck_assert_int_eq(rig_listen(&carol, SCENE_ADDR), 0);
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	ck_assert_str_eq(scene_delivered(&carol), "REQ");
}

TEST(client_that_closes_while_its_hello_waits_is_forgotten_at_once)
{
	begin_again();
	send_hello(&carol);
	close(carol.control);
	rig_settle();
	ck_assert_uint_eq(rig_server()->n_clients, 0);
}

TEST(client_that_closes_while_its_bind_waits_is_forgotten_at_once)
{
	struct portd_record record = { .type = PORTD_BIND, .claim = rig_claim(1, SCENE_ADDR) };
	struct portd_datagram out = { .bytes = 0 };

	ck_assert_int_eq(rig_ask(alice, &record), 0);
	portd_put(&out, &record);
	rig_put(bob->control, out.data, out.bytes, NULL, 0);
	rig_leave(bob);
	ck_assert_uint_eq(rig_server()->n_clients, 1);
}

/* --- another user keeps as many descriptors ready as a turn reads from -------- */

static void put_record(int to, const struct portd_record *record)
{
	struct portd_datagram out = { .bytes = 0 };

	portd_put(&out, record);
	ck_assert(rig_put(to, out.data, out.bytes, NULL, 0));
}

static void dial_as_mallory(int fd[N_READY])
{
	unsigned int i;

	rig_client_as_user(MALLORY);
	for (i = 0; i < N_READY; i++)
		fd[i] = rig_dial();
	rig_settle();
}

/* A turn answers one of them. */
static void put_hellos(const int fd[N_READY])
{
	struct portd_record hello = { .type = PORTD_HELLO, .hello = { .version = PORTD_VERSION } };
	unsigned int i;

	for (i = 0; i < N_READY; i++)
		put_record(fd[i], &hello);
}

static int answer_to_bob(void)
{
	unsigned int i;
	int error = -1;

	for (i = 0; i < N_READY - LOOP_EVENTS_MAX && error < 0; i++) {
		rig_turn();
		error = rig_answer(bob);
	}
	return error;
}

TEST(a_deferred_bind_is_answered_whatever_is_ready)
{
	struct portd_record bind = { .type = PORTD_BIND, .claim = rig_claim(1, SCENE_ADDR) };
	int fd[N_READY];

	ck_assert_int_eq(rig_ask(alice, &bind), 0);
	dial_as_mallory(fd);
	put_hellos(fd);
	put_record(bob->control, &bind);
	ck_assert_int_eq(answer_to_bob(), EADDRINUSE);
}

TEST(a_deferred_bind_is_answered_after_all_that_was_ready)
{
	struct portd_record record = { .type = PORTD_BIND, .claim = rig_claim(1, SCENE_ADDR) };
	int fd[N_READY];

	ck_assert_int_eq(rig_ask(alice, &record), 0);
	dial_as_mallory(fd);
	put_record(bob->control, &record);
	put_hellos(fd);
	record.type = PORTD_RELEASE;
	put_record(alice->control, &record);
	ck_assert_int_eq(answer_to_bob(), 0);
}

/* --- no room for the reply ----------------------------------------------- */

static void lease_without_reading(struct rig_client *client)
{
	struct portd_record record = { .type = PORTD_LEASE_PORTS, .lease_ports = { .ps = 0x106 } };
	struct portd_datagram out = { .bytes = 0 };

	portd_put(&out, &record);
	rig_put(client->control, out.data, out.bytes, NULL, 0);
	rig_settle();
}

static unsigned int answers_that_fit(void)
{
	unsigned int n;

	rig_meet(&carol);
	for (n = 0; rig_server()->n_clients == 3; n++)
		lease_without_reading(&carol);
	return n - 1;
}

TEST(who_has_no_room_for_an_answer_that_came_late_is_disconnected_at_once)
{
	struct portd_record record = { .type = PORTD_BIND, .claim = rig_claim(1, SCENE_ADDR) };
	unsigned int n = answers_that_fit();
	struct portd_datagram out = { .bytes = 0 };

	ck_assert_int_eq(rig_ask(alice, &record), 0);
	while (n--)
		lease_without_reading(bob);
	ck_assert_uint_eq(rig_server()->n_clients, 2);
	portd_put(&out, &record);
	rig_put(bob->control, out.data, out.bytes, NULL, 0);
	rig_settle();
	ck_assert_uint_eq(rig_server()->n_clients, 1);
}

/* --- waiting for their turn ----------------------------------------------- */

/* Sends as many requests as the peer may leave unanswered. */
static void fill_turn(void)
{
	const struct mad_path peer = rig_peer(SCENE_PEER);
	struct cm_msg req;
	uint32_t n;

	for (n = 0; n <= UNANSWERED_MAX; n++) {
		req = scene_req(bob, 1000 + n);
		rig_send(bob, &peer, &req);
	}
	scene_wire();
}

static void repeat_req(void)
{
	struct cm_msg req = scene_req(alice, 1);
	struct portd_record record = {
		.type = PORTD_MAD,
		.mad = { .port = alice->handle, .path = rig_peer(SCENE_PEER), .again = 1 }
	};

	rig_encode(&record.mad, &req);
	ck_assert(rig_send_record(alice, &record));
	rig_settle();
}

static unsigned int reqs_of_alice(void)
{
	struct rig_sent sent;
	struct cm_msg msg;
	unsigned int n = 0;

	while (rig_sent(&sent, &msg))
		n += msg.hdr.attr_id == CM_ATTR_REQ && msg.req.local_comm_id == alice->first + 1;
	return n;
}

TEST(a_request_that_is_repeated_leaves_when_it_may)
{
	struct cm_msg req = scene_req(alice, 1);

	rig_send(alice, &(struct mad_path[]){ rig_peer(SCENE_PEER) }[0], &req);
	fill_turn();
	repeat_req();
	rig_pass(1000);
	ck_assert_uint_eq(reqs_of_alice(), 1);
}

/* The peer may have lost the connection by then. */
TEST(a_request_that_was_answered_meanwhile_is_not_repeated)
{
	struct cm_msg req = scene_req(alice, 1);

	rig_send(alice, &(struct mad_path[]){ rig_peer(SCENE_PEER) }[0], &req);
	fill_turn();
	repeat_req();
	scene_receive(talk_msg_of(CM_ATTR_REP, 0x701, alice->first + 1));
	rig_pass(1000);
	ck_assert_uint_eq(reqs_of_alice(), 0);
}

TEST(a_request_whose_client_has_gone_is_not_repeated)
{
	struct cm_msg req = scene_req(alice, 1);

	rig_send(alice, &(struct mad_path[]){ rig_peer(SCENE_PEER) }[0], &req);
	fill_turn();
	repeat_req();
	rig_leave(alice);
	rig_pass(1000);
	ck_assert_uint_eq(reqs_of_alice(), 0);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits of the work that a turn does for one user. Mallory is a user. */
#include <stdio.h>
#include <unistd.h>

#include "tests/unit/portd/folder.h"
#include "tests/unit/portd/scene.h"
#include "tests/unit/test.h"
#include "lib/portd/server/ledger/tracked_adopt.h"
#include "lib/portd/server/routing/recovery.h"

#define MALLORY	  61001
#define N_CLIENTS 8
#define MALLORYS  2 /* mallory[0] among the clients: after Alice and Bob */
#define N_MUCH	  3000

static struct rig_client mallory[N_CLIENTS];

static void set_up(void)
{
	unsigned int i;

	scene_set_up();
	rig_client_as_user(MALLORY);
	for (i = 0; i < N_CLIENTS; i++)
		rig_join(&mallory[i]);
}

static void close_client(struct rig_client *client)
{
	close(client->control);
	close(client->data);
	client->control = client->data = -1;
}

FIXTURE(set_up, scene_tear_down);

/* --- connections ---------------------------------------------------------- */

static void report(const struct rig_client *client, uint16_t index, uint32_t n)
{
	struct cm_record told = { .state = CM_ESTABLISHED,
				  .handle = client->handle,
				  .path = rig_peer(SCENE_PEER) };

	for (; n; n--) {
		told.local_comm_id = client->first + n;
		told.remote_comm_id = 0x70000000 + n;
		ck_assert_int_eq(tracker_set(rig_server()->tracker, index, &told, true), 0);
	}
}

/* No message is sent for those. */
TEST(a_turn_forgets_few_connections_that_only_their_client_has_reported)
{
	struct tracker *tracker = rig_server()->tracker;
	uint32_t left;

	report(&mallory[0], MALLORYS, N_MUCH);
	close_client(&mallory[0]);
	while ((left = tracker_count(tracker, MALLORYS))) {
		rig_turn();
		ck_assert_uint_le(left - tracker_count(tracker, MALLORYS), USER_TURN + 1);
	}
	rig_settle();
	ck_assert_ptr_null(rig_server()->client[MALLORYS]);
	ck_assert_str_eq(scene_wire(), "");
}

/* --- last records --------------------------------------------------------- */

static unsigned int n_each; /* messages per datagram */

/* Return: the number of accepted datagrams. */
static unsigned int fill_with_records(const struct rig_client *client)
{
	struct portd_record record = {
		.type = PORTD_MAD, .mad = { .port = client->handle, .path = rig_peer(SCENE_PEER) }
	};
	struct cm_msg dreq = talk_msg_of(CM_ATTR_DREQ, client->first + 1, 1);
	struct portd_datagram out;
	unsigned int n = 0;

	rig_encode(&record.mad, &dreq);
	do {
		out.bytes = 0;
		for (n_each = 0; portd_put(&out, &record);)
			n_each++;
		n += n_each;
	} while (rig_put(client->data, out.data, out.bytes, NULL, 0));
	return n - n_each;
}

TEST(a_turn_reads_few_last_records_of_a_user)
{
	unsigned int i, n_words = 0, most = 0;
	uint32_t *rates = rig_server()->options.quotas.is;
	uint64_t before, n_read = 0;

	rates[QUOTA_USER_RATE] = 10000000;
	rig_pass(1000);
	for (i = 0; i < N_CLIENTS; i++) {
		n_words += fill_with_records(&mallory[i]);
		close_client(&mallory[i]);
	}
	for (i = 0; i < 100; i++) {
		before = rig_count(PORTD_COUNT_FORBIDDEN);
		rig_turn();
		n_read += rig_count(PORTD_COUNT_FORBIDDEN) - before;
		if (rig_count(PORTD_COUNT_FORBIDDEN) - before > most)
			most = (unsigned int)(rig_count(PORTD_COUNT_FORBIDDEN) - before);
	}
	printf("%u last words, %u of them in one turn\n", n_words, most);
	ck_assert_uint_gt(n_words, 2 * USER_TURN);
	ck_assert_uint_eq(n_read, n_words);
	ck_assert_uint_le(most, USER_TURN + n_each);
	ck_assert_uint_eq(rig_server()->n_clients, MALLORYS);
}

/* Another process has inherited the client's socket and still sends. */
TEST(a_client_ends_in_spite_of_later_records)
{
	struct rig_client heir = mallory[0];
	unsigned int i;

	heir.data = dup(mallory[0].data);
	fill_with_records(&heir);
	close_client(&mallory[0]);
	for (i = 0; i < 50; i++) {
		rig_turn();
		fill_with_records(&heir);
	}
	close(heir.data);
	ck_assert_ptr_null(rig_server()->client[MALLORYS]);
}

/* --- many clients ----------------------------------------------------------- */

#define N_MANY 100

/* They have sent nothing for too long, and have no sockets left to be read. */
TEST(a_turn_ends_few_clients)
{
	struct server *server = rig_server();
	unsigned int i, left, n_turns;

	for (i = 0; i < N_MANY; i++) {
		rig_dial();
		rig_settle();
	}
	rig_pass(1000);
	for (i = MALLORYS + N_CLIENTS; i < MALLORYS + N_CLIENTS + N_MANY; i++)
		server->client[i]->speaks_until = server->now;
	for (n_turns = 0; server->n_clients > MALLORYS + N_CLIENTS; n_turns++) {
		left = server->n_clients;
		rig_turn();
		ck_assert_uint_le(left - server->n_clients, 1 + 16);
	}
	ck_assert_uint_ge(n_turns, 2);
}

/* Their HELLOs wait for clients that may resume. */
TEST(a_turn_accepts_few_waiting_clients)
{
	struct portd_record hello = { .type = PORTD_HELLO, .hello = { .version = PORTD_VERSION } };
	struct portd_datagram out = { .bytes = 0 };
	unsigned int i, n, before;
	int fd[N_MANY];

	portd_put(&out, &hello);
	rig_tear_down();
	rig_set_up(socket_path);
	rig_client_as_user(MALLORY);
	for (i = 0; i < N_MANY; i++) {
		fd[i] = rig_dial();
		rig_put(fd[i], out.data, out.bytes, NULL, 0);
	}
	rig_settle();
	rig_server()->grace_until.ns = 1;
	for (n = 0, before = N_MANY; before; before = n) {
		rig_turn();
		for (i = n = 0; i < N_MANY; i++)
			n += rig_server()->client[i]->has_asked;
		ck_assert_uint_le(before - n, 1);
	}
	for (i = 0; i < N_MANY; i++)
		close(fd[i]);
}

/* Each time, all processes of the host are searched for the one that has it. */
TEST(a_turn_tries_once_to_open_a_port_that_is_taken)
{
	struct portd_record open = { .type = PORTD_OPEN_PORT,
				     .open_port = { .port_num = 2, .device = RIG_DEVICE } };
	struct client **client = &rig_server()->client[MALLORYS];
	unsigned int i, j;
	uint64_t before;

	rig_set_port_taken(true);
	for (i = 0; i < N_CLIENTS; i++)
		ck_assert_int_eq(rig_ask(&mallory[i], &open), -1);
	before = rig_server()->turn_no;
	rig_pass(20);
	for (i = 0; i < N_CLIENTS; i++) {
		ck_assert(client[i]->has_asked);
		ck_assert_uint_gt(client[i]->asked_turn, before);
		for (j = 0; j < i; j++)
			ck_assert_uint_ne(client[i]->asked_turn, client[j]->asked_turn);
	}
	rig_set_port_taken(false);
}

/* The grace period may end within a turn that answers no deferred requests. */
TEST(requests_that_the_grace_period_deferred_are_answered_after_it)
{
	struct portd_record hello = { .type = PORTD_HELLO, .hello = { .version = PORTD_VERSION } };
	struct portd_datagram out = { .bytes = 0 };
	struct server *server;
	int fd;

	portd_put(&out, &hello);
	rig_tear_down();
	rig_set_up(socket_path);
	server = rig_server();
	fd = rig_dial();
	rig_put(fd, out.data, out.bytes, NULL, 0);
	rig_settle();
	ck_assert(server->client[0]->has_asked);
	server->grace_until.ns = 1;
	server->turn_no++;
	ck_assert(!recovery_in_grace(server));
	rig_settle();
	ck_assert(!server->client[0]->has_asked);
	close(fd);
}

/* --- requests ---------------------------------------------------------------- */

TEST(unsent_requests_are_limited_per_user)
{
	uint32_t *quotas = rig_server()->options.quotas.is;
	struct cm_msg req;
	uint32_t n;

	quotas[QUOTA_USER_UNSENT] = 100;
	for (n = 1; n <= 2 * UNANSWERED_MAX + 200; n++) {
		req = scene_req(&mallory[n % N_CLIENTS], n);
		if (n % 500 == 0)
			rig_pass(10);
		scene_sends(&mallory[n % N_CLIENTS], req);
		ck_assert_uint_le(rig_server()->client[MALLORYS]->user->n_requests, 100);
	}
	ck_assert_uint_eq(rig_server()->client[MALLORYS]->user->n_requests, 100);
	ck_assert(rig_server()->client[MALLORYS]->user->was_refused >> QUOTA_USER_UNSENT & 1);
}

/* Their host does not answer, and they are repeated all the time. */
TEST(requests_of_ended_clients_are_limited)
{
	struct server *server = rig_server();
	struct rig_client guest;
	struct cm_msg req;
	unsigned int i;
	uint32_t n;

	for (i = 0; i < 2 * NOBODYS_MAX / REQUESTS_MAX + 4; i++) {
		rig_pass(50);
		rig_join(&guest);
		for (n = 1; n <= REQUESTS_MAX; n++) {
			req = scene_req(&guest, n);
			scene_sends(&guest, req);
		}
		rig_leave(&guest);
		ck_assert_uint_le(server->nobody.n_requests, NOBODYS_MAX);
	}
	ck_assert_uint_eq(server->nobody.n_requests, NOBODYS_MAX);
}

/* --- ports ---------------------------------------------------------------- */

TEST(a_turn_releases_few_ports_of_an_ended_client)
{
	struct portd_record bind = { .type = PORTD_BIND, .claim = rig_claim(0, "0.0.0.0") };
	const struct client *client = rig_server()->client[MALLORYS];
	const uint32_t *n_ports = &client->user->n_ports;
	uint32_t left;

	bind.claim.local_port = 0;
	for (; bind.claim.claim_id < 10 * N_MUCH / 3; bind.claim.claim_id++) {
		if (bind.claim.claim_id % 500 == 0)
			rig_pass(1000);
		ck_assert_int_eq(rig_ask(&mallory[0], &bind), 0);
	}
	close_client(&mallory[0]);
	while ((left = *n_ports)) {
		rig_turn();
		ck_assert_uint_le(left - *n_ports, 9 * USER_TURN);
	}
}

/* --- after a restart --------------------------------------------------------- */

#define N_DEAD	  100
#define LOOKS_MAX 32

/* Each of a process of its own; checking one costs system calls. */
static void connect_as_processes(struct rig_client *client)
{
	struct tracked_owner owner = { .start = 1, .block = 1 };
	uint32_t n;

	for (n = 1; n <= N_DEAD; n++) {
		owner.pid = 0x10000000 + n; /* it does not exist */
		ck_assert_int_eq(tracker_own(rig_server()->tracker, 0, &owner), 0);
		scene_connect(client, n);
	}
}

TEST(a_turn_checks_few_processes_of_the_previous_cmportd)
{
	unsigned int n_turns;
	uint64_t before;

	connect_as_processes(&scene_alice);
	rig_tear_down();
	rig_set_up(socket_path);
	rig_server()->grace_until.ns = 0;
	ck_assert_ptr_nonnull(tracker_orphan(rig_server()->tracker, NULL));
	for (n_turns = 0; tracker_orphan(rig_server()->tracker, NULL) && n_turns < N_DEAD;
	     n_turns++) {
		before = rig_server()->n_process_looks;
		rig_turn();
		ck_assert_uint_le(rig_server()->n_process_looks - before, LOOKS_MAX);
	}
	ck_assert_uint_ge(n_turns, N_DEAD / LOOKS_MAX);
	ck_assert_ptr_null(tracker_orphan(rig_server()->tracker, NULL));
}

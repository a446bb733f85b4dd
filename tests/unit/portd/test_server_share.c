/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The limits of cmportd for all users together: a user who connects late still gets resources when
 * many others hold as many as they can. MALLORY, MALLORY + 1, ... hold them, Erin connects late.
 */
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "tests/unit/portd/scene.h"
#include "tests/unit/test.h"

#define MALLORY	  1001
#define N_MALLORY 12
#define ERIN	  2001
#define PLACES	  (CLIENTS_MAX - ROOT_CLIENTS)

static struct rig_client erin;

FIXTURE(scene_set_up, scene_tear_down);
TIME_LIMIT_S(100);

static int say_hello(struct rig_client *client)
{
	struct portd_record hello = { .type = PORTD_HELLO, .hello = { .version = PORTD_VERSION } };

	*client = (struct rig_client){ .control = rig_dial(), .data = -1 };
	return rig_ask(client, &hello);
}

/* --- the rule ------------------------------------------------------------- */

#define MOST  4096 /* four times the default */
#define QUOTA QUOTA_USER_CLIENTS

static bool leaves_share(uint32_t quota, uint32_t has, uint32_t all)
{
	const struct quotas quotas = { { [QUOTA] = quota } };

	return quota_leaves_share(&quotas, QUOTA, has, all, MOST);
}

TEST(one_user_may_have_his_whole_quota)
{
	uint32_t has;

	for (has = 0; has < 1024; has++)
		ck_assert(leaves_share(0, has, has));
}

TEST(each_who_takes_leaves_as_much_and_an_eighth)
{
	ck_assert(leaves_share(0, 1000, MOST - MOST / 8 - 1001));
	ck_assert(!leaves_share(0, 1000, MOST - MOST / 8 - 1000));
}

TEST(who_has_little_may_have_what_is_left)
{
	ck_assert(leaves_share(0, 3, MOST - 1));
	ck_assert(!leaves_share(0, 4, MOST - 1));
	ck_assert(!leaves_share(0, 0, MOST));
}

/* Who has set it wants that. */
TEST(larger_quota_leaves_an_eighth_only)
{
	ck_assert(leaves_share(4000, 3500, 3500));
	ck_assert(!leaves_share(4000, 3584, 3584));
}

/* A lower quota is for each user, and there may be as many users as before. */
TEST(smaller_quota_leaves_all_as_much_as_before)
{
	const struct quotas quotas = { { [QUOTA] = 10 } };

	ck_assert_uint_eq(quota_of_all(&quotas, QUOTA), MOST);
}

/* --- places --------------------------------------------------------------- */

static unsigned int take_places(void)
{
	struct rig_client client = { .control = rig_dial() };
	unsigned int n = 0;

	for (rig_settle(); !rig_is_disconnected(&client); n++) {
		client.control = rig_dial();
		rig_settle();
	}
	return n;
}

TEST(users_who_take_all_places_together_leave_some_to_another)
{
	unsigned int i, n, all = 0;

	for (i = 0; i < N_MALLORY; i++) {
		rig_come_as_user(MALLORY + i);
		n = take_places();
		ck_assert_uint_ge(n, 4);
		all += n;
	}
	printf("%u users take %u of %u places\n", N_MALLORY, all, PLACES);
	fflush(stdout);
	ck_assert_uint_ge(all, PLACES / 2);
	rig_come_as_user(ERIN);
	for (i = 0; i < 4; i++)
		rig_join(&erin);
}

TEST(who_is_refused_by_the_share_of_others_is_told_so)
{
	const char *text = erin.reply.text;

	rig_server()->n_clients += PLACES - 300;
	rig_come_as_user(ERIN);
	while (say_hello(&erin) == 0)
		;
	rig_server()->n_clients -= PLACES - 300;
	ck_assert_uint_eq(erin.reply.error, EDQUOT);
	ck_assert_msg(strstr(text, "uid 2001 has 4 and all users have ") == text &&
			      strstr(text, "the rest is for users who have less") &&
			      strstr(text, "cmportd --quota=user-clients=NUMBER"),
		      "%s", text);
}

/* --- what a place gives ---------------------------------------------------- */

static void take_all_but(enum quota quota, uint32_t *all, uint32_t n)
{
	*all += quota_of_all(&rig_server()->options.quotas, quota) - n;
}

static int ask_for_ids(void)
{
	return rig_ask(&erin, &(struct portd_record){ .type = PORTD_LEASE_IDS });
}

TEST(blocks_of_comm_ids_are_left)
{
	unsigned int i;

	rig_come_as_user(ERIN);
	take_all_but(QUOTA_USER_IDS, &rig_server()->users.n_blocks, 100);
	rig_join(&erin);
	for (i = 1; i < 16; i++)
		ck_assert_int_eq(ask_for_ids(), 0);
	ck_assert_int_eq(ask_for_ids(), EDQUOT);
}

TEST(requests_that_wait_are_left_room)
{
	rig_come_as_user(ERIN);
	rig_join(&erin);
	take_all_but(QUOTA_USER_UNSENT, &rig_server()->users.n_requests, 100);
	scene_sends(&erin, scene_req(&erin, 1));
	ck_assert_str_eq(scene_wire(), "REQ");
	take_all_but(QUOTA_USER_UNSENT, &rig_server()->users.n_requests, 0);
	scene_sends(&erin, scene_req(&erin, 2));
	ck_assert_str_eq(scene_wire(), "");
}

TEST(answers_that_wait_are_left_room)
{
	rig_come_as_user(ERIN);
	rig_join(&erin);
	take_all_but(QUOTA_USER_QUEUED, &rig_server()->users.n_queued, 1);
	ck_assert(client_takes_requests(rig_server()->client[2]));
	rig_server()->users.n_queued++;
	ck_assert(!client_takes_requests(rig_server()->client[2]));
}

TEST(ports_are_left)
{
	struct portd_record bind = { .type = PORTD_BIND, .claim = rig_claim(1, "0.0.0.0") };

	bind.claim.local_port = 0;
	rig_come_as_user(ERIN);
	rig_join(&erin);
	take_all_but(QUOTA_USER_PORTS, &rig_server()->users.n_ports, 1);
	ck_assert_int_eq(rig_ask(&erin, &bind), 0);
	bind.claim.claim_id++;
	ck_assert_int_eq(rig_ask(&erin, &bind), EDQUOT);
}

/* --- ephemeral ports ------------------------------------------------------- */

#define LEASE 1024

/* Has all its leases in use. Return: how many there are. */
static unsigned int lease_all(struct rig_client *client)
{
	struct portd_record lease = { .type = PORTD_LEASE_PORTS,
				      .lease_ports = { .ps = RDMA_PS_TCP, .count = LEASE } };
	struct lease_page *page = mmap(NULL, LEASE_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
				       client->page_fd, 0);
	unsigned int n = 0;

	ck_assert_ptr_ne(page, MAP_FAILED);
	while (rig_ask(client, &lease) == 0 && client->reply.count) {
		n += client->reply.count;
		memset(page->word, 0xff, sizeof(page->word));
		rig_pass(1000);
	}
	munmap(page, LEASE_PAGE_BYTES);
	return n;
}

static unsigned int lease_by_user(uid_t uid, unsigned int n_clients)
{
	struct rig_client client;
	unsigned int n = 0;

	rig_come_as_user(uid);
	while (n_clients--) {
		rig_meet(&client);
		n += lease_all(&client);
	}
	return n;
}

TEST(users_who_take_all_ephemeral_ports_leave_some_to_another)
{
	unsigned int i, n, all = 0;

	for (i = 0; i < N_MALLORY; i++) {
		n = lease_by_user(MALLORY + i, 2);
		ck_assert_uint_ge(n, 96);
		all += n;
	}
	printf("%u users take %u ephemeral ports\n", N_MALLORY, all);
	fflush(stdout);
	ck_assert_uint_ge(all, 24000);
	ck_assert_uint_eq(lease_by_user(ERIN, 1), 96);
	ck_assert_uint_gt(lease_all(&scene_alice), 1000); /* root has no share */
}

TEST(one_user_may_have_nearly_all_ephemeral_ports)
{
	ck_assert_uint_eq(lease_by_user(MALLORY, 6), 24576);
}

/* --- memory ---------------------------------------------------------------- */

/* Of its socket's queue; the kernel doubles what it is told. */
TEST(buffers_of_all_clients_are_limited_together)
{
	struct server *server = rig_server();
	const int64_t before = server->n_buffer_bytes;
	struct rig_client client;
	int64_t last;

	rig_come_as_user(MALLORY);
	rig_meet(&client);
	ck_assert_int_eq(server->client[2]->n_buffer_bytes, 1 << 20);
	ck_assert_int_eq(server->n_buffer_bytes - before, 1 << 20);
	server->n_buffer_bytes += (INT64_C(1) << 29) - (40 << 20);
	rig_come_as_user(MALLORY + 1);
	rig_meet(&client);
	ck_assert_int_lt(server->client[3]->n_buffer_bytes, 1 << 20);
	server->n_buffer_bytes += 1 << 30;
	rig_meet(&client);
	ck_assert_int_eq(server->client[4]->n_buffer_bytes, 1 << 15);
	server->n_buffer_bytes -= (INT64_C(1) << 29) - (40 << 20) + (1 << 30);
	last = server->n_buffer_bytes;
	rig_leave(&client);
	ck_assert_int_eq(last - server->n_buffer_bytes, 1 << 15);
}

TEST(user_with_many_clients_gets_smaller_buffers)
{
	struct rig_client client;
	unsigned int i;

	rig_come_as_user(MALLORY);
	for (i = 0; i < 64; i++)
		rig_meet(&client);
	ck_assert_int_eq(rig_server()->client[64]->n_buffer_bytes, 1 << 20);
	ck_assert_int_eq(rig_server()->client[65]->n_buffer_bytes, 1 << 19);
}

/* For the link address of a host that does not exist. */
TEST(messages_that_wait_for_a_neighbour_are_left_room)
{
	struct host_port *host_port;

	rig_come_as_user(ERIN);
	rig_join(&erin);
	host_port = rig_server()->host_port[erin.handle];
	host_port->n_waiting += WAITING_MAX;
	rig_hops_are_ready(false);
	scene_sends(&erin, scene_req(&erin, 1));
	ck_assert_uint_eq(rig_server()->client[2]->n_waits, 1);
	host_port->n_waiting -= WAITING_MAX;
}

/* Other hosts' messages go on. */
TEST(one_user_has_at_most_half_of_the_messages_that_wait_for_neighbours)
{
	const struct host_port *host_port;
	struct rig_client client;
	unsigned int i, n;

	rig_come_as_user(MALLORY);
	rig_hops_are_ready(false);
	for (n = 0; n < 6; n++) {
		rig_join(&client);
		for (i = 0; i < WAITS_MAX; i++)
			scene_sends(&client, scene_req(&client, i + 1));
	}
	host_port = rig_server()->host_port[client.handle];
	ck_assert_uint_gt(host_port->n_waiting, WAITING_MAX / 4);
	ck_assert_uint_le(host_port->n_waiting, WAITING_MAX / 2);
}

/* --- a turn ---------------------------------------------------------------- */

#define N_BUSY 8

static struct rig_client busy[N_BUSY];
static unsigned int n_each; /* messages in a datagram */

static void say_much(const struct rig_client *client)
{
	struct portd_record record = { .type = PORTD_CLOSE };
	struct portd_datagram out = { .bytes = 0 };

	for (n_each = 0; portd_put(&out, &record);)
		n_each++;
	while (rig_put(client->data, out.data, out.bytes, NULL, 0))
		continue;
}

/* Return: how many messages a turn reads of all of them. */
static double turn_of_all(void)
{
	double n = 0;
	unsigned int i;

	for (i = 0; i < N_BUSY; i++) {
		rig_server()->client[2 + i]->batch = 64;
		n += rig_server()->client[2 + i]->user->rate.tokens;
	}
	rig_turn();
	for (i = 0; i < N_BUSY; i++)
		n -= rig_server()->client[2 + i]->user->rate.tokens;
	return n;
}

/* Another user waits for all of it. */
TEST(many_users_who_have_much_to_say_share_a_turn)
{
	double first, second;
	unsigned int i;

	for (i = 0; i < N_BUSY; i++) {
		rig_come_as_user(MALLORY + i);
		rig_meet(&busy[i]);
	}
	rig_pass(1000);
	for (i = 0; i < N_BUSY; i++)
		say_much(&busy[i]);
	first = turn_of_all();
	second = turn_of_all();
	printf("a turn reads %.0f messages of %u users, the next %.0f\n", first, N_BUSY, second);
	fflush(stdout);
	ck_assert(first > N_BUSY * USER_TURN);
	ck_assert(second <= USER_TURN + N_BUSY * n_each);
	ck_assert(second >= N_BUSY * USER_TURN_LEAST);
}

/* --- connects -------------------------------------------------------------- */

TEST(who_connects_too_often_is_told_so)
{
	rig_server()->options.quotas.is[QUOTA_USER_CONNECTS] = 1;
	rig_come_as_user(MALLORY);
	rig_pass(1);
	while (say_hello(&erin) == 0)
		;
	ck_assert_uint_eq(erin.reply.error, EAGAIN);
	ck_assert_str_eq(erin.reply.text,
			 "uid 1001 connects to cmportd too often: times that one user may connect "
			 "a second are limited to 1; cmportd --quota=user-connects=NUMBER allows "
			 "more");
}

/* Its HELLO and its end are paid as well, by 34. */
TEST(a_connect_is_paid_as_messages_are)
{
	const struct user *user;
	double before;

	rig_come_as_user(MALLORY);
	rig_meet(&erin);
	user = rig_server()->client[2]->user;
	before = user->rate.tokens;
	rig_dial();
	rig_settle();
	ck_assert(before - user->rate.tokens >= 8);
}

/* --- the log --------------------------------------------------------------- */

static void be_turned_away(unsigned int n)
{
	for (; n; n--) {
		close(rig_dial());
		rig_settle();
	}
}

TEST(users_for_whom_there_is_no_place_do_not_fill_the_log)
{
	int log = memfd_create("log", 0);

	log_set_verbose();
	ck_assert_int_ge(dup2(log, STDERR_FILENO), 0);
	rig_server()->n_clients += CLIENTS_MAX;
	rig_come_as_user(ERIN);
	be_turned_away(100);
	ck_assert_uint_eq(rig_said(log, "uid 2001 cannot connect: "), 1);
	rig_pass(60001);
	be_turned_away(100);
	rig_server()->n_clients -= CLIENTS_MAX;
	ck_assert_uint_eq(rig_said(log, "uid 2001 cannot connect: "), 2);
	ck_assert_uint_eq(rig_said(log, "(100 connects since that was last said)"), 1);
}

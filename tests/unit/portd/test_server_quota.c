/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Quotas of one user in a cmportd, whatever the number of its clients, and their effect on others:
 * lib/portd/server/limits.h. Mallory is one user, Bob another.
 */
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <string.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "lib/portd/server/files/socket_dir.h"
#include "tests/unit/portd/scene.h"
#include "tests/unit/steps.h"
#include "tests/unit/test.h"

#define MALLORY 61001
#define BOB	61002
#define N_MAX	8

static struct rig_client mallory[N_MAX];
static struct rig_client bob;

static void allow(enum quota quota, uint32_t n)
{
	rig_server()->options.quotas.is[quota] = n;
}

static void set_up(void)
{
	scene_set_up();
	rig_client_as_user(BOB);
	rig_join(&bob);
	rig_client_as_user(MALLORY);
}

static int send_hello(struct rig_client *client)
{
	struct portd_record hello = { .type = PORTD_HELLO, .hello = { .version = PORTD_VERSION } };

	client->control = rig_dial();
	client->data = -1;
	return rig_ask(client, &hello);
}

static const struct user *user_of_mallory(void)
{
	const struct user *user = NULL;

	list_for_each_entry (user, &rig_server()->users.all, link)
		if (user->uid == MALLORY)
			break;
	return user;
}

static int bind_number(struct rig_client *client, uint32_t n)
{
	struct portd_record record = { .type = PORTD_BIND, .claim = rig_claim(n, "0.0.0.0") };

	record.claim.local_port = 0;
	return rig_ask(client, &record);
}

static uint64_t fill(int fd, enum portd_type type)
{
	struct portd_record record = { .type = type };
	struct portd_datagram out = { .bytes = 0 };
	uint64_t n = 0, done = 0;

	while (portd_put(&out, &record) && ++n && !portd_is_asked(type))
		continue; /* a request has a datagram of its own */
	while (rig_put(fd, out.data, out.bytes, NULL, 0))
		done += n;
	return done;
}

/* --- connecting clients -------------------------------------------------- */

FIXTURE(set_up, scene_tear_down);

TEST(clients_are_limited_per_user)
{
	allow(QUOTA_USER_CLIENTS, 2);
	rig_meet(&mallory[0]);
	rig_meet(&mallory[1]);
	ck_assert_int_eq(send_hello(&mallory[2]), EDQUOT);
	rig_client_as_user(BOB);
	rig_meet(&mallory[3]);
}

TEST(excess_client_gets_the_reason)
{
	allow(QUOTA_USER_CLIENTS, 1);
	rig_meet(&mallory[0]);
	send_hello(&mallory[1]);
	ck_assert_str_eq(mallory[1].reply.text,
			 "uid 61001 has enough: connections of one user to cmportd are limited to "
			 "1; cmportd --quota=user-clients=NUMBER allows more");
}

TEST(user_may_connect_again_after_a_client_ends)
{
	allow(QUOTA_USER_CLIENTS, 1);
	rig_meet(&mallory[0]);
	rig_leave(&mallory[0]);
	ck_assert_int_eq(send_hello(&mallory[1]), 0);
}

TEST(excess_clients_take_few_places)
{
	unsigned int i, before = rig_server()->n_clients;

	allow(QUOTA_USER_CLIENTS, 1);
	for (i = 0; i < 100; i++) {
		rig_dial();
		rig_settle();
	}
	ck_assert_uint_le(rig_server()->n_clients, before + 1);
}

static bool is_accepted(void)
{
	struct rig_client guest = { .control = rig_dial() };
	bool is_in;

	rig_settle();
	is_in = !rig_is_disconnected(&guest);
	close(guest.control);
	rig_settle();
	return is_in;
}

static void use_up_connects(void)
{
	unsigned int i;

	for (i = 0; i < CONNECTS_MAX; i++)
		ck_assert(is_accepted());
}

TEST(user_who_connects_too_often_is_refused)
{
	use_up_connects();
	ck_assert(!is_accepted());
	ck_assert(!is_accepted());
	rig_client_as_user(BOB);
	ck_assert(is_accepted());
	rig_client_as_user(0);
	ck_assert(is_accepted());
}

TEST(user_who_sends_at_the_rate_may_connect)
{
	allow(QUOTA_USER_RATE, 1000);
	rig_meet(&mallory[0]);
	do
		rig_settle();
	while (fill(mallory[0].data, PORTD_CLOSE));
	ck_assert_uint_eq(rig_server()->n_throttled, 1);
	ck_assert(is_accepted());
}

TEST(user_who_connects_often_may_send)
{
	struct portd_record bind = { .type = PORTD_BIND, .claim = rig_claim(1, SCENE_ADDR) };

	rig_meet(&mallory[0]);
	while (is_accepted())
		;
	ck_assert_int_eq(rig_ask(&mallory[0], &bind), 0);
}

TEST(refused_user_is_accepted_after_a_wait)
{
	use_up_connects();
	rig_pass(1000 / CONNECTS_S + 1);
	ck_assert(is_accepted());
	ck_assert(!is_accepted());
}

/* A later client would wait for all earlier ones. */
TEST(few_clients_wait_for_their_refusal_before_another)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	socklen_t bytes = sizeof(addr);
	unsigned int n = 0;
	int fd;

	getsockname(rig_server()->listening.fd, (struct sockaddr *)&addr, &bytes);
	do {
		fd = rig_dial_later();
		if (connect(fd, (struct sockaddr *)&addr, bytes))
			break;
	} while (++n <= 2 * WAITING_CONNECTS);
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert_uint_le(n, WAITING_CONNECTS + 1);
	rig_settle();
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&addr, bytes), 0);
}

/* They are accepted one per turn. */
TEST(a_turn_refuses_many_clients)
{
	uint64_t before;
	unsigned int i;

	use_up_connects();
	before = rig_server()->turn_no;
	for (i = 0; i < REFUSALS_MAX; i++)
		close(rig_dial());
	rig_settle();
	ck_assert_uint_le(rig_server()->turn_no - before, 6);
}

TEST(clients_of_root_are_unlimited)
{
	unsigned int i;

	allow(QUOTA_USER_CLIENTS, 1);
	rig_client_as_user(0);
	for (i = 0; i < N_MAX; i++)
		rig_meet(&mallory[i]);
}

TEST(client_that_sends_nothing_is_disconnected)
{
	unsigned int before = rig_server()->n_clients;

	rig_dial();
	rig_settle();
	rig_pass(9900);
	ck_assert_uint_eq(rig_server()->n_clients, before + 1);
	rig_pass(200);
	ck_assert_uint_eq(rig_server()->n_clients, before);
}

TEST(client_may_send_nothing_after_hello)
{
	unsigned int before = rig_server()->n_clients;

	rig_meet(&mallory[0]);
	rig_pass(3600 * 1000);
	ck_assert_uint_eq(rig_server()->n_clients, before + 1);
}

/* --- their resources ----------------------------------------------------- */

TEST(ports_are_limited_per_user)
{
	allow(QUOTA_USER_PORTS, 2);
	rig_meet(&mallory[0]);
	rig_meet(&mallory[1]);
	ck_assert_int_eq(bind_number(&mallory[0], 1), 0);
	ck_assert_int_eq(bind_number(&mallory[1], 1), 0);
	ck_assert_int_eq(bind_number(&mallory[1], 2), EDQUOT);
	ck_assert_int_eq(bind_number(&bob, 1), 0);
}

static void lease_all_ids(const struct rig_client *client)
{
	struct lease_page *page = mmap(NULL, LEASE_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
				       client->page_fd, 0);

	ck_assert_ptr_ne(page, MAP_FAILED);
	while (lease_take(page, RDMA_PS_TCP))
		continue;
	munmap(page, LEASE_PAGE_BYTES);
}

TEST(leased_ports_count_in_the_quota)
{
	struct portd_record lease = { .type = PORTD_LEASE_PORTS,
				      .lease_ports = { .ps = RDMA_PS_TCP, .count = 1 } };

	allow(QUOTA_USER_PORTS, 1);
	rig_meet(&mallory[0]);
	ck_assert_int_eq(rig_ask(&mallory[0], &lease), 0);
	lease_all_ids(&mallory[0]);
	ck_assert_int_eq(bind_number(&mallory[0], 1), EDQUOT);
}

#define JOB 200 /* processes; each leases more ports than it uses, together more than there are */

/* Return: the number of ports that the last process has leased with one request. */
static unsigned int start_job(unsigned int n)
{
	struct portd_record lease = { .type = PORTD_LEASE_PORTS,
				      .lease_ports = { .ps = RDMA_PS_TCP, .count = 256 } };
	struct rig_client client;
	unsigned int i, n_leased = 0;

	for (i = 0; i < n; i++) {
		rig_meet(&client);
		ck_assert_int_eq(rig_ask(&client, &lease), 0);
		ck_assert_uint_ge(client.reply.count, 1);
		n_leased = client.reply.count;
		ck_assert_int_eq(bind_number(&client, 1), 0);
		rig_pass(1); /* they start within half a second */
	}
	return n_leased;
}

TEST(unused_leases_do_not_block_other_programs_of_a_user)
{
	start_job(JOB);
	ck_assert(!user_of_mallory()->was_refused);
}

/* Ports of all namespaces count. */
TEST(unused_leases_in_other_namespaces_do_not_block_programs)
{
	rig_client_from(RIG_HOME + 1);
	start_job(JOB / 2 - 5); /* nearly all that the user may have */
	rig_client_from(RIG_HOME);
	ck_assert_uint_eq(start_job(JOB / 2 - 5), 256);
	ck_assert(!user_of_mallory()->was_refused);
}

TEST(no_more_ports_are_leased_at_once_than_a_user_may_have)
{
	struct portd_record lease = { .type = PORTD_LEASE_PORTS,
				      .lease_ports = { .ps = RDMA_PS_TCP, .count = 100 } };

	allow(QUOTA_USER_PORTS, 7);
	rig_meet(&mallory[0]);
	rig_ask(&mallory[0], &lease);
	ck_assert_uint_eq(mallory[0].reply.count, 7);
}

static void reconnect(struct rig_client *client, int page_fd)
{
	*client = (struct rig_client){ .control = rig_dial(), .data = -1, .page_fd = -1 };
	rig_resume(client, page_fd);
}

/* A page with more ports than the client has leased. */
TEST(resumed_ports_count_in_the_quota)
{
	const struct portd_record resumed = { .type = PORTD_RESUMED };
	struct lease_page *page;
	unsigned int i, n = 0;

	allow(QUOTA_USER_PORTS, 7);
	rig_meet(&mallory[0]);
	page = mmap(NULL, LEASE_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, mallory[0].page_fd,
		    0);
	ck_assert_ptr_ne(page, MAP_FAILED);
	for (i = 0; i < 100; i++)
		page->word[i] = lease_word(RDMA_PS_TCP, (uint16_t)(40000 + i), LEASE_FREE);
	reconnect(&mallory[1], mallory[0].page_fd);
	rig_ask(&mallory[1], &resumed);
	for (i = 0; i < 100; i++)
		n += page->word[i] != LEASE_EMPTY;
	munmap(page, LEASE_PAGE_BYTES);
	ck_assert_uint_eq(n, 7);
}

TEST(connections_are_limited_per_user)
{
	allow(QUOTA_USER_CONNS, 2);
	rig_join(&mallory[0]);
	rig_join(&mallory[1]);
	scene_sends(&mallory[0], scene_req(&mallory[0], 1));
	scene_sends(&mallory[1], scene_req(&mallory[1], 1));
	scene_wire();
	scene_sends(&mallory[1], scene_req(&mallory[1], 2));
	ck_assert_str_eq(scene_wire(), "");
	scene_sends(&bob, scene_req(&bob, 1));
	ck_assert_str_eq(scene_wire(), "REQ");
}

TEST(connections_of_an_ended_client_do_not_count)
{
	allow(QUOTA_USER_CONNS, 1);
	rig_join(&mallory[0]);
	rig_join(&mallory[1]);
	scene_sends(&mallory[0], scene_req(&mallory[0], 1));
	rig_leave(&mallory[0]);
	scene_wire();
	scene_sends(&mallory[1], scene_req(&mallory[1], 1));
	ck_assert_str_eq(scene_wire(), "REQ");
}

TEST(client_that_reads_is_served_beside_one_that_does_not)
{
	struct portd_record ask = { .type = PORTD_SA_ASK };

	allow(QUOTA_USER_QUEUED, 1);
	rig_join(&mallory[0]);
	rig_join(&mallory[1]);
	while (!user_of_mallory()->n_queued) {
		ck_assert(rig_send_record(&mallory[0], &ask));
		rig_settle();
	}
	ck_assert_int_eq(rig_listen(&mallory[1], SCENE_ADDR), 0);
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	ck_assert_str_eq(scene_delivered(&mallory[1]), "REQ");
	ck_assert(rig_send_record(&mallory[1], &ask));
	rig_settle();
	ck_assert(rig_next(&mallory[1], &ask));
	ck_assert_int_eq(ask.type, PORTD_SA_TOLD);
	ck_assert(!rig_is_disconnected(&mallory[1]));
}

/* --- rates --------------------------------------------------------------- */

TEST(many_clients_of_a_user_are_read_at_one_rate)
{
	unsigned int i;

	for (i = 0; i < N_MAX; i++)
		rig_meet(&mallory[i]);
	allow(QUOTA_USER_RATE, 1000);
	rig_pass(1000);
	fill(mallory[0].data, PORTD_CLOSE);
	rig_settle();
	for (i = 1; i < N_MAX; i++)
		fill(mallory[i].data, PORTD_CLOSE);
	rig_settle();
	ck_assert_uint_eq(rig_server()->n_throttled, N_MAX);
	scene_sends(&bob, scene_req(&bob, 1));
	ck_assert_str_eq(scene_wire(), "REQ");
}

static void turn(void)
{
	rig_turn();
}

TEST(a_turn_does_not_walk_over_clients_that_have_used_up_their_rate)
{
	unsigned long first, second;
	unsigned int i;

	for (i = 0; i < N_MAX; i++)
		rig_meet(&mallory[i]);
	allow(QUOTA_USER_RATE, 1000);
	rig_pass(1000);
	for (i = 0; i < N_MAX; i++) {
		fill(mallory[i].data, PORTD_CLOSE);
		rig_settle();
	}
	ck_assert_uint_eq(rig_server()->n_throttled, N_MAX);
	rig_server()->unthrottle_at = rig_server()->now;
	first = steps_of(turn);
	rig_turn();
	second = steps_of(turn);
	printf("%lu instructions, then %lu, beside %u such clients\n", first, second, N_MAX);
	ck_assert_uint_le(second, first);
	ck_assert(!first || first - second > 20 * N_MAX);
}

TEST(requests_have_a_rate_like_messages)
{
	unsigned int i;

	rig_meet(&mallory[0]);
	do
		rig_settle();
	while (fill(mallory[0].control, PORTD_RELEASE));
	ck_assert_uint_eq(rig_server()->n_throttled, 1);
	for (i = 0; i < 100; i++)
		rig_pass(10);
	ck_assert_uint_gt(fill(mallory[0].control, PORTD_RELEASE), 0);
}

TEST(reconnecting_client_gets_no_new_burst)
{
	allow(QUOTA_USER_RATE, 1000);
	rig_meet(&mallory[0]);
	fill(mallory[0].data, PORTD_CLOSE);
	rig_leave(&mallory[0]);
	ck_assert_int_eq(send_hello(&mallory[1]), -1);
	rig_pass(2000);
	ck_assert_int_eq(rig_answer(&mallory[1]), 0);
}

TEST(idle_user_is_dropped)
{
	rig_meet(&mallory[0]);
	rig_leave(&mallory[0]);
	rig_pass(1000);
	rig_meet(&mallory[0]);
	rig_leave(&mallory[0]);
	rig_pass(1000);
	rig_client_as_user(BOB);
	rig_meet(&mallory[1]);
	ck_assert_uint_eq(list_length(&rig_server()->users.all), 2); /* root, and Bob */
}

/* A range of subordinate uids is as many users. */
TEST(short_lived_users_leave_room_for_others)
{
	uid_t uid;
	int fd;

	for (uid = 100000; uid < 100000 + USERS_MAX + 100; uid++) {
		rig_client_as_user(uid);
		fd = rig_dial();
		rig_settle();
		close(fd);
		rig_settle();
	}
	ck_assert_uint_le(list_length(&rig_server()->users.all), USERS_MAX);
	rig_client_as_user(BOB + 1);
	rig_meet(&mallory[0]);
}

/*
 * Otherwise a user with many clients would be read from at each turn, while one with one client
 * waits.
 */
TEST(reads_per_turn_are_limited_per_user)
{
	struct portd_datagram full = { .bytes = 0 };
	struct portd_record record = { .type = PORTD_CLOSE };
	unsigned int i, n = 0;
	double before;

	while (portd_put(&full, &record))
		n++;
	for (i = 0; i < N_MAX; i++)
		rig_meet(&mallory[i]);
	for (i = 0; i < N_MAX; i++)
		fill(mallory[i].data, PORTD_CLOSE);
	before = user_of_mallory()->rate.taken;
	rig_turn();
	ck_assert(user_of_mallory()->rate.taken - before <= USER_TURN + n);
}

/* --- settings ------------------------------------------------------------ */

TEST(a_quota_is_set_by_its_name)
{
	struct quotas quotas = { { 0 } };

	ck_assert(quota_set(&quotas, "user-conns=7"));
	ck_assert_uint_eq(quota_of(&quotas, QUOTA_USER_CONNS), 7);
}

TEST(a_quota_that_is_not_set_has_its_default)
{
	ck_assert_uint_eq(quota_of(&(struct quotas){ { 0 } }, QUOTA_USER_RATE), 200000);
}

static const char *const wrong[] = { "",
				     "user-conns",
				     "user-conns=",
				     "user-conns=0",
				     "user-conns=x",
				     "user-conns=1x",
				     "user-conns=-1",
				     "user=1",
				     "user-connsx=1",
				     "user-conns= 1",
				     "=1",
				     "user-conns=1000000001" };

TEST_LOOP(unknown_quota_is_refused, 0, sizeof(wrong) / sizeof(wrong[0]))
{
	ck_assert(!quota_set(&(struct quotas){ { 0 } }, wrong[_i]));
}

/* --- the log -------------------------------------------------------------- */

#define VISITS 20

/* Also if it is away long enough to be dropped. */
TEST(log_lines_are_limited_per_user)
{
	int log = memfd_create("log", 0);
	struct rig_client liar;
	unsigned int i;

	allow(QUOTA_USER_PORTS, 1);
	log_set_verbose();
	ck_assert_int_ge(dup2(log, STDERR_FILENO), 0);
	for (i = 0; i < VISITS; i++) {
		rig_meet(&liar);
		ck_assert_int_eq(bind_number(&liar, 1), 0);
		ck_assert_int_eq(bind_number(&liar, 2), EDQUOT);
		rig_ask(&liar, &(struct portd_record){ .type = PORTD_TRACK });
		rig_leave(&liar);
		rig_pass(5000);
	}
	ck_assert_uint_eq(rig_count_text(log, "has reached its quota"), 1);
	ck_assert_uint_eq(rig_count_text(log, "has reported"), 1);
}

static void expect_refusal(unsigned int n)
{
	for (; n; n--) {
		close(rig_dial());
		rig_settle();
	}
}

TEST(refused_users_do_not_fill_the_log)
{
	int log = memfd_create("log", 0);

	log_set_verbose();
	ck_assert_int_ge(dup2(log, STDERR_FILENO), 0);
	rig_server()->n_clients += CLIENTS_MAX;
	rig_client_as_user(BOB + 1);
	expect_refusal(100);
	ck_assert_uint_eq(rig_count_text(log, "uid 61003 cannot connect: "), 1);
	rig_pass(60001);
	expect_refusal(100);
	rig_server()->n_clients -= CLIENTS_MAX;
	ck_assert_uint_eq(rig_count_text(log, "uid 61003 cannot connect: "), 2);
	ck_assert_uint_eq(rig_count_text(log, "(100 connects since that was last said)"), 1);
}

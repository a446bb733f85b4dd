/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Exhausted resources: room for clients, descriptors, tables, and sockets of clients that do not
 * read.
 */
#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "tests/unit/portd/folder.h"
#include "tests/unit/portd/scene.h"
#include "tests/unit/test.h"

#define alice	      (&scene_alice)
#define bob	      (&scene_bob)

#define MALLORY	      61001
#define BACKLOG_BYTES (BACKLOG_MAX * PORTD_DATAGRAM_BYTES)

/* --- clients ------------------------------------------------------------- */

static bool has_hung_up(int fd)
{
	struct rig_client client = { .control = fd };

	return rig_is_disconnected(&client);
}

static void use_all_clients(int fds[CLIENTS_MAX])
{
	unsigned int i;

	for (i = 2; i < CLIENTS_MAX; i++) {
		fds[i] = rig_dial();
		if (i % 64 == 0)
			rig_settle(); /* the listening socket's backlog is limited */
	}
	rig_settle();
	ck_assert_uint_eq(rig_server()->n_clients, CLIENTS_MAX);
}

FIXTURE(scene_set_up, scene_tear_down);
TEST(excess_client_is_refused)
{
	static int fds[CLIENTS_MAX];
	int fd;

	use_all_clients(fds);
	fd = rig_dial();
	rig_settle();
	ck_assert(has_hung_up(fd));
	ck_assert(!has_hung_up(fds[CLIENTS_MAX - 1]));
	ck_assert_uint_eq(rig_server()->n_clients, CLIENTS_MAX);
}

TEST(next_client_is_accepted_when_one_leaves)
{
	static int fds[CLIENTS_MAX];
	struct rig_client carol;

	use_all_clients(fds);
	close(fds[100]);
	rig_settle();
	rig_meet(&carol);
	ck_assert_uint_eq(rig_server()->n_clients, CLIENTS_MAX);
}

/* --- descriptors --------------------------------------------------------- */

static void lift_limit(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

TEST(client_without_descriptors_is_accepted_when_another_leaves)
{
	int fd = rig_dial_later();

	leave_descriptors(0);
	rig_connect(fd);
	rig_settle();
	ck_assert_uint_eq(rig_server()->n_clients, 2);
	rig_leave(bob);
	ck_assert_uint_eq(rig_server()->n_clients, 2);
	ck_assert(!has_hung_up(fd));
}

/* Other processes may have used them up temporarily. */
TEST(client_without_descriptors_is_accepted_when_some_are_free)
{
	int fd = rig_dial_later();

	leave_descriptors(0);
	rig_connect(fd);
	rig_settle();
	lift_limit();
	rig_pass(1000);
	ck_assert_uint_eq(rig_server()->n_clients, 3);
}

TEST(clients_without_descriptors_do_not_fill_the_log)
{
	int log = memfd_create("log", 0), fd = rig_dial_later();
	unsigned int s;

	log_set_verbose();
	ck_assert_int_ge(dup2(log, STDERR_FILENO), 0);
	leave_descriptors(0);
	rig_connect(fd);
	for (s = 0; s < 59; s++)
		rig_pass(1000);
	ck_assert_uint_eq(rig_count_text(log, "no more clients for now"), 1);
	rig_pass(1001);
	rig_pass(1001);
	ck_assert_uint_eq(rig_count_text(log, "no more clients for now"), 2);
}

TEST(present_clients_are_served_without_free_descriptors)
{
	leave_descriptors(0);
	ck_assert_int_eq(rig_listen(alice, SCENE_ADDR), 0);
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	scene_sends(alice, scene_rep(alice, 1, 0x701));
	ck_assert_str_eq(scene_wire(), "REP");
}

/* A page, two ends of a data socket: each may be the one that cannot be opened. */
TEST_LOOP(hello_without_descriptors_is_refused_and_leaks_none, 0, 3)
{
	struct portd_record hello = { .type = PORTD_HELLO, .hello = { .version = PORTD_VERSION } };
	struct rig_client carol = { .control = rig_dial(), .data = -1, .page_fd = -1 };
	unsigned int before;

	rig_settle();
	before = rig_n_fds();
	leave_descriptors((unsigned int)_i);
	ck_assert_int_eq(rig_ask(&carol, &hello), EMFILE);
	ck_assert_ptr_nonnull(strstr(carol.reply.text, "ulimit -Hn"));
	lift_limit();
	close(carol.control);
	rig_settle();
	ck_assert_uint_eq(rig_n_fds(), before - 2);
}

/* libibverbs would find no driver, and not search again. */
TEST_LOOP(no_device_is_opened_without_descriptors, 0, 4)
{
	struct portd_record open = { .type = PORTD_OPEN_PORT,
				     .open_port = { .port_num = 1, .device = "other" } };

	leave_descriptors((unsigned int)_i);
	ck_assert_int_eq(rig_ask(alice, &open), EMFILE);
	lift_limit();
	ck_assert_int_eq(rig_ask(alice, &open), ENODEV);
}

TEST_LOOP(hello_refused_without_descriptors_may_be_repeated, 0, 3)
{
	struct portd_record hello = { .type = PORTD_HELLO, .hello = { .version = PORTD_VERSION } };
	struct rig_client carol = { .control = rig_dial(), .data = -1, .page_fd = -1 };

	rig_settle();
	leave_descriptors((unsigned int)_i);
	ck_assert_int_eq(rig_ask(&carol, &hello), EMFILE);
	lift_limit();
	ck_assert_int_eq(rig_ask(&carol, &hello), 0);
}

TEST(hello_refused_without_comm_ids_leaves_no_buffers)
{
	struct portd_record hello = { .type = PORTD_HELLO, .hello = { .version = PORTD_VERSION } };
	struct rig_client carol = { .control = rig_dial(), .data = -1, .page_fd = -1 };
	struct server *server = rig_server();
	const int64_t before = server->n_buffer_bytes;
	unsigned int i;

	for (i = 0; i < ID_BLOCKS; i++)
		server->block_owner[i] = 0;
	ck_assert_int_eq(rig_ask(&carol, &hello), ENOSPC);
	ck_assert_int_eq(rig_ask(&carol, &hello), ENOSPC);
	rig_leave(&carol);
	ck_assert_int_eq(server->n_buffer_bytes, before);
}

/* --- tables -------------------------------------------------------------- */

TEST(comm_id_blocks_of_a_client_are_limited)
{
	struct portd_record record = { .type = PORTD_LEASE_IDS };
	unsigned int i;

	for (i = 1; i < ID_BLOCKS_MAX; i++)
		ck_assert_int_eq(rig_ask(bob, &record), 0);
	ck_assert_int_eq(rig_ask(bob, &record), ENOSPC);
	ck_assert_int_eq(rig_ask(alice, &record), 0);
}

TEST(leased_ports_of_a_client_are_limited)
{
	struct portd_record record = { .type = PORTD_LEASE_PORTS,
				       .lease_ports = { .ps = 0x106, .count = UINT16_MAX } };

	ck_assert_int_eq(rig_ask(bob, &record), 0);
	ck_assert_uint_eq(bob->reply.count, LEASE_WORDS);
	ck_assert_int_eq(rig_ask(bob, &record), 0);
	ck_assert_uint_eq(bob->reply.count, 0);
	record.lease_ports.count = 1;
	ck_assert_int_eq(rig_ask(alice, &record), 0);
	ck_assert_uint_eq(alice->reply.count, 1);
}

static int claim_of_port(struct rig_client *client, unsigned int i)
{
	struct portd_record record = { .type = PORTD_BIND };

	record.claim = rig_claim(i, "10.1.0.0");
	record.claim.local_port = (uint16_t)(1024 + i % 32768);
	record.claim.local_addr[15] = (uint8_t)(i / 32768);
	return rig_ask(client, &record);
}

TEST(claims_of_a_client_are_limited)
{
	unsigned int i;

	for (i = 0; i < PORTS_CLAIMS_MAX; i++)
		ck_assert_int_eq(claim_of_port(bob, i), 0);
	ck_assert_int_eq(claim_of_port(bob, i), ENOSPC);
	ck_assert_int_eq(claim_of_port(alice, i), 0);
}

/* --- memory ---------------------------------------------------------------- */

/* The limit of its socket's queue; the kernel doubles the value. */
TEST(buffers_of_all_clients_are_limited_together)
{
	struct server *server = rig_server();
	const int64_t before = server->n_buffer_bytes;
	struct rig_client client;
	int64_t last;

	rig_client_as_user(MALLORY);
	rig_meet(&client);
	ck_assert_int_eq(server->client[2]->n_buffer_bytes, 1 << 20);
	ck_assert_int_eq(server->n_buffer_bytes - before, 1 << 20);
	server->n_buffer_bytes += (INT64_C(1) << 29) - (40 << 20);
	rig_client_as_user(MALLORY + 1);
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

	rig_client_as_user(MALLORY);
	for (i = 0; i < 64; i++)
		rig_meet(&client);
	ck_assert_int_eq(rig_server()->client[64]->n_buffer_bytes, 1 << 20);
	ck_assert_int_eq(rig_server()->client[65]->n_buffer_bytes, 1 << 19);
}

/* A message for the link address of a host that does not exist. */
TEST(waiting_messages_leave_room_for_others)
{
	struct rig_client mallory;
	struct host_port *host_port;

	rig_client_as_user(MALLORY);
	rig_join(&mallory);
	host_port = rig_server()->host_port[mallory.handle];
	host_port->n_waiting += WAITING_MAX;
	rig_set_hops_ready(false);
	scene_sends(&mallory, scene_req(&mallory, 1));
	ck_assert_uint_eq(rig_server()->client[2]->n_waits, 1);
	host_port->n_waiting -= WAITING_MAX;
}

/* Other hosts' messages are still sent. */
TEST(one_user_has_at_most_half_of_the_waiting_messages)
{
	const struct host_port *host_port;
	struct rig_client client;
	unsigned int i, n;

	rig_client_as_user(MALLORY);
	rig_set_hops_ready(false);
	for (n = 0; n < 6; n++) {
		rig_join(&client);
		for (i = 0; i < WAITS_MAX; i++)
			scene_sends(&client, scene_req(&client, i + 1));
	}
	host_port = rig_server()->host_port[client.handle];
	ck_assert_uint_gt(host_port->n_waiting, WAITING_MAX / 4);
	ck_assert_uint_le(host_port->n_waiting, WAITING_MAX / 2);
}

/* That of an ended program, in front of it, waits for three and a half seconds. */
TEST(message_of_a_client_waits_for_its_hop_for_a_second)
{
	scene_connect(&scene_alice, 1);
	rig_set_hops_ready(false);
	rig_leave(&scene_alice);
	scene_sends(&scene_bob, scene_req(&scene_bob, 1));
	ck_assert_uint_eq(rig_server()->client[1]->n_waits, 1);
	rig_pass(1001);
	ck_assert_uint_eq(rig_server()->client[1]->n_waits, 0);
	ck_assert_uint_ne(rig_server()->nobody.n_waits, 0);
}

/* --- clients that do not read -------------------------------------------- */

static struct portd_record mad_record;

static void deliver_repeatedly(const struct cm_msg *msg, unsigned int n)
{
	struct mad_path from = rig_peer(SCENE_PEER);
	uint8_t mad[MAD_BYTES];
	unsigned int i;

	cm_msg_encode(msg, mad);
	for (i = 0; i < n; i++) {
		rig_arrive_bytes(1, &from, mad);
		if (i % 256 == 0)
			rig_settle();
	}
	rig_settle();
}

static unsigned int n_handed(struct rig_client *client)
{
	unsigned int n = 0;

	while (rig_next(client, &mad_record))
		n++;
	return n;
}

TEST(messages_for_a_client_that_does_not_read_are_limited)
{
	struct cm_msg drep = talk_msg_of(CM_ATTR_DREP, 0x701, bob->first + 1);
	size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;

	deliver_repeatedly(&drep, 50000);
	ck_assert_uint_le(rig_server()->client[1]->n_backlog, BACKLOG_MAX);
	ck_assert_uint_gt(rig_count(PORTD_COUNT_OVERFLOW), 0);
	ck_assert_uint_le(mallinfo2().uordblks + mallinfo2().hblkhd - before, 2 * BACKLOG_BYTES);
}

TEST(a_client_that_does_not_read_loses_requests_first)
{
	struct cm_msg req = scene_peer_req(0x701, SCENE_ADDR);
	struct cm_msg dreq = scene_peer_dreq(0x702, bob, 2);
	uint64_t lost;

	scene_connect(bob, 2);
	ck_assert_int_eq(rig_listen(bob, SCENE_ADDR), 0);
	deliver_repeatedly(&req, 50000);
	lost = rig_count(PORTD_COUNT_OVERFLOW);
	ck_assert_uint_gt(lost, 0);
	deliver_repeatedly(&dreq, 100);
	ck_assert_uint_eq(rig_count(PORTD_COUNT_OVERFLOW), lost);
}

TEST(a_client_that_reads_again_gets_all_that_was_kept_in_order)
{
	struct cm_msg req = scene_peer_req(0x701, SCENE_ADDR), last;
	struct cm_msg dreq = scene_peer_dreq(0x702, bob, 2);
	unsigned int n = 0, i;

	scene_connect(bob, 2);
	scene_delivered(bob);
	ck_assert_int_eq(rig_listen(bob, SCENE_ADDR), 0);
	deliver_repeatedly(&req, 50000);
	deliver_repeatedly(&dreq, 100);
	for (i = 0; i < 100; i++) {
		n += n_handed(bob);
		rig_settle();
	}
	ck_assert_uint_eq(n, 50100 - rig_count(PORTD_COUNT_OVERFLOW));
	ck_assert_int_eq(cm_msg_decode(mad_record.mad.mad, MAD_BYTES, &last), 0);
	ck_assert_uint_eq(last.hdr.attr_id, CM_ATTR_DREQ);
	ck_assert_uint_eq(rig_server()->client[1]->n_backlog, 0);
}

TEST(a_client_that_does_not_read_delays_no_other)
{
	struct cm_msg drep = talk_msg_of(CM_ATTR_DREP, 0x701, bob->first + 1);

	deliver_repeatedly(&drep, 50000);
	scene_connect(alice, 1);
}

/* Otherwise it would use a handle that belongs to another port by then. */
TEST(a_client_gets_a_port_removal_when_it_reads_again)
{
	struct cm_msg drep = talk_msg_of(CM_ATTR_DREP, 0x701, bob->first + 1);
	unsigned int i;

	deliver_repeatedly(&drep, 50000);
	host_port_close(rig_server(), rig_server()->host_port[bob->handle]);
	for (i = 0; i < 100; i++) {
		n_handed(bob);
		rig_settle();
	}
	ck_assert_uint_eq(mad_record.type, PORTD_GONE);
}

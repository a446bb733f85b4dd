/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client and cmportd die at the same moment, in the middle of each exchange: the messages of the
 * next cmportd to the peer. Bob's client is a process of its own, which the test can kill; Alice's
 * is the test.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/portd/server/files/state_file.h"
#include "lib/portd/server/ledger/tracked_adopt.h"
#include "lib/portd/server/server.h"
#include "tests/unit/portd/folder.h"
#include "tests/unit/portd/lives.h"
#include "tests/unit/portd/tracked_put.h"
#include "tests/unit/test.h"

#define alice		     (&scene_alice)
#define bob		     (&scene_bob)

#define NO_CONNECTIONS_BYTES (STATE_FILE_TRACKED_AT + 8192)
#define GRACE_MS	     3000
#define LOOK_MS		     500
#define ORPHANS_A_TURN	     512
#define AGES_MS		     (600 * 1000)

static struct rig_client carol;
static pid_t bobs_pid;

/* --- living clients ------------------------------------------------------ */

static void fork_bob(void)
{
	bobs_pid = fork();
	if (bobs_pid == 0)
		for (;;)
			pause();
	ck_assert_int_gt(bobs_pid, 0);
}

static void die(void)
{
	if (bobs_pid <= 0)
		return;
	kill(bobs_pid, SIGKILL);
	waitpid(bobs_pid, NULL, 0);
	bobs_pid = 0;
}

static void set_up(void)
{
	folder_make();
	carol = (struct rig_client){ .secret = 0 }; /* tests may share a process */
	fork_bob();
	rig_set_up(socket_path);
	rig_client_as(bobs_pid);
	rig_join(bob);
	rig_client_as(-1);
}

static void tear_down(void)
{
	die();
	rig_tear_down();
}

/* No socket reports the end of another process: as if there were none. */
static void restart(void)
{
	scene_wire();
	rig_tear_down();
	rig_set_up(socket_path);
	rig_settle();
}

static void end_with_cmportd(void)
{
	die();
	restart();
}

/* --- resuming ------------------------------------------------------------ */

static void resume_client(struct rig_client *client, pid_t pid)
{
	struct portd_record open = { .type = PORTD_OPEN_PORT,
				     .open_port = { .port_num = 1, .device = RIG_DEVICE } };

	rig_client_as(pid);
	client->control = rig_dial();
	ck_assert_int_eq(rig_resume(client, client->page_fd), 0);
	ck_assert_int_eq(rig_hold(client), 0);
	ck_assert_int_eq(rig_ask(client, &open), 0);
	client->handle = client->reply.handle;
	rig_client_as(-1);
}

static struct portd_record report_of(const struct rig_client *client, uint32_t n)
{
	return (struct portd_record){ .type = PORTD_TRACK,
				      .tracked = { .state = CM_ESTABLISHED,
						   .active = 1,
						   .handle = client->handle,
						   .local_comm_id = client->first + n,
						   .remote_comm_id = 0x700 + n,
						   .local_qpn = 0x100 + n,
						   .remote_qpn = SCENE_PEER_QPN + 0x700 + n,
						   .remote_ca_guid = SCENE_PEER_GUID,
						   .path = rig_peer(SCENE_PEER) } };
}

static int report_claims(struct rig_client *client, uint32_t n)
{
	const struct portd_record record = report_of(client, n);

	return rig_ask(client, &record);
}

/* Of a connection whose REQ has no answer yet. */
static int report_request(struct rig_client *client, uint32_t n)
{
	struct portd_record record = report_of(client, n);

	record.tracked.state = CM_REQ_SENT;
	record.tracked.remote_comm_id = 0;
	return rig_ask(client, &record);
}

static void send_resumed(struct rig_client *client)
{
	struct portd_record record = { .type = PORTD_RESUMED };

	ck_assert_int_eq(rig_ask(client, &record), 0);
	rig_pass(10); /* it checks every 5 ms whether all have resumed */
}

static bool is_kept(void)
{
	struct stat stat_of;

	return stat(state_path, &stat_of) == 0 && stat_of.st_size > NO_CONNECTIONS_BYTES;
}

/* --- both are killed ----------------------------------------------------- */

FIXTURE(set_up, tear_down);

TEST_LOOP(peer_gets_the_last_message_from_the_next_cmportd, 0, LIFE_N)
{
	life[_i].come_so_far();
	end_with_cmportd();
	ck_assert_str_eq(scene_wire(), life[_i].end);
}

TEST_LOOP(state_is_freed_when_the_peer_is_gone_too, 0, LIFE_N)
{
	unsigned int i;

	life[_i].come_so_far();
	end_with_cmportd();
	for (i = 0; i < 20; i++)
		rig_pass(AGES_MS);
	ck_assert_uint_eq(rig_server()->core.n_conns, 0);
	ck_assert(tracker_is_empty(rig_server()->tracker));
}

TEST(all_connections_of_a_dead_client_end)
{
	uint32_t n;

	for (n = 1; n <= 300; n++)
		scene_connect(bob, n);
	end_with_cmportd();
	ck_assert_uint_eq(rig_server()->core.n_conns, 300);
}

/* More than a turn ends, of two programs in turn. */
TEST(a_turn_ends_few_orphans)
{
	const uint32_t n_all = 2 * (ORPHANS_A_TURN + 50);
	uint32_t n, before = 0;

	rig_join(alice);
	for (n = 1; n <= n_all / 2; n++) {
		scene_connect(bob, n);
		scene_connect(alice, n);
	}
	die();
	rig_tear_down();
	rig_set_up(socket_path);
	rig_server()->grace_until.ns = 0;
	while (rig_server()->core.n_conns < n_all / 2) {
		rig_turn();
		n = rig_server()->core.n_conns;
		ck_assert_uint_le(n - before, ORPHANS_A_TURN);
		before = n;
	}
	rig_pass(AGES_MS);
	ck_assert_uint_eq(tracker_count(rig_server()->tracker, 0), 0);
	resume_client(alice, -1);
	for (n = 1; n <= n_all / 2; n++)
		ck_assert_int_eq(report_claims(alice, n), 0);
	send_resumed(alice);
	ck_assert_uint_eq(tracker_count(rig_server()->tracker, 0), n_all / 2);
}

TEST(a_dreq_from_the_next_cmportd_is_repeated_until_it_is_answered)
{
	life_connect();
	end_with_cmportd();
	ck_assert_str_eq(scene_wire(), "DREQ");
	rig_pass(1500);
	ck_assert_str_eq(scene_wire(), "DREQ");
	scene_receive(talk_msg_of(CM_ATTR_DREP, LIFE_REMOTE_ID, life_id()));
	rig_pass(AGES_MS);
	ck_assert_str_eq(scene_wire(), "");
	ck_assert(tracker_is_empty(rig_server()->tracker));
}

/* A program that was dead already when cmportd was killed. */
TEST(next_cmportd_continues_a_disconnect)
{
	life_connect();
	rig_leave(bob);
	ck_assert_str_eq(scene_wire(), "REQ, RTU, DREQ");
	restart();
	ck_assert_str_eq(scene_wire(), "DREQ");
}

/* Bob's process lives, but has closed its sockets, so it does not resume. */
TEST(orphan_of_an_ended_program_is_not_kept_waiting)
{
	life_connect();
	rig_leave(bob);
	restart();
	ck_assert_str_eq(scene_wire(), "DREQ");
	ck_assert_int_eq(rig_server()->grace_until.ns, 0);
}

TEST(next_cmportd_does_not_find_an_ended_connection)
{
	life_connect();
	rig_leave(bob);
	scene_receive(talk_msg_of(CM_ATTR_DREP, LIFE_REMOTE_ID, life_id()));
	rig_pass(AGES_MS);
	restart();
	ck_assert_str_eq(scene_wire(), "");
	ck_assert(tracker_is_empty(rig_server()->tracker));
}

TEST(the_next_one_may_be_killed_before_it_has_ended_anything)
{
	life_connect();
	die();
	rig_tear_down();
	rig_set_up(socket_path);
	restart();
	ck_assert_str_eq(scene_wire(), "DREQ");
}

TEST(the_next_one_may_be_killed_when_it_has_begun_to)
{
	life_connect();
	end_with_cmportd();
	restart();
	ck_assert_str_eq(scene_wire(), "DREQ");
	restart();
	ck_assert_str_eq(scene_wire(), "DREQ");
}

TEST(closed_connection_gets_no_message)
{
	struct portd_record close_it = { .type = PORTD_CLOSE,
					 .close = { .local_comm_id = life_id() } };

	life_connect();
	ck_assert(rig_send_record(bob, &close_it));
	rig_settle();
	end_with_cmportd();
	ck_assert_str_eq(scene_wire(), "");
}

/* --- processes that resume ----------------------------------------------- */

TEST(connections_of_a_resuming_client_continue)
{
	scene_connect(bob, 1);
	restart();
	resume_client(bob, bobs_pid);
	ck_assert_int_eq(report_claims(bob, 1), 0);
	send_resumed(bob);
	rig_pass(AGES_MS);
	ck_assert_str_eq(scene_wire(), "");
	ck_assert_str_eq(scene_tracked(bob->first + 1), "ESTABLISHED");
	ck_assert_uint_eq(tracker_count(rig_server()->tracker, 0), 1);
}

TEST(unreported_connection_of_a_resuming_client_ends)
{
	scene_connect(bob, 1);
	scene_connect(bob, 2);
	restart();
	resume_client(bob, bobs_pid);
	ck_assert_int_eq(report_claims(bob, 2), 0);
	send_resumed(bob);
	rig_pass(AGES_MS);
	ck_assert_str_eq(scene_wire(), "");
	rig_leave(bob);
	ck_assert_str_eq(scene_wire(), "DREQ");
}

/* Any process may claim to resume. */
TEST(client_that_dies_while_resuming_has_each_connection_ended_once)
{
	scene_connect(bob, 1);
	scene_connect(bob, 2);
	restart();
	resume_client(bob, bobs_pid);
	ck_assert_int_eq(report_claims(bob, 2), 0);
	die();
	rig_leave(bob);
	rig_pass(LOOK_MS);
	ck_assert_str_eq(scene_wire(), "DREQ, DREQ");
	ck_assert_uint_eq(rig_server()->core.n_conns, 2);
}

/* The client's report is older than the REP, and would take it back. */
TEST(client_gets_no_message_until_it_has_resumed)
{
	const struct cm_msg rep = scene_peer_rep(LIFE_REMOTE_ID, life_id());

	scene_sends(bob, scene_req(bob, 1));
	restart();
	resume_client(bob, bobs_pid);
	scene_receive(rep);
	ck_assert_str_eq(scene_delivered(bob), "");
	ck_assert_int_eq(report_request(bob, 1), 0);
	send_resumed(bob);
	scene_receive(rep);
	ck_assert_str_eq(scene_delivered(bob), "REP");
	scene_sends(bob, talk_msg_of(CM_ATTR_RTU, life_id(), LIFE_REMOTE_ID));
	ck_assert_str_eq(scene_wire(), "RTU");
}

TEST(orphans_end_after_the_live_clients_have_resumed)
{
	rig_join(alice);
	scene_connect(alice, 3);
	scene_connect(bob, 1);
	end_with_cmportd();
	rig_pass(100);
	ck_assert_str_eq(scene_wire(), "");
	resume_client(alice, -1);
	ck_assert_int_eq(report_claims(alice, 3), 0);
	send_resumed(alice);
	ck_assert_str_eq(scene_wire(), "DREQ");
	ck_assert_str_eq(scene_tracked(alice->first + 3), "ESTABLISHED");
}

/* It may be stopped; the kernel's connection manager would wait, too. */
TEST(live_client_that_does_not_resume_is_ended_at_its_death)
{
	scene_connect(bob, 1);
	restart();
	rig_pass(GRACE_MS);
	rig_pass(AGES_MS);
	ck_assert_str_eq(scene_wire(), "");
	die();
	rig_pass(LOOK_MS);
	ck_assert_str_eq(scene_wire(), "DREQ");
}

TEST(live_client_may_resume_late)
{
	scene_connect(bob, 1);
	restart();
	rig_pass(AGES_MS);
	resume_client(bob, bobs_pid);
	ck_assert_int_eq(report_claims(bob, 1), 0);
	send_resumed(bob);
	rig_pass(LOOK_MS);
	ck_assert_str_eq(scene_wire(), "");
}

TEST(live_client_that_resumes_late_notices_a_disconnect)
{
	const struct cm_msg dreq = scene_peer_dreq(LIFE_REMOTE_ID, bob, 1);

	scene_connect(bob, 1);
	restart();
	rig_pass(GRACE_MS);
	rig_join(alice); /* for whom the port is open */
	scene_receive(dreq);
	ck_assert_str_eq(scene_wire(), "");
	resume_client(bob, bobs_pid);
	ck_assert_int_eq(report_claims(bob, 1), 0);
	send_resumed(bob);
	scene_receive(dreq);
	ck_assert_str_eq(scene_delivered(bob), "DREQ");
}

TEST(client_of_a_hidden_process_may_resume_for_three_seconds)
{
	rig_leave(bob);
	rig_client_as(0);
	rig_join(bob);
	scene_connect(bob, 1);
	restart();
	rig_pass(GRACE_MS - 1);
	ck_assert_str_eq(scene_wire(), "");
	rig_pass(1);
	ck_assert_str_eq(scene_wire(), "DREQ");
}

TEST(client_of_a_hidden_process_resumes)
{
	rig_leave(bob);
	rig_client_as(0);
	rig_join(bob);
	scene_connect(bob, 1);
	restart();
	resume_client(bob, 0);
	ck_assert_int_eq(report_claims(bob, 1), 0);
	send_resumed(bob);
	rig_pass(AGES_MS);
	ck_assert_str_eq(scene_wire(), "");
}

TEST(hidden_processes_may_resume_one_after_the_other)
{
	rig_leave(bob);
	rig_client_as(0);
	rig_join(bob);
	rig_join(&carol);
	scene_connect(bob, 1);
	scene_connect(&carol, 2);
	restart();
	rig_pass(GRACE_MS - 100);
	resume_client(bob, 0);
	ck_assert_int_eq(report_claims(bob, 1), 0);
	send_resumed(bob);
	rig_pass(GRACE_MS - 100);
	ck_assert_str_eq(scene_wire(), "");
	resume_client(&carol, 0);
	ck_assert_int_eq(report_claims(&carol, 2), 0);
	send_resumed(&carol);
	rig_pass(AGES_MS);
	ck_assert_str_eq(scene_wire(), "");
}

/*
 * Bob's client was disconnected, and cmportd was ending its connection. The next cmportd must go on
 * with that when Bob's program resumes. It waits until Alice's has resumed, too.
 */
TEST(ending_connection_ends_although_its_client_resumes)
{
	rig_join(alice);
	scene_connect(bob, 1);
	close(bob->control);
	rig_settle();
	ck_assert_str_eq(scene_wire(), "DREQ");
	rig_tear_down();
	rig_set_up(socket_path);
	resume_client(bob, bobs_pid);
	ck_assert_int_eq(report_claims(bob, 1), 0);
	send_resumed(bob);
	resume_client(alice, -1);
	send_resumed(alice);
	ck_assert_str_eq(scene_wire(), "DREQ");
	rig_leave(bob);
	scene_receive(talk_msg_of(CM_ATTR_DREP, LIFE_REMOTE_ID, life_id()));
	rig_pass(AGES_MS);
	ck_assert(tracker_is_empty(rig_server()->tracker));
}

TEST(comm_ids_of_a_client_that_may_resume_are_not_lent)
{
	scene_connect(bob, 1);
	restart();
	carol.control = rig_dial();
	carol.first = bob->first;
	ck_assert_int_eq(rig_resume(&carol, bob->page_fd), 0);
	ck_assert_int_eq(rig_hold(&carol), EPERM);
	resume_client(bob, bobs_pid);
}

/* Nor without connections to end: messages for them would be for others. */
TEST(comm_ids_without_connections_are_not_lent_either)
{
	restart();
	carol.control = rig_dial();
	carol.first = bob->first;
	carol.secret = bob->secret + 1;
	ck_assert_int_eq(rig_resume(&carol, bob->page_fd), 0);
	ck_assert_int_eq(rig_hold(&carol), EPERM);
	resume_client(bob, bobs_pid);
}

TEST(comm_ids_of_a_client_that_may_resume_are_not_lent_for_want_of_others)
{
	struct portd_record hello = { .type = PORTD_HELLO, .hello = { .version = PORTD_VERSION } };
	const uint16_t its = (uint16_t)(bob->first >> ID_BLOCK_SHIFT);
	unsigned int i;

	scene_connect(bob, 1);
	restart();
	for (i = 1; i < ID_BLOCKS; i++)
		if (i != its)
			rig_server()->block_owner[i] = 0;
	carol.control = rig_dial();
	rig_pass(GRACE_MS);
	ck_assert_int_eq(rig_ask(&carol, &hello), ENOSPC);
	resume_client(bob, bobs_pid);
}

/* Its pid is meaningless: it is in a namespace that cmportd cannot see. */
TEST(comm_ids_of_a_client_without_pid_are_not_lent)
{
	struct rig_client dave;

	rig_client_as(0);
	rig_join(&dave);
	restart();
	carol.control = rig_dial();
	carol.first = dave.first;
	ck_assert_int_eq(rig_resume(&carol, dave.page_fd), 0);
	ck_assert_int_eq(rig_hold(&carol), EPERM);
	resume_client(&dave, 0);
}

/* Previous clients, and the next block. */
static void spoil_heads(void)
{
	static const char spoilt[STATE_FILE_TRACKED_AT];
	int fd = open(state_path, O_WRONLY | O_CLOEXEC);

	ck_assert_int_eq(pwrite(fd, spoilt, sizeof(spoilt), 0), sizeof(spoilt));
	close(fd);
}

/* The rig's random numbers are constant: the block would be Bob's again. */
TEST(comm_ids_of_dead_clients_are_not_lent_with_corrupt_heads)
{
	const uint32_t first = bob->first;

	life_connect();
	die();
	rig_tear_down();
	spoil_heads();
	rig_set_up(socket_path);
	rig_meet(&carol);
	ck_assert_uint_ne(carol.first, first);
	ck_assert_str_eq(scene_wire(), "DREQ");
}

/* --- start and end of the file ------------------------------------------- */

TEST(server_without_orphans_leaves_no_connections)
{
	struct server_options options;

	scene_connect(bob, 1);
	rig_leave(bob);
	scene_receive(talk_msg_of(CM_ATTR_DREP, LIFE_REMOTE_ID, life_id()));
	rig_pass(AGES_MS);
	ck_assert(is_kept());
	server_end(rig_server());
	ck_assert(!is_kept());
	options = rig_server()->options;
	memset(rig_server(), 0, sizeof(*rig_server()));
	rig_server()->options = options;
	ck_assert_int_eq(server_begin(rig_server()), 0);
}

TEST(server_ends_its_orphans_before_it_ends)
{
	scene_connect(bob, 1);
	restart();
	rig_server()->options.idle_s = 1;
	rig_pass(AGES_MS);
	ck_assert(!server_is_over(rig_server()));
	die();
	rig_pass(LOOK_MS);
	scene_receive(talk_msg_of(CM_ATTR_DREP, LIFE_REMOTE_ID, life_id()));
	rig_pass(AGES_MS);
	rig_pass(AGES_MS);
	ck_assert(server_is_over(rig_server()));
}

TEST(full_file_changes_nothing_else)
{
	rig_leave(bob);
	rig_tear_down();
	ck_assert_int_eq(unlink(state_path), 0);
	limit_files(NO_CONNECTIONS_BYTES - 1);
	rig_set_up(socket_path);
	limit_files(RLIM_INFINITY);
	rig_client_as(bobs_pid);
	rig_join(bob);
	scene_connect(bob, 1);
	end_with_cmportd();
	ck_assert_str_eq(scene_wire(), "");
}

TEST(a_port_has_the_same_handle_in_the_next_one)
{
	struct portd_record open = { .type = PORTD_OPEN_PORT,
				     .open_port = { .port_num = 2, .device = RIG_DEVICE } };

	scene_connect(bob, 1);
	ck_assert_int_eq(rig_ask(bob, &open), 0);
	ck_assert_uint_eq(bob->reply.handle, 1);
	restart();
	resume_client(bob, bobs_pid);
	ck_assert_uint_eq(bob->handle, 0);
	rig_leave(bob);
	restart();
	rig_pass(AGES_MS);
	rig_client_as(bobs_pid);
	rig_meet(bob);
	ck_assert_int_eq(rig_ask(bob, &open), 0);
	ck_assert_uint_eq(bob->reply.handle, 1);
}

TEST(connections_of_a_removed_device_are_dropped)
{
	struct cm_record tracked = { .state = CM_ESTABLISHED,
				     .local_comm_id = bob->first + 1,
				     .path = rig_peer(SCENE_PEER) };
	const int handle =
		tracker_handle(rig_server()->tracker, &(struct tracked_port){ 0, 1, "gone0" }, 1);

	ck_assert_int_eq(handle, 1);
	tracked.handle = (uint8_t)handle;
	ck_assert_int_eq(tracked_put(rig_server()->tracker, 0, &tracked), 0);
	end_with_cmportd();
	ck_assert_str_eq(scene_wire(), "");
	ck_assert(tracker_is_empty(rig_server()->tracker));
}

/* --- clients that never existed ------------------------------------------ */

static const struct portd_record open_port = {
	.type = PORTD_OPEN_PORT,
	.open_port = { .port_num = 1, .device = RIG_DEVICE },
};

/* A new cmportd whose port another process has: the kernel may not have closed it yet. */
static void begin_without_port(void)
{
	die();
	rig_tear_down();
	rig_set_up(socket_path);
	rig_set_port_taken(true);
	rig_meet(alice);
	ck_assert_int_eq(rig_ask(alice, &open_port), -1);
}

TEST(port_that_the_kernel_has_not_closed_yet_is_opened_later)
{
	begin_without_port();
	rig_pass(LOOK_MS);
	ck_assert_int_eq(rig_answer(alice), -1);
	rig_set_port_taken(false);
	rig_pass(LOOK_MS);
	ck_assert_int_eq(rig_answer(alice), 0);
}

/* Bob is connected and dies with cmportd; the next one cannot open the port for some time. */
static void refuse_port_to_the_next(int err, uint64_t ms)
{
	scene_connect(bob, 1);
	die();
	scene_wire();
	rig_tear_down();
	rig_set_up(socket_path);
	rig_set_port_refusal(err);
	rig_pass(ms);
	rig_set_port_refusal(0);
}

TEST(orphans_end_when_the_kernel_has_closed_their_port)
{
	refuse_port_to_the_next(-EADDRINUSE, 0);
	rig_pass(20);
	ck_assert_str_eq(scene_wire(), "DREQ");
}

TEST(orphans_end_when_there_are_descriptors_again)
{
	refuse_port_to_the_next(-EMFILE, AGES_MS);
	rig_pass(LOOK_MS);
	ck_assert_str_eq(scene_wire(), "DREQ");
}

TEST(orphans_at_a_port_of_another_process_are_dropped)
{
	refuse_port_to_the_next(-EADDRINUSE, GRACE_MS);
	rig_pass(AGES_MS);
	ck_assert_str_eq(scene_wire(), "");
	ck_assert(tracker_is_empty(rig_server()->tracker));
}

TEST(port_of_another_process_is_refused_after_a_while)
{
	begin_without_port();
	rig_pass(GRACE_MS);
	rig_set_port_taken(false);
	ck_assert_int_eq(rig_answer(alice), EADDRINUSE);
}

TEST(client_that_resumes_gets_its_port_before_the_grace_period_ends)
{
	restart();
	rig_set_port_taken(true);
	rig_client_as(bobs_pid);
	bob->control = rig_dial();
	ck_assert_int_eq(rig_resume(bob, bob->page_fd), 0);
	ck_assert_int_eq(rig_hold(bob), 0);
	ck_assert_int_eq(rig_ask(bob, &open_port), -1);
	rig_client_as(-1);
	rig_set_port_taken(false);
	rig_pass(LOOK_MS);
	ck_assert_int_eq(rig_answer(bob), 0);
}

/* Else its peers were refused before it has reported its listeners. */
TEST(client_is_waited_for_as_long_as_it_is_resuming)
{
	const struct cm_msg dreq = scene_peer_dreq(LIFE_REMOTE_ID, alice, 1);

	restart();
	resume_client(bob, bobs_pid);
	rig_pass(GRACE_MS - 1);
	ck_assert_int_eq(rig_ask(bob, &open_port), 0);
	rig_pass(GRACE_MS - 1);
	scene_receive(dreq);
	ck_assert_str_eq(scene_wire(), "");
	rig_pass(1);
	scene_receive(dreq);
	ck_assert_str_eq(scene_wire(), "DREP");
}

static struct portd_record bind_of_bob(void)
{
	return (struct portd_record){ .type = PORTD_BIND, .claim = rig_claim(1, SCENE_ADDR) };
}

TEST(port_is_not_for_a_resuming_client_without_ids)
{
	const struct portd_record claim = bind_of_bob(), ids = { .type = PORTD_LEASE_IDS };

	rig_join(&carol);
	restart();
	carol.control = rig_dial();
	ck_assert_int_eq(rig_resume(&carol, carol.page_fd), 0);
	ck_assert_int_eq(rig_ask(&carol, &ids), -1);
	ck_assert_int_eq(rig_ask(&carol, &claim), -1);
	resume_client(bob, bobs_pid);
	ck_assert_int_eq(rig_ask(bob, &claim), 0);
	send_resumed(bob);
	rig_pass(GRACE_MS);
	ck_assert_int_eq(rig_answer(&carol), 0);
	ck_assert_int_eq(rig_answer(&carol), EADDRINUSE);
}

/* It is accepted while others wait, as it needs nothing. */
TEST(port_is_not_for_a_visiting_client)
{
	const struct portd_record hello = { .type = PORTD_HELLO,
					    .hello = { .version = PORTD_VERSION, .visits = 1 } };
	const struct portd_record claim = bind_of_bob(), ids = { .type = PORTD_LEASE_IDS };

	restart();
	carol.control = rig_dial();
	ck_assert_int_eq(rig_ask(&carol, &hello), 0);
	ck_assert_int_eq(rig_ask(&carol, &claim), EPERM);
	ck_assert_int_eq(rig_ask(&carol, &ids), EPERM);
}

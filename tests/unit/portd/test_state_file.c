/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * State that a cmportd passes to the next one: blocks of comm ids, and clients that may resume;
 * through socket_dir.h, as in the server, and with a damaged file.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/portd/server/files/process.h"
#include "lib/portd/server/files/socket_dir.h"
#include "lib/portd/server/files/state_file.h"
#include "tests/unit/portd/folder.h"
#include "tests/unit/test.h"

#define ENTRIES_AT  20 /* in the file: a head, then entries */
#define ENTRY_BYTES 12
#define FILE_BYTES  (ENTRIES_AT + STATE_FILE_CLIENTS_MAX * ENTRY_BYTES)

static struct socket_dir *dir;
static pid_t client;

static struct state_file *file(void)
{
	return socket_dir_state_file(dir);
}

static void setup(void)
{
	folder_make();
	dir = NULL;
	client = fork();
	if (client == 0) {
		pause();
		_exit(0);
	}
}

static void end_client(void)
{
	if (client > 0) {
		kill(client, SIGKILL);
		waitpid(client, NULL, 0);
	}
	client = 0;
}

static void teardown(void)
{
	end_client();
	socket_dir_leave(dir);
}

static void take(void)
{
	ck_assert_int_eq(socket_dir_take(socket_path, &dir), 0);
}

static void take_again(void)
{
	socket_dir_leave(dir);
	dir = NULL;
	take();
}

/* --- blocks of comm ids -------------------------------------------------- */

FIXTURE(setup, teardown);

TEST(blocks_count_up)
{
	uint16_t first;

	take();
	first = state_file_id_block(file(), 0);
	ck_assert_uint_eq(state_file_id_block(file(), 0), (uint16_t)(first + 1));
}

TEST(skipped_blocks_are_not_used_later)
{
	uint16_t first;

	take();
	first = state_file_next_block(file());
	ck_assert_uint_eq(state_file_id_block(file(), 7), (uint16_t)(first + 7));
	ck_assert_uint_eq(state_file_next_block(file()), (uint16_t)(first + 8));
	take_again();
	ck_assert_uint_eq(state_file_id_block(file(), 0), (uint16_t)(first + 8));
}

TEST(blocks_continue_after_a_regular_end)
{
	uint16_t last;

	take();
	last = state_file_id_block(file(), 0);
	take_again();
	ck_assert_uint_eq(state_file_id_block(file(), 0), (uint16_t)(last + 1));
}

static int lease_seven(void)
{
	int i;

	if (socket_dir_take(socket_path, &dir))
		return 1;
	for (i = 0; i < 7; i++)
		state_file_id_block(file(), 0);
	return 0;
}

TEST(blocks_continue_after_a_death)
{
	uint16_t last;

	take();
	last = state_file_id_block(file(), 0);
	socket_dir_leave(dir);
	dir = NULL;
	ck_assert_int_eq(in_child(lease_seven), 0);
	take();
	ck_assert_uint_eq(state_file_id_block(file(), 0), (uint16_t)(last + 8));
}

TEST(blocks_begin_anywhere)
{
	uint16_t first;
	int i;

	take();
	first = state_file_id_block(file(), 0);
	for (i = 0; i < 8 && state_file_id_block(file(), 0) == (uint16_t)(first + 1); i++) {
		socket_dir_leave(dir);
		dir = NULL;
		unlink(state_path);
		take();
	}
	ck_assert_int_lt(i, 8);
}

/* --- damage -------------------------------------------------------------- */

static void damage(off_t at, const void *bytes, size_t n)
{
	int fd = open(state_path, O_WRONLY | O_CREAT, 0600);

	ck_assert_int_eq(pwrite(fd, bytes, n, at), (ssize_t)n);
	close(fd);
}

TEST_LOOP(corrupt_file_counts_as_empty, 0, 20)
{
	static uint8_t garbage[FILE_BYTES + 100];
	size_t i;

	srand((unsigned int)_i);
	for (i = 0; i < sizeof(garbage); i++)
		garbage[i] = (uint8_t)rand();
	damage(0, garbage, sizeof(garbage));
	take();
	ck_assert_uint_eq(state_file_pending(file()), 0);
	state_file_id_block(file(), 0);
}

static int note_client(void)
{
	if (socket_dir_take(socket_path, &dir))
		return 1;
	state_file_add_client(file(), client);
	return 0;
}

TEST_LOOP(a_file_of_any_length_is_read, 0, 8)
{
	static const off_t length[] = { 0,
					1,
					ENTRIES_AT - 1,
					ENTRIES_AT,
					ENTRIES_AT + 1,
					ENTRIES_AT + ENTRY_BYTES,
					5000,
					FILE_BYTES - 1 };

	ck_assert_int_eq(in_child(note_client), 0);
	ck_assert_int_eq(truncate(state_path, length[_i]), 0);
	take();
	ck_assert_uint_eq(state_file_pending(file()),
			  length[_i] >= ENTRIES_AT + ENTRY_BYTES ? 1 : 0);
}

/* A killed process may have stored any part of an update, in order. */
TEST(entry_without_a_client_or_a_process_is_ignored)
{
	const uint32_t nothing = 0;

	ck_assert_int_eq(in_child(note_client), 0);
	damage(ENTRIES_AT, &nothing, sizeof(nothing)); /* the process */
	take();
	ck_assert_uint_eq(state_file_pending(file()), 0);
	state_file_add_client(file(), client);
	socket_dir_leave(dir);
	damage(ENTRIES_AT + 8, &nothing, 2); /* its clients */
	take();
	ck_assert_uint_eq(state_file_pending(file()), 0);
}

static int use_no_room(void)
{
	const struct rlimit limit = { 100, 100 };
	uint16_t first;

	signal(SIGXFSZ, SIG_IGN);
	if (setrlimit(RLIMIT_FSIZE, &limit) || socket_dir_take(socket_path, &dir))
		return 1;
	first = state_file_id_block(file(), 0);
	state_file_add_client(file(), client);
	return state_file_id_block(file(), 0) == (uint16_t)(first + 1) ? 0 : 2;
}

TEST(cmportd_runs_without_room_for_the_file)
{
	ck_assert_int_eq(in_child(use_no_room), 0);
	take();
	ck_assert_uint_eq(state_file_pending(file()), 0);
}

/* --- clients ------------------------------------------------------------- */

TEST(new_file_has_no_missing_clients)
{
	take();
	state_file_add_client(file(), client);
	ck_assert_uint_eq(state_file_pending(file()), 0);
}

TEST(client_of_a_dead_cmportd_is_missing)
{
	ck_assert_int_eq(in_child(note_client), 0);
	take();
	ck_assert_uint_eq(state_file_pending(file()), 1);
}

TEST(client_of_an_ended_cmportd_is_missing)
{
	take();
	state_file_add_client(file(), client);
	take_again();
	ck_assert_uint_eq(state_file_pending(file()), 1);
}

TEST(ended_client_is_not_missing)
{
	take();
	state_file_add_client(file(), client);
	state_file_remove_client(file(), client);
	take_again();
	ck_assert_uint_eq(state_file_pending(file()), 0);
}

TEST(process_with_two_clients_is_missing_until_both_resume)
{
	take();
	state_file_add_client(file(), client);
	state_file_add_client(file(), client);
	take_again();
	ck_assert_uint_eq(state_file_pending(file()), 2);
	state_file_add_client(file(), client);
	state_file_resumed(file(), client);
	ck_assert_uint_eq(state_file_pending(file()), 1);
	state_file_resumed(file(), client);
	ck_assert_uint_eq(state_file_pending(file()), 0);
}

TEST(a_process_that_has_died_is_not_missing)
{
	ck_assert_int_eq(in_child(note_client), 0);
	end_client();
	take();
	ck_assert_uint_eq(state_file_pending(file()), 0);
}

TEST(process_that_dies_is_no_longer_missing)
{
	ck_assert_int_eq(in_child(note_client), 0);
	take();
	kill(client, SIGKILL);
	ck_assert_int_eq(waitid(P_PID, (id_t)client, NULL, WEXITED | WNOWAIT), 0); /* a zombie */
	ck_assert_uint_eq(state_file_pending(file()), 0);
}

TEST(client_is_still_missing_after_two_deaths)
{
	ck_assert_int_eq(in_child(note_client), 0);
	ck_assert_int_eq(in_child(lease_seven), 0);
	take();
	ck_assert_uint_eq(state_file_pending(file()), 1);
}

TEST(resumed_client_is_missing_once_after_the_next_death)
{
	ck_assert_int_eq(in_child(note_client), 0);
	take();
	state_file_add_client(file(), client);
	state_file_resumed(file(), client);
	take_again();
	ck_assert_uint_eq(state_file_pending(file()), 1);
}

TEST(hidden_process_is_not_waited_for)
{
	take();
	state_file_add_client(file(), 0);
	state_file_remove_client(file(), 0);
	state_file_resumed(file(), 0);
	take_again();
	ck_assert_uint_eq(state_file_pending(file()), 0);
}

TEST(unknown_client_can_be_removed)
{
	take();
	state_file_remove_client(file(), client);
	state_file_resumed(file(), client);
	ck_assert_uint_eq(state_file_pending(file()), 0);
}

TEST(excess_clients_are_harmless)
{
	pid_t pid;

	take();
	for (pid = 1; pid <= STATE_FILE_CLIENTS_MAX + 10; pid++)
		state_file_add_client(file(), pid + 1000000);
	state_file_add_client(file(), client);
	for (pid = 1; pid <= STATE_FILE_CLIENTS_MAX + 10; pid++)
		state_file_remove_client(file(), pid + 1000000);
	state_file_add_client(file(), client);
	take_again();
	ck_assert_uint_eq(state_file_pending(file()), 1);
}

/* --- the same pid of another process ------------------------------------- */

static pid_t child_numbered(pid_t pid)
{
	FILE *file = fopen("/proc/sys/kernel/ns_last_pid", "w");
	pid_t got;

	if (!file)
		return -1;
	fprintf(file, "%d", (int)pid - 1);
	fclose(file);
	got = fork();
	if (got == 0) {
		pause();
		_exit(0);
	}
	return got;
}

/* In a pid namespace, whose first process this is. */
static int reuse_number(void)
{
	uint32_t start;

	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("proc", "/proc", "proc", 0, NULL))
		return 1;
	client = child_numbered(50);
	if (client != 50 || in_child(note_client))
		return 2;
	start = process_start(client);
	/* Start times differ by at least a clock tick. */
	for (; process_start(client) == start; client = child_numbered(50))
		end_client();
	if (client != 50 || socket_dir_take(socket_path, &dir))
		return 3;
	return state_file_pending(file()) ? 4 : 0;
}

static int in_namespace(void)
{
	if (unshare(CLONE_NEWPID | CLONE_NEWNS))
		return 77;
	return in_child(reuse_number);
}

TEST(later_process_with_the_same_pid_is_another_one)
{
	int status;

	if (!is_root())
		return;
	status = in_child(in_namespace);
	if (status == 77)
		printf("skipped: no namespaces here\n");
	else
		ck_assert_int_eq(status, 0);
}

/* --- owners of comm ids --------------------------------------------------- */

TEST(client_with_the_secret_keeps_its_comm_ids)
{
	uint64_t secret;

	take();
	secret = state_file_lend(file(), 7);
	take_again();
	ck_assert(state_file_was_lent(file(), 7, secret));
	ck_assert(!state_file_was_lent(file(), 7, secret + 1));
	ck_assert(!state_file_was_lent(file(), 8, secret));
	ck_assert(!state_file_was_lent(file(), 8, 0));
}

TEST(client_loses_comm_ids_that_were_lent_again)
{
	uint64_t secret;

	take();
	secret = state_file_lend(file(), 7);
	state_file_lend(file(), 7);
	ck_assert(!state_file_was_lent(file(), 7, secret));
}

TEST(unknown_comm_ids_can_be_held_without_a_file)
{
	take();
	ck_assert(state_file_was_lent(file(), 7, 0));
}

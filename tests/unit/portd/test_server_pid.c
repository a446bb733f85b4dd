/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client whose process has ended, so that its pid may be reused: Mallory connects in a process
 * that ends, keeps the socket in another one, and waits until Bob's process has the pid. Bob was a
 * client of the previous cmportd.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/portd/server/files/process.h"
#include "lib/portd/server/routing/recovery.h"
#include "tests/unit/portd/folder.h"
#include "tests/unit/portd/scene.h"
#include "tests/unit/test.h"

#define bob (&scene_bob)

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

static struct rig_client mallory;
static pid_t bobs_pid;

static void set_up(void)
{
	folder_make();
	bobs_pid = fork();
	if (bobs_pid == 0)
		for (;;)
			pause();
	rig_set_up(socket_path);
	rig_client_as(bobs_pid);
	rig_join(bob);
	rig_client_as(-1);
	rig_tear_down();
	rig_set_up(socket_path);
	rig_settle();
}

static void tear_down(void)
{
	kill(bobs_pid, SIGKILL);
	waitpid(bobs_pid, NULL, 0);
	rig_tear_down();
}

/* The kernel reports the process of a socket since Linux 6.5. */
static bool has_pidfds_of_sockets(void)
{
	int pair[2], fd = -1;
	socklen_t bytes = sizeof(fd);
	bool has = !socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) &&
		   (!getsockopt(pair[0], SOL_SOCKET, SO_PEERPIDFD, &fd, &bytes) ||
		    errno != ENOPROTOOPT);

	if (!has)
		printf("skipped: this kernel has no SO_PEERPIDFD\n");
	close(pair[0]);
	close(pair[1]);
	if (fd >= 0)
		close(fd);
	return has;
}

/* @is_reaped: its pid cannot be reused before that. */
static void connect_in_a_process_that_ends(bool is_reaped)
{
	siginfo_t info;
	pid_t pid;

	mallory.control = rig_dial_later();
	pid = fork();
	if (pid == 0) {
		rig_connect(mallory.control);
		_exit(0);
	}
	ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | (is_reaped ? 0 : WNOWAIT)), 0);
}

static void resume_as_bob(void)
{
	struct portd_record record = { .type = PORTD_RESUMED };

	rig_client_as(bobs_pid);
	rig_settle();
	ck_assert_int_eq(rig_resume(&mallory, bob->page_fd), 0);
	rig_client_as(-1);
	ck_assert_int_eq(rig_ask(&mallory, &record), 0);
	rig_pass(10); /* it checks every 5 ms whether all have resumed */
}

FIXTURE(set_up, tear_down);

TEST(resumed_client_is_no_longer_expected)
{
	mallory.control = rig_dial();
	resume_as_bob();
	ck_assert(!recovery_in_grace(rig_server()));
}

NEEDS(has_pidfds_of_sockets);

TEST(socket_of_an_ended_process_is_detected)
{
	int listener = rig_server()->listening.fd, fd;

	connect_in_a_process_that_ends(true);
	fd = accept(listener, NULL, NULL);
	ck_assert(process_of_socket_has_ended(fd));
	close(fd);
	mallory.control = rig_dial_later();
	rig_connect(mallory.control);
	fd = accept(listener, NULL, NULL);
	ck_assert(!process_of_socket_has_ended(fd));
	close(fd);
}

TEST_LOOP(client_cannot_resume_with_a_reused_pid, 0, 2)
{
	connect_in_a_process_that_ends(_i);
	resume_as_bob();
	ck_assert(recovery_in_grace(rig_server()));
}

TEST_LOOP(client_with_a_reused_pid_is_not_recorded, 0, 2)
{
	connect_in_a_process_that_ends(_i);
	resume_as_bob();
	ck_assert_int_eq(rig_server()->client[0]->pid, 0);
	ck_assert_uint_eq(rig_server()->client[0]->start, 0);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Timeouts of a client for the reply of a cmportd (lib/portd/client/portd_requests.c) that sleeps,
 * is stopped, or is busy: a child acts as cmportd and does not reply. Retries of a refused client,
 * without real time. And descriptors received when none is free.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/portd/client/portd_client.h"
#include "lib/portd/client/portd_requests.h"
#include "lib/portd/proto/datagram.h"
#include "tests/unit/portd/folder.h"
#include "tests/unit/test.h"

static pid_t server;
static bool is_timeless;
static int n_polls;

int __real_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms);

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	if (!is_timeless)
		return __real_poll(fds, n, timeout_ms);
	n_polls++;
	return 0;
}

static void serve(void (*then)(void))
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", socket_path);
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(fd, 1))
		_exit(1);
	for (;;)
		then();
}

static void sleep_on(void)
{
	pause();
}

static void work_on(void)
{
}

static void stop(void)
{
	raise(SIGSTOP);
}

static int dial(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", socket_path);
	while (connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		usleep(1000);
	return fd;
}

static void wait_for_state(char wanted)
{
	char path[32], state = '\0';
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)server);
	while (state != wanted) {
		file = fopen(path, "r");
		ck_assert_ptr_nonnull(file);
		ck_assert_int_eq(fscanf(file, "%*d %*s %c", &state), 1);
		fclose(file);
	}
}

/* Return: how often a client waits for the reply of a server that does @then. */
static int n_waits(void (*then)(void), char state)
{
	const struct portd_record record = { .type = PORTD_HELLO };
	struct portd_client client = { .control_fd = -1 };
	struct portd_reply reply;
	int err;

	folder_make();
	server = fork();
	if (!server)
		serve(then);
	client.control_fd = dial();
	wait_for_state(state);
	is_timeless = true;
	err = request_exchange(&client, &record, -1, &reply, NULL);
	is_timeless = false;
	ck_assert_int_eq(err, -ETIMEDOUT);
	close(client.control_fd);
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	return n_polls;
}

TEST(client_gives_up_a_sleeping_server)
{
	ck_assert_int_eq(n_waits(sleep_on, 'S'), 1);
}

TEST(client_gives_up_a_stopped_server)
{
	ck_assert_int_eq(n_waits(stop, 'T'), 1);
}

TEST(client_waits_longer_for_a_busy_server)
{
	ck_assert_int_eq(n_waits(work_on, 'R'), PORTD_ANSWER_WAITS_MAX);
}

/* If the client closed its socket, cmportd would end the program's connections. */
TEST(client_keeps_its_connection_to_a_server_that_answers_late)
{
	const struct portd_record record = { .type = PORTD_LEASE_IDS };
	struct portd_record answer = { .type = PORTD_REPLY, .reply = { .first = 1 } };
	struct portd_client client = { .data_fd = -1 };
	struct portd_reply reply;
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	client.control_fd = pair[0];
	is_timeless = true;
	ck_assert_int_eq(request_ask_locked(&client, &record, -1, &reply), -ETIMEDOUT);
	is_timeless = false;
	for (; answer.reply.first <= 3; answer.reply.first++)
		ck_assert_int_eq(request_send(pair[1], &answer, -1), 0);
	ck_assert_int_eq(request_ask_locked(&client, &record, -1, &reply), 0);
	ck_assert_uint_eq(reply.first, 3); /* the first was asked for twice */
	close(pair[0]);
	close(pair[1]);
}

/* --- refused clients -------------------------------------------------------- */

static int refusal;
static unsigned int n_tries;

/* As cmportd: sends the reason, and disconnects. */
static int refuse_client(int *ret_fd, struct portd_why *why)
{
	struct portd_record answer = { .type = PORTD_REPLY,
				       .reply = { .error = (uint16_t)refusal, .text = "uid 7" } };
	struct portd_datagram out = { .bytes = 0 };
	int pair[2];

	(void)why;
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	portd_put(&out, &answer);
	ck_assert_int_eq(portd_datagram_send(pair[1], &out, NULL, 0), 0);
	close(pair[1]);
	*ret_fd = pair[0];
	n_tries++;
	return 0;
}

static int start_and_be_refused(int error, struct portd_why *ret_why)
{
	struct portd_client client = { .control_fd = -1, .data_fd = -1, .reach = refuse_client };
	struct portd_ids ids;
	int err;

	refusal = error;
	is_timeless = true;
	err = request_start(&client, false, &ids, ret_why);
	is_timeless = false;
	close(client.control_fd);
	return err;
}

TEST(client_that_connects_too_often_retries_and_gets_the_reason)
{
	struct portd_why why = { "" };

	ck_assert_int_eq(start_and_be_refused(EAGAIN, &why), -EDQUOT);
	ck_assert_str_eq(why.text, "uid 7");
	ck_assert_uint_ge(n_tries, 40);
}

TEST(user_with_too_many_clients_gets_the_reason_at_once)
{
	struct portd_why why = { "" };

	ck_assert_int_eq(start_and_be_refused(EDQUOT, &why), -EDQUOT);
	ck_assert_str_eq(why.text, "uid 7");
	ck_assert_uint_eq(n_tries, 1);
}

/* --- descriptors ------------------------------------------------------------ */

static unsigned int n_free;

/* As cmportd, whose two descriptors do not fit. */
static int accept_client(int *ret_fd, struct portd_why *why)
{
	const struct portd_record answer = { .type = PORTD_REPLY };
	struct portd_datagram out = { .bytes = 0 };
	int pair[2];

	(void)why;
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	portd_put(&out, &answer);
	ck_assert_int_eq(portd_datagram_send(pair[1], &out, (int[2]){ 0, 0 }, 0), 0);
	leave_descriptors(n_free);
	*ret_fd = pair[0];
	return 0;
}

TEST_LOOP(client_without_free_descriptors_gets_emfile, 0, 2)
{
	struct portd_client client = { .control_fd = -1, .data_fd = -1, .reach = accept_client };
	struct portd_why why = { "" };
	struct portd_ids ids;

	n_free = (unsigned int)_i;
	ck_assert_int_eq(request_start(&client, false, &ids, &why), -EMFILE);
	allow_descriptors();
	close(client.control_fd);
}

/* A socket, a pipe and a file: each may be the one that cannot be opened. */
TEST_LOOP(cmportd_is_not_started_without_free_descriptors, 0, 4)
{
	struct portd_client *client;
	struct portd_ids ids;
	struct portd_why why;

	folder_make();
	setenv("PURECM_SOCKET", socket_path, 1);
	leave_descriptors((unsigned int)_i);
	ck_assert_int_eq(portd_client_open(&client, &ids, &why), -EMFILE);
	allow_descriptors();
	ck_assert_ptr_nonnull(strstr(why.text, "ulimit -n"));
}

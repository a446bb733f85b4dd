/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connection to ibacm (lib/path/ibacm.c): a thread of the test acts as a valid or invalid
 * ibacm.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "lib/engine/engine.h"
#include "lib/path/ibacm.h"
#include "tests/unit/test.h"

#define SILENCE_MS 150	 /* for tests without a response of ibacm */
#define TIMEOUT_MS 20000 /* for tests with a response: reached on failure only */
#define PATH_TYPE  0x10

static char folder[TEMPORARY_BYTES];
static char port_file[64], socket_path[64];
static struct ibacm acm;
static struct sockaddr_in dst = { .sin_family = AF_INET };
static struct ibacm_answer answer;

/* --- an ibacm ---------------------------------------------------------------- */

/* Handles a request of @bytes in @wire; returning false disconnects. */
typedef bool reply(int fd, uint8_t *wire, size_t bytes);

static struct {
	pthread_t thread;
	bool is_running;
	int listener;
	reply *reply;
	atomic_int n_connections, n_questions;
} server;

static void serve(int fd)
{
	uint8_t wire[IBACM_MESSAGE_BYTES];
	ssize_t n;

	while ((n = recv(fd, wire, sizeof(wire), 0)) > 0) {
		server.n_questions++;
		if (!server.reply(fd, wire, (size_t)n))
			break;
	}
	close(fd);
}

static void *run_server(void *arg)
{
	int fd;

	while ((fd = accept(server.listener, NULL, NULL)) >= 0) {
		server.n_connections++;
		serve(fd);
	}
	return arg;
}

static void start(int listener, reply *how)
{
	server.listener = listener;
	server.reply = how;
	ck_assert_int_eq(listen(listener, 4), 0);
	ck_assert_int_eq(pthread_create(&server.thread, NULL, run_server, NULL), 0);
	server.is_running = true;
}

static void start_at_socket(reply *how)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strcpy(addr.sun_path, socket_path);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	start(fd, how);
}

static void write_port(unsigned int port)
{
	FILE *file = fopen(port_file, "w");

	fprintf(file, "%u\n", port);
	fclose(file);
}

static uint16_t open_port(int *ret_fd)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t bytes = sizeof(addr);

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	*ret_fd = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(*ret_fd, (struct sockaddr *)&addr, bytes), 0);
	getsockname(*ret_fd, (struct sockaddr *)&addr, &bytes);
	return ntohs(addr.sin_port);
}

/* --- behaviours -------------------------------------------------------------- */

/* Makes a response to a request: one path, whose bytes are 0x11. */
static size_t make_answer(uint8_t *wire)
{
	uint16_t length = IBACM_HEADER_BYTES + IBACM_ENTRY_BYTES, type = PATH_TYPE;
	uint8_t *entry = wire + IBACM_HEADER_BYTES;

	wire[1] |= 0x80;
	memcpy(wire + 6, &length, sizeof(length));
	memset(entry, 0x11, IBACM_ENTRY_BYTES);
	memcpy(entry + 4, &type, sizeof(type));
	return length;
}

static bool put(int fd, const uint8_t *wire, size_t bytes)
{
	return send(fd, wire, bytes, MSG_NOSIGNAL) == (ssize_t)bytes;
}

static bool send_path(int fd, uint8_t *wire, size_t bytes)
{
	(void)bytes;
	return put(fd, wire, make_answer(wire));
}

static bool send_failure(int fd, uint8_t *wire, size_t bytes)
{
	wire[2] = 5;
	return put(fd, wire, bytes);
}

static bool send_by_bytes(int fd, uint8_t *wire, size_t bytes)
{
	size_t i, n = make_answer(wire);

	(void)bytes;
	for (i = 0; i < n; i++)
		if (!put(fd, wire + i, 1))
			return false;
	return true;
}

static bool send_nothing(int fd, uint8_t *wire, size_t bytes)
{
	(void)fd;
	(void)wire;
	(void)bytes;
	return true;
}

static bool close_at_once(int fd, uint8_t *wire, size_t bytes)
{
	(void)fd;
	(void)wire;
	(void)bytes;
	return false;
}

static bool close_in_header(int fd, uint8_t *wire, size_t bytes)
{
	(void)bytes;
	make_answer(wire);
	put(fd, wire, 5);
	return false;
}

static bool close_in_entry(int fd, uint8_t *wire, size_t bytes)
{
	(void)bytes;
	put(fd, wire, make_answer(wire) - 1);
	return false;
}

static bool stop_in_entry(int fd, uint8_t *wire, size_t bytes)
{
	(void)bytes;
	return put(fd, wire, make_answer(wire) - 1);
}

static bool send_garbage(int fd, uint8_t *wire, size_t bytes)
{
	memset(wire, 0xff, IBACM_MESSAGE_BYTES);
	(void)bytes;
	return put(fd, wire, IBACM_MESSAGE_BYTES);
}

static bool send_too_large_length(int fd, uint8_t *wire, size_t bytes)
{
	uint16_t length = UINT16_MAX;

	(void)bytes;
	make_answer(wire);
	memcpy(wire + 6, &length, sizeof(length));
	return put(fd, wire, IBACM_MESSAGE_BYTES);
}

static bool answer_another_request(int fd, uint8_t *wire, size_t bytes)
{
	(void)bytes;
	make_answer(wire);
	wire[8] ^= 1;
	return put(fd, wire, IBACM_HEADER_BYTES + IBACM_ENTRY_BYTES);
}

/* --- the tests --------------------------------------------------------------- */

static void setup(void)
{
	ck_assert_ptr_nonnull(mkdtemp(name_temporary(folder)));
	snprintf(port_file, sizeof(port_file), "%s/port", folder);
	snprintf(socket_path, sizeof(socket_path), "%s/sock", folder);
	memset(&server, 0, sizeof(server));
	memset(&answer, 0, sizeof(answer));
	ibacm_init(&acm, port_file, socket_path, TIMEOUT_MS);
}

static void teardown(void)
{
	ibacm_fini(&acm);
	if (server.is_running) {
		shutdown(server.listener, SHUT_RDWR);
		pthread_join(server.thread, NULL);
		close(server.listener);
	}
	unlink(port_file);
	unlink(socket_path);
	rmdir(folder);
}

FIXTURE(setup, teardown);

static int ask(void)
{
	struct ibacm_question question = { .dst = (struct sockaddr *)&dst };

	return ibacm_ask(&acm, &question, &answer);
}

TEST(request_without_ibacm_is_enotconn)
{
	ck_assert_int_eq(ask(), -ENOTCONN);
}

TEST(answer_comes_from_the_socket)
{
	start_at_socket(send_path);
	ck_assert_int_eq(ask(), 0);
	ck_assert_uint_eq(answer.n_paths, 1);
	ck_assert_uint_eq(answer.path[0].flags, 0x11111111);
}

TEST(answer_comes_from_the_port)
{
	int fd;

	write_port(open_port(&fd));
	start(fd, send_path);
	ck_assert_int_eq(ask(), 0);
	ck_assert_uint_eq(answer.n_paths, 1);
}

/*
 * A port file may be stale, and its port in use by another user; or the file belongs to another
 * user.
 */
TEST_LOOP(ibacm_of_another_user_is_not_used, 0, 2)
{
	const uid_t nobody = 65534;
	uint16_t port;
	int fd;

	if (geteuid() != 0)
		return; /* only root can change a socket's owner */
	port = open_port(&fd);
	write_port(port);
	ck_assert_int_eq(_i ? fchown(fd, nobody, -1) : chown(port_file, nobody, -1), 0);
	start(fd, send_path);
	ck_assert_int_ne(ask(), 0);
	ck_assert_int_eq(server.n_questions, 0);
}

TEST(socket_is_tried_if_the_port_has_no_listener)
{
	int fd;

	write_port(open_port(&fd));
	close(fd);
	start_at_socket(send_path);
	ck_assert_int_eq(ask(), 0);
}

static const char *const bad_ports[] = { "", "0", "65536", "nonsense", "-1", "99999999999999" };

TEST_LOOP(file_without_a_port_is_ignored, 0,
	  sizeof(bad_ports) / sizeof(bad_ports[0])) /* loop test: _i is the row */
{
	FILE *file = fopen(port_file, "w");

	fputs(bad_ports[_i], file);
	fclose(file);
	start_at_socket(send_path);
	ck_assert_int_eq(ask(), 0);
}

TEST(answer_may_come_in_pieces)
{
	start_at_socket(send_by_bytes);
	ck_assert_int_eq(ask(), 0);
	ck_assert_uint_eq(answer.n_paths, 1);
}

TEST(connection_is_kept_for_the_next_request)
{
	start_at_socket(send_path);
	ask();
	ask();
	ck_assert_int_eq(ask(), 0);
	ck_assert_int_eq(server.n_connections, 1);
	ck_assert_int_eq(server.n_questions, 3);
}

TEST(unknown_path_keeps_the_connection)
{
	start_at_socket(send_failure);
	ck_assert_int_eq(ask(), -ENOENT);
	ck_assert_int_eq(ask(), -ENOENT);
	ck_assert_int_eq(server.n_connections, 1);
}

TEST(request_without_addresses_is_not_sent)
{
	struct ibacm_question question = { 0 };

	start_at_socket(send_path);
	ck_assert_int_eq(ibacm_ask(&acm, &question, &answer), -ENOENT);
	ck_assert_int_eq(ask(), 0);
	ck_assert_int_eq(server.n_questions, 1);
}

static const struct {
	reply *reply;
	int err;
} failures[] = {
	{ send_nothing, -ETIMEDOUT },	     { close_at_once, -ECONNRESET },
	{ close_in_header, -ECONNRESET },    { close_in_entry, -ECONNRESET },
	{ stop_in_entry, -ETIMEDOUT },	     { send_garbage, -EBADMSG },
	{ send_too_large_length, -EBADMSG }, { answer_another_request, -EBADMSG },
};

TEST_LOOP(invalid_response_ends_the_connection, 0,
	  sizeof(failures) / sizeof(failures[0])) /* loop test: _i is the row */
{
	if (failures[_i].err == -ETIMEDOUT)
		acm.timeout_ms = SILENCE_MS;
	start_at_socket(failures[_i].reply);
	answer.n_paths = 77;
	ck_assert_int_eq(ask(), failures[_i].err);
	ck_assert_uint_eq(answer.n_paths, 77);
	ck_assert_int_eq(ask(), -ENOTCONN);
	ck_assert_int_eq(server.n_questions, 1);
}

static uint64_t since(struct cm_time before)
{
	return (clock_now().ns - before.ns) / CM_NS_PER_MS;
}

TEST(missing_response_ends_after_the_timeout)
{
	struct cm_time before = clock_now();

	acm.timeout_ms = SILENCE_MS;
	start_at_socket(send_nothing);
	ck_assert_int_eq(ask(), -ETIMEDOUT);
	ck_assert_uint_ge(since(before), SILENCE_MS);
}

static void *ask_often(void *failed)
{
	struct ibacm_question question = { .dst = (struct sockaddr *)&dst };
	struct ibacm_answer own;
	int i;

	for (i = 0; i < 100; i++)
		if (ibacm_ask(&acm, &question, &own) || own.n_paths != 1)
			*(bool *)failed = true;
	return NULL;
}

TEST(each_thread_gets_its_response)
{
	bool failed[4] = { false };
	pthread_t thread[4];
	int i;

	start_at_socket(send_path);
	for (i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, ask_often, &failed[i]);
	for (i = 0; i < 4; i++) {
		pthread_join(thread[i], NULL);
		ck_assert(!failed[i]);
	}
	ck_assert_int_eq(server.n_questions, 400);
}

/*
 * Not with the address sanitizer: that of GCC 12 reports a false overflow in its own call of
 * sigaltstack() after a cancellation.
 */
#ifndef __SANITIZE_ADDRESS__
static void *ask_until_cancelled(void *unused)
{
	struct ibacm_question question = { .dst = (struct sockaddr *)&dst, .may_cancel = true };

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL); /* as inside the library */
	ibacm_ask(&acm, &question, &answer);
	return unused;
}

TEST(thread_that_is_cancelled_leaves_ibacm_to_others)
{
	pthread_t thread;
	void *result;

	start_at_socket(send_nothing);
	ck_assert_int_eq(pthread_create(&thread, NULL, ask_until_cancelled, NULL), 0);
	while (!server.n_questions)
		sched_yield();
	pthread_cancel(thread);
	pthread_join(thread, &result);
	ck_assert_ptr_eq(result, PTHREAD_CANCELED);
	server.reply = send_path;
	ck_assert_int_eq(ask(), 0);
}
#endif

TEST(child_starts_without_its_parents_connection)
{
	struct ibacm *of_host = ibacm_of_host();
	int ends[2], status;
	pid_t child;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	of_host->is_tried = true;
	of_host->fd = ends[0];
	child = fork();
	if (child == 0)
		_exit(of_host->is_tried || of_host->fd >= 0);
	waitpid(child, &status, 0);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(of_host->fd, ends[0]);
	close(ends[1]);
}

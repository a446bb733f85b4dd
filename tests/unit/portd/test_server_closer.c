/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors that clients send, and whose close() waits: here TCP sockets with SO_LINGER whose
 * peer does not read. If cmportd closed one itself, it would wait for LINGER_S seconds.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/portd/server/closer.h"
#include "tests/unit/portd/scene.h"
#include "tests/unit/test.h"

#define alice	 (&scene_alice)
#define LINGER_S 30
#define WAITED_S 10
#define BOB	 12345
#define BUFFER	 4096
#define DATAGRAM 100 /* descriptors */
#define MANY	 17000

static struct rig_client bob;
static int listener, unread = -1; /* the peer of the latest lingering socket */
static time_t began;

static void set_up(void)
{
	scene_set_up();
	rig_server()->closer = closer_new();
	rig_come_as_user(BOB);
	rig_join(&bob);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &(int){ BUFFER }, 4), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	began = time(NULL);
}

/* Also lets the closers end. */
static void tear_down(void)
{
	scene_tear_down();
	close(unread);
	close(listener);
	unread = -1;
}

FIXTURE(set_up, tear_down);

static int lingering_socket(void)
{
	const struct linger linger = { .l_onoff = 1, .l_linger = LINGER_S };
	struct sockaddr_in addr;
	socklen_t bytes = sizeof(addr);
	char data[BUFFER] = "";
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&addr, &bytes), 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&addr, bytes), 0);
	unread = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	ck_assert_int_ge(unread, 0);
	while (send(fd, data, sizeof(data), MSG_DONTWAIT) > 0)
		continue;
	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	return fd;
}

static void send_away(int to, const void *bytes, size_t n, int fd)
{
	ck_assert(rig_put(to, bytes, n, &fd, 1));
	close(fd);
}

static void send_record(int to, const struct portd_record *record, int fd)
{
	struct portd_datagram out = { .bytes = 0 };

	ck_assert(portd_put(&out, record));
	send_away(to, out.data, out.bytes, fd);
}

static void assert_nobody_has_waited(void)
{
	struct portd_record record = { .type = PORTD_LEASE_IDS };

	ck_assert_int_eq(rig_ask(alice, &record), 0);
	ck_assert_int_lt(time(NULL) - began, WAITED_S);
}

TEST(a_lingering_socket_with_a_request_makes_nobody_wait)
{
	struct portd_record record = { .type = PORTD_LEASE_IDS };

	send_record(bob.control, &record, lingering_socket());
	rig_settle();
	ck_assert_int_eq(rig_answer(&bob), 0);
	assert_nobody_has_waited();
}

TEST(neither_does_one_as_the_page_of_a_client_that_resumes)
{
	struct portd_record record = {
		.type = PORTD_HELLO, .hello = {.version = PORTD_VERSION, .resumes = 1}
	};
	int control = rig_dial();

	send_record(control, &record, lingering_socket());
	rig_settle();
	assert_nobody_has_waited();
	close(control);
}

TEST(neither_does_one_on_the_data_socket)
{
	struct portd_record record = { .type = PORTD_CLOSE };

	send_record(bob.data, &record, lingering_socket());
	rig_settle();
	assert_nobody_has_waited();
}

TEST(neither_does_one_in_an_empty_datagram)
{
	send_away(bob.control, "", 0, lingering_socket());
	rig_settle();
	assert_nobody_has_waited();
}

/* The kernel closes the queue of a socket with the socket. */
TEST(neither_does_one_that_was_not_received)
{
	ck_assert(rig_put(bob.data, "\xff", 1, NULL, 0));
	send_away(bob.data, "\xff", 1, lingering_socket());
	rig_settle();
	ck_assert(rig_is_disconnected(&bob));
	assert_nobody_has_waited();
}

TEST(neither_does_one_behind_an_empty_datagram)
{
	ck_assert(rig_put(bob.data, "\xff", 1, NULL, 0));
	ck_assert(rig_put(bob.data, "", 0, NULL, 0));
	send_away(bob.data, "", 0, lingering_socket());
	rig_settle();
	ck_assert(rig_is_disconnected(&bob));
	assert_nobody_has_waited();
}

TEST(neither_does_the_last_of_more_than_a_request_can_have)
{
	struct portd_record record = { .type = PORTD_LEASE_IDS };
	struct portd_datagram out = { .bytes = 0 };
	int fd[3] = { listener, listener, lingering_socket() };

	portd_put(&out, &record);
	ck_assert(rig_put(bob.control, out.data, out.bytes, fd, 3));
	close(fd[2]);
	rig_settle();
	assert_nobody_has_waited();
}

static void flood_with_descriptors(void)
{
	struct portd_record record = { .type = PORTD_RELEASE };
	struct portd_datagram out = { .bytes = 0 };
	int fd[DATAGRAM];
	unsigned int i;

	portd_put(&out, &record);
	for (i = 0; i < DATAGRAM; i++)
		fd[i] = listener;
	for (i = 0; i < 100; i++) {
		rig_put(bob.control, out.data, out.bytes, fd, DATAGRAM);
		rig_pass(1);
	}
}

TEST(a_user_whose_descriptors_cannot_be_closed_is_not_read_from)
{
	struct portd_record record = { .type = PORTD_LEASE_IDS };
	unsigned int n_fds = rig_n_fds();

	send_record(bob.control, &record, lingering_socket());
	rig_settle();
	flood_with_descriptors();
	ck_assert_uint_le(rig_n_fds() - n_fds, CLOSER_MANY + DATAGRAM + 2);
	assert_nobody_has_waited();
	rig_leave(&bob);
	rig_settle();
	ck_assert_uint_eq(rig_server()->n_clients, 2); /* Alice, and the scene's Bob */
	assert_nobody_has_waited();
}

TEST(it_is_read_from_again_when_they_are_closed)
{
	struct portd_record record = { .type = PORTD_LEASE_IDS };
	int err = -1;

	send_record(bob.control, &record, lingering_socket());
	rig_settle();
	rig_answer(&bob);
	flood_with_descriptors();
	close(unread);
	unread = -1;
	while (err && time(NULL) - began < WAITED_S) {
		rig_pass(10);
		err = rig_ask(&bob, &record);
	}
	ck_assert_int_eq(err, 0);
}

static void make_closers_wait(void)
{
	struct portd_record record = { .type = PORTD_LEASE_IDS };

	send_record(bob.control, &record, lingering_socket());
	rig_settle();
	ck_assert_int_eq(rig_answer(&bob), 0);
}

TEST(connections_that_sent_no_descriptor_do_not_wait_to_be_closed)
{
	unsigned int n_fds, i;
	int control;

	make_closers_wait();
	n_fds = rig_n_fds();
	for (i = 0; i < 100; i++) {
		control = rig_dial();
		rig_settle();
		rig_put(control, "", 0, NULL, 0);
		close(control);
		rig_pass(10);
	}
	ck_assert_uint_le(rig_n_fds(), n_fds);
	assert_nobody_has_waited();
}

TEST(no_number_of_descriptors_makes_others_wait)
{
	struct user *user = rig_server()->client[2]->user;
	struct rlimit limit;
	unsigned int i;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max < MANY + 1000) {
		printf("skipped: this process may have %u descriptors only\n",
		       (unsigned int)limit.rlim_max);
		return;
	}
	make_closers_wait();
	for (i = 0; i < MANY; i++)
		user_discard(rig_server(), user, dup(listener));
	user_discard(rig_server(), user, lingering_socket());
	assert_nobody_has_waited();
}

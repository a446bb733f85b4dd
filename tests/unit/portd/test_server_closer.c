/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors that clients send, and whose close() waits: here TCP sockets with SO_LINGER whose
 * peer does not read. If cmportd closed one itself, it would wait for LINGER_S seconds. close() of
 * a FUSE file cannot be interrupted; the test simulates it with a pipe.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/portd/server/clients/closer.h"
#include "tests/unit/portd/scene.h"
#include "tests/unit/test.h"

#define alice	 (&scene_alice)
#define LINGER_S 30
#define WAITED_S 10
#define BOB	 12345
#define BUFFER	 4096
#define DATAGRAM 100 /* descriptors */
#define MANY	 17000
#define REFUSED	 1000

static struct rig_client bob;
static int listener;
static int unread[REFUSED]; /* the peers of lingering sockets */
static unsigned int n_unread;
static time_t began;
static int held[2];	 /* a pipe */
static ino_t held_inode; /* close() of this inode waits; 0: of none */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t let_go = PTHREAD_COND_INITIALIZER;

int __wrap_close_range(unsigned int first, unsigned int last, int flags);
int __real_close_range(unsigned int first, unsigned int last, int flags);

static bool has_held(unsigned int first, unsigned int last)
{
	struct stat stat;
	unsigned int fd;

	for (fd = first; fd <= last; fd++)
		if (!fstat((int)fd, &stat) && stat.st_ino == held_inode)
			return true;
	return false;
}

int __wrap_close_range(unsigned int first, unsigned int last, int flags)
{
	pthread_mutex_lock(&lock);
	while (held_inode && has_held(first, last))
		pthread_cond_wait(&let_go, &lock);
	pthread_mutex_unlock(&lock);
	return __real_close_range(first, last, flags);
}

static void hold(void)
{
	struct stat stat;

	ck_assert_int_eq(pipe2(held, O_CLOEXEC), 0);
	ck_assert_int_eq(fstat(held[0], &stat), 0);
	pthread_mutex_lock(&lock);
	held_inode = stat.st_ino;
	pthread_mutex_unlock(&lock);
}

static void stop_holding(void)
{
	pthread_mutex_lock(&lock);
	held_inode = 0;
	pthread_cond_broadcast(&let_go);
	pthread_mutex_unlock(&lock);
}

static void set_up(void)
{
	scene_set_up();
	rig_server()->closer = closer_new();
	rig_client_as_user(BOB);
	rig_join(&bob);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &(int){ BUFFER }, 4), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	began = time(NULL);
}

/* Also ends the closers. */
static void tear_down(void)
{
	stop_holding();
	scene_tear_down();
	while (n_unread)
		close(unread[--n_unread]);
	close(listener);
}

FIXTURE(set_up, tear_down);

static int lingering_socket(void)
{
	const struct linger linger = { .l_onoff = 1, .l_linger = LINGER_S };
	struct sockaddr_in addr;
	socklen_t bytes = sizeof(addr);
	char data[BUFFER] = "";
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){ BUFFER }, 4), 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&addr, &bytes), 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&addr, bytes), 0);
	ck_assert_uint_lt(n_unread, REFUSED);
	unread[n_unread] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	ck_assert_int_ge(unread[n_unread++], 0);
	while (send(fd, data, sizeof(data), MSG_DONTWAIT) > 0)
		continue;
	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	return fd;
}

static void end_client(int to, const void *bytes, size_t n, int fd)
{
	ck_assert(rig_put(to, bytes, n, &fd, 1));
	close(fd);
}

static void send_record(int to, const struct portd_record *record, int fd)
{
	struct portd_datagram out = { .bytes = 0 };

	ck_assert(portd_put(&out, record));
	end_client(to, out.data, out.bytes, fd);
}

static void assert_no_wait(void)
{
	struct portd_record record = { .type = PORTD_LEASE_IDS };

	ck_assert_int_eq(rig_ask(alice, &record), 0);
	ck_assert_int_lt(time(NULL) - began, WAITED_S);
}

TEST(lingering_socket_with_a_request_delays_no_client)
{
	struct portd_record record = { .type = PORTD_LEASE_IDS };

	send_record(bob.control, &record, lingering_socket());
	rig_settle();
	ck_assert_int_eq(rig_answer(&bob), 0);
	assert_no_wait();
}

TEST(lingering_socket_as_a_page_delays_no_client)
{
	struct portd_record record = { .type = PORTD_HELLO,
				       .hello = { .version = PORTD_VERSION, .resumes = 1 } };
	int control = rig_dial();

	send_record(control, &record, lingering_socket());
	rig_settle();
	assert_no_wait();
	close(control);
}

TEST(lingering_socket_on_the_data_socket_delays_no_client)
{
	struct portd_record record = { .type = PORTD_CLOSE };

	send_record(bob.data, &record, lingering_socket());
	rig_settle();
	assert_no_wait();
}

TEST(lingering_socket_in_an_empty_datagram_delays_no_client)
{
	end_client(bob.control, "", 0, lingering_socket());
	rig_settle();
	assert_no_wait();
}

/* The kernel closes the queue of a socket with the socket. */
TEST(unreceived_lingering_socket_delays_no_client)
{
	ck_assert(rig_put(bob.data, "\xff", 1, NULL, 0));
	end_client(bob.data, "\xff", 1, lingering_socket());
	rig_settle();
	ck_assert(rig_is_disconnected(&bob));
	assert_no_wait();
}

TEST(lingering_socket_behind_an_empty_datagram_delays_no_client)
{
	ck_assert(rig_put(bob.data, "\xff", 1, NULL, 0));
	ck_assert(rig_put(bob.data, "", 0, NULL, 0));
	end_client(bob.data, "", 0, lingering_socket());
	rig_settle();
	ck_assert(rig_is_disconnected(&bob));
	assert_no_wait();
}

TEST(excess_lingering_socket_delays_no_client)
{
	struct portd_record record = { .type = PORTD_LEASE_IDS };
	struct portd_datagram out = { .bytes = 0 };
	int fd[3] = { listener, listener, lingering_socket() };

	portd_put(&out, &record);
	ck_assert(rig_put(bob.control, out.data, out.bytes, fd, 3));
	close(fd[2]);
	rig_settle();
	assert_no_wait();
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

static void make_closers_wait(void)
{
	struct portd_record record = { .type = PORTD_LEASE_IDS };

	hold();
	send_record(bob.control, &record, held[0]);
	rig_settle();
	ck_assert_int_eq(rig_answer(&bob), 0);
}

TEST(a_user_whose_descriptors_cannot_be_closed_is_not_read_from)
{
	unsigned int n_fds = rig_n_fds();

	make_closers_wait();
	flood_with_descriptors();
	ck_assert_uint_le(rig_n_fds() - n_fds, CLOSER_MANY + DATAGRAM + 2);
	assert_no_wait();
	rig_leave(&bob);
	rig_settle();
	ck_assert_uint_eq(rig_server()->n_clients, 2); /* Alice, and the scene's Bob */
	assert_no_wait();
}

TEST(a_user_is_read_from_again_after_the_descriptors_are_closed)
{
	struct portd_record record = { .type = PORTD_LEASE_IDS };
	int err = -1;

	make_closers_wait();
	flood_with_descriptors();
	stop_holding();
	while (err && time(NULL) - began < WAITED_S) {
		rig_pass(10);
		err = rig_ask(&bob, &record);
	}
	ck_assert_int_eq(err, 0);
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
	assert_no_wait();
}

TEST(any_number_of_descriptors_delays_no_client)
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
	assert_no_wait();
}

/* Each connection has a descriptor in its queue, and all but the first few are refused. */
static void expect_refusal(int (*make)(void))
{
	int control, fd;
	unsigned int i;
	struct user *user;

	list_for_each_entry (user, &rig_server()->users.all, link)
		user->connects =
			(struct bucket){ .taken = CONNECTS_MAX - 1, .at = rig_server()->now };
	for (i = 0; i < REFUSED; i++) {
		fd = make();
		control = rig_dial();
		ck_assert(rig_put(control, "", 1, &fd, 1));
		close(fd);
		rig_turn();
		close(control);
	}
	rig_settle();
}

static void assert_all_are_closed(unsigned int n_fds)
{
	while (rig_n_fds() - n_unread > n_fds)
		sched_yield();
}

static int copied_pipe(void)
{
	return fcntl(held[1], F_DUPFD_CLOEXEC, 0);
}

TEST(refused_connections_do_not_wait_for_other_descriptors_of_their_user)
{
	unsigned int n_fds;

	make_closers_wait();
	n_fds = rig_n_fds();
	expect_refusal(copied_pipe);
	assert_all_are_closed(n_fds + 1); /* descriptors of the first ones wait */
}

TEST(refused_connections_with_lingering_sockets_are_closed)
{
	unsigned int n_fds = rig_n_fds();

	expect_refusal(lingering_socket);
	assert_all_are_closed(n_fds);
}

TEST(received_lingering_sockets_are_closed)
{
	struct portd_record record = { .type = PORTD_RELEASE };
	unsigned int n_fds = rig_n_fds(), i;

	for (i = 0; i < CLOSER_MANY; i++) {
		send_record(bob.control, &record, lingering_socket());
		rig_pass(1);
	}
	assert_all_are_closed(n_fds);
}

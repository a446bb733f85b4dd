/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What few preloaded programs reach: the last entries of the table of their descriptors, and the
 * end of connections whose set-up they did not wait for.
 */
#include <errno.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/rsocket/preload/preload.h"
#include "tests/unit/lib/rsocket/pair.h"
#include "tests/unit/lib/rsocket/wire_device.h"
#include "tests/unit/test.h"

/* epoll_ctl() is called with what epoll_create1() has returned, whatever that is. */
TEST(a_negative_number_is_no_epoll)
{
	ck_assert_ptr_null(map_epoll(-1));
	ck_assert_int_eq(errno, EBADF);
}
END_TEST

/* fcntl(F_DUPFD) makes any number below the limit of the process. */
TEST(a_duplicate_beyond_the_table_is_refused)
{
	struct sock sock = { .refs = 1 };

	ck_assert_int_eq(map_alias(MAP_FD_MAX + 1, &sock), -1);
	ck_assert_int_eq(errno, EMFILE);
	ck_assert_int_eq(sock.refs, 1);
	ck_assert_ptr_null(map_get(MAP_FD_MAX + 1));
	ck_assert_int_eq(map_alias(MAP_FD_MAX, &sock), 0);
	ck_assert_ptr_eq(map_get(MAP_FD_MAX), &sock);
}
END_TEST

/* --- a fork while another thread closes a socket ------------------------------ */

#define FORKS 200

static atomic_bool is_over;

/* As close() does. */
static void release_one(void)
{
	static struct sock sock;

	sock = (struct sock){
		.refs = 1, .rs = -1, .tcp = -1, .kick_fd = -1, .end = -1, .control = -1
	};
	map_release(&sock);
}

static void *release_many(void *unused)
{
	while (!is_over)
		release_one();
	return unused;
}

TEST(child_of_a_fork_during_a_close_can_close)
{
	int status = 0;
	pthread_t thread;

	pthread_create(&thread, NULL, release_many, NULL);
	for (int i = 0; i < FORKS && !status; i++) {
		pid_t child = fork();

		if (!child) {
			alarm(20);
			release_one();
			_exit(0);
		}
		ck_assert_int_eq(waitpid(child, &status, 0), child);
	}
	is_over = true;
	pthread_join(thread, NULL);
	ck_assert_int_eq(status, 0);
}
END_TEST

/* --- a connection that breaks --------------------------------------------------- */

static struct pair pair;

/* Return: a descriptor with a connection that a nonblocking connect() made, and that then broke. */
static int break_connection(void)
{
	struct stream *s;
	struct sock *sock;
	int fd;

	wire_begin();
	pair = pair_make(pair_small());
	s = pair.end[0];
	fd = map_new(map_open(SOCK_STREAM), pair.fd[0], AF_INET, SOCK_STREAM, 0);
	sock = map_get(fd);
	sock->target.ss_family = AF_INET;
	sock->target_bytes = sizeof(struct sockaddr_in);
	pthread_mutex_lock(&s->base.lock);
	stream_apply(s, STREAM_EV_SEND_FAILED, -ECONNRESET);
	pthread_mutex_unlock(&s->base.lock);
	return fd;
}

static void end_connection(void)
{
	pair_free(&pair);
	wire_end();
}

/* A retry would continue the program's protocol, in its middle, on a new connection. */
TEST(a_connection_that_breaks_is_not_retried)
{
	int fd = break_connection();
	struct sock *sock = map_get(fd);

	ck_assert(!fallback_retry(fd, sock));
	ck_assert_ptr_eq(map_get(fd), sock);
	end_connection();
}
END_TEST

TEST(a_connection_that_breaks_in_an_epoll_is_reported)
{
	int fd = break_connection();
	struct sock epoll = { .is_repoll = true, .rs = repoll_create(0) };
	struct epoll_event event = { .events = EPOLLERR, .data.fd = fd };

	fallback_control(fd, map_get(fd), &epoll, EPOLL_CTL_ADD, &event);
	ck_assert_int_eq(fallback_retry_all(&epoll, &event, 1), 1);
	rclose(epoll.rs);
	end_connection();
}
END_TEST

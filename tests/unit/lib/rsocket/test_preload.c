/* SPDX-License-Identifier: BSD-2-Clause */
/* The last entries of the table of a preloaded program's descriptors, which few programs reach. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/rsocket/preload/preload.h"
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

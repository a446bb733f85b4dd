/* SPDX-License-Identifier: BSD-2-Clause */
/* The relay thread of the preload library, above fake rsockets. */
#include <errno.h>
#include <rdma/rsocket.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "lib/rsocket/preload/relay.h"
#include "tests/unit/lib/rsocket/pair.h"
#include "tests/unit/lib/rsocket/wire_device.h"
#include "tests/unit/test.h"

#define WAIT_S 20

ssize_t __real_rrecv(int rs, void *buf, size_t bytes, int flags);
ssize_t __wrap_rrecv(int rs, void *buf, size_t bytes, int flags);
const struct real *__real_real(void);
const struct real *__wrap_real(void);
int __real_thread_start(void *(*run)(void *arg), void *arg);
int __wrap_thread_start(void *(*run)(void *arg), void *arg);

static atomic_bool is_endless; /* rsockets always have data, and their relays have room for it */
static bool has_no_descriptor, has_no_thread;
static atomic_uint n_received[2];
static int played[2];

ssize_t __wrap_rrecv(int rs, void *buf, size_t bytes, int flags)
{
	if (!is_endless)
		return __real_rrecv(rs, buf, bytes, flags);
	n_received[rs == played[1]]++;
	return 1;
}

static ssize_t swallow(int fd, const void *buf, size_t bytes, int flags)
{
	(void)fd;
	(void)buf;
	(void)flags;
	return (ssize_t)bytes;
}

static int fail_eventfd(unsigned int value, int flags)
{
	(void)value;
	(void)flags;
	errno = EMFILE;
	return -1;
}

const struct real *__wrap_real(void)
{
	static struct real changed;

	if (!is_endless && !has_no_descriptor)
		return __real_real();
	changed = *__real_real();
	if (is_endless)
		changed.send = swallow;
	else
		changed.eventfd = fail_eventfd;
	return &changed;
}

int __wrap_thread_start(void *(*run)(void *arg), void *arg)
{
	return has_no_thread ? -EAGAIN : __real_thread_start(run, arg);
}

/* --- the thread's other work ---------------------------------------------------- */

static sem_t served;

static void serve(struct source *source)
{
	source->is_over = true;
	sem_post(&served);
}

static bool is_closed;

static void note_close(struct source *source)
{
	(void)source;
	is_closed = true;
}

static struct source other = { .ready = serve, .close = note_close };

static int watch_other(void)
{
	int result;

	sem_init(&served, 0, 0);
	relay_lock();
	result = relay_watch(&other, eventfd(1, EFD_CLOEXEC), EPOLLIN);
	relay_unlock();
	return result;
}

static void assert_is_served(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WAIT_S;
	ck_assert_int_eq(sem_timedwait(&served, &until), 0);
}

/* --- copying -------------------------------------------------------------------- */

static void start_relay(struct sock *sock, int rs)
{
	*sock = (struct sock){ .refs = 1, .rs = rs, .tcp = -1, .end = -1, .repoll = -1 };
	relay_lock();
	ck_assert_int_eq(relay_start(sock), 0);
	relay_unlock();
}

/* Forked children need the thread for their connections, and other relays need it, too. */
TEST(two_relays_that_always_have_data_do_not_keep_the_thread)
{
	struct sock socks[2];

	is_endless = true;
	for (int i = 0; i < 2; i++) {
		played[i] = rsocket(AF_INET, SOCK_DGRAM, 0);
		start_relay(&socks[i], played[i]);
	}
	while (!n_received[0] || !n_received[1])
		sched_yield();
	ck_assert_int_eq(watch_other(), 0);
	assert_is_served();
	is_endless = false;
}
END_TEST

/* --- starting the thread -------------------------------------------------------- */

static bool *const lacks[] = { &has_no_descriptor, &has_no_thread };

/* A child closes all sources of its parent. */
static void assert_child_closes_other(void)
{
	int status;
	pid_t child = fork();

	if (!child)
		_exit(!is_closed);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
}

TEST_LOOP(a_thread_that_cannot_be_started_is_started_later, 0, sizeof(lacks) / sizeof(lacks[0]))
{
	*lacks[_i] = true;
	ck_assert_int_eq(watch_other(), -1);
	*lacks[_i] = false;
	ck_assert_int_eq(watch_other(), 0);
	assert_is_served();
	assert_child_closes_other();
}
END_TEST

/* The child must not wait for an answer, which only the parent's thread could send. */
TEST_LOOP(child_of_a_process_without_the_thread_has_ended_connections, 0,
	  sizeof(lacks) / sizeof(lacks[0]))
{
	struct pair pair;
	int status, fd;
	pid_t child;

	wire_begin();
	pair = pair_make(pair_small());
	rdma_get_peer_addr(pair.end[0]->id)->sa_family = AF_INET;
	fd = map_new(map_open(SOCK_STREAM), pair.fd[0], AF_INET, SOCK_STREAM, 0);
	*lacks[_i] = true;
	child = fork();
	if (!child) {
		alarm(WAIT_S);
		relay_enter(fd);
		_exit(read(fd, &(char){ 0 }, 1) != 0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(map_get(fd)->refs, 1);
	pair_free(&pair);
	wire_end();
}
END_TEST

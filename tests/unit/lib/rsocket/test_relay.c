/* SPDX-License-Identifier: BSD-2-Clause */
/* The thread of a preloaded program's relays, whose rsockets are played. */
#include <errno.h>
#include <rdma/rsocket.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <time.h>

#include "lib/rsocket/preload/relay.h"
#include "tests/unit/test.h"

#define WAIT_S 20

ssize_t __real_rrecv(int rs, void *buf, size_t bytes, int flags);
ssize_t __wrap_rrecv(int rs, void *buf, size_t bytes, int flags);
const struct real *__real_real(void);
const struct real *__wrap_real(void);

static atomic_bool is_endless; /* rsockets always have data, and their relays have room for it */
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

const struct real *__wrap_real(void)
{
	static struct real endless;

	if (!is_endless)
		return __real_real();
	endless = *__real_real();
	endless.send = swallow;
	return &endless;
}

/* --- the thread's other work ---------------------------------------------------- */

static sem_t served;

static void serve(struct source *source)
{
	source->is_over = true;
	sem_post(&served);
}

static struct source other = { .ready = serve };

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

/* Otherwise no forked child would get its connections meanwhile, and no other relay its turn. */
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

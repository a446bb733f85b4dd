/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that close descriptors: see closer.h.
 */
#include "lib/portd/server/clients/closer.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/list.h"
#include "base/thread.h"

#define ROOM_FIRST   16
#define INTERRUPT    SIGURG /* without a handler, which a thread may outlive, it is ignored */
#define INTERRUPT_NS 1000000

#ifndef sigev_notify_thread_id /* the C library may not name it */
#define sigev_notify_thread_id _sigev_un._tid
#endif

struct closing {
	struct list link; /* in closer.ready, if there are descriptors and no thread */
	unsigned int n;	  /* atomic: with those that a thread is closing */
	unsigned int n_fds;
	unsigned int room;
	int *fd;
	bool is_served;	   /* by a thread */
	bool is_forgotten; /* by its owner */
};

struct closer {
	pthread_mutex_t lock; /* protects everything here and in struct closing */
	pthread_cond_t wake;
	struct list ready;
	unsigned int n_ready;
	unsigned int n_idle; /* threads */
	unsigned int n_refs; /* threads, and the owner */
	bool is_over;
};

struct closer *closer_new(void)
{
	struct closer *closer = calloc(1, sizeof(*closer));

	if (!closer)
		return NULL;
	pthread_mutex_init(&closer->lock, NULL);
	pthread_cond_init(&closer->wake, NULL);
	list_init(&closer->ready);
	closer->n_refs = 1;
	return closer;
}

/* Called with the lock, which it releases. */
static void unlock_and_leave(struct closer *closer)
{
	bool is_last = --closer->n_refs == 0;

	pthread_mutex_unlock(&closer->lock);
	if (!is_last)
		return;
	pthread_cond_destroy(&closer->wake);
	pthread_mutex_destroy(&closer->lock);
	free(closer);
}

void closer_free(struct closer *closer)
{
	if (!closer)
		return;
	pthread_mutex_lock(&closer->lock);
	closer->is_over = true;
	pthread_cond_broadcast(&closer->wake);
	unlock_and_leave(closer);
}

static void free_if_done(struct closing *closing)
{
	if (!closing->is_forgotten || closing->is_served || closing->n_fds)
		return;
	free(closing->fd);
	free(closing);
}

static void make_ready(struct closer *closer, struct closing *closing)
{
	list_append(&closer->ready, &closing->link);
	closer->n_ready++;
}

static void ignore_signal(int number)
{
	(void)number;
}

/*
 * A timer whose signals interrupt close() in this thread. A socket that would wait, because of
 * SO_LINGER, is then closed in the background. Return: false without one.
 */
static bool make_timer(timer_t *ret)
{
	const struct sigaction ignore = { .sa_handler = ignore_signal };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = INTERRUPT };
	sigset_t only;

	event.sigev_notify_thread_id = gettid();
	if (sigaction(INTERRUPT, &ignore, NULL) || timer_create(CLOCK_MONOTONIC, &event, ret))
		return false;
	sigemptyset(&only);
	sigaddset(&only, INTERRUPT);
	pthread_sigmask(SIG_UNBLOCK, &only, NULL);
	return true;
}

static void set_timer(const timer_t *timer, long ns)
{
	const struct timespec each = { .tv_nsec = ns };
	const struct itimerspec spec = { .it_interval = each, .it_value = each };

	if (timer)
		timer_settime(*timer, 0, &spec, NULL);
}

static int compare_fds(const void *one, const void *other)
{
	return *(const int *)one - *(const int *)other;
}

/*
 * Those with consecutive numbers are closed by one call: an interrupt ends the wait for all of
 * them. Otherwise a user could send them faster than one per interrupt.
 */
static void close_fds(struct closing *closing, int *fd, unsigned int n)
{
	unsigned int i, n_run;

	qsort(fd, n, sizeof(*fd), compare_fds);
	for (i = 0; i < n; i += n_run) {
		for (n_run = 1; i + n_run < n && fd[i + n_run] == fd[i] + (int)n_run;)
			n_run++;
		if (close_range((unsigned int)fd[i], (unsigned int)fd[i] + n_run - 1, 0)) {
			n_run = 1;
			close(fd[i]);
		}
		__atomic_sub_fetch(&closing->n, n_run, __ATOMIC_RELAXED);
	}
}

/* Called with the lock, which is released while descriptors are closed. */
static void serve_next(struct closer *closer, const timer_t *timer)
{
	struct closing *closing = container_of(closer->ready.next, struct closing, link);
	unsigned int n_fds = closing->n_fds;
	int *fd = closing->fd;

	list_remove(&closing->link);
	closer->n_ready--;
	closing->fd = NULL;
	closing->n_fds = closing->room = 0;
	closing->is_served = true;
	pthread_mutex_unlock(&closer->lock);
	set_timer(timer, INTERRUPT_NS);
	close_fds(closing, fd, n_fds);
	set_timer(timer, 0);
	free(fd);
	pthread_mutex_lock(&closer->lock);
	closing->is_served = false;
	if (closing->n_fds)
		make_ready(closer, closing);
	else
		free_if_done(closing);
}

static void *run(void *arg)
{
	struct closer *closer = arg;
	timer_t timer;
	const bool has_timer = make_timer(&timer);

	pthread_mutex_lock(&closer->lock);
	for (;;) {
		while (list_is_empty(&closer->ready) && !closer->is_over) {
			closer->n_idle++;
			pthread_cond_wait(&closer->wake, &closer->lock);
			closer->n_idle--;
		}
		if (list_is_empty(&closer->ready))
			break;
		serve_next(closer, has_timer ? &timer : NULL);
	}
	if (has_timer)
		timer_delete(timer);
	unlock_and_leave(closer);
	return NULL;
}

/* Return: false if there is no thread at all. */
static bool wake_a_thread(struct closer *closer)
{
	if (closer->n_ready <= closer->n_idle || closer->n_refs > CLOSER_THREADS) {
		pthread_cond_signal(&closer->wake);
		return true;
	}
	closer->n_refs++;
	if (thread_start(run, closer) == 0)
		return true;
	closer->n_refs--;
	pthread_cond_signal(&closer->wake);
	return closer->n_refs > 1;
}

static bool add(struct closing *closing, int fd)
{
	unsigned int room = closing->room ? 2 * closing->room : ROOM_FIRST;
	int *bigger;

	if (closing->n_fds == closing->room) {
		bigger = realloc(closing->fd, room * sizeof(*bigger));
		if (!bigger)
			return false;
		closing->fd = bigger;
		closing->room = room;
	}
	closing->fd[closing->n_fds++] = fd;
	__atomic_add_fetch(&closing->n, 1, __ATOMIC_RELAXED);
	return true;
}

static struct closing *closing_new(void)
{
	struct closing *closing = calloc(1, sizeof(*closing));

	if (closing)
		list_init(&closing->link);
	return closing;
}

/* The latest descriptor could not be given to a thread, so it is still the last one. */
static bool take_back(struct closer *closer, struct closing *closing)
{
	closing->n_fds--;
	__atomic_sub_fetch(&closing->n, 1, __ATOMIC_RELAXED);
	list_remove(&closing->link);
	closer->n_ready--;
	return false;
}

bool closer_put(struct closer *closer, struct closing **closing, int fd)
{
	bool is_taken = false;

	if (!*closing)
		*closing = closing_new();
	if (!*closing)
		return false;
	pthread_mutex_lock(&closer->lock);
	is_taken = add(*closing, fd);
	if (is_taken && !(*closing)->is_served && (*closing)->n_fds == 1) {
		make_ready(closer, *closing);
		is_taken = wake_a_thread(closer) || take_back(closer, *closing);
	}
	pthread_mutex_unlock(&closer->lock);
	return is_taken;
}

/* With SO_PASSCRED even an empty datagram has ancillary data, for which there is no room here. */
bool closer_is_empty(int socket)
{
	struct msghdr msg = { 0 };

	return !shutdown(socket, SHUT_RDWR) &&
	       !setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &(int){ 1 }, sizeof(int)) &&
	       recvmsg(socket, &msg, MSG_PEEK | MSG_DONTWAIT) == 0 && !(msg.msg_flags & MSG_CTRUNC);
}

unsigned int closer_count(const struct closing *closing)
{
	return closing ? __atomic_load_n(&closing->n, __ATOMIC_RELAXED) : 0;
}

void closer_forget(struct closer *closer, struct closing **closing)
{
	if (!*closing)
		return;
	pthread_mutex_lock(&closer->lock);
	(*closing)->is_forgotten = true;
	free_if_done(*closing);
	pthread_mutex_unlock(&closer->lock);
	*closing = NULL;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The thread that copies for relays: see relay.h. */
#include "lib/rsocket/preload/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "lib/rsocket/rsock.h"

#define CHUNK_BYTES 65536
#define ROUNDS	    16 /* before other relays have their turn */
#define AT_ONCE	    64
#define EXIT_MS	    30000 /* for what is to be sent when the process ends */
#define TICK_MS	    10

/* One direction. */
struct flow {
	size_t at, end; /* of what has to be written */
	bool is_over;
	char bytes[CHUNK_BYTES];
};

struct relay {
	struct source source; /* first */
	struct list busy;     /* in the list of those with more to copy */
	int rs;
	int fd;
	struct flow in;	 /* from the rsocket */
	struct flow out; /* to it */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list relays = { &relays, &relays };
static int repoll = -1; /* the thread's; -1: there is no thread */

/* The thread's own. */
static sem_t ended_thread;
static struct list busy = { &busy, &busy };
static struct list ended = { &ended, &ended };
static struct source exit_source; /* readable when the process ends */
static int exit_fd = -1;
static struct cm_time exit_until;

void relay_lock(void)
{
	pthread_mutex_lock(&lock);
}

void relay_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

/* --- copying -------------------------------------------------------------- */

/* The calls of either kind of socket. */
struct calls {
	ssize_t (*recv)(int fd, void *buf, size_t bytes, int flags);
	int recv_flags;
	ssize_t (*send)(int fd, const void *buf, size_t bytes, int flags);
	int (*shutdown)(int fd, int how);
};

/* Return: whether it has done something. */
static bool copy_some(struct flow *flow, const struct calls *get, int from, const struct calls *put,
		      int to)
{
	ssize_t n;

	if (flow->is_over)
		return false;
	if (flow->at == flow->end) {
		n = get->recv(from, flow->bytes, sizeof(flow->bytes),
			      MSG_DONTWAIT | get->recv_flags);
		if (n < 0 && errno == EAGAIN)
			return false;
		if (n <= 0) {
			flow->is_over = true;
			put->shutdown(to, SHUT_WR);
			return true;
		}
		flow->at = 0;
		flow->end = (size_t)n;
	}
	n = put->send(to, flow->bytes + flow->at, flow->end - flow->at,
		      MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0 && errno == EAGAIN)
		return false;
	if (n > 0)
		flow->at += (size_t)n;
	if (n >= 0)
		return true;
	/* Nobody receives it: who sends is to know. */
	flow->is_over = true;
	get->shutdown(from, SHUT_RD);
	return true;
}

static bool copy_both(struct relay *it)
{
	static const struct calls rsocket = { rrecv, RSOCK_TAKE, rsend, rshutdown };
	const struct calls kernel = { real()->recv, 0, real()->send, real()->shutdown };
	bool out = copy_some(&it->out, &kernel, it->fd, &rsocket, it->rs);

	return copy_some(&it->in, &rsocket, it->rs, &kernel, it->fd) || out;
}

/* Has the program closed its end? What it had sent before is sent then. */
static bool is_left(const struct relay *it)
{
	struct pollfd fd = { .fd = it->fd };

	return it->out.is_over &&
	       (it->in.is_over || (real()->poll(&fd, 1, 0) > 0 && fd.revents & POLLHUP));
}

static void close_relay(struct source *source)
{
	own_close(container_of(source, struct relay, source)->fd);
}

static void end_relay(struct relay *it)
{
	relay_lock();
	list_remove(&it->source.link);
	relay_unlock();
	list_remove(&it->busy);
	repoll_ctl(repoll, EPOLL_CTL_DEL, it->rs, NULL);
	relay_unwatch(&it->source, it->fd);
	own_close(it->fd);
	rclose(it->rs);
}

static void copy_ready(struct source *source)
{
	struct relay *it = container_of(source, struct relay, source);
	int rounds = ROUNDS;

	while (rounds && copy_both(it))
		rounds--;
	list_remove(&it->busy);
	list_init(&it->busy);
	if (is_left(it))
		end_relay(it);
	else if (!rounds)
		list_append(&busy, &it->busy);
}

bool relay_is_any(void)
{
	struct source *source;
	bool found = false;

	relay_lock();
	list_for_each_entry (source, &relays, link)
		found |= source->ready == copy_ready;
	relay_unlock();
	return found;
}

/* --- the thread ----------------------------------------------------------- */

static void begin_exit(struct source *source)
{
	source->is_over = true;
	exit_until = cm_time_after(clock_now(), EXIT_MS * CM_NS_PER_MS);
}

static void close_exit(struct source *source)
{
	(void)source;
	own_close(exit_fd);
}

static bool has_unsent(const struct relay *it)
{
	int n = 0;

	return !it->out.is_over &&
	       (it->out.at < it->out.end || (!real()->ioctl(it->fd, FIONREAD, &n) && n));
}

/* When the process ends. Return: whether all that programs have sent is sent. */
static bool is_all_sent(void)
{
	struct source *source;

	list_for_each_entry (source, &relays, link)
		if (source->ready == copy_ready &&
		    has_unsent(container_of(source, struct relay, source)))
			return false;
	return true;
}

static void handle_events(void)
{
	int timeout_ms = !list_is_empty(&busy) ? 0 : exit_until.ns ? TICK_MS : -1;
	struct epoll_event events[AT_ONCE];
	struct source *source;
	int n;

	errno = 0;
	n = repoll_wait(repoll, events, AT_ONCE, timeout_ms);
	n = errno ? 0 : n;
	for (int i = 0; i < n; i++) {
		source = events[i].data.ptr;
		if (!source->is_over)
			source->ready(source);
	}
	/* Each leaves the list, and may be appended again. */
	for (size_t n_busy = list_length(&busy); n_busy; n_busy--)
		copy_ready(&container_of(busy.next, struct relay, busy)->source);
	list_for_each_entry_safe (source, &ended, link) {
		list_remove(&source->link);
		free(source);
	}
}

static void *run(void *unused)
{
	struct source *source;

	while (!exit_until.ns)
		handle_events();
	while (!is_all_sent() && !cm_time_reached(exit_until, clock_now()))
		handle_events();
	list_for_each_entry (source, &relays, link)
		if (source->ready == copy_ready)
			rclose(container_of(source, struct relay, source)->rs);
	sem_post(&ended_thread);
	return unused;
}

/* The lock must be held. Return: 0; -1: there is none, as before. */
static int start_thread(void)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = &exit_source };

	if (repoll >= 0)
		return 0;
	repoll = repoll_create(O_CLOEXEC);
	exit_fd = own_add(real()->eventfd(0, EFD_CLOEXEC));
	exit_source = (struct source){ .ready = begin_exit, .close = close_exit };
	exit_until = (struct cm_time){ 0 };
	sem_init(&ended_thread, 0, 0);
	if (repoll >= 0 && exit_fd >= 0 &&
	    repoll_ctl(repoll, EPOLL_CTL_ADD, exit_fd, &event) == 0 &&
	    thread_start(run, NULL) == 0) {
		list_append(&relays, &exit_source.link);
		return 0;
	}
	own_close(exit_fd);
	rclose(repoll);
	repoll = -1;
	return -1;
}

/* What a program has sent before it ends is sent, as TCP does; also by a stream, which the C
 * library writes later. */
__attribute__((destructor)) static void end_thread(void)
{
	if (repoll < 0 || own_is_lent())
		return;
	fflush(NULL);
	eventfd_write(exit_fd, 1);
	while (sem_wait(&ended_thread) && errno == EINTR)
		;
}

int relay_watch(struct source *source, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = source };

	list_append(&relays, &source->link);
	if (start_thread() == 0 && repoll_ctl(repoll, EPOLL_CTL_ADD, fd, &event) == 0)
		return 0;
	list_remove(&source->link);
	return -1;
}

void relay_unwatch(struct source *source, int fd)
{
	repoll_ctl(repoll, EPOLL_CTL_DEL, fd, NULL);
	source->is_over = true;
	list_append(&ended, &source->link);
}

/* --- starting ------------------------------------------------------------- */

/* The end is as the socket was, for those that have it. */
static void copy_options(const struct sock *sock, int end)
{
	static const int limits[] = { SO_RCVTIMEO, SO_SNDTIMEO };
	const struct linger none = { 0 };

	real()->fcntl(end, F_SETFL, rfcntl(sock->rs, F_GETFL) & O_NONBLOCK);
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct timeval limit;
		socklen_t bytes = sizeof(limit);

		if (rgetsockopt(sock->rs, SOL_SOCKET, limits[i], &limit, &bytes) == 0)
			real()->setsockopt(end, SOL_SOCKET, limits[i], &limit, bytes);
	}
	/* The thread must not wait. */
	rsetsockopt(sock->rs, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
}

int relay_start(struct sock *sock)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLET };
	struct relay *it = calloc(1, sizeof(*it));
	int fds[2], rs = sock->rs;

	if (!it || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds)) {
		free(it);
		return -1;
	}
	it->fd = own_add(fds[0]);
	sock->end = own_add(fds[1]);
	it->rs = rs;
	it->source = (struct source){ .ready = copy_ready, .close = close_relay };
	list_init(&it->busy);
	name_bind(it->fd, sock);
	copy_options(sock, sock->end);
	fallback_move(sock, sock->end);
	sock->rs = -1;
	__atomic_store_n(&sock->is_away, true, __ATOMIC_RELEASE);
	rfcntl(rs, RSOCK_MOVE);
	event.data.ptr = &it->source;
	/* If nobody would copy, the connection ends. */
	if (relay_watch(&it->source, it->fd, event.events)) {
		own_close(it->fd);
		rclose(rs);
		free(it);
		return -1;
	}
	if (repoll_ctl(repoll, EPOLL_CTL_ADD, rs, &event) == 0)
		return 0;
	real()->shutdown(it->fd, SHUT_RDWR);
	return -1;
}

void relay_close_all(void)
{
	struct source *source;

	list_for_each_entry (source, &relays, link)
		source->close(source);
	repoll = -1;
	list_init(&relays);
	list_init(&busy);
	list_init(&ended);
	pthread_mutex_init(&lock, NULL);
}

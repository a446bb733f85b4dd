/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fork mode: see preload.h.
 */
#include "lib/rsocket/preload/preload.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/clock.h"
#include "base/env.h"

#define ZEROS	   4
#define ANNOUNCED  'r'
#define GIVE_UP_MS 10000 /* without zeros: the other end is not in fork mode */
#define RETRY_MS   10	 /* while another child uses the port */
#define TURN_MS	   3000 /* after that, the client of the child that uses it counts as unresponsive */
#define APART_MIN  32768 /* ports below may be a service's */
#define LINGER_S   30
#define PORT_LOCKS 64 /* ports may share one */

enum stage {
	NOT_OURS,
	SOCKET,
	CONNECTED, /* or connecting */
	ACCEPTED,
	SETTLING, /* in progress in another thread */
};

static unsigned char stages[MAP_FD_MAX + 1]; /* enum stage, atomic */

bool fork_mode(void)
{
	const char *text = env_get("RDMAV_FORK_SAFE");

	return text && atoi(text);
}

static bool is_in_range(int fd)
{
	return fd >= 0 && fd <= MAP_FD_MAX;
}

static enum stage stage_of(int fd)
{
	return is_in_range(fd) ? __atomic_load_n(&stages[fd], __ATOMIC_ACQUIRE) : NOT_OURS;
}

static void set_stage(int fd, enum stage stage)
{
	if (is_in_range(fd))
		__atomic_store_n(&stages[fd], (unsigned char)stage, __ATOMIC_RELEASE);
}

/*
 * Children share their parent's port. Only one at a time may listen on it, so that each gets its
 * own client. The locks are in memory that children inherit, so that no other user can take them; a
 * lock is released when its thread ends.
 */
struct port_lock {
	pthread_mutex_t mutex;
	uint64_t since_ns; /* atomic; 0: free, or taken just now */
};

static struct port_lock *port_locks; /* PORT_LOCKS; NULL: none */

static void make_port_locks(void)
{
	pthread_mutexattr_t attr;
	void *at = mmap(NULL, PORT_LOCKS * sizeof(*port_locks), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return;
	port_locks = at;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	for (int i = 0; i < PORT_LOCKS; i++)
		pthread_mutex_init(&port_locks[i].mutex, &attr);
	pthread_mutexattr_destroy(&attr);
}

void fork_note_socket(int fd)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_port_locks);
	set_stage(fd, port_locks ? SOCKET : NOT_OURS);
}

void fork_note_connect(int fd)
{
	if (stage_of(fd) == SOCKET)
		set_stage(fd, CONNECTED);
}

void fork_note_accept(int listener, int fd)
{
	if (stage_of(listener) == SOCKET)
		set_stage(fd, ACCEPTED);
}

bool fork_has(int fd)
{
	return stage_of(fd) != NOT_OURS;
}

void fork_forget(int fd)
{
	set_stage(fd, NOT_OURS);
}

void fork_alias(int from, int to)
{
	if (to >= 0)
		set_stage(to, stage_of(from));
}

/* --- addresses ----------------------------------------------------------- */

/* Gets a local or peer address, as IPv4 if it is mapped. Return: its size, or 0. */
static socklen_t get_rdma_name(int (*get)(int fd, struct sockaddr *addr, socklen_t *bytes), int fd,
			       union name *ret)
{
	socklen_t bytes = sizeof(*ret);
	union name name;

	if (get(fd, &name.any, &bytes))
		return 0;
	bytes = name_unmap(&name.any, bytes, ret);
	return ret->any.sa_family == AF_INET || ret->any.sa_family == AF_INET6 ? bytes : 0;
}

/* --- both ends ----------------------------------------------------------- */

static bool is_readable(int tcp, int timeout_ms)
{
	struct pollfd fd = { .fd = tcp, .events = POLLIN | POLLRDHUP };

	return real()->poll(&fd, 1, timeout_ms) > 0;
}

/* Puts a connected rsocket behind a TCP descriptor. */
static void become_rdma(int tcp, int rs)
{
	static const int options[][2] = {
		{ IPPROTO_TCP, TCP_NODELAY },
		{ SOL_SOCKET, SO_KEEPALIVE },
	};
	int flags = real()->fcntl(tcp, F_GETFL);
	struct linger linger = { 0 };
	socklen_t linger_bytes = sizeof(linger);

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		int level = options[i][0], name = options[i][1], value;
		socklen_t bytes = sizeof(value);

		if (real()->getsockopt(tcp, level, name, &value, &bytes) == 0)
			rsetsockopt(rs, level, name, &value, sizeof(value));
	}
	/* Children end by _exit(), which loses what is still to be sent; nobody waits for one. */
	if (real()->getsockopt(tcp, SOL_SOCKET, SO_LINGER, &linger, &linger_bytes) == 0) {
		if (!linger.l_onoff)
			linger = (struct linger){ .l_onoff = 1, .l_linger = LINGER_S };
		rsetsockopt(rs, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	}
	rfcntl(rs, F_SETFL, flags & O_NONBLOCK);
	if (map_become(tcp, rs))
		rclose(rs);
}

/* --- the accepting end --------------------------------------------------- */

static bool is_late(uint64_t since_ns)
{
	return since_ns && clock_ns() - since_ns > TURN_MS * CM_NS_PER_MS;
}

static bool try_lock_port(struct port_lock *lock)
{
	int err = pthread_mutex_trylock(&lock->mutex);

	if (err == EOWNERDEAD)
		err = pthread_mutex_consistent(&lock->mutex);
	if (err)
		return false;
	__atomic_store_n(&lock->since_ns, clock_ns(), __ATOMIC_RELEASE);
	return true;
}

static void unlock_port(struct port_lock *lock)
{
	__atomic_store_n(&lock->since_ns, 0, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock->mutex);
}

/* Return: a listener on this port, on all addresses; or -1. */
static int listen_on(union name name, in_port_t port)
{
	socklen_t bytes = name.any.sa_family == AF_INET ? sizeof(name.v4) : sizeof(name.v6);
	int rs = rsocket(name.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (rs < 0)
		return -1;
	name.v4.sin_port = port;
	if (name.any.sa_family == AF_INET)
		name.v4.sin_addr.s_addr = htonl(INADDR_ANY);
	else
		name.v6.sin6_addr = in6addr_any;
	if (rbind(rs, &name.any, bytes) == 0 && rlisten(rs, 1) == 0)
		return rs;
	rclose(rs);
	return -1;
}

static bool is_same_host(const union name *a, const union name *b)
{
	if (a->any.sa_family != b->any.sa_family)
		return false;
	if (a->any.sa_family == AF_INET)
		return a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
	return memcmp(&a->v6.sin6_addr, &b->v6.sin6_addr, sizeof(b->v6.sin6_addr)) == 0;
}

/* A connection to be accepted. */
struct awaited {
	int tcp;
	union name server;
	union name client;
	int own;    /* listener for this client, or -1 */
	int shared; /* listener on the server's port; -1 before this connection's turn */
};

/*
 * Accepts a connection from the client's host, until @tcp has data or is closed.
 *
 * Return: the connection; -ETIMEDOUT; -EPIPE: @tcp has data or is closed; -EIO.
 */
static int accept_until(const struct awaited *it, int tcp, int timeout_ms)
{
	struct pollfd fds[] = { { .fd = it->own, .events = POLLIN },
				{ .fd = it->shared, .events = POLLIN },
				{ .fd = tcp, .events = POLLIN | POLLRDHUP } };
	union name peer;

	for (;;) {
		int n = rpoll(fds, 3, timeout_ms);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -EIO;
		for (int i = 0; n && i < 2; i++) {
			int rs = fds[i].revents ? raccept(fds[i].fd, NULL, NULL) : -1;

			if (rs >= 0 && get_rdma_name(rgetpeername, rs, &peer) &&
			    is_same_host(&it->client, &peer))
				return rs;
			if (rs >= 0)
				rclose(rs);
		}
		if (!n || fds[2].revents)
			return n ? -EPIPE : -ETIMEDOUT;
	}
}

/* Announces a listener to the client: on the port with the number of its TCP port. */
static void listen_apart(struct awaited *it)
{
	static const char said = ANNOUNCED;
	in_port_t port = it->client.v4.sin_port;

	it->own = ntohs(port) < APART_MIN ? -1 : listen_on(it->server, port);
	if (it->own >= 0)
		real()->send(it->tcp, &said, 1, MSG_OOB | MSG_NOSIGNAL);
}

/*
 * Waits for a connection, and for the port. A program that sends first must not wait for its
 * client, which may have given up and waits for data.
 *
 * Return: as accept_until(); -EAGAIN: the port is locked and has a listener; -EBUSY: another
 * connection keeps it.
 */
static int accept_apart(struct awaited *it, struct port_lock *lock)
{
	uint64_t began_ns = clock_ns();
	int rs;

	do {
		bool is_over;

		if (is_readable(it->tcp, 0))
			return -EPIPE;
		if (try_lock_port(lock)) {
			it->shared = listen_on(it->server, it->server.v4.sin_port);
			if (it->shared >= 0)
				return -EAGAIN;
			unlock_port(lock);
			is_over = true;
		} else {
			is_over = is_late(__atomic_load_n(&lock->since_ns, __ATOMIC_ACQUIRE));
		}
		if (is_over && (it->own < 0 || is_late(began_ns)))
			return -EBUSY;
		rs = accept_until(it, it->tcp, RETRY_MS);
	} while (rs == -ETIMEDOUT);
	return rs;
}

/*
 * Sends the zeros. From then on TCP has no data, and a client that does not connect keeps the port:
 * nothing distinguishes its later request there from others of its host. The client closes TCP as
 * soon as it is connected, maybe before raccept() returns.
 */
static int accept_in_turn(const struct awaited *it)
{
	static const char zeros[ZEROS];
	int rs = -EPIPE;

	if (real()->send(it->tcp, zeros, ZEROS, MSG_NOSIGNAL) == ZEROS) {
		rs = accept_until(it, it->tcp, -1);
		if (rs < 0)
			rs = accept_until(it, -1, GIVE_UP_MS);
	}
	if (rs < 0)
		real()->shutdown(it->tcp, SHUT_WR);
	return rs;
}

static bool has_data(int tcp)
{
	char byte;

	return real()->recv(tcp, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

static void settle_accepted(int tcp)
{
	struct awaited it = { .tcp = tcp, .own = -1, .shared = -1 };
	struct port_lock *lock;
	int rs;

	if (!get_rdma_name(real()->getsockname, tcp, &it.server) ||
	    !get_rdma_name(real()->getpeername, tcp, &it.client))
		return;
	lock = &port_locks[ntohs(it.server.v4.sin_port) % PORT_LOCKS];
	listen_apart(&it);
	rs = accept_apart(&it, lock);
	if (rs == -EAGAIN)
		rs = is_readable(tcp, 0) ? -EPIPE : accept_in_turn(&it);
	if (rs == -EPIPE && it.own >= 0 && !has_data(tcp))
		rs = accept_until(&it, -1, GIVE_UP_MS);
	if (rs >= 0)
		become_rdma(tcp, rs);
	if (it.own >= 0)
		rclose(it.own);
	if (it.shared >= 0) {
		rclose(it.shared);
		unlock_port(lock);
	}
}

/* --- the connecting end -------------------------------------------------- */

/* A signal may end what the program called, but must not end this connection. */
static bool connect_despite_signals(int rs, const struct sockaddr *addr, socklen_t bytes)
{
	return rconnect(rs, addr, bytes) == 0 || (errno == EINTR && fallback_await(rs));
}

static bool has_announcement(int tcp)
{
	char got;

	return real()->recv(tcp, &got, 1, MSG_OOB | MSG_PEEK | MSG_DONTWAIT) == 1 &&
	       got == ANNOUNCED;
}

static bool has_zeros(int tcp)
{
	static const char zeros[ZEROS];
	char got[ZEROS];

	return real()->recv(tcp, got, ZEROS, MSG_PEEK | MSG_DONTWAIT) == ZEROS &&
	       memcmp(got, zeros, ZEROS) == 0;
}

static void settle_connected(int tcp)
{
	struct pollfd fd = { .fd = tcp, .events = POLLIN | POLLRDHUP | POLLPRI };
	union name name, own;
	socklen_t bytes;
	bool is_apart;
	int rs;

	if (real()->poll(&fd, 1, GIVE_UP_MS) <= 0)
		return;
	is_apart = has_announcement(tcp) && get_rdma_name(real()->getsockname, tcp, &own);
	if (!is_apart && !has_zeros(tcp))
		return;
	bytes = get_rdma_name(real()->getpeername, tcp, &name);
	if (is_apart)
		name.v4.sin_port = own.v4.sin_port;
	rs = bytes ? rsocket(name.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
	if (rs >= 0 && connect_despite_signals(rs, &name.any, bytes)) {
		become_rdma(tcp, rs);
		return;
	}
	/* A server that does not listen apart any more uses TCP; after the zeros it cannot. */
	if (!is_apart || errno != ECONNREFUSED)
		real()->shutdown(tcp, SHUT_RDWR);
	if (rs >= 0)
		rclose(rs);
}

/* --- first use ----------------------------------------------------------- */

/* Return: false if another thread has done it. */
static bool begin_settling(int fd, enum stage *ret)
{
	for (;;) {
		const struct timespec tick = { .tv_nsec = 1000000 };
		unsigned char stage = (unsigned char)stage_of(fd);

		if (stage == NOT_OURS || stage == SOCKET)
			return false;
		*ret = stage;
		if (stage != SETTLING &&
		    __atomic_compare_exchange_n(&stages[fd], &stage, SETTLING, false,
						__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return true;
		nanosleep(&tick, NULL);
	}
}

/* Not inlined: most calls have nothing to settle. */
__attribute__((noinline)) static void settle(int fd)
{
	static __thread bool is_inside; /* rpoll() below polls the descriptor too */
	int saved = errno;
	enum stage stage;

	if (is_inside || !begin_settling(fd, &stage))
		return;
	is_inside = true;
	if (stage == ACCEPTED)
		settle_accepted(fd);
	else
		settle_connected(fd);
	is_inside = false;
	set_stage(fd, NOT_OURS);
	errno = saved;
}

void fork_settle(int fd)
{
	enum stage stage = stage_of(fd);

	if (stage != NOT_OURS && stage != SOCKET)
		settle(fd);
}

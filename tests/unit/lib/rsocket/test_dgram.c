/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The set-up of a datagram socket's queue pair, over a device in memory that refuses accesses
 * outside of registered memory; and its UDP side.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/udp.h>
#include <rdma/rsocket.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/id/id.h"
#include "lib/rsocket/dgram.h"
#include "lib/rsocket/wait.h"
#include "mad/inbox.h"
#include "tests/unit/lib/rsocket/wire_device.h"
#include "tests/unit/test.h"

static const struct {
	uint32_t sq_size, rq_size, n_slots;
} sizes[] = {
	{ 1, 1, 16 },	 { 16, 16, 16 },   { 17, 400, 17 },
	{ 400, 33, 33 }, { 384, 384, 64 }, { 0, UINT32_MAX, 16 },
};

/* A socket on the fake device; its queue pair is for dgram_qp_make(). */
static struct rsock *open_with(struct dgram_qp *qp)
{
	struct rsock *rs;

	wire_begin();
	ck_assert_int_eq(dgram_open(AF_INET, &rs), 0);
	list_init(&qp->link);
	qp->id = wire_id();
	return rs;
}

static void close_with(struct rsock *rs, struct dgram_qp *qp)
{
	struct rdma_cm_id *id = qp->id;

	rdma_destroy_qp(id);
	qp->id = NULL;
	dgram_qp_free(dgram_of(rs), qp);
	wire_id_free(id);
	rsock_put(rs);
	wire_end();
}

/* Stock's ds_init_ep() makes a list of more buffers than it has memory for. */
TEST_LOOP(ds_init_ep_out_of_bounds_all_slots_are_inside_the_memory, 0,
	  sizeof(sizes) / sizeof(sizes[0]))
{
	struct dgram_qp *qp = calloc(1, sizeof(*qp));
	struct dgram_dest dest = { .qp = qp };
	static uint8_t data[DGRAM_SLOT_BYTES];
	struct iovec iov = { data, DGRAM_SLOT_BYTES - DGRAM_UD_BYTES_MAX };
	const struct rs_transfer out = { .iov = &iov, .n_iov = 1 };
	uint8_t header[DGRAM_UD_BYTES_MAX] = { 0 };
	struct rsock *rs = open_with(qp);

	dgram_of(rs)->sq_size = sizes[_i].sq_size;
	dgram_of(rs)->rq_size = sizes[_i].rq_size;
	/* Every slot is posted for a receive, and then used for a send. */
	ck_assert_int_eq(dgram_qp_make(dgram_of(rs), qp), 0);
	ck_assert_uint_eq(qp->n_slots, sizes[_i].n_slots);
	for (uint32_t i = 0; i < qp->n_slots; i++)
		ck_assert_int_eq(dgram_qp_send(&dest, header, sizeof(header), &out), 0);
	ck_assert_int_ne(dgram_qp_send(&dest, header, sizeof(header), &out), 0);
	close_with(rs, qp);
}
END_TEST

TEST(receive_ends_after_the_time_of_its_option)
{
	const struct timeval soon = { .tv_usec = 10000 };
	int fd = rsocket(AF_INET, SOCK_DGRAM, 0);

	ck_assert_int_eq(rsetsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon)), 0);
	ck_assert_int_eq(rrecv(fd, &(char){ 0 }, 1, 0), -1);
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert_int_eq(rclose(fd), 0);
}
END_TEST

static void *receive_one(void *fd)
{
	return (void *)rrecv(*(int *)fd, &(char){ 0 }, 1, 0);
}

/* As with UDP, which reports that the socket has no peer, and shuts it down. */
TEST(receive_ends_when_the_socket_is_shut_down)
{
	int fd = rsocket(AF_INET, SOCK_DGRAM, 0);
	void *received = &fd;
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, receive_one, &fd), 0);
	ck_assert_int_eq(rshutdown(fd, SHUT_RD), -1);
	ck_assert_int_eq(errno, ENOTCONN);
	ck_assert_int_eq(pthread_join(thread, &received), 0);
	ck_assert_ptr_null(received);
	ck_assert_int_eq(rrecv(fd, &(char){ 0 }, 1, MSG_DONTWAIT), -1);
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert_int_eq(rclose(fd), 0);
}
END_TEST

/* Otherwise the socket would receive nothing more, without an error. */
TEST(a_queue_pair_that_has_failed_is_restarted)
{
	struct dgram_qp *qp = calloc(1, sizeof(*qp));
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	struct dgram_dest dest = { .qp = qp };
	struct rsock *rs = open_with(qp);
	const struct rs_transfer nothing = { 0 };
	uint8_t header[DGRAM_UD_BYTES_MAX] = { 0 };

	ck_assert_int_eq(dgram_qp_make(dgram_of(rs), qp), 0);
	ck_assert_int_eq(dgram_qp_send(&dest, header, sizeof(header), &nothing), 0);
	ck_assert_int_eq(ibv_modify_qp(qp->id->qp, &error, IBV_QP_STATE), 0);
	while (qp->n_spare < qp->n_slots)
		dgram_qp_progress(dgram_of(rs), qp);
	dgram_qp_progress(dgram_of(rs), qp);
	ck_assert(!qp->is_broken);
	ck_assert_uint_eq(qp->n_posted, qp->n_slots);
	ck_assert_uint_eq(qp->n_idle, 0);
	close_with(rs, qp);
}
END_TEST

static bool was_told;

static void note(struct watcher *watch)
{
	(void)watch;
	was_told = true;
}

/* Otherwise a sleeping reader would miss the answer to another thread's first send. */
TEST(a_new_queue_pair_notifies_the_watches_of_the_socket)
{
	struct dgram_qp *qp = calloc(1, sizeof(*qp));
	struct watcher watch = { .changed = note };
	struct rsock *rs = open_with(qp);

	watch_add(rs, &watch);
	ck_assert_int_eq(dgram_qp_make(dgram_of(rs), qp), 0);
	ck_assert(was_told);
	rs->ops->arm(rs, POLLIN);
	ck_assert(qp->armed);
	close_with(rs, qp);
}
END_TEST

/* Completes the first receive with a datagram that has only a header. */
static int poll_received(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	static bool is_over;

	(void)cq;
	(void)n;
	if (is_over)
		return 0;
	is_over = true;
	*wc = (struct ibv_wc){ .byte_len = INBOX_GRH_BYTES + DGRAM_UD_BYTES_MAX };
	return 1;
}

/* Otherwise a connected socket would drop it, and the program could not answer. */
TEST(sender_of_a_link_local_address_is_at_the_interface_of_the_queue_pair)
{
	union addr peer = {
		.in6 = { .sin6_family = AF_INET6, .sin6_port = htons(7), .sin6_scope_id = 3 }
	};
	struct dgram_qp *qp = calloc(1, sizeof(*qp));
	struct rsock *rs = open_with(qp);
	union addr from = { 0 };
	struct rs_transfer in = { .flags = MSG_DONTWAIT,
				  .addr = &from.sa,
				  .addr_bytes = sizeof(from) };

	inet_pton(AF_INET6, "fe80::1", &peer.in6.sin6_addr);
	id_of(qp->id)->path.gid.ifindex = peer.in6.sin6_scope_id;
	dgram_of(rs)->peer = peer;
	dgram_of(rs)->has_peer = true;
	ck_assert_int_eq(dgram_qp_make(dgram_of(rs), qp), 0);
	dgram_ud_encode(&peer, qp->memory + INBOX_GRH_BYTES);
	qp->cq->context->ops.poll_cq = poll_received;
	dgram_qp_progress(dgram_of(rs), qp);
	ck_assert_int_eq(rs->ops->recv(rs, &in), 0);
	ck_assert_mem_eq(&from, &peer, sizeof(peer.in6));
	close_with(rs, qp);
}
END_TEST

/* --- over UDP ------------------------------------------------------------ */

/* A UDP socket of the loopback interface. */
static int listen_udp(union addr *ret)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	socklen_t bytes = sizeof(*ret);

	ck_assert_int_eq(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
	ck_assert_int_eq(getsockname(fd, &ret->sa, &bytes), 0);
	return fd;
}

/* As with any UDP socket, connect() sets only the default receiver. */
TEST(a_connected_socket_can_send_to_other_addresses)
{
	struct ibv_qp pair = { .qp_num = 1 };
	struct rdma_cm_id id = { .qp = &pair };
	struct dgram_qp qp = { .id = &id };
	struct dgram_dest dest = { .qp = &qp };
	union addr peer;
	int peer_fd = listen_udp(&peer), other_fd = listen_udp(&dest.addr);
	struct rsock *rs;
	char got[64];

	qp.local = peer;
	ck_assert_int_eq(dgram_open(AF_INET, &rs), 0);
	ck_assert_int_eq(rs->ops->connect(rs, &peer.sa, sizeof(peer.in4)), 0);
	ck_assert_int_eq(dgram_udp_send(dgram_of(rs), &dest, DGRAM_DATA, NULL, 0), 0);
	ck_assert_int_gt(recv(other_fd, got, sizeof(got), 0), 0);
	ck_assert_int_lt(recv(peer_fd, got, sizeof(got), 0), 0);
	rs->ops->close(rs);
	rsock_put(rs);
	close(peer_fd);
	close(other_fd);
}
END_TEST

/* A call may be in progress while another thread closes the socket. */
TEST(a_closed_socket_is_not_served_again)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	struct rsock *rs;

	ck_assert_int_eq(dgram_open(AF_INET, &rs), 0);
	rs->ops->close(rs);
	ck_assert_int_eq(rs->ops->bind(rs, (struct sockaddr *)&any, sizeof(any)), -EBADF);
	ck_assert_int_eq(dgram_of(rs)->udp.watch.fd, -1);
	rsock_put(rs);
}
END_TEST

#define N_TRIES 500

static struct rsock *unbound;
static pthread_barrier_t together;

static void *connect_first(void *unused)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(9),
				  .sin_addr = { htonl(INADDR_LOOPBACK) } };

	(void)unused;
	pthread_barrier_wait(&together);
	return (void *)(intptr_t)unbound->ops->connect(unbound, (struct sockaddr *)&to, sizeof(to));
}

TEST(two_threads_may_use_a_socket_first)
{
	pthread_t threads[2];
	void *err;

	pthread_barrier_init(&together, NULL, 2);
	for (int try = 0; try < N_TRIES; try++) {
		ck_assert_int_eq(dgram_open(AF_INET, &unbound), 0);
		for (int i = 0; i < 2; i++)
			pthread_create(&threads[i], NULL, connect_first, NULL);
		for (int i = 0; i < 2; i++) {
			pthread_join(threads[i], &err);
			ck_assert_ptr_null(err);
		}
		unbound->ops->close(unbound);
		rsock_put(unbound);
	}
	pthread_barrier_destroy(&together);
}
END_TEST

/* --- other hosts ----------------------------------------------------------- */

#define N_STRANGERS	100
#define RESOLVING_MOST	64
#define N_DESTS_MOST	65536
#define NOT_RESOLVED_IN "127.0.0.99"

int __real_rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
			  enum rdma_port_space ps);
int __wrap_rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
			  enum rdma_port_space ps);
int __real_rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst,
			     int timeout_ms);
int __wrap_rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst,
			     int timeout_ms);
int __real_rdma_destroy_id(struct rdma_cm_id *id);
int __wrap_rdma_destroy_id(struct rdma_cm_id *id);

int __real_dgram_qp_for(struct dgram *d, const union addr *peer, struct dgram_qp **ret);
int __wrap_dgram_qp_for(struct dgram *d, const union addr *peer, struct dgram_qp **ret);

static bool is_besieged; /* all ids remain unresolved */
static unsigned int n_unresolved;

/* An id with a descriptor, as a synchronous one has. */
int __wrap_rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
			  enum rdma_port_space ps)
{
	if (!is_besieged)
		return __real_rdma_create_id(channel, id, context, ps);
	*id = calloc(1, sizeof(**id));
	(*id)->channel = calloc(1, sizeof(*(*id)->channel));
	(*id)->channel->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	__atomic_add_fetch(&n_unresolved, 1, __ATOMIC_RELAXED);
	return 0;
}

int __wrap_rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst,
			     int timeout_ms)
{
	if (!is_besieged)
		return __real_rdma_resolve_addr(id, src, dst, timeout_ms);
	errno = EAGAIN;
	return -1;
}

int __wrap_rdma_destroy_id(struct rdma_cm_id *id)
{
	if (!is_besieged)
		return __real_rdma_destroy_id(id);
	close(id->channel->fd);
	free(id->channel);
	free(id);
	return 0;
}

/* The peer's route is not looked up. */
int __wrap_dgram_qp_for(struct dgram *d, const union addr *peer, struct dgram_qp **ret)
{
	if (!is_besieged)
		return __real_dgram_qp_for(d, peer, ret);
	*ret = container_of(d->qps.next, struct dgram_qp, link);
	return 0;
}

/* A bound socket with a queue pair. */
static struct rsock *open_besieged(struct dgram_qp *qp, union addr *ret)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	static struct ibv_qp pair = { .qp_num = 1 };
	static struct rdma_cm_id id = { .qp = &pair };
	socklen_t bytes = sizeof(*ret);
	struct rsock *rs;

	is_besieged = true;
	n_unresolved = 0;
	ck_assert_int_eq(dgram_open(AF_INET, &rs), 0);
	ck_assert_int_eq(rs->ops->bind(rs, (struct sockaddr *)&any, sizeof(any)), 0);
	ck_assert_int_eq(getsockname(rs->fd, &ret->sa, &bytes), 0);
	*qp = (struct dgram_qp){ .local = *ret, .id = &id };
	list_init(&qp->link);
	list_append(&dgram_of(rs)->qps, &qp->link);
	return rs;
}

static void close_besieged(struct rsock *rs, struct dgram_qp *qp)
{
	rs->ops->close(rs);
	list_remove(&qp->link);
	rsock_put(rs);
	is_besieged = false;
}

/*
 * Sends a datagram from another port, with the location of the sender's queue pair. Return: a
 * descriptor bound to the port.
 */
static int send_located(const union addr *to, const char *where, uint32_t qpn)
{
	struct dgram_udp said = { .op = DGRAM_DATA, .qpn = qpn };
	uint8_t wire[DGRAM_UDP_BYTES_MAX], answer[DGRAM_UDP_BYTES_MAX];
	union addr unused;
	int fd = listen_udp(&unused);
	size_t bytes;

	said.addr.in4.sin_family = AF_INET;
	said.addr.in4.sin_addr.s_addr = inet_addr(where);
	bytes = dgram_udp_encode(&said, wire);
	ck_assert_int_eq(sendto(fd, wire, bytes, 0, &to->sa, sizeof(to->in4)), (ssize_t)bytes);
	fcntl(fd, F_SETFL, 0);
	ck_assert_int_gt(recv(fd, answer, sizeof(answer), 0), 0); /* the request has been handled */
	return fd;
}

static int send_as_stranger(const union addr *to)
{
	return send_located(to, "127.0.0.1", 7);
}

static const struct {
	const char *where;
	uint32_t qpn;
} lies[] = {
	{ "127.0.0.99", 7 }, { "239.1.1.1", 7 }, { "0.0.0.0", 7 },
	{ "127.0.0.1", 0 },  { "127.0.0.1", 1 }, { "127.0.0.1", 0xffffff },
};

/* Otherwise a third host, or a whole group, would get the program's datagrams to the sender. */
TEST_LOOP(sender_can_announce_only_queue_pairs_of_its_host, 0, sizeof(lies) / sizeof(lies[0]))
{
	struct dgram_qp qp;
	union addr addr;
	struct rsock *rs = open_besieged(&qp, &addr);

	close(send_located(&addr, lies[_i].where, lies[_i].qpn));
	close(send_as_stranger(&addr));
	service_lock();
	ck_assert_uint_eq(n_unresolved, 1);
	service_unlock();
	close_besieged(rs, &qp);
}
END_TEST

/* Each would use a descriptor of the program for two seconds. */
TEST(few_unknown_addresses_are_resolved_at_a_time)
{
	struct dgram_qp qp;
	union addr addr;
	struct rsock *rs = open_besieged(&qp, &addr);
	int fds[N_STRANGERS];

	for (int i = 0; i < N_STRANGERS; i++)
		fds[i] = send_as_stranger(&addr);
	service_lock();
	ck_assert_uint_eq(dgram_of(rs)->dests.n_nodes, N_STRANGERS);
	ck_assert_uint_eq(n_unresolved, RESOLVING_MOST);
	service_unlock();
	for (int i = 0; i < N_STRANGERS; i++)
		close(fds[i]);
	close_besieged(rs, &qp);
}
END_TEST

/* Sources of datagrams can be forged easily. */
TEST(latest_peer_replaces_the_least_recent_one)
{
	union addr addr, peer = { .in4 = { .sin_family = AF_INET, .sin_port = htons(9) } };
	struct dgram_dest *first = NULL, *dest;
	struct dgram_qp qp;
	struct rsock *rs = open_besieged(&qp, &addr);

	pthread_mutex_lock(&rs->lock);
	for (uint32_t i = 1; i <= N_DESTS_MOST + 1; i++) {
		peer.in4.sin_addr.s_addr = htonl(INADDR_LOOPBACK + i);
		ck_assert_int_eq(dgram_dest_get(dgram_of(rs), &peer, &dest), 0);
		first = i == 1 ? dest : first;
		peer.in4.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
		ck_assert_int_eq(dgram_dest_get(dgram_of(rs), &peer, &dest), 0);
		ck_assert(dest == first);
	}
	ck_assert_uint_eq(dgram_of(rs)->dests.n_nodes, N_DESTS_MOST);
	pthread_mutex_unlock(&rs->lock);
	close_besieged(rs, &qp);
}
END_TEST

TEST(colliding_peers_are_unpredictable)
{
	union addr addr, peer = { .in4 = { .sin_family = AF_INET, .sin_port = htons(9) } };
	struct dgram_dest *dest[2];
	struct dgram_qp qp[2];
	struct rsock *rs[2];

	for (int i = 0; i < 2; i++) {
		rs[i] = open_besieged(&qp[i], &addr);
		ck_assert_int_eq(dgram_dest_get(dgram_of(rs[i]), &peer, &dest[i]), 0);
	}
	ck_assert_uint_ne(dest[0]->node.hash, dest[1]->node.hash);
	for (int i = 0; i < 2; i++)
		close_besieged(rs[i], &qp[i]);
}
END_TEST

/* --- a full buffer of the UDP socket ---------------------------------------- */

#define LARGE	  30000 /* more than the least buffer */
#define TRIES_MAX 1000

ssize_t __real_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags);

static int full_fd = -1;
static unsigned int n_tries; /* atomic */

/* The kernel adds to a datagram that is kept back, whatever room there is. */
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct pollfd udp = { .fd = fd, .events = POLLOUT };

	if (fd != full_fd || poll(&udp, 1, 0) == 1)
		return __real_sendmsg(fd, msg, flags);
	ck_assert_uint_lt(__atomic_add_fetch(&n_tries, 1, __ATOMIC_RELAXED), TRIES_MAX);
	errno = EAGAIN;
	return -1;
}

static void keep_back(int fd, int on)
{
	ck_assert_int_eq(setsockopt(fd, IPPROTO_UDP, UDP_CORK, &on, sizeof(on)), 0);
}

static const struct sockaddr_in nobody = { .sin_family = AF_INET,
					   .sin_port = 0x0900,
					   .sin_addr = { 0x0100007f } };

/* A socket whose buffer is full until keep_back() is off. */
static struct rsock *open_full(struct dgram_qp *qp)
{
	static const char large[LARGE];
	const struct sockaddr *to = (const struct sockaddr *)&nobody;
	struct rsock *rs = open_with(qp);

	ck_assert_int_eq(dgram_qp_make(dgram_of(rs), qp), 0);
	ck_assert_int_eq(rs->ops->setopt(rs, SOL_SOCKET, SO_SNDBUF, &(int){ 1 }, sizeof(int)), 0);
	keep_back(rs->fd, 1);
	ck_assert_int_eq(sendto(rs->fd, large, LARGE, 0, to, sizeof(nobody)), LARGE);
	is_besieged = true;
	full_fd = rs->fd;
	n_tries = 0;
	return rs;
}

static void close_full(struct rsock *rs, struct dgram_qp *qp)
{
	full_fd = -1;
	rs->ops->close(rs);
	is_besieged = false;
	close_with(rs, qp);
}

static ssize_t send_empty(struct rsock *rs, int flags)
{
	const struct rs_transfer out = { .flags = flags,
					 .addr = (struct sockaddr *)(uintptr_t)&nobody,
					 .addr_bytes = sizeof(nobody) };

	return rs->ops->send(rs, &out);
}

/* It has found the socket served, and then waited for the lock. */
TEST(a_send_during_a_close_makes_no_peer)
{
	struct dgram_qp qp;
	union addr addr;
	struct rsock *rs = open_besieged(&qp, &addr);

	rs->closed = true;
	ck_assert_int_eq(send_empty(rs, 0), -EBADF);
	ck_assert_uint_eq(dgram_of(rs)->dests.n_nodes, 0);
	close_besieged(rs, &qp);
}
END_TEST

TEST(a_send_that_waits_for_a_full_buffer_ends_after_the_time_of_its_option)
{
	const struct timeval soon = { .tv_usec = 10000 };
	struct dgram_qp *qp = calloc(1, sizeof(*qp));
	struct rsock *rs = open_full(qp);

	ck_assert_int_eq(rs->ops->setopt(rs, SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof(soon)), 0);
	ck_assert_int_eq(send_empty(rs, 0), -EAGAIN);
	close_full(rs, qp);
}
END_TEST

static void *empty_buffer(void *rs)
{
	while (!__atomic_load_n(&n_tries, __ATOMIC_RELAXED))
		sched_yield();
	keep_back(((struct rsock *)rs)->fd, 0);
	return NULL;
}

TEST(a_send_that_waits_for_a_full_buffer_goes_on_when_it_has_room)
{
	struct dgram_qp *qp = calloc(1, sizeof(*qp));
	struct rsock *rs = open_full(qp);
	pthread_t thread;

	pthread_create(&thread, NULL, empty_buffer, rs);
	ck_assert_int_eq(send_empty(rs, 0), 0);
	pthread_join(thread, NULL);
	close_full(rs, qp);
}
END_TEST

TEST(a_socket_with_a_full_buffer_is_not_ready_to_send)
{
	struct dgram_qp *qp = calloc(1, sizeof(*qp));
	struct rsock *rs = open_full(qp);

	ck_assert_int_eq(send_empty(rs, MSG_DONTWAIT), -EAGAIN);
	ck_assert_int_eq(rs->ops->events(rs, POLLOUT), 0);
	keep_back(rs->fd, 0);
	ck_assert_int_eq(rs->ops->events(rs, POLLOUT), POLLOUT);
	close_full(rs, qp);
}
END_TEST

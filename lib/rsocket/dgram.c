/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations of datagram sockets: see dgram.h. */
#include "lib/rsocket/dgram.h"

#include <errno.h>
#include <rdma/rsocket.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>

#include "base/fd.h"
#include "lib/api.h"
#include "lib/rsocket/settings.h"
#include "lib/rsocket/wait.h"

#define DESTS_MIN 16

static const struct rsock_ops dgram_ops;

/* --- names --------------------------------------------------------------- */

/*
 * Binds to any port if unbound, because queue pairs have the same port number. The lock is held, so
 * that only one of two threads that send first binds.
 */
static int bind_to_any(struct dgram *d)
{
	union addr local;
	socklen_t bytes = sizeof(local);

	if (getsockname(d->base.fd, &local.sa, &bytes))
		return -errno;
	if (addr_port(&local))
		return 0;
	addr_set_any(&local, (sa_family_t)d->domain);
	return bind(d->base.fd, &local.sa, addr_bytes(&local.sa)) ? -errno : 0;
}

static int start_service(struct dgram *d)
{
	int err = 0;

	service_lock();
	pthread_mutex_lock(&d->base.lock);
	if (d->base.closed)
		err = -EBADF;
	else if (d->udp.watch.fd < 0)
		err = service_add(&d->udp, d->base.fd);
	pthread_mutex_unlock(&d->base.lock);
	service_unlock();
	return err;
}

static int dgram_bind(struct rsock *rs, const struct sockaddr *addr, socklen_t bytes)
{
	if (bind(rs->fd, addr, bytes))
		return -errno;
	return start_service(dgram_of(rs));
}

/* To be called before the first datagram is sent. */
static int ensure_served(struct dgram *d)
{
	bool is_served;
	int err;

	pthread_mutex_lock(&d->base.lock);
	err = bind_to_any(d);
	is_served = d->udp.watch.fd >= 0;
	pthread_mutex_unlock(&d->base.lock);
	return err || is_served ? err : start_service(d);
}

static int dgram_connect(struct rsock *rs, const struct sockaddr *addr, socklen_t bytes)
{
	struct dgram *d = dgram_of(rs);
	union addr peer = { 0 };
	int err = ensure_served(d);

	if (!err && addr && addr->sa_family != AF_UNSPEC)
		err = bytes < addr_bytes(addr) ? -EINVAL : addr_copy(addr, &peer);
	if (!err && connect(rs->fd, addr, bytes))
		err = -errno;
	if (err)
		return err;
	pthread_mutex_lock(&rs->lock);
	d->peer = peer;
	d->has_peer = peer.sa.sa_family != AF_UNSPEC;
	pthread_mutex_unlock(&rs->lock);
	return 0;
}

static int dgram_sockname(struct rsock *rs, struct sockaddr_storage *ret)
{
	socklen_t bytes = sizeof(*ret);

	return getsockname(rs->fd, (struct sockaddr *)ret, &bytes) ? -errno : 0;
}

static int dgram_peername(struct rsock *rs, struct sockaddr_storage *ret)
{
	socklen_t bytes = sizeof(*ret);

	return getpeername(rs->fd, (struct sockaddr *)ret, &bytes) ? -errno : 0;
}

/*
 * The UDP socket's reading end stays open: the service receives responses with it, and epoll would
 * report it as readable for ever. As with UDP, the call shuts down a socket without a peer, too,
 * but returns ENOTCONN.
 */
static int dgram_shutdown(struct rsock *rs, int how)
{
	struct dgram *d = dgram_of(rs);

	if (how < SHUT_RD || how > SHUT_RDWR)
		return -EINVAL;
	if (how != SHUT_WR) {
		pthread_mutex_lock(&rs->lock);
		d->has_ended = true;
		watch_notify(rs);
		pthread_mutex_unlock(&rs->lock);
	}
	if (how != SHUT_RD && shutdown(rs->fd, SHUT_WR))
		return -errno;
	return d->has_peer ? 0 : -ENOTCONN;
}

/* --- options ------------------------------------------------------------- */

static uint32_t *size_option(struct dgram *d, int name)
{
	switch (name) {
	case RDMA_SQSIZE:
		return &d->sq_size;
	case RDMA_RQSIZE:
		return &d->rq_size;
	case RDMA_INLINE:
		return &d->inline_size;
	}
	return NULL;
}

/* The UDP socket does not wait, so it is done here. */
static int set_udp_option(struct dgram *d, int level, int name, const void *value, socklen_t bytes)
{
	int fd = d->base.fd;

	if (setsockopt(fd, level, name, value, bytes))
		return -errno;
	pthread_mutex_lock(&d->base.lock);
	getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &d->recv_timeout,
		   &(socklen_t){ sizeof(d->recv_timeout) });
	getsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &d->send_timeout,
		   &(socklen_t){ sizeof(d->send_timeout) });
	pthread_mutex_unlock(&d->base.lock);
	return 0;
}

static int dgram_setopt(struct rsock *rs, int level, int name, const void *value, socklen_t bytes)
{
	struct dgram *d = dgram_of(rs);
	uint32_t *size = size_option(d, name);
	int number;

	if (level != SOL_RDMA)
		return set_udp_option(d, level, name, value, bytes);
	if (!size)
		return -ENOTSUP;
	if (bytes < sizeof(number) || !list_is_empty(&d->qps))
		return -EINVAL;
	memcpy(&number, value, sizeof(number));
	if (number < 0)
		return -EINVAL;
	*size = (uint32_t)number;
	return 0;
}

static int dgram_getopt(struct rsock *rs, int level, int name, void *value, socklen_t *bytes)
{
	uint32_t *size = size_option(dgram_of(rs), name);

	if (level != SOL_RDMA)
		return getsockopt(rs->fd, level, name, value, bytes) ? -errno : 0;
	if (!size)
		return -ENOTSUP;
	if (*bytes < sizeof(*size))
		return -EINVAL;
	memcpy(value, size, sizeof(*size));
	*bytes = sizeof(*size);
	return 0;
}

/* --- sending ------------------------------------------------------------- */

/* The lock is held. */
static int send_datagram(struct dgram *d, const struct rs_transfer *out)
{
	size_t bytes, payload = rs_transfer_bytes(out);
	uint8_t header[DGRAM_UD_BYTES_MAX];
	struct dgram_dest *dest;
	union addr to = d->peer;
	int err = 0;

	/* Another thread's rclose() goes through the peers without the lock. */
	if (d->base.closed)
		return -EBADF;
	if (!out->addr && !d->has_peer)
		return -EDESTADDRREQ;
	if (out->addr)
		err = out->addr_bytes < addr_bytes(out->addr) ? -EINVAL : addr_copy(out->addr, &to);
	if (!err)
		err = dgram_dest_get(d, &to, &dest);
	if (err)
		return err;
	bytes = dgram_ud_encode(&dest->qp->local, header);
	if (payload > DGRAM_SLOT_BYTES - bytes)
		return -EMSGSIZE;
	if (!dest->ah || dest->qp->is_broken || payload + bytes > dest->qp->mtu)
		return dgram_udp_send(d, dest, DGRAM_DATA, out->iov, out->n_iov);
	dgram_qp_progress(d, dest->qp);
	return dgram_qp_send(dest, header, bytes, out);
}

static bool has_room(struct rsock *rs)
{
	struct pollfd udp = { .fd = rs->fd, .events = POLLOUT };
	struct dgram *d = dgram_of(rs);
	struct dgram_qp *qp;

	d->is_udp_full = d->is_udp_full && poll(&udp, 1, 0) == 0;
	if (d->is_udp_full)
		return false;
	list_for_each_entry (qp, &d->qps, link)
		if (!qp->n_spare)
			return false;
	return true;
}

static ssize_t dgram_send(struct rsock *rs, const struct rs_transfer *out)
{
	const struct cm_time deadline = wait_deadline_of(&dgram_of(rs)->send_timeout);
	int err = ensure_served(dgram_of(rs));

	while (!err) {
		pthread_mutex_lock(&rs->lock);
		err = send_datagram(dgram_of(rs), out);
		pthread_mutex_unlock(&rs->lock);
		if (!err)
			return (ssize_t)rs_transfer_bytes(out);
		if (err != -EAGAIN || rsock_is_nonblocking(rs, out->flags))
			break;
		err = wait_until_ready(rs, POLLOUT, has_room, deadline);
	}
	return err;
}

/* --- receiving ----------------------------------------------------------- */

bool dgram_deliver(struct dgram *d, struct dgram_packet *packet)
{
	if (d->has_peer && !dgram_is_same_peer(&d->peer, &packet->from))
		return false;
	list_append(&d->packets, &packet->link);
	watch_notify(&d->base);
	return true;
}

static bool has_packet(struct rsock *rs)
{
	return !list_is_empty(&dgram_of(rs)->packets);
}

static bool recv_would_not_wait(struct rsock *rs)
{
	return has_packet(rs) || dgram_of(rs)->error || dgram_of(rs)->has_ended;
}

/* Return: the bytes copied; the rest of the datagram is lost, as with UDP. */
static size_t copy_packet(const struct dgram_packet *packet, struct rs_transfer *in)
{
	struct rs_cursor to = { in->iov, 0 };
	size_t room = rs_transfer_bytes(in);
	uint32_t bytes = room < packet->bytes ? (uint32_t)room : packet->bytes;

	rs_scatter(&to, packet->data, bytes);
	if (in->addr) {
		socklen_t whole = addr_bytes(&packet->from.sa);

		memcpy(in->addr, &packet->from, in->addr_bytes < whole ? in->addr_bytes : whole);
		in->addr_bytes = whole;
	}
	return bytes;
}

/* Return: bytes, or -EAGAIN. */
static ssize_t recv_packet(struct dgram *d, struct rs_transfer *in)
{
	struct dgram_packet *packet;
	ssize_t bytes;

	pthread_mutex_lock(&d->base.lock);
	if (!has_packet(&d->base))
		d->base.ops->progress(&d->base);
	bytes = d->error ? d->error : -EAGAIN;
	if (has_packet(&d->base)) {
		packet = container_of(d->packets.next, struct dgram_packet, link);
		bytes = (ssize_t)copy_packet(packet, in);
		if (!(in->flags & MSG_PEEK))
			dgram_qp_read(d, packet);
	}
	pthread_mutex_unlock(&d->base.lock);
	return bytes;
}

static ssize_t dgram_recv(struct rsock *rs, struct rs_transfer *in)
{
	const struct cm_time deadline = wait_deadline_of(&dgram_of(rs)->recv_timeout);
	int err = 0, cancel_state = api_enter();
	ssize_t bytes = recv_packet(dgram_of(rs), in);

	while (bytes == -EAGAIN && !err && !rsock_is_nonblocking(rs, in->flags)) {
		err = wait_until_ready(rs, POLLIN, recv_would_not_wait, deadline);
		if (!err)
			bytes = recv_packet(dgram_of(rs), in);
		if (bytes == -EAGAIN && dgram_of(rs)->has_ended)
			bytes = 0;
	}
	api_leave(cancel_state);
	return err ? err : bytes;
}

/* --- readiness ----------------------------------------------------------- */

static void dgram_progress(struct rsock *rs)
{
	struct dgram_qp *qp;

	list_for_each_entry (qp, &dgram_of(rs)->qps, link)
		dgram_qp_progress(dgram_of(rs), qp);
}

static short dgram_events(struct rsock *rs, short wanted)
{
	short events = 0;

	if (recv_would_not_wait(rs))
		events |= POLLIN | POLLRDNORM;
	if (has_room(rs))
		events |= POLLOUT | POLLWRNORM;
	return (events & wanted) | (dgram_of(rs)->error ? POLLERR : 0);
}

static int dgram_arm(struct rsock *rs, short wanted)
{
	struct epoll_event event = { .events = EPOLLOUT };
	struct dgram *d = dgram_of(rs);
	struct dgram_qp *qp;

	if (wanted & (POLLOUT | POLLWRNORM) && d->is_udp_full && !d->awaits_udp)
		d->awaits_udp = !epoll_ctl(d->epoll_fd, EPOLL_CTL_ADD, rs->fd, &event);
	list_for_each_entry (qp, &d->qps, link)
		if (!qp->armed && ibv_req_notify_cq(qp->cq, 0) == 0)
			qp->armed = true;
	return d->epoll_fd;
}

static void dgram_disarm(struct rsock *rs)
{
	struct dgram *d = dgram_of(rs);
	bool was_armed = d->awaits_udp;
	struct dgram_qp *qp;

	if (d->awaits_udp)
		epoll_ctl(d->epoll_fd, EPOLL_CTL_DEL, rs->fd, NULL);
	d->awaits_udp = false;
	list_for_each_entry (qp, &d->qps, link) {
		struct ibv_cq *cq;
		void *context;

		if (ibv_get_cq_event(qp->channel, &cq, &context))
			continue;
		ibv_ack_cq_events(cq, 1);
		qp->armed = false;
		was_armed = true;
	}
	if (was_armed)
		watch_notify(rs);
}

/* --- lifetime ------------------------------------------------------------- */

static void dgram_close(struct rsock *rs)
{
	struct dgram *d = dgram_of(rs);

	service_lock();
	/* start_service() checks this under both locks. */
	pthread_mutex_lock(&rs->lock);
	rs->closed = true;
	service_remove(&d->udp);
	watch_notify(rs);
	pthread_mutex_unlock(&rs->lock);
	dgram_dest_stop_all(d);
	service_unlock();
}

static void dgram_end(struct rsock *rs)
{
	struct dgram *d = dgram_of(rs);

	dgram_dest_free_all(d);
	while (!list_is_empty(&d->qps))
		dgram_qp_free(d, container_of(d->qps.next, struct dgram_qp, link));
	while (!list_is_empty(&d->packets))
		dgram_qp_read(d, container_of(d->packets.next, struct dgram_packet, link));
	fd_close(&d->epoll_fd);
	fd_close(&rs->fd);
}

int dgram_open(int domain, struct rsock **ret)
{
	struct dgram *d;
	int err = 0;

	if (domain != AF_INET && domain != AF_INET6)
		return -ENOTSUP;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	rsock_init(&d->base, &dgram_ops);
	d->domain = domain;
	d->sq_size = settings()->sq_size;
	d->rq_size = settings()->rq_size;
	d->inline_size = settings()->inline_size;
	list_init(&d->qps);
	list_init(&d->packets);
	list_init(&d->recent);
	serviced_init(&d->udp, dgram_udp_readable, NULL);
	d->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	d->base.fd = socket(domain, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_UDP);
	if (d->epoll_fd < 0 || d->base.fd < 0 ||
	    getrandom(&d->secret, sizeof(d->secret), 0) != sizeof(d->secret))
		err = -errno;
	if (!err)
		err = hash_init(&d->dests, DESTS_MIN);
	if (err)
		rsock_put(&d->base);
	else
		*ret = &d->base;
	return err;
}

static const struct rsock_ops dgram_ops = {
	.bind = dgram_bind,
	.connect = dgram_connect,
	.shutdown = dgram_shutdown,
	.send = dgram_send,
	.recv = dgram_recv,
	.sockname = dgram_sockname,
	.peername = dgram_peername,
	.setopt = dgram_setopt,
	.getopt = dgram_getopt,
	.progress = dgram_progress,
	.events = dgram_events,
	.arm = dgram_arm,
	.disarm = dgram_disarm,
	.close = dgram_close,
	.end = dgram_end,
};

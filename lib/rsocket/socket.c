/* SPDX-License-Identifier: BSD-2-Clause */
/* Life cycle of a stream socket: creation for an id, bind, shutdown, close; and its readiness. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>

#include "lib/id/id.h"
#include "lib/net/addr.h"
#include "lib/rsocket/connecting.h"
#include "lib/rsocket/iomap.h"
#include "lib/rsocket/leave.h"
#include "lib/rsocket/memory.h"
#include "lib/rsocket/roster.h"
#include "lib/rsocket/settings.h"
#include "lib/rsocket/wait.h"

/* --- making -------------------------------------------------------------- */

int stream_new(struct rdma_cm_id *id, int domain, const struct stream *like, struct stream **ret)
{
	struct stream *s = calloc(1, sizeof(*s));
	const struct settings *set = settings();

	if (!s)
		return -ENOMEM;
	rsock_init(&s->base, &stream_ops);
	s->base.fd = id->channel->fd;
	s->domain = domain;
	s->id = id;
	s->state = STREAM_IDLE;
	s->opening = &connect_opening;
	s->sizes = (struct stream_sizes){ .sq_size = set->sq_size,
					  .rq_size = set->rq_size,
					  .inline_size = set->inline_size,
					  .send_bytes = set->send_bytes,
					  .recv_bytes = set->recv_bytes,
					  .iomap_size = set->iomap_size };
	if (like) {
		s->sizes = like->sizes;
		s->options = like->options;
	}
	token_init(&s->send_token);
	token_init(&s->recv_token);
	serviced_init(&s->cm, connect_readable, connect_expired);
	keepalive_init(s);
	leave_init(s);
	list_init(&s->sibling);
	list_init(&s->pending);
	list_init(&s->ready);
	list_init(&s->iomaps);
	*ret = s;
	return 0;
}

int stream_open(int domain, struct rsock **ret)
{
	struct rdma_cm_id *id;
	struct stream *s;
	int err;

	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP))
		return -errno;
	err = fcntl(id->channel->fd, F_SETFL, O_NONBLOCK) ? -errno : 0;
	if (!err)
		err = stream_new(id, domain, NULL, &s);
	if (err)
		rdma_destroy_id(id);
	else
		*ret = &s->base;
	return err;
}

static void stream_end(struct rsock *rs)
{
	struct stream *s = stream_of(rs);

	iomap_free_all(s);
	memory_free(s);
	rdma_destroy_id(s->id);
	token_fini(&s->send_token);
	token_fini(&s->recv_token);
	free(s->route);
	roster_remove(s->row);
}

/* --- names --------------------------------------------------------------- */

static int stream_bind(struct rsock *rs, const struct sockaddr *addr, socklen_t bytes)
{
	struct stream *s = stream_of(rs);
	int err = 0;

	if (!addr || bytes < addr_bytes(addr))
		return -EINVAL;
	pthread_mutex_lock(&rs->lock);
	if (s->state != STREAM_IDLE)
		err = -EINVAL;
	else if (rdma_bind_addr(s->id, (struct sockaddr *)(uintptr_t)addr))
		err = -errno;
	else
		err = stream_apply(s, STREAM_EV_BIND, 0);
	pthread_mutex_unlock(&rs->lock);
	return err;
}

static int copy_name(const struct sockaddr *from, struct sockaddr_storage *ret)
{
	memset(ret, 0, sizeof(*ret));
	memcpy(ret, from, addr_bytes(from));
	return 0;
}

static int stream_sockname(struct rsock *rs, struct sockaddr_storage *ret)
{
	struct stream *s = stream_of(rs);

	copy_name(rdma_get_local_addr(s->id), ret);
	if (!ret->ss_family)
		ret->ss_family = (sa_family_t)s->domain;
	return 0;
}

static int stream_peername(struct rsock *rs, struct sockaddr_storage *ret)
{
	const struct stream *s = stream_of(rs);
	const struct sockaddr *peer = rdma_get_peer_addr(s->id);
	bool is_any = s->state == STREAM_BOUND || s->state == STREAM_LISTENING;

	return peer->sa_family && !is_any ? copy_name(peer, ret) : -ENOTCONN;
}

/* --- the end ------------------------------------------------------------- */

static int stream_shutdown(struct rsock *rs, int how)
{
	static const enum stream_event events[] = {
		[SHUT_RD] = STREAM_EV_SHUT_RD,
		[SHUT_WR] = STREAM_EV_SHUT_WR,
		[SHUT_RDWR] = STREAM_EV_SHUT_RDWR,
	};
	struct stream *s = stream_of(rs);
	bool has_listened;
	int err;

	if (how < SHUT_RD || how > SHUT_RDWR)
		return -EINVAL;
	service_lock();
	pthread_mutex_lock(&rs->lock);
	stream_progress(rs);
	err = stream_apply(s, events[how], 0) == -EINVAL ? -ENOTCONN : 0;
	has_listened = !err && s->state == STREAM_BOUND;
	pthread_mutex_unlock(&rs->lock);
	if (has_listened)
		listen_end(s);
	service_unlock();
	return err || how == SHUT_RD ? err : leave_begin(s, -1);
}

/*
 * The service is stopped last, because it detects that the peer is gone, which ends the wait. If
 * the service thread still waits, leave.c stops it.
 */
static void stream_close(struct rsock *rs)
{
	struct stream *s = stream_of(rs);
	int linger_s = s->options.linger.l_linger;
	bool lingers = s->options.linger.l_onoff && linger_s >= 0 && linger_s <= LEAVE_MS / 1000;

	pthread_mutex_lock(&rs->lock);
	stream_progress(rs);
	/* A thread in raccept() gets EBADF. */
	if (s->state != STREAM_LISTENING)
		stream_apply(s, STREAM_EV_SHUT_RDWR, 0);
	pthread_mutex_unlock(&rs->lock);
	if (s->memory.has_qp)
		leave_begin(s, lingers ? linger_s * 1000 : -1);
	service_lock();
	/* Calls in progress are not served again: each checks the flag under both locks. */
	pthread_mutex_lock(&rs->lock);
	rs->closed = true;
	watch_notify(rs);
	pthread_mutex_unlock(&rs->lock);
	if (leave_is_over(s))
		service_remove(&s->cm);
	service_remove(&s->keepalive);
	listen_end(s);
	service_unlock();
}

/* --- readiness ----------------------------------------------------------- */

/* For a socket that is not connected. */
static short unconnected_events(const struct stream *s, short wanted)
{
	switch (s->state) {
	case STREAM_LISTENING:
		return list_is_empty(&s->ready) ? 0 : POLLIN;
	case STREAM_FAILED:
		/* As in stock; rstream prints it. */
		errno = s->last_error;
		return POLLERR | POLLIN | POLLOUT;
	case STREAM_IDLE:
	case STREAM_BOUND:
		return POLLHUP | POLLOUT;
	case STREAM_ADDR:
	case STREAM_ROUTE:
	case STREAM_CONNECTING:
	case STREAM_ACCEPTING:
		return 0;
	case STREAM_OPEN:
	case STREAM_READ_ONLY:
	case STREAM_WRITE_ONLY:
	case STREAM_DISCONNECTED:
	case STREAM_BROKEN:
	case STREAM_N_STATES:
		break;
	}
	return wanted;
}

static short stream_events(struct rsock *rs, short wanted)
{
	struct stream *s = stream_of(rs);
	short events = 0;

	if (stream_can_send_messages(s->state) || s->state == STREAM_DISCONNECTED ||
	    s->state == STREAM_BROKEN) {
		if (stream_may_recv(s))
			events |= POLLIN;
		if (stream_may_send(s) || !stream_can_write(s->state))
			events |= POLLOUT;
		if (!stream_can_read(s->state))
			events |= POLLRDHUP;
		/* Not while there is data: rstream takes a hang-up as the end of the data. */
		if (!stream_can_send_messages(s->state) && !s->in.unread)
			events |= POLLHUP;
		if (s->state == STREAM_BROKEN)
			events |= POLLERR;
	} else {
		events = unconnected_events(s, wanted);
	}
	if (events & POLLIN)
		events |= POLLRDNORM;
	if (events & POLLOUT)
		events |= POLLWRNORM;
	return events & (wanted | POLLERR | POLLHUP);
}

/* Send completions need not wake up a reader, unless an owed message waits for them. */
static int stream_arm(struct rsock *rs, short wanted)
{
	struct stream *s = stream_of(rs);

	if (stream_is_opening(s->state))
		return -1;
	return memory_arm(s, wanted & (POLLOUT | POLLWRNORM) || stream_owes(s));
}

static void stream_disarm(struct rsock *rs)
{
	if (memory_disarm(stream_of(rs)))
		watch_notify(rs);
}

const struct rsock_ops stream_ops = {
	.bind = stream_bind,
	.listen = listen_start,
	.accept = listen_accept,
	.connect = connect_start,
	.shutdown = stream_shutdown,
	.send = stream_send,
	.recv = stream_recv,
	.sockname = stream_sockname,
	.peername = stream_peername,
	.setopt = stream_setopt,
	.getopt = stream_getopt,
	.progress = stream_progress,
	.events = stream_events,
	.arm = stream_arm,
	.disarm = stream_disarm,
	.close = stream_close,
	.end = stream_end,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Listening stream sockets. The service thread accepts requests as they arrive, independently of
 * raccept(); connected sockets are queued for raccept().
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "lib/conn/listen.h"
#include "lib/net/addr.h"
#include "lib/rsocket/connecting.h"
#include "lib/rsocket/memory.h"
#include "lib/rsocket/wait.h"

#define BACKLOG_MAX	1024
#define PENDING_MAX	256
#define PENDING_OF_HOST 64
#define INHERITS_SINCE	64 /* rdma-core: an accepted socket has the listener's O_NONBLOCK */

/* --- requests ------------------------------------------------------------ */

static struct rs_hello hello_of_peer(const struct stream *child)
{
	const struct rdma_conn_param *param = &child->id->event->param.conn;
	size_t offset = connect_private_offset(child->domain);
	struct rs_hello hello = { 0 };

	if (param->private_data && param->private_data_len >= offset + RS_HELLO_BYTES)
		wire_decode(&rs_hello_layout, (const uint8_t *)param->private_data + offset,
			    &hello);
	return hello;
}

static int prepare_child(struct stream *child)
{
	struct rs_hello hello = hello_of_peer(child);
	int err = hello.version == RS_VERSION ? 0 : -ENOTSUP;

	pthread_mutex_lock(&child->base.lock);
	if (!err)
		err = memory_make(child);
	if (!err)
		err = memory_learn(child, &hello);
	if (!err)
		err = stream_apply(child, STREAM_EV_ACCEPT, 0);
	pthread_mutex_unlock(&child->base.lock);
	return err;
}

/* Sends REP; the peer's hello is in its request. */
static int accept_request(struct stream *child)
{
	struct rdma_conn_param param = child->id->event->param.conn;
	uint8_t data[RS_HELLO_BYTES] = { 0 };
	struct rs_hello ours;
	int err = prepare_child(child);

	if (err)
		return err;
	ours = memory_hello(child);
	wire_encode(&rs_hello_layout, &ours, data);
	param.private_data = data;
	param.private_data_len = sizeof(data);
	return rdma_accept(child->id, &param) && errno != EAGAIN ? -errno : 0;
}

static void drop_child(struct stream *child)
{
	service_remove(&child->cm);
	service_remove(&child->keepalive);
	child->listener = NULL;
	list_remove(&child->sibling);
	rsock_put(&child->base);
}

/*
 * The peer names its address, and a device may look for the link address of one that does not exist
 * for a second.
 */
static void run_accepting(struct work *work)
{
	struct stream *child = container_of(work, struct stream, accepting);
	int err = 0;

	service_lock();
	if (child->listener) {
		service_unlock();
		err = accept_request(child);
		service_lock();
	}
	if (child->listener && !err)
		err = service_add(&child->cm, child->id->channel->fd);
	if (child->listener && err) {
		rdma_reject(child->id, NULL, 0);
		drop_child(child);
	}
	service_unlock();
	rsock_put(&child->base);
}

/*
 * A request takes descriptors, registered memory and a queue pair until the peer's RTU, which may
 * never come. So a host that has many of them has to try again, and when all have too many, the
 * oldest is given up: the RTU of an honest peer arrives long before.
 */
static bool make_room(struct stream *listener, struct rdma_cm_id *id)
{
	union addr from = addr_load(&id->route.addr.dst_storage);
	unsigned int n = 0, n_of_host = 0;
	struct stream *child;

	list_for_each_entry (child, &listener->pending, sibling) {
		union addr peer = addr_load(&child->id->route.addr.dst_storage);

		n++;
		n_of_host += addr_same_ip(&from, &peer);
	}
	if (n_of_host >= PENDING_OF_HOST)
		return false;
	if (n >= PENDING_MAX)
		drop_child(container_of(listener->pending.next, struct stream, sibling));
	return true;
}

static void handle_request(struct stream *listener, struct rdma_cm_id *id)
{
	struct stream *child;

	if (!make_room(listener, id)) {
		listen_forget(id_of(id));
		return;
	}
	if (listener->state != STREAM_LISTENING || fcntl(id->channel->fd, F_SETFL, O_NONBLOCK) ||
	    stream_new(id, listener->domain, listener, &child)) {
		rdma_reject(id, NULL, 0);
		rdma_destroy_id(id);
		return;
	}
	child->listener = listener;
	list_append(&listener->pending, &child->sibling);
	child->accepting.run = run_accepting;
	rsock_get(&child->base);
	service_work(&child->accepting);
}

static void listener_readable(struct serviced *serviced)
{
	struct stream *listener = container_of(serviced, struct stream, cm);
	struct rdma_cm_id *id;
	bool is_full;

	pthread_mutex_lock(&listener->base.lock);
	is_full = listener->n_ready >= listener->backlog;
	pthread_mutex_unlock(&listener->base.lock);
	/* Further requests stay in the id's backlog. */
	if (is_full)
		service_pause(serviced);
	else if (rdma_get_request(listener->id, &id) == 0)
		handle_request(listener, id);
}

/* The set-up of a child has succeeded, or failed with @err. */
static void settle_child(struct stream *child, int err)
{
	struct stream *listener = child->listener;

	child->listener = NULL;
	if (err) {
		drop_child(child);
		return;
	}
	pthread_mutex_lock(&listener->base.lock);
	list_remove(&child->sibling);
	list_append(&listener->ready, &child->sibling);
	listener->n_ready++;
	watch_notify(&listener->base);
	pthread_mutex_unlock(&listener->base.lock);
}

/* --- rlisten(), raccept() ------------------------------------------------ */

static int listen_on(struct stream *s, int backlog)
{
	bool is_listening = s->state == STREAM_LISTENING;
	int err;

	if (s->base.closed)
		return -EBADF;
	if (s->state != STREAM_IDLE && s->state != STREAM_BOUND && !is_listening)
		return -EINVAL;
	if (!s->backlog && rdma_listen(s->id, backlog))
		return -errno;
	err = stream_apply(s, STREAM_EV_LISTEN, 0);
	s->backlog = backlog > 0 && backlog < BACKLOG_MAX ? (unsigned int)backlog : BACKLOG_MAX;
	if (err || s->cm.watch.fd >= 0)
		return err;
	s->cm.readable = listener_readable;
	s->settled = settle_child;
	return service_add(&s->cm, s->id->channel->fd);
}

int listen_start(struct rsock *rs, int backlog)
{
	int err;

	service_lock();
	pthread_mutex_lock(&rs->lock);
	err = listen_on(stream_of(rs), backlog);
	pthread_mutex_unlock(&rs->lock);
	service_unlock();
	return err;
}

static bool has_ready(struct rsock *rs)
{
	return !list_is_empty(&stream_of(rs)->ready);
}

static bool accept_would_not_wait(struct rsock *rs)
{
	return has_ready(rs) || stream_of(rs)->state != STREAM_LISTENING;
}

/* @ret: the first ready socket. Return: 0; -EAGAIN if there is none; -EINVAL without a listener. */
static int take_ready(struct stream *listener, struct stream **ret)
{
	int err;

	pthread_mutex_lock(&listener->base.lock);
	err = listener->state == STREAM_LISTENING ? -EAGAIN : -EINVAL;
	if (has_ready(&listener->base)) {
		*ret = container_of(listener->ready.next, struct stream, sibling);
		list_remove(&(*ret)->sibling);
		listener->n_ready--;
		err = 0;
	}
	pthread_mutex_unlock(&listener->base.lock);
	return err;
}

/* @flags: MSG_DONTWAIT */
static int accept_child(struct rsock *rs, struct sockaddr *addr, socklen_t *bytes, int flags)
{
	struct stream *listener = stream_of(rs);
	struct cm_time deadline;
	struct stream *child;
	int fd, err;

	pthread_mutex_lock(&rs->lock);
	deadline = wait_deadline_of(&listener->options.recv_timeout);
	pthread_mutex_unlock(&rs->lock);
	while ((err = take_ready(listener, &child))) {
		if (err == -EAGAIN && !rsock_is_nonblocking(rs, flags))
			err = wait_restarted(rs, POLLIN, accept_would_not_wait, deadline);
		if (err)
			return err;
	}
	service_lock();
	service_resume(&listener->cm);
	service_unlock();
	if (RDMA_CORE >= INHERITS_SINCE)
		child->base.nonblocking = rsock_is_nonblocking(rs, 0);
	fd = child->base.fd;
	connect_copy_name(rdma_get_peer_addr(child->id), addr, bytes);
	err = table_add(&child->base);
	if (!err)
		return fd;
	service_lock();
	drop_child(child);
	service_unlock();
	return err;
}

int listen_accept(struct rsock *rs, struct sockaddr *addr, socklen_t *bytes)
{
	return accept_child(rs, addr, bytes, 0);
}

int listen_accept_now(struct rsock *rs)
{
	return accept_child(rs, NULL, NULL, MSG_DONTWAIT);
}

void listen_end(struct stream *listener)
{
	struct stream *child;

	list_for_each_entry_safe (child, &listener->pending, sibling)
		drop_child(child);
	/* One at a time, because a raccept() in progress takes sockets too. */
	while (take_ready(listener, &child) == 0)
		drop_child(child);
	service_resume(&listener->cm);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The active side of a stream socket's set-up, and later events of its id: see connecting.h. */
#include "lib/rsocket/connecting.h"

#include <errno.h>
#include <infiniband/ib.h>
#include <string.h>

#include "lib/api.h"
#include "lib/net/addr.h"
#include "lib/rsocket/memory.h"
#include "lib/rsocket/rdma_hosts.h"
#include "lib/rsocket/wait.h"
#include "lib/sync/sync.h"

#define TIMEOUT_MS    1000 /* of the first resolution; doubled for each retry */
#define RETRIES_MAX   6
#define HURRY_MS      400 /* of a step, to a host that may have no RDMA */
#define AF_IB_OFFSET  36  /* the CM's header precedes it with IP addresses */
#define RETRY_COUNT   7
#define PRIVATE_BYTES (AF_IB_OFFSET + RS_HELLO_BYTES)

void connect_copy_name(const struct sockaddr *from, struct sockaddr *to, socklen_t *bytes)
{
	socklen_t whole = addr_bytes(from);

	if (!to || !bytes)
		return;
	memcpy(to, from, whole < *bytes ? whole : *bytes);
	*bytes = whole;
}

size_t connect_private_offset(int domain)
{
	return domain == AF_IB ? AF_IB_OFFSET : 0;
}

/* A non-blocking call on a synchronous id fails with EAGAIN; its event comes later. */
static int errno_of_start(int result)
{
	return result && errno != EAGAIN ? -errno : 0;
}

/* --- steps --------------------------------------------------------------- */

static int resolve_target(struct stream *s)
{
	return errno_of_start(
		rdma_resolve_addr(s->id, NULL, (struct sockaddr *)&s->target, (int)s->timeout_ms));
}

static int resolve_route(struct stream *s)
{
	if (!s->route)
		return errno_of_start(rdma_resolve_route(s->id, (int)s->timeout_ms));
	return errno_of_start(rdma_set_option(s->id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, s->route,
					      s->route_bytes));
}

static int begin_route(struct stream *s)
{
	s->timeout_ms = TIMEOUT_MS;
	s->n_retries = 0;
	return resolve_route(s);
}

static int send_req(struct stream *s)
{
	struct rdma_conn_param param = { .flow_control = 1,
					 .retry_count = RETRY_COUNT,
					 .rnr_retry_count = RETRY_COUNT };
	uint8_t data[PRIVATE_BYTES] = { 0 };
	size_t offset = connect_private_offset(s->target.ss_family);
	struct rs_hello hello;
	int err = memory_make(s);

	if (err)
		return err;
	hello = memory_hello(s);
	wire_encode(&rs_hello_layout, &hello, data + offset);
	param.private_data = data;
	param.private_data_len = (uint8_t)(offset + RS_HELLO_BYTES);
	return errno_of_start(rdma_connect(s->id, &param));
}

const struct stream_opening connect_opening = {
	.find_route = begin_route,
	.send_req = send_req,
};

/* --- events -------------------------------------------------------------- */

/* Each step has its time: the first one may have to start cmportd. */
static void hurry(struct stream *s)
{
	if (s->base.hurries)
		service_expire_in(&s->cm, HURRY_MS);
}

/* A step of the set-up has succeeded or failed. */
static void continue_opening(struct stream *s, int err)
{
	static const enum stream_event done[STREAM_N_STATES] = {
		[STREAM_ADDR] = STREAM_EV_ADDR_DONE,
		[STREAM_ROUTE] = STREAM_EV_ROUTE_DONE,
		[STREAM_CONNECTING] = STREAM_EV_ESTABLISHED,
		[STREAM_ACCEPTING] = STREAM_EV_ESTABLISHED,
	};

	if (err == -ETIMEDOUT && s->n_retries < RETRIES_MAX &&
	    (s->state == STREAM_ADDR || s->state == STREAM_ROUTE)) {
		s->n_retries++;
		s->timeout_ms *= 2;
		err = s->state == STREAM_ADDR ? resolve_target(s) : resolve_route(s);
		if (!err)
			return;
	}
	/* The passive side has read the REQ already. */
	if (!err && s->state == STREAM_CONNECTING) {
		const struct rdma_conn_param *param = &s->id->event->param.conn;
		struct rs_hello hello = { 0 };

		if (param->private_data && param->private_data_len >= RS_HELLO_BYTES)
			wire_decode(&rs_hello_layout, param->private_data, &hello);
		err = memory_learn(s, &hello);
	}
	if (!err)
		err = stream_apply(s, done[s->state], 0);
	if (err)
		stream_apply(s, STREAM_EV_REFUSED, err);
	if (stream_is_opening(s->state)) {
		hurry(s);
		return;
	}
	if (s->base.hurries && (!err || err == -ECONNREFUSED))
		hosts_note(&s->target, true);
	service_expire_in(&s->cm, 0);
}

void connect_expired(struct serviced *serviced)
{
	struct stream *s = container_of(serviced, struct stream, cm);
	uint32_t more_ms = hosts_patience_ms(&s->target);

	pthread_mutex_lock(&s->base.lock);
	if (more_ms) {
		service_expire_in(&s->cm, more_ms);
	} else if (stream_is_opening(s->state)) {
		hosts_note(&s->target, false);
		service_remove(&s->cm);
		stream_apply(s, STREAM_EV_REFUSED, -ETIMEDOUT);
	}
	pthread_mutex_unlock(&s->base.lock);
}

int connect_take_event(struct rdma_cm_id *id)
{
	int err, cancel_state = api_enter();

	do
		err = sync_complete(id_of(id), cancel_state);
	while (!err && id->event->event == RDMA_CM_EVENT_ADDR_CHANGE);
	api_leave(cancel_state);
	return err;
}

void connect_readable(struct serviced *serviced)
{
	struct stream *s = container_of(serviced, struct stream, cm);
	const struct rdma_cm_event *event;
	bool was_opening, is_opening, has_ended;
	int err = connect_take_event(s->id);

	if (err == -EAGAIN)
		return;
	pthread_mutex_lock(&s->base.lock);
	/* Data that arrived before the end of the connection is handled first. */
	stream_progress(&s->base);
	was_opening = stream_is_opening(s->state);
	event = s->id->event;
	has_ended = event && (event->event == RDMA_CM_EVENT_DISCONNECTED ||
			      event->event == RDMA_CM_EVENT_DEVICE_REMOVAL);
	if (was_opening) {
		/* The status of CONNECT_ERROR is -1, as stock's; those of the others are 0. */
		if (has_ended || (event && event->event == RDMA_CM_EVENT_CONNECT_ERROR))
			err = -ECONNRESET;
		continue_opening(s, err);
	} else if (has_ended) {
		stream_apply(s, STREAM_EV_GONE, 0);
		/* The peer need not wait until our program closes the socket. */
		rdma_disconnect(s->id);
	}
	is_opening = stream_is_opening(s->state);
	err = s->state == STREAM_FAILED ? -s->last_error : 0;
	pthread_mutex_unlock(&s->base.lock);
	if (!was_opening || is_opening)
		return;
	keepalive_update(s);
	if (s->listener)
		s->listener->settled(s, err);
}

/* --- rconnect() ---------------------------------------------------------- */

static bool is_settled(struct rsock *rs)
{
	return !stream_is_opening(stream_of(rs)->state);
}

static int check_connect(const struct stream *s, const struct sockaddr *addr, socklen_t bytes)
{
	if (s->base.closed)
		return -EBADF;
	if (stream_is_opening(s->state))
		return -EALREADY;
	if (stream_can_send_messages(s->state))
		return -EISCONN;
	if (s->state == STREAM_FAILED) /* unlike TCP, as stock: it cannot be tried again */
		return -ENOTCONN;
	if (!addr || !addr_bytes(addr))
		return addr ? -EAFNOSUPPORT : -EFAULT;
	return bytes < addr_bytes(addr) ? -EINVAL : 0;
}

/* Both locks are held, because an event may arrive at once. */
static int begin_connect(struct stream *s, const struct sockaddr *addr, socklen_t bytes)
{
	int err = check_connect(s, addr, bytes);

	if (err)
		return err;
	err = stream_apply(s, STREAM_EV_CONNECT, 0);
	if (err)
		return err;
	memcpy(&s->target, addr, addr_bytes(addr));
	s->timeout_ms = TIMEOUT_MS;
	s->n_retries = 0;
	err = service_add(&s->cm, s->id->channel->fd);
	if (!err && s->base.hurries && hosts_is_mute(&s->target))
		err = -EHOSTDOWN;
	if (!err)
		err = resolve_target(s);
	if (!err)
		hurry(s);
	if (err) {
		service_remove(&s->cm);
		stream_apply(s, STREAM_EV_REFUSED, err);
		s->error = 0;
	}
	return err;
}

/* As with TCP and stock, a call after EINPROGRESS returns 0 once the socket is connected; as with
 * TCP, the failure if it was not. */
static int begin_or_report(struct stream *s, const struct sockaddr *addr, socklen_t bytes)
{
	int err = begin_connect(s, addr, bytes);

	if (!err && rsock_is_nonblocking(&s->base, 0)) {
		s->in_progress = true;
		return -EINPROGRESS;
	}
	if (err == -EISCONN && s->in_progress) {
		s->in_progress = false;
		return 0;
	}
	if (s->in_progress && s->state == STREAM_FAILED && s->error) {
		err = -s->error;
		s->in_progress = false;
		s->error = 0;
	}
	return err;
}

int connect_start(struct rsock *rs, const struct sockaddr *addr, socklen_t bytes)
{
	struct stream *s = stream_of(rs);
	int err;

	service_lock();
	pthread_mutex_lock(&rs->lock);
	err = begin_or_report(s, addr, bytes);
	pthread_mutex_unlock(&rs->lock);
	service_unlock();
	if (err)
		return err;
	err = wait_restarted(rs, POLLOUT, is_settled, CM_TIME_NEVER);
	if (err) /* after EINTR the connection is still being made, as with TCP */
		return err;
	pthread_mutex_lock(&rs->lock);
	err = s->state == STREAM_FAILED ? -s->last_error : 0;
	s->error = 0;
	pthread_mutex_unlock(&rs->lock);
	return err;
}

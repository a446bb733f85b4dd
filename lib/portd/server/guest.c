/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client as cmportd sees it: two sockets, a rate, and what waits for it. Nothing that it sends
 * is believed; who does not keep to the protocol is shown out. Called by server.c and router.c.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/portd/server/log.h"
#include "lib/portd/server/state.h"
#include "lib/portd/server/subnet.h"

#define SPARE_MAX 64
#define BATCH_MAX 8
#define ROW_PRICE 0.0625 /* of a message: it was asked for, and is soon passed on */

/* --- coming and going ---------------------------------------------------- */

static int free_index(const struct server *server)
{
	int i;

	for (i = 0; i < GUESTS_MAX; i++)
		if (!server->guest[i])
			return i;
	return -ENOSPC;
}

static void identify(struct guest *guest)
{
	struct ucred cred = { .uid = (uid_t)-1 };
	socklen_t bytes = sizeof(cred);

	getsockopt(guest->control.fd, SOL_SOCKET, SO_PEERCRED, &cred, &bytes);
	guest->pid = cred.pid;
	guest->uid = cred.uid;
}

void guest_new(struct server *server, int fd)
{
	int index = free_index(server);
	struct guest *guest = index < 0 ? NULL : calloc(1, sizeof(*guest));

	if (!guest) {
		portd_log_warn("no room for another client: %u are here", server->n_guests);
		close(fd);
		return;
	}
	guest->index = (uint16_t)index;
	guest->control = (struct watch){ .kind = WATCH_CONTROL, .fd = fd };
	guest->data = (struct watch){ .kind = WATCH_DATA, .fd = -1 };
	guest->asked_fd = -1;
	guest->batch = 1;
	guest->tokens = RATE_BURST;
	guest->tokens_at = server->now;
	list_init(&guest->backlog);
	list_init(&guest->link);
	list_init(&guest->asks);
	identify(guest);
	guest->realm = realm_enter(server->home, fd);
	if (!guest->realm || server_watch(server, &guest->control, EPOLLIN)) {
		if (guest->realm)
			realm_leave(server->home, guest->realm);
		close(fd);
		free(guest);
		return;
	}
	server->guest[index] = guest;
	server->n_guests++;
	portd_log_debug("client %d, pid %d, uid %u", index, (int)guest->pid,
			(unsigned int)guest->uid);
}

static void release_blocks(struct server *server, struct guest *guest)
{
	unsigned int i;

	for (i = 0; i < guest->n_blocks; i++)
		server->block_owner[guest->block[i]] = NOBODY;
}

static void drop_batches(struct guest *guest)
{
	struct list *node, *after;

	list_for_each_safe (node, after, &guest->backlog)
		free(container_of(node, struct batch, link));
	free(guest->out);
	list_remove(&guest->link);
}

void guest_forget(struct server *server, struct guest *guest)
{
	unsigned int i;

	server_unwatch(server, &guest->control);
	server_unwatch(server, &guest->data);
	if (guest->asked_fd >= 0)
		close(guest->asked_fd);
	free(guest->rest);
	drop_batches(guest);
	for (i = 0; i < STATIONS_MAX; i++)
		if (server->station[i])
			station_forget_sender(server->station[i], guest);
	subnet_forget_guest(server, guest, false);
	if (guest->throttled)
		server->n_throttled--;
	if (guest->looks_on)
		server->options.onlook->end(server, guest);
	ports_client_gone(guest->realm->ports, guest->index);
	realm_leave(server->home, guest->realm);
	server->guest[guest->index] = NULL;
	server->n_guests--;
	server->idle_since = server->now;
	free(guest);
}

static void leave(struct server *server, struct guest *guest)
{
	guest->leaving = true;
	server->any_leaving = true;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

void guest_after_fork(const struct guest *guest)
{
	close_fd(guest->control.fd);
	close_fd(guest->data.fd);
	close_fd(guest->asked_fd);
}

static void show_out(struct server *server, struct guest *guest, const char *why)
{
	server->count[SERVER_COUNT_PROTOCOL]++;
	portd_log_debug("client %u, pid %d is shown out: %s", guest->index, (int)guest->pid, why);
	guest->is_shown_out = true;
	leave(server, guest);
}

/* --- questions and answers ----------------------------------------------- */

static bool reply(const struct guest *guest, const struct portd_reply *answer, int fd[2])
{
	struct portd_record record = { .type = PORTD_REPLY, .reply = *answer };
	struct portd_datagram out; /* large, so not cleared */
	int n_fds = (fd[0] >= 0) + (fd[1] >= 0);
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(2 * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { .iov_base = out.data };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	out.bytes = 0;
	portd_put(&out, &record);
	iov.iov_len = out.bytes;
	if (n_fds) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(&control.align), fd, n_fds * sizeof(int));
	}
	return sendmsg(guest->control.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)out.bytes;
}

/* Return: false if the question waits for the end of the grace period. */
static bool ask(struct server *server, struct guest *guest, const struct portd_record *record,
		int fd)
{
	struct portd_reply answer = { .error = 0 };
	int send_fd[2] = { -1, -1 };
	int err = answer_ask(server, guest, record, fd, &answer, send_fd);

	if (err == -EAGAIN) {
		guest->has_asked = true;
		guest->asked = *record;
		guest->asked_fd = fd;
		server_watch(server, &guest->control, EPOLLHUP);
		return false;
	}
	if (err)
		show_out(server, guest, "a question out of place");
	else if (!portd_is_one_way(record->type) && !reply(guest, &answer, send_fd))
		show_out(server, guest, "it does not take its answers");
	close_fd(send_fd[0]); /* the client's end of its data socket, or the feed */
	close_fd(send_fd[1]); /* its page */
	return true;
}

/* What follows a question that waits, waits too. */
static void keep_rest(struct server *server, struct guest *guest)
{
	const struct portd_datagram *in = &server->in;

	if (in->at == in->bytes)
		return;
	guest->rest = malloc(sizeof(*guest->rest));
	if (!guest->rest) {
		show_out(server, guest, "no memory for its questions");
		return;
	}
	guest->rest->at = 0;
	guest->rest->bytes = in->bytes - in->at;
	memcpy(guest->rest->data, in->data + in->at, guest->rest->bytes);
}

static void take_rest(struct server *server, struct guest *guest)
{
	server->in.at = 0;
	server->in.bytes = guest->rest->bytes;
	memcpy(server->in.data, guest->rest->data, guest->rest->bytes);
	free(guest->rest);
	guest->rest = NULL;
}

static void ask_all(struct server *server, struct guest *guest, int fd)
{
	struct portd_record record;
	int err = 0;

	while (!guest->leaving && (err = portd_get(&server->in, &record)) == 0) {
		if (!portd_is_asked(record.type)) {
			show_out(server, guest, "a record that is not for this socket");
			break;
		}
		if (!ask(server, guest, &record, fd)) {
			keep_rest(server, guest);
			return;
		}
		fd = -1;
	}
	if (err == -EPROTO)
		show_out(server, guest, "not a record");
	if (fd >= 0)
		close(fd);
}

static void ask_again(struct server *server, struct guest *guest)
{
	struct portd_record record = guest->asked;
	int fd = guest->asked_fd;

	guest->has_asked = false;
	guest->asked_fd = -1;
	if (!ask(server, guest, &record, fd))
		return;
	if (guest->rest) {
		take_rest(server, guest);
		ask_all(server, guest, -1);
	}
	if (!guest->has_asked)
		server_watch(server, &guest->control, EPOLLIN);
}

void guest_control(struct server *server, struct guest *guest, uint32_t events)
{
	ssize_t n;
	int fd;

	if (guest->has_asked && events & (EPOLLHUP | EPOLLERR)) {
		leave(server, guest);
		return;
	}
	if (guest->has_asked) {
		ask_again(server, guest);
		return;
	}
	n = intake_questions(server, guest->control.fd, &fd);
	if (n > 0)
		ask_all(server, guest, fd);
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		leave(server, guest);
	if (n == 0 && fd >= 0)
		close(fd); /* an empty datagram may bring one */
}

/* --- messages from it ---------------------------------------------------- */

static void refill(struct server *server, struct guest *guest)
{
	double elapsed_ns = (double)(server->now.ns - guest->tokens_at.ns);

	guest->tokens += elapsed_ns * RATE_PER_S / 1e9;
	if (guest->tokens > RATE_BURST)
		guest->tokens = RATE_BURST;
	guest->tokens_at = server->now;
}

static bool may_send(const struct guest *guest)
{
	return !guest->throttled && guest->n_requests < REQUESTS_MAX;
}

static uint32_t wanted_events(const struct guest *guest)
{
	return (may_send(guest) ? EPOLLIN : 0) |
	       (list_is_empty(&guest->backlog) ? 0 : (uint32_t)EPOLLOUT);
}

static void throttle(struct server *server, struct guest *guest, bool on)
{
	if (guest->throttled == on)
		return;
	guest->throttled = on;
	if (on)
		server->n_throttled++;
	else
		server->n_throttled--;
	server_watch(server, &guest->data, wanted_events(guest));
}

void guest_may_send(struct server *server, struct guest *guest)
{
	server_watch(server, &guest->data, wanted_events(guest));
}

void guest_unthrottle(struct server *server)
{
	struct guest *guest;
	unsigned int i;

	for (i = 0; server->n_throttled && i < GUESTS_MAX; i++) {
		guest = server->guest[i];
		if (!guest || !guest->throttled)
			continue;
		refill(server, guest);
		if (guest->tokens >= RATE_BURST / 10)
			throttle(server, guest, false);
	}
}

static bool shows(struct server *server, struct guest *guest, struct portd_record *record)
{
	const struct server_onlook *onlook = server->options.onlook;

	return onlook &&
	       (onlook->row(server, guest, record) || onlook->await(server, guest, record));
}

/* Return: false if it is none that clients send here. */
static bool take_message(struct server *server, struct guest *guest, struct portd_record *record)
{
	if (record->type == PORTD_MAD)
		router_sent(server, guest, &record->mad);
	else if (record->type == PORTD_CLOSE)
		wills_close(server->wills, guest->index, &record->close);
	else
		return shows(server, guest, record) || subnet_record(server, guest, record);
	return true;
}

static void take_messages(struct server *server, struct guest *guest)
{
	struct portd_record record;
	int err;

	while ((err = portd_get(&server->in, &record)) == 0) {
		guest->tokens -= record.type == PORTD_STAT_ID ? ROW_PRICE : 1;
		if (!take_message(server, guest, &record)) {
			show_out(server, guest, "a record that is not for its data socket");
			return;
		}
	}
	if (err == -EPROTO)
		show_out(server, guest, "not a record");
}

/* To find that there is nothing more costs a system call: as many are tried as there were of late.
 */
static unsigned int next_batch(unsigned int n_taken, bool may_be_more)
{
	unsigned int next = may_be_more ? 2 * n_taken : n_taken;

	if (next == 0)
		return 1;
	return next < BATCH_MAX ? next : BATCH_MAX;
}

static void send_backlog(struct server *server, struct guest *guest);

void guest_data(struct server *server, struct guest *guest, uint32_t events)
{
	unsigned int i = 0;
	ssize_t n;

	if (events & EPOLLOUT)
		send_backlog(server, guest);
	if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)) || !may_send(guest))
		return;
	refill(server, guest);
	if (guest->tokens < 1) {
		throttle(server, guest, true);
		return;
	}
	do {
		n = intake_messages(server, guest->data.fd);
		if (n > 0)
			take_messages(server, guest);
	} while (n > 0 && ++i < guest->batch && !guest->leaving && may_send(guest));
	guest->batch = next_batch(i, n > 0);
	server_watch(server, &guest->data, wanted_events(guest));
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		leave(server, guest);
}

/* What it sent before it went may not have been read yet: its end may be better put than by us. */
static void hear_last_words(struct server *server, struct guest *guest)
{
	ssize_t n = guest->data.fd >= 0;

	refill(server, guest);
	while (n > 0 && guest->tokens >= 1 && !guest->is_shown_out) {
		n = intake_messages(server, guest->data.fd);
		if (n > 0)
			take_messages(server, guest);
	}
}

void guest_close(struct server *server, struct guest *guest)
{
	struct cm_record will;

	portd_log_debug("client %u, pid %d has gone", guest->index, (int)guest->pid);
	if (!guest->is_shown_out)
		hear_last_words(server, guest);
	release_blocks(server, guest);
	ports_client_gone(guest->realm->ports, guest->index);
	while (wills_take(server->wills, guest->index, &will))
		router_bury(server, &will);
	subnet_forget_guest(server, guest, true);
	if (guest->welcome && !guest->visits)
		server->options.estate->dismiss(server, guest);
	guest_forget(server, guest);
}

/* --- messages to it ------------------------------------------------------ */

static struct batch *batch_new(struct server *server)
{
	struct batch *batch;

	if (server->n_spare == 0) {
		batch = malloc(sizeof(*batch));
	} else {
		batch = container_of(server->spare.next, struct batch, link);
		list_remove(&batch->link);
		server->n_spare--;
	}
	if (batch) {
		list_init(&batch->link);
		batch->datagram.bytes = 0;
	}
	return batch;
}

static void batch_free(struct server *server, struct batch *batch)
{
	if (server->n_spare == SPARE_MAX) {
		free(batch);
		return;
	}
	list_append(&server->spare, &batch->link);
	server->n_spare++;
}

/* Return: false if the socket has no room. A client that is gone has room for everything. */
static bool send_batch(const struct guest *guest, const struct batch *batch)
{
	ssize_t n = send(guest->data.fd, batch->datagram.data, batch->datagram.bytes,
			 MSG_DONTWAIT | MSG_NOSIGNAL);

	return n >= 0 || (errno != EAGAIN && errno != ENOBUFS);
}

static void send_backlog(struct server *server, struct guest *guest)
{
	struct batch *batch;

	while (!list_is_empty(&guest->backlog)) {
		batch = container_of(guest->backlog.next, struct batch, link);
		if (!send_batch(guest, batch))
			return;
		list_remove(&batch->link);
		guest->n_backlog--;
		batch_free(server, batch);
	}
	server_watch(server, &guest->data, wanted_events(guest));
}

void guest_flush(struct server *server, struct guest *guest)
{
	struct batch *batch = guest->out;

	if (!batch)
		return;
	guest->out = NULL;
	list_remove(&guest->link);
	if (list_is_empty(&guest->backlog) && send_batch(guest, batch)) {
		batch_free(server, batch);
		return;
	}
	list_append(&guest->backlog, &batch->link);
	guest->n_backlog++;
	server_watch(server, &guest->data, wanted_events(guest));
}

/* A client that does not read loses requests first: their peers repeat them. That a port is gone it
 * has to know, and cannot be told more often than it has opened one. */
enum {
	ROOM_FOR_REQUEST = BACKLOG_MAX / 2,
	ROOM_FOR_MESSAGE = BACKLOG_MAX,
	ROOM_FOR_GONE = INT_MAX,
};

static void deliver(struct server *server, struct guest *guest, const struct portd_record *record,
		    unsigned int room)
{
	if (guest->out && portd_put(&guest->out->datagram, record))
		return;
	guest_flush(server, guest);
	if (guest->n_backlog < room)
		guest->out = batch_new(server);
	if (!guest->out) {
		server->count[SERVER_COUNT_OVERFLOW]++;
		return;
	}
	list_append(&server->filled, &guest->link);
	portd_put(&guest->out->datagram, record);
}

void guest_deliver(struct server *server, struct guest *guest, const struct station *station,
		   const struct mad_path *path, const uint8_t mad[MAD_BYTES], bool is_request)
{
	struct portd_record record = {
		.type = PORTD_MAD, .mad = {.port = station->handle, .path = *path}
	};

	memcpy(record.mad.mad, mad, MAD_BYTES);
	deliver(server, guest, &record, is_request ? ROOM_FOR_REQUEST : ROOM_FOR_MESSAGE);
}

/* No more of these can come than were asked for. */
void guest_tell(struct server *server, struct guest *guest, const struct portd_record *record)
{
	deliver(server, guest, record, ROOM_FOR_GONE);
}

void guest_show(struct server *server, struct guest *guest, const struct portd_record *record,
		unsigned int room)
{
	deliver(server, guest, record, room);
}

void guest_port_gone(struct server *server, struct guest *guest, uint8_t handle)
{
	struct portd_record record = { .type = PORTD_GONE, .gone = { .port = handle } };

	if (!(guest->stations >> handle & 1))
		return;
	guest->stations &= ~(UINT64_C(1) << handle);
	deliver(server, guest, &record, ROOM_FOR_GONE);
}

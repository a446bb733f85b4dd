/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * umad: connections, their agents, and the dispatch of MADs. The rules are the kernel's: a method
 * of a class has one owner, a response goes to the agent that sent the request, and a request that
 * times out is returned to it.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/umad_sa.h>
#include <infiniband/umad_types.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "tools/fabric/host/host.h"
#include "tools/fabric/host/rmpp.h"
#include "tools/fabric/host/smi.h"

#define QUEUE_MAX	200000
#define METHOD_RESPONSE 0x80
#define TRAP_REPRESS	0x07
#define CLASS_AT	1
#define VERSION_AT	2
#define METHOD_AT	3
#define TID_AT		8
#define MAD_HEAD_BYTES	24
#define TICK_NS		10000000
#define WRITTEN_MAX	(512u << 10)

struct agent {
	bool in_use;
	uint8_t mgmt_class, class_version, rmpp_version;
	uint64_t method_mask[2];
	uint32_t hi_tid;
};

/* Queued for a program that reads slowly. */
struct message {
	struct list link;
	size_t bytes;
	struct ib_user_mad head;
	uint8_t mad[];
};

struct conn {
	struct watch watch;
	struct list link;
	struct host *host;
	int fd;
	uint8_t port_num;
	struct agent agent[FAB_UMAD_AGENTS_MAX];
	struct list queue; /* of struct message */
	unsigned int n_queued;
};

struct pending {
	struct list link;
	struct conn *conn;
	struct ib_user_mad head;
	uint8_t mad[FAB_MAD_BYTES];
	uint64_t deadline_ns;
	uint32_t retries;
};

static bool is_response(const uint8_t *mad)
{
	return mad[METHOD_AT] & METHOD_RESPONSE || mad[METHOD_AT] == TRAP_REPRESS;
}

static uint64_t tid_of(const uint8_t *mad)
{
	uint64_t tid;

	memcpy(&tid, mad + TID_AT, sizeof(tid));
	return be64toh(tid);
}

/* --- to the program ------------------------------------------------------ */

static void wait_for_room(struct host *host, struct conn *conn, bool on)
{
	loop_change(&host->loop, &conn->watch, EPOLLIN | (on ? EPOLLOUT : 0));
}

/* A program that asked for a table that its socket does not take is refused, so that it ends. */
static void refuse_table(const struct conn *conn, struct ib_user_mad head, const uint8_t *mad)
{
	uint8_t refusal[sizeof(struct umad_sa_packet)];
	struct umad_hdr *hdr = (struct umad_hdr *)refusal;
	struct iovec iov[2] = { { .iov_base = &head, .iov_len = sizeof(head) },
				{ .iov_base = refusal, .iov_len = sizeof(refusal) } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	memcpy(refusal, mad, sizeof(refusal));
	if (hdr->mgmt_class != UMAD_CLASS_SUBN_ADM)
		return;
	hdr->status = htons(UMAD_SA_STATUS_NO_RESOURCES << 8);
	head.length = sizeof(head) + sizeof(refusal);
	sendmsg(conn->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Return: false if there is no room; a message too long for the socket is dropped. */
static bool send_to_program(const struct host *host, const struct conn *conn,
			    const struct ib_user_mad *head, const uint8_t *mad, size_t bytes)
{
	struct iovec iov[2] = {
		{ .iov_base = (void *)(uintptr_t)head, .iov_len = sizeof(*head) },
		{ .iov_base = (void *)(uintptr_t)mad, .iov_len = bytes },
	};
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	if (sendmsg(conn->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return true;
	if (errno != EMSGSIZE)
		return false;
	host_log(host, "an answer of %zu bytes is more than a socket takes", bytes);
	refuse_table(conn, *head, mad);
	return true;
}

static void send_or_queue(struct host *host, struct conn *conn, struct ib_user_mad head,
			  const uint8_t *mad, size_t bytes)
{
	struct message *message;

	head.length = (uint32_t)(sizeof(head) + bytes);
	if (list_is_empty(&conn->queue) && send_to_program(host, conn, &head, mad, bytes))
		return;
	message = conn->n_queued < QUEUE_MAX ? malloc(sizeof(*message) + bytes) : NULL;
	if (!message)
		return;
	message->head = head;
	message->bytes = bytes;
	memcpy(message->mad, mad, bytes);
	if (list_is_empty(&conn->queue))
		wait_for_room(host, conn, true);
	list_append(&conn->queue, &message->link);
	conn->n_queued++;
}

static void drain_queue(struct host *host, struct conn *conn)
{
	while (!list_is_empty(&conn->queue)) {
		struct message *message = container_of(conn->queue.next, struct message, link);

		if (!send_to_program(host, conn, &message->head, message->mad, message->bytes))
			return;
		list_remove(&message->link);
		free(message);
		conn->n_queued--;
	}
	wait_for_room(host, conn, false);
}

/* --- ownership ------------------------------------------------------------ */

static bool has_method(const struct agent *agent, const uint8_t *mad)
{
	unsigned int method = mad[METHOD_AT] & 0x7f;

	return agent->in_use && agent->mgmt_class == mad[CLASS_AT] &&
	       agent->class_version == mad[VERSION_AT] &&
	       agent->method_mask[method / 64] >> method % 64 & 1;
}

static bool agent_overlaps(const struct agent *agent, const struct fab_umad_request *request)
{
	return agent->in_use && agent->mgmt_class == request->mgmt_class &&
	       agent->class_version == request->class_version &&
	       (agent->method_mask[0] & request->method_mask[0] ||
		agent->method_mask[1] & request->method_mask[1]);
}

static bool is_taken(const struct host *host, uint8_t port_num,
		     const struct fab_umad_request *request)
{
	const struct conn *conn;
	int i;

	list_for_each_entry (conn, &host->conns, link) {
		for (i = 0; conn->port_num == port_num && i < FAB_UMAD_AGENTS_MAX; i++)
			if (agent_overlaps(&conn->agent[i], request))
				return true;
	}
	return false;
}

static int add_agent(struct host *host, struct conn *conn, const struct fab_umad_request *request,
		     uint32_t *ret)
{
	struct agent *agent;
	uint32_t i = 0;

	if (request->mgmt_class && is_taken(host, conn->port_num, request))
		return EINVAL;
	while (i < FAB_UMAD_AGENTS_MAX && conn->agent[i].in_use)
		i++;
	if (i == FAB_UMAD_AGENTS_MAX)
		return ENOMEM;
	agent = &conn->agent[i];
	agent->in_use = true;
	agent->mgmt_class = request->mgmt_class;
	agent->class_version = request->class_version;
	agent->rmpp_version = request->rmpp_version;
	memcpy(agent->method_mask, request->method_mask, sizeof(agent->method_mask));
	agent->hi_tid = ++host->last_hi_tid;
	*ret = i;
	return 0;
}

static struct pending *find_pending(struct host *host, const struct conn *conn, const uint8_t *mad)
{
	struct pending *pending;

	list_for_each_entry (pending, &host->pending, link) {
		if (pending->conn == conn && tid_of(pending->mad) == tid_of(mad) &&
		    pending->mad[CLASS_AT] == mad[CLASS_AT])
			return pending;
	}
	return NULL;
}

/* Return: whether a MAD is for this agent; a response matches a pending request once. */
static bool agent_takes(struct host *host, struct conn *conn, const struct agent *agent,
			const uint8_t *mad)
{
	struct pending *pending;

	if (!is_response(mad))
		return has_method(agent, mad);
	if (!agent->in_use || tid_of(mad) >> 32 != agent->hi_tid)
		return false;
	pending = find_pending(host, conn, mad);
	if (!pending)
		return false;
	list_remove(&pending->link);
	free(pending);
	return true;
}

bool agents_receive(struct host *host, uint8_t port_num, const struct ib_user_mad *head,
		    const uint8_t *mad, size_t bytes)
{
	struct ib_user_mad to = *head;
	struct conn *conn;

	list_for_each_entry (conn, &host->conns, link) {
		for (to.agent_id = 0;
		     conn->port_num == port_num && to.agent_id < FAB_UMAD_AGENTS_MAX;
		     to.agent_id++) {
			if (!agent_takes(host, conn, &conn->agent[to.agent_id], mad))
				continue;
			send_or_queue(host, conn, to, mad, bytes);
			return true;
		}
	}
	return false;
}

bool agents_assembles(struct host *host, uint8_t port_num, const uint8_t mad[FAB_MAD_BYTES])
{
	const struct agent *agent;
	struct conn *conn;
	bool is_its;

	list_for_each_entry (conn, &host->conns, link) {
		for (agent = conn->agent;
		     conn->port_num == port_num && agent < conn->agent + FAB_UMAD_AGENTS_MAX;
		     agent++) {
			is_its = is_response(mad) ? tid_of(mad) >> 32 == agent->hi_tid
						  : has_method(agent, mad);
			if (agent->in_use && is_its)
				return agent->rmpp_version;
		}
	}
	return false;
}

/* --- from the program ---------------------------------------------------- */

static void set_timer(struct host *host, long ns)
{
	struct itimerspec every = { .it_interval = { .tv_nsec = ns },
				    .it_value = { .tv_nsec = ns } };

	timerfd_settime(host->timer.fd, 0, &every, NULL);
}

void agents_tick(struct host *host)
{
	set_timer(host, TICK_NS);
}

static void await_response(struct host *host, struct conn *conn, const struct ib_user_mad *head,
			   const uint8_t mad[FAB_MAD_BYTES])
{
	struct pending *pending = malloc(sizeof(*pending));

	if (!pending)
		return;
	pending->conn = conn;
	pending->head = *head;
	memcpy(pending->mad, mad, sizeof(pending->mad));
	pending->retries = head->retries;
	pending->deadline_ns = clock_ns() + head->timeout_ms * UINT64_C(1000000);
	if (list_is_empty(&host->pending))
		agents_tick(host);
	list_append(&host->pending, &pending->link);
}

/* Only requests get a transaction id with our prefix. */
static void stamp_tid(const struct agent *agent, uint8_t *mad)
{
	uint32_t high = htobe32(agent->hi_tid);

	if (!is_response(mad))
		memcpy(mad + TID_AT, &high, sizeof(high));
}

/* Return: 0 or a positive errno. */
static int send_mad(struct host *host, uint8_t port_num, const struct ib_user_mad *head,
		    const uint8_t *mad)
{
	return smi_is_for(mad) ? 0 : gsi_send(host, port_num, head, mad);
}

static void send_mad_of_program(struct host *host, struct conn *conn, struct ib_user_mad *head,
				uint8_t *mad, size_t bytes)
{
	struct agent *agent = &conn->agent[head->agent_id % FAB_UMAD_AGENTS_MAX];
	int err;

	if (head->agent_id >= FAB_UMAD_AGENTS_MAX || !agent->in_use)
		return;
	stamp_tid(agent, mad);
	if (agent->rmpp_version && rmpp_is_active(mad)) {
		rmpp_send(host, conn->port_num, conn, head, mad, bytes);
		return;
	}
	err = send_mad(host, conn->port_num, head, mad);
	if (!err && head->timeout_ms && !is_response(mad))
		await_response(host, conn, head, mad);
	if (smi_is_for(mad) && smi_answer(host, conn->port_num, head, mad))
		agents_receive(host, conn->port_num, head, mad, FAB_MAD_BYTES);
}

static void forget_pending(struct host *host, const struct conn *conn, const struct agent *agent)
{
	struct pending *pending;

	list_for_each_entry_safe (pending, &host->pending, link) {
		if (pending->conn != conn || (agent && tid_of(pending->mad) >> 32 != agent->hi_tid))
			continue;
		list_remove(&pending->link);
		free(pending);
	}
}

static void close_conn(struct host *host, struct conn *conn)
{
	struct message *message;

	forget_pending(host, conn, NULL);
	rmpp_forget(host, conn);
	list_for_each_entry_safe (message, &conn->queue, link)
		free(message);
	list_remove(&conn->link);
	loop_unwatch(&host->loop, &conn->watch);
	close(conn->fd);
	free(conn);
}

/* The loop may handle a request before a close() that came first; a kernel never does. */
static void close_ended_conns(struct host *host, const struct conn *asking)
{
	struct conn *conn;
	char byte;

	list_for_each_entry_safe (conn, &host->conns, link) {
		if (conn != asking && recv(conn->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
			close_conn(host, conn);
	}
}

static void carry_out_request(struct host *host, struct conn *conn,
			      const struct fab_umad_request *request, int answer_fd)
{
	struct fab_umad_reply reply = { .error = EINVAL };

	if (request->op == FAB_UMAD_REGISTER) {
		close_ended_conns(host, conn);
		reply.error = add_agent(host, conn, request, &reply.agent_id);
	} else if (request->agent_id < FAB_UMAD_AGENTS_MAX &&
		   conn->agent[request->agent_id].in_use) {
		forget_pending(host, conn, &conn->agent[request->agent_id]);
		conn->agent[request->agent_id].in_use = false;
		reply.error = 0;
	}
	/* A program may pass a pipe that is full. */
	if (fcntl(answer_fd, F_SETFL, O_NONBLOCK) || write(answer_fd, &reply, sizeof(reply)) < 0)
		host_log(host, "a program did not wait for its answer");
}

int agents_descriptor_of(struct msghdr *msg)
{
	struct cmsghdr *control = CMSG_FIRSTHDR(msg);
	int fd = -1;

	if (control && control->cmsg_level == SOL_SOCKET && control->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(control), sizeof(fd));
	return fd;
}

static void take_message(struct host *host, struct conn *conn, uint8_t *written, size_t bytes,
			 int fd)
{
	struct fab_umad_request request;
	struct ib_user_mad head;

	memcpy(&head, written, sizeof(head));
	bytes -= sizeof(head);
	if (head.agent_id != FAB_UMAD_CONTROL) {
		send_mad_of_program(host, conn, &head, written + sizeof(head), bytes);
		return;
	}
	if (bytes != sizeof(request) || fd < 0)
		return;
	memcpy(&request, written + sizeof(head), sizeof(request));
	carry_out_request(host, conn, &request, fd);
}

/* Return: false at the end of the connection. */
static bool read_one(struct host *host, struct conn *conn)
{
	static uint8_t written[WRITTEN_MAX]; /* the loop has one thread */
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { .iov_base = written, .iov_len = sizeof(written) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = CMSG_LEN(sizeof(int)), /* there would be room for two */
	};
	ssize_t n;
	int fd;

	memset(written, 0, sizeof(struct ib_user_mad) + FAB_MAD_BYTES);
	n = recvmsg(conn->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (n == 0)
		return false;
	fd = agents_descriptor_of(&msg);
	if (n > (ssize_t)sizeof(struct ib_user_mad) && !(msg.msg_flags & MSG_TRUNC))
		take_message(host, conn, written, (size_t)n, fd);
	if (fd >= 0)
		close(fd);
	return true;
}

static void conn_ready(struct watch *watch)
{
	struct conn *conn = container_of(watch, struct conn, watch);
	struct host *host = conn->host;

	if (!list_is_empty(&conn->queue))
		drain_queue(host, conn);
	if (!read_one(host, conn))
		close_conn(host, conn);
}

static void listener_ready(struct watch *watch)
{
	const struct listener *listener = container_of(watch, struct listener, watch);
	struct host *host = listener->host;
	int fd = accept_conn(host, watch->fd);
	struct conn *conn = fd < 0 ? NULL : calloc(1, sizeof(*conn));

	if (!conn) {
		if (fd >= 0)
			close(fd);
		return;
	}
	fab_folder_widen_buffer(fd);
	conn->host = host;
	conn->fd = fd;
	conn->port_num = listener->port_num;
	list_init(&conn->queue);
	list_append(&host->conns, &conn->link);
	if (loop_watch(&host->loop, &conn->watch, fd, EPOLLIN, conn_ready))
		close_conn(host, conn);
}

/* --- time ---------------------------------------------------------------- */

void agents_give_back(struct host *host, struct conn *conn, const struct ib_user_mad *head,
		      const uint8_t *mad)
{
	struct ib_user_mad back = *head;

	back.status = ETIMEDOUT;
	send_or_queue(host, conn, back, mad, MAD_HEAD_BYTES);
}

/* Returns a request to its sender, with a timeout. */
static void give_up(struct host *host, struct pending *pending)
{
	agents_give_back(host, pending->conn, &pending->head, pending->mad);
	list_remove(&pending->link);
	free(pending);
}

static void resend_request(struct host *host, struct pending *pending, uint64_t now)
{
	pending->retries--;
	pending->deadline_ns = now + pending->head.timeout_ms * UINT64_C(1000000);
	send_mad(host, pending->conn->port_num, &pending->head, pending->mad);
}

static void timer_ready(struct watch *watch)
{
	struct host *host = container_of(watch, struct host, timer);
	struct pending *pending;
	uint64_t count, now = clock_ns();

	if (read(watch->fd, &count, sizeof(count)) < 0)
		return;
	list_for_each_entry_safe (pending, &host->pending, link) {
		if (pending->deadline_ns > now)
			continue;
		if (pending->retries)
			resend_request(host, pending, now);
		else
			give_up(host, pending);
	}
	if (!rmpp_expire(host, now) && list_is_empty(&host->pending))
		set_timer(host, 0);
}

static int open_listener(struct host *host, struct listener *listener)
{
	char path[FAB_PATH_BYTES];
	int fd;

	fab_folder_umad(&host->folder, listener->port_num, path);
	fd = fab_folder_bind(path, SOCK_SEQPACKET);
	if (fd < 0)
		return fd;
	if (listen(fd, 128))
		return -errno;
	return loop_watch(&host->loop, &listener->watch, fd, EPOLLIN, listener_ready);
}

int agents_open(struct host *host)
{
	unsigned int i;
	int fd, err;

	fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	err = loop_watch(&host->loop, &host->timer, fd, EPOLLIN, timer_ready);
	for (i = 0; !err && i < host->page->n_ports; i++) {
		host->listener[i].host = host;
		host->listener[i].port_num = (uint8_t)(i + 1);
		err = open_listener(host, &host->listener[i]);
	}
	return err;
}

void agents_close(struct host *host)
{
	while (!list_is_empty(&host->conns))
		close_conn(host, container_of(host->conns.next, struct conn, link));
}

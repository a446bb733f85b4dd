/* SPDX-License-Identifier: BSD-2-Clause */
/* The steps that many parity scenarios share; see steps.h. */
#include <arpa/inet.h>
#include <poll.h>
#include <stdarg.h>

#include "steps.h"

#define NO_HOST_MAC "02:00:00:00:00:99"

static struct sockaddr *next_buffer(void)
{
	static struct sockaddr_storage buffers[8];
	static size_t turn;

	turn = (turn + 1) % 8;
	memset(&buffers[turn], 0, sizeof(buffers[turn]));
	return (void *)&buffers[turn];
}

struct sockaddr *at(const struct sockaddr_storage *addr, uint16_t port)
{
	struct sockaddr *out = next_buffer();

	memcpy(out, addr, sizeof(*addr));
	/* The port is at the same offset in both families. */
	((struct sockaddr_in *)(void *)out)->sin_port = htons(port);
	return out;
}

struct sockaddr *numeric(const char *text, uint16_t port)
{
	struct sockaddr_storage addr = { 0 };

	if (inet_pton(AF_INET, text, &((struct sockaddr_in *)&addr)->sin_addr) == 1)
		addr.ss_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &((struct sockaddr_in6 *)&addr)->sin6_addr) == 1)
		addr.ss_family = AF_INET6;
	else
		give_up("%s is not an address", text);
	return at(&addr, port);
}

struct sockaddr *any(const struct scene *s, uint16_t port)
{
	return numeric(s->family == AF_INET ? "0.0.0.0" : "::", port);
}

struct sockaddr *loopback(const struct scene *s, uint16_t port)
{
	return numeric(s->family == AF_INET ? "127.0.0.1" : "::1", port);
}

struct sockaddr *beside(const struct scene *s, uint8_t last, uint16_t port)
{
	struct sockaddr *addr = at(&s->peer, port);

	if (s->family == AF_INET)
		((uint8_t *)&((struct sockaddr_in *)(void *)addr)->sin_addr)[3] = last;
	else
		((struct sockaddr_in6 *)(void *)addr)->sin6_addr.s6_addr[15] = last;
	return addr;
}

struct rdma_cm_id *open_id(struct scene *s, const char *label, enum rdma_port_space ps)
{
	struct rdma_cm_id *id;

	if (!s->channel)
		open_channel(s);
	if (rdma_create_id(s->channel, &id, (void *)(uintptr_t)label, ps))
		give_up("rdma_create_id: %s", strerror(errno));
	assign_id_name(id, label);
	return id;
}

void close_id(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	if (rdma_destroy_id(id))
		give_up("rdma_destroy_id: %s", strerror(errno));
}

struct rdma_cm_event *get_event(struct rdma_event_channel *channel, int patience_ms)
{
	struct pollfd pfd = { .fd = channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;

	if (poll(&pfd, 1, patience_ms) != 1)
		give_up("no event within %d s", patience_ms / 1000);
	if (rdma_get_cm_event(channel, &event))
		give_up("rdma_get_cm_event: %s", strerror(errno));
	return event;
}

struct rdma_cm_event *wait_event_for(struct rdma_event_channel *channel, int patience_ms)
{
	struct rdma_cm_event *event = get_event(channel, patience_ms);

	show_event(event);
	return event;
}

struct rdma_cm_event *wait_event(struct rdma_event_channel *channel)
{
	return wait_event_for(channel, PATIENCE_MS);
}

void take_event(struct scene *s)
{
	rdma_ack_cm_event(wait_event(s->channel));
}

/* NULL stands for a request's new id. */
static bool belongs_to(const struct rdma_cm_event *event, const struct rdma_cm_id *id)
{
	return id ? event->id == id : event->event == RDMA_CM_EVENT_CONNECT_REQUEST;
}

void take_each(struct scene *s, struct rdma_cm_id **ids, size_t n, int patience_ms)
{
	struct rdma_cm_event *events[EACH_MAX] = { 0 }, *event;
	size_t i, taken;

	for (taken = 0; taken < n; taken++) {
		event = get_event(s->channel, patience_ms);
		for (i = 0; i < n && (events[i] || !belongs_to(event, ids[i])); i++)
			;
		if (i == n) {
			show_event(event);
			give_up("after %zu of %zu ids' events", taken, n);
		}
		events[i] = event;
	}
	for (i = 0; i < n; i++) {
		show_event(events[i]);
		ids[i] = events[i]->id;
		rdma_ack_cm_event(events[i]);
	}
}

void expect_event(struct scene *s, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = get_event(s->channel, PATIENCE_MS);

	if (event->event != type) {
		show_event(event);
		give_up("%s was to come", rdma_event_str(type));
	}
	rdma_ack_cm_event(event);
}

bool is_ready(const struct rdma_event_channel *channel, int wait_ms)
{
	struct pollfd pfd = { .fd = channel->fd, .events = POLLIN };

	return poll(&pfd, 1, wait_ms) > 0;
}

void show_quiet(struct rdma_event_channel *channel)
{
	SAY("%s", is_ready(channel, QUIET_MS) ? "an event is waiting" : "no event comes");
}

void resolve(struct scene *s, struct rdma_cm_id *id, uint16_t port)
{
	if (rdma_resolve_addr(id, NULL, at(&s->peer, port), RESOLVE_MS))
		give_up("rdma_resolve_addr: %s", strerror(errno));
	expect_event(s, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (rdma_resolve_route(id, RESOLVE_MS))
		give_up("rdma_resolve_route: %s", strerror(errno));
	expect_event(s, RDMA_CM_EVENT_ROUTE_RESOLVED);
	has_flow_of_ports(rdma_get_src_port(id), rdma_get_dst_port(id));
}

struct rdma_cm_id *listen_here(struct scene *s, enum rdma_port_space ps, int backlog)
{
	struct rdma_cm_id *id = open_id(s, "listener", ps);

	if (rdma_bind_addr(id, any(s, s->port)))
		give_up("rdma_bind_addr: %s", strerror(errno));
	if (rdma_listen(id, backlog))
		give_up("rdma_listen: %s", strerror(errno));
	meet(s);
	return id;
}

struct rdma_cm_id *dial_ready(struct scene *s, enum rdma_port_space ps)
{
	struct rdma_cm_id *id = open_id(s, "client", ps);

	meet(s);
	resolve(s, id, s->port);
	return id;
}

struct rdma_cm_id *wait_request(struct scene *s)
{
	struct rdma_cm_event *event = get_event(s->channel, PATIENCE_MS);
	struct rdma_cm_id *id = event->id;

	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
		show_event(event);
		give_up("CONNECT_REQUEST was to come");
	}
	rdma_ack_cm_event(event);
	assign_id_name(id, "child");
	/* The active side's port is the child's destination. */
	has_flow_of_ports(rdma_get_dst_port(id), rdma_get_src_port(id));
	return id;
}

void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = id->qp_type,
		.cap = { .max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1 },
		.sq_sig_all = 1,
	};

	if (rdma_create_qp(id, NULL, &attr))
		give_up("rdma_create_qp: %s", strerror(errno));
}

uint32_t unused_qpn(void)
{
	static uint8_t count;

	return 0x800000 | ((uint32_t)getpid() << 8 & 0x7fff00) | count++;
}

struct rdma_conn_param usual_param(const char *text)
{
	return (struct rdma_conn_param){
		.private_data = text,
		.private_data_len = text ? (uint8_t)strlen(text) : 0,
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
}

struct rdma_cm_id *dial(struct scene *s)
{
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_TCP);
	struct rdma_conn_param param = usual_param("hello");

	make_qp(id);
	if (rdma_connect(id, &param))
		give_up("rdma_connect: %s", strerror(errno));
	expect_event(s, RDMA_CM_EVENT_ESTABLISHED);
	meet(s);
	return id;
}

struct rdma_cm_id *accept_request(struct scene *s)
{
	struct rdma_cm_id *id = wait_request(s);
	struct rdma_conn_param param = usual_param("welcome");

	make_qp(id);
	if (rdma_accept(id, &param))
		give_up("rdma_accept: %s", strerror(errno));
	expect_event(s, RDMA_CM_EVENT_ESTABLISHED);
	return id;
}

struct rdma_cm_id *answer(struct scene *s)
{
	struct rdma_cm_id *id = accept_request(s);

	meet(s);
	return id;
}

void show_qp_state(const struct rdma_cm_id *id)
{
	static const char *const names[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (ibv_query_qp(id->qp, &attr, IBV_QP_STATE, &init))
		give_up("ibv_query_qp: %s", strerror(errno));
	SAY("%s queue pair is in %s", id_name(id), attr.qp_state <= 6 ? names[attr.qp_state] : "?");
}

void shell(const char *format, ...)
{
	char command[512];
	va_list args;
	int result;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	result = system(command);
	if (result)
		give_up("exit status %d of: %s", result, command);
}

void pause_ms(unsigned ms)
{
	usleep(ms * 1000);
}

static const char *peer_text(const struct scene *s)
{
	static char text[INET6_ADDRSTRLEN];
	const void *raw =
		s->family == AF_INET
			? (const void *)&((const struct sockaddr_in *)&s->peer)->sin_addr
			: (const void *)&((const struct sockaddr_in6 *)&s->peer)->sin6_addr;

	inet_ntop(s->family, raw, text, sizeof(text));
	return text;
}

void lose_peer(const struct scene *s)
{
	shell("ip neigh replace %s lladdr %s nud permanent dev eth0", peer_text(s), NO_HOST_MAC);
}

void find_peer(const struct scene *s)
{
	shell("ip neigh del %s dev eth0", peer_text(s));
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls that scripts may have, and those that are left out, with the reason. */
#include <arpa/inet.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/time.h>

#include "player.h"

#define LEFT_OUT   INT_MIN
#define NO_RESULT  (INT_MIN + 1)
#define TIMEOUT_MS 300

static int skip_call(const char *why)
{
	printf(" not made: %s\n", why);
	return LEFT_OUT;
}

static struct slot *slot_named(struct play *p, const char *word)
{
	return &p->slots[(unsigned)atoi(word + 1) % N_SLOTS];
}

static struct rdma_event_channel *channel_named(struct play *p, const char *word)
{
	return *word == 'c' ? p->channels[(unsigned)atoi(word + 1) % N_CHANNELS] : NULL;
}

/* Whether an id has a channel of its own, or none. */
static bool is_sync(const struct play *p, const struct rdma_cm_id *id)
{
	return id->channel != p->channels[0] && id->channel != p->channels[1];
}

static int create(struct play *p)
{
	struct slot *slot = slot_named(p, p->words[1]);
	struct rdma_cm_id *id;

	if (slot->id)
		return skip_call("there is one");
	if (rdma_create_id(channel_named(p, p->words[2]), &id, NULL, space_of(p->words[3])))
		return -1;
	put_in_slot(p, slot - p->slots, id)->id->context = slot->label;
	return 0;
}

/* Whether an event of an id is not acknowledged, be it in another id: a call that waits for that
 * would wait for ever. */
static bool is_awaited(struct play *p, const struct rdma_cm_id *id)
{
	const struct rdma_cm_event *event = p->held;
	int i;

	for (i = 0; i < N_SLOTS; i++)
		if (p->slots[i].id && p->slots[i].id->event &&
		    p->slots[i].id->event->listen_id == id)
			return true;
	return event && (event->listen_id ? event->listen_id : event->id) == id;
}

static int destroy(struct play *p)
{
	struct rdma_cm_id *id = p->slot->id;

	if (is_awaited(p, id))
		return skip_call("an event is not acknowledged");
	if (id->qp && strcmp(p->words[2], "bare"))
		rdma_destroy_qp(id);
	if (id->srq)
		rdma_destroy_srq(id);
	p->slot->id = NULL;
	return AWAIT(p, rdma_destroy_id(id));
}

static int destroy_ep(struct play *p)
{
	struct rdma_cm_id *id = p->slot->id;

	if (is_awaited(p, id))
		return skip_call("an event is not acknowledged");
	p->slot->id = NULL;
	rdma_destroy_ep(id);
	return 0;
}

static int show_devices(struct play *p)
{
	struct ibv_context **devices;
	int n;

	(void)p;
	devices = rdma_get_devices(&n);
	printf(" %d", devices ? n : -1);
	rdma_free_devices(devices);
	return devices ? 0 : -1;
}

static int migrate(struct play *p)
{
	const struct rdma_event_channel *channel = p->slot->id->channel;
	struct pollfd waiting = { .fd = channel ? channel->fd : -1, .events = POLLIN };

	if (is_awaited(p, p->slot->id))
		return skip_call("an event is not acknowledged");
	if (p->slot->listens && poll(&waiting, 1, 0))
		return skip_call("stock loses requests that wait");
	return rdma_migrate_id(p->slot->id, channel_named(p, p->words[2]));
}

static int bind_id(struct play *p)
{
	return rdma_bind_addr(p->slot->id, address_of(p->words[2], p->words[3], p->slot->id->ps));
}

static int listen_id(struct play *p)
{
	int result = rdma_listen(p->slot->id, atoi(p->words[2]));

	p->slot->listens |= !result;
	return result;
}

static int resolve_addr(struct play *p)
{
	struct rdma_cm_id *id = p->slot->id;

	if (p->slot->routed)
		return skip_call("with a route, Linux 6.1 has a BUG in _destroy_id() afterwards");
	return rdma_resolve_addr(id, address_of(p->words[2], "0", id->ps),
				 address_of(p->words[3], p->words[4], id->ps), TIMEOUT_MS);
}

static int resolve_route(struct play *p)
{
	int result;

	if (!p->slot->id->verbs)
		return skip_call("stock reads id->verbs");
	result = rdma_resolve_route(p->slot->id, TIMEOUT_MS);
	p->slot->routed |= !result;
	return result;
}

static int create_qp(struct play *p)
{
	struct ibv_qp_init_attr attr;

	if (!p->slot->id->pd)
		return skip_call("stock reads id->pd");
	queue_pair_of(p->words[2], &attr);
	if (strcmp(p->words[3], "ex"))
		return rdma_create_qp(p->slot->id, NULL, &attr);
	return rdma_create_qp_ex(p->slot->id, &(struct ibv_qp_init_attr_ex){
						      .qp_type = attr.qp_type,
						      .cap = attr.cap,
						      .sq_sig_all = attr.sq_sig_all,
						      .comp_mask = IBV_QP_INIT_ATTR_PD,
						      .pd = p->slot->id->pd,
					      });
}

static int destroy_qp(struct play *p)
{
	if (!p->slot->id->qp)
		return skip_call("stock reads id->qp");
	rdma_destroy_qp(p->slot->id);
	return 0;
}

static int create_srq(struct play *p)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 4, .max_sge = 1 } };

	if (!p->slot->id->pd)
		return skip_call("stock reads id->pd");
	if (p->slot->id->srq)
		return skip_call("there is one");
	if (strcmp(p->words[2], "ex"))
		return rdma_create_srq(p->slot->id, NULL, &attr);
	return rdma_create_srq_ex(p->slot->id, &(struct ibv_srq_init_attr_ex){
						       .attr = attr.attr,
						       .comp_mask = IBV_SRQ_INIT_ATTR_TYPE,
						       .srq_type = IBV_SRQT_BASIC,
					       });
}

static int connect_id(struct play *p)
{
	struct rdma_conn_param *param = param_of(p->words[2]);
	struct rdma_cm_id *id = p->slot->id;
	const struct sockaddr_in *dst = (void *)&id->route.addr.dst_addr;
	int result;

	if (!id->verbs)
		return skip_call("stock reads the device's limits");
	if (dst->sin_family == AF_INET && dst->sin_addr.s_addr == htonl(INADDR_LOOPBACK))
		return skip_call("a connection to loopback may stop QP1 of rxe");
	if (!param && !id->qp && id->ps != RDMA_PS_TCP && id->ps != RDMA_PS_UDP)
		return skip_call("stock reads the parameters");
	result = AWAIT(p, rdma_connect(id, param));
	p->slot->connecting = !result || errno == EINTR;
	return result;
}

static int accept_id(struct play *p)
{
	struct rdma_conn_param *param = param_of(p->words[2]);
	int result;

	if (!p->slot->id->verbs)
		return skip_call("stock reads the device's limits");
	if (!p->slot->is_request)
		return skip_call("stock reads a request");
	if (p->slot->connecting)
		return skip_call("it rejects, and rdma_destroy_id() would take minutes");
	if (!param && !p->slot->id->qp)
		return skip_call("stock reads the parameters");
	result = AWAIT(p, rdma_accept(p->slot->id, param));
	p->slot->connecting = !result || errno == EINTR;
	return result;
}

static int reject(struct play *p)
{
	static const char data[256] = "no";

	if (p->slot->connecting)
		return skip_call("rdma_destroy_id() would take minutes");
	if (!strcmp(p->words[2], "ece"))
		return rdma_reject_ece(p->slot->id, NULL, 0);
	return rdma_reject(p->slot->id, data, atoi(p->words[2]));
}

static int establish(struct play *p)
{
	if (p->slot->connecting && !p->slot->has_response)
		return skip_call("it rejects, and rdma_destroy_id() would take minutes");
	return AWAIT(p, rdma_establish(p->slot->id));
}

static int notify(struct play *p)
{
	return rdma_notify(p->slot->id, !strcmp(p->words[2], "est")   ? IBV_EVENT_COMM_EST
					: !strcmp(p->words[2], "mig") ? IBV_EVENT_PATH_MIG
								      : IBV_EVENT_SQ_DRAINED);
}

/* Messages have no bytes: they need no memory. */
static int post_receive(struct play *p)
{
	const struct rdma_cm_id *id = p->slot->id;
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;

	if (!id->srq && !id->qp)
		return skip_call("without a queue");
	return rdma_seterrno(id->srq ? ibv_post_srq_recv(id->srq, &wr, &bad)
				     : ibv_post_recv(id->qp, &wr, &bad));
}

static int post_send(struct play *p)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_qp *qp = p->slot->id->qp;

	if (!qp || qp->qp_type == IBV_QPT_UD)
		return skip_call("without a connected queue pair");
	return rdma_seterrno(ibv_post_send(qp, &wr, &bad));
}

static int poll_queues(struct play *p)
{
	struct ibv_cq *cqs[2] = { p->slot->id->send_cq, p->slot->id->recv_cq };
	struct ibv_wc wc;
	int i;

	putchar('\n');
	for (i = 0; i < 2; i++)
		while (cqs[i] && ibv_poll_cq(cqs[i], 1, &wc) > 0)
			SAY("  %s: %s", i ? "received" : "sent", ibv_wc_status_str(wc.status));
	return NO_RESULT;
}

static int join(struct play *p)
{
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER,
		.addr = address_of(p->words[2], "0", p->slot->id->ps),
	};

	if (!p->slot->id->verbs)
		return skip_call("without a device");
	if (!strcmp(p->words[3], "sendonly"))
		attr.join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER;
	if (!strcmp(p->words[3], "plain"))
		return rdma_join_multicast(p->slot->id, attr.addr, p->slot->label);
	return rdma_join_multicast_ex(p->slot->id, &attr, p->slot->label);
}

static int leave(struct play *p)
{
	const struct rdma_cm_event *event = p->slot->id->event;

	if ((event && event->event >= RDMA_CM_EVENT_MULTICAST_JOIN) || p->held)
		return skip_call("it would wait for ever for an event");
	return rdma_leave_multicast(p->slot->id, address_of(p->words[2], "0", p->slot->id->ps));
}

static int set_option(struct play *p)
{
	static const struct {
		const char *word;
		int level, name;
		size_t size;
	} options[] = {
		{ "tos", RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 1 },
		{ "reuse", RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 4 },
		{ "afonly", RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, 4 },
		{ "ack", RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 1 },
		{ "short", RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 2 },
		{ "path", RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, 0 },
		{ "name", RDMA_OPTION_ID, 9, 4 },
		{ "level", 7, 0, 4 },
	};
	int value = atoi(p->words[3]);
	size_t i;

	for (i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (!strcmp(p->words[2], options[i].word))
			return rdma_set_option(p->slot->id, options[i].level, options[i].name,
					       &value, options[i].size);
	return skip_call("no such option");
}

static int init_attr(struct play *p)
{
	struct ibv_qp_attr attr = { .qp_state = atoi(p->words[2]) };
	int mask = 0, result = rdma_init_qp_attr(p->slot->id, &attr, &mask);

	show_call("", result);
	if (!result)
		show_qp_attr(&attr, mask);
	return NO_RESULT;
}

static in_port_t port_of(const struct sockaddr *addr)
{
	return ((const struct sockaddr_in *)addr)->sin_port;
}

static int show_ports(struct play *p)
{
	SAY(" -> as in the addresses: %d %d",
	    rdma_get_src_port(p->slot->id) == port_of(rdma_get_local_addr(p->slot->id)),
	    rdma_get_dst_port(p->slot->id) == port_of(rdma_get_peer_addr(p->slot->id)));
	show_address("local", rdma_get_local_addr(p->slot->id));
	show_address("remote", rdma_get_peer_addr(p->slot->id));
	return NO_RESULT;
}

static int ece(struct play *p)
{
	struct ibv_ece ece = { .vendor_id = atoi(p->words[2]), .options = 5 };
	int result;

	if (strcmp(p->words[2], "get"))
		return rdma_set_local_ece(p->slot->id, &ece);
	result = rdma_get_remote_ece(p->slot->id, &ece);
	show_call("", result);
	if (!result)
		printf("  ece %#x %#x %#x\n", ece.vendor_id, ece.options, ece.comp_mask);
	return NO_RESULT;
}

/* Words: host, port, port space, flags. */
static int get_info(char **words, struct rdma_addrinfo **info)
{
	struct sockaddr *addr = address_of(words[0], words[1], RDMA_PS_TCP);
	enum rdma_port_space ps = space_of(words[2]);
	char host[INET6_ADDRSTRLEN], port[8];
	struct rdma_addrinfo hints = {
		.ai_port_space = ps,
		.ai_flags = atoi(words[3]),
		.ai_qp_type = ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB ? IBV_QPT_UD : 0,
	};

	if (addr && addr->sa_family == AF_INET)
		inet_ntop(AF_INET, &((struct sockaddr_in *)addr)->sin_addr, host, sizeof(host));
	else if (addr && addr->sa_family == AF_INET6)
		inet_ntop(AF_INET6, &((struct sockaddr_in6 *)addr)->sin6_addr, host, sizeof(host));
	else
		addr = NULL;
	snprintf(port, sizeof(port), "%u",
		 words[1][0] == 'p' ? base_port + (unsigned)atoi(words[1] + 1) : 0u);
	return rdma_getaddrinfo(addr ? host : NULL, words[1][0] == '-' ? NULL : port, &hints, info);
}

static int get_addrinfo(struct play *p)
{
	struct rdma_addrinfo *info;
	int result = get_info(p->words + 1, &info);

	if (result)
		printf(" -> failed\n");
	else
		printf(" -> 0\n");
	if (result)
		return NO_RESULT;
	show_info(info);
	rdma_freeaddrinfo(info);
	return NO_RESULT;
}

/* Words: id, host, port, port space, flags, queue pair. */
static int create_ep(struct play *p)
{
	struct slot *slot = slot_named(p, p->words[1]);
	bool has_qp = strcmp(p->words[6], "-");
	struct ibv_qp_init_attr attr;
	struct rdma_addrinfo *info;
	struct rdma_cm_id *id;
	int result;

	if (slot->id)
		return skip_call("there is one");
	if (get_info(p->words + 2, &info))
		return skip_call("no address");
	queue_pair_of(p->words[6], &attr);
	result = rdma_create_ep(&id, info, NULL, has_qp ? &attr : NULL);
	if (!result)
		put_in_slot(p, slot - p->slots, id)->routed = !(atoi(p->words[5]) & RAI_PASSIVE);
	rdma_freeaddrinfo(info);
	return result;
}

static int get_request(struct play *p)
{
	struct rdma_cm_id *id;
	int result = AWAIT(p, rdma_get_request(p->slot->id, &id));

	show_call("", result);
	if (!result && !take_slot(p, id))
		rdma_destroy_id(id);
	if (!result && slot_of(p, id) && id->event)
		show_event(id->event);
	return NO_RESULT;
}

enum {
	NEW = 1,   /* makes an id, or needs none */
	QUIET = 2, /* no event follows, and nothing reaches a peer */
};

static const struct {
	const char *word;
	int (*make)(struct play *);
	int (*call)(struct rdma_cm_id *); /* instead */
	unsigned flags;
} calls[] = {
	{ "create", create, NULL, NEW | QUIET },
	{ "destroy", destroy, NULL, 0 },
	{ "destroyep", destroy_ep, NULL, 0 },
	{ "devices", show_devices, NULL, NEW | QUIET },
	{ "bind", bind_id, NULL, QUIET },
	{ "listen", listen_id, NULL, QUIET },
	{ "addr", resolve_addr, NULL, 0 },
	{ "route", resolve_route, NULL, 0 },
	{ "qp", create_qp, NULL, QUIET },
	{ "delqp", destroy_qp, NULL, QUIET },
	{ "srq", create_srq, NULL, QUIET },
	{ "connect", connect_id, NULL, 0 },
	{ "accept", accept_id, NULL, 0 },
	{ "reject", reject, NULL, 0 },
	{ "establish", establish, NULL, 0 },
	{ "disconnect", NULL, rdma_disconnect, 0 },
	{ "notify", notify, NULL, 0 },
	{ "recv", post_receive, NULL, QUIET },
	{ "send", post_send, NULL, 0 },
	{ "poll", poll_queues, NULL, QUIET },
	{ "join", join, NULL, 0 },
	{ "leave", leave, NULL, 0 },
	{ "option", set_option, NULL, QUIET },
	{ "migrate", migrate, NULL, QUIET },
	{ "attr", init_attr, NULL, QUIET },
	{ "ports", show_ports, NULL, QUIET },
	{ "ece", ece, NULL, QUIET },
	{ "info", get_addrinfo, NULL, NEW | QUIET },
	{ "ep", create_ep, NULL, NEW },
	{ "request", get_request, NULL, 0 },
};

/* A call of a synchronous id that nobody answers ends with a signal. A storm is for others only:
 * when it interrupts a call that waits is chance. */
static void limit(const struct play *p, bool is_on)
{
	bool is_stormy = p->is_stormy && p->slot && p->slot->id && !is_sync(p, p->slot->id);
	unsigned us = !is_on ? 0 : is_stormy ? 500 : p->limit_ms * 1000;
	struct itimerval timer = {
		.it_value = { us / 1000000, us % 1000000 },
		.it_interval = { 0, is_stormy ? 500
				    : us      ? 200000
					      : 0 },
	};

	if (!is_in_thread())
		setitimer(ITIMER_REAL, &timer, NULL);
}

static void make_known(struct play *p, size_t i)
{
	int result;

	p->slot = calls[i].flags & NEW ? NULL : slot_named(p, p->words[1]);
	if (p->slot && !p->slot->id) {
		SAY(" no id");
		return;
	}
	if (p->slot && p->slot->is_busy) {
		SAY(" not made: the thread is in a call of it");
		return;
	}
	limit(p, true);
	set_idle(p, false);
	errno = 0;
	result = calls[i].make ? calls[i].make(p) : AWAIT(p, calls[i].call(p->slot->id));
	set_idle(p, true);
	limit(p, false);
	if (result != LEFT_OUT && result != NO_RESULT)
		show_call("", result);
	p->is_settled &= result == LEFT_OUT || calls[i].flags & QUIET;
	settle(p);
}

/* Whether a line has no consequences beyond its end. */
bool is_quiet(const char *line)
{
	size_t i, length;

	while (line[1] == ' ')
		line += 2;
	length = strcspn(line, " ");
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (!strncmp(line, calls[i].word, length) && !calls[i].word[length])
			return calls[i].flags & QUIET;
	return is_quiet_for_sockets(line);
}

bool make_call(struct play *p)
{
	size_t i;

	if (!strcmp(p->words[0], "events") || !strcmp(p->words[0], "wait")) {
		take_events(p, channel_named(p, p->words[1]), p->words[0][0] == 'w');
		return true;
	}
	if (!strncmp(p->words[0], "s:", 2)) {
		make_socket_call(p);
		return true;
	}
	if (!strcmp(p->words[0], "hold")) {
		hold_event(p, channel_named(p, p->words[1]));
		return true;
	}
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (strcmp(p->words[0], calls[i].word))
			continue;
		make_known(p, i);
		return true;
	}
	fprintf(stderr, "player: no such call: %s\n", p->words[0]);
	return false;
}

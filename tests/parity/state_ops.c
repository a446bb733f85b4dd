/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls that states.c makes in every state; see state_ops.h. */
#include "state_ops.h"
#include "steps.h"

static int bind_own_address(struct scene *s, struct rdma_cm_id *id)
{
	return rdma_bind_addr(id, at(&s->self, 0));
}

static int resolve_address(struct scene *s, struct rdma_cm_id *id)
{
	return rdma_resolve_addr(id, NULL, at(&s->peer, s->port), RESOLVE_MS);
}

static int resolve_route(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return rdma_resolve_route(id, RESOLVE_MS);
}

static int listen_on(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return rdma_listen(id, 3);
}

static int connect_with_param(struct scene *s, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = usual_param(NULL);

	(void)s;
	param.qp_num = unused_qpn();
	return rdma_connect(id, &param);
}

static int connect_without_param(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return rdma_connect(id, NULL);
}

static int accept_with_param(struct scene *s, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = usual_param(NULL);

	(void)s;
	param.qp_num = unused_qpn();
	return rdma_accept(id, &param);
}

static int reject(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return rdma_reject(id, "no", 2);
}

static int reject_ece(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return rdma_reject_ece(id, "no", 2);
}

static int disconnect(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return rdma_disconnect(id);
}

static int notify_established(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return rdma_notify(id, IBV_EVENT_COMM_EST);
}

static int notify_migrated(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return rdma_notify(id, IBV_EVENT_PATH_MIG);
}

static int notify_fatal(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return rdma_notify(id, IBV_EVENT_QP_FATAL);
}

static int establish(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return rdma_establish(id);
}

static int init_attr(struct rdma_cm_id *id, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask = 0, result = rdma_init_qp_attr(id, &attr, &mask);

	if (!result)
		show_qp_attr(&attr, mask);
	return result;
}

static int init_to_init(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return init_attr(id, IBV_QPS_INIT);
}

static int init_to_rtr(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return init_attr(id, IBV_QPS_RTR);
}

static int init_to_rts(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return init_attr(id, IBV_QPS_RTS);
}

static int init_to_error(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return init_attr(id, IBV_QPS_ERR);
}

static int init_beyond_error(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return init_attr(id, IBV_QPS_ERR + 1);
}

static int set_byte(struct rdma_cm_id *id, int option)
{
	uint8_t value = 9;

	return rdma_set_option(id, RDMA_OPTION_ID, option, &value, sizeof(value));
}

static int set_int(struct rdma_cm_id *id, int option, int value)
{
	return rdma_set_option(id, RDMA_OPTION_ID, option, &value, sizeof(value));
}

static int set_tos(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return set_byte(id, RDMA_OPTION_ID_TOS);
}

static int set_ack_timeout(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return set_byte(id, RDMA_OPTION_ID_ACK_TIMEOUT);
}

static int set_reuse(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return set_int(id, RDMA_OPTION_ID_REUSEADDR, 1);
}

static int clear_reuse(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return set_int(id, RDMA_OPTION_ID_REUSEADDR, 0);
}

static int set_afonly(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return set_int(id, RDMA_OPTION_ID_AFONLY, 1);
}

static int join(struct scene *s, struct rdma_cm_id *id)
{
	return rdma_join_multicast(id, numeric("239.1.2.3", 0), s);
}

static int leave(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return rdma_leave_multicast(id, numeric("239.1.2.3", 0));
}

static int migrate(struct scene *s, struct rdma_cm_id *id)
{
	return rdma_migrate_id(id, s->channel);
}

const struct state_op state_ops[] = {
	{ "bind", bind_own_address, 0 },
	{ "resolve_addr", resolve_address, 0 },
	{ "resolve_route", resolve_route, NEEDS_DEVICE },
	{ "listen", listen_on, 0 },
	{ "connect", connect_with_param, NEEDS_DEVICE },
	{ "connect without param", connect_without_param, NEEDS_DEVICE },
	{ "accept", accept_with_param, ACCEPTS | NEEDS_DEVICE | ENDS_REQUEST },
	{ "reject", reject, ENDS_REQUEST },
	{ "reject_ece", reject_ece, ENDS_REQUEST },
	{ "disconnect", disconnect, 0 },
	{ "notify COMM_EST", notify_established, 0 },
	{ "notify PATH_MIG", notify_migrated, USES_ALTERNATE },
	{ "notify QP_FATAL", notify_fatal, 0 },
	{ "establish", establish, ENDS_REQUEST },
	{ "init_qp_attr INIT", init_to_init, 0 },
	{ "init_qp_attr RTR", init_to_rtr, 0 },
	{ "init_qp_attr RTS", init_to_rts, 0 },
	{ "init_qp_attr ERR", init_to_error, 0 },
	{ "init_qp_attr ERR+1", init_beyond_error, 0 },
	{ "option TOS", set_tos, 0 },
	{ "option ACK_TIMEOUT", set_ack_timeout, 0 },
	{ "option REUSEADDR 1", set_reuse, 0 },
	{ "option REUSEADDR 0", clear_reuse, 0 },
	{ "option AFONLY", set_afonly, 0 },
	{ "join_multicast", join, 0 },
	{ "leave_multicast", leave, 0 },
	{ "migrate to the same channel", migrate, 0 },
	{ NULL, NULL, 0 },
};

void run_state_op(const struct state_op *op, struct scene *s, struct rdma_cm_id *id, unsigned avoid)
{
	const bool request = op->flags & ACCEPTS && !strcmp(id_name(id), "child");
	int result;

	if (!id->verbs)
		avoid |= NEEDS_DEVICE;
	if (op->flags & avoid) {
		SAY("%s not tried: see state_ops.h", op->name);
		return;
	}
	errno = 0;
	result = op->call(s, id);
	show_call(op->name, result);
	if (request && !result)
		take_event(s);
}

struct remains {
	int verbs, pd, port_num, num_paths, event, qp, state, access_flags;
	struct sockaddr_storage src, dst; /* without ports, which may be ephemeral */
};

static struct remains remains_of(const struct rdma_cm_id *id)
{
	const struct rdma_addr *addr = &id->route.addr;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct remains now;

	memset(&now, 0, sizeof(now));
	now.verbs = !!id->verbs;
	now.pd = !!id->pd;
	now.port_num = id->port_num;
	now.num_paths = id->route.num_paths;
	now.event = !!id->event;
	now.src = addr->src_storage;
	now.dst = addr->dst_storage;
	((struct sockaddr_in *)&now.src)->sin_port = 0;
	((struct sockaddr_in *)&now.dst)->sin_port = 0;
	if (id->qp && ibv_query_qp(id->qp, &attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS, &init))
		give_up("ibv_query_qp: %s", strerror(errno));
	now.qp = !!id->qp;
	if (id->qp) {
		now.state = attr.qp_state;
		now.access_flags = (int)attr.qp_access_flags;
	}
	return now;
}

void show_remains(const struct rdma_cm_id *id)
{
	static struct remains last;
	const struct remains now = remains_of(id);

	if (memcmp(&now, &last, sizeof(now)) == 0)
		return;
	last = now;
	SAY("  verbs %d pd %d port_num %d paths %d event %d", now.verbs, now.pd, now.port_num,
	    now.num_paths, now.event);
	show_address("src", &id->route.addr.src_addr);
	show_address("dst", &id->route.addr.dst_addr);
	if (!id->qp)
		return;
	show_qp_state(id);
	SAY("  access_flags %#x", now.access_flags);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parity scenarios: meaningless calls, one row each, each made in a process of its own on an id in
 * the state that the row needs. Calls that crash stock are omitted; all others fail with the same
 * errno in this library.
 */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "bad.h"
#include "parity.h"
#include "show.h"
#include "steps.h"

static struct ibv_qp_init_attr qp_init(enum ibv_qp_type type, uint32_t n_wr)
{
	return (struct ibv_qp_init_attr){
		.cap = { n_wr, n_wr, 1, 1, 0 },
		.qp_type = type,
	};
}

/* rdma_create_id() and endpoints */

static int id_of_unknown_space(struct scene *s, struct rdma_cm_id *id)
{
	struct rdma_cm_id *other;

	(void)id;
	return rdma_create_id(s->channel, &other, NULL, (enum rdma_port_space)BEYOND);
}

static int endpoint_without_a_queue_pair_type(struct scene *s, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = qp_init((enum ibv_qp_type)BEYOND, 1);
	struct rdma_addrinfo *info = NULL, hints = { .ai_port_space = RDMA_PS_TCP };
	struct rdma_cm_id *ep = NULL;
	int ret, err;

	(void)id;
	hints.ai_flags = RAI_PASSIVE;
	hints.ai_src_addr = at(&s->self, 0);
	hints.ai_src_len = sizeof(struct sockaddr_storage);
	if (rdma_getaddrinfo(NULL, NULL, &hints, &info))
		return -1;
	info->ai_qp_type = BEYOND;
	ret = rdma_create_ep(&ep, info, NULL, &init);
	err = errno;
	if (!ret)
		rdma_destroy_ep(ep);
	rdma_freeaddrinfo(info);
	errno = err;
	return ret;
}

/* addresses */

static int bind_short_family(struct scene *s, struct rdma_cm_id *id)
{
	struct sockaddr addr = { .sa_family = BEYOND };

	(void)s;
	return rdma_bind_addr(id, &addr);
}

static int resolve_without_address(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return rdma_resolve_addr(id, NULL, NULL, RESOLVE_MS);
}

static int resolve_with_negative_timeout(struct scene *s, struct rdma_cm_id *id)
{
	return rdma_resolve_addr(id, NULL, at(&s->peer, 1), -1);
}

static int route_with_negative_timeout(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return rdma_resolve_route(id, -1);
}

static int route_without_time(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return rdma_resolve_route(id, 0);
}

/* listening */

static int listen_with_a_huge_backlog(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return rdma_listen(id, HUGE);
}

static int request_of_an_asynchronous_id(struct scene *s, struct rdma_cm_id *id)
{
	struct rdma_cm_id *child;

	(void)s;
	return rdma_get_request(id, &child);
}

/* queue pairs */

static int queue_pair_of_no_type(struct scene *s, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = qp_init((enum ibv_qp_type)BEYOND, 1);

	(void)s;
	return rdma_create_qp(id, NULL, &init);
}

static int queue_pair_without_end(struct scene *s, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = qp_init(IBV_QPT_RC, HUGE);

	(void)s;
	return rdma_create_qp(id, NULL, &init);
}

static int extended_queue_pair_with_every_bit(struct scene *s, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr_ex init = { .comp_mask = UINT32_MAX, .qp_type = IBV_QPT_RC };

	(void)s;
	return rdma_create_qp_ex(id, &init);
}

static int attributes_of_no_state(struct scene *s, struct rdma_cm_id *id)
{
	struct ibv_qp_attr attr = { .qp_state = (enum ibv_qp_state)BEYOND };
	int mask;

	(void)s;
	return rdma_init_qp_attr(id, &attr, &mask);
}

static int attributes_of_reset(struct scene *s, struct rdma_cm_id *id)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	int mask;

	(void)s;
	return rdma_init_qp_attr(id, &attr, &mask);
}

static int shared_queue_without_end(struct scene *s, struct rdma_cm_id *id)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = HUGE, .max_sge = HUGE } };

	(void)s;
	return rdma_create_srq(id, NULL, &init);
}

/* connections */

static int connect_with_missing_data(struct scene *s, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .private_data_len = 8 };

	(void)s;
	return rdma_connect(id, &param);
}

static int connect_without_parameters(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return rdma_connect(id, NULL);
}

static int reject_without_request(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return rdma_reject(id, "no", 2);
}

static int reject_with_ece_without_request(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return rdma_reject_ece(id, NULL, 0);
}

static int establish_without_reply(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return rdma_establish(id);
}

static int disconnect_without_connection(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return rdma_disconnect(id);
}

static int notify_without_event(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return rdma_notify(id, (enum ibv_event_type)BEYOND);
}

static int notify_of_a_dead_device(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return rdma_notify(id, IBV_EVENT_DEVICE_FATAL);
}

/* options */

static int option_of_no_level(struct scene *s, struct rdma_cm_id *id)
{
	int value = 0;

	(void)s;
	return rdma_set_option(id, BEYOND, RDMA_OPTION_ID_TOS, &value, sizeof(value));
}

static int option_of_no_name(struct scene *s, struct rdma_cm_id *id)
{
	int value = 0;

	(void)s;
	return rdma_set_option(id, RDMA_OPTION_ID, BEYOND, &value, sizeof(value));
}

static int option_without_a_value(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, NULL, 1);
}

static int option_of_no_length(struct scene *s, struct rdma_cm_id *id)
{
	uint8_t value = 0;

	(void)s;
	return rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &value, 0);
}

static int path_of_half_a_record(struct scene *s, struct rdma_cm_id *id)
{
	struct ibv_path_data path = { .flags = 0 };

	(void)s;
	return rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path, sizeof(path) / 2);
}

/* multicast */

static int join_a_group_of_no_family(struct scene *s, struct rdma_cm_id *id)
{
	struct sockaddr addr = { .sa_family = BEYOND };

	(void)s;
	return rdma_join_multicast(id, &addr, NULL);
}

static int join_without_a_mask(struct scene *s, struct rdma_cm_id *id)
{
	struct rdma_cm_join_mc_attr_ex attr = { .comp_mask = 0, .addr = at(&s->self, 0) };

	return rdma_join_multicast_ex(id, &attr, NULL);
}

static int join_without_flags(struct scene *s, struct rdma_cm_id *id)
{
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = BEYOND,
		.addr = at(&s->self, 0),
	};

	return rdma_join_multicast_ex(id, &attr, NULL);
}

static int leave_without_membership(struct scene *s, struct rdma_cm_id *id)
{
	return rdma_leave_multicast(id, at(&s->peer, 0));
}

/* events and address information */

static int get_request_without_pointer(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return rdma_get_request(id, NULL);
}

static int event_of_no_channel(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	(void)id;
	return rdma_ack_cm_event(NULL);
}

static int address_of_unknown_name(struct scene *s, struct rdma_cm_id *id)
{
	struct rdma_addrinfo *info;

	(void)s;
	(void)id;
	return rdma_getaddrinfo("no.such.host.invalid", NULL, NULL, &info) ? -1 : 0;
}

static int address_without_name(struct scene *s, struct rdma_cm_id *id)
{
	struct rdma_addrinfo *info;

	(void)s;
	(void)id;
	return rdma_getaddrinfo(NULL, NULL, NULL, &info);
}

static int context_without_options(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return rdma_set_local_ece(id, NULL);
}

static const struct bad_row rows[] = {
	ROW(id_of_unknown_space),
	ROW(endpoint_without_a_queue_pair_type),
	ROW(bind_short_family),
	ROW(resolve_without_address),
	ROW(resolve_with_negative_timeout),
	ROW_FROM(BOUND, route_with_negative_timeout),
	ROW_FROM(BOUND, route_without_time),
	ROW(listen_with_a_huge_backlog),
	ROW(request_of_an_asynchronous_id),
	ROW_FROM(BOUND, queue_pair_of_no_type),
	ROW_FROM(BOUND, queue_pair_without_end),
	ROW_FROM(BOUND, extended_queue_pair_with_every_bit),
	ROW(attributes_of_no_state),
	ROW(attributes_of_reset),
	ROW_FROM(BOUND, shared_queue_without_end),
	ROW_FROM(BOUND, connect_with_missing_data),
	ROW(connect_without_parameters),
	ROW(reject_without_request),
	ROW(reject_with_ece_without_request),
	ROW(establish_without_reply),
	ROW(disconnect_without_connection),
	ROW(notify_without_event),
	ROW(notify_of_a_dead_device),
	ROW(option_of_no_level),
	ROW(option_of_no_name),
	ROW(option_without_a_value),
	ROW(option_of_no_length),
	ROW(path_of_half_a_record),
	ROW(join_a_group_of_no_family),
	ROW(join_without_a_mask),
	ROW(join_without_flags),
	ROW(leave_without_membership),
	ROW(get_request_without_pointer),
	ROW(event_of_no_channel),
	ROW(address_of_unknown_name),
	ROW(address_without_name),
	ROW(context_without_options),
};

static void bring_to_state(struct scene *s, struct rdma_cm_id *id, enum progress progress)
{
	if (progress == BOUND && rdma_bind_addr(id, at(&s->self, 0)))
		give_up("rdma_bind_addr: %s", strerror(errno));
	if (progress != ROUTED)
		return;
	if (rdma_resolve_addr(id, NULL, at(&s->peer, 1), RESOLVE_MS))
		give_up("rdma_resolve_addr: %s", strerror(errno));
	rdma_ack_cm_event(get_event(s->channel, PATIENCE_MS));
	if (rdma_resolve_route(id, RESOLVE_MS))
		give_up("rdma_resolve_route: %s", strerror(errno));
	rdma_ack_cm_event(get_event(s->channel, PATIENCE_MS));
}

/* Return: how a process that makes the row's call ends, after printing the result. */
static int end_of(const struct bad_row *row, struct scene *s, enum progress progress)
{
	struct rdma_cm_id *id;
	pid_t child;
	int status;

	fflush(stdout);
	child = fork();
	if (child < 0)
		give_up("fork: %s", strerror(errno));
	if (child == 0) {
		s->channel =
			NULL; /* stock accepts a channel only from the process that created it */
		id = open_id(s, "id", RDMA_PS_TCP);
		bring_to_state(s, id, progress);
		errno = 0;
		show_call(row->what, row->call(s, id));
		close_id(id);
		fflush(stdout);
		_exit(0);
	}
	if (waitpid(child, &status, 0) != child)
		give_up("waitpid: %s", strerror(errno));
	return status;
}

static void make_calls(struct scene *s, enum progress progress, const struct bad_row *row, size_t n)
{
	int status;

	for (; n--; row++) {
		if (row->from > progress)
			continue;
		status = end_of(row, s, progress);
		if (status)
			SAY("%s: ends with %d", row->what, status);
	}
}

static void call_all_functions(struct scene *s, enum progress progress)
{
	make_calls(s, progress, rows, sizeof(rows) / sizeof(rows[0]));
	make_calls(s, progress, bad_values, n_bad_values);
}

static void new_ids_refuse(struct scene *s)
{
	call_all_functions(s, NEW);
}

static void bound_ids_refuse(struct scene *s)
{
	call_all_functions(s, BOUND);
}

static void ids_with_a_route_refuse(struct scene *s)
{
	call_all_functions(s, ROUTED);
}

const struct scenario bad_scenarios[] = {
	LOCAL_LIMIT("bad-new", new_ids_refuse, 0, 120, "what makes no sense, asked of a new id"),
	LOCAL_LIMIT("bad-bound", bound_ids_refuse, 0, 120, "the same, asked of a bound id"),
	LOCAL_LIMIT("bad-routed", ids_with_a_route_refuse, 0, 120,
		    "the same, asked of an id with its route resolved"),
	LAST_SCENARIO,
};

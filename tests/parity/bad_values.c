/* SPDX-License-Identifier: BSD-2-Clause */
/* Parity: missing arguments, and values out of their range, as rows for bad.c. */
#include <errno.h>
#include <string.h>

#include "bad.h"
#include "steps.h"

#define LONG_NAME 300

static const char noise[255];

/* missing arguments */

static int get_event_without_pointer(struct scene *s, struct rdma_cm_id *id)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	int ret = rdma_get_cm_event(channel, NULL), err = errno;

	(void)s;
	(void)id;
	rdma_destroy_event_channel(channel);
	errno = err;
	return ret;
}

static int bind_without_address(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return rdma_bind_addr(id, NULL);
}

static int join_without_address(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return rdma_join_multicast(id, NULL, NULL);
}

static int join_extended_without_address(struct scene *s, struct rdma_cm_id *id)
{
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
	};

	(void)s;
	return rdma_join_multicast_ex(id, &attr, NULL);
}

static int leave_without_address(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return rdma_leave_multicast(id, NULL);
}

static int get_remote_ece_without_pointer(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return rdma_get_remote_ece(id, NULL);
}

static int free_addresses_of_null(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	(void)id;
	rdma_freeaddrinfo(NULL);
	return 0;
}

static int devices_without_a_count(struct scene *s, struct rdma_cm_id *id)
{
	struct ibv_context **list = rdma_get_devices(NULL);

	(void)s;
	(void)id;
	if (!list)
		return -1;
	rdma_free_devices(list);
	return 0;
}

/* addresses */

static int bind_unspecified(struct scene *s, struct rdma_cm_id *id)
{
	struct sockaddr_storage addr = { .ss_family = AF_UNSPEC };

	(void)s;
	return rdma_bind_addr(id, (struct sockaddr *)&addr);
}

static int resolve_from_unknown_source(struct scene *s, struct rdma_cm_id *id)
{
	struct sockaddr_storage addr = { .ss_family = AF_UNIX };

	return rdma_resolve_addr(id, (struct sockaddr *)&addr, at(&s->peer, 1), RESOLVE_MS);
}

static int resolve_to_a_socket_of_the_host(struct scene *s, struct rdma_cm_id *id)
{
	struct sockaddr_storage addr = { .ss_family = AF_UNIX };

	(void)s;
	return rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, RESOLVE_MS);
}

static int resolve_from_a_foreign_address(struct scene *s, struct rdma_cm_id *id)
{
	return rdma_resolve_addr(id, at(&s->peer, 0), at(&s->peer, 1), RESOLVE_MS);
}

static int route_with_longest_timeout(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return rdma_resolve_route(id, HUGE);
}

static int ports_of(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return rdma_get_src_port(id) ? 1 : rdma_get_dst_port(id) ? 2 : 0;
}

/* lengths */

static int connect_with_the_most_data(struct scene *s, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .private_data = noise, .private_data_len = 255 };

	(void)s;
	return rdma_connect(id, &param);
}

static int accept_with_the_most_data(struct scene *s, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .private_data = noise, .private_data_len = 255 };

	(void)s;
	return rdma_accept(id, &param);
}

static int reject_with_the_most_data(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return rdma_reject(id, noise, 255);
}

static int set_option_that_is_too_long(struct scene *s, struct rdma_cm_id *id)
{
	uint64_t value = 1;

	(void)s;
	return rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &value, sizeof(value));
}

static int option_of_a_byte_too_little(struct scene *s, struct rdma_cm_id *id)
{
	int value = 1;

	(void)s;
	return rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &value, 3);
}

static int timeout_of_two_bytes(struct scene *s, struct rdma_cm_id *id)
{
	uint16_t value = 14;

	(void)s;
	return rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &value, 2);
}

static int path_of_no_record(struct scene *s, struct rdma_cm_id *id)
{
	struct ibv_path_data path = { .flags = 0 };

	(void)s;
	return rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path, 0);
}

/* out of range, or too early */

static int listen_with_a_negative_backlog(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return rdma_listen(id, -1);
}

static int accept_without_request(struct scene *s, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .responder_resources = 1 };

	(void)s;
	return rdma_accept(id, &param);
}

static int notify_of_a_migrated_path(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return rdma_notify(id, IBV_EVENT_PATH_MIG);
}

static int notify_of_data(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	return rdma_notify(id, IBV_EVENT_COMM_EST);
}

static int attributes_of_ready_to_send(struct scene *s, struct rdma_cm_id *id)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };
	int mask;

	(void)s;
	return rdma_init_qp_attr(id, &attr, &mask);
}

static int queue_pair_of_wide_requests(struct scene *s, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = {
		.cap = { 1, 1, HUGE, HUGE, 0 },
		.qp_type = IBV_QPT_RC,
	};

	(void)s;
	return rdma_create_qp(id, NULL, &init);
}

static int context_of_no_vendor(struct scene *s, struct rdma_cm_id *id)
{
	struct ibv_ece ece = { .options = 1 };

	(void)s;
	return rdma_set_local_ece(id, &ece);
}

static int context_of_another_version(struct scene *s, struct rdma_cm_id *id)
{
	struct ibv_ece ece = { .vendor_id = 1, .comp_mask = 1 };

	(void)s;
	return rdma_set_local_ece(id, &ece);
}

static int join_with_unknown_flags(struct scene *s, struct rdma_cm_id *id)
{
	struct rdma_cm_join_mc_attr_ex attr = { .comp_mask = 4, .addr = at(&s->self, 0) };

	return rdma_join_multicast_ex(id, &attr, NULL);
}

static int leave_a_group_of_no_family(struct scene *s, struct rdma_cm_id *id)
{
	struct sockaddr addr = { .sa_family = BEYOND };

	(void)s;
	return rdma_leave_multicast(id, &addr);
}

static int migrate_to_own_channel(struct scene *s, struct rdma_cm_id *id)
{
	int ret = id->channel == s->channel ? rdma_migrate_id(id, NULL) : 0;

	return ret ? 2 : rdma_migrate_id(id, NULL);
}

/* names */

static int refused_name(const char *node, const char *service, const struct rdma_addrinfo *hints)
{
	struct rdma_addrinfo *info = NULL;
	int ret = rdma_getaddrinfo(node, service, hints, &info);

	if (!ret)
		rdma_freeaddrinfo(info);
	return ret ? -1 : 0;
}

static int name_that_is_too_long(struct scene *s, struct rdma_cm_id *id)
{
	char name[LONG_NAME + 1] = { 0 };

	(void)s;
	(void)id;
	memset(name, 'a', LONG_NAME);
	return refused_name(name, NULL, NULL);
}

static int service_beyond_all_ports(struct scene *s, struct rdma_cm_id *id)
{
	(void)s;
	(void)id;
	return refused_name("127.0.0.1", "no.such.service", NULL);
}

static int name_of_no_family(struct scene *s, struct rdma_cm_id *id)
{
	struct rdma_addrinfo hints = { .ai_family = BEYOND };

	(void)s;
	(void)id;
	return refused_name("127.0.0.1", "1", &hints);
}

static int name_that_is_no_number(struct scene *s, struct rdma_cm_id *id)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST };

	(void)s;
	(void)id;
	return refused_name("localhost", "1", &hints);
}

/* two errors at once: which is reported? */

static int bind_to_a_foreign_address(struct scene *s, struct rdma_cm_id *id)
{
	return rdma_bind_addr(id, at(&s->peer, 0));
}

static int bind_to_a_port_in_use(struct scene *s, struct rdma_cm_id *id)
{
	struct rdma_cm_id *other = open_id(s, "other", RDMA_PS_TCP);
	int ret, err;

	if (rdma_bind_addr(other, at(&s->self, s->port)))
		give_up("rdma_bind_addr: %s", strerror(errno));
	ret = rdma_bind_addr(id, at(&s->self, s->port));
	err = errno;
	close_id(other);
	errno = err;
	return ret;
}

static int resolve_from_foreign_source_to_null(struct scene *s, struct rdma_cm_id *id)
{
	return rdma_resolve_addr(id, at(&s->peer, 0), numeric("203.0.113.1", 1), RESOLVE_MS);
}

static int resolve_to_the_other_family(struct scene *s, struct rdma_cm_id *id)
{
	return rdma_resolve_addr(id, at(&s->self, 0),
				 numeric(s->family == AF_INET ? "fd77::9" : "10.77.0.9", 1),
				 RESOLVE_MS);
}

static int connect_too_deep_with_the_most_data(struct scene *s, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = {
		.private_data = noise,
		.private_data_len = 255,
		.responder_resources = 254,
	};

	(void)s;
	return rdma_connect(id, &param);
}

static int accept_too_deep_with_the_most_data(struct scene *s, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = {
		.private_data = noise,
		.private_data_len = 255,
		.responder_resources = 254,
	};

	(void)s;
	return rdma_accept(id, &param);
}

static int option_of_no_name_and_no_length(struct scene *s, struct rdma_cm_id *id)
{
	uint8_t value = 0;

	(void)s;
	return rdma_set_option(id, BEYOND, BEYOND, &value, 0);
}

static int option_of_no_name_that_is_too_long(struct scene *s, struct rdma_cm_id *id)
{
	static const uint8_t value[5000];

	(void)s;
	return rdma_set_option(id, RDMA_OPTION_ID, BEYOND, (void *)(uintptr_t)value, sizeof(value));
}

static int path_of_half_a_record_too_many(struct scene *s, struct rdma_cm_id *id)
{
	static const struct ibv_path_data path[40];

	(void)s;
	return rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, (void *)(uintptr_t)path,
			       sizeof(path) - 1);
}

static int join_with_unknown_flags_and_family(struct scene *s, struct rdma_cm_id *id)
{
	struct sockaddr addr = { .sa_family = BEYOND };
	struct rdma_cm_join_mc_attr_ex attr = { .comp_mask = 4, .addr = &addr };

	(void)s;
	return rdma_join_multicast_ex(id, &attr, NULL);
}

static int join_a_host(struct scene *s, struct rdma_cm_id *id)
{
	return rdma_join_multicast(id, at(&s->peer, 0), NULL);
}

static int leave_a_host(struct scene *s, struct rdma_cm_id *id)
{
	return rdma_leave_multicast(id, at(&s->peer, 7));
}

static int attributes_beyond_of_no_device(struct scene *s, struct rdma_cm_id *id)
{
	struct ibv_qp_attr attr = { .qp_state = (enum ibv_qp_state)BEYOND };
	int mask;

	(void)s;
	return rdma_init_qp_attr(id, &attr, &mask);
}

const struct bad_row bad_values[] = {
	ROW(get_event_without_pointer),
	ROW(bind_without_address),
	ROW(join_without_address),
	ROW(join_extended_without_address),
	ROW(leave_without_address),
	ROW(get_remote_ece_without_pointer),
	ROW(free_addresses_of_null),
	ROW(devices_without_a_count),
	ROW(bind_unspecified),
	ROW(resolve_from_unknown_source),
	ROW(resolve_to_a_socket_of_the_host),
	ROW(resolve_from_a_foreign_address),
	ROW_FROM(BOUND, route_with_longest_timeout),
	ROW(ports_of),
	ROW_FROM(BOUND, connect_with_the_most_data),
	ROW_FROM(BOUND, accept_with_the_most_data),
	ROW(reject_with_the_most_data),
	ROW(set_option_that_is_too_long),
	ROW(option_of_a_byte_too_little),
	ROW(timeout_of_two_bytes),
	ROW(path_of_no_record),
	ROW(listen_with_a_negative_backlog),
	ROW_FROM(BOUND, accept_without_request),
	ROW(notify_of_a_migrated_path),
	ROW(notify_of_data),
	ROW(attributes_of_ready_to_send),
	ROW_FROM(BOUND, queue_pair_of_wide_requests),
	ROW(context_of_no_vendor),
	ROW(context_of_another_version),
	ROW(join_with_unknown_flags),
	ROW(leave_a_group_of_no_family),
	ROW(migrate_to_own_channel),
	ROW(name_that_is_too_long),
	ROW(service_beyond_all_ports),
	ROW(name_of_no_family),
	ROW(name_that_is_no_number),
	ROW(bind_to_a_foreign_address),
	ROW(bind_to_a_port_in_use),
	ROW(resolve_from_foreign_source_to_null),
	ROW(resolve_to_the_other_family),
	ROW_FROM(BOUND, connect_too_deep_with_the_most_data),
	ROW_FROM(BOUND, accept_too_deep_with_the_most_data),
	ROW(option_of_no_name_and_no_length),
	ROW(option_of_no_name_that_is_too_long),
	ROW(path_of_half_a_record_too_many),
	ROW(join_with_unknown_flags_and_family),
	ROW(join_a_host),
	ROW(leave_a_host),
	ROW(attributes_beyond_of_no_device),
};
const size_t n_bad_values = sizeof(bad_values) / sizeof(bad_values[0]);

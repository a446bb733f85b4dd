/* SPDX-License-Identifier: BSD-2-Clause */
/* Parity: rdma_set_option. Which options go in which state is in states.c, too. */
#include <infiniband/sa.h>

#include "steps.h"

#define ID RDMA_OPTION_ID
#define IB RDMA_OPTION_IB

static void lengths_and_numbers_are_checked(struct scene *s)
{
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);
	uint8_t value[8] = { 1 };

	DO(rdma_set_option(id, ID, RDMA_OPTION_ID_TOS, value, 1));
	DO(rdma_set_option(id, ID, RDMA_OPTION_ID_TOS, value, 0));
	DO(rdma_set_option(id, ID, RDMA_OPTION_ID_TOS, value, 4));
	DO(rdma_set_option(id, ID, RDMA_OPTION_ID_REUSEADDR, value, 4));
	DO(rdma_set_option(id, ID, RDMA_OPTION_ID_REUSEADDR, value, 1));
	DO(rdma_set_option(id, ID, RDMA_OPTION_ID_REUSEADDR, value, 8));
	DO(rdma_set_option(id, ID, RDMA_OPTION_ID_AFONLY, value, 4));
	DO(rdma_set_option(id, ID, RDMA_OPTION_ID_AFONLY, value, 1));
	DO(rdma_set_option(id, ID, RDMA_OPTION_ID_ACK_TIMEOUT, value, 1));
	DO(rdma_set_option(id, ID, RDMA_OPTION_ID_ACK_TIMEOUT, value, 4));
	DO(rdma_set_option(id, ID, 4, value, 1));
	DO(rdma_set_option(id, ID, 99, value, 4));
	DO(rdma_set_option(id, 2, 0, value, 1));
	DO(rdma_set_option(id, 99, 99, value, 1));
	DO(rdma_set_option(id, IB, 0, value, 1));
	DO(rdma_set_option(id, IB, 2, value, 1));
	DO(rdma_set_option(id, IB, RDMA_OPTION_IB_PATH, value, 8));
	close_id(id);
}

static void ack_timeout_is_for_reliable_connections(struct scene *s)
{
	struct rdma_cm_id *rc = open_id(s, "rc", RDMA_PS_TCP);
	struct rdma_cm_id *ud = open_id(s, "ud", RDMA_PS_UDP);
	struct rdma_cm_id *ib = open_id(s, "ib", RDMA_PS_IB);
	uint8_t timeout = 255;

	DO(rdma_set_option(rc, ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1));
	DO(rdma_set_option(ud, ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1));
	DO(rdma_set_option(ib, ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1));
	close_id(ib);
	close_id(ud);
	close_id(rc);
}

static void route_with(struct scene *s, int option, uint8_t value)
{
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);

	DO(rdma_set_option(id, ID, option, &value, 1));
	resolve(s, id, s->port);
	show_id(id);
	close_id(id);
}

static void options_shape_the_route(struct scene *s)
{
	route_with(s, RDMA_OPTION_ID_TOS, 0x68);
	route_with(s, RDMA_OPTION_ID_TOS, 0xff);
	route_with(s, RDMA_OPTION_ID_ACK_TIMEOUT, 14);
	route_with(s, RDMA_OPTION_ID_ACK_TIMEOUT, 0);
	route_with(s, RDMA_OPTION_ID_ACK_TIMEOUT, 31);
	route_with(s, RDMA_OPTION_ID_ACK_TIMEOUT, 200);
}

static void late_options_do_not_change_the_route(struct scene *s)
{
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);
	uint8_t value = 12;

	resolve(s, id, s->port);
	DO(rdma_set_option(id, ID, RDMA_OPTION_ID_TOS, &value, 1));
	DO(rdma_set_option(id, ID, RDMA_OPTION_ID_ACK_TIMEOUT, &value, 1));
	show_id(id);
	close_id(id);
}

/* A path record for the id's addresses, as an SA would give it out. */
static struct ibv_path_data path_for(const struct rdma_cm_id *id, uint32_t flags)
{
	const struct rdma_ib_addr *ib = &id->route.addr.addr.ibaddr;
	struct ibv_path_data data = { .flags = flags };

	memcpy(data.path.dgid.raw, ib->dgid.raw, 16);
	memcpy(data.path.sgid.raw, ib->sgid.raw, 16);
	data.path.flowlabel_hoplimit = htobe32(64);
	data.path.reversible_numpath = IBV_PATH_RECORD_REVERSIBLE | 1;
	data.path.pkey = ib->pkey;
	data.path.mtu = 2 << 6 | IBV_MTU_1024;
	data.path.rate = 2 << 6 | 3;
	data.path.packetlifetime = 2 << 6 | 16;
	return data;
}

static void set_path(struct scene *s, struct rdma_cm_id *id, struct ibv_path_data *data, size_t n)
{
	size_t size = n * sizeof(*data);

	if (!DO(rdma_set_option(id, IB, RDMA_OPTION_IB_PATH, data, size))) {
		take_event(s);
		show_id(id);
	}
}

static void path_can_be_given(struct scene *s)
{
	const uint32_t good = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY |
			      IBV_PATH_FLAG_BIDIRECTIONAL;
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);
	struct ibv_path_data data[2];

	DO(rdma_set_option(id, IB, RDMA_OPTION_IB_PATH, data, sizeof(data[0])));
	if (rdma_resolve_addr(id, NULL, at(&s->peer, s->port), RESOLVE_MS))
		give_up("rdma_resolve_addr: %s", strerror(errno));
	expect_event(s, RDMA_CM_EVENT_ADDR_RESOLVED);
	data[0] = path_for(id, IBV_PATH_FLAG_PRIMARY);
	set_path(s, id, data, 1);
	set_path(s, id, data, 0);
	data[1] = path_for(id, good);
	set_path(s, id, data, 2);
	set_path(s, id, data + 1, 1);
	close_id(id);
}

const struct scenario option_scenarios[] = {
	LOCAL("options-checked", lengths_and_numbers_are_checked, 0,
	      "wrong lengths, wrong levels and unknown options"),
	LOCAL("options-ack-timeout", ack_timeout_is_for_reliable_connections, 0,
	      "which ids take an ACK timeout"),
	LOCAL("options-route", options_shape_the_route, 0,
	      "type of service and ACK timeout in the path record"),
	LOCAL("options-late", late_options_do_not_change_the_route, 0,
	      "options set after the route was resolved"),
	LOCAL("options-path", path_can_be_given, 0,
	      "a path record from the caller: flags, several records, wrong state"),
	LAST_SCENARIO,
};

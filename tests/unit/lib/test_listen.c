/* SPDX-License-Identifier: BSD-2-Clause */
/* The listener of a REQ, and the event that the program gets: lib/conn/listen.c and request.c. */
#include <endian.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>

#include "lib/conn/id_route.h"
#include "lib/id/claims.h"
#include "mad/cma_hdr.h"
#include "tests/unit/lib/fake_net.h"
#include "tests/unit/lib/rig.h"
#include "tests/unit/test.h"

#define ID 0x51

static void set_up(void)
{
	rig_begin_with(&rig_reporting);
}

FIXTURE(set_up, NULL);

/* A request with its CMA header changed, whose first four bytes are version and port. */
static void request_from(const struct cma_hdr *hdr)
{
	struct cm_msg req = rig_req(ID);

	wire_encode(&cma_hdr_layout, hdr, req.req.private_data);
	rig_receive(&req);
}

static void expect_rej(enum cm_rej_reason reason)
{
	struct cm_rej rej = fake_cmportd_message(CM_ATTR_REJ).rej;

	ck_assert_str_eq(cm_rej_reason_str(rej.reason), cm_rej_reason_str(reason));
	rig_expect_nothing();
}

/* --- choice of the listener -------------------------------------------------- */

TEST(request_goes_to_the_listener_of_its_port)
{
	struct id *listener = rig_listener(1);
	struct rdma_cm_event *event;

	rig_request(ID);
	event = rig_next();
	ck_assert_str_eq(rdma_event_str(event->event), "RDMA_CM_EVENT_CONNECT_REQUEST");
	ck_assert_ptr_eq(event->listen_id, &listener->pub);
}

TEST(request_without_a_listener_is_refused)
{
	rig_request(ID);
	expect_rej(CM_REJ_INVALID_SERVICE_ID);
}

/* A program that ends its listener in the wrong order takes no request any more. */
TEST(request_for_a_listener_whose_channel_is_closed_is_refused)
{
	rig_listener(1);
	rdma_destroy_event_channel(&rig.channel->pub);
	rig_request(ID);
	expect_rej(CM_REJ_CONSUMER);
	ck_assert_uint_eq(engine_held()->core.n_conns, 0);
	ck_assert_int_eq(channel_new(&rig.channel), 0);
}

TEST(request_for_another_address_of_the_port_is_refused)
{
	struct id *listener = rig_listener(1);

	listener->claim.local = rig_peer(RIG_PORT);
	rig_request(ID);
	expect_rej(CM_REJ_CONSUMER);
}

TEST(wildcard_listener_takes_requests_for_any_address)
{
	struct id *listener = rig_id(RDMA_PS_TCP, ID_IDLE);
	union addr any;

	addr_set_any(&any, AF_INET);
	addr_set_port(&any, RIG_PORT);
	ck_assert_int_eq(rdma_bind_addr(&listener->pub, &any.sa), 0);
	ck_assert_int_eq(rdma_listen(&listener->pub, 1), 0);
	ck_assert_uint_eq(fake_cmportd_last(PORTD_LISTEN)->claim.heard_at, 0);
	rig_request(ID);
	rig_expect(RDMA_CM_EVENT_CONNECT_REQUEST, 0);
}

TEST(listener_on_an_address_selects_the_device)
{
	rig_listener(1);
	ck_assert_uint_eq(fake_cmportd_last(PORTD_LISTEN)->claim.heard_at, rig.port->handle + 1);
}

/* The port may be opened later, and the library does not report the claim again. */
TEST(listener_whose_port_the_next_cmportd_could_not_open_hears_all_devices)
{
	rig_listener(1);
	rig.port->handle = -EADDRINUSE;
	claims_resend(NULL);
	ck_assert_uint_eq(fake_cmportd_last(PORTD_LISTEN)->claim.heard_at, 0);
}

TEST(listener_for_another_type_of_queue_pair_is_skipped)
{
	struct id *listener = rig_listener(1);

	listener->pub.ps = RDMA_PS_IB; /* there the type of the queue pair counts */
	listener->pub.qp_type = IBV_QPT_UC;
	rig_request(ID);
	expect_rej(CM_REJ_CONSUMER);
}

TEST(listener_of_rc_is_skipped_for_an_extended_transport)
{
	struct cm_msg req = rig_req(ID);

	rig_listener(1);
	req.req.transport_service_type = CM_TRANSPORT_EXTENDED;
	rig_receive(&req);
	expect_rej(CM_REJ_CONSUMER);
}

/* A queue pair of another kind would wait for its packets. */
TEST_LOOP(request_of_a_transport_that_no_listener_has_is_refused, 0, 2)
{
	struct cm_msg req = rig_req(ID);
	struct id *listener = rig_listener(1);

	listener->pub.ps = RDMA_PS_IB;
	listener->pub.qp_type = _i ? IBV_QPT_XRC_RECV : IBV_QPT_RC;
	req.req.transport_service_type = _i ? CM_TRANSPORT_EXTENDED : CM_TRANSPORT_RD;
	req.req.extended_transport_type = CM_EXTENDED_XRC + 1;
	rig_receive(&req);
	expect_rej(CM_REJ_CONSUMER);
}

TEST(bound_id_that_does_not_listen_is_skipped)
{
	struct id *listener = rig_listener(1), *bound = rig_id(RDMA_PS_TCP, ID_IDLE);
	union addr own = rig_own(RIG_PORT);
	struct rdma_cm_event *event;

	ck_assert_int_eq(rdma_bind_addr(&bound->pub, &own.sa), 0);
	rig_request(ID);
	event = rig_next();
	ck_assert_ptr_nonnull(event);
	ck_assert_ptr_eq(event->listen_id, &listener->pub);
}

/* A request has an alternate path on InfiniBand only, which the rig's port is not. */
TEST(id_of_a_request_with_an_alternate_path_has_two_records)
{
	struct id *id;

	rig_listener(1);
	id = rig_requested(ID);
	ck_assert_int_eq(id->pub.route.num_paths, 1);
	id->alternate = calloc(1, sizeof(*id->alternate));
	*id->alternate = (struct path){ .dlid = 0x21, .packet_life_time = 17 };
	ck_assert_int_eq(route_publish(id), 0);
	ck_assert_int_eq(id->pub.route.num_paths, 2);
	ck_assert_uint_eq(id->pub.route.path_rec[1].dlid, htobe16(0x21));
	ck_assert_uint_eq(id->pub.route.path_rec[1].packet_life_time, 17);
}

/* --- refused requests ---------------------------------------------------------- */

TEST(request_for_a_gid_of_another_host_is_refused_with_ours)
{
	struct cm_msg req = rig_req(ID);

	rig_listener(1);
	req.req.primary.remote_gid = req.req.primary.local_gid;
	rig_receive(&req);
	expect_rej(CM_REJ_INVALID_GID);
}

TEST(request_with_the_gid_of_a_third_host_is_refused)
{
	struct cm_msg req = rig_req(ID);

	rig_listener(1);
	req.req.primary.local_gid.raw[15]++;
	rig_receive(&req);
	expect_rej(CM_REJ_INVALID_GID);
}

TEST(request_for_another_partition_over_roce_is_refused)
{
	struct cm_msg req = rig_req(ID);

	rig_listener(1);
	req.req.pkey = 0;
	rig_receive(&req);
	expect_rej(CM_REJ_INVALID_GID);
}

TEST(request_with_an_alternate_path_over_roce_is_refused)
{
	struct cm_msg req = rig_req(ID);

	rig_listener(1);
	req.req.alternate.local_lid = 1;
	rig_receive(&req);
	expect_rej(CM_REJ_INVALID_ALT_GID);
}

TEST(request_with_a_header_of_another_version_is_refused)
{
	rig_listener(1);
	request_from(&(struct cma_hdr){ .cma_version = 1,
					.ip_version = 4,
					.src_addr = { [12] = 192, 0, 2, 2 },
					.dst_addr = { [12] = 192, 0, 2, 1 } });
	expect_rej(CM_REJ_CONSUMER);
}

TEST(request_without_a_source_address_is_refused)
{
	rig_listener(1);
	request_from(&(struct cma_hdr){ .ip_version = 4, .dst_addr = { [12] = 192, 0, 2, 1 } });
	expect_rej(CM_REJ_CONSUMER);
}

/* Addresses of a third host, and of our own: programs authorise peers by address. */
TEST_LOOP(request_with_the_address_of_another_host_is_refused, 0, 2)
{
	static const uint8_t named[] = { 3, 1 };

	rig_listener(1);
	request_from(&(struct cma_hdr){ .ip_version = 4,
					.src_addr = { [12] = 192, 0, 2, named[_i] },
					.dst_addr = { [12] = 192, 0, 2, 1 } });
	expect_rej(CM_REJ_CONSUMER);
}

TEST(request_with_a_return_route_by_another_interface_is_refused)
{
	rig_listener(1);
	fake_net.leaves_by = FAKE_IFINDEX + 1;
	rig_request(ID);
	expect_rej(CM_REJ_CONSUMER);
}

TEST(request_without_a_route_back_by_its_interface_is_refused)
{
	rig_listener(1);
	fake_net.tables_err = -EHOSTUNREACH;
	rig_request(ID);
	expect_rej(CM_REJ_CONSUMER);
}

/* The port has two GIDs of the address, and receives with that of RoCE v1. */
static void receive_by_roce_v1(const struct cm_msg *msg)
{
	fake.gid[0].gid = fake.gid[1].gid;
	fake.gid[1].gid_type = IBV_GID_TYPE_ROCE_V1;
	gid_forget(&fake.verbs.context);
	rig_receive(msg);
}

TEST(request_by_roce_v1_is_refused_where_there_is_v2)
{
	struct cm_msg req = rig_req(ID);

	rig_listener(1);
	receive_by_roce_v1(&req);
	expect_rej(CM_REJ_CONSUMER);
}

TEST(lookup_by_roce_v1_is_refused_where_there_is_v2)
{
	struct id *id = rig_id(RDMA_PS_UDP, ID_IDLE);
	struct cm_msg lookup = rig_lookup(ID);
	union addr own = rig_own(RIG_PORT);

	ck_assert_int_eq(rdma_bind_addr(&id->pub, &own.sa), 0);
	ck_assert_int_eq(rdma_listen(&id->pub, 1), 0);
	receive_by_roce_v1(&lookup);
	ck_assert_uint_eq(fake_cmportd_message(CM_ATTR_SIDR_REP).sidr_rep.status, CM_SIDR_REJECT);
	rig_expect_nothing();
}

/* --- the program's event --------------------------------------------------------- */

TEST(event_has_private_data_without_the_header)
{
	struct cm_msg req = rig_req(ID);
	struct rdma_cm_event *event;

	rig_listener(1);
	memcpy(req.req.private_data + CMA_HDR_BYTES, "hello", 5);
	rig_receive(&req);
	event = rig_next();
	ck_assert_uint_eq(event->param.conn.private_data_len, CM_REQ_PRIVATE_BYTES - CMA_HDR_BYTES);
	ck_assert_mem_eq(event->param.conn.private_data, "hello", 5);
}

TEST(event_has_depths_from_our_side)
{
	struct cm_msg req = rig_req(ID);
	struct rdma_cm_event *event;

	rig_listener(1);
	req.req.initiator_depth = 3;
	req.req.responder_resources = 5;
	rig_receive(&req);
	event = rig_next();
	ck_assert_uint_eq(event->param.conn.responder_resources, 3);
	ck_assert_uint_eq(event->param.conn.initiator_depth, 5);
}

TEST(new_id_has_both_addresses_and_the_device)
{
	union addr own = rig_own(RIG_PORT), peer = rig_peer(RIG_PORT);
	struct id *child;

	rig_listener(1);
	child = rig_requested(ID);
	ck_assert_mem_eq(&child->pub.route.addr.src_sin, &own.in4, sizeof(own.in4));
	ck_assert_mem_eq(&child->pub.route.addr.dst_sin, &peer.in4, sizeof(peer.in4));
	ck_assert_ptr_eq(child->pub.verbs, &fake.verbs.context);
}

TEST(request_without_a_device_for_its_id_is_refused)
{
	rig_listener(1);
	rig_request(ID);
	rig.device->pd = NULL; /* as before the first id on it */
	fake.fail_at = fake.n_calls + 1;
	rig_expect_nothing();
	ck_assert_int_eq(fake_cmportd_message(CM_ATTR_REJ).rej.reason, CM_REJ_CONSUMER);
	rig_request(ID + 1);
	rig_expect(RDMA_CM_EVENT_CONNECT_REQUEST, 0);
}

TEST(duplicate_request_is_answered_with_mra_and_reported_once)
{
	rig_listener(2);
	rig_request(ID);
	rig_request(ID);
	fake_cmportd_message(CM_ATTR_MRA);
	rig_expect(RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	rig_expect_nothing();
}

/* --- rdma_listen() ------------------------------------------------------------------ */

TEST(listening_is_claimed_at_cmportd)
{
	struct id *listener = rig_listener(1);

	ck_assert_uint_eq(fake_cmportd_last(PORTD_LISTEN)->claim.claim_id, listener->claim_id);
	ck_assert_uint_eq(fake_cmportd_last(PORTD_LISTEN)->claim.local_port, RIG_PORT);
	rig_expect_state(listener, ID_LISTEN);
}

TEST(refused_listening_leaves_the_id_bound)
{
	union addr own = rig_own(RIG_PORT);
	struct id *id = rig_id(RDMA_PS_TCP, ID_IDLE);

	cmportd.listen_err = -EADDRINUSE;
	ck_assert_int_eq(rdma_bind_addr(&id->pub, &own.sa), 0);
	rig_expect_errno(rdma_listen(&id->pub, 1), EADDRINUSE);
	rig_expect_state(id, ID_ADDR_BOUND);
}

TEST(unbound_id_listens_on_an_ephemeral_port_of_all_addresses)
{
	struct id *id = rig_id(RDMA_PS_TCP, ID_IDLE);

	ck_assert_int_eq(rdma_listen(&id->pub, 1), 0);
	ck_assert(addr_is_any(&id->claim.local));
	ck_assert_uint_eq(ntohs(rdma_get_src_port(&id->pub)), FAKE_FIRST_PORT);
}

TEST(backlog_of_0_is_the_hosts_maximum)
{
	ck_assert_uint_eq(rig_listener(0)->backlog, engine_held()->limits.max_backlog);
}

TEST(connected_id_cannot_listen)
{
	struct id *id = rig_connected();

	rig_expect_errno(rdma_listen(&id->pub, 1), EINVAL);
}

TEST(only_a_listener_for_datagrams_gets_a_queue_pair)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_UD, .cap = { .max_send_wr = 1 } };
	struct id *listener = rig_on_device(RDMA_PS_UDP, ID_LISTEN);

	ck_assert_int_eq(rdma_create_qp(&listener->pub, NULL, &attr), 0);
	listener = rig_on_device(RDMA_PS_TCP, ID_LISTEN);
	attr.qp_type = IBV_QPT_RC;
	rig_expect_errno(rdma_create_qp(&listener->pub, NULL, &attr), EINVAL);
}

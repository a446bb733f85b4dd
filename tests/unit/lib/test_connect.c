/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_connect(), rdma_accept(), rdma_reject(), rdma_establish(), rdma_notify() and
 * rdma_disconnect() (lib/conn/connect.c), with queue pairs of the program's.
 */
#include <rdma/rdma_cma.h>

#include "mad/cma_hdr.h"
#include "tests/unit/lib/rig.h"
#include "tests/unit/test.h"

#define QPN	   0x42
#define REQUEST_ID 0x51

static struct id *id;
static struct rdma_conn_param param;

static void set_up(void)
{
	rig_begin_with(&rig_reporting);
	id = rig_routed(RDMA_PS_TCP);
	param = (struct rdma_conn_param){ .qp_num = QPN, .retry_count = 7, .rnr_retry_count = 6 };
}

FIXTURE(set_up, NULL);

static struct cm_req sent_req(void)
{
	ck_assert_int_eq(rdma_connect(&id->pub, &param), 0);
	return fake_cmportd_message(CM_ATTR_REQ).req;
}

/* --- connect ---------------------------------------------------------------- */

TEST(connecting_sends_a_req)
{
	struct cm_req req = sent_req();

	ck_assert_uint_eq(fake_cmportd_count(PORTD_MAD), 1);
	ck_assert_uint_eq(fake_cmportd_last(PORTD_MAD)->mad.port, FAKE_HANDLE);
	ck_assert_uint_eq(req.service_id, cma_service_id(RDMA_PS_TCP, RIG_PORT));
	ck_assert_uint_eq(req.local_qpn, QPN);
	ck_assert_uint_eq(req.starting_psn, id->starting_psn);
	ck_assert_uint_eq(req.retry_count, 7);
	ck_assert_uint_eq(req.rnr_retry_count, 6);
	ck_assert_uint_eq(req.path_mtu, IBV_MTU_1024);
}

TEST(connecting_waits_for_the_peer)
{
	sent_req();
	rig_expect_state(id, ID_CONNECT);
	rig_expect_conn(id, CM_REQ_SENT);
	rig_expect_nothing();
}

TEST(req_is_sent_to_the_peers_gid)
{
	struct mad_gid gid;
	union addr peer = rig_peer(0);

	sent_req();
	gid = addr_to_gid(&peer);
	ck_assert_mem_eq(&fake_cmportd_last(PORTD_MAD)->mad.path.dgid, &gid, sizeof(gid));
}

TEST(private_data_of_a_req_follows_the_addresses)
{
	struct cma_hdr hdr;
	struct cm_req req;

	param.private_data = "hello";
	param.private_data_len = 5;
	req = sent_req();
	wire_decode(&cma_hdr_layout, req.private_data, &hdr);
	ck_assert_uint_eq(hdr.ip_version, 4);
	ck_assert_uint_eq(hdr.src_port, FAKE_FIRST_PORT);
	ck_assert_mem_eq(req.private_data + CMA_HDR_BYTES, "hello", 5);
}

TEST(too_long_private_data_is_refused)
{
	uint8_t data[CM_REQ_PRIVATE_BYTES - CMA_HDR_BYTES + 1] = { 0 };

	param.private_data = data;
	param.private_data_len = sizeof(data);
	rig_expect_errno(rdma_connect(&id->pub, &param), EINVAL);
	rig_expect_state(id, ID_ROUTE_RESOLVED);
	ck_assert_uint_eq(cmportd.n_said, 0);
}

TEST(too_long_private_data_is_reported_before_a_missing_partition)
{
	static const uint8_t data[255];

	id->path.pkey = 0x8001;
	rig_expect_errno(rdma_connect(&id->pub, &param), ENOENT);
	param.private_data = data;
	param.private_data_len = sizeof(data);
	rig_expect_errno(rdma_connect(&id->pub, &param), EINVAL);
}

TEST(maximum_reads_are_the_devices_limit)
{
	struct cm_req req;

	param.responder_resources = RDMA_MAX_RESP_RES;
	param.initiator_depth = RDMA_MAX_INIT_DEPTH;
	req = sent_req();
	ck_assert_uint_eq(req.responder_resources, FAKE_READS);
	ck_assert_uint_eq(req.initiator_depth, FAKE_READS);
}

TEST(reads_beyond_the_devices_limit_are_refused)
{
	param.initiator_depth = FAKE_READS + 1;
	rig_expect_errno(rdma_connect(&id->pub, &param), EINVAL);
}

TEST(id_without_a_route_cannot_connect)
{
	id->state = ID_ADDR_RESOLVED;
	rig_expect_errno(rdma_connect(&id->pub, &param), EINVAL);
}

TEST(id_without_queue_pair_and_parameters_cannot_connect)
{
	rig_expect_errno(rdma_connect(&id->pub, NULL), EINVAL);
}

TEST(id_of_rdma_ps_ib_connects_without_queue_pair_and_parameters)
{
	id = rig_routed(RDMA_PS_IB);
	ck_assert_int_eq(rdma_connect(&id->pub, NULL), 0);
	ck_assert_uint_eq(fake_cmportd_message(CM_ATTR_REQ).req.local_qpn, 0);
}

TEST_LOOP(lowest_bit_of_flow_control_is_sent, 0, 4)
{
	param.flow_control = (uint8_t)_i;
	ck_assert_uint_eq(sent_req().flow_control, _i & 1);
}

TEST(id_connects_once)
{
	sent_req();
	rig_expect_errno(rdma_connect(&id->pub, &param), EINVAL);
	ck_assert_uint_eq(fake_cmportd_count(PORTD_MAD), 1);
}

TEST(unsendable_req_counts_as_lost)
{
	cmportd.send_err = -EPIPE;
	sent_req();
	rig_expect_conn(id, CM_REQ_SENT);
}

TEST(datagram_service_is_looked_up)
{
	struct id *datagram = rig_routed(RDMA_PS_UDP);

	ck_assert_int_eq(rdma_connect(&datagram->pub, NULL), 0);
	ck_assert_uint_eq(fake_cmportd_message(CM_ATTR_SIDR_REQ).sidr_req.service_id,
			  cma_service_id(RDMA_PS_UDP, RIG_PORT));
	rig_expect_conn(datagram, CM_SIDR_REQ_SENT);
}

/* --- accept, reject, establish, notify --------------------------------------- */

static struct id *requested(void)
{
	rig_listener(1);
	return rig_requested(REQUEST_ID);
}

TEST(accepting_sends_a_rep)
{
	struct id *child = requested();
	struct cm_rep rep;

	param.private_data = "welcome";
	param.private_data_len = 7;
	ck_assert_int_eq(rdma_accept(&child->pub, &param), 0);
	rep = fake_cmportd_message(CM_ATTR_REP).rep;
	ck_assert_uint_eq(rep.remote_comm_id, REQUEST_ID);
	ck_assert_uint_eq(rep.local_qpn, QPN);
	ck_assert_uint_eq(rep.starting_psn, child->starting_psn);
	ck_assert_mem_eq(rep.private_data, "welcome", 7);
	rig_expect_conn(child, CM_REP_SENT);
}

TEST(rtu_of_the_peer_establishes_the_accepted_connection)
{
	struct id *child = requested();
	struct cm_msg rtu;

	ck_assert_int_eq(rdma_accept(&child->pub, &param), 0);
	rtu = rig_rtu(child);
	rig_receive(&rtu);
	rig_expect_conn(child, CM_ESTABLISHED);
	rig_expect(RDMA_CM_EVENT_ESTABLISHED, 0);
}

TEST(rep_without_room_for_its_data_becomes_a_rej)
{
	struct id *child = requested();
	uint8_t data[CM_REP_PRIVATE_BYTES + 1] = { 0 };

	param.private_data = data;
	param.private_data_len = sizeof(data);
	rig_expect_errno(rdma_accept(&child->pub, &param), EINVAL);
	ck_assert_uint_eq(fake_cmportd_message(CM_ATTR_REJ).rej.reason, CM_REJ_CONSUMER);
}

TEST(accepting_again_leaves_the_depths_of_the_connection)
{
	struct id *child = requested();
	struct cm_msg rtu;

	param.initiator_depth = 1;
	ck_assert_int_eq(rdma_accept(&child->pub, &param), 0);
	rtu = rig_rtu(child);
	rig_receive(&rtu);
	param.initiator_depth = 0;
	rig_expect_errno(rdma_accept(&child->pub, &param), EINVAL);
	ck_assert_uint_eq(child->conn->initiator_depth, 1);
}

TEST(accepting_without_a_request_is_refused)
{
	rig_expect_errno(rdma_accept(&id->pub, &param), EINVAL);
}

static void expect_rej(enum cm_rej_reason reason)
{
	struct cm_rej rej = fake_cmportd_message(CM_ATTR_REJ).rej;

	ck_assert_str_eq(cm_rej_reason_str(rej.reason), cm_rej_reason_str(reason));
	ck_assert_mem_eq(rej.private_data, "no", 2);
}

TEST(rejecting_sends_a_rej_of_the_consumer)
{
	struct id *child = requested();

	ck_assert_int_eq(rdma_reject(&child->pub, "no", 2), 0);
	expect_rej(CM_REJ_CONSUMER);
}

TEST(rejecting_for_ece_has_a_reason_of_its_own)
{
	struct id *child = requested();

	ck_assert_int_eq(rdma_reject_ece(&child->pub, "no", 2), 0);
	expect_rej(CM_REJ_VENDOR_OPTION);
}

TEST(rejecting_without_a_request_is_refused)
{
	rig_expect_errno(rdma_reject(&id->pub, NULL, 0), EINVAL);
}

TEST(establishing_answers_the_rep)
{
	struct cm_msg rep;

	sent_req();
	rep = rig_rep();
	rig_receive(&rep);
	rig_expect(RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	ck_assert_int_eq(rdma_establish(&id->pub), 0);
	ck_assert_uint_eq(fake_cmportd_message(CM_ATTR_RTU).rtu.remote_comm_id, RIG_PEER_ID);
	rig_expect_conn(id, CM_ESTABLISHED);
}

TEST(data_of_the_peer_counts_as_its_rtu)
{
	struct id *child = requested();

	ck_assert_int_eq(rdma_accept(&child->pub, &param), 0);
	ck_assert_int_eq(rdma_notify(&child->pub, IBV_EVENT_COMM_EST), 0);
	rig_expect_conn(child, CM_ESTABLISHED);
	rig_expect(RDMA_CM_EVENT_ESTABLISHED, 0);
}

TEST(connection_established_by_data_is_reported_to_cmportd)
{
	struct id *child = requested();
	const struct cm_record *tracked;

	ck_assert_int_eq(rdma_accept(&child->pub, &param), 0);
	ck_assert_int_eq(rdma_notify(&child->pub, IBV_EVENT_COMM_EST), 0);
	tracked = &fake_cmportd_last(PORTD_TRACK)->tracked;
	ck_assert_uint_eq(tracked->local_comm_id, child->conn->local_comm_id);
	ck_assert_str_eq(cm_state_str(tracked->state), "ESTABLISHED");
}

TEST(notifying_an_established_connection_is_refused)
{
	struct id *connected = rig_connected();

	rig_expect_errno(rdma_notify(&connected->pub, IBV_EVENT_COMM_EST), EISCONN);
}

/* --- disconnect --------------------------------------------------------------- */

TEST(disconnecting_sends_a_dreq_for_the_peers_queue_pair)
{
	struct id *connected = rig_connected();
	struct cm_dreq dreq;

	ck_assert_int_eq(rdma_disconnect(&connected->pub), 0);
	dreq = fake_cmportd_message(CM_ATTR_DREQ).dreq;
	ck_assert_uint_eq(dreq.remote_comm_id, RIG_PEER_ID);
	ck_assert_uint_eq(dreq.remote_qpn, RIG_PEER_QPN);
	rig_expect_conn(connected, CM_DREQ_SENT);
}

TEST(disconnecting_after_the_peer_sends_a_drep)
{
	struct id *connected = rig_connected();
	struct cm_msg dreq = rig_dreq(connected);

	rig_receive(&dreq);
	rig_expect(RDMA_CM_EVENT_DISCONNECTED, 0);
	ck_assert_int_eq(rdma_disconnect(&connected->pub), 0);
	fake_cmportd_message(CM_ATTR_DREP);
	rig_expect_conn(connected, CM_TIMEWAIT);
}

TEST(disconnecting_again_is_no_error)
{
	struct id *connected = rig_connected();

	ck_assert_int_eq(rdma_disconnect(&connected->pub), 0);
	ck_assert_int_eq(rdma_disconnect(&connected->pub), 0);
	ck_assert_uint_eq(fake_cmportd_count(PORTD_MAD), 3); /* REQ, RTU, DREQ */
}

TEST(disconnecting_an_unconnected_id_is_refused)
{
	rig_expect_errno(rdma_disconnect(&id->pub), EINVAL);
}

static struct id *with_queue_pair(struct id *of)
{
	struct ibv_qp_init_attr attr = { .qp_type = of->pub.qp_type, .cap = { .max_send_wr = 1 } };

	ck_assert_int_eq(rdma_create_qp(&of->pub, NULL, &attr), 0);
	return of;
}

TEST(accepting_that_fails_leaves_the_depths_of_the_request)
{
	struct id *child = with_queue_pair(requested());
	const uint8_t depth = child->conn->responder_resources;

	param.responder_resources = depth + 1;
	fake.fail_at = fake.n_calls + 1;
	rig_expect_errno(rdma_accept(&child->pub, &param), FAKE_ERROR);
	ck_assert_uint_eq(child->conn->responder_resources, depth);
}

static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND,
					  IBV_QPT_XRC_RECV };

TEST_LOOP(disconnecting_an_unconnected_id_flushes_its_queue_pair, 0,
	  sizeof(types) / sizeof(types[0]))
{
	id = rig_routed(types[_i] == IBV_QPT_UD ? RDMA_PS_UDP : RDMA_PS_IB);
	id->pub.qp_type = types[_i];
	with_queue_pair(id);
	rig_expect_errno(rdma_disconnect(&id->pub), EINVAL);
	ck_assert_int_eq(fake.move[fake.n_moves - 1].qp_state, IBV_QPS_ERR);
	ck_assert_uint_eq(cmportd.n_said, 0);
}

/* --- addresses that are removed and added ------------------------------------ */

#define INDEX	  1 /* of our address */
#define NEW_INDEX 5

/* Another address gets the index of ours. */
static void lose_address(void)
{
	fake_add_gid("192.0.2.77", INDEX, IBV_GID_TYPE_ROCE_V2);
	fake.gid[INDEX].gid = fake.gid[--fake.n_gids].gid;
	gid_forget(NULL);
}

static void move_address(void)
{
	fake.port[0].gid_tbl_len = FAKE_GIDS;
	fake.gid[fake.n_gids] = fake.gid[INDEX];
	fake.gid[fake.n_gids++].gid_index = NEW_INDEX;
	lose_address();
}

TEST(id_whose_address_was_removed_cannot_connect)
{
	lose_address();
	rig_expect_errno(rdma_connect(&id->pub, &param), EINVAL);
	ck_assert_uint_eq(fake_cmportd_count(PORTD_MAD), 0);
}

TEST(req_leaves_from_the_new_index_of_its_address)
{
	move_address();
	sent_req();
	ck_assert_uint_eq(fake_cmportd_last(PORTD_MAD)->mad.path.sgid_index, NEW_INDEX);
}

TEST(dreq_leaves_from_the_new_index_of_its_address)
{
	struct id *connected = rig_connected();

	move_address();
	ck_assert_int_eq(rdma_disconnect(&connected->pub), 0);
	fake_cmportd_message(CM_ATTR_DREQ);
	ck_assert_uint_eq(fake_cmportd_last(PORTD_MAD)->mad.path.sgid_index, NEW_INDEX);
}

TEST(queue_pair_is_not_moved_to_the_address_that_took_the_index)
{
	struct id *child = with_queue_pair(requested());

	lose_address();
	rig_expect_errno(rdma_accept(&child->pub, NULL), ENODATA);
	ck_assert_int_eq(fake.n_moves, 1); /* to INIT */
}

TEST(queue_pair_gets_the_new_index_of_its_address)
{
	struct id *child = with_queue_pair(requested());

	move_address();
	ck_assert_int_eq(rdma_accept(&child->pub, NULL), 0);
	ck_assert_uint_eq(fake.move[1].ah_attr.grh.sgid_index, NEW_INDEX);
	ck_assert_uint_eq(fake_cmportd_last(PORTD_MAD)->mad.path.sgid_index, NEW_INDEX);
}

TEST(queue_pair_that_took_the_index_of_another_address_is_not_connected)
{
	struct id *child = with_queue_pair(requested());

	ck_assert_int_eq(gid_follow(&child->path.gid), 0); /* it is cached */
	gid_forget(NULL);
	rig.now_ns += 1000 * CM_NS_PER_MS;
	ck_assert_int_eq(gid_follow(&child->path.gid), 0);
	fake.gid[INDEX].gid.raw[15] ^= 1;
	rig_expect_errno(rdma_accept(&child->pub, NULL), ENODATA);
	ck_assert_uint_eq(fake_cmportd_count(PORTD_MAD), 0);
}

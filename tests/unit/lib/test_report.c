/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports of the core become events of ids: lib/conn/core_report.c. */
#include "lib/conn/core_report.h"

#include <rdma/rdma_cma.h>

#include "tests/unit/lib/rig.h"
#include "tests/unit/test.h"

#define QKEY 0x1234

static struct id *id;
static struct cm_conn *conn;
static struct cm_msg msg;

static void begin(enum rdma_port_space ps)
{
	rig_begin();
	memset(&msg, 0, sizeof(msg));
	id = rig_routed(ps);
	id->state = ID_CONNECT;
	id->accepted = true;
	engine_lock();
	conn = id->conn = cm_core_conn_new(&engine_held()->core, id);
	engine_unlock();
	ck_assert_ptr_nonnull(conn);
}

static void set_up(void)
{
	begin(RDMA_PS_TCP);
}

FIXTURE(set_up, NULL);

static void report(enum cm_report_kind kind, int status)
{
	struct cm_report what = { .kind = kind, .conn = conn, .status = status };
	struct outbox box;

	outbox_init(&box);
	report_dispatch(engine_lock(), &box, &what, &msg);
	engine_unlock();
	outbox_flush(&box);
}

/* Return: the event, not acknowledged. */
static struct rdma_cm_event *reported(enum cm_report_kind kind, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	report(kind, 0);
	event = rig_next();
	ck_assert_ptr_nonnull(event);
	ck_assert_str_eq(rdma_event_str(event->event), rdma_event_str(type));
	return event;
}

TEST(rep_is_a_connect_response_with_depths_from_our_side)
{
	struct rdma_cm_event *event;

	msg.rep.initiator_depth = 3;
	msg.rep.responder_resources = 5;
	msg.rep.local_qpn = RIG_PEER_QPN;
	event = reported(CM_REPORT_RESPONSE, RDMA_CM_EVENT_CONNECT_RESPONSE);
	ck_assert_uint_eq(event->param.conn.responder_resources, 3);
	ck_assert_uint_eq(event->param.conn.initiator_depth, 5);
	ck_assert_uint_eq(event->param.conn.qp_num, RIG_PEER_QPN);
}

TEST(event_has_the_private_data_of_a_rep)
{
	struct rdma_cm_event *event;

	memcpy(msg.rep.private_data, "welcome", 7);
	event = reported(CM_REPORT_RESPONSE, RDMA_CM_EVENT_CONNECT_RESPONSE);
	ck_assert_uint_eq(event->param.conn.private_data_len, CM_REP_PRIVATE_BYTES);
	ck_assert_mem_eq(event->param.conn.private_data, "welcome", 7);
}

TEST(reason_of_a_rej_is_the_status)
{
	struct rdma_cm_event *event;

	msg.rej.reason = CM_REJ_CONSUMER;
	memcpy(msg.rej.private_data, "no", 2);
	event = reported(CM_REPORT_REJECTED, RDMA_CM_EVENT_REJECTED);
	ck_assert_int_eq(event->status, CM_REJ_CONSUMER);
	ck_assert_mem_eq(event->param.conn.private_data, "no", 2);
}

TEST(unanswered_request_is_unreachable)
{
	report(CM_REPORT_UNREACHABLE, -ETIMEDOUT);
	rig_expect(RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
}

TEST(rtu_is_established)
{
	report(CM_REPORT_ESTABLISHED, 0);
	rig_expect(RDMA_CM_EVENT_ESTABLISHED, 0);
	rig_expect_state(id, ID_CONNECT);
}

TEST(disconnected_id_gets_timewait_exit)
{
	report(CM_REPORT_DISCONNECTED, 0);
	rig_expect_state(id, ID_DISCONNECT);
	report(CM_REPORT_TIMEWAIT_EXIT, 0);
	rig_expect(RDMA_CM_EVENT_DISCONNECTED, 0);
	rig_expect(RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
}

TEST(unanswered_dreq_is_the_status_of_disconnected)
{
	report(CM_REPORT_DISCONNECTED, -ETIMEDOUT);
	rig_expect(RDMA_CM_EVENT_DISCONNECTED, -ETIMEDOUT);
}

TEST(disconnected_id_gets_no_other_event)
{
	report(CM_REPORT_DISCONNECTED, 0);
	report(CM_REPORT_ESTABLISHED, 0);
	report(CM_REPORT_REJECTED, 0);
	rig_expect(RDMA_CM_EVENT_DISCONNECTED, 0);
	rig_expect_nothing();
}

TEST(connected_id_gets_no_timewait_exit)
{
	report(CM_REPORT_TIMEWAIT_EXIT, 0);
	rig_expect_nothing();
}

TEST(unaccepted_request_gets_no_event_of_its_end)
{
	id->accepted = false;
	report(CM_REPORT_REJECTED, 0);
	report(CM_REPORT_DISCONNECTED, 0);
	rig_expect_nothing();
	rig_expect_state(id, ID_CONNECT);
}

/* --- datagrams ---------------------------------------------------------------- */

static void set_up_datagram(void)
{
	begin(RDMA_PS_UDP);
	msg.sidr_rep.status = CM_SIDR_OK;
	msg.sidr_rep.qpn = RIG_PEER_QPN;
	msg.sidr_rep.qkey = QKEY;
}

FIXTURE(set_up_datagram, NULL);

TEST(event_of_a_found_service_has_its_path)
{
	union addr peer = rig_peer(0);
	struct mad_gid gid = addr_to_gid(&peer);
	struct rdma_cm_event *event;

	event = reported(CM_REPORT_ANSWERED, RDMA_CM_EVENT_ESTABLISHED);
	ck_assert_uint_eq(event->param.ud.qp_num, RIG_PEER_QPN);
	ck_assert_uint_eq(event->param.ud.qkey, QKEY);
	ck_assert_mem_eq(&event->param.ud.ah_attr.grh.dgid, &gid, sizeof(gid));
	ck_assert_uint_eq(event->param.ud.ah_attr.port_num, 1);
	ck_assert_uint_eq(id->qkey, QKEY);
}

TEST(refused_service_is_unreachable_with_its_status)
{
	msg.sidr_rep.status = CM_SIDR_REJECT;
	report(CM_REPORT_ANSWERED, 0);
	rig_expect(RDMA_CM_EVENT_UNREACHABLE, CM_SIDR_REJECT);
}

TEST(service_with_another_q_key_than_the_ids_cannot_be_reached)
{
	id->qkey = QKEY + 1;
	report(CM_REPORT_ANSWERED, 0);
	rig_expect(RDMA_CM_EVENT_ADDR_ERROR, -EINVAL);
	ck_assert_uint_eq(id->qkey, QKEY + 1);
}

TEST(service_without_a_q_key_cannot_be_reached)
{
	msg.sidr_rep.qkey = 0;
	report(CM_REPORT_ANSWERED, 0);
	rig_expect(RDMA_CM_EVENT_ADDR_ERROR, -EINVAL);
}

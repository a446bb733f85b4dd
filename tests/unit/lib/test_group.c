/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast groups of ids (lib/group/) on RoCE and InfiniBand: events, attachment of queue pairs,
 * and cleanup when the id leaves, or the device is removed.
 */
#include "lib/group/multicast.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>

#include "lib/conn/qkey.h"
#include "tests/unit/lib/fake_net.h"
#include "tests/unit/lib/rig.h"
#include "tests/unit/lib/threads.h"
#include "tests/unit/test.h"

#define MLID   0xc012
#define QKEY   0x0b1b
#define PKEY   0x8005
#define HW_ALL "\x00\xff\xff\xff\xff\x12\x40\x1b\x80\x05\0\0\0\0\0\0\xff\xff\xff\xff"

static struct ibv_qp qp;
static struct id *id;
static char context; /* of the program */

static void set_up(void)
{
	rig_begin();
	id = rig_on_device(RDMA_PS_UDP, ID_ADDR_BOUND);
	id->pub.qp_type = IBV_QPT_UD;
	id->pub.qp = &qp;
}

FIXTURE(set_up, NULL);

static union addr group_addr(const char *text)
{
	union addr addr;

	addr_set_any(&addr, AF_INET);
	inet_pton(AF_INET, text, &addr.in4.sin_addr);
	return addr;
}

static int join(const char *text)
{
	union addr addr = group_addr(text);

	return rdma_join_multicast(&id->pub, &addr.sa, &context);
}

static int join_to_send(const char *text)
{
	union addr addr = group_addr(text);
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
		.addr = &addr.sa,
	};

	return rdma_join_multicast_ex(&id->pub, &attr, &context);
}

static int leave(const char *text)
{
	union addr addr = group_addr(text);

	return rdma_leave_multicast(&id->pub, &addr.sa);
}

/* --- RoCE ------------------------------------------------------------------ */

TEST(event_has_the_address_of_the_group)
{
	struct mad_gid mgid = fake_gid_of("::ffff:239.1.2.3");
	struct rdma_cm_event *event;

	ck_assert_int_eq(join("239.1.2.3"), 0);
	ck_assert_int_eq(fake_net.n_joined, 1);
	event = rig_next();
	ck_assert_str_eq(rdma_event_str(event->event), "RDMA_CM_EVENT_MULTICAST_JOIN");
	ck_assert_ptr_eq(event->param.ud.private_data, &context);
	ck_assert_uint_eq(event->param.ud.qp_num, 0xffffff);
	ck_assert_uint_eq(event->param.ud.qkey, RDMA_UDP_QKEY);
	ck_assert_mem_eq(&event->param.ud.ah_attr.grh.dgid, &mgid, sizeof(mgid));
	ck_assert_uint_eq(event->param.ud.ah_attr.is_global, 1);
	ck_assert_uint_eq(event->param.ud.ah_attr.grh.hop_limit, 64);
	ck_assert_uint_eq(event->param.ud.ah_attr.grh.sgid_index, id->path.gid.gid_index);
	ck_assert_uint_eq(event->param.ud.ah_attr.port_num, 1);
	rdma_ack_cm_event(event);
}

TEST(id_that_resolved_the_loopback_has_no_device_for_groups)
{
	id->path.loopback = true;
	rig_expect_errno(join("239.1.2.3"), ENODEV);
}

TEST(queue_pair_is_attached_when_the_event_is_taken)
{
	struct mad_gid mgid = fake_gid_of("::ffff:239.1.2.3");

	ck_assert_int_eq(join("239.1.2.3"), 0);
	ck_assert_int_eq(fake.n_attached, 0);
	rig_expect(RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	ck_assert_int_eq(fake.n_attached, 1);
	ck_assert_mem_eq(&fake.attached, &mgid, sizeof(mgid));
}

TEST(queue_pair_that_cannot_be_attached_is_an_error_of_the_event)
{
	ck_assert_int_eq(join("239.1.2.3"), 0);
	fake.fail_at = fake.n_calls + 1;
	rig_expect(RDMA_CM_EVENT_MULTICAST_ERROR, -1); /* as stock */
	ck_assert_int_eq(fake.n_attached, 0);
}

TEST(send_only_member_is_not_attached)
{
	ck_assert_int_eq(join_to_send("239.1.2.3"), 0);
	rig_expect(RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	ck_assert_int_eq(fake.n_attached, 0);
	ck_assert_int_eq(fake_net.n_joined, 0);
}

TEST(leaving_undoes_joining)
{
	ck_assert_int_eq(join("239.1.2.3"), 0);
	rig_expect(RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	ck_assert_int_eq(leave("239.1.2.3"), 0);
	ck_assert_int_eq(fake.n_attached, 0);
	ck_assert_int_eq(fake_net.n_joined, 0);
	rig_expect_errno(leave("239.1.2.3"), EADDRNOTAVAIL);
}

TEST(event_of_a_left_group_is_dropped)
{
	ck_assert_int_eq(join("239.1.2.3"), 0);
	ck_assert_int_eq(leave("239.1.2.3"), 0);
	rig_expect_nothing();
	ck_assert_int_eq(fake_net.n_joined, 0);
}

TEST(second_membership_of_a_group_is_left_first)
{
	ck_assert_int_eq(join_to_send("239.1.2.3"), 0);
	ck_assert_int_eq(join("239.1.2.3"), 0);
	ck_assert_int_eq(leave("239.1.2.3"), 0);
	ck_assert_int_eq(fake_net.n_joined, 0);
	ck_assert_int_eq(leave("239.1.2.3"), 0);
}

TEST(refusal_of_the_kernel_is_an_error_of_the_call)
{
	fake_net.join_err = -ENOBUFS;
	rig_expect_errno(join("239.1.2.3"), ENOBUFS);
	rig_expect_nothing();
	ck_assert(list_is_empty(&id->groups));
}

TEST(no_group_is_joined_without_an_address)
{
	rig_expect_errno(join("0.0.0.0"), EINVAL);
	id->state = ID_CONNECT;
	rig_expect_errno(join("239.1.2.3"), EINVAL);
	ck_assert_int_eq(fake_net.n_joined, 0);
}

TEST(only_datagrams_have_groups)
{
	id->pub.qp_type = IBV_QPT_RC;
	rig_expect_errno(join("239.1.2.3"), EINVAL);
}

TEST(device_removal_ends_memberships_but_keeps_groups)
{
	ck_assert_int_eq(join("239.1.2.3"), 0);
	ck_assert_int_eq(join("239.1.2.4"), 0);
	rig_expect(RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	rig_expect(RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	multicast_device_gone(rig.device);
	ck_assert_int_eq(fake_net.n_joined, 0);
	id->device_gone = true;
	rig_expect_errno(leave("239.1.2.3"), ENXIO);
}

TEST(memberships_end_with_their_id)
{
	ck_assert_int_eq(join("239.1.2.3"), 0);
	rig_expect(RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	id->pub.qp = NULL;
	ck_assert_int_eq(rdma_destroy_id(&id->pub), 0);
	ck_assert_int_eq(fake_net.n_joined, 0);
}

/* --- InfiniBand ------------------------------------------------------------ */

static void move_to_infiniband(void)
{
	id->path.gid.type = IBV_GID_TYPE_IB;
	id->path.gid.ifindex = FAKE_IFINDEX;
	fake_net.hw_bytes = NET_IPOIB_HW_BYTES;
	memcpy(fake_net.hw_broadcast, HW_ALL, NET_IPOIB_HW_BYTES);
}

/* The latest request to the administrator. */
static struct sa_member question(uint8_t method)
{
	const struct portd_record *record = fake_cmportd_last(PORTD_SA_ASK);
	struct sa_member member;

	ck_assert_uint_eq(record->sa_ask.method, method);
	ck_assert_uint_eq(record->sa_ask.attr, SA_ATTR_MCMEMBER_RECORD);
	wire_decode(sa_msg_layout(SA_ATTR_MCMEMBER_RECORD), record->sa_ask.record, &member);
	return member;
}

/* The administrator responds to the latest request. */
static void answer(int err, const struct sa_member *member)
{
	struct portd_sa_told told = { .ask_id = fake_cmportd_last(PORTD_SA_ASK)->sa_ask.ask_id,
				      .error = (uint16_t)-err };

	wire_encode(sa_msg_layout(SA_ATTR_MCMEMBER_RECORD), member, told.record);
	subnet_answered(&told);
}

static const struct sa_member broadcast = { .qkey = QKEY, .pkey = PKEY, .sl = 2, .rate = 3 };

static void join_on_infiniband(uint8_t hop_limit)
{
	struct sa_member member;

	move_to_infiniband();
	ck_assert_int_eq(join("239.1.2.3"), 0);
	answer(0, &broadcast);
	member = question(SA_METHOD_SET);
	member.mlid = MLID;
	member.hop_limit = hop_limit;
	answer(0, &member);
}

TEST(broadcast_group_is_queried_first)
{
	struct sa_member asked;

	move_to_infiniband();
	ck_assert_int_eq(join("239.1.2.3"), 0);
	asked = question(SA_METHOD_GET);
	ck_assert_mem_eq(&asked.mgid, &HW_ALL[4], sizeof(asked.mgid));
	answer(0, &broadcast);
	asked = question(SA_METHOD_SET);
	ck_assert_uint_eq(asked.pkey, PKEY);
	ck_assert_uint_eq(asked.sl, broadcast.sl);
	ck_assert_uint_eq(asked.qkey, RDMA_UDP_QKEY);
	ck_assert_uint_eq(asked.mgid.raw[0], 0xff);
	rig_expect_nothing();
}

/* A packet to a group has a global route header even where it makes no hop. */
TEST_LOOP(event_on_infiniband_has_the_administrators_parameters, 0, 2)
{
	struct rdma_cm_event *event;
	const struct ibv_ah_attr *ah;

	join_on_infiniband((uint8_t)_i);
	event = rig_next();
	ck_assert_str_eq(rdma_event_str(event->event), "RDMA_CM_EVENT_MULTICAST_JOIN");
	ah = &event->param.ud.ah_attr;
	ck_assert_uint_eq(ah->dlid, MLID);
	ck_assert_uint_eq(ah->sl, broadcast.sl);
	ck_assert_uint_eq(ah->static_rate, broadcast.rate);
	ck_assert_uint_eq(ah->is_global, 1);
	ck_assert_uint_eq(ah->grh.hop_limit, _i);
	ck_assert_uint_eq(ah->grh.dgid.raw[0], 0xff);
	rdma_ack_cm_event(event);
	ck_assert_uint_eq(fake.attached_lid, MLID);
}

TEST(refusal_of_the_administrator_is_an_event)
{
	struct rdma_cm_event *event;

	move_to_infiniband();
	ck_assert_int_eq(join("239.1.2.3"), 0);
	answer(0, &broadcast);
	answer(-EACCES, &broadcast);
	event = rig_next();
	ck_assert_int_eq(event->event, RDMA_CM_EVENT_MULTICAST_ERROR);
	ck_assert_int_eq(event->status, -EACCES);
	ck_assert_ptr_eq(event->param.ud.private_data, &context);
	ck_assert_uint_eq(event->param.ud.qp_num, 0);
	rdma_ack_cm_event(event);
}

TEST(without_a_broadcast_group_there_is_no_ip_group)
{
	move_to_infiniband();
	ck_assert_int_eq(join("239.1.2.3"), 0);
	answer(-EINVAL, &broadcast);
	rig_expect(RDMA_CM_EVENT_MULTICAST_ERROR, -EADDRNOTAVAIL);
}

TEST(without_an_ip_interface_there_is_no_ip_group)
{
	move_to_infiniband();
	fake_net.hw_bytes = 0;
	rig_expect_errno(join("239.1.2.3"), EADDRNOTAVAIL);
	ck_assert(list_is_empty(&id->groups));
}

TEST(leaving_on_infiniband_is_sent_to_the_administrator)
{
	join_on_infiniband(0);
	rig_expect(RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	ck_assert_int_eq(leave("239.1.2.3"), 0);
	ck_assert_uint_eq(fake_cmportd_count(PORTD_SA_DROP), 1);
	ck_assert_int_eq(fake.n_attached, 0);
}

TEST(answer_for_a_left_group_is_ignored)
{
	move_to_infiniband();
	ck_assert_int_eq(join("239.1.2.3"), 0);
	ck_assert_int_eq(leave("239.1.2.3"), 0);
	ck_assert_uint_eq(fake_cmportd_count(PORTD_SA_DROP), 1);
	answer(0, &broadcast);
	rig_expect_nothing();
}

/* --- RDMA_PS_IPOIB: the Q_Key is the broadcast group's ---------------------- */

static void resolve_route_of_ipoib(void)
{
	struct portd_sa_told told = { 0 };
	struct sa_path path = { .numb_path = 1 };

	id = rig_on_device(RDMA_PS_IPOIB, ID_ADDR_RESOLVED);
	id->pub.qp_type = IBV_QPT_UD;
	move_to_infiniband();
	ck_assert_int_eq(rdma_resolve_route(&id->pub, 1000), 0);
	told.ask_id = fake_cmportd_last(PORTD_SA_ASK)->sa_ask.ask_id;
	wire_encode(sa_msg_layout(SA_ATTR_PATH_RECORD), &path, told.record);
	subnet_answered(&told);
	rig_expect_nothing();
}

static void expect_qkey(struct id *of, uint32_t qkey)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	int mask;

	ck_assert_int_eq(rdma_init_qp_attr(&of->pub, &attr, &mask), 0);
	ck_assert_uint_eq(attr.qkey, qkey);
}

TEST(ipoib_route_has_the_qkey_of_the_broadcast_group)
{
	struct sa_member asked;

	resolve_route_of_ipoib();
	asked = question(SA_METHOD_GET);
	ck_assert_mem_eq(&asked.mgid, &HW_ALL[4], sizeof(asked.mgid));
	answer(0, &broadcast);
	rig_expect(RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	expect_qkey(id, QKEY);
}

TEST(ipoib_route_without_a_broadcast_group_has_the_usual_qkey)
{
	resolve_route_of_ipoib();
	answer(-EINVAL, &broadcast);
	rig_expect(RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	expect_qkey(id, RDMA_UDP_QKEY);
}

TEST(ipoib_route_fails_if_the_administrator_does_not_answer)
{
	resolve_route_of_ipoib();
	answer(-ETIMEDOUT, &broadcast);
	rig_expect(RDMA_CM_EVENT_ROUTE_ERROR, -ETIMEDOUT);
	rig_expect_state(id, ID_ADDR_RESOLVED);
}

static void *learn(void *arg)
{
	qkey_learn(arg);
	return NULL;
}

/* As in the thread that takes a request; the engine's thread delivers the response. */
static void join_by_answer(int err)
{
	pthread_t thread;

	id = rig_on_device(RDMA_PS_IPOIB, ID_CONNECT);
	id->pub.qp_type = IBV_QPT_UD;
	move_to_infiniband();
	ck_assert_int_eq(pthread_create(&thread, NULL, learn, id), 0);
	threads_wait_asleep();
	question(SA_METHOD_GET);
	answer(err, &broadcast);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_uint_eq(fake_cmportd_count(PORTD_SA_DROP), 0);
}

TEST(ipoib_request_waits_for_the_qkey)
{
	join_by_answer(0);
	expect_qkey(id, QKEY);
}

TEST(ipoib_request_without_an_answer_has_the_usual_qkey)
{
	join_by_answer(-ETIMEDOUT);
	expect_qkey(id, RDMA_UDP_QKEY);
}

TEST(ids_of_other_port_spaces_query_no_qkey)
{
	move_to_infiniband();
	qkey_learn(id);
	ck_assert_uint_eq(fake_cmportd_count(PORTD_SA_ASK), 0);
	expect_qkey(id, RDMA_UDP_QKEY);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* A device is removed: lib/conn/removal.c. */
#include "lib/device/device.h"

#include <errno.h>
#include <rdma/rdma_cma.h>

#include "tests/unit/lib/fake_net.h"
#include "tests/unit/lib/rig.h"
#include "tests/unit/test.h"

static void set_up(void)
{
	rig_begin_with(&rig_reporting);
}

FIXTURE(set_up, NULL);

static void remove_device(void)
{
	device_gone(rig.device);
}

TEST(ids_on_the_device_get_an_event)
{
	struct id *id = rig_routed(RDMA_PS_TCP);

	remove_device();
	rig_expect(RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	rig_expect_state(id, ID_DEVICE_REMOVAL);
}

TEST(removal_is_reported_once)
{
	rig_routed(RDMA_PS_TCP);
	remove_device();
	remove_device();
	rig_expect(RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	rig_expect_nothing();
}

static void remove_meanwhile(const struct portd_record *record)
{
	if (record->type == PORTD_BIND)
		remove_device();
}

TEST(id_being_bound_to_the_device_gets_an_event)
{
	struct id *id = rig_id(RDMA_PS_TCP, ID_IDLE);
	union addr own = rig_own(RIG_PORT);

	cmportd.meanwhile = remove_meanwhile;
	rdma_bind_addr(&id->pub, &own.sa);
	rig_expect(RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	rig_expect_state(id, ID_DEVICE_REMOVAL);
}

TEST(resolution_whose_source_is_being_bound_to_the_device_fails)
{
	struct id *id = rig_id(RDMA_PS_TCP, ID_IDLE);
	union addr own = rig_own(RIG_PORT), peer = rig_peer(RIG_PORT);

	cmportd.meanwhile = remove_meanwhile;
	rdma_resolve_addr(&id->pub, &own.sa, &peer.sa, 1000);
	rig_expect(RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
	rig_expect_nothing();
	rig_expect_state(id, ID_ADDR_BOUND);
}

TEST(id_without_a_device_gets_no_event)
{
	struct id *id = rig_id(RDMA_PS_TCP, ID_ADDR_BOUND);

	remove_device();
	rig_expect_nothing();
	rig_expect_state(id, ID_ADDR_BOUND);
}

/* Return: the id whose resolution the removal has ended. */
static struct id *remove_device_while_resolving(void)
{
	struct id *id = rig_id(RDMA_PS_TCP, ID_IDLE);
	union addr peer = rig_peer(RIG_PORT);

	fake_net.is_resolved = false;
	fake_net.neigh = NET_NEIGH_PENDING;
	ck_assert_int_eq(rdma_resolve_addr(&id->pub, NULL, &peer.sa, 1000), 0);
	remove_device();
	rig_expect(RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
	return id;
}

TEST(pending_resolution_fails)
{
	struct id *id = remove_device_while_resolving();

	rig_expect_state(id, ID_ADDR_BOUND);
	ck_assert_uint_eq(engine_held()->resolving.n_nodes, 0);
}

/* It has another address. */
static void plug_in_another_device(void)
{
	static struct ibv_device other = { .name = "fake1", .dev_name = "uverbs1" };
	struct mad_gid gid;

	fake_net.own = rig_own(0);
	fake_net.own.in4.sin_addr.s_addr ^= htonl(8);
	gid = addr_to_gid(&fake_net.own);
	memcpy(&fake.gid[1].gid, &gid, sizeof(gid));
	fake.listed = &other;
	gid_forget(NULL);
}

TEST(resolution_after_a_removal_chooses_another_source)
{
	struct id *id = remove_device_while_resolving();
	union addr peer = rig_peer(RIG_PORT);

	plug_in_another_device();
	fake_net.is_resolved = true;
	ck_assert_int_eq(rdma_resolve_addr(&id->pub, NULL, &peer.sa, 1000), 0);
	rig_expect(RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	ck_assert(addr_same_ip(&id->claim.local, &fake_net.own));
}

TEST(connected_id_gets_an_event_and_the_peer_no_message)
{
	struct id *id = rig_connected();
	unsigned int n_sent = fake_cmportd_count(PORTD_MAD);

	remove_device();
	rig_expect(RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	ck_assert_ptr_null(id->conn);
	ck_assert_uint_eq(engine_held()->core.n_conns, 0);
	ck_assert_uint_eq(fake_cmportd_count(PORTD_MAD), n_sent);
}

TEST(untaken_request_is_dropped_with_the_device)
{
	struct id *listener = rig_listener(1);
	struct cm_msg req = rig_req(1);

	rig_receive(&req);
	remove_device();
	ck_assert_uint_eq(listener->n_requests, 0);
	rig_expect(RDMA_CM_EVENT_DEVICE_REMOVAL, 0); /* for the listener */
	rig_expect_nothing();
}

/* Nothing else would post it. */
TEST(request_that_waits_for_the_room_of_one_that_is_dropped_does_not_wait_on)
{
	struct id *listener = rig_listener(1);
	struct cm_msg req = rig_req(1), waiting = rig_req(2);

	rig_receive(&req);
	rig_receive(&waiting);
	remove_device();
	ck_assert_uint_eq(listener->n_waiting, 0);
	ck_assert_ptr_eq(listener->waiting.next, &listener->waiting);
}

TEST(unaccepted_request_gets_no_event)
{
	struct id *child;

	rig_listener(1);
	child = rig_requested(1);
	remove_device();
	rig_expect_state(child, ID_DEVICE_REMOVAL);
	rig_expect(RDMA_CM_EVENT_DEVICE_REMOVAL, 0); /* for the listener */
	rig_expect_nothing();
}

static struct id *datagram_child(void)
{
	struct id *child, *listener = rig_id(RDMA_PS_UDP, ID_IDLE);
	struct cm_msg lookup = rig_lookup(1);
	union addr own = rig_own(RIG_PORT);
	struct rdma_cm_event *event;

	ck_assert_int_eq(rdma_bind_addr(&listener->pub, &own.sa), 0);
	ck_assert_int_eq(rdma_listen(&listener->pub, 1), 0);
	rig_receive(&lookup);
	event = rig_next();
	ck_assert_ptr_nonnull(event);
	child = id_of(event->id);
	rdma_ack_cm_event(event);
	return child;
}

TEST(accepted_datagram_request_gets_an_event)
{
	struct id *child = datagram_child();

	ck_assert_int_eq(rdma_accept(&child->pub, NULL), 0);
	remove_device();
	rig_expect(RDMA_CM_EVENT_DEVICE_REMOVAL, 0); /* for the listener */
	rig_expect(RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
}

TEST(rejected_datagram_request_gets_no_event)
{
	struct id *child = datagram_child();

	ck_assert_int_eq(rdma_reject(&child->pub, NULL, 0), 0);
	remove_device();
	rig_expect(RDMA_CM_EVENT_DEVICE_REMOVAL, 0); /* for the listener */
	rig_expect_nothing();
}

TEST(request_that_could_not_be_accepted_gets_no_event)
{
	struct rdma_conn_param param = { .qp_num = 0x42 };
	struct cm_msg rej;
	struct id *child;

	rig_listener(1);
	child = rig_requested(1);
	cm_msg_init(&rej, CM_ATTR_REJ, 1);
	rej.rej.local_comm_id = child->conn->remote_comm_id;
	rej.rej.remote_comm_id = child->conn->local_comm_id;
	rej.rej.message = CM_ANSWERED_OTHER;
	rej.rej.reason = CM_REJ_CONSUMER;
	rig_receive(&rej);
	rig_expect_errno(rdma_accept(&child->pub, &param), EINVAL);
	remove_device();
	rig_expect(RDMA_CM_EVENT_DEVICE_REMOVAL, 0); /* for the listener */
	rig_expect_nothing();
}

TEST(removed_device_resolves_no_address)
{
	struct id *id = rig_id(RDMA_PS_TCP, ID_IDLE);
	union addr peer = rig_peer(RIG_PORT);

	fake.n_listed = 0;
	remove_device();
	ck_assert_int_eq(rdma_resolve_addr(&id->pub, NULL, &peer.sa, 1000), 0);
	rig_expect(RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
}

TEST(call_that_detects_the_removal_reports_it_to_the_ids)
{
	rig_routed(RDMA_PS_TCP);
	fake.gone_errno = EIO;
	fake.n_listed = 0;
	ck_assert_int_eq(device_list_refresh(), -ENODEV);
	rig_expect(RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
}

/* --- closing ----------------------------------------------------------------- */

static void expect_closed(int n)
{
	device_close_unused(true);
	ck_assert_int_eq(fake.n_closed, n);
}

static void destroy_reported(struct id *id)
{
	rig_expect(RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	rdma_destroy_id(&id->pub);
}

TEST(device_is_closed_after_its_last_id)
{
	struct id *first = rig_routed(RDMA_PS_TCP), *last = rig_routed(RDMA_PS_UDP);

	port_put(rig.port);
	remove_device();
	destroy_reported(first);
	expect_closed(0);
	destroy_reported(last);
	expect_closed(1);
	ck_assert_int_eq(fake.n_pds, 0);
}

TEST(bound_id_keeps_its_device_open)
{
	struct id *id = rig_id(RDMA_PS_TCP, ID_IDLE);
	union addr own = rig_own(0);

	port_put(rig.port);
	ck_assert_int_eq(rdma_bind_addr(&id->pub, &own.sa), 0);
	remove_device();
	expect_closed(0);
	destroy_reported(id);
	expect_closed(1);
}

/* A message may be outstanding. */
TEST(port_keeps_its_device_open)
{
	remove_device();
	expect_closed(0);
	port_put(rig.port);
	expect_closed(1);
}

TEST(xrc_domain_is_freed_with_the_device)
{
	struct ibv_xrcd *xrcd;

	ck_assert_int_eq(device_xrcd(rig.device, &xrcd), 0);
	port_put(rig.port);
	remove_device();
	expect_closed(1);
	ck_assert_int_eq(fake.n_xrcds, 0);
}

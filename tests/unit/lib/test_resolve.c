/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_bind_addr(), rdma_resolve_addr() and rdma_resolve_route(): lib/conn/resolve.c and move.c. */
#include "lib/conn/resolve.h"

#include <endian.h>
#include <infiniband/sa.h>
#include <rdma/rdma_cma.h>
#include <string.h>

#include "lib/conn/move.h"
#include "lib/path/subnet.h"
#include "tests/unit/lib/fake_ibacm.h"
#include "tests/unit/lib/fake_net.h"
#include "tests/unit/lib/rig.h"
#include "tests/unit/steps.h"
#include "tests/unit/test.h"

#define TIMEOUT_MS 2000
#define PKEY	   0x8005
#define FLOW_LABEL 0x12345

static struct id *id;
static union addr own, peer;

static void set_up(void)
{
	rig_begin_with(&rig_reporting);
	fake_ibacm_begin();
	fake_ibacm.err = -ENOTCONN;
	id = rig_id(RDMA_PS_TCP, ID_IDLE);
	own = rig_own(0);
	peer = rig_peer(RIG_PORT);
}

FIXTURE(set_up, NULL);

/* --- binding ------------------------------------------------------------------ */

static int bind_id(const union addr *addr)
{
	union addr copy = *addr;

	return rdma_bind_addr(&id->pub, &copy.sa);
}

TEST(address_of_an_interface_binds_to_its_device)
{
	ck_assert_int_eq(bind_id(&own), 0);
	rig_expect_state(id, ID_ADDR_BOUND);
	ck_assert_ptr_eq(id->pub.verbs, &fake.verbs.context);
	ck_assert_uint_eq(id->pub.port_num, 1);
}

TEST(wildcard_address_binds_to_no_device)
{
	union addr any;

	addr_set_any(&any, AF_INET);
	ck_assert_int_eq(bind_id(&any), 0);
	rig_expect_state(id, ID_ADDR_BOUND);
	ck_assert_ptr_null(id->pub.verbs);
}

/*
 * A peer may connect as soon as the program has its port number: rdma_listen() has little left to
 * do.
 */
TEST(wildcard_address_has_the_ports_of_all_devices_opened)
{
	unsigned int n_opened = cmportd.n_handles;
	union addr any;

	ck_assert_ptr_eq(device_take_port(rig.device), rig.port);
	addr_set_any(&any, AF_INET);
	ck_assert_int_eq(bind_id(&any), 0);
	ck_assert_uint_eq(cmportd.n_handles, n_opened + 1);
	ck_assert_int_eq(rdma_listen(&id->pub, 1), 0);
	ck_assert_uint_eq(cmportd.n_handles, n_opened + 1);
}

/* An open port reports the removal of its device. */
TEST(bound_address_has_its_port_opened)
{
	unsigned int n_opened = cmportd.n_handles;

	device_take_port(rig.device);
	ck_assert_int_eq(bind_id(&own), 0);
	ck_assert_uint_eq(cmportd.n_handles, n_opened + 1);
}

TEST(loopback_address_has_its_port_opened)
{
	unsigned int n_opened = cmportd.n_handles;
	union addr any;

	device_take_port(rig.device);
	addr_set_any(&any, AF_INET);
	ck_assert_int_eq(rdma_resolve_addr(&id->pub, NULL, &any.sa, 1000), 0);
	rig_expect(RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	ck_assert_uint_eq(cmportd.n_handles, n_opened + 1);
}

TEST(port_0_is_an_ephemeral_one_from_the_lease)
{
	ck_assert_int_eq(bind_id(&own), 0);
	ck_assert_uint_eq(ntohs(rdma_get_src_port(&id->pub)), FAKE_FIRST_PORT);
	ck_assert_uint_eq(cmportd.n_said, 0);
}

TEST(refused_port_leaves_the_id_idle)
{
	cmportd.bind_err = -EADDRINUSE;
	addr_set_port(&own, RIG_PORT);
	rig_expect_errno(bind_id(&own), EADDRINUSE);
	rig_expect_state(id, ID_IDLE);
	ck_assert_uint_eq(id->claim.local.sa.sa_family, AF_UNSPEC);
}

TEST(address_of_another_host_is_not_available)
{
	rig_expect_errno(bind_id(&peer), EADDRNOTAVAIL);
	rig_expect_state(id, ID_IDLE);
}

TEST(link_local_address_needs_a_scope)
{
	union addr addr;

	addr_set_any(&addr, AF_INET6);
	addr.in6.sin6_addr.s6_addr[0] = 0xfe;
	addr.in6.sin6_addr.s6_addr[1] = 0x80;
	rig_expect_errno(bind_id(&addr), EINVAL);
}

TEST(service_id_of_datagrams_changes_the_port_space_only)
{
	union addr any = { .ib = { .sib_family = AF_IB,
				   .sib_sid = htobe64(RDMA_PS_UDP << 16 | RIG_PORT),
				   .sib_sid_mask = UINT64_MAX } };

	id = rig_id(RDMA_PS_IB, ID_IDLE);
	ck_assert_int_eq(bind_id(&any), 0);
	ck_assert_uint_eq(fake_cmportd_last(PORTD_BIND)->claim.ps, RDMA_PS_UDP);
	ck_assert(id_transport(id) == IBV_QPT_RC);
}

TEST(id_is_bound_once)
{
	ck_assert_int_eq(bind_id(&own), 0);
	rig_expect_errno(bind_id(&own), EINVAL);
}

TEST(bound_id_cannot_be_bound_to_an_unknown_address)
{
	ck_assert_int_eq(bind_id(&own), 0);
	rig_expect_errno(bind_id(&peer), EINVAL);
}

TEST(ipoib_needs_an_infiniband_port)
{
	id = rig_id(RDMA_PS_IPOIB, ID_IDLE);
	rig_expect_errno(bind_id(&own), EINVAL);
}

/* --- addresses ----------------------------------------------------------------- */

static int resolve(void)
{
	return rdma_resolve_addr(&id->pub, NULL, &peer.sa, TIMEOUT_MS);
}

TEST(peer_with_a_known_link_address_is_resolved_at_once)
{
	ck_assert_int_eq(resolve(), 0);
	rig_expect_state(id, ID_ADDR_RESOLVED);
	rig_expect(RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	ck_assert_ptr_eq(id->pub.verbs, &fake.verbs.context);
}

TEST(source_is_the_one_of_the_route)
{
	ck_assert_int_eq(resolve(), 0);
	ck_assert(addr_same_ip(&id->claim.local, &own));
	ck_assert_uint_eq(addr_port(&id->claim.local), FAKE_FIRST_PORT);
}

/* To the kernel, a source identifies its device even if the destination is this host. */
TEST_LOOP(bound_source_stays_whatever_the_destination, 0, 2)
{
	peer.in4.sin_addr.s_addr = htonl(_i ? INADDR_LOOPBACK : INADDR_ANY);
	ck_assert_int_eq(bind_id(&own), 0);
	ck_assert_int_eq(resolve(), 0);
	rig_expect(RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	ck_assert(addr_same_ip(&id->claim.local, &own));
	ck_assert_int_eq(rdma_resolve_route(&id->pub, TIMEOUT_MS), 0);
	rig_expect(RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
}

TEST(source_of_the_empty_gid_has_a_service_id)
{
	peer = (union addr){ .ib = { .sib_family = AF_IB,
				     .sib_pkey = htobe16(0xffff),
				     .sib_sid = htobe64(RDMA_PS_TCP << 16 | RIG_PORT),
				     .sib_sid_mask = UINT64_MAX } };
	ck_assert_int_eq(resolve(), 0);
	ck_assert_uint_eq(be64toh(id->claim.local.ib.sib_sid), RDMA_PS_TCP << 16 | FAKE_FIRST_PORT);
	ck_assert_uint_eq(id->claim.local.ib.sib_sid_mask, UINT64_MAX);
	ck_assert_uint_eq(id->claim.local.ib.sib_pkey, htobe16(0xffff));
	ck_assert(addr_is_loopback(&id->claim.local));
}

TEST(loopback_source_reaches_no_peer)
{
	own.in4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(bind_id(&own), 0);
	ck_assert_int_eq(resolve(), 0);
	rig_expect(RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
	ck_assert(addr_is_loopback(&id->claim.local));
}

TEST(ipoib_route_without_a_device_is_of_the_wrong_kind)
{
	rdma_destroy_id(&id->pub);
	id = rig_id(RDMA_PS_IPOIB, ID_IDLE);
	fake_net.leaves_by = FAKE_IFINDEX + 1;
	ck_assert_int_eq(resolve(), 0);
	rig_expect(RDMA_CM_EVENT_ADDR_ERROR, -EINVAL);
}

TEST(link_local_peer_is_published_without_the_scope_of_its_route)
{
	peer = (union addr){ .in6.sin6_family = AF_INET6, .in6.sin6_addr = { { { 0xfe, 0x80 } } } };
	ck_assert_int_eq(resolve(), 0);
	rig_expect(RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	ck_assert_uint_eq(id->pub.route.addr.dst_sin6.sin6_scope_id, 0);
	ck_assert_uint_eq(addr_scope(&id->claim.peer), FAKE_IFINDEX);
}

TEST(without_a_route_the_id_stays_bound)
{
	fake_net.route_err = -ENETUNREACH;
	rig_expect_errno(resolve(), ENETUNREACH);
	rig_expect_state(id, ID_ADDR_BOUND);
	rig_expect_nothing();
}

TEST(route_without_a_device_is_an_event)
{
	fake_net.leaves_by = FAKE_IFINDEX + 1;
	ck_assert_int_eq(resolve(), 0);
	rig_expect(RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
	rig_expect_state(id, ID_ADDR_BOUND);
}

/* Over IPv6, and in a VRF, the kernel may choose a route by another interface than the source's. */
TEST(bound_source_fixes_the_device_whatever_the_interface_of_the_route)
{
	fake_net.leaves_by = FAKE_IFINDEX + 1;
	ck_assert_int_eq(bind_id(&own), 0);
	ck_assert_int_eq(resolve(), 0);
	ck_assert_uint_eq(fake_net.asked_ifindex, FAKE_IFINDEX);
	rig_expect(RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	ck_assert_ptr_eq(id->pub.verbs, &fake.verbs.context);
}

/* As with the kernel. */
TEST(next_attempt_uses_the_same_interface)
{
	fake_net.leaves_by = FAKE_IFINDEX + 1;
	ck_assert_int_eq(resolve(), 0);
	rig_expect(RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
	ck_assert_int_eq(resolve(), 0);
	ck_assert_uint_eq(fake_net.asked_ifindex, FAKE_IFINDEX + 1);
}

TEST(destination_of_another_family_is_refused)
{
	ck_assert_int_eq(bind_id(&own), 0);
	addr_set_any(&peer, AF_INET6);
	rig_expect_errno(resolve(), EINVAL);
}

TEST(id_resolves_one_address_at_a_time)
{
	fake_net.is_resolved = false;
	fake_net.neigh = NET_NEIGH_PENDING;
	ck_assert_int_eq(resolve(), 0);
	rig_expect_errno(resolve(), EINVAL);
}

/* --- link addresses ---------------------------------------------------------------- */

static void resolve_unknown_within(int timeout_ms)
{
	fake_net.is_resolved = false;
	fake_net.neigh = NET_NEIGH_NONE;
	ck_assert_int_eq(rdma_resolve_addr(&id->pub, NULL, &peer.sa, timeout_ms), 0);
}

static void resolve_unknown(void)
{
	resolve_unknown_within(TIMEOUT_MS);
}

static void announce_neighbour(void)
{
	struct net_event event = { .change = NET_CHANGE_NEIGH,
				   .ifindex = FAKE_IFINDEX,
				   .addr = rig_peer(0) };

	resolve_neigh_changed(&event);
}

static void pass_ms(unsigned int ms)
{
	rig.now_ns += ms * CM_NS_PER_MS;
	engine_turn(0);
}

TEST(unknown_link_address_is_requested_from_the_kernel)
{
	resolve_unknown();
	rig_expect_state(id, ID_ADDR_QUERY);
	rig_expect_nothing();
	ck_assert_uint_eq(fake_net.n_neigh_asked, 1);
}

TEST(announced_link_address_ends_the_wait)
{
	resolve_unknown();
	fake_net.neigh = NET_NEIGH_KNOWN;
	announce_neighbour();
	rig_expect(RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	rig_expect_state(id, ID_ADDR_RESOLVED);
}

#define MANY 2000

static void resolve_others(int n)
{
	union addr to = rig_peer(0);
	struct id *other;

	for (; n; n--) {
		other = rig_id(RDMA_PS_TCP, ID_IDLE);
		to.in4.sin_addr.s_addr = htonl(0xc6330000 + (uint32_t)n);
		ck_assert_int_eq(rdma_resolve_addr(&other->pub, NULL, &to.sa, 1000), 0);
	}
}

TEST(announcement_costs_no_more_with_two_thousand_resolutions)
{
	unsigned long few, many;

	fake_net.is_resolved = false;
	fake_net.neigh = NET_NEIGH_PENDING;
	resolve_others(10);
	few = steps_of(announce_neighbour);
	resolve_others(MANY);
	many = steps_of(announce_neighbour);
	ck_assert_uint_le(many, few + few / 10);
}

TEST(missed_announcement_is_detected_by_the_timer)
{
	resolve_unknown();
	fake_net.neigh = NET_NEIGH_KNOWN;
	pass_ms(251);
	rig_expect(RDMA_CM_EVENT_ADDR_RESOLVED, 0);
}

TEST(failed_link_address_is_requested_again)
{
	resolve_unknown();
	fake_net.neigh = NET_NEIGH_FAILED;
	announce_neighbour();
	ck_assert_uint_eq(fake_net.n_neigh_asked, 2);
	rig_expect_nothing();
}

TEST(wait_for_a_link_address_ends_with_the_timeout)
{
	resolve_unknown();
	pass_ms(TIMEOUT_MS - 1);
	rig_expect_nothing();
	pass_ms(1);
	rig_expect(RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	rig_expect_state(id, ID_ADDR_BOUND);
}

TEST(negative_timeout_never_expires)
{
	resolve_unknown_within(-1);
	pass_ms(600 * 1000);
	rig_expect_nothing();
	fake_net.neigh = NET_NEIGH_KNOWN;
	announce_neighbour();
	rig_expect(RDMA_CM_EVENT_ADDR_RESOLVED, 0);
}

TEST(id_whose_address_was_not_resolved_may_try_again)
{
	resolve_unknown();
	pass_ms(TIMEOUT_MS);
	rig_expect(RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	fake_net.is_resolved = true;
	ck_assert_int_eq(resolve(), 0);
	rig_expect(RDMA_CM_EVENT_ADDR_RESOLVED, 0);
}

TEST(source_that_a_failed_resolution_chose_is_dropped)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	int mask;

	resolve_unknown();
	pass_ms(TIMEOUT_MS);
	rig_expect(RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	rig_expect_errno(rdma_init_qp_attr(&id->pub, &attr, &mask), EINVAL);
	ck_assert_int_eq(rdma_listen(&id->pub, 1), 0);
	ck_assert(addr_is_any(&id->claim.local));
	ck_assert_uint_eq(ntohs(rdma_get_src_port(&id->pub)), FAKE_FIRST_PORT);
	ck_assert_uint_eq(fake_cmportd_last(PORTD_LISTEN)->claim.heard_at, 0); /* at all ports */
}

TEST(source_of_the_program_stays_when_a_resolution_fails)
{
	fake_net.is_resolved = false;
	fake_net.neigh = NET_NEIGH_NONE;
	ck_assert_int_eq(rdma_resolve_addr(&id->pub, &own.sa, &peer.sa, TIMEOUT_MS), 0);
	pass_ms(TIMEOUT_MS);
	rig_expect(RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	ck_assert_int_eq(rdma_listen(&id->pub, 1), 0);
	ck_assert(!addr_is_any(&id->claim.local));
	ck_assert_ptr_eq(id->pub.verbs, &fake.verbs.context);
}

TEST(destroyed_id_leaves_the_resolutions)
{
	resolve_unknown();
	ck_assert_int_eq(rdma_destroy_id(&id->pub), 0);
	announce_neighbour();
	pass_ms(TIMEOUT_MS);
	rig_expect_nothing();
}

/* --- peers that change their link address ---------------------------------------- */

static void announce_move(uint8_t from, uint8_t to)
{
	struct net_event event = { .change = NET_CHANGE_NEIGH,
				   .ifindex = FAKE_IFINDEX,
				   .addr = rig_peer(0),
				   .hw_changed = true,
				   .hw_before = { 2, [5] = from },
				   .hw = { 2, [5] = to } };

	move_report_peer(&event);
}

static void resolve_route(void)
{
	ck_assert_int_eq(resolve(), 0);
	ck_assert_int_eq(rdma_resolve_route(&id->pub, TIMEOUT_MS), 0);
	rig_expect(RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	rig_expect(RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
}

TEST(peer_with_a_new_link_address_after_the_route_is_unreachable)
{
	resolve_route();
	announce_move(1, 2);
	rig_expect(RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	ck_assert_ptr_nonnull(strstr(id->failure, "was 02:00:00:00:00:01"));
}

TEST(peer_with_a_new_link_address_before_the_route_is_reachable)
{
	ck_assert_int_eq(resolve(), 0);
	rig_expect(RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	announce_move(1, 2);
	rig_expect_nothing();
}

TEST(peer_with_its_original_link_address_is_reachable)
{
	resolve_route();
	announce_move(1, 2);
	rig_expect(RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	announce_move(2, 1);
	rig_expect_nothing();
	announce_move(1, 3);
	rig_expect(RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
}

TEST(older_kernel_reports_no_changed_link_address)
{
	setenv("PURECM_FABRIC_KERNEL", "5.15.0", 1);
	resolve_route();
	announce_move(1, 2);
	rig_expect_nothing();
}

/* --- bonds that fail over --------------------------------------------------------- */

static void announce_failover(uint8_t from, uint8_t to)
{
	struct net_event event = { .change = NET_CHANGE_LINK,
				   .ifindex = FAKE_IFINDEX,
				   .hw_before = { 2, [5] = from },
				   .hw = { 2, [5] = to } };

	move_report_interface(&event);
}

TEST(id_with_an_address_gets_an_event_of_a_failover)
{
	ck_assert_int_eq(resolve(), 0);
	rig_expect(RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	announce_failover(1, 2);
	rig_expect(RDMA_CM_EVENT_ADDR_CHANGE, 0);
	announce_failover(2, 1);
	rig_expect_nothing();
	announce_failover(1, 2);
	rig_expect(RDMA_CM_EVENT_ADDR_CHANGE, 0);
}

TEST(bound_id_gets_an_event_of_a_failover)
{
	union addr us = rig_own(0);

	ck_assert_int_eq(rdma_bind_addr(&id->pub, &us.sa), 0);
	announce_failover(1, 2);
	rig_expect(RDMA_CM_EVENT_ADDR_CHANGE, 0);
}

TEST(id_without_an_address_gets_no_event_of_a_failover)
{
	announce_failover(1, 2);
	rig_expect_nothing();
}

/* --- routes --------------------------------------------------------------------------- */

TEST(path_of_roce_is_made_at_once)
{
	ck_assert_int_eq(resolve(), 0);
	ck_assert_int_eq(rdma_resolve_route(&id->pub, TIMEOUT_MS), 0);
	rig_expect(RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	rig_expect(RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	rig_expect_state(id, ID_ROUTE_RESOLVED);
	ck_assert_int_eq(id->pub.route.num_paths, 1);
}

TEST(flow_information_of_the_source_is_the_flow_label)
{
	own = (union addr){ .in6 = { .sin6_family = AF_INET6,
				     .sin6_flowinfo = htobe32(FLOW_LABEL),
				     .sin6_addr = { { { 0x20, 0x01, [15] = 1 } } } } };
	peer = own;
	peer.in6.sin6_addr.s6_addr[15] = 2;
	fake_net.own = own;
	memcpy(&fake.gid[1].gid, &own.in6.sin6_addr, sizeof(own.in6.sin6_addr));
	gid_forget(NULL);
	ck_assert_int_eq(rdma_resolve_addr(&id->pub, &own.sa, &peer.sa, TIMEOUT_MS), 0);
	rig_expect(RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	ck_assert_uint_eq(id->pub.route.addr.src_sin6.sin6_flowinfo, htobe32(FLOW_LABEL));
	ck_assert_int_eq(rdma_resolve_route(&id->pub, TIMEOUT_MS), 0);
	rig_expect(RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	ck_assert_uint_eq(id->pub.route.path_rec->flow_label, htobe32(FLOW_LABEL));
}

TEST(id_without_an_address_has_no_route)
{
	rig_expect_errno(rdma_resolve_route(&id->pub, TIMEOUT_MS), EINVAL);
}

TEST(route_without_a_timeout_is_refused)
{
	ck_assert_int_eq(resolve(), 0);
	rig_expect_errno(rdma_resolve_route(&id->pub, 0), EINVAL);
	ck_assert_int_eq(rdma_resolve_route(&id->pub, -1), 0);
}

/* --- InfiniBand ------------------------------------------------------------------------ */

/* The port keeps its GID, and is a member of a second partition. */
static void use_infiniband(void)
{
	fake.port[0].link_layer = IBV_LINK_LAYER_INFINIBAND;
	fake.port[0].pkey_tbl_len = 2;
	fake.pkey[0] = 0xffff;
	fake.pkey[1] = PKEY;
	fake.gid[0].gid_type = fake.gid[1].gid_type = IBV_GID_TYPE_IB;
	fake_net.hw_bytes = NET_IPOIB_HW_BYTES;
	fake_net.hw_broadcast[NET_IPOIB_PKEY_AT] = PKEY >> 8;
	fake_net.hw_broadcast[NET_IPOIB_PKEY_AT + 1] = PKEY & 0xff;
	memcpy(&fake_net.hw_addr[NET_IPOIB_GID_AT], &fake.gid[1].gid, sizeof(fake.gid[1].gid));
	cmportd.n_events++; /* what is cached of the port is void */
	gid_forget(NULL);
}

static union addr own_native(void)
{
	union addr addr = { .ib = { .sib_family = AF_IB, .sib_pkey = htobe16(PKEY) } };

	memcpy(&addr.ib.sib_addr, &fake.gid[1].gid, sizeof(addr.ib.sib_addr));
	return addr;
}

/* The subnet administrator returns two service records. */
static void look_up_service(void)
{
	struct portd_sa_told told = { .left = 1 };
	struct sa_service service = { .service_id = RDMA_PS_IB << 16 | RIG_PORT, .pkey = PKEY };
	struct rdma_addrinfo hints = { .ai_flags = RAI_SA };

	ck_assert_int_eq(rdma_resolve_addrinfo(&id->pub, NULL, "news", &hints), 0);
	told.ask_id = fake_cmportd_last(PORTD_SA_ASK)->sa_ask.ask_id;
	wire_encode(&sa_service_layout, &service, told.record);
	subnet_answered(&told);
	told.left = 0;
	service.gid.raw[0] = 1;
	wire_encode(&sa_service_layout, &service, told.record);
	subnet_answered(&told);
	rig_expect(RDMA_CM_EVENT_ADDRINFO_RESOLVED, 0);
	rig_expect_state(id, ID_ADDR_RESOLVED);
}

TEST(program_may_choose_another_record_of_a_service)
{
	struct rdma_addrinfo *list;

	use_infiniband();
	own = own_native();
	id = rig_id(RDMA_PS_IB, ID_IDLE);
	ck_assert_int_eq(bind_id(&own), 0);
	look_up_service();
	ck_assert_int_eq(rdma_query_addrinfo(&id->pub, &list), 0);
	ck_assert_int_eq(addr_copy(list->ai_next->ai_dst_addr, &peer), 0);
	rdma_freeaddrinfo(list);
	ck_assert_int_eq(resolve(), 0);
	rig_expect(RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	ck_assert_uint_eq(id->path.dgid.raw[0], 1);
	rig_expect_errno(resolve(), EINVAL);
}

TEST_LOOP(bound_id_is_in_the_partition_of_its_address, 0, 2)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	int mask;

	use_infiniband();
	if (_i)
		own = own_native();
	id = rig_id(RDMA_PS_UDP, ID_IDLE);
	ck_assert_int_eq(bind_id(&own), 0);
	ck_assert_uint_eq(id->pub.route.addr.addr.ibaddr.pkey, htobe16(PKEY));
	ck_assert_int_eq(rdma_init_qp_attr(&id->pub, &attr, &mask), 0);
	ck_assert_uint_eq(attr.pkey_index, 1);
}

/* As in stock, it is bound nevertheless. */
TEST(bound_id_in_a_foreign_partition_gets_no_queue_pair)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	int mask;

	use_infiniband();
	fake.pkey[1] = PKEY + 1;
	ck_assert_int_eq(bind_id(&own), 0);
	rig_expect_errno(rdma_init_qp_attr(&id->pub, &attr, &mask), ENOENT);
}

/* The path of the program, or of ibacm. */
static void set_path(uint16_t pkey)
{
	struct ibv_path_data data = { .flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY |
					       IBV_PATH_FLAG_BIDIRECTIONAL,
				      .path = { .pkey = htobe16(pkey) } };

	use_infiniband();
	peer = own_native();
	peer.ib.sib_pkey = htobe16(0xffff);
	peer.ib.sib_sid = htobe64(RDMA_PS_IB << 16 | RIG_PORT);
	id = rig_id(RDMA_PS_IB, ID_IDLE);
	ck_assert_int_eq(resolve(), 0);
	rig_expect(RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	ck_assert_int_eq(
		rdma_set_option(&id->pub, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &data, sizeof(data)),
		0);
	rig_expect(RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
}

TEST(path_of_another_partition_has_its_index)
{
	set_path(PKEY);
	ck_assert_uint_eq(id->path.pkey_index, 1);
	ck_assert_int_eq(rdma_connect(&id->pub, NULL), 0);
	ck_assert_uint_eq(fake_cmportd_last(PORTD_MAD)->mad.path.pkey_index, 1);
}

TEST(path_of_a_foreign_partition_is_not_connected)
{
	set_path(PKEY + 1);
	rig_expect_errno(rdma_connect(&id->pub, NULL), ENOENT);
}

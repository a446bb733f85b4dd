/* SPDX-License-Identifier: BSD-2-Clause */
/* tools/fabric/udp/sockets.c: the socket that sends a packet, and its binding. */
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include "base/fd.h"
#include "tests/unit/test.h"
#include "tools/fabric/udp/in.h"
#include "tools/fabric/udp/sockets.h"
#include "tools/fabric/udp/vrf.h"

#define V4(a, b, c, d)                                   \
	{                                                \
		.raw = { [10] = 0xff, 0xff, a, b, c, d } \
	}

static const union ibv_gid peer = V4(127, 0, 0, 2), group = V4(239, 0, 0, 1);
static const union ibv_gid peer_v6 = { .raw = { [15] = 1 } };
static struct udp_flow flow;
static struct udp_sockets sockets;

static void set_up(void)
{
	flow = (struct udp_flow){ .sgid = V4(127, 0, 0, 1), .hop_limit = 9, .traffic_class = 0x68 };
	udp_sockets_clear(&sockets);
	ck_assert_int_eq(udp_sockets_open(&sockets, 0), 0);
}

static void tear_down(void)
{
	udp_sockets_close(&sockets);
}

FIXTURE(set_up, tear_down);

static int option(const struct udp_socket *from, int name)
{
	int value = -1;
	socklen_t bytes = sizeof(value);

	ck_assert_int_eq(getsockopt(from->fd, SOL_IP, name, &value, &bytes), 0);
	return value;
}

TEST(flow_has_a_socket_that_sends_with_its_source_and_options)
{
	const struct udp_socket *from = udp_sockets_find(&sockets, &flow, &peer);
	struct sockaddr_in addr;
	socklen_t bytes = sizeof(addr);

	ck_assert(from->is_bound);
	ck_assert_int_eq(getsockname(from->fd, (struct sockaddr *)&addr, &bytes), 0);
	ck_assert_uint_eq(ntohl(addr.sin_addr.s_addr), INADDR_LOOPBACK);
	ck_assert_uint_eq(ntohs(addr.sin_port), from->port);
	ck_assert_int_eq(option(from, IP_TTL), 9);
	ck_assert_int_eq(option(from, IP_TOS), 0x68);
}

TEST(packets_of_one_flow_have_one_socket)
{
	ck_assert_ptr_eq(udp_sockets_find(&sockets, &flow, &peer),
			 udp_sockets_find(&sockets, &flow, &peer));
}

TEST(another_traffic_class_has_another_socket)
{
	const struct udp_socket *first = udp_sockets_find(&sockets, &flow, &peer);

	flow.traffic_class = 0;
	ck_assert_ptr_ne(udp_sockets_find(&sockets, &flow, &peer), first);
}

TEST(foreign_source_has_no_socket_of_its_own)
{
	flow.sgid = (union ibv_gid)V4(192, 0, 2, 1);
	ck_assert_ptr_eq(udp_sockets_find(&sockets, &flow, &peer), &sockets.v4);
}

TEST(groups_and_ipv6_have_the_unbound_sockets)
{
	ck_assert_ptr_eq(udp_sockets_find(&sockets, &flow, &group), &sockets.v4);
	ck_assert_ptr_eq(udp_sockets_find(&sockets, &flow, &peer_v6), &sockets.v6);
}

TEST(flows_beyond_the_limit_have_the_unbound_socket)
{
	for (flow.hop_limit = 1; flow.hop_limit <= UDP_BOUND_MAX; flow.hop_limit++)
		ck_assert(udp_sockets_find(&sockets, &flow, &peer)->is_bound);
	ck_assert_ptr_eq(udp_sockets_find(&sockets, &flow, &peer), &sockets.v4);
}

/* --- VRFs: binding to one needs no interface of it ------------------------- */

static uint32_t interface_bound_to(int fd)
{
	int ifindex = -1;
	socklen_t bytes = sizeof(ifindex);

	ck_assert_int_eq(getsockopt(fd, SOL_SOCKET, SO_BINDTOIFINDEX, &ifindex, &bytes), 0);
	return (uint32_t)ifindex;
}

TEST(sockets_are_of_all_interfaces_without_a_vrf)
{
	ck_assert_uint_eq(interface_bound_to(sockets.v4.fd), 0);
	ck_assert_uint_eq(interface_bound_to(udp_sockets_find(&sockets, &flow, &peer)->fd), 0);
}

TEST(all_sockets_that_send_are_bound_to_the_vrf)
{
	const uint32_t vrf = if_nametoindex("lo");

	udp_sockets_close(&sockets);
	ck_assert_int_eq(udp_sockets_open(&sockets, vrf), 0);
	ck_assert_uint_eq(interface_bound_to(sockets.v4.fd), vrf);
	if (sockets.v6.fd >= 0)
		ck_assert_uint_eq(interface_bound_to(sockets.v6.fd), vrf);
	ck_assert(udp_sockets_find(&sockets, &flow, &peer)->is_bound);
	ck_assert_uint_eq(interface_bound_to(udp_sockets_find(&sockets, &flow, &peer)->fd), vrf);
}

TEST(sockets_that_receive_are_bound_to_the_vrf)
{
	const uint32_t vrf = if_nametoindex("lo");
	int fd = udp_in_open_more(vrf);

	if (fd == -EADDRINUSE) /* the machine has a RoCE device */
		return;
	ck_assert_int_ge(fd, 0);
	ck_assert_uint_eq(interface_bound_to(fd), vrf);
	close(fd);
}

TEST(interface_without_a_master_is_in_no_vrf)
{
	ck_assert_uint_eq(udp_vrf_of(if_nametoindex("lo")), 0);
	ck_assert_uint_eq(udp_vrf_of(0), 0);
}

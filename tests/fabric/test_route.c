/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Routes of the soft fabric (wire/route.c), in a folder with two subnets: LID 2 is port 1 of host b
 * in the first and port 2 of host c in the second.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/fabric/wire/route.h"
#include "tests/unit/test.h"

/* A GID of subnet n, from 1. */
#define GID(n, end)                                            \
	{                                                      \
		.raw = { 0xfe, 0xc0, [7] = (n), [15] = (end) } \
	}

static struct fab_folder folder;
static const union ibv_gid gid_b = GID(1, 0xb);
static const union ibv_gid gid_c = GID(2, 0xc);
static struct fab_port from = { .link_layer = IBV_LINK_LAYER_INFINIBAND,
				.gid = { { .gid = GID(1, 0xa) } } };

static void make_folder(const char *name)
{
	char path[FAB_PATH_BYTES];

	snprintf(path, sizeof(path), "%s/%s", folder.dir, name);
	ck_assert_int_eq(mkdir(path, 0700), 0);
}

static void enter(const char *host, uint8_t port_num, uint8_t subnet, const union ibv_gid *gid)
{
	char path[FAB_PATH_BYTES];

	strcpy(folder.host, host);
	fab_folder_lid(&folder, subnet, 2, path);
	ck_assert_int_eq(fab_folder_link_owner(&folder, port_num, path), 0);
	fab_folder_gid(&folder, gid, path);
	ck_assert_int_eq(fab_folder_link_owner(&folder, port_num, path), 0);
}

static void set_up(void)
{
	ck_assert_ptr_nonnull(mkdtemp(name_temporary(folder.dir)));
	make_folder("lids");
	make_folder("gids");
	enter("b", 1, 0, &gid_b);
	enter("c", 2, 1, &gid_c);
}

static void tear_down(void)
{
	char path[FAB_PATH_BYTES];
	uint8_t subnet;

	for (subnet = 0; subnet < 2; subnet++) {
		fab_folder_lid(&folder, subnet, 2, path);
		unlink(path);
		fab_folder_gid(&folder, subnet ? &gid_c : &gid_b, path);
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/lids", folder.dir);
	rmdir(path);
	snprintf(path, sizeof(path), "%s/gids", folder.dir);
	rmdir(path);
	rmdir(folder.dir);
}

FIXTURE(set_up, tear_down);

/* The destination of a datagram; a host name without terminator is truncated. */
TEST(receiver_has_a_path)
{
	static const unsigned int slots[] = { 0, 9, 10, 65535 };
	char path[FAB_PATH_BYTES], wanted[FAB_PATH_BYTES];
	size_t i;

	for (i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
		fab_folder_slot(&folder, "b", slots[i], path);
		snprintf(wanted, sizeof(wanted), "%s/hosts/b/ctx/%u", folder.dir, slots[i]);
		ck_assert_str_eq(path, wanted);
	}
	fab_folder_gsi(&folder, "sixteen-letters-", path);
	snprintf(wanted, sizeof(wanted), "%s/hosts/sixteen-letters/gsi", folder.dir);
	ck_assert_str_eq(path, wanted);
}

TEST(lid_belongs_to_the_senders_subnet)
{
	struct fab_route route = { .dlid = 2 };
	struct fab_port far_port = from;
	struct fab_owner owner;

	far_port.subnet = 1;
	ck_assert_int_eq(fab_route_find(&folder, &from, &route, &owner), 0);
	ck_assert_str_eq(owner.host, "b");
	ck_assert_int_eq(fab_route_find(&folder, &far_port, &route, &owner), 0);
	ck_assert_str_eq(owner.host, "c");
	ck_assert_uint_eq(owner.port_num, 2);
}

TEST(router_forwards_packets_with_hops_left)
{
	struct fab_route route = {
		.dlid = FAB_LID_ROUTER, .has_grh = true, .hop_limit = 2, .dgid = gid_c
	};
	struct fab_owner owner;

	ck_assert_int_eq(fab_route_find(&folder, &from, &route, &owner), 0);
	ck_assert_str_eq(owner.host, "c");
}

/* Packets that a router drops: each differs in one value from one that it forwards. */
static const struct fab_route refused[] = {
	{ .dlid = FAB_LID_ROUTER, .has_grh = false, .hop_limit = 2, .dgid = GID(2, 0xc) },
	{ .dlid = FAB_LID_ROUTER, .has_grh = true, .hop_limit = 1, .dgid = GID(2, 0xc) },
	{ .dlid = FAB_LID_ROUTER, .has_grh = true, .hop_limit = 2, .dgid = GID(1, 0xb) },
	{ .dlid = FAB_LID_ROUTER, .has_grh = true, .hop_limit = 2, .dgid = GID(2, 0xd) },
	{ .dlid = 3, .has_grh = true, .hop_limit = 2, .dgid = GID(2, 0xc) },
};

TEST_LOOP(router_drops_invalid_packets, 0, sizeof(refused) / sizeof(refused[0]))
{
	struct fab_owner owner;

	ck_assert_int_eq(fab_route_find(&folder, &from, &refused[_i], &owner), -EHOSTUNREACH);
}

TEST(forwarded_packet_has_the_routers_lid)
{
	struct fab_packet packet = { .slid = 5, .dlid = FAB_LID_ROUTER, .hop_limit = 9 };

	fab_route_sent(&packet);
	ck_assert_uint_eq(packet.slid, FAB_LID_ROUTER);
	ck_assert_uint_eq(packet.hop_limit, 8);
}

TEST(packet_within_the_subnet_is_unchanged)
{
	struct fab_packet packet = { .slid = 5, .dlid = 2, .hop_limit = 9 };

	fab_route_sent(&packet);
	ck_assert_uint_eq(packet.slid, 5);
	ck_assert_uint_eq(packet.hop_limit, 9);
}

TEST(roce_routes_by_gid_only)
{
	struct fab_port roce = { .link_layer = IBV_LINK_LAYER_ETHERNET };
	struct fab_route route = { .has_grh = true, .dgid = gid_b };
	struct fab_owner owner;

	ck_assert_int_eq(fab_route_find(&folder, &roce, &route, &owner), 0);
	ck_assert_str_eq(owner.host, "b");
}

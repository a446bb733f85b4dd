/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices that a process opens (lib/device/device_find.c), on a host with several, whose GID tables
 * in sysfs are files of the test. Each device has the same GID table when it is open.
 */
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/device/device.h"
#include "lib/path/path.h"
#include "tests/unit/fake_verbs.h"
#include "tests/unit/lib/fake_net.h"
#include "tests/unit/test.h"

#define N_DEVICES 3
#define PORT_GID  "fe80::1:2:3:4"

static struct ibv_device plugged[N_DEVICES];
static char root[TEMPORARY_BYTES];
static union addr own;

/* --- the host --------------------------------------------------------------- */

static void run(const char *command)
{
	ck_assert_int_eq(system(command), 0);
}

/* An entry of port 1 in sysfs: @file is "gids" or "gid_attrs/ndevs". */
static void show(int device, const char *file, int index, const char *text)
{
	char command[512];

	snprintf(command, sizeof(command), "d=%s/ports/1/%s; mkdir -p $d && echo '%s' >$d/%d",
		 plugged[device].ibdev_path, file, text, index);
	run(command);
}

static void plug(int n)
{
	int i;

	for (i = 0; i < n; i++) {
		snprintf(plugged[i].dev_name, sizeof(plugged[i].dev_name), "uverbs%d", i);
		snprintf(plugged[i].ibdev_path, sizeof(plugged[i].ibdev_path), "%s/fake%d", root,
			 i);
	}
	fake.listed = plugged;
	fake.n_listed = n;
}

static void show_interfaces(const char *names[N_DEVICES])
{
	int i;

	for (i = 0; i < N_DEVICES; i++) {
		show(i, "gid_attrs/ndevs", 0, names[i]);
		show(i, "gid_attrs/ndevs", 1, names[i]);
	}
}

static void set_up(void)
{
	memset(&own, 0, sizeof(own));
	own.in4.sin_family = AF_INET;
	own.in4.sin_addr.s_addr = htonl(0xc0000201);
	fake_net_begin(&own);
	fake_verbs_begin();
	fake.port[0] = (struct ibv_port_attr){ .state = IBV_PORT_ACTIVE,
					       .link_layer = IBV_LINK_LAYER_ETHERNET,
					       .gid_tbl_len = 2 };
	fake_add_gid("192.0.2.1", 1, IBV_GID_TYPE_ROCE_V2);
	fake.gid[0].ndev_ifindex = FAKE_IFINDEX;
	ck_assert_ptr_nonnull(mkdtemp(name_temporary(root)));
	plug(N_DEVICES);
}

static void tear_down(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", root);
	run(command);
}

FIXTURE(set_up, tear_down);

/* Return: the device found for the host's address, by its number. */
static int found(void)
{
	struct gid_entry gid;

	ck_assert_int_eq(device_find_gid(&own, FAKE_IFINDEX, &gid), 0);
	return (int)(gid.verbs->device - plugged);
}

static int find_errno(void)
{
	struct gid_entry gid;

	return device_find_gid(&own, FAKE_IFINDEX, &gid);
}

/* --- tests ------------------------------------------------------------------ */

TEST(only_the_device_of_the_interface_is_opened)
{
	show_interfaces((const char *[]){ "other", "fake", "third" });
	ck_assert_int_eq(found(), 1);
	ck_assert_int_eq(fake.n_opened, 1);
	ck_assert_int_eq(found(), 1);
	ck_assert_int_eq(fake.n_opened, 1);
}

/* Unused entries cannot be read: a folder stands for one. */
TEST(interface_may_be_further_down_in_a_table)
{
	char command[256];
	int i;

	show_interfaces((const char *[]){ "other", "third", "fourth" });
	for (i = 2; i < 9; i++)
		show(2, "gid_attrs/ndevs", i, i < 8 ? "fourth" : "fake");
	snprintf(command, sizeof(command), "cd %s/fake2/ports/1/gid_attrs/ndevs && rm 3 && mkdir 3",
		 root);
	run(command);
	ck_assert_int_eq(found(), 2);
	ck_assert_int_eq(fake.n_opened, 1);
}

TEST(device_of_a_port_gid_is_opened)
{
	struct gid_entry gid;
	union addr addr = { .ib.sib_family = AF_IB };
	struct mad_gid raw = fake_gid_of(PORT_GID);

	fake.port[0].link_layer = IBV_LINK_LAYER_INFINIBAND;
	fake_add_gid(PORT_GID, 0, IBV_GID_TYPE_IB);
	memcpy(&addr.ib.sib_addr, &raw, sizeof(raw));
	show(0, "gids", 0, "fe80:0000:0000:0000:0001:0002:0003:0005");
	show(1, "gids", 0, "0000:0000:0000:0000:0000:0000:0000:0000");
	show(2, "gids", 0, "fe80:0000:0000:0000:0001:0002:0003:0004");
	ck_assert_int_eq(device_find_gid(&addr, 0, &gid), 0);
	ck_assert_ptr_eq(gid.verbs->device, &plugged[2]);
	ck_assert_int_eq(fake.n_opened, 1);
}

TEST(all_devices_are_opened_where_sysfs_shows_none)
{
	ck_assert_int_eq(found(), 0);
	ck_assert_int_eq(fake.n_opened, N_DEVICES);
}

TEST(only_device_is_opened_whatever_sysfs_shows)
{
	plug(1);
	show(0, "gid_attrs/ndevs", 0, "other");
	ck_assert_int_eq(found(), 0);
}

/* Another network namespace may have an interface of the same name. */
TEST(others_are_opened_if_that_device_lacks_the_address)
{
	show_interfaces((const char *[]){ "other", "fake", "third" });
	fake.n_gids = 0;
	ck_assert_int_eq(find_errno(), -ENODEV);
	ck_assert_int_eq(fake.n_opened, N_DEVICES);
}

/* Whatever was opened before, the first device in the system's list is used. */
TEST(first_of_two_devices_with_an_address_is_used)
{
	show_interfaces((const char *[]){ "other", "fake", "fake" });
	ck_assert_int_eq(found(), 1);
	ck_assert_int_eq(fake.n_opened, 2);
}

TEST(devices_are_listed_in_the_order_of_the_system)
{
	struct ibv_context **list;
	int i, n;

	show_interfaces((const char *[]){ "other", "third", "fake" });
	ck_assert_int_eq(found(), 2);
	list = rdma_get_devices(&n);
	ck_assert_int_eq(n, N_DEVICES);
	for (i = 0; i < n; i++)
		ck_assert_ptr_eq(list[i]->device, &plugged[i]);
	rdma_free_devices(list);
	ck_assert_int_eq(fake.n_opened, N_DEVICES);
}

TEST(only_a_returned_device_is_opened)
{
	static struct ibv_device again[2];

	show_interfaces((const char *[]){ "other", "fake", "third" });
	ck_assert_int_eq(found(), 1);
	ck_assert(device_gone(device_of_node("uverbs1")));
	memcpy(again, plugged, sizeof(again));
	strcpy(again[1].dev_name, "uverbs7");
	fake.listed = again;
	fake.n_listed = 2;
	ck_assert_int_eq(find_errno(), 0);
	ck_assert_int_eq(fake.n_opened, 2);
	ck_assert_ptr_nonnull(device_of_node("uverbs7"));
}

TEST(channel_and_bind_of_a_wildcard_open_none)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	union addr any = { .sa.sa_family = AF_INET };
	struct path path;

	ck_assert_ptr_nonnull(channel);
	ck_assert_int_eq(path_bind(&any, RDMA_PS_TCP, &path), 0);
	ck_assert_int_eq(fake.n_opened, 0);
	rdma_destroy_event_channel(channel);
}

/* As with stock, the call that needs the device fails. */
TEST(channel_can_be_created_without_openable_devices)
{
	struct rdma_event_channel *channel;

	fake.open_errno = EACCES;
	channel = rdma_create_event_channel();
	ck_assert_ptr_nonnull(channel);
	ck_assert_int_eq(find_errno(), -EACCES);
	ck_assert_int_eq(device_count(), 0);
	fake.open_errno = 0;
	ck_assert_int_eq(found(), 0);
	rdma_destroy_event_channel(channel);
}

TEST(host_without_devices_has_no_channel)
{
	plug(0);
	ck_assert_ptr_null(rdma_create_event_channel());
	ck_assert_int_eq(errno, ENODEV);
}

TEST(loopback_and_native_destinations_open_all)
{
	union addr peer = { .ib.sib_family = AF_IB };
	struct gid_entry gid;

	show_interfaces((const char *[]){ "other", "fake", "third" });
	ck_assert_int_eq(found(), 1);
	ck_assert_int_eq(device_find_path_to(&peer, &gid), -ENODEV);
	ck_assert_int_eq(fake.n_opened, N_DEVICES);
	ck_assert_int_eq(device_find_loopback(&gid), -ENODEV); /* no entry 0 */
}

TEST(loopback_is_the_first_active_port_that_has_a_gid)
{
	struct gid_entry gid;

	plug(1);
	fake.n_ports = 2;
	fake.port[1] = fake.port[0];
	fake.gid[0].port_num = 2;
	fake.gid[0].gid_index = 0;
	ck_assert_int_eq(device_find_loopback(&gid), 0);
	ck_assert_uint_eq(gid.port_num, 2);
}

TEST(device_that_could_not_be_opened_is_tried_again)
{
	plug(1);
	ck_assert_int_eq(device_list_load(), 0);
	plug(2);
	fake.open_errno = EACCES;
	ck_assert_int_eq(device_list_refresh(), 0);
	ck_assert_int_eq(device_count(), 1);
	fake.open_errno = 0;
	ck_assert_int_eq(device_list_load(), 0);
	ck_assert_int_eq(device_count(), 2);
}

TEST(loopback_can_use_an_added_device)
{
	static struct ibv_device next = { .dev_name = "uverbs9" };
	struct gid_entry gid;

	plug(1);
	fake.gid[0].gid_index = 0;
	ck_assert_int_eq(device_find_loopback(&gid), 0);
	fake.gone_errno = EIO;
	fake.listed = &next;
	ck_assert_int_eq(device_find_loopback(&gid), 0);
	ck_assert_ptr_eq(gid.verbs->device, &next);
}

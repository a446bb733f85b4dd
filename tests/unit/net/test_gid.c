/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GID tables (lib/net/gid_table.h) of devices that do not exist: query_port is theirs, and
 * _ibv_query_gid_table() is defined here, in place of libibverbs'. net_changes() is replaced, and
 * so is the clock.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/net/gid_table.h"
#include "lib/net/netlink.h"
#include "tests/unit/net/netns.h"
#include "tests/unit/test.h"

#define ETH0 2
#define ETH1 3

struct device {
	struct verbs_context verbs;
	struct ibv_port_attr port[2];
	struct ibv_gid_entry gid[128];
	int n_gids;
	int n_reads; /* of the table */
	int error;   /* -errno of reading the table */
};

static struct device device[2];
static struct ibv_context *contexts[2];
static unsigned int n_changes;
static time_t passed_s;

unsigned int __real_net_changes(void);
unsigned int __wrap_net_changes(void);
int __real_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);

unsigned int __wrap_net_changes(void)
{
	return contexts[0] ? n_changes : __real_net_changes();
}

/* The clock advances by itself, and by tests. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
	int rc = __real_clock_gettime(clock, ret);

	ret->tv_sec += passed_s;
	return rc;
}

static struct device *device_of(struct ibv_context *context)
{
	return context == contexts[0] ? &device[0] : &device[1];
}

static int fake_query_port(struct ibv_context *context, uint8_t port_num,
			   struct ibv_port_attr *attr, size_t bytes)
{
	if (port_num < 1 || port_num > 2)
		return EINVAL;
	memcpy(attr, &device_of(context)->port[port_num - 1], bytes);
	return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			     size_t max_entries, uint32_t flags, size_t entry_size)
{
	struct device *dev = device_of(context);

	dev->n_reads++;
	if (dev->error)
		return dev->error;
	if (flags || (size_t)dev->n_gids > max_entries)
		return -EINVAL;
	memcpy(entries, dev->gid, dev->n_gids * entry_size);
	return dev->n_gids;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
		      struct ibv_gid_entry *ret, uint32_t flags, size_t entry_size)
{
	struct device *dev = device_of(context);

	for (int i = 0; !flags && i < dev->n_gids; i++) {
		if (dev->gid[i].port_num != port_num || dev->gid[i].gid_index != gid_index)
			continue;
		memcpy(ret, &dev->gid[i], entry_size);
		return 0;
	}
	return ENODATA;
}

static void add_gid(struct device *dev, uint32_t port_num, uint32_t index, enum ibv_gid_type type,
		    uint32_t ifindex, const char *address)
{
	union addr addr = ip(address);
	struct mad_gid gid = addr_to_gid(&addr);
	struct ibv_gid_entry *entry = &dev->gid[dev->n_gids++];

	*entry = (struct ibv_gid_entry){
		.gid_index = index, .port_num = port_num, .gid_type = type, .ndev_ifindex = ifindex
	};
	memcpy(&entry->gid, &gid, sizeof(gid));
}

static void set_up(void)
{
	for (int i = 0; i < 2; i++) {
		struct device *dev = &device[i];

		memset(dev, 0, sizeof(*dev));
		dev->verbs.sz = sizeof(dev->verbs);
		dev->verbs.query_port = fake_query_port;
		dev->verbs.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
		contexts[i] = &dev->verbs.context;
		for (int port = 0; port < 2; port++) {
			dev->port[port].link_layer = IBV_LINK_LAYER_ETHERNET;
			dev->port[port].state = IBV_PORT_ACTIVE;
			dev->port[port].gid_tbl_len = 16;
		}
	}
	add_gid(&device[0], 1, 0, IBV_GID_TYPE_ROCE_V1, ETH0, "fe80::1");
	add_gid(&device[0], 1, 1, IBV_GID_TYPE_ROCE_V2, ETH0, "fe80::1");
	add_gid(&device[0], 1, 2, IBV_GID_TYPE_ROCE_V1, ETH0, "10.0.0.1");
	add_gid(&device[0], 1, 3, IBV_GID_TYPE_ROCE_V2, ETH0, "10.0.0.1");
	add_gid(&device[1], 2, 5, IBV_GID_TYPE_ROCE_V2, ETH1, "10.0.1.1");
}

static int find(const char *address, unsigned int ifindex, struct gid_entry *ret)
{
	union addr addr = ip(address);

	return gid_find(contexts, 2, &addr, ifindex, ret);
}

FIXTURE(set_up, NULL);

TEST(address_is_found_with_device_port_and_index)
{
	struct gid_entry gid;

	ck_assert_int_eq(find("10.0.1.1", ETH1, &gid), 0);
	ck_assert_ptr_eq(gid.verbs, contexts[1]);
	ck_assert_uint_eq(gid.port_num, 2);
	ck_assert_uint_eq(gid.gid_index, 5);
	ck_assert_uint_eq(gid.ifindex, ETH1);
	ck_assert_mem_eq(&gid.gid, &device[1].gid[0].gid, 16);
}

TEST(roce_v2_is_chosen_where_both_are_offered)
{
	struct gid_entry gid;

	ck_assert_int_eq(find("10.0.0.1", ETH0, &gid), 0);
	ck_assert_int_eq(gid.type, IBV_GID_TYPE_ROCE_V2);
	ck_assert_uint_eq(gid.gid_index, 3);
}

TEST(address_behind_many_others_is_found)
{
	struct gid_entry gid;

	device[1].port[0].gid_tbl_len = 1024;
	for (uint32_t i = 0; i < 100; i++)
		add_gid(&device[1], 1, i, IBV_GID_TYPE_ROCE_V2, ETH1, "10.0.3.1");
	add_gid(&device[1], 1, 100, IBV_GID_TYPE_ROCE_V2, ETH1, "10.0.3.2");
	ck_assert_int_eq(find("10.0.3.2", ETH1, &gid), 0);
	ck_assert_uint_eq(gid.gid_index, 100);
}

TEST(port_without_roce_v2_uses_v1)
{
	struct gid_entry gid;

	add_gid(&device[0], 2, 0, IBV_GID_TYPE_ROCE_V1, ETH1, "10.0.2.1");
	ck_assert_int_eq(find("10.0.2.1", ETH1, &gid), 0);
	ck_assert_int_eq(gid.type, IBV_GID_TYPE_ROCE_V1);
}

TEST(v1_entry_of_a_v2_port_does_not_match)
{
	struct gid_entry gid;

	add_gid(&device[0], 1, 4, IBV_GID_TYPE_ROCE_V1, ETH0, "10.0.0.9");
	ck_assert_int_eq(find("10.0.0.9", ETH0, &gid), -ENODEV);
}

TEST(same_address_on_another_interface_does_not_match)
{
	struct gid_entry gid;

	ck_assert_int_eq(find("10.0.0.1", ETH1, &gid), -ENODEV);
}

TEST(first_device_that_has_it_wins)
{
	struct gid_entry gid;

	add_gid(&device[1], 1, 0, IBV_GID_TYPE_ROCE_V2, ETH0, "10.0.0.1");
	ck_assert_int_eq(find("10.0.0.1", ETH0, &gid), 0);
	ck_assert_ptr_eq(gid.verbs, contexts[0]);
}

TEST(port_that_is_down_does_not_count)
{
	struct gid_entry gid;

	device[0].port[0].state = IBV_PORT_DOWN;
	ck_assert_int_eq(find("10.0.0.1", ETH0, &gid), -ENODEV);
}

TEST(port_that_is_initialising_counts)
{
	struct gid_entry gid;

	device[0].port[0].state = IBV_PORT_INIT;
	ck_assert_int_eq(find("10.0.0.1", ETH0, &gid), 0);
}

TEST(infiniband_port_does_not_count)
{
	struct gid_entry gid;

	device[0].port[0].link_layer = IBV_LINK_LAYER_INFINIBAND;
	ck_assert_int_eq(find("10.0.0.1", ETH0, &gid), -ENODEV);
}

TEST(index_above_255_is_skipped)
{
	struct gid_entry gid;

	add_gid(&device[0], 1, 256, IBV_GID_TYPE_ROCE_V2, ETH0, "10.0.0.9");
	ck_assert_int_eq(find("10.0.0.9", ETH0, &gid), -ENODEV);
}

TEST(second_lookup_uses_the_cache)
{
	struct gid_entry gid;

	ck_assert_int_eq(find("10.0.0.1", ETH0, &gid), 0);
	ck_assert_int_eq(find("10.0.0.1", ETH0, &gid), 0);
	ck_assert_int_eq(device[0].n_reads, 1);
	ck_assert_int_eq(device[1].n_reads, 0);
}

TEST(miss_reads_the_tables_again)
{
	struct gid_entry gid;

	ck_assert_int_eq(find("10.0.0.9", ETH0, &gid), -ENODEV);
	add_gid(&device[1], 1, 1, IBV_GID_TYPE_ROCE_V2, ETH0, "10.0.0.9");
	ck_assert_int_eq(find("10.0.0.9", ETH0, &gid), 0);
	ck_assert_uint_eq(gid.gid_index, 1);
}

TEST(forgotten_table_is_read_again)
{
	struct gid_entry gid;

	ck_assert_int_eq(find("10.0.0.1", ETH0, &gid), 0);
	device[0].gid[3].gid_index = 7;
	gid_forget(contexts[0]);
	ck_assert_int_eq(find("10.0.0.1", ETH0, &gid), 0);
	ck_assert_uint_eq(gid.gid_index, 7);
}

/* The kernel announces an address before it changes the table. */
TEST(table_read_right_after_forgetting_is_not_trusted_for_long)
{
	struct gid_entry gid;

	gid_forget(NULL);
	ck_assert_int_eq(find("10.0.0.1", ETH0, &gid), 0);
	device[0].gid[3].gid_index = 7;
	ck_assert_int_eq(find("10.0.0.1", ETH0, &gid), 0);
	ck_assert_uint_eq(gid.gid_index, 7);
}

TEST(table_read_a_while_after_forgetting_is_kept)
{
	struct gid_entry gid;

	gid_forget(NULL);
	passed_s = 1;
	ck_assert_int_eq(find("10.0.0.1", ETH0, &gid), 0);
	ck_assert_int_eq(find("10.0.0.1", ETH0, &gid), 0);
	ck_assert_int_eq(device[0].n_reads, 1);
}

TEST(forgetting_one_device_keeps_the_other)
{
	struct gid_entry gid;

	ck_assert_int_eq(find("10.0.1.1", ETH1, &gid), 0);
	gid_forget(contexts[0]);
	ck_assert_int_eq(find("10.0.1.1", ETH1, &gid), 0);
	ck_assert_int_eq(device[1].n_reads, 1);
}

TEST(device_that_fails_does_not_hide_the_next)
{
	struct gid_entry gid;

	device[0].error = -EIO;
	ck_assert_int_eq(find("10.0.1.1", ETH1, &gid), 0);
}

TEST(table_is_read_again_after_an_announced_change)
{
	struct gid_entry gid;

	ck_assert_int_eq(find("10.0.0.1", ETH0, &gid), 0);
	device[0].gid[3].gid_index = 7;
	n_changes++;
	ck_assert_int_eq(find("10.0.0.1", ETH0, &gid), 0);
	ck_assert_uint_eq(gid.gid_index, 7);
}

TEST(table_read_right_after_a_change_is_not_trusted_for_long)
{
	struct gid_entry gid;

	n_changes++;
	ck_assert_int_eq(find("10.0.0.1", ETH0, &gid), 0);
	device[0].gid[3].gid_index = 7;
	ck_assert_int_eq(find("10.0.0.1", ETH0, &gid), 0);
	ck_assert_uint_eq(gid.gid_index, 7);
}

TEST(entry_is_recent_until_a_change_is_seen)
{
	struct gid_entry gid;

	ck_assert_int_eq(find("10.0.0.1", ETH0, &gid), 0);
	ck_assert(gid_is_recent(&gid));
	n_changes++;
	ck_assert(!gid_is_recent(&gid));
}

TEST(entry_is_recent_until_its_device_is_forgotten)
{
	struct gid_entry gid;

	ck_assert_int_eq(find("10.0.0.1", ETH0, &gid), 0);
	gid_forget(contexts[0]);
	ck_assert(!gid_is_recent(&gid));
}

static unsigned int n_events;

static unsigned int count_events(const struct ibv_context *verbs)
{
	(void)verbs;
	return n_events;
}

TEST(entry_is_recent_until_its_device_reports_an_event)
{
	struct gid_entry gid;

	gid_set_events(count_events);
	ck_assert_int_eq(find("10.0.0.1", ETH0, &gid), 0);
	ck_assert(gid_is_recent(&gid));
	n_events++;
	ck_assert(!gid_is_recent(&gid));
}

TEST(entry_read_right_after_a_change_is_not_recent)
{
	struct gid_entry gid;

	n_changes++;
	ck_assert_int_eq(find("10.0.0.1", ETH0, &gid), 0);
	ck_assert(!gid_is_recent(&gid));
}

TEST(recent_entry_is_followed_without_reading_the_table)
{
	struct gid_entry gid;

	ck_assert_int_eq(find("10.0.0.1", ETH0, &gid), 0);
	device[0].gid[3].gid_index = 7; /* unannounced */
	ck_assert_int_eq(gid_follow(&gid), 0);
	ck_assert_uint_eq(gid.gid_index, 3);
}

TEST(lack_of_memory_is_not_reported_as_a_missing_device)
{
	struct gid_entry gid;

	device[0].error = -ENOMEM;
	ck_assert_int_eq(find("10.0.9.9", ETH0, &gid), -ENOMEM);
	ck_assert_int_eq(gid_by_index(contexts[0], 1, 2, &gid), -ENOMEM);
}

TEST(device_whose_table_cannot_be_read_has_no_address)
{
	struct gid_entry gid;

	device[0].error = -EIO;
	ck_assert_int_eq(find("10.0.0.1", ETH0, &gid), -ENODEV);
}

TEST(entry_is_found_by_its_index)
{
	struct gid_entry gid;

	ck_assert_int_eq(gid_by_index(contexts[0], 1, 2, &gid), 0);
	ck_assert_int_eq(gid.type, IBV_GID_TYPE_ROCE_V1);
	ck_assert_mem_eq(&gid.gid, &device[0].gid[2].gid, 16);
}

TEST(entry_is_found_by_its_tag_at_a_new_index)
{
	struct gid_entry gid, found;

	ck_assert_int_eq(gid_by_index(contexts[0], 1, 2, &gid), 0);
	device[0].gid[2].gid_index = 7;
	gid_forget(NULL);
	ck_assert_int_eq(gid_by_tag(contexts[0], 1, gid_tag(&gid), &found), 0);
	ck_assert_uint_eq(found.gid_index, 7);
	ck_assert_mem_eq(&found.gid, &gid.gid, 16);
}

TEST(no_two_entries_of_a_table_have_one_tag)
{
	struct gid_entry gid, other;

	for (uint32_t i = 0; i < 5; i++)
		for (uint32_t j = 0; j < i; j++)
			if (!gid_by_index(contexts[0], 1, i, &gid) &&
			    !gid_by_index(contexts[0], 1, j, &other))
				ck_assert_uint_ne(gid_tag(&gid), gid_tag(&other));
}

TEST(empty_entry_is_not_found)
{
	struct gid_entry gid;

	ck_assert_int_eq(gid_by_index(contexts[0], 1, 9, &gid), -ENODEV);
	ck_assert_int_eq(gid_by_index(contexts[0], 2, 2, &gid), -ENODEV);
}

TEST(infiniband_port_is_found_by_its_gid)
{
	union addr addr = ip("fe80::2:c903:1a:2b3d");
	struct mad_gid wanted = addr_to_gid(&addr);
	struct gid_entry gid;

	add_gid(&device[1], 1, 0, IBV_GID_TYPE_IB, 0, "fe80::2:c903:1a:2b3d");
	device[1].port[0].link_layer = IBV_LINK_LAYER_INFINIBAND;
	ck_assert_int_eq(gid_find_ib(contexts, 2, &wanted, 17, &gid), 0);
	ck_assert_ptr_eq(gid.verbs, contexts[1]);
	ck_assert_uint_eq(gid.port_num, 1);
	ck_assert_uint_eq(gid.ifindex, 17);
	ck_assert_int_eq(gid.type, IBV_GID_TYPE_IB);
}

TEST(roce_port_is_not_found_by_its_gid)
{
	union addr addr = ip("fe80::1");
	struct mad_gid wanted = addr_to_gid(&addr);
	struct gid_entry gid;

	ck_assert_int_eq(gid_find_ib(contexts, 2, &wanted, 0, &gid), -ENODEV);
}

/* --- entries that are removed and added ---------------------------------- */

/* Removes 10.0.0.1; another address, or the same on another interface, gets its index. */
static struct gid_entry replace_address(const char *address, uint32_t ifindex)
{
	struct gid_entry before;

	ck_assert_int_eq(find("10.0.0.1", ETH0, &before), 0);
	device[0].n_gids = 3;
	add_gid(&device[0], 1, 3, IBV_GID_TYPE_ROCE_V2, ifindex, address);
	n_changes++;
	return before;
}

TEST(entry_is_followed_to_its_new_index)
{
	struct gid_entry entry = replace_address("10.0.0.2", ETH0);

	add_gid(&device[0], 1, 9, IBV_GID_TYPE_ROCE_V2, ETH0, "10.0.0.1");
	ck_assert_int_eq(gid_follow(&entry), 0);
	ck_assert_uint_eq(entry.gid_index, 9);
	ck_assert(gid_is_in_place(&entry));
}

TEST(another_address_at_the_index_is_not_the_entry)
{
	struct gid_entry entry = replace_address("10.0.0.2", ETH0);

	ck_assert(!gid_is_in_place(&entry));
	ck_assert_int_eq(gid_follow(&entry), -ENODEV);
}

TEST(same_address_on_another_interface_is_not_the_entry)
{
	struct gid_entry entry = replace_address("10.0.0.1", ETH1);

	ck_assert(!gid_is_in_place(&entry));
	ck_assert_int_eq(gid_follow(&entry), -ENODEV);
}

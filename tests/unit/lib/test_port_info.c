/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queries of a device (lib/device/port_info.c, lib/net/gid_table.c): not for each connection, and
 * never with the engine's lock, which each query of a rig checks.
 */
#include <errno.h>

#include "lib/device/port_info.h"
#include "lib/engine/session.h"
#include "tests/unit/fake_verbs.h"
#include "tests/unit/lib/rig.h"
#include "tests/unit/test.h"

#define LMC	     3
#define NEW_INDEX    9 /* of our GID */
#define N_REQUESTS   3
#define LIMITED_PKEY 0x0005

static struct port_info ask(void)
{
	struct port_info info = { .state = IBV_PORT_NOP };

	ck_assert_int_eq(port_info(rig.device, 1, &info), 0);
	return info;
}

static void infiniband(void)
{
	static const uint16_t pkeys[FAKE_PKEYS] = { 0xffff, LIMITED_PKEY, 0x8006 };

	rig_begin_with(&rig_reporting);
	fake.port[0].link_layer = IBV_LINK_LAYER_INFINIBAND;
	fake.port[0].lmc = LMC;
	fake.port[0].pkey_tbl_len = FAKE_PKEYS;
	memcpy(fake.pkey, pkeys, sizeof(pkeys));
	cmportd.n_events++;
}

FIXTURE(infiniband, NULL);

TEST(port_is_queried_once)
{
	int before = fake.n_queries;

	ck_assert_uint_eq(ask().lmc, LMC);
	ck_assert_uint_eq(ask().lmc, LMC);
	ck_assert_int_eq(fake.n_queries, before + 1);
}

TEST(port_is_queried_again_after_an_event)
{
	ask();
	fake.port[0].lmc = 1;
	cmportd.n_events++;
	ck_assert_uint_eq(ask().lmc, 1);
}

TEST(port_without_events_is_queried_each_time)
{
	ask();
	session_set_up(false);
	fake.port[0].lmc = 1;
	ck_assert_uint_eq(ask().lmc, 1);
	fake.port[0].lmc = 2;
	ck_assert_uint_eq(ask().lmc, 2);
}

TEST(port_that_does_not_exist_is_an_error)
{
	struct port_info info;

	ck_assert_int_eq(port_info(rig.device, 2, &info), -EINVAL);
	ck_assert_int_eq(port_info(rig.device, 0, &info), -EINVAL);
}

TEST(pkeys_are_read_as_far_as_needed_and_cached)
{
	uint16_t index;
	int before = fake.n_queries;

	ck_assert_int_eq(port_pkey_index(rig.device, 1, 0xffff, &index), 0);
	ck_assert_uint_eq(index, 0);
	ck_assert_int_eq(fake.n_queries, before + 2); /* the port, and an entry */
	ck_assert_int_eq(port_pkey_index(rig.device, 1, 0x8005, &index), 0);
	ck_assert_uint_eq(index, 1);
	ck_assert_int_eq(fake.n_queries, before + 4); /* a full member may follow a limited one */
	ck_assert_int_eq(port_pkey_index(rig.device, 1, 0x8007, &index), -ENOENT);
	ck_assert_int_eq(port_pkey_index(rig.device, 1, 0x8007, &index), -ENOENT);
	ck_assert_int_eq(fake.n_queries, before + 4);
}

TEST_LOOP(full_member_is_found_before_a_limited_one, 0, 2)
{
	uint16_t index;

	fake.pkey[1] = 0x0006;
	ck_assert_int_eq(port_pkey_index(rig.device, 1, _i ? 0x8006 : 0x0006, &index), 0);
	ck_assert_uint_eq(index, 2);
	ck_assert_int_eq(port_pkey_known(rig.device, 1, _i ? 0x8006 : 0x0006, &index), 0);
	ck_assert_uint_eq(index, 2);
}

TEST(pkeys_are_read_again_after_an_event)
{
	uint16_t index;

	ck_assert_int_eq(port_pkey_index(rig.device, 1, 0x8006, &index), 0);
	ck_assert_uint_eq(index, 2);
	fake.pkey[1] = 0x8006;
	cmportd.n_events++;
	ck_assert_int_eq(port_pkey_index(rig.device, 1, 0x8006, &index), 0);
	ck_assert_uint_eq(index, 1);
}

/* Another thread may query the port between a lookup and its use with the lock. */
TEST(known_pkeys_stay_until_they_are_read_again)
{
	uint16_t index;

	ck_assert_int_eq(port_pkey_index(rig.device, 1, 0x8006, &index), 0);
	cmportd.n_events++;
	ask();
	ck_assert_int_eq(port_pkey_known(rig.device, 1, 0x8006, &index), 0);
	ck_assert_uint_eq(index, 2);
	fake.pkey[2] = 0x8007;
	ck_assert_int_eq(port_pkey_index(rig.device, 1, 0x8006, &index), -ENOENT);
	ck_assert_int_eq(port_pkey_known(rig.device, 1, 0x8006, &index), -ENOENT);
}

TEST(pkey_whose_query_failed_is_queried_again)
{
	uint16_t index;
	int before;

	ask();
	fake.pkey_error = EIO;
	ck_assert_int_eq(port_pkey_index(rig.device, 1, 0xffff, &index), -ENOENT);
	ck_assert_int_eq(port_pkey_index(rig.device, 1, 0xffff, &index), 0);
	ck_assert_uint_eq(index, 0);
	before = fake.n_queries;
	ck_assert_int_eq(port_pkey_index(rig.device, 1, 0xffff, &index), 0);
	ck_assert_int_eq(fake.n_queries, before);
}

TEST(pkeys_after_one_that_cannot_be_read_are_found)
{
	uint16_t index;

	ask();
	fake.pkey_error = EIO;
	ck_assert_int_eq(port_pkey_index(rig.device, 1, 0x8006, &index), 0);
	ck_assert_uint_eq(index, 2);
}

TEST(lookups_with_the_lock_use_the_cache)
{
	uint16_t index;
	int before;

	ck_assert_int_eq(port_pkey_known(rig.device, 1, 0xffff, &index), -ENOENT);
	fake.port[0].state = IBV_PORT_DOWN;
	port_info_read(rig.device);
	ck_assert_int_eq(port_pkey_known(rig.device, 1, 0x8006, &index),
			 -ENOENT); /* the port is down */
	fake.port[0].state = IBV_PORT_ACTIVE;
	cmportd.n_events++;
	port_info_read(rig.device);
	before = fake.n_queries;
	cmportd.n_events++;
	ck_assert_int_eq(port_pkey_known(rig.device, 1, 0x8006, &index), 0);
	ck_assert_uint_eq(index, 2);
	ck_assert_uint_eq(port_info_known(rig.device, 1).lmc, LMC);
	ck_assert_int_eq(fake.n_queries, before);
}

static void roce(void)
{
	rig_begin_with(&rig_reporting);
	rig_listener(N_REQUESTS);
}

FIXTURE(roce, NULL);

TEST(requests_after_the_first_query_nothing)
{
	int before;
	uint32_t i;

	rig_request(1);
	before = fake.n_queries;
	for (i = 2; i <= N_REQUESTS; i++)
		rig_request(i);
	for (i = 1; i <= N_REQUESTS; i++)
		rig_expect(RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	ck_assert_int_eq(fake.n_queries, before);
}

/* The kernel changes the table before it reports the change. */
TEST(request_after_a_gid_change_finds_the_new_index)
{
	struct gid_entry gid;
	struct id *id = rig_requested(1);

	gid = id->path.gid;
	fake.gid[1].gid_index = NEW_INDEX;
	cmportd.n_events++;
	ck_assert_int_eq(id_follow_address(id), 0);
	ck_assert_uint_eq(id->path.gid.gid_index, NEW_INDEX);
	ck_assert(!gid_is_in_place(&gid));
	ck_assert(gid_is_in_place(&id->path.gid));
}

TEST(gid_that_stays_in_place_is_not_queried)
{
	struct id *id = rig_requested(1);
	int before = fake.n_queries;

	ck_assert(gid_is_in_place(&id->path.gid));
	ck_assert_int_eq(fake.n_queries, before);
	gid_forget(NULL); /* now the table is not trusted */
	ck_assert(gid_is_in_place(&id->path.gid));
	ck_assert_int_gt(fake.n_queries, before);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_resolve_route() on a host with ibacm: lib/conn/id_route.c. */
#include <infiniband/sa.h>
#include <rdma/rdma_cma.h>

#include "tests/unit/lib/fake_ibacm.h"
#include "tests/unit/lib/rig.h"
#include "tests/unit/test.h"

#define TIMEOUT_MS 1000
#define GIVEN_PKEY 0x8001

static struct id *id;

static void set_up(void)
{
	rig_begin();
	fake_ibacm_begin();
	fake_ibacm.answer.n_paths = 2;
	fake_ibacm.answer.path[1].path.pkey = htons(GIVEN_PKEY);
	fake_ibacm.answer.path[1].flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY |
					  IBV_PATH_FLAG_BIDIRECTIONAL;
	id = rig_routed(RDMA_PS_TCP);
	id->state = ID_ADDR_RESOLVED;
}

FIXTURE(set_up, NULL);

TEST(path_of_ibacm_is_used)
{
	ck_assert_int_eq(rdma_resolve_route(&id->pub, TIMEOUT_MS), 0);
	ck_assert_uint_eq(id->path.pkey, GIVEN_PKEY);
	rig_expect_state(id, ID_ROUTE_RESOLVED);
	rig_expect(RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	rig_expect_nothing();
}

TEST(request_to_ibacm_has_both_addresses_and_may_wait)
{
	ck_assert_int_eq(rdma_resolve_route(&id->pub, TIMEOUT_MS), 0);
	ck_assert_uint_eq(fake_ibacm.n_asked, 1);
	ck_assert_ptr_eq(fake_ibacm.question.src, &id->pub.route.addr.src_addr);
	ck_assert_ptr_eq(fake_ibacm.question.dst, &id->pub.route.addr.dst_addr);
	ck_assert(!fake_ibacm.question.no_delay);
}

static void expect_own_path(void)
{
	ck_assert_int_eq(rdma_resolve_route(&id->pub, TIMEOUT_MS), 0);
	ck_assert_uint_eq(id->path.pkey, 0xffff);
	rig_expect_state(id, ID_ROUTE_RESOLVED);
	rig_expect(RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
}

TEST(unusable_path_is_ignored)
{
	fake_ibacm.answer.path[1].flags = 0;
	expect_own_path();
}

TEST(path_without_ibacm_follows_from_the_route)
{
	fake_ibacm.err = -ENOTCONN;
	expect_own_path();
}

TEST(missing_path_of_ibacm_is_ignored)
{
	fake_ibacm.answer.n_paths = 0;
	expect_own_path();
}

TEST(id_in_a_wrong_state_is_refused_without_a_request)
{
	id->state = ID_IDLE;
	rig_expect_errno(rdma_resolve_route(&id->pub, TIMEOUT_MS), EINVAL);
	ck_assert_uint_eq(fake_ibacm.n_asked, 0);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The core when there is no memory: failures are reported, and change nothing. Linked with malloc
 * and calloc wrapped, so that a test can make the nth allocation fail.
 */
#include <errno.h>
#include <stddef.h>

#include "tests/unit/cm/inputs.h"
#include "tests/unit/test.h"

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);

/* Check itself allocates, so allocations fail only in the code under test. */
static bool counting;
static unsigned int allocations_left;
static unsigned int n_refused;

static bool may_allocate(void)
{
	if (!counting || (allocations_left && allocations_left--))
		return true;
	n_refused++;
	return false;
}

static void allow(unsigned int allocations)
{
	counting = true;
	allocations_left = allocations;
}

static void allow_all(void)
{
	counting = false;
}

void *__wrap_malloc(size_t bytes)
{
	return may_allocate() ? __real_malloc(bytes) : NULL;
}

void *__wrap_calloc(size_t n, size_t bytes)
{
	return may_allocate() ? __real_calloc(n, bytes) : NULL;
}

static struct rig rig;

/* The next connection needs memory from the heap. */
static void use_up_slab(void)
{
	while (rig.core.conns.n_free)
		slab_take(&rig.core.conns);
}

static void set_up(void)
{
	n_refused = 0;
	rig_init(&rig);
}

static void tear_down(void)
{
	rig_fini(&rig);
}

FIXTURE(set_up, tear_down);

/* Four tables; the address sanitizer detects a leak. */
TEST_LOOP(core_without_memory_is_not_initialised, 0, 4)
{
	struct cm_core core;
	int err;

	allow((unsigned int)_i);
	err = cm_core_init(&core, 1);
	allow_all();
	ck_assert_int_eq(err, -ENOMEM);
}

TEST(connection_without_memory_is_not_created)
{
	struct cm_conn *conn;

	allow(0);
	conn = cm_core_conn_new(&rig.core, NULL);
	allow_all();
	ck_assert_ptr_null(conn);
	ck_assert_uint_eq(rig.core.n_conns, 0);
	ck_assert_uint_eq(rig.core.by_local.table.n_nodes, 0);
}

TEST(connection_without_memory_is_not_adopted)
{
	struct cm_record record = { .state = CM_ESTABLISHED };
	struct cm_conn *conn;

	allow(0);
	conn = cm_core_adopt(&rig.core, &record, &rig.port, NULL);
	allow_all();
	ck_assert_ptr_null(conn);
	ck_assert_uint_eq(rig.core.n_conns, 0);
}

/* The 65th connection makes the three tables grow, then is allocated itself. */
TEST_LOOP(table_that_cannot_grow_keeps_its_connections, 0, 4)
{
	struct cm_conn *conn;

	for (int i = 0; i < 64; i++)
		ck_assert_ptr_nonnull(cm_core_conn_new(&rig.core, NULL));
	use_up_slab();
	allow((unsigned int)_i);
	conn = cm_core_conn_new(&rig.core, NULL);
	allow_all();
	ck_assert_ptr_null(conn);
	ck_assert_uint_eq(rig.core.by_local.table.n_nodes, 64);
	ck_assert_ptr_nonnull(cm_core_conn_new(&rig.core, NULL));
}

TEST(reserving_fails_and_input_still_works)
{
	int err;

	rig_reach(&rig, CM_REP_SENT, true);
	use_up_slab();
	allow(0);
	err = cm_core_reserve(&rig.core);
	allow_all();
	ck_assert_int_eq(err, -ENOMEM);
	ck_assert_uint_eq(rig.core.n_spare, 0);
	rig_input(&rig, "RTU");
	ck_assert_str_eq(rig_reported(&rig), "ESTABLISHED");
}

TEST(service_without_memory_is_refused)
{
	static struct cm_service service[64];
	int err;

	for (unsigned int i = 0; i < 63; i++)
		ck_assert_int_eq(cm_core_serve(&rig.core, &service[i], i), 0);
	allow(0);
	err = cm_core_serve(&rig.core, &service[63], 63);
	allow_all();
	ck_assert_int_eq(err, -ENOMEM);
	ck_assert(!hash_is_in(&service[63].node.link));
}

static void forbid(bool begins)
{
	if (begins)
		allow(0);
	else
		allow_all();
}

TEST_LOOP(no_step_allocates, 0, CM_N_STATES *n_inputs())
{
	enum cm_state state = (enum cm_state)(_i / n_inputs());
	const char *input = input_name(_i % n_inputs());

	rig.in_step = forbid;
	rig_reach(&rig, state, !rig_can_reach(state, false));
	rig_input(&rig, input);
	ck_assert_uint_eq(n_refused, 0);
}

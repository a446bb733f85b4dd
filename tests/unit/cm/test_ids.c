/* SPDX-License-Identifier: BSD-2-Clause */
/* Comm ids from lent blocks, and reports of freed ids. */
#include <errno.h>
#include <string.h>

#include "tests/unit/cm/rig.h"
#include "tests/unit/test.h"

#define FIRST  UINT32_C(0x12340000)
#define SECOND UINT32_C(0x00070000)
#define THIRD  UINT32_C(0xffff0000)

static struct rig rig;

static void set_up(void)
{
	rig_init(&rig);
}

static void tear_down(void)
{
	rig_fini(&rig);
}

static void lend(uint32_t first)
{
	ck_assert_int_eq(cm_core_lend_ids(&rig.core, first, CM_ID_BLOCK), 0);
}

static struct cm_conn *new_conn(void)
{
	return cm_core_conn_new(&rig.core, &rig);
}

static void destroy(struct cm_conn *conn)
{
	cm_core_call(&rig.core, conn, CM_CALL_DESTROY, NULL, rig.now, &rig.out);
}

/* The id of a connection, which is destroyed at once. */
static uint32_t next_id(void)
{
	struct cm_conn *conn = new_conn();
	uint32_t id = conn->local_comm_id;

	destroy(conn);
	return id;
}

static uint32_t block_of(uint32_t id)
{
	return id - id % CM_ID_BLOCK;
}

/* Each id of the block is used once, and no other. */
static void assert_comes_once(uint32_t first)
{
	static bool seen[CM_ID_BLOCK];
	uint32_t n_seen = 0;

	memset(seen, 0, sizeof(seen));
	for (uint32_t i = 0; i < CM_ID_BLOCK; i++) {
		uint32_t id = next_id();

		if (block_of(id) != first || seen[id - first])
			break;
		seen[id - first] = true;
		n_seen++;
	}
	ck_assert_uint_eq(n_seen, CM_ID_BLOCK);
}

static void skip(uint32_t n)
{
	while (n--)
		next_id();
}

FIXTURE(set_up, tear_down);

TEST(comm_ids_come_from_the_lent_block)
{
	lend(FIRST);
	ck_assert_uint_eq(block_of(next_id()), FIRST);
}

TEST(connection_from_before_the_first_block_keeps_its_id)
{
	struct cm_conn *conn = new_conn();
	uint32_t id = conn->local_comm_id;

	lend(FIRST);
	ck_assert_uint_eq(conn->local_comm_id, id);
	destroy(conn);
}

TEST(id_is_reused_only_after_all_others_of_the_block)
{
	lend(FIRST);
	assert_comes_once(FIRST);
	assert_comes_once(FIRST);
}

TEST(blocks_are_used_in_order)
{
	lend(FIRST);
	lend(SECOND);
	lend(THIRD);
	assert_comes_once(FIRST);
	assert_comes_once(SECOND);
	assert_comes_once(THIRD);
	assert_comes_once(FIRST);
}

TEST(blocks_are_used_in_order_repeatedly)
{
	lend(FIRST);
	lend(SECOND);
	for (int round = 0; round < 3; round++) {
		assert_comes_once(FIRST);
		assert_comes_once(SECOND);
	}
}

TEST(last_id_of_a_block_comes_before_the_next_block)
{
	lend(FIRST);
	skip(CM_ID_BLOCK - 1);
	lend(SECOND);
	ck_assert_uint_eq(block_of(next_id()), FIRST);
	assert_comes_once(SECOND);
}

TEST(blocks_are_kept_in_their_own_memory)
{
	struct {
		struct cm_ids ids;
		uint8_t behind[2 * sizeof(struct cm_ids)];
	} memory;

	memset(&memory, 0x5a, sizeof(memory));
	cm_ids_init(&memory.ids, 1);
	for (uint32_t i = 0; i < CM_ID_BLOCKS_MAX; i++)
		ck_assert_int_eq(cm_ids_lend(&memory.ids, i * CM_ID_BLOCK, CM_ID_BLOCK), 0);
	for (size_t i = 0; i < sizeof(memory.behind); i++)
		ck_assert_uint_eq(memory.behind[i], 0x5a);
}

TEST(late_block_is_used_before_ids_are_reused)
{
	lend(FIRST);
	lend(SECOND);
	skip(2 * CM_ID_BLOCK + 100);
	lend(THIRD);
	assert_comes_once(THIRD);
	ck_assert_uint_eq(block_of(next_id()), FIRST);
}

TEST(early_block_waits_until_the_present_one_is_used_up)
{
	lend(FIRST);
	skip(100);
	lend(SECOND);
	skip(CM_ID_BLOCK - 100);
	assert_comes_once(SECOND);
}

TEST(ids_left_counts_down_to_the_first_reuse)
{
	lend(FIRST);
	lend(SECOND);
	skip(CM_ID_BLOCK);
	ck_assert_uint_eq(cm_core_ids_left(&rig.core), CM_ID_BLOCK);
	skip(CM_ID_BLOCK);
	ck_assert_uint_eq(cm_core_ids_left(&rig.core), 0);
	skip(1);
	ck_assert_uint_eq(cm_core_ids_left(&rig.core), 0);
}

TEST(without_blocks_many_ids_are_left)
{
	skip(1);
	ck_assert_uint_gt(cm_core_ids_left(&rig.core), 1u << 31);
}

TEST(block_with_id_0_leaves_it_out)
{
	lend(0);
	for (uint32_t i = 0; i < CM_ID_BLOCK; i++)
		ck_assert_uint_ne(next_id(), 0);
}

TEST(two_cores_start_a_block_at_different_places)
{
	struct cm_core other;
	struct cm_conn *conn;

	lend(FIRST);
	ck_assert_int_eq(cm_core_init(&other, 0x5eee), 0);
	ck_assert_int_eq(cm_core_lend_ids(&other, FIRST, CM_ID_BLOCK), 0);
	conn = cm_core_conn_new(&other, NULL);
	ck_assert_uint_ne(conn->local_comm_id, next_id());
	cm_core_fini(&other);
}

static const struct {
	uint32_t first;
	uint32_t count;
} not_blocks[] = {
	{ FIRST, CM_ID_BLOCK / 2 }, { FIRST, CM_ID_BLOCK * 2 }, { FIRST, 0 },
	{ FIRST + 1, CM_ID_BLOCK }, { SECOND, CM_ID_BLOCK }, /* already lent */
};

TEST_LOOP(lending_anything_but_a_new_block_fails, 0, sizeof(not_blocks) / sizeof(not_blocks[0]))
{
	lend(SECOND);
	ck_assert_int_eq(cm_core_lend_ids(&rig.core, not_blocks[_i].first, not_blocks[_i].count),
			 -EINVAL);
	ck_assert_uint_eq(cm_core_ids_left(&rig.core), CM_ID_BLOCK);
}

/* No further block is requested then, however few unused ids are left. */
TEST(excess_block_is_refused)
{
	for (uint32_t i = 1; i <= CM_ID_BLOCKS_MAX; i++)
		lend(i * CM_ID_BLOCK);
	ck_assert_uint_eq(cm_core_ids_left(&rig.core), UINT32_MAX);
	ck_assert_int_eq(cm_core_lend_ids(&rig.core, 0, CM_ID_BLOCK), -ENOSPC);
}

static void use_up(uint32_t first)
{
	lend(first);
	for (uint32_t i = 0; i < CM_ID_BLOCK; i++)
		ck_assert_ptr_nonnull(new_conn());
}

TEST(connection_is_refused_when_all_ids_are_in_use)
{
	use_up(FIRST);
	ck_assert_ptr_null(new_conn());
}

TEST(request_is_dropped_when_all_ids_are_in_use)
{
	struct cm_msg req = rig_msg(&rig, CM_ATTR_REQ);

	use_up(FIRST);
	rig_deliver(&rig, &req);
	ck_assert_str_eq(rig_reported(&rig), "");
	ck_assert_uint_eq(rig.core.count[CM_COUNT_NO_MEMORY], 1);
}

TEST(another_block_helps_when_all_ids_are_in_use)
{
	use_up(FIRST);
	lend(SECOND);
	ck_assert_uint_eq(block_of(new_conn()->local_comm_id), SECOND);
}

/* --- freed ids ----------------------------------------------------------- */

static uint32_t released_id;
static unsigned int n_released;

static void note_release(struct cm_core *core, const struct cm_conn *conn)
{
	ck_assert_ptr_eq(core, &rig.core);
	released_id = conn->local_comm_id;
	n_released++;
}

static void watch_releases(void)
{
	n_released = 0;
	rig.core.released = note_release;
}

TEST(destroyed_connection_is_released)
{
	watch_releases();
	rig_reach(&rig, CM_REQ_SENT, false);
	rig_call(&rig, CM_CALL_DESTROY);
	ck_assert_uint_eq(n_released, 1);
	ck_assert_uint_eq(released_id, rig.comm_id);
}

TEST(orphan_is_not_released_before_its_dreq_is_answered)
{
	struct cm_msg drep;

	watch_releases();
	rig_reach(&rig, CM_ESTABLISHED, false);
	drep = rig_msg(&rig, CM_ATTR_DREP);
	rig_call(&rig, CM_CALL_DESTROY);
	ck_assert_uint_eq(n_released, 0);
	rig_deliver(&rig, &drep);
	ck_assert_uint_eq(n_released, 1);
}

TEST(forgotten_request_is_released)
{
	watch_releases();
	rig_reach(&rig, CM_REQ_RCVD, true);
	rig_call(&rig, CM_CALL_FORGET);
	ck_assert_uint_eq(n_released, 1);
}

static void forget(struct cm_conn *conn, void *arg)
{
	(void)conn;
	(void)arg;
}

TEST(connection_of_a_removed_port_is_released)
{
	watch_releases();
	rig_reach(&rig, CM_ESTABLISHED, false);
	cm_core_port_gone(&rig.core, &rig.port, forget, NULL);
	ck_assert_uint_eq(n_released, 1);
}

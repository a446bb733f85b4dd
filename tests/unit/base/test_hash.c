/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of base/hash.c. */
#include "base/hash.h"

#include <errno.h>
#include <string.h>

#include "base/list.h"
#include "tests/unit/test.h"

#define N_NODES	  5000
#define N_BUCKETS 64

static struct hash table;

/* Each number occurs in the hash of one node only, so that a node is found by its hash. */
static struct hash_node node[N_NODES];

static void set_up(void)
{
	ck_assert_int_eq(hash_init(&table, N_BUCKETS), 0);
	memset(node, 0, sizeof(node));
}

static void tear_down(void)
{
	hash_fini(&table);
}

static void insert_many(void)
{
	for (uint64_t i = 0; i < N_NODES; i++)
		hash_insert(&table, &node[i], i);
}

static size_t count_all(void)
{
	struct hash_node *each, *after;
	size_t n = 0;

	hash_for_each_safe (each, after, &table)
		n++;
	return n;
}

FIXTURE(set_up, tear_down);

TEST(empty_table_finds_nothing)
{
	ck_assert_ptr_null(hash_first(&table, 0));
	ck_assert_ptr_null(hash_after(&table, NULL));
}

TEST(zeroed_table_can_be_freed)
{
	struct hash none = { 0 };

	hash_fini(&none);
	ck_assert_uint_eq(none.n_buckets, 0);
}

TEST(freed_table_is_zeroed)
{
	struct hash other;

	ck_assert_int_eq(hash_init(&other, 1), 0);
	ck_assert_uint_eq(other.n_buckets, 1);
	hash_fini(&other);
	ck_assert_ptr_null(other.bucket);
	ck_assert_uint_eq(other.n_buckets, 0);
}

TEST(number_of_buckets_is_the_next_power_of_two)
{
	ck_assert_int_eq(hash_reserve(&table, N_BUCKETS + 1), 0);
	ck_assert_uint_eq(table.n_buckets, 2 * N_BUCKETS);
	ck_assert_int_eq(hash_reserve(&table, 8 * N_BUCKETS), 0);
	ck_assert_uint_eq(table.n_buckets, 8 * N_BUCKETS);
}

TEST(table_never_shrinks)
{
	ck_assert_int_eq(hash_reserve(&table, 1), 0);
	ck_assert_uint_eq(table.n_buckets, N_BUCKETS);
}

TEST(failed_growth_leaves_the_table_unchanged)
{
	hash_insert(&table, &node[1], 1);
	ck_assert_int_eq(hash_reserve(&table, SIZE_MAX / 4), -ENOMEM);
	ck_assert_uint_eq(table.n_buckets, N_BUCKETS);
	ck_assert_ptr_eq(hash_first(&table, 1), &node[1]);
}

TEST(overfull_table_finds_all)
{
	insert_many();
	ck_assert_uint_eq(table.n_nodes, N_NODES);
	for (uint64_t i = 0; i < N_NODES; i++)
		ck_assert_ptr_eq(hash_first(&table, i), &node[i]);
}

TEST(all_nodes_are_found_after_growth)
{
	insert_many();
	ck_assert_int_eq(hash_reserve(&table, N_NODES), 0);
	ck_assert_uint_eq(table.n_nodes, N_NODES);
	for (uint64_t i = 0; i < N_NODES; i++)
		ck_assert_ptr_eq(hash_first(&table, i), &node[i]);
}

TEST(removed_nodes_are_gone_and_the_others_stay)
{
	insert_many();
	for (uint64_t i = 0; i < N_NODES; i += 2)
		hash_remove(&table, &node[i]);
	for (uint64_t i = 0; i < N_NODES; i++)
		ck_assert_ptr_eq(hash_first(&table, i), i % 2 ? &node[i] : NULL);
	ck_assert_uint_eq(table.n_nodes, N_NODES / 2);
}

TEST(node_records_whether_it_is_in_a_table)
{
	ck_assert(!hash_is_in(&node[0]));
	hash_insert(&table, &node[0], 0);
	ck_assert(hash_is_in(&node[0]));
	hash_remove(&table, &node[0]);
	ck_assert(!hash_is_in(&node[0]));
}

TEST(removing_twice_is_harmless)
{
	hash_insert(&table, &node[0], 1);
	hash_insert(&table, &node[1], 1);
	hash_remove(&table, &node[0]);
	hash_remove(&table, &node[0]);
	ck_assert_uint_eq(table.n_nodes, 1);
}

TEST(removed_node_can_be_inserted_again)
{
	hash_insert(&table, &node[0], 1);
	hash_remove(&table, &node[0]);
	hash_insert(&table, &node[0], 2);
	ck_assert_ptr_null(hash_first(&table, 1));
	ck_assert_ptr_eq(hash_first(&table, 2), &node[0]);
}

TEST(nodes_of_one_hash_are_found_the_latest_first)
{
	hash_insert(&table, &node[0], 7);
	hash_insert(&table, &node[1], 7 + N_BUCKETS); /* in the same bucket */
	hash_insert(&table, &node[2], 7);
	ck_assert_ptr_eq(hash_first(&table, 7), &node[2]);
	ck_assert_ptr_eq(hash_next(&node[2]), &node[0]);
	ck_assert_ptr_null(hash_next(&node[0]));
}

TEST(nodes_of_one_hash_keep_their_order_when_the_table_grows)
{
	hash_insert(&table, &node[0], 7);
	hash_insert(&table, &node[1], 7);
	ck_assert_int_eq(hash_reserve(&table, 4 * N_BUCKETS), 0);
	ck_assert_ptr_eq(hash_first(&table, 7), &node[1]);
	ck_assert_ptr_eq(hash_next(&node[1]), &node[0]);
}

TEST(walk_sees_each_node_once)
{
	insert_many();
	ck_assert_uint_eq(count_all(), N_NODES);
}

TEST_LOOP(walk_sees_the_first_and_the_last_bucket, 0, 2)
{
	hash_insert(&table, &node[0], _i ? N_BUCKETS - 1 : 0);
	ck_assert_uint_eq(count_all(), 1);
}

TEST(walk_survives_removal_of_the_current_node)
{
	struct hash_node *each, *after;

	insert_many();
	hash_for_each_safe (each, after, &table)
		hash_remove(&table, each);
	ck_assert_uint_eq(table.n_nodes, 0);
	ck_assert_uint_eq(count_all(), 0);
}

TEST(hash_depends_on_every_byte_and_the_length)
{
	uint8_t key[21] = { 0 };
	uint64_t zeros = hash_bytes(key, sizeof(key));

	for (size_t i = 0; i < sizeof(key); i++) {
		key[i] = 1;
		ck_assert_uint_ne(hash_bytes(key, sizeof(key)), zeros);
		key[i] = 0;
	}
	ck_assert_uint_ne(hash_bytes(key, sizeof(key) - 4), zeros);
}

/* Hosts of a subnet differ in the last bytes of their address. */
TEST_LOOP(keys_that_differ_in_one_byte_spread, 0, 16)
{
	uint8_t key[16] = { 0xfe, 0x80 }, n_in_bucket[256] = { 0 };

	for (unsigned int i = 0; i < 256; i++) {
		uint8_t *n;

		key[_i] = (uint8_t)i;
		n = &n_in_bucket[hash_bytes(key, sizeof(key)) % 256];
		ck_assert_uint_le(++*n, 8);
	}
}

#define N_CHOSEN 64

/* Finds keys that share a bucket, as is possible for a known function. */
static void choose(uint64_t keys[N_CHOSEN])
{
	uint64_t key = 0;
	unsigned int n = 0;

	for (; n < N_CHOSEN; key++)
		if (hash_bytes(&key, sizeof(key)) % 256 == 7)
			keys[n++] = key;
}

TEST(colliding_keys_differ_with_a_secret)
{
	uint64_t keys[N_CHOSEN];
	unsigned int i, n = 0;

	choose(keys);
	hash_set_secret(UINT64_C(0x1234567890abcdef));
	for (i = 0; i < N_CHOSEN; i++)
		n += hash_bytes(&keys[i], sizeof(keys[i])) % 256 ==
		     hash_bytes(&keys[0], sizeof(keys[0])) % 256;
	hash_set_secret(0);
	ck_assert_uint_le(n, 8);
}

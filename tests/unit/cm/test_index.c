/* SPDX-License-Identifier: BSD-2-Clause */
/* cm/index.c: keys that differ in one member, similar keys, and the number of buckets. */
#include <string.h>

#include "cm/index.h"
#include "tests/unit/test.h"

#define N_NODES 5000

static struct cm_index index_under_test;

static void set_up(void)
{
	ck_assert_int_eq(cm_index_init(&index_under_test, 0x1234), 0);
}

static void tear_down(void)
{
	cm_index_fini(&index_under_test);
}

static struct cm_key key_of(uint32_t id)
{
	return (struct cm_key){ .gid.raw[15] = 1, .guid = 7, .id = id };
}

static void insert(struct cm_node *node, struct cm_key key)
{
	ck_assert_int_eq(cm_index_reserve(&index_under_test, index_under_test.table.n_nodes + 1),
			 0);
	cm_index_insert(&index_under_test, node, &key);
}

static struct cm_node *find(struct cm_key key)
{
	return cm_index_find(&index_under_test, &key);
}

FIXTURE(set_up, tear_down);

TEST(empty_index_finds_nothing)
{
	ck_assert_ptr_null(find(key_of(0)));
}

TEST(every_member_of_the_key_counts)
{
	struct cm_key other_gid = key_of(5), other_guid = key_of(5);
	struct cm_node node = { 0 };

	insert(&node, key_of(5));
	other_gid.gid.raw[0] ^= 1;
	other_guid.guid ^= UINT64_C(1) << 63;
	ck_assert_ptr_eq(find(key_of(5)), &node);
	ck_assert_ptr_null(find(key_of(6)));
	ck_assert_ptr_null(find(other_gid));
	ck_assert_ptr_null(find(other_guid));
}

TEST(index_does_not_grow_before_a_quarter_is_full)
{
	size_t n_buckets = index_under_test.table.n_buckets;

	ck_assert_int_eq(cm_index_reserve(&index_under_test, n_buckets / 4), 0);
	ck_assert_uint_eq(index_under_test.table.n_buckets, n_buckets);
	ck_assert_int_eq(cm_index_reserve(&index_under_test, n_buckets / 4 + 1), 0);
	ck_assert_uint_eq(index_under_test.table.n_buckets, 2 * n_buckets);
}

static size_t longest_chain(void)
{
	size_t longest = 0;

	for (size_t i = 0; i < index_under_test.table.n_buckets; i++) {
		struct hash_node *link = index_under_test.table.bucket[i];
		size_t n = 0;

		for (; link; link = link->next)
			n++;
		longest = n > longest ? n : longest;
	}
	return longest;
}

/* Comm ids of one peer count up, service ids differ in their low 16 bits, GIDs share a prefix. */
static struct cm_key similar_key(int kind, uint32_t i)
{
	struct cm_key key = key_of(0);

	switch (kind) {
	case 0:
		key.id = i;
		break;
	case 1:
		key.id = i << 16;
		break;
	case 2:
		key.guid = i;
		break;
	case 3:
		key.guid = (uint64_t)i << 40;
		break;
	case 4:
		memcpy(key.gid.raw + 12, &i, sizeof(i));
		break;
	case 5:
		memcpy(key.gid.raw + 4, &i, sizeof(i));
		break;
	case 6:
		key.id = 8 * i;
		break;
	}
	return key;
}

TEST_LOOP(similar_keys_spread, 0, 7)
{
	static struct cm_node node[N_NODES];

	memset(node, 0, sizeof(node)); /* a loop test may run more than once in a process */
	for (uint32_t i = 0; i < N_NODES; i++)
		insert(&node[i], similar_key(_i, i));
	ck_assert_uint_le(longest_chain(), 12);
}

/* Two keys with one hash, which cannot be chosen, and do not occur by chance in a test. */
TEST(key_counts_and_not_its_hash_alone)
{
	struct cm_node node = { 0 };

	insert(&node, key_of(1));
	node.key.id = 2;
	ck_assert_ptr_null(find(key_of(1)));
	node.key = key_of(1);
	node.key.guid++;
	ck_assert_ptr_null(find(key_of(1)));
	node.key = key_of(1);
	node.key.gid.raw[0]++;
	ck_assert_ptr_null(find(key_of(1)));
	node.key = key_of(1);
	ck_assert_ptr_eq(find(key_of(1)), &node);
	cm_index_remove(&index_under_test, &node);
}

TEST(next_nodes_are_those_with_the_same_key)
{
	struct cm_node node[4] = { 0 };
	struct cm_node *found;
	int n = 0;

	for (int i = 0; i < 4; i++)
		insert(&node[i], key_of(1));
	node[2].key.id = 2; /* another key with the same hash */
	for (found = find(key_of(1)); found; found = cm_index_next(found), n++)
		ck_assert(found >= node && found < node + 4 && found != &node[2]);
	ck_assert_int_eq(n, 3);
}

TEST(index_grows_no_more_than_it_must)
{
	size_t n_buckets = index_under_test.table.n_buckets;

	ck_assert_int_eq(cm_index_reserve(&index_under_test, n_buckets / 2), 0);
	ck_assert_uint_eq(index_under_test.table.n_buckets, 2 * n_buckets);
}

TEST(freed_index_is_zeroed)
{
	struct cm_index other;

	ck_assert_int_eq(cm_index_init(&other, 1), 0);
	cm_index_fini(&other);
	ck_assert_ptr_null(other.table.bucket);
	ck_assert_uint_eq(other.table.n_buckets, 0);
}

/* Adjacent buckets share a cache line. */
TEST(consecutive_ids_are_in_adjacent_buckets)
{
	for (uint32_t i = 0; i < 8000; i++) {
		struct cm_key one = key_of(i), first = key_of(i - i % 8);
		uint64_t at = cm_key_hash(&one, 42), begins = cm_key_hash(&first, 42);

		ck_assert_uint_eq(at / 8, begins / 8);
		ck_assert(i % 8 == 0 || at != begins);
	}
}

TEST(another_secret_gives_other_buckets)
{
	static struct cm_node node[2][64];
	struct cm_index other;
	unsigned int same = 0;

	ck_assert_int_eq(cm_index_init(&other, 0x4321), 0);
	for (uint32_t i = 0; i < 64; i++) {
		struct cm_key key = key_of(i);

		cm_index_insert(&index_under_test, &node[0][i], &key);
		cm_index_insert(&other, &node[1][i], &key);
		same += node[0][i].link.hash % 64 == node[1][i].link.hash % 64;
	}
	ck_assert_uint_le(same, 8);
	cm_index_fini(&other);
}

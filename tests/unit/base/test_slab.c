/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of base/slab.c. */
#include "base/slab.h"

#include <stdint.h>
#include <string.h>

#include "tests/unit/test.h"

#define OBJECTS 1000

static struct slab slab;
static void *object[OBJECTS];

static void take_all(void)
{
	for (unsigned int i = 0; i < OBJECTS; i++) {
		object[i] = slab_take(&slab);
		ck_assert_ptr_nonnull(object[i]);
		memset(object[i], (int)i, 100);
	}
}

static unsigned int n_chunks(void)
{
	return (unsigned int)list_length(&slab.chunks);
}

static void set_up(void)
{
	slab_init(&slab, 100);
}

static void tear_down(void)
{
	slab_fini(&slab);
}

FIXTURE(set_up, tear_down);

TEST(zeroed_slab_can_be_freed)
{
	struct slab none = { 0 };

	slab_fini(&none);
	ck_assert_uint_eq(none.n_free, 0);
}

TEST(objects_do_not_overlap)
{
	take_all();
	for (unsigned int i = 0; i < OBJECTS; i++)
		for (unsigned int k = 0; k < 100; k++)
			ck_assert_uint_eq(((uint8_t *)object[i])[k], (uint8_t)i);
}

TEST(objects_are_aligned_for_everything)
{
	take_all();
	for (unsigned int i = 0; i < OBJECTS; i++)
		ck_assert_uint_eq((uintptr_t)object[i] % _Alignof(max_align_t), 0);
}

#if !SLAB_ONE_BY_ONE

/* Otherwise, each slab would cost a process with one connection two pages. */
TEST(first_objects_of_slabs_are_close_together)
{
	struct slab other;
	uintptr_t one = (uintptr_t)slab_take(&slab), two;

	slab_init(&other, 100);
	two = (uintptr_t)slab_take(&other);
	ck_assert_uint_le(two > one ? two - one : one - two, 16384);
	slab_fini(&other);
}

TEST(freed_object_is_the_next_one_taken)
{
	take_all();
	slab_give(&slab, object[7]);
	ck_assert_ptr_eq(slab_take(&slab), object[7]);
}

TEST(freed_objects_are_reused_before_new_ones)
{
	void *fresh;

	for (unsigned int i = 0; i < 3; i++)
		object[i] = slab_take(&slab);
	slab_give(&slab, object[0]);
	slab_give(&slab, object[1]);
	ck_assert_ptr_eq(slab_take(&slab), object[1]);
	ck_assert_ptr_eq(slab_take(&slab), object[0]);
	fresh = slab_take(&slab);
	ck_assert_uint_eq((uintptr_t)fresh - (uintptr_t)object[2],
			  (uintptr_t)object[2] - (uintptr_t)object[1]);
}

#endif

TEST(memory_of_a_burst_goes_back_to_the_heap)
{
	take_all();
	for (unsigned int i = 0; i < OBJECTS; i++)
		slab_give(&slab, object[i * 7 % OBJECTS]);
	ck_assert_uint_le(n_chunks(), 1);
}

TEST(freeing_null_is_allowed)
{
	slab_give(&slab, NULL);
	ck_assert_uint_eq(slab.n_free, 0);
}

TEST(object_larger_than_a_chunk_has_one_of_its_own)
{
	slab_init(&slab, 100000);
	object[0] = slab_take(&slab);
	object[1] = slab_take(&slab);
	memset(object[0], 1, 100000);
	memset(object[1], 2, 100000);
	ck_assert_uint_eq(n_chunks(), 2);
}

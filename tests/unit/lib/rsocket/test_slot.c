/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pieces of registered memory, many to a page.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/rsocket/slot.h"
#include "tests/unit/test.h"

#define N	   1000
#define PAGE_BYTES 4096

static uint8_t *slots[N];

static void take_all(void)
{
	for (int i = 0; i < N; i++) {
		slots[i] = slot_new();
		ck_assert_ptr_nonnull(slots[i]);
		memset(slots[i], i + 1, SLOT_BYTES);
	}
}

static void free_all(void)
{
	for (int i = 0; i < N; i++)
		slot_free(slots[i]);
}

TEST(slots_do_not_overlap)
{
	take_all();
	for (int i = 0; i < N; i++)
		for (int j = 0; j < SLOT_BYTES; j++)
			ck_assert_uint_eq(slots[i][j], (uint8_t)(i + 1));
	free_all();
}
END_TEST

TEST(a_page_has_64_sockets_tables)
{
	uint8_t *first = slot_new();
	uintptr_t page = (uintptr_t)first / PAGE_BYTES;

	for (int i = 1; i < PAGE_BYTES / SLOT_BYTES; i++) {
		slots[i] = slot_new();
		ck_assert_uint_eq((uintptr_t)slots[i] / PAGE_BYTES, page);
	}
	for (int i = 1; i < PAGE_BYTES / SLOT_BYTES; i++)
		slot_free(slots[i]);
	slot_free(first);
}
END_TEST

TEST(reused_slot_is_zeroed)
{
	take_all();
	for (int i = 0; i < N; i += 3)
		slot_free(slots[i]);
	for (int i = 0; i < N; i += 3) {
		slots[i] = slot_new();
		for (int j = 0; j < SLOT_BYTES; j++)
			ck_assert_uint_eq(slots[i][j], 0);
	}
	free_all();
}
END_TEST

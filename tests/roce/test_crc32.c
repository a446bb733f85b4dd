/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tools/fabric/roce/crc32.c: the fast ways against the definition.
 */
#include "tests/unit/test.h"
#include "tools/fabric/roce/crc32.h"

#define BYTES_MAX 4200

static uint8_t bytes[BYTES_MAX + 16];

static void fill(void)
{
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)random();
}

/* The polynomial, bit by bit. */
static uint32_t slowly(uint32_t crc, const uint8_t *at, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (unsigned int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (((crc ^ at[i] >> bit) & 1) ? 0xedb88320u : 0);
	return crc;
}

TEST(check_value_of_the_catalogue)
{
	ck_assert_uint_eq(~crc32_update(0xffffffff, "123456789", 9), 0xcbf43926);
}

TEST(all_lengths_and_alignments_agree_with_the_definition)
{
	fill();
	for (size_t n = 0; n < 600; n++)
		ck_assert_uint_eq(crc32_update(0x12345678, bytes + n % 16, n),
				  slowly(0x12345678, bytes + n % 16, n));
	ck_assert_uint_eq(crc32_update(1, bytes, BYTES_MAX), slowly(1, bytes, BYTES_MAX));
}

TEST(bytewise_is_the_same)
{
	fill();
	for (size_t n = 0; n < 100; n++)
		ck_assert_uint_eq(crc32_update_bytewise(7, bytes, n), slowly(7, bytes, n));
}

TEST(in_two_parts_is_as_in_one)
{
	fill();
	for (size_t n = 0; n < 300; n++)
		ck_assert_uint_eq(crc32_update(crc32_update(3, bytes, n), bytes + n, 300 - n),
				  crc32_update(3, bytes, 300));
}

TEST(zeros_are_taken_back)
{
	static const uint8_t zeros[BYTES_MAX * 2];
	static const size_t lengths[] = { 0, 1, 2, 3, 64, 1077, 4607, 4608, 5000, 8400 };

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		for (unsigned int again = 0; again < 2; again++) {
			uint32_t crc = (uint32_t)random();

			ck_assert_uint_eq(crc32_without_zeros(crc32_update(crc, zeros, lengths[i]),
							      lengths[i]),
					  crc);
		}
}

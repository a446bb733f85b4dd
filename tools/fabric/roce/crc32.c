/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CRC-32 by tables, eight bytes at a time, or by carry-less multiplication where the CPU has it:
 * see crc32.h.
 */
#include "tools/fabric/roce/crc32.h"

#include <endian.h>
#include <stdbool.h>
#include <string.h>

#define POLYNOMIAL 0xedb88320u
#define ONE	   0x80000000u /* x^0 */
#define SLICES	   8

static uint32_t table[SLICES][256];
static bool has_clmul;

__attribute__((constructor)) static void fill_table(void)
{
	uint32_t i, slice, bit;

	for (i = 0; i < 256; i++) {
		uint32_t crc = i;

		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
		table[0][i] = crc;
	}
	for (slice = 1; slice < SLICES; slice++)
		for (i = 0; i < 256; i++)
			table[slice][i] = table[slice - 1][i] >> 8 ^
					  table[0][table[slice - 1][i] & 0xff];
#if defined(__x86_64__)
	has_clmul = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
#endif
}

uint32_t crc32_update_bytewise(uint32_t crc, const void *bytes, size_t n)
{
	const uint8_t *at = bytes;

	while (n--)
		crc = crc >> 8 ^ table[0][(crc ^ *at++) & 0xff];
	return crc;
}

static uint32_t update_by_slices(uint32_t crc, const uint8_t *at, size_t n)
{
	uint64_t word;

	for (; n >= sizeof(word); n -= sizeof(word), at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		word = le64toh(word) ^ crc;
		crc = table[7][word & 0xff] ^ table[6][word >> 8 & 0xff] ^
		      table[5][word >> 16 & 0xff] ^ table[4][word >> 24 & 0xff] ^
		      table[3][word >> 32 & 0xff] ^ table[2][word >> 40 & 0xff] ^
		      table[1][word >> 48 & 0xff] ^ table[0][word >> 56];
	}
	return crc32_update_bytewise(crc, at, n);
}

#if defined(__x86_64__)
#include <immintrin.h>

#define CLMUL	    __attribute__((target("pclmul,sse4.1")))
#define BLOCK_BYTES 64

static inline CLMUL __m128i fold(__m128i x, __m128i by, __m128i next)
{
	return _mm_xor_si128(next, _mm_xor_si128(_mm_clmulepi64_si128(x, by, 0x00),
						 _mm_clmulepi64_si128(x, by, 0x11)));
}

static inline CLMUL __m128i load(const uint8_t *at)
{
	return _mm_loadu_si128((const __m128i *)(const void *)at);
}

/* 128 bits to the 32 of a register: "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ
 * Instruction" (Intel, 2009), with its constants for this polynomial. */
static CLMUL uint32_t reduce(__m128i x)
{
	const __m128i by_4 = _mm_set_epi64x(0, 0x163cd6124);
	const __m128i barrett = _mm_set_epi64x(0x1f7011641, 0x1db710641);
	const __m128i low = _mm_set_epi32(0, 0, 0, -1);
	const __m128i by_16 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
	__m128i quotient;

	x = _mm_xor_si128(_mm_srli_si128(x, 8), _mm_clmulepi64_si128(x, by_16, 0x10));
	x = _mm_xor_si128(_mm_srli_si128(x, 4),
			  _mm_clmulepi64_si128(_mm_and_si128(x, low), by_4, 0x00));
	quotient = _mm_clmulepi64_si128(_mm_and_si128(x, low), barrett, 0x10);
	quotient = _mm_clmulepi64_si128(_mm_and_si128(quotient, low), barrett, 0x00);
	return (uint32_t)_mm_extract_epi32(_mm_xor_si128(x, quotient), 1);
}

/* @n: at least BLOCK_BYTES, and a multiple of 16 */
static CLMUL uint32_t update_by_clmul(uint32_t crc, const uint8_t *at, size_t n)
{
	const __m128i by_64 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
	const __m128i by_16 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
	__m128i x0 = _mm_xor_si128(load(at), _mm_cvtsi32_si128((int)crc));
	__m128i x1 = load(at + 16), x2 = load(at + 32), x3 = load(at + 48);

	for (at += BLOCK_BYTES, n -= BLOCK_BYTES; n >= BLOCK_BYTES;
	     at += BLOCK_BYTES, n -= BLOCK_BYTES) {
		x0 = fold(x0, by_64, load(at));
		x1 = fold(x1, by_64, load(at + 16));
		x2 = fold(x2, by_64, load(at + 32));
		x3 = fold(x3, by_64, load(at + 48));
	}
	x0 = fold(fold(fold(x0, by_16, x1), by_16, x2), by_16, x3);
	for (; n; at += 16, n -= 16)
		x0 = fold(x0, by_16, load(at));
	return reduce(x0);
}

uint32_t crc32_update(uint32_t crc, const void *bytes, size_t n)
{
	const uint8_t *at = bytes;
	size_t n_blocks = n & ~(size_t)15;

	if (!has_clmul || n < BLOCK_BYTES)
		return update_by_slices(crc, at, n);
	crc = update_by_clmul(crc, at, n_blocks);
	return update_by_slices(crc, at + n_blocks, n - n_blocks);
}
#else
uint32_t crc32_update(uint32_t crc, const void *bytes, size_t n)
{
	return update_by_slices(crc, bytes, n);
}
#endif

/* --- polynomials --------------------------------------------------------- */

static uint32_t times_x(uint32_t a)
{
	return a >> 1 ^ (a & 1 ? POLYNOMIAL : 0);
}

static uint32_t over_x(uint32_t a)
{
	return a & ONE ? (a ^ POLYNOMIAL) << 1 | 1 : a << 1;
}

static uint32_t multiply(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (; b; b <<= 1, a = times_x(a))
		if (b & ONE)
			product ^= a;
	return product;
}

/* x^(-8n), by squares. */
static uint32_t without_bytes(size_t n)
{
	uint32_t power = ONE, result = ONE;
	unsigned int bit;

	for (bit = 0; bit < 8; bit++)
		power = over_x(power);
	for (; n; n >>= 1, power = multiply(power, power))
		if (n & 1)
			result = multiply(result, power);
	return result;
}

#define LENGTHS 4608 /* of packets; longer ones are computed anew */

uint32_t crc32_without_zeros(uint32_t crc, size_t n)
{
	/* Any thread may compute an entry; all compute the same. */
	static uint32_t known[LENGTHS];
	uint32_t factor = n < LENGTHS ? __atomic_load_n(&known[n], __ATOMIC_RELAXED) : 0;

	if (!factor) {
		factor = without_bytes(n);
		if (n < LENGTHS)
			__atomic_store_n(&known[n], factor, __ATOMIC_RELAXED);
	}
	return multiply(crc, factor);
}

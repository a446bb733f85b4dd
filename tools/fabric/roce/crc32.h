/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CRC-32 (polynomial 0x04c11db7, bits reflected, as Ethernet and zlib have it), and the arithmetic
 * behind it: a register of 32 bits is a polynomial over GF(2), of which bit 31 is the coefficient
 * of x^0; taking in a bit multiplies it by x.
 */
#ifndef FABRIC_ROCE_CRC32_H
#define FABRIC_ROCE_CRC32_H

#include <stddef.h>
#include <stdint.h>

/** crc32_update() - the register after more bytes; begins as 0xffffffff, and ends complemented. */
uint32_t crc32_update(uint32_t crc, const void *bytes, size_t n);

/** crc32_update_bytewise() - the same, one byte after the other; any CPU can do it. */
uint32_t crc32_update_bytewise(uint32_t crc, const void *bytes, size_t n);

/** crc32_without_zeros() - the register as it was before so many zero bytes came in. */
uint32_t crc32_without_zeros(uint32_t crc, size_t n);

#endif

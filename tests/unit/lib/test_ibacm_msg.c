/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests to ibacm and its responses, as bytes (lib/path/ibacm_msg.c). The requests' bytes are
 * those of a stock library in the lab.
 */
#include <endian.h>
#include <errno.h>
#include <infiniband/ib.h>
#include <stdlib.h>
#include <string.h>

#include "lib/path/ibacm_msg.h"
#include "tests/unit/test.h"

#define TID 7

static uint8_t wire[IBACM_MESSAGE_BYTES];
static struct sockaddr_in ipv4_src = { .sin_family = AF_INET, .sin_port = 1 };
static struct sockaddr_in ipv4_dst = { .sin_family = AF_INET, .sin_port = 2 };
static struct sockaddr_in6 ipv6_dst = { .sin6_family = AF_INET6, .sin6_port = 3 };
static struct sockaddr_ib gid_src = { .sib_family = AF_IB };
static struct sockaddr_ib gid_dst = { .sib_family = AF_IB };

static void setup(void)
{
	memset(wire, 0xee, sizeof(wire));
	ipv4_src.sin_addr.s_addr = htobe32(0xc0000209);
	ipv4_dst.sin_addr.s_addr = htobe32(0xc0000201);
	memset(&ipv6_dst.sin6_addr, 0x66, 16);
	memset(&gid_src.sib_addr, 0x51, 16);
	memset(&gid_dst.sib_addr, 0x61, 16);
}

FIXTURE(setup, NULL);

static size_t encode(const void *src, const void *dst, bool no_delay)
{
	struct ibacm_question question = { .src = src, .dst = dst, .no_delay = no_delay };

	return ibacm_encode(&question, TID, wire);
}

static uint8_t *entry(unsigned int i)
{
	return wire + IBACM_HEADER_BYTES + i * IBACM_ENTRY_BYTES;
}

static uint32_t u32_at(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static uint16_t u16_at(const uint8_t *at)
{
	uint16_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static void put_u16(uint8_t *at, uint16_t value)
{
	memcpy(at, &value, sizeof(value));
}

/* --- questions ------------------------------------------------------------ */

TEST(header_is_in_host_byte_order)
{
	uint64_t tid;

	ck_assert_uint_eq(encode(&ipv4_src, &ipv4_dst, false), 160);
	ck_assert_uint_eq(wire[0], 1);
	ck_assert_uint_eq(wire[1], 1);
	ck_assert_uint_eq(wire[2], 0);
	ck_assert_uint_eq(u16_at(wire + 6), 160);
	memcpy(&tid, wire + 8, sizeof(tid));
	ck_assert_uint_eq(tid, TID);
}

TEST(source_and_destination_are_entries)
{
	encode(&ipv4_src, &ipv4_dst, false);
	ck_assert_uint_eq(u32_at(entry(0)), 1);
	ck_assert_uint_eq(u16_at(entry(0) + 4), 2);
	ck_assert_mem_eq(entry(0) + 8, "\xc0\x00\x02\x09\0\0\0\0", 8);
	ck_assert_uint_eq(u32_at(entry(1)), 2);
	ck_assert_mem_eq(entry(1) + 8, "\xc0\x00\x02\x01\0\0\0\0", 8);
}

TEST(destination_alone_is_one_entry)
{
	ck_assert_uint_eq(encode(NULL, &ipv6_dst, false), 88);
	ck_assert_uint_eq(u32_at(entry(0)), 2);
	ck_assert_uint_eq(u16_at(entry(0) + 4), 3);
	ck_assert_mem_eq(entry(0) + 8, &ipv6_dst.sin6_addr, 16);
}

TEST(no_delay_is_a_flag_of_the_destination)
{
	encode(&ipv4_src, &ipv4_dst, true);
	ck_assert_uint_eq(u32_at(entry(0)), 1);
	ck_assert_uint_eq(u32_at(entry(1)), 2 | 1u << 30);
}

TEST(gids_are_encoded_as_a_path)
{
	ck_assert_uint_eq(encode(&gid_src, &gid_dst, true), 88);
	ck_assert_uint_eq(u32_at(entry(0)), 0);
	ck_assert_uint_eq(u16_at(entry(0) + 4), 0x10);
	ck_assert_mem_eq(entry(0) + 16, &gid_dst.sib_addr, 16);
	ck_assert_mem_eq(entry(0) + 32, &gid_src.sib_addr, 16);
}

TEST(request_without_addresses_is_not_encoded)
{
	struct sockaddr odd = { .sa_family = AF_UNIX };

	ck_assert_uint_eq(encode(NULL, NULL, false), 0);
	ck_assert_uint_eq(encode(NULL, &odd, false), 0);
}

/* --- answers -------------------------------------------------------------- */

static void answer(unsigned int n_entries)
{
	encode(NULL, &ipv4_dst, false);
	wire[1] |= 0x80;
	put_u16(wire + 6, (uint16_t)(IBACM_HEADER_BYTES + n_entries * IBACM_ENTRY_BYTES));
}

static void put_entry(unsigned int i, uint32_t flags, uint16_t type, uint8_t fill)
{
	memset(entry(i), fill, IBACM_ENTRY_BYTES);
	memcpy(entry(i), &flags, sizeof(flags));
	put_u16(entry(i) + 4, type);
}

static struct ibacm_answer decoded(unsigned int n_entries)
{
	struct ibacm_answer ret;

	memset(&ret, 0xff, sizeof(ret));
	ibacm_decode(entry(0), n_entries * IBACM_ENTRY_BYTES, &ret);
	return ret;
}

static int check(size_t *ret_bytes)
{
	return ibacm_check(wire, TID, ret_bytes);
}

TEST_LOOP(answer_of_any_allowed_number_of_entries_is_good, 0,
	  IBACM_ENTRIES_MAX + 1) /* loop test: _i is the number */
{
	size_t bytes;

	answer((unsigned int)_i);
	ck_assert_int_eq(check(&bytes), 0);
	ck_assert_uint_eq(bytes, (size_t)_i * IBACM_ENTRY_BYTES);
}

TEST(failed_response_has_no_entries)
{
	size_t bytes;

	answer(2);
	wire[2] = 3;
	ck_assert_int_eq(check(&bytes), -ENOENT);
	ck_assert_uint_eq(bytes, 2 * IBACM_ENTRY_BYTES);
}

/* A byte of the header, and an invalid value of it. */
static const struct {
	unsigned int at;
	uint8_t byte;
} lies[] = {
	{ 0, 0 }, { 0, 2 }, { 1, 0 }, { 1, 2 }, { 8, TID + 1 }, { 15, 1 },
};

TEST_LOOP(answer_to_something_else_is_refused, 0,
	  sizeof(lies) / sizeof(lies[0])) /* loop test: _i is the row */
{
	size_t bytes;

	answer(1);
	wire[lies[_i].at] = lies[_i].byte;
	ck_assert_int_eq(check(&bytes), -EBADMSG);
}

static const uint16_t bad_lengths[] = {
	0,
	1,
	IBACM_HEADER_BYTES - 1,
	IBACM_HEADER_BYTES + 1,
	IBACM_HEADER_BYTES + IBACM_ENTRY_BYTES - 1,
	IBACM_HEADER_BYTES + IBACM_ENTRY_BYTES + 1,
	IBACM_MESSAGE_BYTES + 1,
	IBACM_MESSAGE_BYTES + IBACM_ENTRY_BYTES,
	UINT16_MAX,
};

TEST_LOOP(impossible_length_is_refused, 0,
	  sizeof(bad_lengths) / sizeof(bad_lengths[0])) /* loop test: _i is the row */
{
	size_t bytes;

	answer(1);
	put_u16(wire + 6, bad_lengths[_i]);
	ck_assert_int_eq(check(&bytes), -EBADMSG);
}

TEST(paths_are_kept_in_order_with_their_flags)
{
	struct ibacm_answer got;

	put_entry(0, 0x2b, 0x10, 0x11);
	put_entry(1, 0x2c, 0x10, 0x22);
	got = decoded(2);
	ck_assert_uint_eq(got.n_paths, 2);
	ck_assert_uint_eq(got.path[0].flags, 0x2b);
	ck_assert_uint_eq(got.path[0].reserved, 0);
	ck_assert_mem_eq(&got.path[0].path, entry(0) + 8, 64);
	ck_assert_uint_eq(got.path[1].flags, 0x2c);
	ck_assert_mem_eq(&got.path[1].path, entry(1) + 8, 64);
}

TEST(address_among_paths_is_the_source)
{
	struct ibacm_answer got;

	put_entry(0, 0x2b, 0x10, 0x11);
	put_entry(1, 1, 2, 10);
	put_entry(2, 0x2c, 0x10, 0x22);
	got = decoded(3);
	ck_assert_uint_eq(got.n_paths, 2);
	ck_assert_uint_eq(got.path[1].flags, 0x2c);
	ck_assert_int_eq(got.src.sa.sa_family, AF_INET);
	ck_assert_uint_eq(be32toh(got.src.in4.sin_addr.s_addr), 0x0a0a0a0a);
	ck_assert_uint_eq(got.src.in4.sin_port, 0);
}

TEST(source_may_be_of_ipv6)
{
	struct ibacm_answer got;

	put_entry(0, 1, 3, 0x77);
	got = decoded(1);
	ck_assert_int_eq(got.src.sa.sa_family, AF_INET6);
	ck_assert_mem_eq(&got.src.in6.sin6_addr, entry(0) + 8, 16);
}

TEST(destination_and_unknown_kinds_are_ignored)
{
	struct ibacm_answer got;

	put_entry(0, 2, 2, 10);
	put_entry(1, 1, 1, 10);
	put_entry(2, 1, 0xffff, 10);
	got = decoded(3);
	ck_assert_uint_eq(got.n_paths, 0);
	ck_assert_int_eq(got.src.sa.sa_family, AF_UNSPEC);
}

TEST(as_many_paths_as_fit_are_kept)
{
	unsigned int i;

	for (i = 0; i < IBACM_ENTRIES_MAX; i++)
		put_entry(i, i, 0x10, (uint8_t)i);
	ck_assert_uint_eq(decoded(IBACM_ENTRIES_MAX).n_paths, IBACM_ENTRIES_MAX);
}

TEST(response_without_entries_is_empty)
{
	struct ibacm_answer got = decoded(0);

	ck_assert_uint_eq(got.n_paths, 0);
	ck_assert_int_eq(got.src.sa.sa_family, AF_UNSPEC);
}

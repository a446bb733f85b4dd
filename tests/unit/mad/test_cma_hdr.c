/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mad/cma_hdr.c: the RDMA IP CM header and its service ids.
 */
#include <stdlib.h>

#include "mad/cma_hdr.h"
#include "tests/unit/mad/hex.h"
#include "tests/unit/test.h"

TEST(ipv4_header_becomes_the_bytes_of_annex_a11)
{
	static const char hex[] = "00 40 c350  # version, IP version, source port\n"
				  "000000000000000000000000 0a000001\n"
				  "000000000000000000000000 0a000002\n";
	struct cma_hdr cma = { .ip_version = 4,
			       .src_port = 50000,
			       .src_addr = { [12] = 10, 0, 0, 1 },
			       .dst_addr = { [12] = 10, 0, 0, 2 } };
	uint8_t expected[CMA_HDR_BYTES], wire[CMA_HDR_BYTES] = { 0 };

	ck_assert_int_eq(hex_read(hex, expected, sizeof(expected)), CMA_HDR_BYTES);
	wire_encode(&cma_hdr_layout, &cma, wire);
	ck_assert_mem_eq(wire, expected, sizeof(wire));
}

TEST(ipv6_header_is_read)
{
	static const char hex[] = "00 60 0102 20010db8000000000000000000000001\n"
				  "20010db8000000000000000000000002\n";
	uint8_t wire[CMA_HDR_BYTES];
	struct cma_hdr cma;

	ck_assert_int_eq(hex_read(hex, wire, sizeof(wire)), CMA_HDR_BYTES);
	wire_decode(&cma_hdr_layout, wire, &cma);
	ck_assert_uint_eq(cma.cma_version, 0);
	ck_assert_uint_eq(cma.ip_version, 6);
	ck_assert_uint_eq(cma.src_port, 0x0102);
	ck_assert_mem_eq(cma.src_addr, wire + 4, 16);
	ck_assert_mem_eq(cma.dst_addr, wire + 20, 16);
}

TEST(reserved_nibble_is_not_the_ip_version)
{
	uint8_t wire[CMA_HDR_BYTES] = { [1] = 0x4f };
	struct cma_hdr cma;

	wire_decode(&cma_hdr_layout, wire, &cma);
	ck_assert_uint_eq(cma.ip_version, 4);
}

TEST(later_version_is_read_completely)
{
	uint8_t wire[CMA_HDR_BYTES] = { [0] = 0x81 };
	struct cma_hdr cma;

	wire_decode(&cma_hdr_layout, wire, &cma);
	ck_assert_uint_eq(cma.cma_version, 0x81);
}

TEST(service_id_is_port_space_and_port)
{
	ck_assert_uint_eq(cma_service_id(0x0106, 7000), 0x1061b58);
	ck_assert_uint_eq(cma_service_id(0x0111, 0xffff), 0x111ffff);
	ck_assert_uint_eq(cma_service_id(0x0002, 1), 0x20001);
}

TEST(ip_services_are_one_block)
{
	ck_assert(cma_service_is_ip(0x1000000));
	ck_assert(cma_service_is_ip(0x1ffffff));
	ck_assert(!cma_service_is_ip(0x2000000));
	ck_assert(!cma_service_is_ip(0x0ffffff));
	ck_assert(!cma_service_is_ip(0x100000001000000));
}

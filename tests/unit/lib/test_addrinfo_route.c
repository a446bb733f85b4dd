/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Results of rdma_getaddrinfo() for responses of ibacm (lib/names/addrinfo_route.c).
 * tests/parity/ibacm.c compares them with stock.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/names/addrinfo.h"
#include "tests/unit/lib/fake_ibacm.h"
#include "tests/unit/fake_verbs.h"
#include "tests/unit/test.h"

static struct ibv_device device;
static struct rdma_addrinfo *found;

static void setup(void)
{
	fake.listed = &device;
	fake.n_listed = 1;
	fake_ibacm_begin();
	found = NULL;
}

static void teardown(void)
{
	rdma_freeaddrinfo(found);
}

FIXTURE(setup, teardown);

static void set_paths(unsigned int n)
{
	unsigned int i;

	fake_ibacm.answer.n_paths = n;
	for (i = 0; i < n; i++) {
		fake_ibacm.answer.path[i].flags = 0x2b + i;
		memset(&fake_ibacm.answer.path[i].path, 0, sizeof(fake_ibacm.answer.path[i].path));
		memset(&fake_ibacm.answer.path[i].path.sgid, 0x51, 16);
		memset(&fake_ibacm.answer.path[i].path.dgid, 0x61, 16);
		fake_ibacm.answer.path[i].path.pkey = htons(0x8001);
		fake_ibacm.answer.path[i].path.flowlabel_hoplimit = htonl(0x01234540);
	}
}

static void set_source(void)
{
	addr_set_any(&fake_ibacm.answer.src, AF_INET);
	fake_ibacm.answer.src.in4.sin_addr.s_addr = htonl(0xc0000209);
}

static void find(int flags)
{
	struct rdma_addrinfo hints = { .ai_flags = flags };

	ck_assert_int_eq(rdma_getaddrinfo("192.0.2.1", "7471", &hints, &found), 0);
}

TEST(without_ibacm_there_is_no_route)
{
	fake_ibacm.err = -ENOTCONN;
	find(0);
	ck_assert_ptr_null(found->ai_next);
	ck_assert_uint_eq(found->ai_route_len, 0);
	ck_assert_ptr_null(found->ai_route);
}

TEST(source_of_ibacm_is_used)
{
	set_source();
	find(0);
	ck_assert_ptr_null(found->ai_next);
	ck_assert_uint_eq(found->ai_src_len, sizeof(struct sockaddr_in));
	ck_assert_mem_eq(found->ai_src_addr, &fake_ibacm.answer.src, found->ai_src_len);
}

TEST(paths_are_the_route_of_both_entries)
{
	set_source();
	set_paths(2);
	find(0);
	ck_assert_uint_eq(found->ai_route_len, 2 * sizeof(struct ibv_path_data));
	ck_assert_mem_eq(found->ai_route, fake_ibacm.answer.path, found->ai_route_len);
	ck_assert_uint_eq(found->ai_next->ai_route_len, found->ai_route_len);
	ck_assert_mem_eq(found->ai_next->ai_route, fake_ibacm.answer.path, found->ai_route_len);
	ck_assert_ptr_null(found->ai_next->ai_next);
}

TEST(infiniband_comes_first)
{
	set_source();
	set_paths(1);
	find(0);
	ck_assert_int_eq(found->ai_family, AF_IB);
	ck_assert_int_eq(found->ai_qp_type, IBV_QPT_RC);
	ck_assert_int_eq(found->ai_port_space, RDMA_PS_TCP);
	ck_assert_int_eq(found->ai_next->ai_family, AF_INET);
}

TEST(infiniband_addresses_are_those_of_the_path)
{
	struct sockaddr_ib *src, *dst;

	set_source();
	set_paths(1);
	find(0);
	src = (void *)found->ai_src_addr;
	dst = (void *)found->ai_dst_addr;
	ck_assert_mem_eq(&src->sib_addr, &fake_ibacm.answer.path[0].path.sgid, 16);
	ck_assert_mem_eq(&dst->sib_addr, &fake_ibacm.answer.path[0].path.dgid, 16);
	ck_assert_uint_eq(ntohs(dst->sib_pkey), 0x8001);
	ck_assert_uint_eq(ntohl(dst->sib_flowinfo), 0x12345);
	ck_assert_uint_eq(be64toh(dst->sib_sid), 0x1061d2f);
	ck_assert_uint_eq(be64toh(dst->sib_sid_mask), UINT64_MAX);
	ck_assert_uint_eq(be64toh(src->sib_sid), 0x1060000);
	ck_assert_uint_eq(be64toh(src->sib_sid_mask), 0xffffffffffff0000);
}

TEST(infiniband_entry_sends_the_ip_addresses_to_the_peer)
{
	const uint8_t *header;

	set_source();
	set_paths(1);
	find(0);
	header = found->ai_connect;
	ck_assert_uint_eq(found->ai_connect_len, 36);
	ck_assert_mem_eq(header, "\x00\x40\x00\x00", 4);
	ck_assert_mem_eq(header + 4, "\0\0\0\0\0\0\0\0\0\0\0\0\xc0\x00\x02\x09", 16);
	ck_assert_mem_eq(header + 20, "\0\0\0\0\0\0\0\0\0\0\0\0\xc0\x00\x02\x01", 16);
	ck_assert_uint_eq(found->ai_next->ai_connect_len, 0);
	ck_assert_ptr_null(found->ai_next->ai_connect);
}

/* Stock crashes here. */
TEST(path_without_source_makes_no_infiniband_entry)
{
	set_paths(1);
	find(0);
	ck_assert_int_eq(found->ai_family, AF_INET);
	ck_assert_uint_eq(found->ai_route_len, sizeof(struct ibv_path_data));
	ck_assert_ptr_null(found->ai_next);
}

TEST(route_only_yields_no_infiniband_entry)
{
	set_source();
	set_paths(1);
	find(ADDRINFO_ROUTE_ONLY);
	ck_assert_int_eq(found->ai_family, AF_INET);
	ck_assert_ptr_null(found->ai_next);
}

TEST(passive_address_needs_no_route)
{
	find(RAI_PASSIVE);
	ck_assert_uint_eq(fake_ibacm.n_asked, 0);
}

static const struct {
	int flags;
	bool haste;
} hastes[] = {
	{ 0, false },
	{ RAI_NUMERICHOST, true },
	{ RAI_NOROUTE, true },
	{ RAI_NOROUTE | RAI_NUMERICHOST, true },
};

TEST_LOOP(numeric_host_or_no_route_uses_cached_paths, 0,
	  sizeof(hastes) / sizeof(hastes[0])) /* loop test: _i is the row */
{
	find(hastes[_i].flags);
	ck_assert_uint_eq(fake_ibacm.n_asked, 1);
	ck_assert(fake_ibacm.question.no_delay == hastes[_i].haste);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Properties of addresses for binding, resolving and listening (lib/net/addr.h): one row per
 * address.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#include "lib/net/addr.h"
#include "tests/unit/net/netns.h"
#include "tests/unit/test.h"

static const struct row {
	const char *text;
	bool zero, loopback, any, link_local, multicast;
} rows[] = {
	{ .text = "0.0.0.0", .zero = true, .any = true },
	{ .text = "0.1.2.3", .any = true },
	{ .text = "127.0.0.1", .loopback = true, .any = true },
	{ .text = "127.9.8.7", .loopback = true, .any = true },
	{ .text = "10.0.0.1" },
	{ .text = "169.254.1.1" },
	{ .text = "223.255.255.255" },
	{ .text = "224.0.0.1", .multicast = true },
	{ .text = "239.255.255.255", .multicast = true },
	{ .text = "240.0.0.1" },
	{ .text = "::", .zero = true, .any = true },
	{ .text = "::1", .loopback = true, .any = true },
	{ .text = "2001:db8::1" },
	{ .text = "fe80::1", .link_local = true },
	{ .text = "febf::1", .link_local = true },
	{ .text = "fec0::1" },
	{ .text = "ff02::1", .multicast = true },
	{ .text = "::ffff:127.0.0.1" },
};

#define N(array) ((int)(sizeof(array) / sizeof((array)[0])))

TEST_LOOP(address_has_the_properties_of_its_row, 0, N(rows))
{
	const struct row *row = &rows[_i];
	union addr addr = ip(row->text);

	ck_assert_int_eq(addr_is_zero(&addr), row->zero);
	ck_assert_int_eq(addr_is_loopback(&addr), row->loopback);
	ck_assert_int_eq(addr_is_any(&addr), row->any);
	ck_assert_int_eq(addr_is_link_local(&addr), row->link_local);
	ck_assert_int_eq(addr_is_multicast(&addr), row->multicast);
}

TEST_LOOP(packed_address_is_unpacked, 0, N(rows))
{
	union addr addr = ip(rows[_i].text), again;
	bool is_ip4 = addr.sa.sa_family == AF_INET;
	uint8_t bytes[16] = { 0 };

	addr_set_port(&addr, 7471);
	if (rows[_i].link_local)
		addr.in6.sin6_scope_id = 3;
	ck_assert_uint_eq(addr_pack(&addr, bytes), is_ip4 ? 4 : 6);
	ck_assert_int_eq(addr_unpack(is_ip4 ? 4 : 6, bytes, 7471, 3, &again), 0);
	ck_assert_mem_eq(&again, &addr, sizeof(addr));
}

TEST(gid_is_packed_and_unpacked)
{
	union addr addr = { .ib = { .sib_family = AF_IB, .sib_sid = htobe64(7471) } }, again;
	uint8_t bytes[16] = { 0 };

	memset(&addr.ib.sib_addr, 0xfe, 16);
	ck_assert_uint_eq(addr_pack(&addr, bytes), AF_IB);
	ck_assert_int_eq(addr_unpack(AF_IB, bytes, 7471, 3, &again), 0);
	ck_assert_mem_eq(&again, &addr, sizeof(addr));
}

TEST(other_families_are_neither_packed_nor_unpacked)
{
	static const uint8_t versions[] = { 0, 1, 5, 7, 255 };
	union addr addr = { .sa.sa_family = AF_UNSPEC };
	uint8_t bytes[16] = { 0 };
	size_t i;

	ck_assert_uint_eq(addr_pack(&addr, bytes), 0);
	for (i = 0; i < sizeof(versions); i++)
		ck_assert_int_eq(addr_unpack(versions[i], bytes, 1, 1, &addr), -EINVAL);
}

TEST_LOOP(addresses_differ_from_all_others, 0, N(rows))
{
	for (int i = 0; i < N(rows); i++) {
		union addr a = ip(rows[_i].text);
		union addr b = ip(rows[i].text);

		ck_assert_int_eq(addr_same_ip(&a, &b), i == _i);
	}
}

TEST_LOOP(port_is_set_and_read_in_host_order, 0, N(rows))
{
	union addr addr = ip(rows[_i].text);

	addr_set_port(&addr, 0x1d2f);
	ck_assert_uint_eq(addr_port(&addr), 0x1d2f);
	ck_assert_mem_eq(addr.sa.sa_data, "\x1d\x2f", 2);
}

TEST(addresses_are_compared_without_ports)
{
	union addr a = ip("10.0.0.1");
	union addr b = a;

	addr_set_port(&b, 7);
	ck_assert(addr_same_ip(&a, &b));
}

TEST(link_local_addresses_are_compared_with_scopes)
{
	union addr a = ip("fe80::1");
	union addr b = a;

	a.in6.sin6_scope_id = 1;
	b.in6.sin6_scope_id = 2;
	ck_assert(!addr_same_ip(&a, &b));
	ck_assert_uint_eq(addr_scope(&b), 2);
}

TEST(scope_of_a_global_address_does_not_count)
{
	union addr a = ip("2001:db8::1");
	union addr b = a;

	b.in6.sin6_scope_id = 2;
	ck_assert(addr_same_ip(&a, &b));
	ck_assert_uint_eq(addr_scope(&b), 0);
}

TEST(copy_takes_the_address_and_no_more)
{
	union addr addr;
	struct sockaddr_in in4 = { .sin_family = AF_INET, .sin_port = htons(9) };

	memset(&addr, 0xff, sizeof(addr));
	ck_assert_int_eq(addr_copy((struct sockaddr *)&in4, &addr), 0);
	ck_assert_mem_eq(&addr, &in4, sizeof(in4));
	ck_assert_int_eq(((char *)&addr)[sizeof(addr) - 1], 0);
}

TEST(copy_refuses_other_families)
{
	struct sockaddr sa = { .sa_family = AF_UNIX };
	union addr addr;

	ck_assert_int_eq(addr_copy(&sa, &addr), -EINVAL);
	ck_assert_int_eq(addr_copy(NULL, &addr), -EINVAL);
	ck_assert_uint_eq(addr_bytes(&sa), 0);
}

TEST(ipv4_gid_is_a_mapped_address)
{
	union addr addr = ip("192.0.2.1");
	struct mad_gid gid = addr_to_gid(&addr);

	ck_assert_mem_eq(gid.raw, "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\0\2\1", 16);
}

TEST(ipv6_gid_is_the_address)
{
	union addr addr = ip("fe80::1");
	struct mad_gid gid = addr_to_gid(&addr);

	ck_assert_mem_eq(gid.raw, &addr.in6.sin6_addr, 16);
}

TEST_LOOP(wildcards_are_zero_addresses, 0, 2)
{
	static const sa_family_t families[] = { AF_INET, AF_INET6 };
	union addr addr;

	addr_set_any(&addr, families[_i]);
	ck_assert_uint_eq(addr.sa.sa_family, families[_i]);
	ck_assert(addr_is_zero(&addr));
	ck_assert_uint_eq(addr_port(&addr), 0);
}

/* Port space of the id, service id, mask; resulting port space and service id. */
static const struct {
	uint16_t ps;
	uint64_t sid, mask;
	int ret;
	uint64_t settled;
} sids[] = {
	{ RDMA_PS_IB, 0, 0, RDMA_PS_IB, 0x013f0000 },
	{ RDMA_PS_IB, 0x013f1234, ~0ull, RDMA_PS_IB, 0x013f1234 },
	{ RDMA_PS_IB, 0x01061234, ~0ull, RDMA_PS_TCP, 0x01061234 },
	{ RDMA_PS_IB, 0x01111234, ~0ull, RDMA_PS_UDP, 0x01111234 },
	{ RDMA_PS_IB, 0x1234, 0xffff, RDMA_PS_IB, 0x013f1234 },
	{ RDMA_PS_TCP, 0x1234, 0xffff, RDMA_PS_TCP, 0x01061234 },
	{ RDMA_PS_TCP, 0x01111234, ~0ull, -EPROTONOSUPPORT, 0 },
	{ RDMA_PS_UDP, 0x013f1234, ~0ull, -EPROTONOSUPPORT, 0 },
	{ RDMA_PS_IB, 0x990000001234, ~0ull, -EPROTONOSUPPORT, 0 },
};

TEST_LOOP(service_id_determines_the_port_space, 0, sizeof(sids) / sizeof(sids[0]))
{
	union addr addr = { .ib = { .sib_family = AF_IB,
				    .sib_sid = htobe64(sids[_i].sid),
				    .sib_sid_mask = htobe64(sids[_i].mask) } };

	ck_assert_int_eq(addr_settle_sid(&addr, sids[_i].ps), sids[_i].ret);
	if (sids[_i].ret > 0)
		ck_assert_uint_eq(be64toh(addr.ib.sib_sid), sids[_i].settled);
}

TEST(port_of_an_af_ib_address_is_in_its_service_id)
{
	union addr addr = { .ib = { .sib_family = AF_IB, .sib_sid = htobe64(0x01060000) } };

	addr_set_port(&addr, 7174);
	ck_assert_uint_eq(be64toh(addr.ib.sib_sid), 0x01060000 | 7174);
	ck_assert_uint_eq(addr_port(&addr), 7174);
}

TEST_LOOP(text_has_the_usual_form, 0, 4)
{
	static const struct {
		const char *address, *text;
		unsigned int scope;
	} texts[] = {
		{ "192.0.2.1", "192.0.2.1:7471", 0 },
		{ "2001:db8::1", "[2001:db8::1]:7471", 0 },
		{ "fe80::1", "[fe80::1%7]:7471", 7 },
		{ "fe80:1234:1234:1234:1234:1234:1234:1234",
		  "[fe80:1234:1234:1234:1234:1234:1234:1234%4294967295]:7471", UINT32_MAX },
	};
	union addr addr = ip(texts[_i].address);
	char buf[ADDR_STR_BYTES];

	if (texts[_i].scope)
		addr.in6.sin6_scope_id = texts[_i].scope;
	addr_set_port(&addr, 7471);
	ck_assert_str_eq(addr_str(&addr, buf), texts[_i].text);
}

TEST(text_of_an_unknown_family_names_it)
{
	union addr addr = { .sa.sa_family = 0 };
	char buf[ADDR_STR_BYTES];

	ck_assert_str_eq(addr_str(&addr, buf), "family 0");
}

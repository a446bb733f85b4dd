/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_getaddrinfo() (lib/names/addrinfo.c) on a host with or without a device. */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/ib.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "tests/unit/fake_verbs.h"
#include "tests/unit/test.h"

static struct ibv_device device;
static struct rdma_addrinfo *found;

static void setup(void)
{
	fake.listed = &device;
	fake.n_listed = 1;
	found = NULL;
}

static void teardown(void)
{
	rdma_freeaddrinfo(found);
}

FIXTURE(setup, teardown);

static void find(const char *node, const char *service, const struct rdma_addrinfo *hints)
{
	ck_assert_int_eq(rdma_getaddrinfo(node, service, hints, &found), 0);
	ck_assert_ptr_null(found->ai_next);
}

TEST(lookup_without_arguments_is_refused)
{
	ck_assert_int_eq(rdma_getaddrinfo(NULL, NULL, NULL, &found), -1);
	ck_assert_int_eq(errno, EINVAL);
}

TEST(host_without_devices_has_no_addresses)
{
	fake.n_listed = 0;
	ck_assert_int_eq(rdma_getaddrinfo("192.0.2.1", NULL, NULL, &found), -1);
	ck_assert_int_eq(errno, ENODEV);
}

TEST(lack_of_descriptors_is_no_lack_of_devices)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 0, limit.rlim_max });
	ck_assert_int_eq(rdma_getaddrinfo("192.0.2.1", NULL, NULL, &found), -1);
	ck_assert_int_eq(errno, EMFILE);
	setrlimit(RLIMIT_NOFILE, &limit);
}

TEST(node_is_a_destination)
{
	const struct sockaddr_in *dst;

	find("192.0.2.1", "7471", NULL);
	dst = (const void *)found->ai_dst_addr;
	ck_assert_uint_eq(found->ai_dst_len, sizeof(*dst));
	ck_assert_uint_eq(ntohl(dst->sin_addr.s_addr), 0xc0000201);
	ck_assert_uint_eq(ntohs(dst->sin_port), 7471);
	ck_assert_uint_eq(found->ai_src_len, 0);
	ck_assert_ptr_null(found->ai_src_addr);
}

TEST(passive_node_is_a_source)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE | RAI_NUMERICHOST | RAI_NOROUTE };

	find("192.0.2.1", "7471", &hints);
	ck_assert_uint_eq(found->ai_src_len, sizeof(struct sockaddr_in));
	ck_assert_ptr_null(found->ai_dst_addr);
	ck_assert_int_eq(found->ai_flags, RAI_PASSIVE);
}

TEST(passive_service_alone_is_a_wildcard)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE, .ai_family = AF_INET6 };

	find(NULL, "7471", &hints);
	ck_assert_int_eq(found->ai_family, AF_INET6);
	ck_assert(IN6_IS_ADDR_UNSPECIFIED(
		&((struct sockaddr_in6 *)(void *)found->ai_src_addr)->sin6_addr));
}

/* Contents of the hints and of the result. */
static const struct {
	int qp_type, port_space;
	int found_qp_type, found_port_space;
} kinds[] = {
	{ 0, 0, IBV_QPT_RC, RDMA_PS_TCP },
	{ IBV_QPT_RC, 0, IBV_QPT_RC, RDMA_PS_TCP },
	{ IBV_QPT_UC, RDMA_PS_TCP, IBV_QPT_UC, RDMA_PS_TCP },
	{ IBV_QPT_XRC_RECV, RDMA_PS_IB, IBV_QPT_XRC_RECV, RDMA_PS_IB },
	{ IBV_QPT_UD, 0, IBV_QPT_UD, RDMA_PS_UDP },
	{ 0, RDMA_PS_UDP, IBV_QPT_UD, RDMA_PS_UDP },
	{ 0, RDMA_PS_IPOIB, IBV_QPT_UD, RDMA_PS_IPOIB },
	{ IBV_QPT_UD, RDMA_PS_IB, IBV_QPT_UD, RDMA_PS_IB },
};

TEST_LOOP(queue_pair_and_port_space_complete_each_other, 0, sizeof(kinds) / sizeof(kinds[0]))
{
	struct rdma_addrinfo hints = { .ai_qp_type = kinds[_i].qp_type,
				       .ai_port_space = kinds[_i].port_space };

	find("192.0.2.1", NULL, &hints);
	ck_assert_int_eq(found->ai_qp_type, kinds[_i].found_qp_type);
	ck_assert_int_eq(found->ai_port_space, kinds[_i].found_port_space);
}

TEST(queue_pair_that_contradicts_the_port_space_is_refused)
{
	struct rdma_addrinfo hints = { .ai_qp_type = IBV_QPT_UD, .ai_port_space = RDMA_PS_TCP };

	ck_assert_int_eq(rdma_getaddrinfo("192.0.2.1", NULL, &hints, &found), EAI_SOCKTYPE);
}

TEST(unknown_name_has_the_resolvers_error)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST };

	ck_assert_int_eq(rdma_getaddrinfo("no number", NULL, &hints, &found), EAI_NONAME);
	ck_assert_ptr_null(found);
}

static struct sockaddr_in source = { .sin_family = AF_INET, .sin_port = 1 };
static struct sockaddr_in destination = { .sin_family = AF_INET, .sin_port = 2 };

static struct rdma_addrinfo hints_with_addresses(void)
{
	return (struct rdma_addrinfo){
		.ai_flags = RAI_NOROUTE,
		.ai_family = AF_INET,
		.ai_qp_type = IBV_QPT_UD,
		.ai_port_space = RDMA_PS_UDP,
		.ai_src_len = sizeof(source),
		.ai_src_addr = (struct sockaddr *)&source,
		.ai_dst_len = sizeof(destination),
		.ai_dst_addr = (struct sockaddr *)&destination,
	};
}

TEST(hints_alone_are_copied)
{
	struct rdma_addrinfo hints = hints_with_addresses();

	find(NULL, NULL, &hints);
	ck_assert_int_eq(found->ai_flags, RAI_NOROUTE);
	ck_assert_int_eq(found->ai_family, AF_INET);
	ck_assert_int_eq(found->ai_qp_type, IBV_QPT_UD);
	ck_assert_int_eq(found->ai_port_space, RDMA_PS_UDP);
	ck_assert_ptr_ne(found->ai_src_addr, hints.ai_src_addr);
	ck_assert_mem_eq(found->ai_src_addr, &source, sizeof(source));
	ck_assert_mem_eq(found->ai_dst_addr, &destination, sizeof(destination));
}

TEST(source_of_the_hints_joins_a_destination)
{
	struct rdma_addrinfo hints = hints_with_addresses();

	find("192.0.2.1", NULL, &hints);
	ck_assert_mem_eq(found->ai_src_addr, &source, sizeof(source));
	ck_assert_uint_eq(
		ntohl(((struct sockaddr_in *)(void *)found->ai_dst_addr)->sin_addr.s_addr),
		0xc0000201);
}

TEST(gid_becomes_an_infiniband_address)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_FAMILY | RAI_NUMERICHOST,
				       .ai_family = AF_IB,
				       .ai_port_space = RDMA_PS_IB };
	struct sockaddr_ib *sib;

	find("fe80::2", "7471", &hints);
	sib = (void *)found->ai_dst_addr;
	ck_assert_int_eq(found->ai_family, AF_IB);
	ck_assert_uint_eq(found->ai_dst_len, sizeof(*sib));
	ck_assert_int_eq(sib->sib_family, AF_IB);
	ck_assert_uint_eq(ntohs(sib->sib_pkey), 0xffff);
	ck_assert_uint_eq(sib->sib_addr.sib_addr8[0], 0xfe);
	ck_assert_uint_eq(be64toh(sib->sib_sid), 0x13f1d2f);
	ck_assert_uint_eq(be64toh(sib->sib_sid_mask), UINT64_MAX);
}

TEST(gid_without_a_port_masks_the_port)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_FAMILY | RAI_NUMERICHOST,
				       .ai_family = AF_IB };
	struct sockaddr_ib *sib;

	find("fe80::2", NULL, &hints);
	sib = (void *)found->ai_dst_addr;
	ck_assert_uint_eq(be64toh(sib->sib_sid), 0x1060000);
	ck_assert_uint_eq(be64toh(sib->sib_sid_mask), 0xffffffffffff0000);
}

/* Stock reads beyond the IPv4 address here and returns these bytes. */
TEST(gid_written_as_ipv4_is_refused)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_FAMILY | RAI_NUMERICHOST,
				       .ai_family = AF_IB };

	ck_assert_int_eq(rdma_getaddrinfo("192.0.2.1", NULL, &hints, &found), EAI_ADDRFAMILY);
}

TEST(freeing_null_is_harmless)
{
	rdma_freeaddrinfo(NULL);
	ck_assert_ptr_null(found);
}

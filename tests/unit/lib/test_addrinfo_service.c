/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RAI_SA (lib/names/addrinfo_service.c) on a host with one device of two ports, whose link is as
 * the test says.
 */
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/fake_verbs.h"
#include "tests/unit/test.h"

static struct ibv_device device;
static struct rdma_addrinfo *found;

static void expect(int err, const char *node, const char *service, int flags)
{
	struct rdma_addrinfo hints = { .ai_flags = flags };

	ck_assert_int_eq(rdma_getaddrinfo(node, service, &hints, &found), -1);
	ck_assert_int_eq(errno, err);
	ck_assert_ptr_null(found);
}

static void set_port(unsigned int i, enum ibv_port_state state, uint8_t link_layer)
{
	fake.port[i].state = state;
	fake.port[i].link_layer = link_layer;
}

static void setup(void)
{
	fake.listed = &device;
	fake.n_listed = 1;
	fake.n_ports = 2;
	found = NULL;
	set_port(0, IBV_PORT_ACTIVE, IBV_LINK_LAYER_ETHERNET);
	set_port(1, IBV_PORT_ACTIVE, IBV_LINK_LAYER_ETHERNET);
}

FIXTURE(setup, NULL);

TEST(service_on_a_host_without_subnet_is_unknown)
{
	expect(ENOENT, NULL, "7471", RAI_SA);
}

TEST(port_that_is_down_is_on_no_subnet)
{
	set_port(1, IBV_PORT_DOWN, IBV_LINK_LAYER_INFINIBAND);
	expect(ENOENT, NULL, "7471", RAI_SA);
}

TEST(second_port_on_a_subnet_is_found)
{
	set_port(1, IBV_PORT_ACTIVE, IBV_LINK_LAYER_INFINIBAND);
	expect(EOPNOTSUPP, NULL, "7471", RAI_SA);
}

TEST(subnet_is_not_asked_for_a_node)
{
	expect(EOPNOTSUPP, "192.0.2.1", "7471", RAI_SA);
	expect(EOPNOTSUPP, "192.0.2.1", NULL, RAI_SA);
}

TEST(subnet_and_name_server_exclude_each_other)
{
	expect(EOPNOTSUPP, NULL, "7471", RAI_SA | RAI_DNS);
}

TEST(subnet_is_asked_for_a_service_only)
{
	expect(EINVAL, NULL, NULL, RAI_SA);
}

TEST(name_server_may_be_asked_for_by_its_flag)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_DNS };

	ck_assert_int_eq(rdma_getaddrinfo("192.0.2.1", "7471", &hints, &found), 0);
	ck_assert_int_eq(found->ai_flags, 0);
	rdma_freeaddrinfo(found);
}

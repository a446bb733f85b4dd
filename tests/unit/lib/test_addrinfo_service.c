/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RAI_SA (lib/names/addrinfo_service.c) on a host with one device of two ports, whose link is as
 * the test says. libibverbs is here.
 */
#include <check.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>

static struct ibv_device device;
static struct ibv_device *device_list[2] = { &device };
static struct ibv_context verbs;
static struct ibv_port_attr ports[2];

#undef ibv_get_device_list
struct ibv_device **ibv_get_device_list(int *num)
{
	if (num)
		*num = 1;
	return device_list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	ck_assert_ptr_eq(list, device_list);
}

struct ibv_context *ibv_open_device(struct ibv_device *which)
{
	verbs.device = which;
	return &verbs;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	ck_assert_ptr_eq(context, &verbs);
	memset(attr, 0, sizeof(*attr));
	attr->phys_port_cnt = 2;
	return 0;
}

#undef ibv_query_port
int ibv_query_port(struct ibv_context *context, uint8_t port_num,
		   struct _compat_ibv_port_attr *attr)
{
	ck_assert_ptr_eq(context, &verbs);
	memcpy(attr, &ports[port_num - 1], sizeof(ports[0]));
	return 0;
}

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
	ports[i].state = state;
	ports[i].link_layer = link_layer;
}

static void setup(void)
{
	found = NULL;
	set_port(0, IBV_PORT_ACTIVE, IBV_LINK_LAYER_ETHERNET);
	set_port(1, IBV_PORT_ACTIVE, IBV_LINK_LAYER_ETHERNET);
}

START_TEST(service_on_a_host_without_subnet_is_unknown)
{
	expect(ENOENT, NULL, "7471", RAI_SA);
}
END_TEST

START_TEST(port_that_is_down_is_on_no_subnet)
{
	set_port(1, IBV_PORT_DOWN, IBV_LINK_LAYER_INFINIBAND);
	expect(ENOENT, NULL, "7471", RAI_SA);
}
END_TEST

START_TEST(second_port_on_a_subnet_is_found)
{
	set_port(1, IBV_PORT_ACTIVE, IBV_LINK_LAYER_INFINIBAND);
	expect(EOPNOTSUPP, NULL, "7471", RAI_SA);
}
END_TEST

START_TEST(subnet_is_not_asked_for_a_node)
{
	expect(EOPNOTSUPP, "192.0.2.1", "7471", RAI_SA);
	expect(EOPNOTSUPP, "192.0.2.1", NULL, RAI_SA);
}
END_TEST

START_TEST(subnet_and_name_server_exclude_each_other)
{
	expect(EOPNOTSUPP, NULL, "7471", RAI_SA | RAI_DNS);
}
END_TEST

START_TEST(subnet_is_asked_for_a_service_only)
{
	expect(EINVAL, NULL, NULL, RAI_SA);
}
END_TEST

START_TEST(name_server_may_be_asked_for_by_its_flag)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_DNS };

	ck_assert_int_eq(rdma_getaddrinfo("192.0.2.1", "7471", &hints, &found), 0);
	ck_assert_int_eq(found->ai_flags, 0);
	rdma_freeaddrinfo(found);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("addrinfo_service");
	TCase *tc = tcase_create("addrinfo_service");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tc);
	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, service_on_a_host_without_subnet_is_unknown);
	tcase_add_test(tc, port_that_is_down_is_on_no_subnet);
	tcase_add_test(tc, second_port_on_a_subnet_is_found);
	tcase_add_test(tc, subnet_is_not_asked_for_a_node);
	tcase_add_test(tc, subnet_and_name_server_exclude_each_other);
	tcase_add_test(tc, subnet_is_asked_for_a_service_only);
	tcase_add_test(tc, name_server_may_be_asked_for_by_its_flag);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients of several network namespaces: each has ports of its own, and requests are for those who
 * are where the devices are.
 */
#include <errno.h>
#include <rdma/rdma_cma.h>

#include "tests/unit/cm/run.h"
#include "tests/unit/portd/scene.h"

#define alice	  (&scene_alice)

#define ELSEWHERE 2
#define NOWHERE	  3

static struct rig_client carol;
static struct rig_client dave;

static void join_from(struct rig_client *client, uint64_t cookie)
{
	rig_come_from(cookie);
	rig_join(client);
}

START_TEST(a_port_of_another_namespace_is_another_port)
{
	join_from(&carol, ELSEWHERE);
	ck_assert_int_eq(rig_listen(alice, SCENE_ADDR), 0);
	ck_assert_int_eq(rig_listen(&carol, SCENE_ADDR), 0);
}
END_TEST

START_TEST(a_port_of_the_same_foreign_namespace_is_in_use)
{
	join_from(&carol, ELSEWHERE);
	join_from(&dave, ELSEWHERE);
	ck_assert_int_eq(rig_listen(&carol, SCENE_ADDR), 0);
	ck_assert_int_eq(rig_listen(&dave, SCENE_ADDR), EADDRINUSE);
}
END_TEST

START_TEST(a_request_is_for_the_listener_at_home)
{
	join_from(&carol, ELSEWHERE);
	ck_assert_int_eq(rig_listen(&carol, "0.0.0.0"), 0);
	ck_assert_int_eq(rig_listen(alice, SCENE_ADDR), 0);
	scene_said(scene_peer_req(0x701, SCENE_ADDR));
	ck_assert_str_eq(scene_handed(alice), "REQ");
	ck_assert_str_eq(scene_handed(&carol), "");
}
END_TEST

/* As the kernel's: somebody listens, but not for that. */
START_TEST(a_request_for_a_listener_elsewhere_is_rej_28)
{
	join_from(&carol, ELSEWHERE);
	ck_assert_int_eq(rig_listen(&carol, "0.0.0.0"), 0);
	scene_said(scene_peer_req(0x701, SCENE_ADDR));
	ck_assert_str_eq(scene_wire(), "REJ(REQ) 28");
	ck_assert_str_eq(scene_handed(&carol), "");
}
END_TEST

START_TEST(the_ports_of_a_namespace_go_with_its_last_client)
{
	join_from(&carol, ELSEWHERE);
	ck_assert_int_eq(rig_listen(&carol, SCENE_ADDR), 0);
	rig_leave(&carol);
	join_from(&dave, ELSEWHERE);
	ck_assert_int_eq(rig_listen(&dave, SCENE_ADDR), 0);
	rig_leave(&dave);
	scene_said(scene_peer_req(0x701, SCENE_ADDR));
	ck_assert_str_eq(scene_wire(), "REJ(REQ) 8");
}
END_TEST

START_TEST(ephemeral_ports_are_leased_in_each_namespace)
{
	struct portd_record record = {
		.type = PORTD_LEASE_PORTS, .lease_ports = {.ps = RDMA_PS_TCP, .count = 2}
	};

	join_from(&carol, ELSEWHERE);
	join_from(&dave, NOWHERE);
	ck_assert_int_eq(rig_ask(&carol, &record), 0);
	ck_assert_uint_eq(carol.reply.count, 2);
	ck_assert_int_eq(rig_ask(&dave, &record), 0);
	ck_assert_uint_eq(dave.reply.count, 2);
}
END_TEST

START_TEST(who_comes_from_elsewhere_may_connect)
{
	join_from(&carol, ELSEWHERE);
	scene_connect(&carol, 1);
}
END_TEST

START_TEST(where_the_kernel_does_not_say_all_are_at_home)
{
	join_from(&carol, 0);
	ck_assert_int_eq(rig_listen(&carol, SCENE_ADDR), 0);
	ck_assert_int_eq(rig_listen(alice, SCENE_ADDR), EADDRINUSE);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("server_net_ns");
	TCase *tcase = scene_tcase("net_ns");

	tcase_add_test(tcase, a_port_of_another_namespace_is_another_port);
	tcase_add_test(tcase, a_port_of_the_same_foreign_namespace_is_in_use);
	tcase_add_test(tcase, a_request_is_for_the_listener_at_home);
	tcase_add_test(tcase, a_request_for_a_listener_elsewhere_is_rej_28);
	tcase_add_test(tcase, the_ports_of_a_namespace_go_with_its_last_client);
	tcase_add_test(tcase, ephemeral_ports_are_leased_in_each_namespace);
	tcase_add_test(tcase, who_comes_from_elsewhere_may_connect);
	tcase_add_test(tcase, where_the_kernel_does_not_say_all_are_at_home);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}

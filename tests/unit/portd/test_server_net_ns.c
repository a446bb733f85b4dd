/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients of several network namespaces: each has ports of its own, and requests are for those who
 * are where the devices are.
 */
#include <errno.h>
#include <rdma/rdma_cma.h>

#include "tests/unit/portd/scene.h"
#include "tests/unit/test.h"

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

FIXTURE(scene_set_up, scene_tear_down);

TEST(a_port_of_another_namespace_is_another_port)
{
	join_from(&carol, ELSEWHERE);
	ck_assert_int_eq(rig_listen(alice, SCENE_ADDR), 0);
	ck_assert_int_eq(rig_listen(&carol, SCENE_ADDR), 0);
}

TEST(a_port_of_the_same_foreign_namespace_is_in_use)
{
	join_from(&carol, ELSEWHERE);
	join_from(&dave, ELSEWHERE);
	ck_assert_int_eq(rig_listen(&carol, SCENE_ADDR), 0);
	ck_assert_int_eq(rig_listen(&dave, SCENE_ADDR), EADDRINUSE);
}

TEST(a_request_is_for_the_listener_at_home)
{
	join_from(&carol, ELSEWHERE);
	ck_assert_int_eq(rig_listen(&carol, "0.0.0.0"), 0);
	ck_assert_int_eq(rig_listen(alice, SCENE_ADDR), 0);
	scene_said(scene_peer_req(0x701, SCENE_ADDR));
	ck_assert_str_eq(scene_handed(alice), "REQ");
	ck_assert_str_eq(scene_handed(&carol), "");
}

/* As the kernel's: somebody listens, but not for that. */
TEST(a_request_for_a_listener_elsewhere_is_rej_28)
{
	join_from(&carol, ELSEWHERE);
	ck_assert_int_eq(rig_listen(&carol, "0.0.0.0"), 0);
	scene_said(scene_peer_req(0x701, SCENE_ADDR));
	ck_assert_str_eq(scene_wire(), "REJ(REQ) 28");
	ck_assert_str_eq(scene_handed(&carol), "");
}

TEST(the_ports_of_a_namespace_go_with_its_last_client)
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

TEST(ephemeral_ports_are_leased_in_each_namespace)
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

TEST(who_comes_from_elsewhere_may_connect)
{
	join_from(&carol, ELSEWHERE);
	scene_connect(&carol, 1);
}

TEST(where_the_kernel_does_not_say_all_are_at_home)
{
	join_from(&carol, 0);
	ck_assert_int_eq(rig_listen(&carol, SCENE_ADDR), 0);
	ck_assert_int_eq(rig_listen(alice, SCENE_ADDR), EADDRINUSE);
}

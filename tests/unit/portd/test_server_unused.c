/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/portd/server/wire/host_port.c: unused ports are closed, and opened again. */
#include <errno.h>
#include <unistd.h>

#include "tests/unit/portd/scene.h"
#include "tests/unit/test.h"

#define alice (&scene_alice)
#define bob   (&scene_bob)

static void leave(struct rig_client *client)
{
	close(client->control);
	client->control = -1;
	rig_settle();
}

static void leave_all(void)
{
	leave(alice);
	leave(bob);
}

static bool is_open(void)
{
	return rig_server()->host_port[alice->handle] != NULL;
}

FIXTURE(scene_set_up, scene_tear_down);

TEST(an_unused_port_is_closed_after_a_minute)
{
	leave_all();
	rig_pass(UNUSED_S * 1000 - 1);
	ck_assert(is_open());
	rig_pass(1);
	ck_assert(!is_open());
}

TEST(a_port_of_a_program_stays_open)
{
	leave(alice);
	rig_pass(10 * UNUSED_S * 1000);
	ck_assert(is_open());
}

TEST(a_port_that_is_used_again_in_time_stays_open)
{
	struct rig_client carol;

	leave_all();
	rig_pass(UNUSED_S * 1000 - 1);
	rig_join(&carol);
	rig_pass(10 * UNUSED_S * 1000);
	ck_assert(is_open());
}

TEST(a_port_that_was_closed_is_opened_with_the_same_handle)
{
	struct rig_client carol;

	leave_all();
	rig_pass(UNUSED_S * 1000);
	rig_join(&carol);
	ck_assert(is_open());
	ck_assert_uint_eq(carol.handle, alice->handle);
}

/* QP1 has not been read yet. */
TEST(a_port_of_a_device_that_was_reset_is_opened_anew)
{
	struct portd_record told;
	struct rig_client carol;

	rig_fail_queries(EIO);
	rig_join(&carol);
	ck_assert(is_open());
	ck_assert(rig_next(alice, &told));
	ck_assert_int_eq(told.type, PORTD_GONE);
	ck_assert(!rig_next(&carol, &told));
}

TEST(a_device_without_memory_for_a_query_is_not_gone)
{
	struct portd_record told;
	struct rig_client carol;

	rig_fail_queries(ENOMEM);
	rig_join(&carol);
	ck_assert(!rig_next(alice, &told));
	ck_assert_uint_eq(carol.handle, alice->handle);
}

TEST(orphans_are_ended_before_the_port_is_closed)
{
	scene_connect(alice, 1);
	leave_all();
	for (int i = 0; i < 20; i++) /* its DREQs are not answered */
		rig_pass(1000);
	rig_server()->options.idle_s = 1;
	rig_pass(1);
	ck_assert_uint_gt(rig_server()->core.n_conns, 0);
	ck_assert(is_open());
}

TEST(server_that_opens_all_ports_keeps_them)
{
	rig_server()->options.opens_ports = true;
	leave_all();
	rig_pass(10 * UNUSED_S * 1000);
	ck_assert(is_open());
}

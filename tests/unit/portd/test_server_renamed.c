/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client and cmportd die, and the device is renamed or replaced before the next cmportd: the
 * client's connections belong to a node GUID, not to a name.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/portd/server/ledger/tracked_adopt.h"
#include "tests/unit/portd/folder.h"
#include "tests/unit/portd/lives.h"
#include "tests/unit/portd/tracked_put.h"
#include "tests/unit/test.h"

static pid_t pid; /* of the client */

static void begin(void)
{
	folder_make();
	pid = fork();
	if (pid == 0)
		for (;;)
			pause();
	ck_assert_int_gt(pid, 0);
	rig_set_up(socket_path);
	rig_client_as(pid);
	rig_join(&scene_bob);
	rig_client_as(-1);
	life_connect();
}

FIXTURE(begin, rig_tear_down);

static void end_before_device_is(const char *name, uint64_t guid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	scene_wire();
	rig_tear_down();
	rig_replace_device(name, guid);
	rig_set_up(socket_path);
	rig_settle();
}

TEST(connections_on_a_renamed_device_end)
{
	end_before_device_is("roce0", RIG_GUID);
	ck_assert_str_eq(scene_wire(), "DREQ");
	ck_assert_str_eq(rig_server()->host_port[0]->device, "roce0");
}

TEST(connections_on_a_replaced_device_are_dropped)
{
	end_before_device_is(RIG_DEVICE, RIG_GUID + 1);
	ck_assert_str_eq(scene_wire(), "");
	ck_assert(tracker_is_empty(rig_server()->tracker));
}

/* The device gets a handle that has orphans: theirs. */
TEST(connections_on_a_replaced_device_are_dropped_if_all_handles_are_known)
{
	struct tracked_port port = { .port_num = 1 };

	for (uint8_t i = 1; i < TRACKED_PORTS; i++) {
		port.guid = i;
		snprintf(port.device, sizeof(port.device), "gone%u", i);
		tracker_rename(rig_server()->tracker, i, &port);
	}
	end_before_device_is(RIG_DEVICE, RIG_GUID + 1);
	ck_assert_str_eq(scene_wire(), "");
	ck_assert(tracker_is_empty(rig_server()->tracker));
}

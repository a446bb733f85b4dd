/* SPDX-License-Identifier: BSD-2-Clause */
/* mad/umad_owner.c: the errors, and the texts about an unavailable port. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mad/umad_owner.h"
#include "tests/unit/test.h"
#include "umad_fake.h"

static void put_holder(const char *module, const char *holder)
{
	char path[128];

	snprintf(path, sizeof(path), "sys/module/%s/holders/%s", module, holder);
	put_file("", "%s", path);
}

static void put_process(int pid, const char *comm, const char *opened)
{
	char path[128];

	put_file(comm, "proc/%d/comm", pid);
	put_file("", "proc/%d/fd/1", pid);
	snprintf(path, sizeof(path), "%s/proc/%d/fd/5", root, pid);
	ck_assert_int_eq(symlink(opened, path), 0);
}

static struct umad_owner open_fails(const char *device, int err)
{
	struct umad_owner who = { .what = "", .remedy = "" };
	struct mad_port *port = NULL;

	ck_assert_int_eq(umad_port_open(device, 1, &port, &who), err);
	ck_assert_ptr_null(port);
	ck_assert_int_eq(fake.n_opened, n_closed());
	return who;
}

FIXTURE(set_up_fake_umad, tear_down_fake_umad);

TEST(device_without_node_is_named)
{
	put_file("", "sys/class/infiniband/siw0/subsystem");
	ck_assert_str_eq(open_fails("siw0", -ENXIO).what, "port 1 of siw0 has no umad device");
	ck_assert_int_eq(fake.n_asked, 0);
}

TEST(unknown_device_is_named)
{
	ck_assert_str_eq(open_fails("rxe9", -ENXIO).what, "there is no RDMA device rxe9");
}

/* A soft fabric has none in /dev either; its libibumad opens the device. */
TEST(device_that_the_kernel_does_not_know_is_opened_by_its_name)
{
	struct umad_owner who;
	struct mad_port *port;

	fake.is_stand_in = true;
	put_file("fab0\n", "sys/class/infiniband_mad/umad1/ibdev");
	put_file("1\n", "sys/class/infiniband_mad/umad1/port");
	ck_assert_int_eq(umad_port_open("fab0", 1, &port, &who), 0);
	mad_port_close(port);
}

TEST(missing_node_is_named)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/dev/umad7", root);
	ck_assert_int_eq(unlink(path), 0);
	fake.open_errno = ENOENT;
	ck_assert_ptr_nonnull(strstr(open_fails("rxe0", -ENXIO).what, "umad7 does not exist"));
}

TEST(other_open_errors_pass_through)
{
	fake.open_errno = EMFILE;
	ck_assert_ptr_nonnull(strstr(open_fails("rxe0", -EMFILE).what, "Too many open files"));
}

TEST(lack_of_descriptors_is_not_reported_as_a_missing_device)
{
	struct rlimit limit, none = { .rlim_cur = 0 };

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none.rlim_max = limit.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	open_fails("rxe0", -EMFILE);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

TEST(foreign_namespace_is_explained)
{
	fake.open_errno = EPERM;
	ck_assert_ptr_nonnull(strstr(open_fails("rxe0", -EPERM).what, "network namespace"));
}

TEST(loaded_ib_cm_is_blamed_with_its_users)
{
	struct umad_owner who;

	fake.register_errno = EINVAL;
	put_file("0\n", "sys/class/infiniband/rxe0/ports/1/cm_rx_msgs/req");
	put_holder("ib_cm", "rdma_cm");
	put_holder("rdma_cm", "rdma_ucm");
	put_process(4711, "opensm\n", "/dev/null");
	who = open_fails("rxe0", -EBUSY);
	ck_assert_str_eq(who.what, "kernel module ib_cm (loaded by rdma_cm)");
	ck_assert_str_eq(who.remedy, "modprobe -r rdma_ucm rdma_cm ib_cm");
}

TEST(ib_cm_without_the_port_is_not_blamed)
{
	struct umad_owner who;

	fake.register_errno = EINVAL;
	put_holder("ib_cm", "rdma_cm");
	put_process(4711, "cmportd\n", "/dev/null");
	who = open_fails("rxe0", -EADDRINUSE);
	ck_assert_str_eq(who.what, "process 4711 (cmportd)");
	ck_assert_str_eq(who.remedy, "kill 4711");
}

TEST(a_process_cannot_control_the_terminal_by_its_name)
{
	fake.register_errno = EINVAL;
	put_process(4711, "\033[2J\2332J\n", "/dev/null");
	ck_assert_str_eq(open_fails("rxe0", -EADDRINUSE).what, "process 4711 (?[2J?2J)");
}

TEST(user_of_another_port_is_not_blamed)
{
	fake.register_errno = EINVAL;
	put_process(4711, "opensm\n", "/dev/zero");
	ck_assert_str_eq(open_fails("rxe0", -EADDRINUSE).what,
			 "a process that is not visible here");
}

TEST(a_process_with_a_file_of_the_nodes_name_is_not_blamed)
{
	char path[128];

	fake.register_errno = EINVAL;
	snprintf(path, sizeof(path), "%s/dev/umad7", root);
	put_process(4711, "editor\n", path);
	ck_assert_str_eq(open_fails("rxe0", -EADDRINUSE).what,
			 "a process that is not visible here");
}

TEST(own_second_attempt_is_explained)
{
	fake.register_errno = EINVAL;
	put_process(getpid(), "test_umad\n", "/dev/null");
	ck_assert_str_eq(open_fails("rxe0", -EADDRINUSE).what,
			 "this process already has the port open");
}

TEST(owner_of_a_port_without_node_is_not_guessed)
{
	fake.is_stand_in = true;
	fake.register_errno = EINVAL;
	put_process(4711, "init\n", "/");
	ck_assert_str_eq(open_fails("fab0", -EADDRINUSE).what,
			 "another process; no device node shows which");
}

TEST(lack_of_memory_is_not_reported_as_an_owner)
{
	fake.register_errno = ENOMEM;
	ck_assert_str_eq(open_fails("rxe0", -ENOMEM).what, "");
}

TEST(failure_of_a_sender_closes_all)
{
	fake.agent_errno = ENOMEM;
	open_fails("rxe0", -ENOMEM);
	ck_assert_int_eq(fake.n_opened, 2);
}

TEST(device_has_the_name_of_the_kernel)
{
	char name[UMAD_NODE_BYTES] = "rxe0";

	umad_device_name("uverbs3", name);
	ck_assert_str_eq(name, "rxe0");
	put_file("roceo1\n", "sys/class/infiniband_verbs/uverbs3/ibdev");
	umad_device_name("uverbs3", name);
	ck_assert_str_eq(name, "roceo1");
}

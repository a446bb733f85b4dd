/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memberships in multicast groups (lib/net/membership.h), in a network namespace with two
 * interfaces: the kernel's list of them.
 */
#include <dirent.h>
#include <errno.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/net/membership.h"
#include "tests/unit/net/nets.h"
#include "tests/unit/test.h"

#define MANY 50	 /* more than the limit of a socket */
#define MORE 200 /* the limit of ten sockets */

/* Return: whether `ip maddr` lists the group. */
static bool is_member(const char *dev, const char *group)
{
	char command[128];

	snprintf(command, sizeof(command), "ip maddr show dev %s | grep -qwF '%s'", dev, group);
	return system(command) == 0;
}

static int join(const char *dev, const char *group)
{
	union addr addr = ip(group);

	return membership_join(if_nametoindex(dev), &addr);
}

static void leave(const char *dev, const char *group)
{
	union addr addr = ip(group);

	membership_leave(if_nametoindex(dev), &addr);
}

static const char *nth(int n)
{
	static char text[32];

	snprintf(text, sizeof(text), "239.1.0.%d", n);
	return text;
}

static int n_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(folder))
		n++;
	closedir(folder);
	return n;
}

NEEDS(netns_allowed);
FIXTURE(two_nets, NULL);

TEST(interface_is_a_member_until_the_leave)
{
	ck_assert_int_eq(join("d0", "239.1.2.3"), 0);
	ck_assert(is_member("d0", "239.1.2.3"));
	leave("d0", "239.1.2.3");
	ck_assert(!is_member("d0", "239.1.2.3"));
}

TEST(ipv6_group_is_joined_too)
{
	ck_assert_int_eq(join("d0", "ff0e::77"), 0);
	ck_assert(is_member("d0", "ff0e::77"));
	leave("d0", "ff0e::77");
	ck_assert(!is_member("d0", "ff0e::77"));
}

TEST(other_interface_is_no_member)
{
	ck_assert_int_eq(join("d0", "239.1.2.3"), 0);
	ck_assert(!is_member("d1", "239.1.2.3"));
	leave("d1", "239.1.2.3");
	ck_assert(is_member("d0", "239.1.2.3"));
	leave("d0", "239.1.2.3");
}

TEST(each_join_needs_a_leave)
{
	ck_assert_int_eq(join("d0", "239.1.2.3"), 0);
	ck_assert_int_eq(join("d0", "239.1.2.3"), 0);
	leave("d0", "239.1.2.3");
	ck_assert(is_member("d0", "239.1.2.3"));
	leave("d0", "239.1.2.3");
	ck_assert(!is_member("d0", "239.1.2.3"));
	leave("d0", "239.1.2.3");
}

TEST(many_groups_are_joined_with_few_sockets)
{
	int before = n_descriptors();
	int i;

	for (i = 0; i < MANY; i++)
		ck_assert_int_eq(join("d0", nth(i)), 0);
	ck_assert_int_lt(n_descriptors(), before + MANY / 10);
	for (i = 0; i < MANY; i++)
		ck_assert(is_member("d0", nth(i)));
	for (i = 0; i < MANY; i++)
		leave("d0", nth(i));
	ck_assert(!is_member("d0", nth(0)));
	ck_assert_int_eq(n_descriptors(), before);
}

static int n_set; /* calls of setsockopt() */

int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t bytes);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t bytes);

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t bytes)
{
	n_set++;
	return __real_setsockopt(fd, level, name, value, bytes);
}

/* A join tries at most one full socket, however many are full. */
TEST(join_costs_no_more_after_many_joins)
{
	int i, n_joins = 0;

	for (i = 0; i < MORE; i++) {
		n_set = 0;
		ck_assert_int_eq(join("d0", nth(i)), 0);
		ck_assert_int_le(n_set, 2);
		n_joins += n_set;
	}
	ck_assert_int_lt(n_joins, MORE + MORE / 10);
	leave("d0", nth(3));
	n_set = 0;
	ck_assert_int_eq(join("d0", nth(MORE)),
			 0); /* A join tries at most one full socket, however many are full. */
	ck_assert_int_le(n_set, 2);
	for (i = 0; i <= MORE; i++)
		leave("d0", nth(i));
}

TEST(join_without_group_or_interface_fails_and_leaves_nothing)
{
	int before = n_descriptors();
	union addr group = ip("239.1.2.3");

	ck_assert_int_eq(join("d0", "10.0.0.9"), -EINVAL);
	ck_assert_int_eq(membership_join(0, &group), -ENODEV);
	ck_assert_int_eq(membership_join(9999, &group), -ENODEV);
	ck_assert_int_eq(n_descriptors(), before);
}

TEST(group_of_a_removed_interface_can_be_left)
{
	int before = n_descriptors();
	unsigned int ifindex = if_nametoindex("d0");
	union addr group = ip("239.1.2.3");

	ck_assert_int_eq(join("d0", "239.1.2.3"), 0);
	run("ip link del d0");
	membership_leave(ifindex, &group);
	ck_assert_int_eq(n_descriptors(), before);
}

/* in the free place, or in the last socket */
static void continue_in_child(int ready, const int hold[2])
{
	char byte;

	close(hold[1]);
	if (join("d0", "239.1.2.3"))
		_exit(1);
	if (fork())
		pause();
	membership_after_fork();
	if (write(ready, "", 1) == 1 && read(hold[0], &byte, 1) == 0)
		_exit(0);
	_exit(1);
}

TEST(child_does_not_hold_its_parents_memberships)
{
	int hold[2], ready[2];
	pid_t member;
	char byte;

	ck_assert_int_eq(pipe(hold), 0);
	ck_assert_int_eq(pipe(ready), 0);
	member = fork();
	if (!member)
		continue_in_child(ready[1], hold);
	ck_assert_int_eq(read(ready[0], &byte, 1), 1);
	ck_assert(is_member("d0", "239.1.2.3"));
	kill(member, SIGKILL);
	waitpid(member, NULL, 0);
	ck_assert(!is_member("d0", "239.1.2.3"));
	close(hold[1]);
}

TEST(groups_of_the_kernel_are_those_that_it_lists)
{
	char list[] = "2    eth0            1     0     01005e000001\n"
		      "5    ib0             1     0     00ffffffff12401bffff000000000000000000fb\n";
	uint8_t mgid[MGID_BYTES] = { 0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, [15] = 0xfb };

	ck_assert(net_lists_group(fmemopen(list, strlen(list), "r"), mgid));
	ck_assert(!net_kernel_has_group(mgid));
	mgid[15] = 0xfa;
	ck_assert(!net_lists_group(fmemopen(list, strlen(list), "r"), mgid));
	memset(&mgid[12], 0xff, 4);
	ck_assert(net_kernel_has_group(mgid));
}

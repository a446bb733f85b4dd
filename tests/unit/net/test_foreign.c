/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses of another network namespace (lib/net/foreign.h): a child there has an interface on top
 * of one of ours, and interfaces of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/net/foreign.h"
#include "tests/unit/net/nets.h"
#include "tests/unit/test.h"

#define ROOM 8

static pid_t child;
static int its_socket;

static void pass_socket(int to)
{
	union {
		struct cmsghdr hdr;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .room = { 0 } };
	struct iovec byte = { .iov_base = (char[]){ 0 }, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &byte,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	int fd = net_foreign_socket();

	control.hdr = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(fd)),
					.cmsg_level = SOL_SOCKET,
					.cmsg_type = SCM_RIGHTS };
	memcpy(CMSG_DATA(&control.hdr), &fd, sizeof(fd));
	if (sendmsg(to, &msg, 0) != 1)
		_exit(1);
}

static int take_socket(int from)
{
	union {
		struct cmsghdr hdr;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec byte = { .iov_base = (char[]){ 0 }, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &byte,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	int fd;

	ck_assert_int_eq(recvmsg(from, &msg, 0), 1);
	memcpy(&fd, CMSG_DATA(&control.hdr), sizeof(fd));
	return fd;
}

static void set_up(void)
{
	int pair[2];

	two_nets();
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	child = fork();
	if (!child) {
		if (unshare(CLONE_NEWNET))
			_exit(1);
		pass_socket(pair[1]);
		pause();
		_exit(0);
	}
	its_socket = take_socket(pair[0]);
	close(pair[0]);
	close(pair[1]);
}

static void tear_down(void)
{
	close(its_socket);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

NEEDS(netns_allowed);
FIXTURE(set_up, tear_down);

/* Runs a command there. */
#define there(format, ...) run("nsenter -t %d -n " format, (int)child, ##__VA_ARGS__)

static void add_macvlan(const char *address)
{
	run("ip link add link d0 name m0 type macvlan mode bridge");
	run("ip link set m0 netns %d", (int)child);
	there("ip link set m0 up");
	there("ip addr add %s/24 dev m0", address);
}

static bool has(const char *address)
{
	struct net_foreign found[ROOM];
	union addr addr = ip(address);
	struct mad_gid gid = addr_to_gid(&addr);
	unsigned int n_datagrams;
	int i, n = net_foreign_read(its_socket, found, ROOM, &n_datagrams);

	ck_assert_int_ge(n, 0);
	for (i = 0; i < n; i++)
		if (!memcmp(&found[i].gid, &gid, sizeof(gid)))
			return found[i].ifindex != 0;
	return false;
}

TEST(address_on_top_of_our_interface_is_found)
{
	ck_assert(!has("10.0.0.9"));
	add_macvlan("10.0.0.9");
	ck_assert(has("10.0.0.9"));
	there("ip addr del 10.0.0.9/24 dev m0");
	ck_assert(!has("10.0.0.9"));
}

/* Any user can make such interfaces in a namespace of their own. */
TEST(address_on_an_interface_of_their_own_is_not_found)
{
	there("ip link add name b0 type bridge");
	there("ip addr add 10.0.0.9/24 dev b0");
	there("ip link set b0 up");
	ck_assert(!has("10.0.0.9"));
	there("ip link add link b0 name m1 type macvlan mode bridge");
	there("ip addr add 10.0.0.8/24 dev m1");
	ck_assert(!has("10.0.0.8"));
}

/* Nor if it is on top of one of a second namespace of the user. */
TEST(address_on_top_of_a_third_namespace_is_not_found)
{
	pid_t third = fork();

	if (!third) {
		if (unshare(CLONE_NEWNET))
			_exit(1);
		run("ip link add name b0 type bridge; ip link set b0 up;"
		    "ip link add link b0 name m1 type macvlan mode bridge;"
		    "ip link set m1 netns %d",
		    (int)child);
		pause();
		_exit(0);
	}
	add_macvlan("10.0.0.9");
	wait_until("nsenter -t %d -n ip link set m1 up 2>/dev/null", (int)child);
	there("ip addr add 10.0.0.8/24 dev m1");
	ck_assert(has("10.0.0.9"));
	ck_assert(!has("10.0.0.8"));
	kill(third, SIGKILL);
	waitpid(third, NULL, 0);
}

TEST(veth_peer_is_not_on_top_of_our_interface)
{
	run("ip link add name v0 type veth peer name v1 netns %d", (int)child);
	there("ip addr add 10.0.0.9/24 dev v1");
	there("ip link set v1 up");
	ck_assert(!has("10.0.0.9"));
}

TEST(addresses_without_room_are_left_out)
{
	struct net_foreign found[2];
	unsigned int n_datagrams;

	add_macvlan("10.0.0.9");
	there("ip addr add 10.0.0.10/24 dev m0");
	there("ip addr add 10.0.0.11/24 dev m0");
	ck_assert_int_eq(net_foreign_read(its_socket, found, 2, &n_datagrams), 2);
}

/* A request about a missing interface: its response precedes those of others. */
static void ask_for_nothing(void)
{
	struct {
		struct nlmsghdr hdr;
		struct ifinfomsg ifi;
	} question = { .hdr = { .nlmsg_len = sizeof(question),
				.nlmsg_type = RTM_GETLINK,
				.nlmsg_flags = NLM_F_REQUEST,
				.nlmsg_seq = 1 },
		       .ifi = { .ifi_index = 999999 } };

	ck_assert_int_eq(send(its_socket, &question, sizeof(question), 0), sizeof(question));
}

/* Otherwise cmportd would only read responses. */
TEST(reads_of_a_flooded_socket_are_limited)
{
	struct net_foreign found[ROOM];
	unsigned int n_datagrams;
	int i, bytes = 4 << 20;

	if (setsockopt(its_socket, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes))) {
		ck_assert_int_eq(errno, EPERM);
		printf("skipped: only root may have a buffer of 4 MiB\n");
		return;
	}
	for (i = 0; i < 600; i++)
		ask_for_nothing();
	ck_assert_int_eq(net_foreign_read(its_socket, found, ROOM, &n_datagrams), -EBUSY);
	ck_assert_uint_ge(n_datagrams, 256);
	for (i = 0; i < 10 && net_foreign_read(its_socket, found, ROOM, &n_datagrams) < 0; i++)
		;
	ck_assert_int_lt(i, 10);
}

TEST(only_rtnetlink_sockets_are_accepted)
{
	int fd = open("/dev/null", O_RDONLY);
	int udp = socket(AF_INET, SOCK_DGRAM, 0);
	int audit = socket(AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT);

	ck_assert(net_foreign_is_socket(its_socket));
	ck_assert(!net_foreign_is_socket(fd));
	ck_assert(!net_foreign_is_socket(udp));
	ck_assert(!net_foreign_is_socket(audit));
	ck_assert(!net_foreign_is_socket(-1));
	close(fd);
	close(udp);
	close(audit);
}

/* The number of datagrams limits how often cmportd reads a namespace. */
TEST(namespace_with_many_interfaces_needs_many_datagrams)
{
	struct net_foreign found[ROOM];
	unsigned int few, many;

	ck_assert_int_ge(net_foreign_read(its_socket, found, ROOM, &few), 0);
	there("sh -c 'for i in $(seq 200); do echo link add v$i type veth peer name w$i; done |"
	      " ip -b -'");
	ck_assert_int_ge(net_foreign_read(its_socket, found, ROOM, &many), 0);
	ck_assert_uint_lt(few, 8);
	ck_assert_uint_gt(many, few + 8);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Proofs of CAP_NET_BIND_SERVICE, in a network namespace of this process, which has it at first. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/net/low_port.h"
#include "tests/unit/net/netns.h"
#include "tests/unit/test.h"

static void drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	ck_assert_int_eq(syscall(SYS_capset, &header, none), 0);
}

static int socket_at(int type, int protocol, const char *addr, uint16_t port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET, type, protocol);

	ck_assert_int_eq(inet_pton(AF_INET, addr, &sin.sin_addr), 1);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	return fd;
}

NEEDS(netns_allowed);
FIXTURE(netns_enter, NULL);

TEST(process_with_the_capability_proves_it)
{
	int fd = -1;

	ck_assert_int_eq(low_port_prove(80, &fd), 0);
	ck_assert_uint_eq(low_port_proved(fd), 80);
}

TEST(process_without_the_capability_proves_nothing)
{
	int fd = -1;

	drop_capabilities();
	ck_assert_int_eq(low_port_prove(80, &fd), -EACCES);
	ck_assert_int_eq(fd, -1);
}

TEST(service_on_the_port_does_not_prevent_the_proof)
{
	int fd = -1;

	socket_at(SOCK_DGRAM, 0, "0.0.0.0", 80);
	socket_at(SOCK_DGRAM, 0, "0.0.0.0", 1);
	ck_assert_int_eq(low_port_prove(80, &fd), 0);
	ck_assert_uint_eq(low_port_proved(fd), 2);
}

TEST(loopback_interface_that_is_down_does_not_prevent_the_proof)
{
	int fd = -1;

	run("ip link set lo down");
	ck_assert_int_eq(low_port_prove(80, &fd), 0);
}

TEST(other_sockets_prove_nothing)
{
	int ends[2];

	ck_assert_int_eq(pipe(ends), 0);
	ck_assert_uint_eq(low_port_proved(-1), 0);
	ck_assert_uint_eq(low_port_proved(ends[0]), 0);
	ck_assert_uint_eq(low_port_proved(socket(AF_INET, SOCK_DGRAM, 0)), 0);
	ck_assert_uint_eq(low_port_proved(socket_at(SOCK_DGRAM, 0, "127.0.0.1", 80)), 0);
	ck_assert_uint_eq(low_port_proved(socket_at(SOCK_DGRAM, 0, "0.0.0.0", 81)), 0);
	ck_assert_uint_eq(low_port_proved(socket_at(SOCK_STREAM, 0, "127.82.67.77", 80)), 0);
	ck_assert_uint_eq(low_port_proved(socket_at(SOCK_DGRAM, 0, "127.82.67.77", 80)), 80);
}

/* Any user in these groups may choose the identifier, which getsockname() reports as a port. */
TEST(a_ping_socket_proves_nothing)
{
	run("echo 0 0 > /proc/sys/net/ipv4/ping_group_range");
	ck_assert_uint_eq(low_port_proved(socket_at(SOCK_DGRAM, IPPROTO_ICMP, "127.82.67.77", 80)),
			  0);
}

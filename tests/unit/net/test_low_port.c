/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proofs of CAP_NET_BIND_SERVICE, in a network namespace of our own, where we have it at first.
 */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/net/low_port.h"
#include "tests/unit/net/netns.h"

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

START_TEST(who_has_the_capability_proves_it)
{
	int fd = -1;

	ck_assert_int_eq(low_port_prove(80, &fd), 0);
	ck_assert_uint_eq(low_port_proved(fd), 80);
}
END_TEST

START_TEST(who_has_it_not_does_not)
{
	int fd = -1;

	drop_capabilities();
	ck_assert_int_eq(low_port_prove(80, &fd), -EACCES);
	ck_assert_int_eq(fd, -1);
}
END_TEST

START_TEST(a_service_that_has_the_port_is_not_in_the_way)
{
	int fd = -1;

	socket_at(SOCK_DGRAM, 0, "0.0.0.0", 80);
	socket_at(SOCK_DGRAM, 0, "0.0.0.0", 1);
	ck_assert_int_eq(low_port_prove(80, &fd), 0);
	ck_assert_uint_eq(low_port_proved(fd), 2);
}
END_TEST

START_TEST(a_loopback_interface_that_is_down_is_not_in_the_way)
{
	int fd = -1;

	run("ip link set lo down");
	ck_assert_int_eq(low_port_prove(80, &fd), 0);
}
END_TEST

START_TEST(what_is_no_such_socket_proves_nothing)
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
END_TEST

/* Everybody in these groups may choose its identifier, which getsockname() shows as a port. */
START_TEST(a_ping_socket_proves_nothing)
{
	run("echo 0 2147483647 > /proc/sys/net/ipv4/ping_group_range");
	ck_assert_uint_eq(low_port_proved(socket_at(SOCK_DGRAM, IPPROTO_ICMP, "127.82.67.77", 80)),
			  0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("low_port");
	SRunner *runner = srunner_create(suite);
	TCase *tc = tcase_create("low_port");
	int failed;

	tcase_add_checked_fixture(tc, netns_enter, NULL);
	tcase_add_test(tc, who_has_the_capability_proves_it);
	tcase_add_test(tc, who_has_it_not_does_not);
	tcase_add_test(tc, a_service_that_has_the_port_is_not_in_the_way);
	tcase_add_test(tc, a_loopback_interface_that_is_down_is_not_in_the_way);
	tcase_add_test(tc, what_is_no_such_socket_proves_nothing);
	tcase_add_test(tc, a_ping_socket_proves_nothing);
	if (!netns_allowed())
		return 77;
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

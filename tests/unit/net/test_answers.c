/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unusual responses of a kernel (lib/net/netlink.c, iface.c, route.c): too short, or empty. send()
 * and recv() are replaced here; tests/fuzz/fuzz_netlink.c found them.
 */
#include <errno.h>
#include <limits.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "lib/net/internal.h"
#include "tests/unit/net/answers.h"
#include "tests/unit/net/netns.h"
#include "tests/unit/test.h"

ssize_t __real_recv(int fd, void *to, size_t bytes, int flags);
ssize_t __wrap_recv(int fd, void *to, size_t bytes, int flags);
ssize_t __real_send(int fd, const void *data, size_t bytes, int flags);
ssize_t __wrap_send(int fd, const void *data, size_t bytes, int flags);
ssize_t __real_recvfrom(int fd, void *to, size_t bytes, int flags, struct sockaddr *from,
			socklen_t *from_bytes);
ssize_t __wrap_recvfrom(int fd, void *to, size_t bytes, int flags, struct sockaddr *from,
			socklen_t *from_bytes);
int __real_epoll_wait(int fd, struct epoll_event *ready, int n_max, int timeout_ms);
int __wrap_epoll_wait(int fd, struct epoll_event *ready, int n_max, int timeout_ms);

static bool kernel_is_fake;
static struct answer answer;
static uint8_t left_over; /* of the previous message */
static void (*chooses)(const struct nlmsghdr *request, struct answer *ret);
static struct answer announcement; /* length 0: none */

ssize_t __wrap_send(int fd, const void *data, size_t bytes, int flags)
{
	const struct nlmsghdr *hdr = data;

	if (!kernel_is_fake)
		return __real_send(fd, data, bytes, flags);
	if (chooses)
		chooses(hdr, &answer);
	answer.hdr.nlmsg_seq = hdr->nlmsg_seq;
	return (ssize_t)bytes;
}

ssize_t __wrap_recv(int fd, void *to, size_t bytes, int flags)
{
	if (!kernel_is_fake)
		return __real_recv(fd, to, bytes, flags);
	memset(to, left_over, bytes);
	if (answer.hdr.nlmsg_len <= sizeof(answer)) {
		memcpy(to, &answer, answer.hdr.nlmsg_len);
		return answer.hdr.nlmsg_len;
	}
	memcpy(to, &answer.hdr, sizeof(answer.hdr));
	return flags & MSG_TRUNC ? answer.hdr.nlmsg_len : (ssize_t)bytes;
}

ssize_t __wrap_recvfrom(int fd, void *to, size_t bytes, int flags, struct sockaddr *from,
			socklen_t *from_bytes)
{
	const size_t n = announcement.hdr.nlmsg_len;

	if (!kernel_is_fake || !n)
		return __real_recvfrom(fd, to, bytes, flags, from, from_bytes);
	memcpy(to, &announcement, n);
	memset(from, 0, *from_bytes);
	announcement.hdr.nlmsg_len = 0;
	return (ssize_t)n;
}

int __wrap_epoll_wait(int fd, struct epoll_event *ready, int n_max, int timeout_ms)
{
	if (!kernel_is_fake || !announcement.hdr.nlmsg_len)
		return __real_epoll_wait(fd, ready, n_max, timeout_ms);
	ready->data.u32 = NET_WATCH_ALL;
	return 1;
}

void announce(uint16_t type)
{
	announcement.hdr =
		(struct nlmsghdr){ .nlmsg_len = sizeof(announcement.hdr), .nlmsg_type = type };
}

void answers_by(void (*choose)(const struct nlmsghdr *request, struct answer *ret))
{
	kernel_is_fake = true;
	chooses = choose;
	net_after_fork();
}

static void set_up(void)
{
	kernel_is_fake = true;
	net_after_fork();
	memset(&answer, 0, sizeof(answer));
	left_over = 0;
}

static void answers(uint16_t type, unsigned int body_bytes)
{
	answer.hdr.nlmsg_type = type;
	answer.hdr.nlmsg_len = NLMSG_LENGTH(body_bytes);
}

FIXTURE(set_up, NULL);

TEST(interface_with_only_an_acknowledgement_is_an_error)
{
	struct net_iface iface;

	answers(NLMSG_ERROR, sizeof(struct nlmsgerr));
	ck_assert_int_eq(net_iface_get(1, &iface), -EPROTO);
}

TEST(route_with_only_an_acknowledgement_is_an_error)
{
	union addr dst = ip("10.0.0.1");
	struct net_route route;

	answers(NLMSG_ERROR, sizeof(struct nlmsgerr));
	ck_assert_int_eq(net_route_lookup(&dst, NULL, 0, &route), -EPROTO);
}

TEST(error_without_a_number_is_no_success)
{
	struct net_iface iface;

	answers(NLMSG_ERROR, 0);
	ck_assert_int_eq(net_iface_get(1, &iface), -EPROTO);
}

TEST(error_with_a_positive_number_is_no_success)
{
	const struct nlmsgerr error = { .error = 5 };
	union addr addr = ip("10.0.0.1");
	struct net_iface iface;

	answers(NLMSG_ERROR, sizeof(error));
	memcpy(answer.body, &error, sizeof(error));
	ck_assert_int_eq(net_iface_of_addr(&addr, &iface), -EPROTO);
}

static unsigned int n_dumps, n_torn;

/* No addresses; the first lists have changed meanwhile. */
static void answer_torn(const struct nlmsghdr *request, struct answer *ret)
{
	n_dumps += request->nlmsg_type == RTM_GETADDR;
	ret->hdr = (struct nlmsghdr){ .nlmsg_len = NLMSG_LENGTH(sizeof(int)),
				      .nlmsg_type = NLMSG_DONE,
				      .nlmsg_flags = n_dumps <= n_torn ? NLM_F_DUMP_INTR : 0 };
}

/* An address that was not changed may be missing in it. */
TEST_LOOP(list_that_has_changed_meanwhile_is_asked_for_again, 0, 3)
{
	static const unsigned int torn[] = { 0, 1, UINT_MAX }, dumps[] = { 1, 2, 10 };
	union addr addr = ip("10.0.0.1");
	struct net_iface iface;

	n_dumps = 0;
	n_torn = torn[_i];
	answers_by(answer_torn);
	ck_assert_int_eq(net_iface_of_addr(&addr, &iface), -EADDRNOTAVAIL);
	ck_assert_uint_eq(n_dumps, dumps[_i]);
}

/* An interface may have hundreds of other names, of 127 bytes each. */
TEST(response_that_is_cut_off_is_an_error)
{
	struct net_iface iface;

	answers(RTM_NEWLINK, 40000);
	ck_assert_int_eq(net_iface_get(1, &iface), -EIO);
}

TEST(route_without_a_body_is_not_read_beyond_its_end)
{
	union addr dst = ip("10.0.0.1");
	struct net_route route;

	left_over = RTN_UNREACHABLE;
	answers(RTM_NEWROUTE, 0);
	ck_assert_int_eq(net_route_lookup(&dst, NULL, 0, &route), -EPROTO);
}

TEST(interface_number_of_two_bytes_is_ignored)
{
	struct rtattr attr = { .rta_type = RTA_OIF, .rta_len = RTA_LENGTH(2) };
	union addr dst = ip("10.0.0.1");
	struct net_route route;

	answers(RTM_NEWROUTE, sizeof(struct rtmsg) + RTA_LENGTH(2));
	answer.body[sizeof(struct rtmsg) + RTA_LENGTH(0)] = 1;
	memcpy(answer.body + sizeof(struct rtmsg), &attr, sizeof(attr));
	ck_assert_int_eq(net_route_lookup(&dst, NULL, 0, &route), -EPROTO);
}

#define BOND 7

/* Fills in a message about the bond, whose link address ends with this byte. */
static void bond_has(struct answer *ret, uint8_t last)
{
	struct ifinfomsg ifi = { .ifi_index = BOND };
	const uint8_t hw[] = { 2, 0, 0, 0, 0, last };
	struct nl_msg *msg = net_message(RTM_NEWLINK, 0, &ifi, sizeof(ifi));
	struct nlattr *info;

	nla_put(msg, IFLA_ADDRESS, sizeof(hw), hw);
	info = nla_nest_start(msg, IFLA_LINKINFO);
	nla_put_string(msg, IFLA_INFO_KIND, "bond");
	nla_nest_end(msg, info);
	memcpy(ret, nlmsg_hdr(msg), nlmsg_hdr(msg)->nlmsg_len);
	nlmsg_free(msg);
}

static void note_failover(const struct net_event *event, void *arg)
{
	if (event->change == NET_CHANGE_LINK && event->hw[5])
		*(struct net_event *)arg = *event;
}

TEST(failover_is_reported_though_a_response_told_it_first)
{
	struct net_event failover = { .ifindex = 0 };
	struct net_iface iface;

	ck_assert_int_eq(net_watch_open(NET_WATCH_ALL), 0);
	bond_has(&answer, 1);
	ck_assert_int_eq(net_iface_get(BOND, &iface), 0);
	announce(RTM_NEWLINK); /* of another interface */
	bond_has(&answer, 2);
	ck_assert_int_eq(net_iface_get(BOND, &iface), 0);
	ck_assert_uint_eq(iface.hw_addr[5], 2);
	bond_has(&announcement, 2);
	net_watch_drain(note_failover, &failover);
	ck_assert_uint_eq(failover.ifindex, BOND);
	ck_assert_uint_eq(failover.hw_before[5], 1);
	ck_assert_uint_eq(failover.hw[5], 2);
}

/* The kernel announces that as the removal of a link, of another family. */
TEST(failover_is_reported_after_the_bond_has_left_a_bridge)
{
	struct ifinfomsg *link = (struct ifinfomsg *)announcement.body;
	struct net_event failover = { .ifindex = 0 };
	struct net_iface iface;

	ck_assert_int_eq(net_watch_open(NET_WATCH_ALL), 0);
	bond_has(&answer, 1);
	ck_assert_int_eq(net_iface_get(BOND, &iface), 0);
	bond_has(&announcement, 1);
	announcement.hdr.nlmsg_type = RTM_DELLINK;
	link->ifi_family = AF_BRIDGE;
	net_catch_up();
	bond_has(&announcement, 2);
	net_watch_drain(note_failover, &failover);
	ck_assert_uint_eq(failover.ifindex, BOND);
}

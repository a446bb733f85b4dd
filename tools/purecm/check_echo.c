/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks whether packets as large as the path MTU reach an address and return complete, with an
 * echo request that must not be fragmented. An interface with a smaller MTU drops such packets or
 * cannot send them, so connections are established, but their data is lost. Part of checkup.h.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/purecm/checkup.h"

#define ICMP_HEADER   8
#define ICMP_ECHO     8
#define ICMP6_ECHO    128
#define IP4_BYTES_MAX 60
#define COOKIE_BYTES  8
#define SMALL_BYTES   56
#define ROCE_HEADERS  44 /* after IP: UDP, BTH, RETH, immediate data, invariant CRC */
#define ECHO_MAX      (4096 + ROCE_HEADERS)
#define TRIES	      3
#define WAIT_MS	      500

struct echo {
	int fd;
	bool is_ip6;
	bool is_raw;
	uint8_t cookie[COOKIE_BYTES]; /* identifies the response */
};

static int open_socket(struct echo *echo)
{
	const int family = echo->is_ip6 ? AF_INET6 : AF_INET;
	const int protocol = echo->is_ip6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP;

	/* Most distributions permit the former for all users, and the latter for root only. */
	echo->fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, protocol);
	echo->is_raw = echo->fd < 0;
	if (echo->is_raw)
		echo->fd = socket(family, SOCK_RAW | SOCK_CLOEXEC, protocol);
	return echo->fd < 0 ? -errno : 0;
}

static int open_echo(struct echo *echo, const union addr *dst)
{
	const int probe4 = IP_PMTUDISC_PROBE, probe6 = IPV6_PMTUDISC_PROBE, yes = 1;
	union addr to = *dst;
	int err;

	echo->is_ip6 = dst->sa.sa_family == AF_INET6;
	if (getrandom(echo->cookie, COOKIE_BYTES, 0) != COOKIE_BYTES)
		return -EIO;
	err = open_socket(echo);
	if (err)
		return err;
	if (echo->is_ip6) {
		to.in6.sin6_port = 0;
		err = setsockopt(echo->fd, SOL_IPV6, IPV6_MTU_DISCOVER, &probe6, sizeof(probe6)) ||
		      setsockopt(echo->fd, SOL_IPV6, IPV6_RECVFRAGSIZE, &yes, sizeof(yes)) ||
		      connect(echo->fd, &to.sa, sizeof(to.in6));
	} else {
		to.in4.sin_port = 0;
		err = setsockopt(echo->fd, SOL_IP, IP_MTU_DISCOVER, &probe4, sizeof(probe4)) ||
		      setsockopt(echo->fd, SOL_IP, IP_RECVFRAGSIZE, &yes, sizeof(yes)) ||
		      connect(echo->fd, &to.sa, sizeof(to.in4));
	}
	if (!err)
		return 0;
	err = -errno;
	close(echo->fd);
	return err;
}

static uint16_t icmp_checksum(const uint8_t *bytes, size_t n)
{
	uint32_t sum = 0;
	size_t i;

	for (i = 0; i < n; i += 2)
		sum += (uint32_t)(bytes[i] << 8 | bytes[i + 1]);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* Return: size of the largest fragment of the response; 0: not fragmented. */
static int fragment_of(struct msghdr *answer)
{
	struct cmsghdr *cmsg;
	int bytes;

	for (cmsg = CMSG_FIRSTHDR(answer); cmsg; cmsg = CMSG_NXTHDR(answer, cmsg)) {
		if ((cmsg->cmsg_level == SOL_IP && cmsg->cmsg_type == IP_RECVFRAGSIZE) ||
		    (cmsg->cmsg_level == SOL_IPV6 && cmsg->cmsg_type == IPV6_RECVFRAGSIZE)) {
			memcpy(&bytes, CMSG_DATA(cmsg), sizeof(bytes));
			return bytes;
		}
	}
	return 0;
}

/* Return: as fragment_of(); -ETIMEDOUT. */
static int await_answer(const struct echo *echo, size_t bytes)
{
	struct pollfd poll_fd = { .fd = echo->fd, .events = POLLIN };
	uint8_t answer[IP4_BYTES_MAX + ECHO_MAX], control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { answer, sizeof(answer) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control };
	const uint8_t *icmp;
	ssize_t n;

	while (poll(&poll_fd, 1, WAIT_MS) > 0) {
		msg.msg_controllen = sizeof(control);
		n = recvmsg(echo->fd, &msg, 0);
		icmp = answer;
		if (n > 0 && echo->is_raw && !echo->is_ip6) {
			icmp += (answer[0] & 0xf) * 4;
			n -= icmp - answer;
		}
		if (n == (ssize_t)bytes && icmp[0] != (echo->is_ip6 ? ICMP6_ECHO : ICMP_ECHO) &&
		    memcmp(icmp + ICMP_HEADER, echo->cookie, COOKIE_BYTES) == 0)
			return fragment_of(&msg);
	}
	return -ETIMEDOUT;
}

/* @bytes: after the IP header; even. Return: as await_answer(). */
static int send_echo(const struct echo *echo, size_t bytes)
{
	uint8_t request[ECHO_MAX] = { echo->is_ip6 ? ICMP6_ECHO : ICMP_ECHO };
	int i, ret = -ETIMEDOUT;
	uint16_t sum;

	memcpy(request + ICMP_HEADER, echo->cookie, COOKIE_BYTES);
	sum = icmp_checksum(request, bytes);
	request[2] = (uint8_t)(sum >> 8);
	request[3] = (uint8_t)sum;
	for (i = 0; i < TRIES && ret < 0; i++) {
		if (send(echo->fd, request, bytes, 0) == (ssize_t)bytes)
			ret = await_answer(echo, bytes);
	}
	return ret;
}

static const struct check_port *find_port(const struct checkup *checkup)
{
	unsigned int i;

	for (i = 0; i < checkup->n_ports; i++) {
		if (checkup->port[i].verbs == checkup->gid.verbs &&
		    checkup->port[i].port_num == checkup->gid.port_num)
			return &checkup->port[i];
	}
	return NULL;
}

static void compare_sizes(const struct echo *echo, unsigned int mtu, struct finding *finding)
{
	int fragment;

	if (send_echo(echo, SMALL_BYTES) < 0) {
		found(finding, VERDICT_SKIP, "not checked: no echo request is answered");
		return;
	}
	fragment = send_echo(echo, mtu + ROCE_HEADERS);
	if (fragment < 0)
		found(finding, VERDICT_BAD,
		      "packets for a path MTU of %u do not come back, small ones do", mtu);
	else if (fragment > 0)
		found(finding, VERDICT_BAD,
		      "packets for a path MTU of %u come back in fragments of %d bytes", mtu,
		      fragment);
	else
		found(finding, VERDICT_OK, "packets for a path MTU of %u come back", mtu);
}

void check_path_mtu(struct checkup *checkup, struct finding *finding)
{
	const struct check_port *port = checkup->has_gid ? find_port(checkup) : NULL;
	struct echo echo;
	int err;

	if (!port || !check_port_is_roce(port)) {
		found(finding, VERDICT_SKIP, "not checked: no RoCE port");
	} else if (checkup->route.local) {
		found(finding, VERDICT_OK, "not needed on the same host");
	} else if (net_neigh_state(&checkup->route) != NET_NEIGH_KNOWN) {
		found(finding, VERDICT_SKIP, "not checked: no neighbour");
	} else {
		err = open_echo(&echo, &checkup->dst);
		if (err) {
			found(finding, VERDICT_SKIP, "not checked: echo request: %s",
			      strerror(-err));
			return;
		}
		compare_sizes(&echo, 128u << port->attr.active_mtu, finding);
		close(echo.fd);
	}
}

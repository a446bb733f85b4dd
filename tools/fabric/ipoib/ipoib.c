/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IP over InfiniBand: a library preloaded into the commands of hosts on InfiniBand. It replaces
 * functions of the C library, and calls nothing of ours. No kernel creates an IPoIB interface
 * without a device, so this changes the responses of rtnetlink about the host's Ethernet interface:
 * its type, and the link addresses of it and its neighbours, which become 20 bytes long (RFC 4391,
 * 9.1.1). Packets to them still use Ethernet.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/env.h"

#define MAC_BYTES   6
#define PORTS	    2
#define HW_BYTES    20
#define GROWN_BYTES 64 /* maximum growth of a message */

/* The MAC (plan.py) is a prefix, the interface, and the number of the host. */
static const uint8_t mac_prefix[] = { 0x02, 0x50, 0x43 };
#define MAC_INTERFACE_AT 3
#define MAC_NUMBER_AT	 4

/* QPN 1 and the GID (host/subnet_manager.c), without subnet, host and port. */
static const uint8_t hw_of_port[HW_BYTES] = {
	0, 0, 0, 1, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x00, 0x50, 0x43, 0x00, 0x00, 0x00, 0x00, 0x00,
};
#define HW_PREFIX_AT 4
#define HW_SUBNET_AT 11
#define HW_NUMBER_AT 17
#define HW_PORT_AT   19

/* The all-nodes group, ff12:401b:<P_Key>::ffff:ffff. */
static const uint8_t hw_of_all[HW_BYTES] = {
	0, 0xff, 0xff, 0xff, 0xff, 0x12, 0x40, 0x1b, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff,
};
#define HW_PKEY_AT  8
#define FULL_MEMBER 0x8000

/* An interface of this kind, in place of its own. */
static const struct {
	struct rtattr attr;
	char kind[5];
} bond_info = { { RTA_LENGTH(sizeof("bond")), IFLA_INFO_KIND }, "bond" };

/* --- one message --------------------------------------------------------- */

/* Return: the offset of attributes; 0 for a message that is not changed. */
static size_t body_bytes(const struct nlmsghdr *hdr)
{
	switch (hdr->nlmsg_type) {
	case RTM_NEWLINK:
	case RTM_DELLINK:
		return NLMSG_SPACE(sizeof(struct ifinfomsg));
	case RTM_NEWNEIGH:
	case RTM_DELNEIGH:
		return NLMSG_SPACE(sizeof(struct ndmsg));
	}
	return 0;
}

static bool is_link(const struct nlmsghdr *hdr)
{
	return hdr->nlmsg_type == RTM_NEWLINK || hdr->nlmsg_type == RTM_DELLINK;
}

static bool is_port(unsigned int index)
{
	static const char *const name[PORTS] = { "fab0", "fab1" }; /* plan.py */
	static unsigned int port[PORTS];
	int i;

	for (i = 0; i < PORTS; i++) {
		if (!port[i])
			port[i] = if_nametoindex(name[i]);
		if (port[i] && port[i] == index)
			return true;
	}
	return false;
}

static bool is_ours(const struct nlmsghdr *hdr)
{
	const void *body = NLMSG_DATA(hdr);
	int index = is_link(hdr) ? ((const struct ifinfomsg *)body)->ifi_index
				 : ((const struct ndmsg *)body)->ndm_ifindex;

	return is_port((unsigned int)index);
}

/* A setting from tools/fabric/fabric. */
static unsigned long setting_of(const char *name)
{
	const char *value = env_get(name);

	return value ? strtoul(value, NULL, 0) : 0;
}

static void put_broadcast_hw(uint8_t hw[HW_BYTES])
{
	unsigned long pkey = setting_of("PURECM_FABRIC_IP_PKEY") | FULL_MEMBER;

	memcpy(hw, hw_of_all, HW_BYTES);
	hw[HW_PKEY_AT] = (uint8_t)(pkey >> 8);
	hw[HW_PKEY_AT + 1] = (uint8_t)pkey;
}

static void put_port_hw(const uint8_t mac[MAC_BYTES], uint8_t hw[HW_BYTES])
{
	unsigned int number = (unsigned int)mac[MAC_NUMBER_AT] << 8 | mac[MAC_NUMBER_AT + 1];
	unsigned long n_subnets = setting_of("PURECM_FABRIC_SUBNETS");

	memcpy(hw, hw_of_port, HW_BYTES);
	if (n_subnets > 1) {
		hw[HW_PREFIX_AT + 1] = 0xc0;
		hw[HW_SUBNET_AT] = (uint8_t)((number - 1) % n_subnets + 1);
	}
	memcpy(hw + HW_NUMBER_AT, mac + MAC_NUMBER_AT, MAC_BYTES - MAC_NUMBER_AT);
	hw[HW_PORT_AT] = mac[MAC_INTERFACE_AT] + 1;
}

/* What an attribute contains. */
struct content {
	const void *data;
	size_t bytes;
};

/* @hw has room for an address that is put in place of a MAC. */
static struct content translate_attr(const struct nlmsghdr *hdr, const struct rtattr *attr,
				     uint8_t hw[HW_BYTES])
{
	const struct content own = { RTA_DATA(attr), RTA_PAYLOAD(attr) };
	const struct content bond = { &bond_info, bond_info.attr.rta_len };
	const struct content address = { hw, HW_BYTES };

	if (is_link(hdr) && attr->rta_type == IFLA_LINKINFO)
		return setting_of("PURECM_FABRIC_IP_BOND") ? bond : own;
	if (own.bytes != MAC_BYTES)
		return own;
	if (is_link(hdr) && attr->rta_type == IFLA_BROADCAST) {
		put_broadcast_hw(hw);
		return address;
	}
	if (attr->rta_type != (is_link(hdr) ? IFLA_ADDRESS : NDA_LLADDR) ||
	    memcmp(own.data, mac_prefix, sizeof(mac_prefix)) != 0)
		return own;
	put_port_hw(own.data, hw);
	return address;
}

static size_t put_attr(uint8_t *to, unsigned short type, const struct content *content)
{
	struct rtattr head = { .rta_len = (unsigned short)RTA_LENGTH(content->bytes),
			       .rta_type = type };

	memset(to, 0, RTA_SPACE(content->bytes));
	memcpy(to, &head, sizeof(head));
	memcpy(to + RTA_LENGTH(0), content->data, content->bytes);
	return RTA_SPACE(content->bytes);
}

/* Return: size of the message at @to in bytes. */
static size_t rewrite_message(const struct nlmsghdr *hdr, uint8_t *to)
{
	size_t at = body_bytes(hdr), left = hdr->nlmsg_len - at;
	const struct rtattr *attr = (const void *)((const uint8_t *)hdr + at);
	uint8_t hw[HW_BYTES];

	memcpy(to, hdr, at);
	for (; RTA_OK(attr, left); attr = RTA_NEXT(attr, left)) {
		const struct content content = translate_attr(hdr, attr, hw);

		at += put_attr(to + at, attr->rta_type, &content);
	}
	if (is_link(hdr))
		((struct ifinfomsg *)NLMSG_DATA((struct nlmsghdr *)(void *)to))->ifi_type =
			ARPHRD_INFINIBAND;
	((struct nlmsghdr *)(void *)to)->nlmsg_len = (uint32_t)at;
	return at;
}

/* --- received messages --------------------------------------------------- */

static size_t rewrite_all(const void *buffer, size_t bytes, uint8_t *to)
{
	const struct nlmsghdr *hdr = buffer;
	size_t n = 0;

	for (; NLMSG_OK(hdr, bytes); hdr = NLMSG_NEXT(hdr, bytes)) {
		if (body_bytes(hdr) && hdr->nlmsg_len >= body_bytes(hdr) && is_ours(hdr)) {
			n += rewrite_message(hdr, to + n);
			continue;
		}
		memcpy(to + n, hdr, hdr->nlmsg_len);
		n += NLMSG_ALIGN(hdr->nlmsg_len);
	}
	return n;
}

static bool is_rtnetlink(int fd)
{
	int domain, protocol;
	socklen_t bytes = sizeof(domain);

	return !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) && domain == AF_NETLINK &&
	       !getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &bytes) &&
	       protocol == NETLINK_ROUTE;
}

/* Return: the number of bytes received; a message that no longer fits is not changed. */
static ssize_t translate_received(int fd, void *buffer, size_t room, ssize_t received)
{
	int err = errno;
	uint8_t *copy;
	size_t bytes;

	if (received < (ssize_t)sizeof(struct nlmsghdr) || (size_t)received > room ||
	    !is_rtnetlink(fd)) {
		errno = err;
		return received;
	}
	/* Each message has at least a header. */
	copy = calloc(1, (size_t)received * (1 + GROWN_BYTES / sizeof(struct nlmsghdr)));
	if (!copy)
		return received;
	bytes = rewrite_all(buffer, (size_t)received, copy);
	if (bytes <= room) {
		memcpy(buffer, copy, bytes);
		received = (ssize_t)bytes;
	}
	free(copy);
	return received;
}

/* --- replacements --------------------------------------------------------- */

#define REAL(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))

ssize_t recvfrom(int fd, void *buffer, size_t bytes, int flags, __SOCKADDR_ARG from,
		 socklen_t *from_bytes)
{
	static __typeof__(&recvfrom) real;

	if (!real)
		real = REAL(recvfrom);
	return translate_received(fd, buffer, bytes,
				  real(fd, buffer, bytes, flags, from, from_bytes));
}

ssize_t recv(int fd, void *buffer, size_t bytes, int flags)
{
	return recvfrom(fd, buffer, bytes, flags, NULL, NULL);
}

ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	static __typeof__(&recvmsg) real;
	ssize_t received;

	if (!real)
		real = REAL(recvmsg);
	received = real(fd, msg, flags);
	if (msg->msg_iovlen != 1)
		return received;
	return translate_received(fd, msg->msg_iov->iov_base, msg->msg_iov->iov_len, received);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The VRF of an interface, asked of the kernel: see vrf.h. */
#include "tools/fabric/udp/vrf.h"

#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"

#define KIND_VRF "vrf"

union answer {
	struct nlmsghdr head;
	char bytes[16384];
};

/* Return: whether the kernel has described the interface. */
static bool ask_link(int fd, uint32_t ifindex, union answer *ret)
{
	struct {
		struct nlmsghdr head;
		struct ifinfomsg link;
	} question = {
		.head = {.nlmsg_len = sizeof(question),
			  .nlmsg_type = RTM_GETLINK,
			  .nlmsg_flags = NLM_F_REQUEST },
		.link = { .ifi_index = (int)ifindex },
	};
	int n;

	if (send(fd, &question, sizeof(question), 0) < 0)
		return false;
	n = (int)recv(fd, ret, sizeof(*ret), 0);
	return NLMSG_OK(&ret->head, n) && ret->head.nlmsg_type == RTM_NEWLINK;
}

/* Return: an attribute of a list, or NULL. */
static const struct rtattr *find_attribute(const void *list, int bytes, unsigned short type)
{
	const struct rtattr *at;

	for (at = list; RTA_OK(at, bytes); at = RTA_NEXT(at, bytes))
		if ((at->rta_type & NLA_TYPE_MASK) == type)
			return at;
	return NULL;
}

static const struct rtattr *find_in_link(const union answer *answer, unsigned short type)
{
	const struct ifinfomsg *link = NLMSG_DATA(&answer->head);

	return find_attribute(IFLA_RTA(link), (int)IFLA_PAYLOAD(&answer->head), type);
}

static uint32_t master_of(const union answer *answer)
{
	const struct rtattr *master = find_in_link(answer, IFLA_MASTER);
	uint32_t ifindex = 0;

	if (master && RTA_PAYLOAD(master) == sizeof(ifindex))
		memcpy(&ifindex, RTA_DATA(master), sizeof(ifindex));
	return ifindex;
}

static bool is_vrf(const union answer *answer)
{
	const struct rtattr *info = find_in_link(answer, IFLA_LINKINFO), *kind = NULL;

	if (info)
		kind = find_attribute(RTA_DATA(info), (int)RTA_PAYLOAD(info), IFLA_INFO_KIND);
	return kind && RTA_PAYLOAD(kind) >= sizeof(KIND_VRF) - 1 &&
	       strncmp(RTA_DATA(kind), KIND_VRF, RTA_PAYLOAD(kind)) == 0;
}

uint32_t udp_vrf_of(uint32_t ifindex)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	union answer answer;
	uint32_t master = 0;

	if (fd >= 0 && ask_link(fd, ifindex, &answer))
		master = master_of(&answer);
	if (master && !(ask_link(fd, master, &answer) && is_vrf(&answer)))
		master = 0;
	fd_close(&fd);
	return master;
}

int udp_vrf_bind(int fd, uint32_t vrf)
{
	return vrf ? fd_bind_to_interface(fd, vrf) : 0;
}

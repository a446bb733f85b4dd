/* SPDX-License-Identifier: BSD-2-Clause */
/* The VRF of an interface, asked of the kernel: see vrf.h. */
#include "tools/fabric/udp/vrf.h"

#include <linux/if_link.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <stdbool.h>

#define KIND_VRF "vrf"

struct link {
	uint32_t master; /* 0: none */
	bool is_vrf;
};

static int take_link(struct nl_msg *msg, void *arg)
{
	struct nlattr *attr[IFLA_MAX + 1], *info[IFLA_INFO_MAX + 1];
	struct link *ret = arg;

	if (nlmsg_hdr(msg)->nlmsg_type != RTM_NEWLINK ||
	    nlmsg_parse(nlmsg_hdr(msg), sizeof(struct ifinfomsg), attr, IFLA_MAX, NULL))
		return NL_SKIP;
	if (attr[IFLA_MASTER])
		ret->master = nla_get_u32(attr[IFLA_MASTER]);
	if (attr[IFLA_LINKINFO] &&
	    !nla_parse_nested(info, IFLA_INFO_MAX, attr[IFLA_LINKINFO], NULL) &&
	    info[IFLA_INFO_KIND])
		ret->is_vrf = nla_strcmp(info[IFLA_INFO_KIND], KIND_VRF) == 0;
	return NL_OK;
}

/* Nothing, if the kernel does not describe the interface. */
static struct link ask_link(struct nl_sock *sock, uint32_t ifindex)
{
	struct ifinfomsg question = { .ifi_index = (int)ifindex };
	struct link link = { .master = 0 };

	nl_socket_modify_cb(sock, NL_CB_VALID, NL_CB_CUSTOM, take_link, &link);
	if (nl_send_simple(sock, RTM_GETLINK, 0, &question, sizeof(question)) >= 0)
		nl_recvmsgs_default(sock);
	return link;
}

uint32_t udp_vrf_of(uint32_t ifindex)
{
	struct nl_sock *sock = nl_socket_alloc();
	uint32_t master = 0;

	if (!sock)
		return 0;
	nl_socket_disable_auto_ack(sock);
	if (nl_connect(sock, NETLINK_ROUTE) == 0)
		master = ask_link(sock, ifindex).master;
	if (master && !ask_link(sock, master).is_vrf)
		master = 0;
	nl_socket_free(sock);
	return master;
}

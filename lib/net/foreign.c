/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads addresses of another network namespace: see foreign.h. */
#include "lib/net/foreign.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/net_namespace.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/large.h"
#include "lib/net/internal.h"

#define LINKS_MAX 64
#define NO_NETNS  (-1)
#define READS_MAX 256 /* of 32 KiB: enough for thousands of interfaces */

struct lower_link {
	unsigned int ifindex;
	int netns; /* id of the lower interface's namespace, as seen there */
};

struct foreign {
	struct lower_link link[LINKS_MAX];
	unsigned int n_links;
	int our_netns; /* id of this namespace, as seen there */
	struct net_foreign *gid;
	unsigned int n_gids, room;
	unsigned int n_datagrams; /* read so far */
};

int net_foreign_socket(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	return fd < 0 ? -errno : fd;
}

bool net_foreign_is_socket(int fd)
{
	return fd_option_is(fd, SO_DOMAIN, AF_NETLINK) &&
	       fd_option_is(fd, SO_PROTOCOL, NETLINK_ROUTE);
}

/* --- requests ------------------------------------------------------------- */

/* Return: 1 at the end of the response, 0 if more follows, -errno. */
static int take_message(struct nlmsghdr *hdr, uint32_t seq,
			int (*take)(struct nlmsghdr *hdr, struct foreign *foreign),
			struct foreign *foreign)
{
	const struct nlmsgerr *err = nlmsg_data(hdr);
	int rc;

	if (hdr->nlmsg_seq != seq)
		return 0;
	if (hdr->nlmsg_type == NLMSG_DONE)
		return 1;
	if (hdr->nlmsg_type == NLMSG_ERROR)
		return nlmsg_valid_hdr(hdr, sizeof(err->error)) && err->error ? err->error
									      : -EPROTO;
	rc = take(hdr, foreign);
	return rc ? rc : !(hdr->nlmsg_flags & NLM_F_MULTI);
}

/*
 * The creator of the socket may flood it as fast as it is read, so the number of reads is limited.
 */
static int read_answer(int fd, uint32_t seq,
		       int (*take)(struct nlmsghdr *hdr, struct foreign *foreign),
		       struct foreign *foreign)
{
	static char answer[32768] LARGE_STATIC __attribute__((aligned(NLMSG_ALIGNTO)));
	struct sockaddr_nl from = { .nl_pid = 1 };
	struct nlmsghdr *hdr;
	int left, n, rc = 0;

	for (n = 0; !rc; n++) {
		socklen_t from_bytes = sizeof(from);
		ssize_t bytes = recvfrom(fd, answer, sizeof(answer), MSG_DONTWAIT,
					 (struct sockaddr *)&from, &from_bytes);

		if (bytes <= 0)
			return bytes < 0 ? -errno : -EIO;
		foreign->n_datagrams++;
		if (n == READS_MAX)
			return -EBUSY;
		if (from.nl_pid)
			continue;
		hdr = (struct nlmsghdr *)answer;
		for (left = (int)bytes; !rc && nlmsg_ok(hdr, left); hdr = nlmsg_next(hdr, &left))
			rc = take_message(hdr, seq, take, foreign);
	}
	return rc < 0 ? rc : 0;
}

/* When sendto() returns, the kernel has responded, or begun to. */
static int ask_kernel(int fd, struct nl_msg *msg,
		      int (*take)(struct nlmsghdr *hdr, struct foreign *foreign),
		      struct foreign *foreign)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct nlmsghdr *hdr;
	uint32_t seq;
	int err = 0;

	if (!msg)
		return -ENOMEM;
	hdr = nlmsg_hdr(msg);
	if (getrandom(&seq, sizeof(seq), 0) != sizeof(seq))
		err = -errno;
	hdr->nlmsg_seq = seq;
	if (!err && sendto(fd, hdr, hdr->nlmsg_len, MSG_DONTWAIT, (struct sockaddr *)&kernel,
			   sizeof(kernel)) < 0)
		err = -errno;
	nlmsg_free(msg);
	return err ? err : read_answer(fd, seq, take, foreign);
}

/* --- responses ------------------------------------------------------------- */

static bool is_on_other_namespace(struct nlattr *info)
{
	static const char *const kinds[] = { "macvlan", "macvtap", "ipvlan", "ipvtap", "vlan" };
	struct nlattr *attr[IFLA_INFO_MAX + 1];
	size_t i;

	if (!info || nla_parse_nested(attr, IFLA_INFO_MAX, info, NULL) < 0 || !attr[IFLA_INFO_KIND])
		return false;
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!nla_strcmp(attr[IFLA_INFO_KIND], kinds[i]))
			return true;
	return false;
}

static int take_link(struct nlmsghdr *hdr, struct foreign *foreign)
{
	struct ifinfomsg *ifi = nlmsg_data(hdr);
	struct nlattr *attr[IFLA_MAX + 1];

	if (nlmsg_parse(hdr, sizeof(*ifi), attr, IFLA_MAX, NULL) < 0)
		return -EPROTO;
	if (attr[IFLA_LINK_NETNSID] && nla_len(attr[IFLA_LINK_NETNSID]) >= 4 &&
	    is_on_other_namespace(attr[IFLA_LINKINFO]) && foreign->n_links < LINKS_MAX)
		foreign->link[foreign->n_links++] =
			(struct lower_link){ (unsigned int)ifi->ifi_index,
					     nla_get_s32(attr[IFLA_LINK_NETNSID]) };
	return 0;
}

static int take_netns(struct nlmsghdr *hdr, struct foreign *foreign)
{
	struct nlattr *attr[NETNSA_MAX + 1];

	if (nlmsg_parse(hdr, sizeof(struct rtgenmsg), attr, NETNSA_MAX, NULL) < 0 ||
	    !attr[NETNSA_NSID] || nla_len(attr[NETNSA_NSID]) < 4)
		return -EPROTO;
	foreign->our_netns = nla_get_s32(attr[NETNSA_NSID]);
	return 0;
}

static bool is_on_our_interface(const struct foreign *foreign, unsigned int ifindex)
{
	unsigned int i;

	for (i = 0; i < foreign->n_links; i++)
		if (foreign->link[i].ifindex == ifindex)
			return foreign->link[i].netns == foreign->our_netns;
	return false;
}

static int take_address(struct nlmsghdr *hdr, struct foreign *foreign)
{
	struct ifaddrmsg *ifa = nlmsg_data(hdr);
	struct nlattr *own, *attr[IFA_MAX + 1];
	union addr addr;
	struct net_ip ip;

	if (nlmsg_parse(hdr, sizeof(*ifa), attr, IFA_MAX, NULL) < 0)
		return -EPROTO;
	own = attr[IFA_LOCAL] ? attr[IFA_LOCAL] : attr[IFA_ADDRESS];
	if (!own || (ifa->ifa_family != AF_INET && ifa->ifa_family != AF_INET6) ||
	    !is_on_our_interface(foreign, ifa->ifa_index) || foreign->n_gids == foreign->room)
		return 0;
	ip = net_ip_from_attr(ifa->ifa_family, own, ifa->ifa_index);
	net_ip_to_addr(&ip, &addr);
	foreign->gid[foreign->n_gids++] =
		(struct net_foreign){ addr_to_gid(&addr), ifa->ifa_index };
	return 0;
}

/*
 * The kernel assigns our namespace an id there when it first reports an interface on top of one of
 * ours, so links are read first.
 */
static int ask_for_netns(int fd, struct foreign *foreign)
{
	struct rtgenmsg any = { .rtgen_family = AF_UNSPEC };
	struct nl_msg *msg = net_message(RTM_GETNSID, 0, &any, sizeof(any));
	int ours = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	int err;

	if (ours < 0) {
		nlmsg_free(msg);
		return -errno;
	}
	if (msg)
		nla_put_u32(msg, NETNSA_FD, (uint32_t)ours);
	err = ask_kernel(fd, msg, take_netns, foreign);
	close(ours);
	return err;
}

static int read_gids(int fd, struct foreign *foreign)
{
	struct ifinfomsg ifi = { .ifi_family = AF_UNSPEC };
	struct ifaddrmsg ifa = { .ifa_family = AF_UNSPEC };
	int err = ask_kernel(fd, net_message(RTM_GETLINK, NLM_F_DUMP, &ifi, sizeof(ifi)), take_link,
			     foreign);

	if (!err)
		err = ask_for_netns(fd, foreign);
	if (err || foreign->our_netns == NO_NETNS)
		return err;
	err = ask_kernel(fd, net_message(RTM_GETADDR, NLM_F_DUMP, &ifa, sizeof(ifa)), take_address,
			 foreign);
	return err ? err : (int)foreign->n_gids;
}

int net_foreign_read(int fd, struct net_foreign *ret, unsigned int room,
		     unsigned int *ret_datagrams)
{
	struct foreign foreign = { .our_netns = NO_NETNS, .gid = ret, .room = room };
	int n = read_gids(fd, &foreign);

	*ret_datagrams = foreign.n_datagrams;
	return n;
}

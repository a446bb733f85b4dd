/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interfaces and their addresses. Interfaces are queried one by one, addresses in one dump, because
 * the kernel has no query by IPv4 address. Both are cached until the kernel announces a change of a
 * link or an address.
 */
#include "lib/net/internal.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdlib.h>
#include <string.h>

#define IFACES_MAX 64
#define DUMPS_MAX  10 /* while the addresses change during the dump */
#define BONDS_MAX  8  /* further bonds: changes of link addresses are not detected */

struct own_addr {
	struct net_ip ip;
	uint32_t ifindex;
};

static struct {
	struct net_iface iface[IFACES_MAX];
	unsigned int n_ifaces;
	unsigned int victim;

	struct own_addr *addr; /* sorted */
	size_t n_addrs;
	size_t n_addrs_max;
	bool addrs_valid;
} cache;

/*
 * The link address of each bond when first seen or last announced. net_iface_flush() keeps it, so
 * that the next failover is detected after any other change; a response may be newer than an
 * announcement that is still in the socket.
 */
static struct bond {
	unsigned int ifindex; /* 0: free */
	uint8_t hw[NET_IPOIB_HW_BYTES];
	unsigned int hw_bytes;
} bonds[BONDS_MAX];

void net_iface_flush(void)
{
	cache.n_ifaces = 0;
	cache.addrs_valid = false;
}

void net_iface_after_fork(void)
{
	cache.addr = NULL;
	cache.n_addrs_max = 0;
}

static void take_egress(struct nlattr *list, struct net_iface *iface)
{
	const struct ifla_vlan_qos_mapping *map;
	struct nlattr *one;
	int left;

	nla_for_each_nested(one, list, left)
	{
		map = nla_data(one);
		if (nla_len(one) >= (int)sizeof(*map) && map->from < NET_PRIORITIES)
			iface->egress[map->from] = (uint8_t)map->to & NET_SERVICE_LEVEL_MAX;
	}
}

static struct bond *bond_of(unsigned int ifindex)
{
	struct bond *bond = bonds;

	while (bond < bonds + BONDS_MAX && bond->ifindex != ifindex)
		bond++;
	return bond < bonds + BONDS_MAX ? bond : NULL;
}

static void learn_bond(const struct net_iface *iface)
{
	struct bond *bond = bond_of(iface->ifindex);

	if (bond && bond->hw_bytes == iface->hw_bytes)
		return;
	if (!bond)
		bond = bond_of(0);
	if (!bond || iface->hw_bytes > sizeof(bond->hw))
		return;
	bond->ifindex = iface->ifindex;
	bond->hw_bytes = iface->hw_bytes;
	memcpy(bond->hw, iface->hw_addr, iface->hw_bytes);
}

void net_iface_announced(struct nlmsghdr *hdr, struct net_event *event)
{
	struct nlattr *attr[IFLA_MAX + 1];
	struct bond *bond;

	net_iface_flush();
	if (nlmsg_parse(hdr, sizeof(struct ifinfomsg), attr, IFLA_MAX, NULL) < 0)
		return;
	event->ifindex = ((struct ifinfomsg *)nlmsg_data(hdr))->ifi_index;
	bond = bond_of(event->ifindex);
	if (!bond || !attr[IFLA_ADDRESS] || nla_len(attr[IFLA_ADDRESS]) != (int)bond->hw_bytes)
		return;
	if (hdr->nlmsg_type == RTM_DELLINK)
		bond->ifindex = 0;
	if (!memcmp(bond->hw, nla_data(attr[IFLA_ADDRESS]), bond->hw_bytes))
		return;
	memcpy(event->hw_before, bond->hw, bond->hw_bytes);
	memcpy(bond->hw, nla_data(attr[IFLA_ADDRESS]), bond->hw_bytes);
	memcpy(event->hw, bond->hw, bond->hw_bytes);
}

/* IFLA_LINK of a veth is its peer, not a lower interface. */
static void take_kind(struct nlattr **attr, struct net_iface *iface)
{
	struct nlattr *info[IFLA_INFO_MAX + 1], *vlan[IFLA_VLAN_MAX + 1];
	const struct nlattr *kind;

	if (!attr[IFLA_LINKINFO] ||
	    nla_parse_nested(info, IFLA_INFO_MAX, attr[IFLA_LINKINFO], NULL) < 0 ||
	    !info[IFLA_INFO_KIND])
		return;
	kind = info[IFLA_INFO_KIND];
	if (!nla_strcmp(kind, "bond"))
		learn_bond(iface);
	if (!attr[IFLA_LINK] || nla_len(attr[IFLA_LINK]) < 4)
		return;
	iface->is_vlan = !nla_strcmp(kind, "vlan");
	if (!attr[IFLA_LINK_NETNSID] &&
	    (iface->is_vlan || !nla_strcmp(kind, "macvlan") || !nla_strcmp(kind, "ipvlan")))
		iface->lower = nla_get_u32(attr[IFLA_LINK]);
	if (iface->is_vlan && info[IFLA_INFO_DATA] &&
	    !nla_parse_nested(vlan, IFLA_VLAN_MAX, info[IFLA_INFO_DATA], NULL) &&
	    vlan[IFLA_VLAN_EGRESS_QOS])
		take_egress(vlan[IFLA_VLAN_EGRESS_QOS], iface);
}

static int take_link(struct nlmsghdr *hdr, void *arg)
{
	static struct nla_policy policy[IFLA_MAX + 1] = { [IFLA_MTU] = { .type = NLA_U32 } };
	struct ifinfomsg *ifi = nlmsg_data(hdr);
	struct nlattr *attr[IFLA_MAX + 1];
	struct net_iface *iface = arg;

	if (nlmsg_parse(hdr, sizeof(*ifi), attr, IFLA_MAX, policy) < 0)
		return -EPROTO;
	memset(iface, 0, sizeof(*iface));
	iface->ifindex = ifi->ifi_index;
	iface->arp_type = ifi->ifi_type;
	iface->up = ifi->ifi_flags & IFF_UP;
	iface->loopback = ifi->ifi_flags & IFF_LOOPBACK;
	iface->resolves = !(ifi->ifi_flags & (IFF_NOARP | IFF_LOOPBACK | IFF_POINTOPOINT));
	if (attr[IFLA_IFNAME])
		nla_strlcpy(iface->name, attr[IFLA_IFNAME], sizeof(iface->name));
	if (attr[IFLA_MTU])
		iface->mtu = nla_get_u32(attr[IFLA_MTU]);
	if (attr[IFLA_ADDRESS])
		iface->hw_bytes =
			nla_memcpy(iface->hw_addr, attr[IFLA_ADDRESS], sizeof(iface->hw_addr));
	if (attr[IFLA_BROADCAST])
		nla_memcpy(iface->hw_broadcast, attr[IFLA_BROADCAST], sizeof(iface->hw_broadcast));
	take_kind(attr, iface);
	return 0;
}

static int ask_link(unsigned int ifindex, struct net_iface *ret)
{
	struct ifinfomsg ifi = { .ifi_index = ifindex };
	struct nl_msg *msg = net_message(RTM_GETLINK, 0, &ifi, sizeof(ifi));
	int rc;

	net_announcements_want_link(ifindex);
	if (msg)
		nla_put_u32(msg, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
	ret->ifindex = 0;
	rc = net_request(msg, take_link, ret);
	return !rc && !ret->ifindex ? -EPROTO : rc; /* success without a result */
}

int net_iface_fetch(unsigned int ifindex, struct net_iface *ret)
{
	struct net_iface iface;
	int rc;

	for (unsigned int i = 0; i < cache.n_ifaces; i++) {
		if (cache.iface[i].ifindex == ifindex) {
			*ret = cache.iface[i];
			return 0;
		}
	}
	rc = ifindex ? ask_link(ifindex, &iface) : -ENODEV;
	if (rc)
		return rc;
	if (cache.n_ifaces < IFACES_MAX)
		cache.iface[cache.n_ifaces++] = iface;
	else
		cache.iface[cache.victim++ % IFACES_MAX] = iface;
	*ret = iface;
	return 0;
}

static int by_ip(const void *a, const void *b)
{
	const struct own_addr *x = a;
	const struct own_addr *y = b;

	return memcmp(&x->ip, &y->ip, sizeof(x->ip));
}

/* A coarser order than by_ip(). */
static int by_ip_on_any_link(const void *a, const void *b)
{
	const struct own_addr *x = a;
	const struct own_addr *y = b;
	int order = memcmp(x->ip.bytes, y->ip.bytes, sizeof(x->ip.bytes));

	return order ? order : (int)x->ip.family - (int)y->ip.family;
}

static int add_addr(const struct own_addr *addr)
{
	struct own_addr *more;

	if (cache.n_addrs == cache.n_addrs_max) {
		size_t n_max = cache.n_addrs_max ? 2 * cache.n_addrs_max : 16;

		more = realloc(cache.addr, n_max * sizeof(*more));
		if (!more)
			return -ENOMEM;
		cache.addr = more;
		cache.n_addrs_max = n_max;
	}
	cache.addr[cache.n_addrs++] = *addr;
	return 0;
}

/* An IPv6 address is used only after duplicate address detection (RFC 4862, 5.4). */
static bool is_usable(const struct ifaddrmsg *ifa, const struct nlattr *flags_attr)
{
	uint32_t flags = flags_attr ? nla_get_u32(flags_attr) : ifa->ifa_flags;

	if (flags & IFA_F_DADFAILED)
		return false;
	return !(flags & IFA_F_TENTATIVE) || flags & IFA_F_OPTIMISTIC;
}

static int take_addr(struct nlmsghdr *hdr, void *arg)
{
	static struct nla_policy policy[IFA_MAX + 1] = { [IFA_FLAGS] = { .type = NLA_U32 } };
	struct ifaddrmsg *ifa = nlmsg_data(hdr);
	struct nlattr *attr[IFA_MAX + 1];
	struct nlattr *own;
	struct own_addr addr;

	(void)arg;
	if (nlmsg_parse(hdr, sizeof(*ifa), attr, IFA_MAX, policy) < 0)
		return -EPROTO;
	/* On a point-to-point link, IFA_ADDRESS is the peer's. */
	own = attr[IFA_LOCAL] ? attr[IFA_LOCAL] : attr[IFA_ADDRESS];
	if (!own || (ifa->ifa_family != AF_INET && ifa->ifa_family != AF_INET6) ||
	    !is_usable(ifa, attr[IFA_FLAGS]))
		return 0;
	addr.ip = net_ip_from_attr(ifa->ifa_family, own, ifa->ifa_index);
	addr.ifindex = ifa->ifa_index;
	return add_addr(&addr);
}

static int load_addrs(void)
{
	struct ifaddrmsg ifa = { .ifa_family = AF_UNSPEC };
	int i, rc = -EAGAIN;

	for (i = 0; i < DUMPS_MAX && rc == -EAGAIN; i++) {
		cache.n_addrs = 0;
		rc = net_request(net_message(RTM_GETADDR, NLM_F_DUMP, &ifa, sizeof(ifa)), take_addr,
				 NULL);
	}
	if (rc && rc != -EAGAIN) /* if they keep changing, the last dump is used */
		return rc;
	if (cache.n_addrs)
		qsort(cache.addr, cache.n_addrs, sizeof(*cache.addr), by_ip);
	cache.addrs_valid = true;
	return 0;
}

/* Chooses between interfaces with the same address: prefers one that is up and not loopback. */
static unsigned int better_iface(unsigned int a, unsigned int b)
{
	struct net_iface iface;

	if (!net_iface_fetch(a, &iface) && iface.up && !iface.loopback)
		return a;
	if (!net_iface_fetch(b, &iface) && iface.up && !iface.loopback)
		return b;
	return a;
}

/* Return: how many interfaces have an address, from @ret on, or -errno. */
static int find_owners(const struct net_ip *ip, const struct own_addr **ret)
{
	int (*const order)(const void *, const void *) = ip->scope ? by_ip : by_ip_on_any_link;
	const struct own_addr key = { .ip = *ip };
	const struct own_addr *end, *hit;
	int n, rc = cache.addrs_valid ? 0 : load_addrs();

	if (rc)
		return rc;
	hit = cache.n_addrs ? bsearch(&key, cache.addr, cache.n_addrs, sizeof(key), order) : NULL;
	if (!hit)
		return -EADDRNOTAVAIL;
	while (hit > cache.addr && !order(&key, hit - 1))
		hit--;
	end = cache.addr + cache.n_addrs;
	for (n = 0; hit + n < end && !order(&key, hit + n); n++)
		continue;
	*ret = hit;
	return n;
}

int net_owner_of_ip(const struct net_ip *ip, unsigned int prefer)
{
	const struct own_addr *own;
	unsigned int owner;
	int i, n = find_owners(ip, &own);

	if (n < 0)
		return n;
	owner = own->ifindex;
	for (i = 0; i < n; i++) {
		if (own[i].ifindex == prefer)
			return prefer;
		owner = better_iface(owner, own[i].ifindex);
	}
	return owner;
}

int net_iface_get(unsigned int ifindex, struct net_iface *ret)
{
	int rc = net_enter();

	if (rc)
		return rc;
	rc = net_iface_fetch(ifindex, ret);
	net_leave();
	return rc;
}

bool net_iface_gid(const struct net_iface *iface, struct mad_gid *ret)
{
	if (iface->arp_type != ARPHRD_INFINIBAND || iface->hw_bytes != NET_IPOIB_HW_BYTES)
		return false;
	memcpy(ret, iface->hw_addr + NET_IPOIB_GID_AT, sizeof(*ret));
	return true;
}

int net_iface_known(unsigned int ifindex, struct net_iface *ret)
{
	int rc;

	net_reenter();
	rc = net_iface_fetch(ifindex, ret);
	net_leave();
	return rc;
}

int net_iface_of_addr(const union addr *addr, struct net_iface *ret)
{
	struct net_ip ip;
	int rc;

	if (!addr_bytes(&addr->sa))
		return -EADDRNOTAVAIL;
	ip = net_ip_of(addr);
	rc = net_enter();
	if (rc)
		return rc;
	rc = net_owner_of_ip(&ip, 0);
	if (rc > 0)
		rc = net_iface_fetch(rc, ret);
	net_leave();
	return rc;
}

int net_iface_with_addr(const union addr *addr,
			bool (*fits)(const struct net_iface *iface, const void *arg),
			const void *arg, struct net_iface *ret)
{
	const struct net_ip ip = net_ip_of(addr);
	const struct own_addr *own;
	bool has_found = false;
	int i, n, rc = net_enter();

	if (rc)
		return rc;
	n = find_owners(&ip, &own);
	for (i = 0; i < n && !has_found; i++)
		has_found = !net_iface_fetch(own[i].ifindex, ret) && fits(ret, arg);
	net_leave();
	if (n < 0)
		return n;
	return has_found ? 0 : -EADDRNOTAVAIL;
}

bool net_iface_has_addr(unsigned int ifindex, const union addr *addr)
{
	const struct net_ip ip = net_ip_of(addr);
	int owner;

	if (net_enter())
		return false;
	owner = net_owner_of_ip(&ip, ifindex);
	net_leave();
	return owner == (int)ifindex;
}

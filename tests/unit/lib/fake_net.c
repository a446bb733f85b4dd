/* SPDX-License-Identifier: BSD-2-Clause */
/* A host with one interface and its routes, in place of netlink: see fake_net.h. */
#include "tests/unit/lib/fake_net.h"

#include <errno.h>
#include <net/if_arp.h>
#include <string.h>

#include "lib/net/membership.h"

struct fake_net fake_net;
static bool is_here;

void fake_net_begin(const union addr *own)
{
	is_here = true;
	fake_net = (struct fake_net){ .own = *own, .is_resolved = true };
}

int __real_net_route_lookup(const union addr *dst, const union addr *src, unsigned int ifindex,
			    struct net_route *ret);
int __wrap_net_route_lookup(const union addr *dst, const union addr *src, unsigned int ifindex,
			    struct net_route *ret);
int __real_net_route_leads_by(const union addr *dst, const union addr *src, unsigned int ifindex);
int __wrap_net_route_leads_by(const union addr *dst, const union addr *src, unsigned int ifindex);
int __real_net_iface_of_addr(const union addr *addr, struct net_iface *ret);
int __wrap_net_iface_of_addr(const union addr *addr, struct net_iface *ret);
int __real_net_iface_with_addr(const union addr *addr,
			       bool (*fits)(const struct net_iface *iface, const void *arg),
			       const void *arg, struct net_iface *ret);
int __wrap_net_iface_with_addr(const union addr *addr,
			       bool (*fits)(const struct net_iface *iface, const void *arg),
			       const void *arg, struct net_iface *ret);
int __real_net_iface_known(unsigned int ifindex, struct net_iface *ret);
int __wrap_net_iface_known(unsigned int ifindex, struct net_iface *ret);
int __real_net_iface_get(unsigned int ifindex, struct net_iface *ret);
int __wrap_net_iface_get(unsigned int ifindex, struct net_iface *ret);
uint8_t __real_net_service_level(const struct net_iface *iface, uint8_t tos);
uint8_t __wrap_net_service_level(const struct net_iface *iface, uint8_t tos);
enum net_neigh __real_net_neigh_state(const struct net_route *route);
enum net_neigh __wrap_net_neigh_state(const struct net_route *route);
int __real_net_neigh_ask(const struct net_route *route);
int __wrap_net_neigh_ask(const struct net_route *route);
int __wrap_membership_join(unsigned int ifindex, const union addr *group);
void __wrap_membership_leave(unsigned int ifindex, const union addr *group);

int __wrap_net_route_lookup(const union addr *dst, const union addr *src, unsigned int ifindex,
			    struct net_route *ret)
{
	if (!is_here)
		return __real_net_route_lookup(dst, src, ifindex, ret);
	fake_net.asked_ifindex = ifindex;
	if (fake_net.route_err)
		return fake_net.route_err;
	*ret = (struct net_route){
		.src = src ? *src : fake_net.own,
		.next_hop = *dst,
		.ifindex = fake_net.leaves_by ? fake_net.leaves_by : FAKE_IFINDEX,
		.resolved = fake_net.is_resolved,
		.hop_limit = 64,
	};
	addr_set_port(&ret->src, 0);
	if (ret->src.sa.sa_family == AF_INET6)
		ret->src.in6.sin6_flowinfo = 0; /* the kernel returns only the address */
	addr_set_port(&ret->next_hop, 0);
	return 0;
}

int __wrap_net_route_leads_by(const union addr *dst, const union addr *src, unsigned int ifindex)
{
	return is_here ? fake_net.tables_err : __real_net_route_leads_by(dst, src, ifindex);
}

static int get_iface(unsigned int ifindex, struct net_iface *ret)
{
	*ret = (struct net_iface){ .ifindex = ifindex,
				   .name = "fake",
				   .mtu = fake_net.mtu ? fake_net.mtu : 1500,
				   .up = true,
				   .arp_type = fake_net.hw_bytes ? ARPHRD_INFINIBAND : ARPHRD_ETHER,
				   .hw_bytes = fake_net.hw_bytes };
	memcpy(ret->hw_broadcast, fake_net.hw_broadcast, sizeof(ret->hw_broadcast));
	memcpy(ret->hw_addr, fake_net.hw_addr, sizeof(ret->hw_addr));
	return 0;
}

int __wrap_net_iface_of_addr(const union addr *addr, struct net_iface *ret)
{
	if (!is_here)
		return __real_net_iface_of_addr(addr, ret);
	if (!addr_same_ip(addr, &fake_net.own))
		return -EADDRNOTAVAIL;
	return get_iface(FAKE_IFINDEX, ret);
}

int __wrap_net_iface_with_addr(const union addr *addr,
			       bool (*fits)(const struct net_iface *iface, const void *arg),
			       const void *arg, struct net_iface *ret)
{
	if (!is_here)
		return __real_net_iface_with_addr(addr, fits, arg, ret);
	if (!addr_same_ip(addr, &fake_net.own) || get_iface(FAKE_IFINDEX, ret) || !fits(ret, arg))
		return -EADDRNOTAVAIL;
	return 0;
}

int __wrap_net_iface_known(unsigned int ifindex, struct net_iface *ret)
{
	return is_here ? get_iface(ifindex, ret) : __real_net_iface_known(ifindex, ret);
}

int __wrap_net_iface_get(unsigned int ifindex, struct net_iface *ret)
{
	return is_here ? get_iface(ifindex, ret) : __real_net_iface_get(ifindex, ret);
}

uint8_t __wrap_net_service_level(const struct net_iface *iface, uint8_t tos)
{
	return is_here ? fake_net.levels[tos >> 3 & 3] : __real_net_service_level(iface, tos);
}

enum net_neigh __wrap_net_neigh_state(const struct net_route *route)
{
	return is_here ? fake_net.neigh : __real_net_neigh_state(route);
}

int __wrap_net_neigh_ask(const struct net_route *route)
{
	if (!is_here)
		return __real_net_neigh_ask(route);
	fake_net.n_neigh_asked++;
	return 0;
}

int __wrap_membership_join(unsigned int ifindex, const union addr *group)
{
	if (ifindex != FAKE_IFINDEX)
		return -ENODEV;
	fake_net.group = *group;
	fake_net.n_joined += !fake_net.join_err;
	return fake_net.join_err;
}

void __wrap_membership_leave(unsigned int ifindex, const union addr *group)
{
	(void)ifindex;
	fake_net.group = *group;
	fake_net.n_joined--;
}

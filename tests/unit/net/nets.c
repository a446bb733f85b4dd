/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The networks of nets.h.
 */
#include "tests/unit/net/nets.h"

#include <net/if.h>
#include <poll.h>

int lookup(const char *dst, const char *src, const char *dev, struct net_route *ret)
{
	union addr to = ip(dst);
	union addr from;

	if (src)
		from = ip(src);
	return net_route_lookup(&to, src ? &from : NULL, dev ? if_nametoindex(dev) : 0, ret);
}

struct net_route route_to(const char *dst)
{
	struct net_route route;

	ck_assert_int_eq(lookup(dst, NULL, NULL, &route), 0);
	return route;
}

/* Adds an Ethernet interface; veth, because not every kernel has dummy. */
void add_net(const char *name, const char *address)
{
	run("ip link add %s type veth peer name far_%s", name, name);
	run("ip link set far_%s up; ip link set %s up", name, name);
	run("ip addr add %s dev %s", address, name);
}

void add_ip6(const char *address, const char *dev)
{
	run("ip addr add %s/64 dev %s nodad", address, dev);
	wait_until("[ -n \"$(ip -6 route show table local %s)\" ]", address);
}

/*
 * The kernel sets carrier and link-local addresses later, and announces them. The route to an
 * interface's own address is the last of these.
 */
static void settle(int n_interfaces)
{
	wait_until("[ $(ip -6 route show table local | grep -c '^local fe80') -eq %d ]",
		   n_interfaces);
}

void two_nets(void)
{
	netns_enter();
	add_net("d0", "10.0.0.1/24");
	add_net("d1", "10.0.1.1/24");
	settle(4);
	ck_assert_int_eq(net_watch_open(NET_WATCH_ALL), 0);
}

void veth_net(void)
{
	netns_enter();
	peer_start();
	run("ip addr add 10.0.0.1/24 dev veth0");
	add_ip6("2001:db8::1", "veth0");
	settle(1);
	ck_assert_int_eq(net_watch_open(NET_WATCH_ALL), 0);
}

bool readable(int timeout_ms)
{
	struct pollfd pfd = { .fd = net_watch_fd(), .events = POLLIN };

	return poll(&pfd, 1, timeout_ms) == 1;
}

void count(const struct net_event *event, void *arg)
{
	(void)event;
	++*(int *)arg;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the tests of lib/net/netlink.h: two small networks, and queries with addresses as text.
 */
#ifndef TESTS_UNIT_NET_NETS_H
#define TESTS_UNIT_NET_NETS_H

#include <stdbool.h>

#include "lib/net/netlink.h"
#include "tests/unit/net/netns.h"
#include "tests/unit/test.h"

#define N(array)		      ((int)(sizeof(array) / sizeof((array)[0])))

#define ck_assert_ip(addr, text)      ck_assert_str_eq(ip_text(addr), text)
#define ck_assert_dev(ifindex_, name) ck_assert_uint_eq(ifindex_, if_nametoindex(name))

/** add_net() - add an Ethernet interface that is up, with an address ("10.0.0.1/24"). */
void add_net(const char *name, const char *address);

/**
 * add_ip6() - give an interface an IPv6 address, and wait until it is in use
 * @address: "2001:db8::1", without a length
 * @dev:     the interface's name
 *
 * The kernel answers the request for an address at once, but works on it later: even without
 * duplicate address detection, a packet for the address goes out on the wire until then.
 */
void add_ip6(const char *address, const char *dev);

/** two_nets() - set up d0 with 10.0.0.1/24 and d1 with 10.0.1.1/24 in a new namespace. */
void two_nets(void);

/** veth_net() - set up veth0 with 10.0.0.1/24 and 2001:db8::1/64, and a peer behind it. */
void veth_net(void);

/** lookup() - net_route_lookup(), with NULL for no source or no interface. */
int lookup(const char *dst, const char *src, const char *dev, struct net_route *ret);

/** route_to() - the route to @dst; fails the test if there is none. */
struct net_route route_to(const char *dst);

/** readable() - return whether its descriptor becomes readable within @timeout_ms. */
bool readable(int timeout_ms);

/** count() - report function of net_watch_drain() that counts in the int @arg. */
void count(const struct net_event *event, void *arg);

#endif

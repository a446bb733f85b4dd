/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's view of IP: routes, neighbours, interfaces and their addresses, asked over
 * rtnetlink and cached for the process. A cached answer is never older than the last change the
 * kernel has announced: every look-up first drains the notifications.
 *
 * Address resolution and binding ask; who sends messages watches for what changes.
 *
 * Every call may be made from any thread. None blocks for longer than the kernel needs to answer
 * a netlink request: one lock guards the caches and is held across requests, which the kernel
 * answers before it returns from taking them. All look at the network namespace of the thread that
 * called first. Needs Linux 5.0.
 */
#ifndef LIB_NET_NETLINK_H
#define LIB_NET_NETLINK_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/net/addr.h"

struct net_route {
	union addr src;	      /* source address the kernel chose, or the one given; port 0 */
	union addr next_hop;  /* whose link address is needed: gateway or destination */
	unsigned int ifindex; /* interface that owns the source; for a local route, the one that
				 owns the destination, never lo unless it really is lo's address */
	bool gateway;
	bool local;	   /* the destination is an address of this host */
	bool resolved;	   /* its link address was known when this was looked up */
	uint8_t hop_limit; /* of the route, 64 where it names none */
};

#define NET_PRIORITIES	      8 /* of packets that a type of service can name, and one more */
#define NET_SERVICE_LEVEL_MAX 7 /* a frame has three bits for it */

struct net_iface {
	unsigned int ifindex;
	char name[16];
	unsigned int mtu;
	unsigned short arp_type; /* ARPHRD_ETHER, ... */
	bool up;
	bool loopback;
	bool resolves; /* neighbours have link addresses to resolve: not NOARP, not point-to-point
			*/
	uint8_t hw_addr[32]; /* IP over InfiniBand: QPN and flags, then the port's GID */
	uint8_t hw_broadcast[32];
	uint8_t hw_bytes;
	unsigned int lower; /* the interface below a VLAN, macvlan or ipvlan; 0: none, or it is in
			     * another namespace */
	bool is_vlan;
	uint8_t egress[NET_PRIORITIES]; /* VLAN: the priority of frames by that of packets */
};

/**
 * net_route_lookup() - how the kernel would send to an address
 * @dst:     destination, AF_INET or AF_INET6; a link-local one is pinned by its scope
 * @src:     source to use, or NULL
 * @ifindex: interface to use, or 0
 * @ret:     filled on success
 *
 * Return: 0, or the kernel's errno: -ENETUNREACH, -EHOSTUNREACH, -EACCES (prohibit), -EINVAL.
 */
int net_route_lookup(const union addr *dst, const union addr *src, unsigned int ifindex,
		     struct net_route *ret);

/**
 * net_route_leads_by() - is there a route to an address by this interface?
 *
 * Given an interface, the kernel takes an IPv4 destination without a route to be on its link, and
 * so does net_route_lookup(). This asks what the tables say.
 * @src: the source address, which rules may ask for
 *
 * Return: 0; -EHOSTUNREACH, -ENETUNREACH: there is none; as net_route_lookup().
 */
int net_route_leads_by(const union addr *dst, const union addr *src, unsigned int ifindex);

enum net_neigh {
	NET_NEIGH_KNOWN,   /* usable at once; also loopback, multicast, point-to-point, NOARP */
	NET_NEIGH_PENDING, /* the kernel is asking; a NET_CHANGE_NEIGH follows */
	NET_NEIGH_FAILED,  /* nobody answered; asking again may help */
	NET_NEIGH_NONE,	   /* never asked */
};

/**
 * net_neigh_state() - is the link address of a next hop known?
 * @route: from net_route_lookup()
 */
enum net_neigh net_neigh_state(const struct net_route *route);

/**
 * net_neigh_ask() - make the kernel resolve a next hop (ARP, neighbour discovery)
 * @route: from net_route_lookup()
 *
 * Needs no privileges: a process that may not write neighbour entries sends an empty datagram to
 * the next hop's discard port instead (local packet filters may stop that one). Returns at once;
 * the answer is announced by NET_CHANGE_NEIGH.
 *
 * Return: 0 or -errno.
 */
int net_neigh_ask(const struct net_route *route);

/**
 * net_neigh_revalidate() - a next hop is not heard of: let the kernel see whether its link address
 * is right
 * @route: from net_route_lookup()
 *
 * The kernel believes an answer for up to a minute, whatever a bad network made of it, or if the
 * peer has moved. Now it asks there, by unicast, while packets still leave, and three seconds later
 * everyone. Nothing happens more often than every 10 s, to an address that was set by hand, or in a
 * process without CAP_NET_ADMIN.
 */
void net_neigh_revalidate(const struct net_route *route);

/**
 * net_neigh_hw() - the link address of a next hop that is known
 * @route: from net_route_lookup(); where it is of this host, its own interface's
 * @ret:   filled, 32 bytes at most
 *
 * Return: how many bytes it has; 0 if it is not known.
 */
unsigned int net_neigh_hw(const struct net_route *route, uint8_t ret[32]);

#define NET_ETHERNET_HW_BYTES 6

/* Where an IP over InfiniBand link address (RFC 4391, 9.1.1) has its GID, and a broadcast one its
 * P_Key. */
#define NET_IPOIB_HW_BYTES 20
#define NET_IPOIB_GID_AT   4
#define NET_IPOIB_PKEY_AT  8

/**
 * net_iface_of_addr() - the interface that owns an address of this host
 * @addr: AF_INET or AF_INET6, not a wildcard; a link-local one with its scope
 * @ret:  filled on success
 *
 * Return: 0, -EADDRNOTAVAIL if no interface has it.
 */
int net_iface_of_addr(const union addr *addr, struct net_iface *ret);

/**
 * net_iface_get() - an interface by its index
 *
 * Return: 0, -ENODEV if it is gone.
 */
int net_iface_get(unsigned int ifindex, struct net_iface *ret);

/** net_iface_gid() - the port's GID in an interface's link address. Return: false if it is no IP
 * over InfiniBand. */
bool net_iface_gid(const struct net_iface *iface, struct mad_gid *ret);

/** net_iface_known() - net_iface_get() for who got the index from a look-up just now: cheaper. */
int net_iface_known(unsigned int ifindex, struct net_iface *ret);

/**
 * net_service_level() - the service level of RoCE packets, which is the priority of their frames
 * @iface: that they leave by; just looked up
 * @tos:   their type of service
 *
 * As the kernel's connection manager has it: the traffic classes of the device, or of the one below
 * a VLAN, macvlan or ipvlan; a VLAN's egress map where that one has no classes.
 *
 * Return: 0 to NET_SERVICE_LEVEL_MAX; 0 without classes and VLAN.
 */
uint8_t net_service_level(const struct net_iface *iface, uint8_t tos);

/* What the kernel announced. */
enum net_change {
	NET_CHANGE_NEIGH, /* @addr on @ifindex was resolved, lost or changed its link address;
			   * not when one that is known was merely confirmed */
	NET_CHANGE_ADDR,  /* an address came or went */
	NET_CHANGE_ROUTE, /* or a rule, or a next-hop object */
	NET_CHANGE_LINK,
	NET_CHANGE_LOST, /* the kernel dropped notifications: anything may have changed */
};

struct net_event {
	enum net_change change;
	unsigned int ifindex; /* 0 if it does not apply */
	union addr addr;      /* NEIGH, ADDR */
	enum net_neigh neigh; /* NEIGH: its state now */
	bool hw_changed;      /* NEIGH: it had another link address when net_neigh_state() was
			       * asked about it; of neighbours never asked about, always false */
	/* NEIGH: of Ethernet, if it changed; LINK: likewise of a bond that was looked up; else zero
	 */
	uint8_t hw_before[NET_ETHERNET_HW_BYTES];
	uint8_t hw[NET_ETHERNET_HW_BYTES];
};

/**
 * net_changes() - how often addresses or links have changed, as far as look-ups have seen
 *
 * What was read while this was another number may be out of date: GID tables follow both. Any
 * thread, no lock; a look-up in the same thread brings it up to date first.
 */
unsigned int net_changes(void);

/**
 * net_batch_begin() - one look at the announcements is enough for this thread's look-ups up to
 * net_batch_end()
 *
 * For those that are about messages which had all been received before: the first look-up sees what
 * was announced before any of them was sent. Reading announcements costs a system call.
 */
void net_batch_begin(void);

/** net_batch_end() - each look-up reads the announcements again. */
void net_batch_end(void);

struct net_watch;

/**
 * net_watch_open() - be told what the kernel announces from now on
 * @ret: to be given back with net_watch_close(). There can be two in a process: each is told of
 *       everything
 *
 * Return: 0; -ENOSPC if there are two; -errno.
 */
int net_watch_open(struct net_watch **ret);

/** net_watch_close() - no more; NULL is allowed. */
void net_watch_close(struct net_watch *watch);

/** net_watch_fd() - descriptor that is readable when there is something to drain */
int net_watch_fd(const struct net_watch *watch);

/**
 * net_watch_drain() - take all announcements, refresh the caches, report each
 * @report: called for each announcement, also for those that another thread took from the socket
 *          since the last drain; without any lock of this file held; may be NULL
 * @arg:    handed on
 */
void net_watch_drain(struct net_watch *watch,
		     void (*report)(const struct net_event *event, void *arg), void *arg);

/**
 * net_after_fork() - forget descriptors, watches and caches in a forked child
 *
 * The child has one thread; what another thread of the parent was doing here does not matter.
 */
void net_after_fork(void);

#endif

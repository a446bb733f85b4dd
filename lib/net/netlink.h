/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's view of IP: routes, neighbours, interfaces and their addresses, queried over
 * rtnetlink and cached for the process. A cached result is never older than the last change that
 * the kernel has announced: every lookup first drains the notifications.
 *
 * Thread-safe. No call blocks for longer than the kernel needs to answer a netlink request: one
 * lock guards the caches and is held across requests, which the kernel answers before send()
 * returns. All calls use the network namespace of the thread that called first. Needs Linux 5.0.
 */
#ifndef LIB_NET_NETLINK_H
#define LIB_NET_NETLINK_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/net/addr.h"

struct net_route {
	union addr src;	      /* chosen by the kernel, or as requested; port 0 */
	union addr next_hop;  /* gateway or destination; its link address is needed */
	unsigned int ifindex; /* interface that owns the source, or a local destination; lo only if
				 lo has the address */
	bool gateway;
	bool local;	   /* the destination is an address of this host */
	bool resolved;	   /* the link address was known at the time of the lookup */
	uint8_t hop_limit; /* of the route, or of the host or the interface */
};

#define NET_PRIORITIES	      8 /* that a type of service can map to, plus one */
#define NET_SERVICE_LEVEL_MAX 7 /* frames have three bits for it */

struct net_iface {
	unsigned int ifindex;
	char name[16];
	unsigned int mtu;
	unsigned short arp_type; /* ARPHRD_ETHER, ... */
	bool up;
	bool loopback;
	bool resolves;	     /* neighbours have link addresses: not NOARP, not point-to-point */
	uint8_t hw_addr[32]; /* IP over InfiniBand: QPN and flags, then the port's GID */
	uint8_t hw_broadcast[32];
	uint8_t hw_bytes;
	unsigned int lower; /* interface below a VLAN, macvlan or ipvlan; 0: none here */
	bool is_vlan;
	uint8_t egress[NET_PRIORITIES]; /* VLAN: frame priority by packet priority */
};

/**
 * net_route_lookup() - look up how the kernel would send to an address
 * @dst:     destination, AF_INET or AF_INET6; the scope of a link-local one selects the interface,
 *           unless another argument does
 * @src:     source to use, or NULL; a link-local one has a scope, which selects the interface
 * @ifindex: interface to use, or 0
 * @ret:     filled in on success
 *
 * Return: 0, or the kernel's -errno: -ENETUNREACH, -EHOSTUNREACH, -EACCES (prohibit), -EINVAL.
 */
int net_route_lookup(const union addr *dst, const union addr *src, unsigned int ifindex,
		     struct net_route *ret);

/**
 * net_route_leads_by() - check the tables for a route to an address through this interface
 * @src: the source address, which rules may match
 *
 * If given an interface, the kernel, and so net_route_lookup(), treats an IPv4 destination without
 * a route as on-link. This function does not.
 *
 * Return: 0; -EHOSTUNREACH, -ENETUNREACH: there is none; as net_route_lookup().
 */
int net_route_leads_by(const union addr *dst, const union addr *src, unsigned int ifindex);

enum net_neigh {
	NET_NEIGH_KNOWN,   /* usable at once; also loopback, multicast, point-to-point, NOARP */
	NET_NEIGH_PENDING, /* being resolved; a NET_CHANGE_NEIGH follows */
	NET_NEIGH_FAILED,  /* no answer; another attempt may succeed */
	NET_NEIGH_NONE,	   /* not requested */
};

/**
 * net_neigh_state() - get the state of a next hop's link address
 * @route: from net_route_lookup()
 */
enum net_neigh net_neigh_state(const struct net_route *route);

/**
 * net_neigh_ask() - make the kernel resolve a next hop (ARP, neighbour discovery)
 * @route: from net_route_lookup()
 *
 * Needs no privileges: a process that may not write neighbour entries sends an empty datagram to
 * the next hop's discard port instead, or to that of RoCE v2 where a local packet filter drops the
 * first. Returns at once; NET_CHANGE_NEIGH announces the result.
 *
 * Return: 0 or -errno.
 */
int net_neigh_ask(const struct net_route *route);

/**
 * net_neigh_revalidate() - a next hop does not answer: let the kernel verify its link address
 * @route: from net_route_lookup()
 *
 * The kernel uses an entry for up to a minute without verifying it, even if it is wrong or the peer
 * has moved. This makes it send a unicast probe, while packets still leave, and broadcast three
 * seconds later. Without CAP_NET_ADMIN an empty datagram is sent instead, as by net_neigh_ask();
 * the kernel probes five seconds after that, once the entry is no longer fresh (15 to 45 s). No
 * effect within 10 s of the last time, or on a static entry.
 */
void net_neigh_revalidate(const struct net_route *route);

/**
 * net_neigh_hw() - get the link address of a resolved next hop
 * @route: from net_route_lookup(); for a local route, the address of its own interface is returned
 * @ret:   filled in, at most 32 bytes
 *
 * Return: size of the address in bytes; 0 if unknown.
 */
unsigned int net_neigh_hw(const struct net_route *route, uint8_t ret[32]);

#define NET_ETHERNET_HW_BYTES 6

/*
 * Position of the GID in an IP over InfiniBand link address (RFC 4391, 9.1.1), and of the P_Key in
 * a broadcast one.
 */
#define NET_IPOIB_HW_BYTES 20
#define NET_IPOIB_GID_AT   4
#define NET_IPOIB_PKEY_AT  8

/**
 * net_iface_of_addr() - find the interface that owns a local address
 * @addr: AF_INET or AF_INET6, not a wildcard; a link-local one needs its scope
 * @ret:  filled in on success
 *
 * Return: 0; -EADDRNOTAVAIL if no interface has it.
 */
int net_iface_of_addr(const union addr *addr, struct net_iface *ret);

/**
 * net_iface_with_addr() - find an interface that has a local address and meets a condition
 * @addr: AF_INET or AF_INET6; a link-local one without scope may be of any link
 * @fits: the condition; calls nothing of lib/net
 *
 * Return: 0; -EADDRNOTAVAIL if there is none.
 */
int net_iface_with_addr(const union addr *addr,
			bool (*fits)(const struct net_iface *iface, const void *arg),
			const void *arg, struct net_iface *ret);

/** net_iface_has_addr() - return whether an interface has a local address; others may, too */
bool net_iface_has_addr(unsigned int ifindex, const union addr *addr);

/**
 * net_iface_get() - get an interface by its index
 *
 * Return: 0; -ENODEV if it is gone.
 */
int net_iface_get(unsigned int ifindex, struct net_iface *ret);

/**
 * net_iface_gid() - get the port's GID from an interface's link address. Return: false if it is not
 * IP over InfiniBand.
 */
bool net_iface_gid(const struct net_iface *iface, struct mad_gid *ret);

/** net_iface_known() - cheaper net_iface_get(), for an index from a lookup just made. */
int net_iface_known(unsigned int ifindex, struct net_iface *ret);

/**
 * net_service_level() - service level of RoCE packets, which is the priority of their frames
 * @iface: outgoing interface, just looked up
 * @tos:   type of service
 *
 * As in the kernel's connection manager: the traffic classes of the device, or of the device below
 * a VLAN, macvlan or ipvlan; if that one has no classes, the VLAN's egress map.
 *
 * Return: 0 to NET_SERVICE_LEVEL_MAX; 0 without classes and VLAN.
 */
uint8_t net_service_level(const struct net_iface *iface, uint8_t tos);

/* Announcements of the kernel. */
enum net_change {
	NET_CHANGE_NEIGH, /* @addr on @ifindex was resolved, lost, or changed its link address; not
			     on a mere confirmation */
	NET_CHANGE_ADDR,  /* an address was added or removed */
	NET_CHANGE_ROUTE, /* also a rule, or a next-hop object */
	NET_CHANGE_LINK,
	NET_CHANGE_LOST, /* the kernel dropped notifications: anything may have changed */
};

struct net_event {
	enum net_change change;
	unsigned int ifindex; /* 0 if not applicable */
	union addr addr;      /* NEIGH, ADDR */
	enum net_neigh neigh; /* NEIGH: current state */
	bool hw_changed;      /* NEIGH: differs from the link address of the last net_neigh_state();
				 false if there was none */
	/* NEIGH: of Ethernet, if changed; LINK: of a known bond, if changed; else zero, as are the
	   bytes after an Ethernet address */
	uint8_t hw_before[NET_IPOIB_HW_BYTES];
	uint8_t hw[NET_IPOIB_HW_BYTES];
};

/**
 * net_changes() - number of address and link changes that lookups have seen so far
 *
 * Data that was read at another number may be outdated, as GID tables follow both. Thread-safe,
 * lock-free; a lookup in the same thread updates it.
 */
unsigned int net_changes(void);

/**
 * net_batch_begin() - let this thread's lookups read the announcements only once until
 * net_batch_end()
 *
 * For lookups about messages that were all received before: the first lookup sees all changes that
 * were announced before any of them was sent. Reading announcements costs a system call.
 */
void net_batch_begin(void);

/** net_batch_end() - let each lookup read the announcements again. */
void net_batch_end(void);

/** net_catch_up() - apply what the kernel has announced by now, as each lookup does. */
void net_catch_up(void);

enum net_watch_kind {
	/* Neighbours, and changes of interfaces, that lookups of this process have asked for. */
	NET_WATCH_OWN,
	NET_WATCH_ALL, /* also all addresses, interfaces, routes, rules and next-hop objects */
};

/**
 * net_watch_open() - start watching the kernel's announcements, until net_watch_close()
 *
 * A process has one watch at a time. Lookups see every change, whatever is watched.
 *
 * Return: 0 or -errno.
 */
int net_watch_open(enum net_watch_kind kind);

/** net_watch_interfaces() - have NET_WATCH_OWN report all interfaces and addresses from now on */
void net_watch_interfaces(void);

/** net_watch_close() - stop watching; no effect if nothing is watched. */
void net_watch_close(void);

/** net_watch_fd() - descriptor that is readable when there is something to drain */
int net_watch_fd(void);

/**
 * net_watch_drain() - read all announcements, update the caches, report each
 * @report: called for each announcement, also for those that other threads have read since the last
 *          drain; no lock of this file is held; may be NULL
 * @arg:    passed to @report
 */
void net_watch_drain(void (*report)(const struct net_event *event, void *arg), void *arg);

/**
 * net_after_fork() - in a forked child: drop descriptors, the watch and caches
 *
 * The child has one thread; the state in which the parent's threads left them does not matter.
 */
void net_after_fork(void);

#endif

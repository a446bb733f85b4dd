/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the files behind netlink.h: netlink.c owns the sockets and the lock, watch.c the
 * announcements, route.c, neigh.c and iface.c one cache each.
 *
 * There is one lock. It is held across a request to the kernel, which responds to rtnetlink
 * requests before send() returns: the wait is for the kernel's work on that request only, never for
 * a peer or another process.
 */
#ifndef LIB_NET_INTERNAL_H
#define LIB_NET_INTERNAL_H

#include <netlink/msg.h>

#include "lib/net/netlink.h"

/* An address as a key: without port and padding, scope only for IPv6 link-local. */
struct net_ip {
	uint8_t bytes[16];
	uint32_t scope;
	uint32_t family; /* 0: none */
};

/** net_ip_of() - key of an address; all zero for NULL. */
struct net_ip net_ip_of(const union addr *addr);

/** net_ip_to_addr() - address of a key, port 0. */
void net_ip_to_addr(const struct net_ip *ip, union addr *ret);

/** net_ip_from_attr() - key from an attribute; @ifindex is the scope of a link-local address. */
struct net_ip net_ip_from_attr(unsigned int family, const struct nlattr *attr,
			       unsigned int ifindex);

/**
 * net_message() - allocate a request: its header, with room for a page of attributes
 *
 * No request needs a tenth of that, so adding attributes does not fail.
 *
 * Return: the message, for net_request(); NULL when out of memory.
 */
struct nl_msg *net_message(int type, int flags, void *header, size_t bytes);

/** net_ip_put() - add an address attribute to a request. */
void net_ip_put(struct nl_msg *msg, int type, const struct net_ip *ip);

/** net_ip_bytes() - size of the address, 4 or 16. */
unsigned int net_ip_bytes(const struct net_ip *ip);

/**
 * net_enter() - open the sockets, take the lock, and process all announcements
 *
 * Disables cancellation until net_leave(): a cancelled thread would leave the lock held.
 *
 * Return: 0 with the lock held, or -errno without it.
 */
int net_enter(void);

/**
 * net_reenter() - take the lock again after a lookup by the same thread; leaves later announcements
 * to the next lookup. Never fails.
 */
void net_reenter(void);

/** net_leave() - release the lock. */
void net_leave(void);

/**
 * net_request() - send one rtnetlink request and process the response; lock held
 * @msg:  from net_message(); freed here; NULL is -ENOMEM
 * @take: called for each message of the response
 * @arg:  passed to @take
 *
 * Return: 0 after the last message; the kernel's -errno; or the nonzero result of @take.
 */
int net_request(struct nl_msg *msg, int (*take)(struct nlmsghdr *hdr, void *arg), void *arg);

/** net_request_after_fork() - drop the socket and reset the lock, for net_after_fork(). */
void net_request_after_fork(void);

/**
 * net_announcements_want() - receive the announcements about a neighbour from now on; lock held
 *
 * Before it is looked up, so that no change is missed.
 */
void net_announcements_want(const struct net_ip *ip);

/** net_announcements_want_link() - wake the watches for announcements about an interface; lock held
 */
void net_announcements_want_link(unsigned int ifindex);

/**
 * net_filter_attach() - have a netlink socket receive the wanted announcements only, now and when
 * more are wanted; -1: none
 */
void net_filter_attach(int fd);

/** net_filter_forget() - nothing is wanted; for net_after_fork(). */
void net_filter_forget(void);

/** net_announcements_take() - apply all announcements to the caches, and queue reports; lock held.
 */
void net_announcements_take(void);

/** net_route_flush(), net_iface_flush(), net_neigh_flush() - empty the cache; lock held. */
void net_route_flush(void);
void net_iface_flush(void);
void net_neigh_flush(void);

/**
 * net_iface_after_fork(), net_neigh_after_fork() - for net_after_fork(): forget the caches, whose
 * memory is leaked, as another thread may have been changing them
 */
void net_iface_after_fork(void);
void net_neigh_after_fork(void);

/** net_class_changes() - number of changes of queueing disciplines and DCB so far; lock held. */
unsigned int net_class_changes(void);

/* Traffic classes of an interface. */
struct net_classes {
	unsigned int ifindex;
	unsigned int n;
	uint8_t class[NET_PRIORITIES]; /* by priority */
};

/**
 * net_dcb_classes() - get the traffic classes that a driver has set up by DCB; lock held
 *
 * Return: the classes, until the next call; NULL if there are none.
 */
const struct net_classes *net_dcb_classes(const struct net_iface *iface);

/** net_queues_have_classes() - read in @folder of sysfs whether a queue has a class other than 0.
 */
bool net_queues_have_classes(const char *folder);

/**
 * net_neigh_announced() - apply an RTM_NEWNEIGH or RTM_DELNEIGH to the cache; lock held
 * @hdr:   the message
 * @event: filled in if there is something to report
 *
 * Return: true if it contains a change.
 */
bool net_neigh_announced(struct nlmsghdr *hdr, struct net_event *event);

/** net_neigh_is_known() - true if net_neigh_state() is KNOWN by the announcements; lock held. */
bool net_neigh_is_known(const struct net_route *route);

/**
 * net_iface_announced() - a link has changed: empty the cache of interfaces; lock held
 * @hdr:   the announcement
 * @event: sets ifindex, and the link addresses if those of a bond have changed
 */
void net_iface_announced(struct nlmsghdr *hdr, struct net_event *event);

/** net_iface_fetch() - net_iface_get() with the lock held. */
int net_iface_fetch(unsigned int ifindex, struct net_iface *ret);

/**
 * net_owner_of_ip() - find the interface with an address; lock held
 * @ip:     not a wildcard; a link-local address without a scope may be on any interface
 * @prefer: the interface to prefer if several have it, or 0
 *
 * Return: its index; -EADDRNOTAVAIL; -errno of the request.
 */
int net_owner_of_ip(const struct net_ip *ip, unsigned int prefer);

#endif

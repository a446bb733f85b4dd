/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files behind netlink.h share: netlink.c owns the sockets and the lock, watch.c
 * what was announced, route.c, neigh.c and iface.c a cache each.
 *
 * There is one lock. It is held across a request to the kernel, which answers rtnetlink requests
 * before send() returns: the wait is for the kernel's work on that request, never for a peer or
 * another process.
 */
#ifndef LIB_NET_INTERNAL_H
#define LIB_NET_INTERNAL_H

#include <netlink/msg.h>

#include "lib/net/netlink.h"

/* An address as a key: no port, no padding, scope only for IPv6 link-local. */
struct net_ip {
	uint8_t bytes[16];
	uint32_t scope;
	uint32_t family; /* 0: none */
};

/** net_ip_of() - the key of an address; all zero for NULL. */
struct net_ip net_ip_of(const union addr *addr);

/** net_ip_to_addr() - the address of a key, port 0. */
void net_ip_to_addr(const struct net_ip *ip, union addr *ret);

/** net_ip_from_attr() - the address in an attribute; @ifindex scopes a link-local one. */
struct net_ip net_ip_from_attr(unsigned int family, const struct nlattr *attr,
			       unsigned int ifindex);

/**
 * net_message() - a request: its header, with room for a page of attributes
 *
 * None of our requests needs a tenth of that: adding attributes does not fail.
 *
 * Return: the message, for net_request(), or NULL out of memory.
 */
struct nl_msg *net_message(int type, int flags, void *header, size_t bytes);

/** net_ip_put() - add an address to a request. */
void net_ip_put(struct nl_msg *msg, int type, const struct net_ip *ip);

/** net_ip_bytes() - 4 or 16. */
unsigned int net_ip_bytes(const struct net_ip *ip);

/**
 * net_enter() - take the lock, with sockets open and all announcements worked in
 *
 * The thread cannot be cancelled until net_leave(): the lock would stay taken.
 *
 * Return: 0 with the lock held, or -errno without it.
 */
int net_enter(void);

/** net_reenter() - take it again, after a look-up by the same thread: what has been announced since
 * is for the next one. Never fails. */
void net_reenter(void);

/** net_leave() - give the lock back. */
void net_leave(void);

/**
 * net_request() - one rtnetlink request and its answer; lock held
 * @msg:  from net_message(); freed here; NULL is -ENOMEM
 * @take: called for each message of the answer
 * @arg:  handed on
 *
 * Return: 0 after the last message, the kernel's -errno, or what @take returned if not 0.
 */
int net_request(struct nl_msg *msg, int (*take)(struct nlmsghdr *hdr, void *arg), void *arg);

/** net_request_after_fork() - forget the socket and the lock, for net_after_fork(). */
void net_request_after_fork(void);

/** net_news_take() - work all announcements into the caches and queue reports; lock held. */
void net_news_take(void);

/** net_route_flush(), net_iface_flush(), net_neigh_flush() - forget all; lock held. */
void net_route_flush(void);
void net_iface_flush(void);
void net_neigh_flush(void);

/** net_qdisc_changes() - how often queueing disciplines have changed; lock held. */
unsigned int net_qdisc_changes(void);

/**
 * net_neigh_announced() - work a RTM_NEWNEIGH or RTM_DELNEIGH into the cache; lock held
 * @hdr:   the message
 * @event: filled if there is something to report
 *
 * Return: whether it says anything new.
 */
bool net_neigh_announced(struct nlmsghdr *hdr, struct net_event *event);

/** net_neigh_is_known() - net_neigh_state() is KNOWN, as far as was announced; lock held. */
bool net_neigh_is_known(const struct net_route *route);

/**
 * net_iface_announced() - a link has changed: empty the cache of interfaces; the lock is held
 * @hdr:   the kernel's announcement
 * @event: its ifindex is filled, and its link addresses if a bond's has changed
 */
void net_iface_announced(struct nlmsghdr *hdr, struct net_event *event);

/** net_iface_fetch() - net_iface_get() with the lock held. */
int net_iface_fetch(unsigned int ifindex, struct net_iface *ret);

/**
 * net_owner_of_ip() - interface that has an address; lock held
 * @ip:     not a wildcard
 * @prefer: the one to name if several have it, or 0
 *
 * Return: its index, -EADDRNOTAVAIL, or -errno of the request.
 */
int net_owner_of_ip(const struct net_ip *ip, unsigned int prefer);

#endif

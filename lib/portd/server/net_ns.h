/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Network namespaces of clients. As in the kernel each namespace has port spaces of its own, and a
 * request belongs to the one that has the interface of the GID it came to. That is the one that
 * cmportd runs in, home, unless a client's has shown by its netlink socket that it is there.
 */
#ifndef LIB_PORTD_SERVER_NET_NS_H
#define LIB_PORTD_SERVER_NET_NS_H

#include "base/list.h"
#include "base/time.h"
#include "lib/net/foreign.h"
#include "lib/net/gid.h"
#include "lib/portd/server/ports.h"

#define NET_NS_GIDS 64

struct net_ns {
	struct list link; /* of all others in those of home */
	uint64_t cookie;  /* the kernel's name of the namespace, 0 if it does not say */
	unsigned int n_clients;
	uint64_t seed;
	struct ports *ports;
	int netlink_fd; /* of this namespace; -1: none, as for home */
	struct cm_time read_at;
	unsigned int n_gids;
	struct net_foreign gid[NET_NS_GIDS]; /* as they were then */
};

/** net_ns_home() - make our own one. Return: NULL when out of memory. */
struct net_ns *net_ns_home(uint64_t seed);

/** net_ns_home_free() - and whatever other is left; NULL is allowed. */
void net_ns_home_free(struct net_ns *home);

/**
 * net_ns_enter() - a client has connected
 * @fd: its socket, which the kernel made in the namespace of whoever connected
 *
 * Return: where it comes from, to be given back with net_ns_leave(); NULL when out of memory.
 */
struct net_ns *net_ns_enter(struct net_ns *home, int fd);

/**
 * net_ns_made() - was a socket made in this network namespace?
 *
 * Return: false also if the kernel does not say.
 */
bool net_ns_made(const struct net_ns *net_ns, int fd);

/** net_ns_leave() - a client disconnected; it has released its ports. */
void net_ns_leave(struct net_ns *home, struct net_ns *net_ns);

/**
 * net_ns_show() - a client brings a netlink socket of its namespace
 * @fd: the namespace's from now on, unless it is none of it, or it has one: then it is closed
 */
void net_ns_show(struct net_ns *home, struct net_ns *net_ns, int fd);

/** net_ns_of_gid() - which namespace has the interface of a GID of this host; home if none says so
 */
struct net_ns *net_ns_of_gid(struct net_ns *home, const struct gid_entry *gid, struct cm_time now);

/** net_ns_listener() - as ports_listener(), in @net_ns; listeners elsewhere are not for this
 * request.
 */
uint16_t net_ns_listener(struct net_ns *home, const struct net_ns *net_ns, uint64_t service_id,
			 const uint8_t *data, uint64_t handles);

#endif

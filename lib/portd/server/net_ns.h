/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Network namespaces of clients. As in the kernel each namespace has port spaces of its own, and a
 * request belongs to the one that the RDMA devices' interfaces are in, which is the one that
 * cmportd runs in: home.
 */
#ifndef LIB_PORTD_SERVER_NET_NS_H
#define LIB_PORTD_SERVER_NET_NS_H

#include "base/list.h"
#include "lib/portd/server/ports.h"

struct net_ns {
	struct list link; /* of all others in those of home */
	uint64_t cookie;  /* the kernel's name of the namespace, 0 if it does not say */
	unsigned int n_clients;
	uint64_t seed;
	struct ports *ports;
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

/** net_ns_listener() - as ports_listener(), at home; listeners elsewhere are not for any request.
 */
uint16_t net_ns_listener(struct net_ns *home, uint64_t service_id, const uint8_t *data);

#endif

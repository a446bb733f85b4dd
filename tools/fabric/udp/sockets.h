/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sockets that RoCE v2 is sent from, used by out.c.
 *
 * One socket for each IP version can send everything: control messages name the source address, the
 * hop limit and the traffic class. They cost a tenth of the bandwidth between emulated machines, so
 * up to UDP_BOUND_MAX sockets are bound to an IPv4 source address and have the others as options.
 * There are none for IPv6: Linux would go on using an address that was removed.
 *
 * No socket is connected, so that Linux sends identification 0: roce/icrc.h.
 */
#ifndef FABRIC_UDP_SOCKETS_H
#define FABRIC_UDP_SOCKETS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/loop.h"

#define UDP_BOUND_MAX 8

/* What an IP header has, apart from its destination. hop_limit is not 0. */
struct udp_flow {
	union ibv_gid sgid;
	uint8_t hop_limit, traffic_class;
};

struct udp_socket {
	int fd; /* -1: this host does not support this version */
	uint16_t port;
	bool has_segments; /* as far as is known, the kernel splits bursts */
	bool is_bound;	   /* to flow: no control messages are needed */
	struct udp_flow flow;
	struct watch room;
};

struct udp_sockets {
	uint32_t vrf; /* that all are bound to, see vrf.h; 0: none */
	struct udp_socket v4, v6, bound[UDP_BOUND_MAX];
	unsigned int n_bound;
};

/** udp_sockets_clear() - initialize without opening; udp_sockets_close() is allowed */
void udp_sockets_clear(struct udp_sockets *sockets);

/**
 * udp_sockets_open() - open the sockets that are not bound to a source
 * @vrf: for all sockets, see vrf.h
 *
 * Return: 0, or -errno if neither version works.
 */
int udp_sockets_open(struct udp_sockets *sockets, uint32_t vrf);

/** udp_sockets_close() - close all. May be called repeatedly. */
void udp_sockets_close(struct udp_sockets *sockets);

/**
 * udp_sockets_find() - find the socket for packets of a flow to an address, opening it if necessary
 *
 * Return: a bound socket, or, if there is none, the one for the destination's IP version, whose
 * descriptor may be -1.
 */
struct udp_socket *udp_sockets_find(struct udp_sockets *sockets, const struct udp_flow *flow,
				    const union ibv_gid *dgid);

/** udp_address() - convert a GID to a socket address. Return: its size. */
socklen_t udp_address(const union ibv_gid *gid, uint16_t port, uint32_t ifindex,
		      struct sockaddr_storage *ret);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's view of IP (lib/net/netlink.h) for a test: one interface with an address, and a
 * route to everything. Before fake_net_begin() it is the host's.
 */
#ifndef TESTS_UNIT_LIB_FAKE_NET_H
#define TESTS_UNIT_LIB_FAKE_NET_H

#include "lib/net/netlink.h"

#define FAKE_IFINDEX 7

struct fake_net {
	union addr own;
	unsigned int mtu;	    /* of interfaces; 0: 1500 */
	int route_err;		    /* of net_route_lookup(), 0 or -errno */
	int tables_err;		    /* of net_route_leads_by(), 0 or -errno */
	bool is_resolved;	    /* the neighbour of a new route is resolved */
	unsigned int leaves_by;	    /* the interface of routes, 0: FAKE_IFINDEX */
	unsigned int asked_ifindex; /* of the last route; 0: any */
	uint8_t levels[4];	    /* by bits 3 and 4 of a type of service */
	enum net_neigh neigh;
	unsigned int n_neigh_asked;
	uint8_t hw_broadcast[32]; /* of interfaces, if .hw_bytes is not 0 */
	uint8_t hw_addr[32];	  /* likewise */
	uint8_t hw_bytes;
	int join_err;	  /* of membership_join() */
	int n_joined;	  /* groups that this process is a member of */
	union addr group; /* the group that was joined or left last */
};

extern struct fake_net fake_net;

/** fake_net_begin() - replace the host's network. @own: the host's address */
void fake_net_begin(const union addr *own);

#endif

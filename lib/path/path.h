/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A path: from a GID of a port of this host to a GID of a peer's, and what packets between them
 * carry. There is one form of it in the library, for RoCE and for InfiniBand. What the two do their
 * own way is a row of functions each (roce.c, infiniband.c; the table is in path.c): nobody else
 * asks which of them a path is.
 *
 * A path grows: path_bind() and path_find() know our end, the route and the next hop; path_meet()
 * the peer's end; path_complete() or path_take_record() what a path record says. A path of a
 * request is read from the message. From it are made: the path of MADs, the primary path of a REQ,
 * address vectors, and the record that programs see.
 *
 * This room may call devices, the network, the engine and cmportd; it knows nothing of ids.
 */
#ifndef LIB_PATH_PATH_H
#define LIB_PATH_PATH_H

#include <infiniband/sa.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/device/device.h"
#include "lib/net/gid.h"
#include "lib/net/netlink.h"
#include "lib/net/port_space.h"
#include "lib/portd/proto/proto.h"
#include "mad/cm_msg.h"
#include "mad/port.h"
#include "mad/sa_msg.h"

/* Numbers are in host byte order. */
struct path {
	struct gid_entry gid; /* our end, where packets leave; .verbs is NULL while it is unknown */
	struct port *port;    /* NULL until the CM class of the port is ours */
	struct net_route route; /* of IP addresses */
	struct mad_gid dgid;	/* the peer's end; zero while it is unknown */
	union ibv_gid sgid;	/* our end as the record names it */
	uint32_t flow_label;
	uint16_t pkey;
	uint16_t pkey_index;
	uint16_t dlid; /* InfiniBand: the peer's LID and ours */
	uint16_t slid;
	uint8_t path_bits; /* of our LID */
	uint8_t hop_limit; /* as the record says it */
	uint8_t traffic_class;
	uint8_t sl;
	uint8_t mtu;  /* enum ibv_mtu */
	uint8_t rate; /* enum ibv_rate */
	uint8_t packet_life_time;
	bool is_reversible;
	bool loopback; /* 127.0.0.1 or ::1: resolves, but leads nowhere */
};

/* What a path is wanted for. */
struct path_query {
	const struct port_claim *claim; /* both addresses; the local one may be a wildcard */
	unsigned int ifindex;		/* the interface to leave by, or 0 */
	uint64_t service_id;		/* at the peer */
	bool has_tos;			/* the program has chosen it */
	uint8_t tos;
	bool has_packet_life_time; /* the program has chosen it */
	uint8_t packet_life_time;
};

/* --- growing -------------------------------------------------------------- */

/**
 * path_bind() - our end, by a local address; no lock is held
 * @ps:  RDMA_PS_*
 * @ret: zero; nothing is filled in for a wildcard or loopback address, which names no device
 *
 * Return: 0; -EADDRNOTAVAIL: no interface has the address; -ENODEV: it has no device; -EINVAL: it
 * is link-local without a scope, or its device does not suit the port space.
 */
int path_bind(const union addr *local, uint16_t ps, struct path *ret);

/**
 * path_find() - our end, the route and the port of a path to claim->peer; no lock is held
 * @ret:        zero; filled; .port is the caller's to give back with port_put()
 * @ret_status: 0; -ENODEV, -EINVAL: there is a route, but no device for it
 *
 * Return: 0; as net_route_lookup(), as device_port_open(); -ENODEV.
 */
int path_find(const struct path_query *query, struct path *ret, int *ret_status);

/**
 * path_meet() - the next hop's link address is known: the peer's GID
 * @peer: its address
 *
 * Return: 0; -EADDRNOTAVAIL behind a router, whose GID is not the peer's; -ENOENT: the port is not
 * in the interface's partition; -EHOSTUNREACH: no such link address.
 */
int path_meet(struct path *path, const union addr *peer);

/**
 * path_complete() - all that a record says, unless somebody has to be asked for it
 * @ret_question: filled if the subnet administrator has to be asked
 *
 * Return: 0; -EINPROGRESS: ask, and hand the answer to path_take_record(); -ENODEV: the interface
 * is gone; -EINVAL: its MTU is too small for RDMA.
 */
int path_complete(struct path *path, const struct path_query *query, struct sa_msg *ret_question);

/**
 * path_take_record() - a record of the subnet administrator, of ibacm or of the program
 *
 * Whether it leads to the peer cannot be told. Where packets leave does not change.
 */
void path_take_record(struct path *path, const struct sa_path *record);

/* --- of requests ---------------------------------------------------------- */

/**
 * path_of_request() - the path back to who sent a REQ or SIDR_REQ
 * @port: where it came in; no reference is taken
 * @ret:  filled but for the route
 *
 * Return: 0; -EINVAL: what the REQ calls ours is not; -ENODEV; -ENOENT: the port is not in the
 * partition.
 */
int path_of_request(struct port *port, const struct cm_conn *conn, const struct cm_msg *msg,
		    struct path *ret);

/** path_is_native() - are GIDs addresses there (AF_IB), so that a request needs no IP addresses? */
bool path_is_native(const struct path *path);

/**
 * path_lead_back() - look up the route from our IP address to the peer's
 *
 * Return: 0; -EINVAL: the request did not come in by the port that has our address, or the route
 * leaves by another interface; another -errno of a look-up.
 */
int path_lead_back(struct path *path, const union addr *us, const union addr *peer);

/**
 * path_of_alternate() - the alternate path that a REQ may name, IBTA vol. 1, 12.7.20
 * @primary: of the same REQ
 * @ret:     .gid.verbs is NULL if it names none, as on RoCE
 *
 * Return: 0; -EINVAL: no port of this device has that GID; -ENOENT: that port is not in the
 * partition.
 */
int path_of_alternate(const struct path *primary, const struct cm_req *req, struct path *ret);

/* --- in other forms ------------------------------------------------------- */

/**
 * path_check_pkey() - may a request name the path's P_Key?
 *
 * Return: 0; -ENOENT: the port is not in that partition.
 */
int path_check_pkey(const struct path *path);

/**
 * path_follow() - our end as the port has it now: an address that went and came back has another
 * index, and the one it had may be another address's
 *
 * Return: as gid_follow().
 */
int path_follow(const struct path *path, struct gid_entry *ret);

/** path_is_in_place() - as gid_is_in_place(), of our end */
bool path_is_in_place(const struct path *path);

/** path_to_mad() - the way of messages to the peer's connection manager */
void path_to_mad(const struct path *path, struct mad_path *ret);

/**
 * path_to_req() - the primary path of a REQ, IBTA vol. 1, 12.7
 * @ca_ack_delay: of our device, encoded
 */
void path_to_req(const struct path *path, uint8_t ca_ack_delay, struct cm_req_path *ret);

/** path_to_ah() - the address vector of a queue pair, and of an address handle */
void path_to_ah(const struct path *path, struct ibv_ah_attr *ret);

/** path_to_record() - the path as programs see it in id->route.path_rec */
void path_to_record(const struct path *path, struct ibv_sa_path_rec *ret);

/**
 * path_show() - P_Key and GIDs as programs see them
 * @io: holds the GIDs of both addresses
 */
void path_show(const struct path *path, struct rdma_ib_addr *io);

/**
 * path_revalidate() - the path led nowhere: may the subnet administrator know of another?
 * @ret: to be sent with subnet_send()
 *
 * Return: whether cmportd has to be told.
 */
bool path_revalidate(const struct path *path, struct portd_record *ret);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A path from a GID of a local port to a GID of a peer, with the packet attributes. The library
 * uses this form for both RoCE and InfiniBand. Operations that differ between them are in a table
 * of functions each (roce.c, infiniband.c; path.c selects one): no other code asks for the type.
 *
 * A path is completed in steps: path_bind() and path_find() set the local end, the route and the
 * next hop; path_set_peer() the peer's end; path_complete() or path_take_record() the contents of a
 * path record. The path of a request is read from the message. Paths are converted to MAD paths,
 * primary paths of REQs, address vectors, and the records that programs see.
 *
 * This folder may call lib/device, lib/net, lib/engine and the client of cmportd; it knows no ids.
 */
#ifndef LIB_PATH_PATH_H
#define LIB_PATH_PATH_H

#include <infiniband/sa.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/device/device.h"
#include "lib/net/gid_table.h"
#include "lib/net/netlink.h"
#include "lib/net/port_space.h"
#include "lib/portd/proto/proto.h"
#include "mad/cm_msg.h"
#include "mad/port.h"
#include "mad/sa_msg.h"

#define PATH_NO_PKEY UINT16_MAX

/* Integers are in host byte order. */
struct path {
	struct gid_entry gid;	/* local end; .verbs is NULL while unknown */
	struct port *port;	/* NULL until it delivers CM messages */
	struct net_route route; /* of IP addresses */
	struct mad_gid dgid;	/* the peer's end; zero while unknown */
	union ibv_gid sgid;	/* local end as in the record */
	uint32_t flow_label;
	uint16_t pkey;
	uint16_t pkey_index; /* PATH_NO_PKEY: the port is not in the partition */
	uint16_t dlid;	     /* InfiniBand: the peer's and the local LID */
	uint16_t slid;
	uint8_t path_bits; /* of the local LID */
	uint8_t hop_limit; /* as in the record */
	uint8_t traffic_class;
	uint8_t sl;
	uint8_t mtu;  /* enum ibv_mtu */
	uint8_t rate; /* enum ibv_rate */
	uint8_t packet_life_time;
	bool is_reversible;
	bool loopback; /* 127.0.0.1 or ::1: resolves, but reaches no peer */
};

/* The purpose of a path. */
struct path_query {
	const struct port_claim *claim; /* both addresses; the local one may be a wildcard */
	unsigned int ifindex;		/* outgoing interface, or 0 for any */
	uint64_t service_id;		/* at the peer */
	bool has_tos;			/* set by the program */
	uint8_t tos;
	bool has_packet_life_time; /* set by the program */
	uint8_t packet_life_time;
};

/* --- completion in steps -------------------------------------------------- */

/**
 * path_bind() - set the local end from a local address; no lock is held
 * @ps:  RDMA_PS_*
 * @ret: zeroed; stays so for a wildcard or loopback address, which identifies no device
 *
 * Return: 0; -EADDRNOTAVAIL: no interface has the address; -ENODEV: the interface has no device;
 * -EINVAL: the address is link-local without a scope, or its device does not suit the port space.
 */
int path_bind(const union addr *local, uint16_t ps, struct path *ret);

/**
 * path_find_pkey() - find a P_Key at the port of a local end; no lock is held
 *
 * Return: the index; 0 over RoCE; PATH_NO_PKEY.
 */
uint16_t path_find_pkey(const struct gid_entry *gid, uint16_t pkey);

/**
 * path_find() - find local end, route and port for a path to claim->peer; no lock is held
 * @ret:        zeroed; filled in; the caller releases .port with port_put()
 * @ret_status: 0; -ENODEV, -EINVAL: there is a route, but no device for it
 *
 * Return: 0; -errno as net_route_lookup() or device_port_open(); -ENODEV.
 */
int path_find(const struct path_query *query, struct path *ret, int *ret_status);

/**
 * path_ask_port() - query the attributes of the port that path_set_peer() needs; no lock is held
 */
void path_ask_port(const struct path *path);

/**
 * path_set_peer() - set the peer's GID, once the next hop's link address is known
 * @peer: address of the peer
 *
 * Return: 0; -EADDRNOTAVAIL behind a router, whose GID is not the peer's; -ENOENT: the port is not
 * in the interface's partition; -EHOSTUNREACH: no such link address.
 */
int path_set_peer(struct path *path, const union addr *peer);

/**
 * path_complete() - set the contents of a path record, unless a query is needed
 * @ret_question: filled in if the subnet administrator must be queried
 *
 * Return: 0; -EINPROGRESS: query, and pass the response to path_take_record(); -ENODEV: the
 * interface is gone; -EINVAL: its MTU is too small for RDMA.
 */
int path_complete(struct path *path, const struct path_query *query, struct sa_msg *ret_question);

/**
 * path_take_record() - set the contents of a path record: from SA, ibacm, or the program
 *
 * Does not check that the record leads to the peer. The local end does not change.
 */
void path_take_record(struct path *path, const struct sa_path *record);

/* --- paths of requests ---------------------------------------------------- */

/**
 * path_prepare() - query the attributes of a port that path_of_request() needs; no lock is held
 *
 * Cached attributes are not queried again.
 */
void path_prepare(struct port *port);

/**
 * path_of_request() - the path back to the sender of a REQ or SIDR_REQ
 * @port: port that received it; no reference is taken
 * @ret:  filled in, except the route
 *
 * Return: 0; -EINVAL: the local address in the REQ is not ours; -ENODEV; -ENOENT: the port is not
 * in the partition.
 */
int path_of_request(struct port *port, const struct cm_conn *conn, const struct cm_msg *msg,
		    struct path *ret);

/** path_is_native() - true if GIDs are addresses (AF_IB), and requests need no IP addresses */
bool path_is_native(const struct path *path);

/**
 * path_find_return_route() - look up the route from the local IP address to the peer's
 * @us, @peer: link-local ones get the scope of the interface, unknown before on InfiniBand
 *
 * Return: 0; -EINVAL or -EADDRNOTAVAIL: another port than the receiving one has the local address,
 * or the route leaves by another interface; other -errno of a lookup.
 */
int path_find_return_route(struct path *path, union addr *us, union addr *peer);

/**
 * path_of_alternate() - the alternate path of a REQ, if any, IBTA vol. 1, 12.7.20
 * @primary: primary path of the REQ
 * @ret:     .gid.verbs is NULL if there is none
 *
 * Return: 0; -EINVAL: no port of this device has that GID, or there are none over RoCE; -ENOENT:
 * that port is not in the partition.
 */
int path_of_alternate(const struct path *primary, const struct cm_req *req, struct path *ret);

/* --- conversions ----------------------------------------------------------- */

/**
 * path_check_pkey() - check that the port is in the path's partition
 *
 * Return: 0; -ENOENT: the port is not in that partition.
 */
int path_check_pkey(const struct path *path);

/**
 * path_follow() - the current GID entry of the local end
 *
 * The index changes when an address is removed and added again, and another address may then have
 * the old index.
 *
 * Return: as gid_follow().
 */
int path_follow(const struct path *path, struct gid_entry *ret);

/** path_is_in_place() - as gid_is_in_place(), for the local end */
bool path_is_in_place(const struct path *path);

/** path_to_mad() - convert to a path to the peer's connection manager */
void path_to_mad(const struct path *path, struct mad_path *ret);

/**
 * path_to_req() - convert to the primary path of a REQ, IBTA vol. 1, 12.7
 * @ca_ack_delay: of the local device, encoded
 */
void path_to_req(const struct path *path, uint8_t ca_ack_delay, struct cm_req_path *ret);

/** path_to_ah() - convert to the address vector of a queue pair or an address handle */
void path_to_ah(const struct path *path, struct ibv_ah_attr *ret);

/** path_to_record() - convert to the record that programs see in id->route.path_rec */
void path_to_record(const struct path *path, struct ibv_sa_path_rec *ret);

/**
 * path_fill_ib_addr() - set the P_Key and GIDs that programs see
 * @io: in: GIDs of both addresses
 */
void path_fill_ib_addr(const struct path *path, struct rdma_ib_addr *io);

/**
 * path_revalidate() - report that a path does not work, so that the SA is queried again
 * @ret: the report, for subnet_send()
 *
 * Return: true if there is a report to send.
 */
bool path_revalidate(const struct path *path, struct portd_record *ret);

#endif

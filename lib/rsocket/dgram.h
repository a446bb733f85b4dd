/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagram sockets: a UDP socket, whose descriptor the program holds, and a queue pair for each
 * local address in use. The first datagram to a peer is sent over UDP and asks for the peer's queue
 * pair; later ones use that queue pair.
 *
 * Datagrams that do not fit into a packet of the device's port always use UDP.
 *
 * The handle's lock protects all members.
 */
#ifndef LIB_RSOCKET_DGRAM_H
#define LIB_RSOCKET_DGRAM_H

#include <rdma/rdma_cma.h>

#include "base/hash.h"
#include "lib/rsocket/dgram_wire.h"
#include "lib/rsocket/rsock.h"
#include "lib/rsocket/service_thread.h"

/* A received datagram. */
struct dgram_packet {
	struct list link; /* in dgram.packets, or alone */
	union addr from;
	struct dgram_qp *qp; /* NULL: received over UDP, freed once read */
	const uint8_t *data;
	uint32_t bytes;
};

/* A queue pair on the device of a local address. */
struct dgram_qp {
	struct list link; /* in dgram.qps */
	union addr local;
	struct rdma_cm_id *id;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	bool armed;
	bool is_roce;
	bool is_broken; /* until all requests have completed; then it is restarted */
	uint32_t mtu;	/* bytes of payload of a packet */
	uint32_t n_slots;
	uint8_t *memory; /* receive slots, send slots, and what exceeds a receive slot */
	struct ibv_mr *mr;
	struct dgram_packet *packet; /* one per receive slot */
	uint32_t *spare;	     /* free send slots */
	uint32_t n_spare;
	uint32_t *idle; /* receive slots to be posted by a restart */
	uint32_t n_idle;
	uint32_t n_posted; /* receives */
	uint32_t inline_bytes;
};

/* A peer, identified by its UDP address. */
struct dgram_dest {
	struct hash_node node; /* by addr */
	struct list recent;    /* in dgram.recent */
	union addr addr;
	struct dgram_qp *qp;
	struct ibv_ah *ah; /* NULL: unknown */
	uint32_t qpn;
	struct dgram *owner;
	struct serviced resolving; /* service's lock */
	struct rdma_cm_id *id;	   /* set while resolving; service's lock */
	bool is_held;		   /* by the service thread, while resolving, too */
};

struct dgram {
	struct rsock base; /* first; fd: the UDP socket */
	int domain;
	uint32_t sq_size;
	uint32_t rq_size;
	uint32_t inline_size;
	int epoll_fd; /* of the completion channels */
	struct list qps;
	struct hash dests;
	uint64_t secret;	  /* key of the table */
	struct list recent;	  /* dests, the latest first */
	unsigned int n_resolving; /* of them; service's lock */
	struct list packets;	  /* received, unread */
	uint32_t n_copies;	  /* of packets, those received over UDP */
	union addr peer;	  /* of rconnect() */
	bool has_peer;
	bool has_ended;		     /* rshutdown(): receives do not wait */
	int error;		     /* -errno: a queue pair cannot be restarted */
	struct timeval recv_timeout; /* those of the UDP socket */
	struct timeval send_timeout;
	struct serviced udp;
	bool is_udp_full; /* a datagram had no room in the UDP socket */
	bool awaits_udp;  /* that there is some: epoll_fd has it, too */
};

static inline struct dgram *dgram_of(struct rsock *rs)
{
	return (struct dgram *)rs;
}

/** dgram_open() - rsocket() for SOCK_DGRAM. Return: 0 or -errno. */
int dgram_open(int domain, struct rsock **ret);

/* --- dgram_qp.c ---------------------------------------------------------- */

/**
 * dgram_qp_for() - the queue pair to send to a peer from, created if necessary
 *
 * Return: 0 or -errno, ENODEV if the route uses no RDMA device.
 */
int dgram_qp_for(struct dgram *d, const union addr *peer, struct dgram_qp **ret);

/**
 * dgram_qp_make() - create the queues, and memory for all their datagrams, and post all receives
 * @qp: zeroed, except for its id, which has a device
 *
 * Adds @qp to the socket, and notifies its watches. The lock must be held.
 *
 * Return: 0 or -errno; what was created before is released by dgram_qp_free().
 */
int dgram_qp_make(struct dgram *d, struct dgram_qp *qp);

/** dgram_qp_free() - free a queue pair; its unread packets are lost */
void dgram_qp_free(struct dgram *d, struct dgram_qp *qp);

/**
 * dgram_qp_progress() - handle completions, at most as many as the queues have slots
 *
 * If there may be more, the watches are notified, so that no thread misses them.
 */
void dgram_qp_progress(struct dgram *d, struct dgram_qp *qp);

/** dgram_qp_read() - release a packet that was read: post its slot again, or free it */
void dgram_qp_read(struct dgram *d, struct dgram_packet *packet);

/**
 * dgram_qp_send() - send a datagram to a peer's queue pair
 * @header: bytes to send before the datagram
 *
 * Return: 0, -EAGAIN if no slot is free, or -errno.
 */
int dgram_qp_send(struct dgram_dest *dest, const uint8_t *header, size_t header_bytes,
		  const struct rs_transfer *out);

/* --- dgram_dest.c -------------------------------------------------------- */

/** dgram_is_same_peer() - compare addresses and ports */
bool dgram_is_same_peer(const union addr *a, const union addr *b);

/**
 * dgram_dest_get() - get the peer of an address, created if necessary; the lock must be held
 *
 * May take the place of another peer, so that pointers to others become invalid. Any host can send,
 * and forge its address.
 *
 * Return: 0 or -errno.
 */
int dgram_dest_get(struct dgram *d, const union addr *addr, struct dgram_dest **ret);

/**
 * dgram_dest_resolve() - create an address handle to a queue pair; the service's lock must be held
 * @dest: is_held is set, and is cleared
 *
 * While too many are being resolved, nothing happens: the peer's next datagram over UDP asks again.
 */
void dgram_dest_resolve(struct dgram_dest *dest, uint32_t qpn);

/** dgram_dest_stop_all() - stop all resolution, under the service's lock; then call free_all() */
void dgram_dest_stop_all(struct dgram *d);
void dgram_dest_free_all(struct dgram *d);

/* --- dgram_udp.c --------------------------------------------------------- */

/** dgram_udp_readable() - serviced.readable: handle requests, responses and datagrams over UDP */
void dgram_udp_readable(struct serviced *serviced);

/** dgram_udp_send() - send a datagram, or none, over UDP, with the address of our queue pair */
int dgram_udp_send(struct dgram *d, const struct dgram_dest *dest, enum dgram_op op,
		   const struct iovec *iov, int n_iov);

/** dgram_deliver() - queue a packet for the program, unless it is connected to another peer */
bool dgram_deliver(struct dgram *d, struct dgram_packet *packet);

#endif

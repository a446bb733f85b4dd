/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagram sockets: a UDP socket, whose descriptor the program holds, and a queue pair for each
 * local address in use. The first datagram to a peer goes over UDP and asks for the peer's queue
 * pair; once that is known, the others go there.
 *
 * A datagram that does not fit into a packet of the device's port always goes over UDP.
 *
 * Members are guarded by the handle's lock.
 */
#ifndef LIB_RSOCKET_DGRAM_H
#define LIB_RSOCKET_DGRAM_H

#include <rdma/rdma_cma.h>

#include "base/hash.h"
#include "lib/rsocket/dgram_wire.h"
#include "lib/rsocket/rsock.h"
#include "lib/rsocket/service.h"

#define DGRAM_GRH_BYTES 40 /* before each received datagram, filled by the device */

/* A datagram that has come. */
struct dgram_packet {
	struct list link; /* in dgram.packets, or alone */
	union addr from;
	struct dgram_qp *qp; /* NULL: it came over UDP, and is freed once read */
	const uint8_t *data;
	uint32_t bytes;
};

/* A queue pair, on the device that has a local address. */
struct dgram_qp {
	struct list link; /* in dgram.qps */
	union addr local;
	struct rdma_cm_id *id;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	bool armed;
	uint32_t mtu; /* bytes of a packet */
	uint32_t n_slots;
	uint8_t *memory; /* slots to receive into, then slots to send from */
	struct ibv_mr *mr;
	struct dgram_packet *packet; /* of each slot to receive into */
	uint32_t *spare;	     /* slots to send from that are free */
	uint32_t n_spare;
	uint32_t inline_bytes;
};

/* A peer, named by its UDP address. */
struct dgram_dest {
	struct hash_node node; /* by addr */
	union addr addr;
	struct dgram_qp *qp;
	struct ibv_ah *ah; /* NULL until it is known */
	uint32_t qpn;
	struct dgram *owner;
	struct serviced resolving; /* service's lock */
	struct rdma_cm_id *id;	   /* while it is being resolved; service's lock */
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
	struct list packets; /* that have come and were not read */
	uint32_t n_copies;   /* of them, those that came over UDP */
	union addr peer;     /* of rconnect() */
	bool has_peer;
	struct serviced udp;
};

static inline struct dgram *dgram_of(struct rsock *rs)
{
	return (struct dgram *)rs;
}

/** dgram_open() - rsocket() for SOCK_DGRAM. Return: 0 or -errno. */
int dgram_open(int domain, struct rsock **ret);

/* --- dgram_qp.c ---------------------------------------------------------- */

/**
 * dgram_qp_for() - the queue pair that datagrams to a peer are sent from, made if need be
 *
 * Return: 0 or -errno, ENODEV if the route is over no RDMA device.
 */
int dgram_qp_for(struct dgram *d, const union addr *peer, struct dgram_qp **ret);

/**
 * dgram_qp_make() - queues, and memory for as many datagrams as they hold, all receives posted
 *
 * It is added to the socket, whose watches are notified. The lock is held.
 *
 * @qp: zeroed, but for its id, which has a device
 *
 * Return: 0 or -errno; what was made until then is for dgram_qp_free().
 */
int dgram_qp_make(struct dgram *d, struct dgram_qp *qp);

/** dgram_qp_free() - its packets that were not read are lost. */
void dgram_qp_free(struct dgram *d, struct dgram_qp *qp);

/** dgram_qp_progress() - handle completions. */
void dgram_qp_progress(struct dgram *d, struct dgram_qp *qp);

/** dgram_qp_read() - a packet was read: post its slot again, or free it. */
void dgram_qp_read(struct dgram *d, struct dgram_packet *packet);

/**
 * dgram_qp_send() - a datagram to a peer's queue pair
 * @header: what goes before it
 *
 * Return: 0, -EAGAIN if no slot is free, or -errno.
 */
int dgram_qp_send(struct dgram_dest *dest, const uint8_t *header, size_t header_bytes,
		  const struct rs_transfer *out);

/* --- dgram_dest.c -------------------------------------------------------- */

/** dgram_is_same_peer() - same address and port. */
bool dgram_is_same_peer(const union addr *a, const union addr *b);

/** dgram_dest_get() - the peer of this address, made if need be. Return: 0 or -errno. */
int dgram_dest_get(struct dgram *d, const union addr *addr, struct dgram_dest **ret);

/** dgram_dest_resolve() - make an address handle to a queue pair; the service's lock is held. */
void dgram_dest_resolve(struct dgram_dest *dest, const union addr *where, uint32_t qpn);

/** dgram_dest_stop_all() - end all resolving, under the service's lock; then free_all(). */
void dgram_dest_stop_all(struct dgram *d);
void dgram_dest_free_all(struct dgram *d);

/* --- dgram_udp.c --------------------------------------------------------- */

/** dgram_udp_readable() - serviced.readable: requests, answers and datagrams over UDP. */
void dgram_udp_readable(struct serviced *serviced);

/** dgram_udp_send() - a datagram over UDP, or none, with where our queue pair is. */
int dgram_udp_send(struct dgram *d, const struct dgram_dest *dest, enum dgram_op op,
		   const struct iovec *iov, int n_iov);

/** dgram_deliver() - append a packet for the program, unless it is connected to another peer. */
bool dgram_deliver(struct dgram *d, struct dgram_packet *packet);

#endif

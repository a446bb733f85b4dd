/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagram sockets: a UDP socket, whose descriptor the program holds, and a queue pair for each
 * local address that is used. The first datagram to a peer goes over UDP and asks where the peer's
 * queue pair is; once that is known, the others go there.
 *
 * What does not fit into a packet of the device's port keeps going over UDP: a peer takes it from
 * there, too.
 *
 * Members are guarded by the handle's lock.
 */
#ifndef LIB_RSOCKET_DGRAM_H
#define LIB_RSOCKET_DGRAM_H

#include <rdma/rdma_cma.h>

#include "lib/rsocket/dgram_wire.h"
#include "lib/rsocket/rsock.h"
#include "lib/rsocket/service.h"

#define DGRAM_GRH_BYTES 40 /* before each received datagram, filled by the device */

/* A datagram that has come; slot: of its queue pair's memory. */
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
	struct list link; /* in its bucket */
	union addr addr;
	struct dgram_qp *qp;
	struct ibv_ah *ah; /* NULL until it was found */
	uint32_t qpn;
	struct dgram *owner;
	struct serviced finding; /* service's lock */
	struct rdma_cm_id *id;	 /* while it is being found; service's lock */
};

#define DGRAM_BUCKETS 64

struct dgram {
	struct rsock base; /* first; fd: the UDP socket */
	int domain;
	uint32_t sq_size;
	uint32_t rq_size;
	uint32_t inline_size;
	int epoll_fd; /* of the completion channels */
	struct list qps;
	struct list dests[DGRAM_BUCKETS];
	struct list packets; /* that have come and were not read */
	uint32_t n_copies;   /* of them, those that came over UDP */
	uint32_t n_dests;
	union addr peer; /* of rconnect() */
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
 * dgram_qp_for() - the queue pair that datagrams to a peer leave from, made if need be
 *
 * Return: 0 or -errno, ENODEV if the route is over no RDMA device.
 */
int dgram_qp_for(struct dgram *d, const union addr *peer, struct dgram_qp **ret);

/**
 * dgram_qp_make() - queues, and memory for as many datagrams as they hold, all of it in use
 *
 * The socket has it from then on, and whoever waits for the socket is told. The lock is held.
 *
 * @qp: zeroed, but for its id, which has been shown a device
 *
 * Return: 0 or -errno; what was made until then is for dgram_qp_free().
 */
int dgram_qp_make(struct dgram *d, struct dgram_qp *qp);

/** dgram_qp_free() - and what of its packets was not read. */
void dgram_qp_free(struct dgram *d, struct dgram_qp *qp);

/** dgram_qp_progress() - take what the device has completed. */
void dgram_qp_progress(struct dgram *d, struct dgram_qp *qp);

/** dgram_qp_read() - a packet was read: receive there again, or free it. */
void dgram_qp_read(struct dgram *d, struct dgram_packet *packet);

/**
 * dgram_qp_send() - a datagram to where a peer was found
 * @header: what goes before it
 *
 * Return: 0, -EAGAIN if no slot is free, or -errno.
 */
int dgram_qp_send(struct dgram_dest *dest, const uint8_t *header, size_t header_bytes,
		  const struct iovec *iov, int n_iov);

/* --- dgram_dest.c -------------------------------------------------------- */

/** dgram_dest_get() - the peer of this address, made if need be. Return: 0 or -errno. */
int dgram_dest_get(struct dgram *d, const union addr *addr, struct dgram_dest **ret);

/** dgram_dest_find() - make an address handle to a queue pair; the service's lock is held. */
void dgram_dest_find(struct dgram_dest *dest, const union addr *where, uint32_t qpn);

/** dgram_dest_free_all() - at the end; stop_all: before that, under the service's lock. */
void dgram_dest_stop_all(struct dgram *d);
void dgram_dest_free_all(struct dgram *d);

/* --- dgram_udp.c --------------------------------------------------------- */

/** dgram_udp_readable() - serviced.readable: requests, answers and datagrams over UDP. */
void dgram_udp_readable(struct serviced *serviced);

/** dgram_udp_send() - a datagram over UDP, or none, with what we say of our queue pair. */
int dgram_udp_send(struct dgram *d, const struct dgram_dest *dest, enum dgram_op op,
		   const struct iovec *iov, int n_iov);

/** dgram_deliver() - append a packet for the program, unless it is connected to another peer. */
bool dgram_deliver(struct dgram *d, struct dgram_packet *packet);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The room of RoCE v2's sockets, on roce/ and wire/.
 *
 *   out.h       sending, by any process of a host, to port 4791 of a peer (below)
 *   in.h        receiving: the sockets that have port 4791
 *   share.h     how a process gets one of them from fabric-host
 *   capture.h   what is sent, by this wire or the other, into a file
 *
 * Sending is in bursts: packets of one size for one address, which the kernel cuts (UDP_SEGMENT),
 * or one by one where it cannot. A send never blocks: what a full socket does not take waits in
 * memory, up to UDP_OUT_WAITING_MAX; what is more than that is lost, as on any wire. The caller has
 * a lock around all of it, or one thread.
 */
#ifndef FABRIC_UDP_OUT_H
#define FABRIC_UDP_OUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"
#include "base/loop.h"
#include "tools/fabric/roce/codec.h"
#include "tools/fabric/wire/faults.h"

#define UDP_OUT_BURST_BYTES 65000 /* a UDP datagram over IPv4 has 65507 at most */
#define UDP_OUT_SEGMENTS    64	  /* what all kernels with UDP_SEGMENT take */
#define UDP_OUT_WAITING_MAX (4u << 20)

/* A socket of one IP version; not connected, so that Linux sends the identification 0: roce/icrc.h
 */
struct udp_socket {
	int fd; /* -1: this host does not have this version */
	uint16_t port;
	bool has_segments;
	struct watch room;
};

struct udp_burst {
	union ibv_gid sgid, dgid;
	uint32_t ifindex;
	uint32_t slot; /* at a receiver of our kind: one socket gets all of a burst */
	uint8_t hop_limit, traffic_class;
	bool is_full;
	unsigned int n_segments;
	size_t segment_bytes;
	size_t n_bytes;
	int32_t corrupt_bit; /* of the only segment; -1: none */
	uint8_t *bytes;
};

struct udp_out {
	struct udp_socket v4, v6;
	struct udp_burst burst;
	struct loop loop; /* loop.fd is readable when udp_out_send_waiting() has work */
	struct list waiting;
	size_t n_waiting;
	struct fab_faulty faulty;
	unsigned int complaints; /* a bit for each kind of failure that was reported */
};

/** udp_out_none() - nothing is open: udp_out_fini() is allowed. */
void udp_out_none(struct udp_out *out);

/**
 * udp_out_init() - open the sockets
 * @dir, @sender: for the fabric's faults, as fab_faulty_init() has them
 *
 * Return: 0 or -errno; udp_out_fini() is called in any case.
 */
int udp_out_init(struct udp_out *out, const char *dir, uint32_t sender);

/** udp_out_fini() - what still waits is lost. Allowed twice. */
void udp_out_fini(struct udp_out *out);

/**
 * udp_out_packet() - add a packet to the burst; what does not go with it is sent before
 * @packet:  sgid, dgid, hop_limit and traffic_class are for IP
 * @ifindex: of the interface that has the sgid
 * @payload: packet->bytes of it
 */
void udp_out_packet(struct udp_out *out, const struct fab_packet *packet, uint32_t ifindex,
		    const void *payload);

/** udp_out_flush() - send the burst. */
void udp_out_flush(struct udp_out *out);

/** udp_out_send_waiting() - send what waits, as far as it goes now, and what was delayed. */
void udp_out_send_waiting(struct udp_out *out);

/**
 * udp_out_reach() - is there a way to an address?
 *
 * Return: 0; EINVAL if the two are of different IP versions; ENETUNREACH, EHOSTUNREACH and the like
 * from the kernel's routes.
 */
int udp_out_reach(const union ibv_gid *sgid, const union ibv_gid *dgid, uint32_t ifindex);

/**
 * udp_out_join() - have the packets of a group come to this host, while a descriptor is open
 * @ifindex: of the interface that they come by
 *
 * Return: the descriptor, the caller's; -errno.
 */
int udp_out_join(const union ibv_gid *mgid, uint32_t ifindex);

#endif

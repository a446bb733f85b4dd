/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCE v2 over sockets, on top of roce/ and wire/.
 *
 *   out.h       sending, by any process of a host, to port 4791 of a peer (below)
 *   sockets.h   the sockets for that
 *   in.h        receiving: the sockets of port 4791
 *   share.h     how a process gets one of these sockets from fabric-host
 *   capture.h   capture of sent packets, for both wires, in a file
 *
 * Packets are sent in bursts of equal size and destination, which the kernel splits (UDP_SEGMENT),
 * or one by one where it cannot. A send never blocks: data that a full socket does not accept is
 * queued in memory, up to UDP_OUT_WAITING_MAX; beyond that, packets are lost. The caller holds a
 * lock, or has a single thread.
 */
#ifndef FABRIC_UDP_OUT_H
#define FABRIC_UDP_OUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"
#include "base/loop.h"
#include "tools/fabric/roce/codec.h"
#include "tools/fabric/udp/sockets.h"
#include "tools/fabric/wire/faults.h"

#define UDP_OUT_BURST_BYTES 65000 /* UDP over IPv4 allows 65507 */
#define UDP_OUT_SEGMENTS    64	  /* accepted by all kernels with UDP_SEGMENT */
#define UDP_OUT_WAITING_MAX (4u << 20)

struct udp_burst {
	struct udp_flow flow;
	union ibv_gid dgid;
	uint32_t ifindex;
	uint32_t slot; /* of the receiver: all packets of a burst go to one socket */
	bool is_full;
	unsigned int n_segments, n_sent; /* n_sent: where the kernel does not split */
	size_t segment_bytes;
	size_t n_bytes;
	int32_t corrupt_bit; /* of the single segment; -1: none */
	uint8_t *bytes;
};

struct udp_out {
	struct udp_sockets sockets;
	struct udp_burst burst;
	struct loop loop; /* loop.fd is readable when udp_out_send_waiting() has work */
	struct list waiting;
	struct udp_socket *full; /* what is first in waiting waits for its room */
	size_t n_waiting;
	struct fab_faulty faulty;
	unsigned int complaints; /* bitmap of reported kinds of failures */
};

/** udp_out_clear() - initialize without opening; udp_out_fini() is allowed */
void udp_out_clear(struct udp_out *out);

/**
 * udp_out_init() - open the sockets
 * @vrf:          for the sockets, see vrf.h
 * @dir, @sender: for the fabric's faults, as in fab_faulty_init()
 *
 * Return: 0 or -errno; udp_out_fini() must be called in any case.
 */
int udp_out_init(struct udp_out *out, uint32_t vrf, const char *dir, uint32_t sender);

/** udp_out_fini() - close; queued packets are lost. May be called repeatedly. */
void udp_out_fini(struct udp_out *out);

/**
 * udp_out_packet() - add a packet to the burst, after sending a burst that does not match
 * @packet:  sgid, dgid, hop_limit and traffic_class are for IP
 * @ifindex: of the interface with the sgid
 * @payload: packet->bytes bytes
 */
void udp_out_packet(struct udp_out *out, const struct fab_packet *packet, uint32_t ifindex,
		    const void *payload);

/** udp_out_flush() - send the burst. */
void udp_out_flush(struct udp_out *out);

/** udp_out_has_segments() - return whether the kernel splits bursts, as far as is known */
bool udp_out_has_segments(const struct udp_out *out);

/** udp_out_send_waiting() - send queued packets, as far as possible, and delayed ones */
void udp_out_send_waiting(struct udp_out *out);

/** udp_out_retry() - udp_out_send_waiting(), if the socket that packets wait for has room */
void udp_out_retry(struct udp_out *out);

/**
 * udp_out_reach() - check whether there is a route to an address
 *
 * Return: 0; EINVAL if the IP versions differ; ENETUNREACH, EHOSTUNREACH and others from the
 * kernel's routes.
 */
int udp_out_reach(const struct udp_out *out, const union ibv_gid *sgid, const union ibv_gid *dgid,
		  uint32_t ifindex);

/**
 * udp_out_join() - join a group with this host, until the descriptor is closed
 * @ifindex: of the receiving interface
 *
 * Return: the descriptor, owned by the caller; -errno.
 */
int udp_out_join(const union ibv_gid *mgid, uint32_t ifindex);

#endif

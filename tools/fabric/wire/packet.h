/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wire: the definitions shared by the processes of a soft fabric. It may call base/ only;
 * verbs/, umad/ and host/ are built on it, and are independent of each other.
 *
 *   packet.h               packets (below)
 *   umad_wire.h            messages between a program's libibumad and its host
 *   folder.h               the fabric's folder: names of sockets, owners of GIDs and LIDs
 *   page.h device.h        a host's device as its processes read it
 *   counters.h             what a host's ports have sent and received
 *   quirks.h               the deviations that a device may have
 *   route.h                the port that an address leads to
 *   peer.h faults.h        sending packets, and faults
 *   frames.h               received RoCE v2 packets, for another process
 *   grants.h               permissions to write and read without packets
 *   ring.h                 packets without system calls
 *
 * A packet is a datagram of a unix socket: this header and its payload. Both ends are on one
 * machine, so values are in host byte order, except where verbs defines another one. It is not a
 * packet of the InfiniBand specification, but has the same fields and takes one packet sequence
 * number. A message is split at FAB_FRAGMENT_BYTES, whatever the path MTU is. Tests drop, duplicate
 * and reorder such packets.
 */
#ifndef FABRIC_PACKET_H
#define FABRIC_PACKET_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define FAB_MAGIC	   0xfab1
#define FAB_FRAGMENT_BYTES 32768
#define FAB_PSN_MASK	   0xffffffu
#define FAB_GRH_BYTES	   40
#define FAB_QP1		   1
#define FAB_QP1_QKEY	   0x80010000u
#define FAB_QPN_MULTICAST  0xffffffu

/* A queue pair number contains the slot of its process. */
#define FAB_SLOT_SHIFT 14
#define FAB_SLOTS      1024 /* 0 is the host itself: QP0 and QP1 */
#define FAB_SLOT_QPS   (1u << FAB_SLOT_SHIFT)

/* Congestion bits of a traffic class: RFC 3168, 5. */
#define FAB_ECN_MASK 3
#define FAB_ECN_ECT  2 /* ECN-capable sender */
#define FAB_ECN_CE   3 /* congestion experienced */

/* Service of the sending queue pair; as in the opcodes of IBTA vol. 1, table 38. */
enum fab_service {
	FAB_SERVICE_RC = 0,
	FAB_SERVICE_UC = 1,
	FAB_SERVICE_UD = 3,
	FAB_SERVICE_CNP = 4,
	FAB_SERVICE_XRC = 5,
};

enum fab_op {
	FAB_OP_SEND,
	FAB_OP_WRITE,
	FAB_OP_READ,
	FAB_OP_READ_RESPONSE,
	FAB_OP_COMPARE_SWAP,
	FAB_OP_FETCH_ADD,
	FAB_OP_ATOMIC_RESPONSE,
	FAB_OP_ATOMIC_WRITE, /* answered by an empty read response, as is the next */
	FAB_OP_FLUSH,
	FAB_OP_ACK,
	FAB_OP_NAK,
	FAB_OP_CNP, /* congestion notification, A17.9.3 */
	FAB_OP_DATAGRAM,
	FAB_OP_UNKNOWN, /* a request with a reserved or unsupported opcode */
	FAB_OP_EVENT,	/* from the host to its own processes: syndrome is an ibv_event_type */
};

enum fab_flag {
	FAB_FIRST = 1,
	FAB_LAST = 2,
	FAB_IMM = 4,
	FAB_SOLICITED = 8,
	FAB_GRH = 16,
	FAB_ASK_ACK = 32,
	FAB_INVALIDATE = 64, /* of a send: rkey is the key to invalidate */
	FAB_GRANTED = 128,   /* of an ACK or the end of a read response: grants.h */
};

/* Codes of a NAK, IBTA vol. 1, table 45; here they include receiver-not-ready. */
enum fab_nak {
	FAB_NAK_SEQUENCE,
	FAB_NAK_INVALID_REQUEST,
	FAB_NAK_REMOTE_ACCESS,
	FAB_NAK_REMOTE_OPERATION,
	FAB_NAK_RNR,
};

/* What a flush is to achieve, and for what: bits as in the FETH of annex A19. */
enum fab_flush {
	FAB_FLUSH_GLOBAL = 1,
	FAB_FLUSH_PERSISTENT = 2,
	FAB_FLUSH_REGION = 16, /* the whole region instead of the range */
	FAB_FLUSH_KNOWN = FAB_FLUSH_GLOBAL | FAB_FLUSH_PERSISTENT | FAB_FLUSH_REGION,
};

struct fab_packet {
	uint16_t magic;
	uint8_t op;	  /* enum fab_op */
	uint8_t flags;	  /* enum fab_flag */
	uint8_t syndrome; /* enum fab_nak, or the type of an event */
	uint8_t rnr_timer;
	uint8_t service;   /* enum fab_service */
	uint8_t port_num;  /* of the receiver; 0 of a group: any */
	uint8_t from_port; /* of the sender */
	uint8_t subnet;	   /* of the source */
	uint8_t sl;
	uint8_t flush; /* enum fab_flush */
	uint16_t pkey;
	uint16_t slid;
	uint16_t dlid;
	uint8_t hop_limit;
	uint8_t traffic_class;
	uint32_t flow_label;
	uint32_t dest_qpn;
	uint32_t src_qpn;
	uint32_t psn;
	uint32_t msn; /* of a response: messages completed by the responder */
	uint32_t qkey;
	uint32_t srqn; /* of an XRC request: provides receive and keys */
	uint32_t imm;  /* in the program's byte order */
	uint32_t rkey;
	uint32_t dma_bytes;
	uint32_t bytes; /* of payload */
	union ibv_gid sgid;
	union ibv_gid dgid;
	uint64_t remote_addr;
	uint64_t compare_add; /* of an atomic response: the original value */
	uint64_t swap;
	uint64_t ring; /* of a datagram: which one its sender has claimed; ring.h */
};

#define FAB_GID_IPV4_AT 12

/** fab_gid_of_ipv4() - an IPv4 address as a GID: ::ffff:a.b.c.d */
static inline union ibv_gid fab_gid_of_ipv4(const void *addr)
{
	union ibv_gid gid = { .raw = { [10] = 0xff, [11] = 0xff } };

	memcpy(gid.raw + FAB_GID_IPV4_AT, addr, sizeof(gid.raw) - FAB_GID_IPV4_AT);
	return gid;
}

/** fab_gid_is_ipv4() - return whether a GID is an IPv4 address */
static inline bool fab_gid_is_ipv4(const union ibv_gid *gid)
{
	static const uint8_t mapped[FAB_GID_IPV4_AT] = { [10] = 0xff, [11] = 0xff };

	return memcmp(gid->raw, mapped, sizeof(mapped)) == 0;
}

/** fab_gid_is_group() - return whether a GID is that of a multicast group, also of IPv4 */
static inline bool fab_gid_is_group(const union ibv_gid *gid)
{
	return gid->raw[0] == 0xff ||
	       (fab_gid_is_ipv4(gid) && (gid->raw[FAB_GID_IPV4_AT] & 0xf0) == 0xe0);
}

/** fab_gid_is_link_local() - return whether a GID is valid on its link only */
static inline bool fab_gid_is_link_local(const union ibv_gid *gid)
{
	return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}

/** fab_psn_diff() - a - b, negative if a precedes b (24 bits, cyclic) */
static inline int32_t fab_psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

/** fab_psn_near() - extend a PSN of 24 bits to the number closest to @near */
static inline uint64_t fab_psn_near(uint64_t near, uint32_t psn)
{
	return near + (uint64_t)(int64_t)fab_psn_diff(psn, (uint32_t)near & FAB_PSN_MASK);
}

#endif

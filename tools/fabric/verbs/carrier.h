/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two wires under one transport.
 *
 * requester.c, responder.c and datagram.c are the transport of the InfiniBand specification: they
 * turn work requests into packets (struct fab_packet: the fields of BTH, RETH, AETH, DETH, ...) and
 * packets into completions, and know neither sockets nor clock. A carrier brings packets to their
 * receivers, and says how large they are and how many may be on their way:
 *
 *   carrier_unix.c  between hosts of one machine: a packet is a datagram of a unix socket from
 *                   process to process, 32 KiB of a message whatever the path MTU is (but while
 *                   a capture is made); the window is fixed, because what does not fit into a
 *                   socket waits in memory
 *   carrier_roce.c  RoCE v2: roce/ turns a packet into bytes, udp/ sends them, from this process,
 *                   to port 4791 of the peer, and receives what the kernel gives to the socket of
 *                   this process. A packet carries a path MTU. The window adapts, because what
 *                   does not fit into a socket is lost
 *
 * tests/roce/ has a third, with a clock of its own, which loses, repeats and delays packets.
 */
#ifndef FABRIC_CARRIER_H
#define FABRIC_CARRIER_H

#include "tools/fabric/verbs/objects.h"

/** deliver_fn() - a packet came; locked. */
typedef void deliver_fn(struct fab_context *context, const struct fab_packet *packet,
			const void *payload);

struct carrier {
	/* How much of a requester's data may be unacknowledged. */
	uint32_t window_bytes_min, window_bytes_start, window_bytes_max;
	uint32_t read_bytes;	/* a read is asked for in parts of this size, and answered so */
	uint32_t ask_ack_bytes; /* within a long message, an ACK is asked for each so many */

	/* No answer is missed before, whatever `timeout` says: two processes have to wake up. */
	uint64_t timeout_ns_min;
	/* Nor before this, whatever round trips were measured; 0: they do not count. */
	uint64_t early_ns_min;

	/** now_ns() - the time. */
	uint64_t (*now_ns)(const struct fab_context *context);

	/** payload_bytes() - of a packet that is not the last of its message. */
	uint32_t (*payload_bytes)(const struct fab_context *context, enum ibv_mtu path_mtu);

	/**
	 * open() - what it needs in a context, whose slot has its socket
	 *
	 * Return: the descriptor that packets come by, or -errno.
	 */
	int (*open)(struct fab_context *context);

	/** close() - give it back; allowed twice, and without open(). */
	void (*close)(struct fab_context *context);

	/**
	 * find() - who is at an address
	 * @attr: good by address_check(), and no group
	 *
	 * Return: 0, or EHOSTUNREACH and the like.
	 */
	int (*find)(struct fab_context *context, const struct ibv_ah_attr *attr,
		    struct fab_owner *ret);

	/** send() - a packet of a connected queue pair leaves; @path: of qp->path. */
	void (*send)(struct fab_context *context, const char *path, const struct fab_packet *packet,
		     const void *payload);

	/** send_datagram() - one leaves, to a queue pair or a group. */
	void (*send_datagram)(struct fab_qp *qp, const struct fab_ah *ah, struct fab_packet *packet,
			      const void *payload);

	/** flush() - all that was sent until now leaves; NULL if it has already. */
	void (*flush)(struct fab_context *context);

	/** take() - take what came. Return: false if nothing did; NULL: it comes to the slot. */
	bool (*take)(struct fab_context *context, deliver_fn *deliver);

	/** came() - context->buffer holds so many bytes that came to the slot. */
	void (*came)(struct fab_context *context, size_t bytes, deliver_fn *deliver);

	/**
	 * join() - packets of a group must come here, as a queue pair is attached to it
	 *
	 * It is to be qp->mgid[qp->n_mgids]. NULL if nothing is to be done.
	 *
	 * Return: 0 or errno.
	 */
	int (*join)(struct fab_qp *qp, const union ibv_gid *mgid);

	/** leave() - those of qp->mgid[i] need not; the last takes its place. */
	void (*leave)(struct fab_qp *qp, unsigned int i);
};

extern const struct carrier carrier_unix, carrier_roce;

/** carrier_now_ns() - the time by which the transport goes. */
static inline uint64_t carrier_now_ns(const struct fab_context *context)
{
	return context->carrier->now_ns(context);
}

/** context_unlock() - what was sent while it was locked leaves. */
static inline void context_unlock(struct fab_context *context)
{
	if (context->carrier->flush && context->has_thread)
		context->carrier->flush(context);
	pthread_mutex_unlock(&context->lock);
}

#endif

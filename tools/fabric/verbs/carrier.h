/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two wires below one transport.
 *
 * requester.c, responder.c and datagram.c are the transport of the InfiniBand specification. They
 * convert work requests to packets (struct fab_packet: the fields of BTH, RETH, AETH, DETH, ...)
 * and packets to completions, and use neither sockets nor a clock. A carrier delivers packets, and
 * determines their size and the number in flight:
 *
 *   carrier_unix.c  between hosts of one machine: a packet is a datagram of a unix socket between
 *                   processes, 32 KiB of a message whatever the path MTU is (except during a
 *                   capture); the window is fixed, because packets that do not fit into a socket
 *                   are queued in memory
 *   carrier_roce.c  RoCE v2: roce/ encodes a packet, udp/ sends it, from this process, to port 4791
 *                   of the peer, and receives what the kernel delivers to the socket of this
 *                   process. A packet carries a path MTU. The window adapts, because packets that
 *                   do not fit into a socket are lost
 *
 * tests/roce/ has a third, with a clock of its own, which drops, duplicates and delays packets.
 */
#ifndef FABRIC_CARRIER_H
#define FABRIC_CARRIER_H

#include "base/clock.h"
#include "tools/fabric/verbs/objects.h"

/** deliver_fn() - handle a received packet; locked */
typedef void deliver_fn(struct fab_context *context, const struct fab_packet *packet,
			const void *payload);

/*
 * A responder that is a process answers when it gets a CPU, so a short `timeout` is lengthened. As
 * with devices: mlx4's have this minimum.
 */
#define CARRIER_RETRY_NS_MIN 500000000

struct carrier {
	/* Limits of a requester's unacknowledged data. */
	uint32_t window_bytes_min, window_bytes_start, window_bytes_max;
	uint32_t read_bytes;	/* size of the parts in which reads are requested and answered */
	uint32_t ask_ack_bytes; /* interval of ACK requests within a long message */
	unsigned int batch;	/* receives that are handled before responses are flushed */

	/* Minimum timeout for a response, whatever `timeout` is: two processes must wake up. */
	uint64_t timeout_ns_min;
	/* Minimum time without progress that counts as a retry. */
	uint64_t retry_ns_min;
	/* Minimum timeout from measured round trips; 0: they are not used. */
	uint64_t early_ns_min;

	/** now_ns() - the current time; NULL: that of clock_ns() */
	uint64_t (*now_ns)(const struct fab_context *context);

	/** payload_bytes() - payload of each packet except the last of a message */
	uint32_t (*payload_bytes)(const struct fab_context *context, enum ibv_mtu path_mtu);

	/**
	 * open() - open the carrier in a context, whose slot has its socket
	 *
	 * Return: the descriptor for received packets, or -errno.
	 */
	int (*open)(struct fab_context *context);

	/** close() - may be called repeatedly, and without open() */
	void (*close)(struct fab_context *context);

	/**
	 * find() - find the port at an address
	 * @attr: accepted by address_check(), not a group
	 *
	 * Return: 0, or EHOSTUNREACH and others.
	 */
	int (*find)(struct fab_context *context, const struct ibv_ah_attr *attr,
		    struct fab_owner *ret);

	/** send() - send a packet of a connected queue pair; @path is that of qp->path */
	void (*send)(struct fab_context *context, const char *path, const struct fab_packet *packet,
		     const void *payload);

	/** send_datagram() - send a datagram to a queue pair or a group */
	void (*send_datagram)(struct fab_qp *qp, const struct fab_ah *ah, struct fab_packet *packet,
			      const void *payload);

	/** flush() - send everything accepted so far; NULL if sends are immediate */
	void (*flush)(struct fab_context *context);

	/** coalesces() - return whether two packets may leave together, as one; NULL: they may */
	bool (*coalesces)(const struct fab_context *context);

	/**
	 * take() - handle received packets. Return: false if there were none; NULL: the slot gets
	 * them.
	 */
	bool (*take)(struct fab_context *context, deliver_fn *deliver);

	/** receive() - handle @bytes received by the slot, in context->buffer */
	void (*receive)(struct fab_context *context, size_t bytes, deliver_fn *deliver);

	/**
	 * join() - receive packets of a group that a queue pair attaches to
	 *
	 * It will be qp->mgid[qp->n_mgids]. NULL if nothing is needed.
	 *
	 * Return: 0 or errno.
	 */
	int (*join)(struct fab_qp *qp, const union ibv_gid *mgid);

	/** leave() - undo join() for qp->mgid[i]; the last group takes its index */
	void (*leave)(struct fab_qp *qp, unsigned int i);
};

extern const struct carrier carrier_unix, carrier_roce;

/** carrier_now_ns() - the transport's current time */
static inline uint64_t carrier_now_ns(const struct fab_context *context)
{
	return context->carrier->now_ns ? context->carrier->now_ns(context) : clock_ns();
}

/** context_unlock() - unlock, after sending everything accepted while locked */
static inline void context_unlock(struct fab_context *context)
{
	if (context->carrier->flush && context->has_thread)
		context->carrier->flush(context);
	pthread_mutex_unlock(&context->lock);
}

#endif

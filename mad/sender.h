/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fast path out of a port: a datagram queue pair of our own that sends to the peer's QP1, or to
 * the queue pair that the peer itself sends from.
 *
 * For each MAD that is written to umad, the kernel resolves the peer's link address anew, and hands
 * the work to a kernel thread and back. Here an address handle is made once per peer, and a send is
 * one post. The peer only sees another source queue pair in the packet (IBTA vol. 1, 13.5.1: GMPs
 * may be sent from any queue pair that has the Q_Key of QP1). The kernel always answers to QP1;
 * another purecm answers to the queue pair if it has received from it in the last second, and falls
 * back to QP1 if that fails. So the owner of a sender must also receive from it.
 *
 * Some devices, hypervisors and switches drop such packets silently. So the sender refuses messages
 * to a peer until a probe was answered, and refuses answers to retransmitted requests: all these go
 * through umad. See peers.h and asked.h.
 *
 * The Q_Key of QP1 is privileged: without CAP_NET_RAW there is no such queue pair, and all messages
 * go through umad.
 *
 * The caller serialises all calls for a sender, those for its inbox included.
 */
#ifndef MAD_SENDER_H
#define MAD_SENDER_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "mad/port.h"

struct mad_sender;

/**
 * mad_sender_open() - create the queue pair
 * @verbs:    the device; must stay open longer than the sender
 * @port_num: from 1
 * @ret:      the sender, to be released with mad_sender_close()
 *
 * Return: 0; -EPERM without the privilege; -EOPNOTSUPP on InfiniBand; or the error of the device.
 */
int mad_sender_open(struct ibv_context *verbs, uint8_t port_num, struct mad_sender **ret);

/**
 * mad_sender_port() - the port that receives what peers send to the queue pair
 *
 * The owner of the sender polls it and receives from it, and passes the source of each message,
 * here and at QP1, to mad_sender_note_arrival() and mad_sender_note_qpn(). Freed with the sender.
 */
struct mad_port *mad_sender_port(struct mad_sender *sender);

/** mad_sender_qpn() - the number of the queue pair */
uint32_t mad_sender_qpn(const struct mad_sender *sender);

/**
 * mad_sender_note_arrival() - a message came from @gid's queue pair @qpn, here or at QP1; call it
 * before handling the message
 *
 * The message may be forged: it can only cause more messages to go through umad.
 *
 * Return: true if the message answers a probe: drop it.
 */
bool mad_sender_note_arrival(struct mad_sender *sender, const struct mad_gid *gid, uint32_t qpn,
			     const uint8_t mad[MAD_BYTES]);

/** mad_sender_note_qpn() - a message of a connection came from @gid's queue pair @qpn */
void mad_sender_note_qpn(struct mad_sender *sender, const struct mad_gid *gid, uint32_t qpn);

/** mad_sender_unanswered() - a message along @path got no answer and goes through umad next */
void mad_sender_unanswered(struct mad_sender *sender, const struct mad_path *path);

/**
 * mad_sender_probe() - get the next probe that is due; call it on each turn until it returns false
 *
 * Return: true with a message for mad_sender_send_probe(). It may be dropped if the next hop has no
 * link address; the round has others.
 */
bool mad_sender_probe(struct mad_sender *sender, struct mad_path *ret, uint8_t ret_mad[MAD_BYTES]);

/** mad_sender_send_probe() - as mad_sender_hold(), whatever is known of the path */
void mad_sender_send_probe(struct mad_sender *sender, const struct mad_path *path,
			   const uint8_t mad[MAD_BYTES]);

/* Numbers of peers. */
struct mad_sender_score {
	unsigned int n_probed;	   /* being probed */
	uint64_t probe_due_ns;	   /* when to call mad_sender_probe() again, if any are */
	unsigned int n_reached;	   /* reached by the fast path */
	unsigned int n_lost;	   /* alive but not reached by it */
	struct mad_gid first_lost; /* the first of n_lost */
};

/** mad_sender_score() - get the state of the fast path */
void mad_sender_score(struct mad_sender *sender, struct mad_sender_score *ret);

/** mad_sender_insist() - do not refuse messages on paths that may fail; for drills */
void mad_sender_insist(struct mad_sender *sender);

/**
 * mad_sender_close() - wait up to 50 ms for posted messages to leave, then free all. NULL is
 * allowed.
 */
void mad_sender_close(struct mad_sender *sender);

/**
 * mad_sender_send() - post one MAD
 *
 * May block, like a write to umad, while the link address of a new peer is resolved.
 *
 * Return: 0, but see mad_sender_failed(). Otherwise send it through umad: -EAGAIN if that is better
 * (peer not known to be reached, queue full, queue pair broken, no GRH), or why there is no address
 * handle.
 */
int mad_sender_send(struct mad_sender *sender, const struct mad_path *path,
		    const uint8_t mad[MAD_BYTES]);

/**
 * mad_sender_hold() - as mad_sender_send(), but post several together, with one system call
 *
 * Messages leave when the sender is full, or on mad_sender_release().
 */
int mad_sender_hold(struct mad_sender *sender, const struct mad_path *path,
		    const uint8_t mad[MAD_BYTES]);

/** mad_sender_release() - post the held messages. */
void mad_sender_release(struct mad_sender *sender);

/**
 * mad_sender_failed() - get a message that the device did not accept or send
 *
 * Call it after mad_sender_send() and mad_sender_release() until it returns false, and send these
 * messages through umad. Later failures are returned on the next call.
 */
bool mad_sender_failed(struct mad_sender *sender, struct mad_path *path, uint8_t mad[MAD_BYTES]);

/* What the sender has done with a message, or would do. */
enum mad_sender_way {
	MAD_SENDER_REFUSES,  /* send it through umad */
	MAD_SENDER_RESOLVES, /* mad_sender_hold() resolves the peer's link address, may block */
	MAD_SENDER_HOLDS,    /* has taken it, as by mad_sender_hold() */
};

/**
 * mad_sender_try() - as mad_sender_hold(), but never block
 *
 * For a request that the sender does not take, this may begin a round of probes, too.
 */
enum mad_sender_way mad_sender_try(struct mad_sender *sender, const struct mad_path *path,
				   const uint8_t mad[MAD_BYTES]);

/**
 * mad_sender_is_busy() - true if messages are held, posted or failed, or probes are due
 */
bool mad_sender_is_busy(const struct mad_sender *sender);

/** mad_sender_forget() - link addresses or routes have changed: replace the address handles. */
void mad_sender_forget(struct mad_sender *sender);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fast way out of a port: a datagram queue pair of our own that sends to the peer's QP1, or to
 * the queue pair that the peer itself sends from.
 *
 * A MAD written to umad makes the kernel resolve the peer's link address anew and hand the work to
 * a kernel thread and back, each time. Here the address handle is made once for each peer, and a
 * send is a post. A peer cannot tell but by the source queue pair in the packet (IBTA vol.
 * 1, 13.5.1: GMPs may be sent from any queue pair that has the Q_Key of QP1). The kernel answers to
 * QP1 whatever that is; another of us answers to the queue pair, if he has heard from it in the
 * last second, and goes back to QP1 if that is in vain. So who has a sender also receives from it.
 *
 * Not every device, hypervisor and switch lets such a packet pass, and who drops it says nothing.
 * So the sender refuses messages to a peer until a probe has been answered, and answers to what the
 * peer asks twice: all that goes through umad. See peers.h and asked.h.
 *
 * The Q_Key of QP1 is privileged: without CAP_NET_RAW there is no such queue pair, and messages go
 * through umad.
 */
#ifndef MAD_SENDER_H
#define MAD_SENDER_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "mad/port.h"

struct mad_sender;

/**
 * mad_sender_open() - make the queue pair
 * @verbs:    the device; must stay open longer than the sender
 * @port_num: from 1
 * @ret:      to be given back with mad_sender_close()
 *
 * Return: 0, -EPERM without the privilege, -EOPNOTSUPP on InfiniBand, or what the device says.
 */
int mad_sender_open(struct ibv_context *verbs, uint8_t port_num, struct mad_sender **ret);

/**
 * mad_sender_port() - what peers send to the queue pair arrives here
 *
 * To be polled and received from by whoever has the sender, who hands the source of each message,
 * here and at QP1, to mad_sender_came() and mad_sender_heard(). It goes with the sender.
 */
struct mad_port *mad_sender_port(struct mad_sender *sender);

/** mad_sender_qpn() - the number of the queue pair */
uint32_t mad_sender_qpn(const struct mad_sender *sender);

/**
 * mad_sender_came() - a message came from @gid, here or at QP1; before it is dealt with
 *
 * It may be one that anybody has sent: it can make more messages go through umad, and no others.
 * Any thread may call it, and the next ones.
 *
 * Return: true for the answer to a probe and for what mad_sender_prove() returned: they are for
 * nobody else.
 */
bool mad_sender_came(struct mad_sender *sender, const struct mad_gid *gid,
		     const uint8_t mad[MAD_BYTES]);

/** mad_sender_heard() - a message of a connection came from @gid's queue pair @qpn */
void mad_sender_heard(struct mad_sender *sender, const struct mad_gid *gid, uint32_t qpn);

/**
 * mad_sender_prove() - begin to probe the port itself, before there is any other peer
 *
 * To be called when it is open, and when something has changed. If it was reached, or has no GID,
 * nothing is done.
 *
 * Return: true with a message to be sent through umad: if that comes back, and no probe does, the
 * fast path is dead.
 */
bool mad_sender_prove(struct mad_sender *sender, struct mad_path *ret, uint8_t ret_mad[MAD_BYTES]);

/** mad_sender_unanswered() - what left along @path was not answered, and is said again by umad */
void mad_sender_unanswered(struct mad_sender *sender, const struct mad_path *path);

/**
 * mad_sender_probe() - the next probe that is due; to be asked for at each turn, until there is
 * none
 *
 * Return: true with a message for mad_sender_send_probe(), which may be left out if the next hop
 * has no link address: it is made up for.
 */
bool mad_sender_probe(struct mad_sender *sender, struct mad_path *ret, uint8_t ret_mad[MAD_BYTES]);

/** mad_sender_send_probe() - hold it, as mad_sender_hold(), whatever is known of the way */
void mad_sender_send_probe(struct mad_sender *sender, const struct mad_path *path,
			   const uint8_t mad[MAD_BYTES]);

/* How many peers ... */
struct mad_sender_score {
	unsigned int n_probed;	   /* are being probed: come back within PROBE_NS */
	unsigned int n_reached;	   /* the fast path reaches, without the port itself */
	unsigned int n_lost;	   /* it does not reach, though they are there; with the port */
	struct mad_gid first_lost; /* of the latter */
};

/** mad_sender_score() - how the fast path is doing */
void mad_sender_score(struct mad_sender *sender, struct mad_sender_score *ret);

/** mad_sender_insist() - from now on no message is refused because it may be in vain: for drills */
void mad_sender_insist(struct mad_sender *sender);

/** mad_sender_close() - what was posted leaves, for 50 ms at most; then give everything back. NULL
 * is allowed. */
void mad_sender_close(struct mad_sender *sender);

/**
 * mad_sender_send() - post one MAD; any thread may call it
 *
 * May block, like a write to umad, while the link address of a peer that is new is resolved.
 *
 * Return: 0, but see mad_sender_failed(). Else it has to go through umad: -EAGAIN if that is better
 * (not known to arrive, queue full, queue pair broken, no GRH); or why there is no address handle.
 */
int mad_sender_send(struct mad_sender *sender, const struct mad_path *path,
		    const uint8_t mad[MAD_BYTES]);

/**
 * mad_sender_hold() - as mad_sender_send(), but what was held is posted together: one system call
 *                     instead of one a message
 *
 * It leaves when the sender is full, or with mad_sender_release().
 */
int mad_sender_hold(struct mad_sender *sender, const struct mad_path *path,
		    const uint8_t mad[MAD_BYTES]);

/** mad_sender_release() - post what is held. */
void mad_sender_release(struct mad_sender *sender);

/**
 * mad_sender_failed() - a message that the device would not take, or did not send after all
 *
 * To be asked after mad_sender_send() and mad_sender_release(), until there is none: they have to
 * go through umad. What fails later is told the next time.
 */
bool mad_sender_failed(struct mad_sender *sender, struct mad_path *path, uint8_t mad[MAD_BYTES]);

/* What the sender would do with a message. */
enum mad_sender_way {
	MAD_SENDER_REFUSES,  /* it has to go through umad */
	MAD_SENDER_RESOLVES, /* the peer's link address first, which may block */
	MAD_SENDER_POSTS,    /* it leaves at once */
};

/** mad_sender_way() - ask before a message is given to the sender. A question may begin a round of
 * probes, as if it had been. */
enum mad_sender_way mad_sender_way(struct mad_sender *sender, const struct mad_path *path,
				   const uint8_t mad[MAD_BYTES]);

/** mad_sender_is_busy() - is anything held, posted, failed or being probed? Takes no lock. */
bool mad_sender_is_busy(const struct mad_sender *sender);

/** mad_sender_forget() - link addresses or routes have changed: make the handles anew. */
void mad_sender_forget(struct mad_sender *sender);

#endif

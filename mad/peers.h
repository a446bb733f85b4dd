/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * By which way a peer is sent a message. There are three:
 *
 *   through umad, from QP1 to QP1: always right, and slow;
 *   from a queue pair of our own to QP1, which the specification allows, and which a device, a
 *     hypervisor or a switch may drop without a word: see sender.h;
 *   from there to the queue pair that the peer himself sends from, where he also receives
 * (inbox.h).
 *
 * What is asked is said again, through umad, until it is answered, so it may try the second way. If
 * only the repetition is answered, that was in vain, and the way is avoided for ten seconds, and
 * twice as long each time that it is in vain again. An answer is said once: it goes only to a QP1
 * where something that was asked has arrived, or to the peer's own. If nobody at all was ever
 * reached the second way, it is avoided with all peers. The caller
 * serialises all calls.
 */
#ifndef MAD_PEERS_H
#define MAD_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include "mad/port.h"

#define PEERS_LOG2   8
#define PEERS	     (1 << PEERS_LOG2) /* two that fall together share what is avoided */
#define PEER_BY_UMAD 0
#define PEER_QP1     1

/* How a queue pair of our own does with QP1 of others. */
struct way {
	uint64_t proven_ns; /* last; 0: not, since it was in vain */
	uint64_t avoided_until_ns;
	unsigned int n_in_vain; /* since it was proven */
};

struct peer {
	struct mad_gid gid;
	uint32_t qpn; /* his own; 0: nothing is known */
	uint64_t heard_ns;
	uint64_t own_avoided_until_ns;
	struct way way;
	uint32_t asked_id; /* of the first question that went that way and is open; 0: none is */
	bool asked_again;  /* that one */
	uint64_t asked_ns;
};

/* Zeroed, it knows nobody. */
struct peers {
	struct peer slot[PEERS];
	struct way any; /* to anybody */
};

/**
 * peers_qpn() - where to send to @gid at @now_ns, on any clock that does not go back
 * @asks: it will be said again if it is not answered
 *
 * Return: a queue pair; PEER_BY_UMAD.
 */
uint32_t peers_qpn(const struct peers *peers, const struct mad_gid *gid, bool asks,
		   uint64_t now_ns);

/** peers_heard() - a message of a connection came from @gid, sent from @qpn */
void peers_heard(struct peers *peers, const struct mad_gid *gid, uint32_t qpn, uint64_t now_ns);

/** peers_asked() - a question left for QP1 of @gid from one of our own; @id: what we call it */
void peers_asked(struct peers *peers, const struct mad_gid *gid, uint32_t id, uint64_t now_ns);

/** peers_answered() - an answer came from @gid to what we call @id */
void peers_answered(struct peers *peers, const struct mad_gid *gid, uint32_t id, uint64_t now_ns);

/** peers_missed() - @gid asks again what was answered, or maybe will be: has he not heard? */
void peers_missed(struct peers *peers, const struct mad_gid *gid, uint64_t now_ns);

/**
 * peers_unanswered() - what we call @id was not answered by @gid
 *
 * His own queue pair is not sent to for ten seconds from now on, whatever is heard: who forges the
 * peer's address must not have more than one message a time.
 */
void peers_unanswered(struct peers *peers, const struct mad_gid *gid, uint32_t id, uint64_t now_ns);

#endif

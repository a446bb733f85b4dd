/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How to send a message to a peer. There are three ways:
 *
 *   through umad, from QP1 to QP1: always right, and slow;
 *   from a queue pair of our own to QP1, the fast path: the specification allows it, and a device,
 * a hypervisor or a switch may drop it silently (sender.h); from there to the queue pair that the
 * peer itself sends from, where it also receives (inbox.h).
 *
 * No message of a connection depends on a way that is not known to work. With the first question to
 * a peer, which goes through umad, a probe takes the fast path: a lookup (SIDR_REQ) of a service
 * that no host has, which every connection manager answers. Its answer is the proof; nobody can
 * forge it who does not see the probe. If there is none within a second although the peer sends
 * other messages, the fast path to this peer is taken for dead, and probed again after ten seconds,
 * then after twice as long each time. A message that is not answered casts doubt on a way that has
 * worked: umad then has it until another probe is answered.
 *
 * The port itself is the first peer: where not even that is reached, others hardly are.
 *
 * The caller serialises all calls. Times are in nanoseconds, on any clock that does not go back.
 */
#ifndef MAD_PEERS_H
#define MAD_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/list.h"
#include "base/slab.h"
#include "mad/port.h"

#define PEERS_MAX	 16384 /* the peer that was used least recently is forgotten */
#define PEERS_LOST	 8 /* with so many dead paths and no working one, new peers are not probed */
#define PEER_BY_UMAD	 0
#define PEER_QP1	 1

#define PROBES		 4		     /* that are sent before the verdict ... */
#define PROBE_NS	 UINT64_C(250000000) /* ... and how long each may take */
#define PROBE_AVOIDED_NS UINT64_C(10000000000)
#define PROBE_DOUBLINGS	 6 /* of that: 11 minutes */

/* The fast path to a peer. */
enum way {
	WAY_UNKNOWN,
	WAY_PROBED, /* probes are out */
	WAY_WORKS,
	WAY_FAILS,
	N_WAYS
};

struct peer {
	struct hash_node by_gid;
	struct list used;
	struct list probed; /* in peers.probed while WAY_PROBED */
	struct mad_path path;
	uint32_t qpn; /* its own; 0: none is known */
	uint64_t heard_ns;
	uint64_t own_avoided_until_ns;
	enum way way;
	uint32_t probe_id;     /* of the first probe of a round; the next has the next number */
	unsigned int n_probes; /* of that round */
	unsigned int n_failed; /* rounds in a row */
	bool is_alive;	       /* the peer has sent something since the round began */
	uint64_t due_ns;       /* the next probe, or the end of the round */
	uint64_t proven_ns;    /* when a probe was answered last */
	uint64_t again_ns;     /* no round begins before that */
};

struct peers {
	struct hash by_gid;
	struct slab slab;
	struct list used;   /* least recently first */
	struct list probed; /* first due first */
	unsigned int n[N_WAYS];
	unsigned int n_peers;
	struct peer *own;    /* the port itself; NULL: it was not probed */
	uint64_t again_ns;   /* no round with a new peer begins before that */
	struct mad_gid lost; /* the first peer that the fast path did not reach */
};

/** peers_init() - knows nobody. Return: 0 or -ENOMEM, and then peers_fini() is allowed. */
int peers_init(struct peers *peers);

/** peers_fini() - free all; zeroed is allowed */
void peers_fini(struct peers *peers);

/** peers_qpn() - where to send to @gid. Return: a queue pair; PEER_BY_UMAD. */
uint32_t peers_qpn(const struct peers *peers, const struct mad_gid *gid, uint64_t now_ns);

/** peers_asked() - a question leaves along @path: begin a round of probes if one is due */
void peers_asked(struct peers *peers, const struct mad_path *path, uint64_t now_ns);

/**
 * peers_prove() - begin a round of probes to ourselves, unless one was answered
 * @path: to a GID of the port; what is known of another one is forgotten
 *
 * Return: whether one begins. For a verdict something else has to come from there, too.
 */
bool peers_prove(struct peers *peers, const struct mad_path *path, uint64_t now_ns);

/** peers_own_way() - what is known of the way to ourselves */
static inline enum way peers_own_way(const struct peers *peers)
{
	return peers->own ? peers->own->way : WAY_UNKNOWN;
}

/**
 * peers_probe() - the next probe that is due; passes verdicts on rounds that are over
 * @id:     for the round, if this probe is its first
 * @ret:    where to send it
 * @ret_id: its request id
 *
 * Return: false if none is due.
 */
bool peers_probe(struct peers *peers, uint32_t id, uint64_t now_ns, struct mad_path *ret,
		 uint32_t *ret_id);

/** peers_came() - any message came from @gid, which may be forged */
void peers_came(struct peers *peers, const struct mad_gid *gid);

/** peers_answered() - a lookup was answered by @gid. Return: was it a probe? */
bool peers_answered(struct peers *peers, const struct mad_gid *gid, uint32_t request_id,
		    uint64_t now_ns);

/** peers_heard() - a message of a connection came from @gid, sent from @qpn */
void peers_heard(struct peers *peers, const struct mad_gid *gid, uint32_t qpn, uint64_t now_ns);

/** peers_missed() - @gid asks again what was answered, or will be: it may not have heard */
void peers_missed(struct peers *peers, const struct mad_gid *gid, uint64_t now_ns);

/**
 * peers_unanswered() - a question that left along @path was not answered
 *
 * The peer's own queue pair is avoided for ten seconds from now on, whatever is heard: a forger of
 * the peer's address must not catch more than one message in that time.
 */
void peers_unanswered(struct peers *peers, const struct mad_path *path, uint64_t now_ns);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chooses how to send a message to a peer. There are three ways:
 *
 *   through umad, from QP1 to QP1: always works, but slow;
 *   the fast path, from a queue pair of our own to QP1: the specification allows it, but a device,
 *   a hypervisor or a switch may drop it silently (sender.h);
 *   from there to the queue pair that the peer itself sends from, where it also receives (inbox.h).
 *
 * Messages of a connection only use a way that is known to work. The first request to a peer goes
 * through umad, and a probe takes the fast path: a lookup (SIDR_REQ) of a service that no host has,
 * which every connection manager answers. The answer is the proof; only a host that sees the probe
 * can forge it. If there is no answer within a second although the peer sends other messages, the
 * fast path to this peer is marked as failing, and probed again after ten seconds, doubled each
 * time. An unanswered message casts doubt on a way that has worked: umad is used until another
 * probe is answered.
 *
 * The caller serialises all calls. Times are in nanoseconds, on any monotonic clock.
 */
#ifndef MAD_PEERS_H
#define MAD_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/list.h"
#include "base/slab.h"
#include "mad/port.h"

#define PEERS_MAX	 16384 /* the least recently used peer is evicted */
#define PEERS_LOST	 8     /* if so many fail and none works, new peers are not probed */
#define PEER_BY_UMAD	 0
#define PEER_QP1	 1

#define PROBES		 4		     /* per round */
#define PROBE_NS	 UINT64_C(250000000) /* timeout of each */
#define PROBE_AVOIDED_NS UINT64_C(10000000000)
#define PROBE_DOUBLINGS	 6 /* of PROBE_AVOIDED_NS: 11 minutes */

/* The fast path to a peer. */
enum way {
	WAY_UNKNOWN,
	WAY_PROBED, /* probes are outstanding */
	WAY_WORKS,
	WAY_FAILS,
	N_WAYS
};

struct peer {
	struct hash_node by_gid;
	struct list used;
	struct list probed; /* in peers.probed while WAY_PROBED */
	struct mad_path path;
	uint32_t qpn; /* the peer's own; 0: unknown */
	uint64_t heard_ns;
	uint64_t own_avoided_until_ns;
	enum way way;
	uint32_t probe_id;     /* request id of the first probe of a round; the others count up */
	unsigned int n_probes; /* sent in this round */
	unsigned int n_failed; /* consecutive failed rounds */
	bool is_alive;	       /* a message of the peer has arrived since the round began */
	uint64_t due_ns;       /* of the next probe, or the end of the round */
	uint64_t proven_ns;    /* when a probe was last answered */
	uint64_t again_ns;     /* earliest beginning of the next round */
};

struct peers {
	struct hash by_gid;
	struct slab slab;
	struct list used;   /* least recently used first */
	struct list probed; /* earliest due first */
	unsigned int n[N_WAYS];
	unsigned int n_peers;
	uint64_t again_ns;   /* earliest beginning of a round with a new peer */
	struct mad_gid lost; /* the first peer that the fast path did not reach */
};

/** peers_init() - initialise without peers. Return: 0; -ENOMEM, peers_fini() is allowed. */
int peers_init(struct peers *peers);

/** peers_fini() - free all; a zeroed struct is allowed */
void peers_fini(struct peers *peers);

/** peers_qpn() - where to send messages for @gid. Return: a QPN, or PEER_BY_UMAD. */
uint32_t peers_qpn(const struct peers *peers, const struct mad_gid *gid, uint64_t now_ns);

/**
 * peers_asked() - a request leaves along @path: begin a round of probes if one is due
 *
 * Return: as peers_qpn().
 */
uint32_t peers_asked(struct peers *peers, const struct mad_path *path, uint64_t now_ns);

/**
 * peers_probe() - get the next probe that is due; ends rounds that are over
 * @id:     request id for the round, if this is its first probe
 * @ret:    path of the probe
 * @ret_id: request id of the probe
 *
 * Return: false if none is due.
 */
bool peers_probe(struct peers *peers, uint32_t id, uint64_t now_ns, struct mad_path *ret,
		 uint32_t *ret_id);

/** peers_due_ns() - when peers_probe() should be called next. Return: 0 if no round is going on. */
uint64_t peers_due_ns(const struct peers *peers);

/** peers_note_arrival() - a message, possibly forged, came from @gid */
void peers_note_arrival(struct peers *peers, const struct mad_gid *gid);

/** peers_answered() - a SIDR_REP came from @gid. Return: true if it answers a probe. */
bool peers_answered(struct peers *peers, const struct mad_gid *gid, uint32_t request_id,
		    uint64_t now_ns);

/** peers_note_message() - a message of a connection came from @gid's queue pair @qpn */
void peers_note_message(struct peers *peers, const struct mad_gid *gid, uint32_t qpn,
			uint64_t now_ns);

/**
 * peers_note_request() - @gid began an exchange from its queue pair @qpn
 *
 * If that is not the one known, its cmportd has been replaced: answers go to QP1. Any host can
 * forge this, and slow down the messages of a second by it.
 */
void peers_note_request(struct peers *peers, const struct mad_gid *gid, uint32_t qpn);

/** peers_missed() - @gid retransmitted a request: our answer may have been lost */
void peers_missed(struct peers *peers, const struct mad_gid *gid, uint64_t now_ns);

/**
 * peers_unanswered() - a request that left along @path was not answered
 *
 * Avoids the peer's own queue pair for ten seconds, so that a forger of the peer's address catches
 * at most one message in that time.
 */
void peers_unanswered(struct peers *peers, const struct mad_path *path, uint64_t now_ns);

#endif

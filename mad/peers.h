/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * To which queue pair of a peer a message is sent. QP1 is always right; but whoever sends from a
 * queue pair of his own (sender.h) also receives there (inbox.h), which spares his kernel most of
 * the work. What was heard of a peer holds for a second after he was last heard: then he may be
 * another one. Called by sender.c, under its lock.
 */
#ifndef MAD_PEERS_H
#define MAD_PEERS_H

#include <stdint.h>

#include "mad/port.h"

#define PEERS_LOG2 8
#define PEERS	   (1 << PEERS_LOG2) /* two that fall together are served through QP1 */
#define PEER_QP1   1

struct peer {
	struct mad_gid gid;
	uint32_t qpn; /* 0: nothing is known */
	uint64_t heard_ns;
	uint64_t doubted_until_ns;
};

/* Zeroed, it knows nobody. */
struct peers {
	struct peer slot[PEERS];
};

/** peers_qpn() - where to send to @gid at @now_ns, on any clock that does not go back */
uint32_t peers_qpn(const struct peers *peers, const struct mad_gid *gid, uint64_t now_ns);

/** peers_heard() - a message came from @gid, sent from @qpn */
void peers_heard(struct peers *peers, const struct mad_gid *gid, uint32_t qpn, uint64_t now_ns);

/**
 * peers_doubt() - a message to @gid was not answered
 *
 * What is sent goes to QP1 for ten seconds from now on, whatever is heard: who forges the peer's
 * address must not have more than one message a time.
 */
void peers_doubt(struct peers *peers, const struct mad_gid *gid, uint64_t now_ns);

#endif

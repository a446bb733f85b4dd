/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests received from peers, to detect retransmissions: a retransmission means that our answer
 * was lost or is still pending, so answers to it take the safe path, through umad. The caller
 * serialises all calls.
 */
#ifndef MAD_ASKED_H
#define MAD_ASKED_H

#include "mad/talk.h"

#define ASKED_SETS_LOG2 8
#define ASKED_SETS	(1 << ASKED_SETS_LOG2)
#define ASKED_IN_SET	4 /* associativity: more concurrent requests per set evict each other */

struct question {
	struct mad_gid gid;
	uint32_t id;	  /* 0: free */
	uint16_t attr_id; /* of the latest request with this id */
	bool again;
};

/* Zeroed: empty. */
struct asked {
	struct question of[ASKED_SETS][ASKED_IN_SET];
	uint8_t next[ASKED_SETS]; /* next victim */
};

/** asked_note() - record a message from @gid. Return: true if it is a retransmitted request. */
bool asked_note(struct asked *asked, const struct mad_gid *gid, const struct mad_talk *talk);

/** asked_again() - true if this message to @gid answers a retransmitted request. */
bool asked_again(const struct asked *asked, const struct mad_gid *gid, const struct mad_talk *talk);

#endif

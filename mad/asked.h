/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What peers have asked, to notice what they ask again: then our answer has not arrived, or was not
 * given yet, and what is said now had better go the way that is always right. The
 * caller serialises all calls.
 */
#ifndef MAD_ASKED_H
#define MAD_ASKED_H

#include "mad/talk.h"

#define ASKED_SETS_LOG2 8
#define ASKED_SETS	(1 << ASKED_SETS_LOG2)
#define ASKED_IN_SET	4 /* more that ask at the same time are forgotten before they ask again */

struct question {
	struct mad_gid gid;
	uint32_t id;	  /* 0: none */
	uint16_t attr_id; /* of the last one with this id */
	bool again;
};

/* Zeroed, nothing was asked. */
struct asked {
	struct question of[ASKED_SETS][ASKED_IN_SET];
	uint8_t next[ASKED_SETS]; /* to be forgotten */
};

/** asked_note() - a message has come from @gid. Return: is it a question that came before? */
bool asked_note(struct asked *asked, const struct mad_gid *gid, const struct mad_talk *talk);

/** asked_again() - does this message to @gid answer what was asked more than once? */
bool asked_again(const struct asked *asked, const struct mad_gid *gid, const struct mad_talk *talk);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a message is in a conversation, for those who carry messages and have no connections: does
 * it ask, does it answer, and what do the two call what they talk about.
 */
#ifndef MAD_TALK_H
#define MAD_TALK_H

#include "mad/cm_msg.h"

struct mad_talk {
	bool asks;    /* its sender says it again until it is answered: REQ, REP, DREQ, SIDR_REQ */
	bool answers; /* REP, RTU, MRA, REJ, DREP, SIDR_REP */
	uint16_t attr_id;
	uint32_t sender_id; /* comm id or request id; 0: it names none */
	uint32_t receiver_id;
};

/** mad_talk_of() - all zero for what is no message of the CM. */
struct mad_talk mad_talk_of(const uint8_t mad[MAD_BYTES]);

#endif

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

/* "\2purecm": a service that no host has; 2 in the first byte says that its number is local. */
#define MAD_PROBE_SERVICE_ID UINT64_C(0x0270757265636d00)

/** mad_probe_write() - the question that every connection manager answers: a lookup in vain */
void mad_probe_write(uint32_t request_id, uint8_t ret[MAD_BYTES]);

/** mad_probe_answer() - Return: false if @mad is none; else true with the answer to it. */
bool mad_probe_answer(const uint8_t mad[MAD_BYTES], uint8_t ret[MAD_BYTES]);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Classifies a message for code that carries messages but has no connections: whether it is a
 * request or an answer, and which ids it carries.
 */
#ifndef MAD_TALK_H
#define MAD_TALK_H

#include "mad/cm_msg.h"

struct mad_talk {
	bool asks;    /* retransmitted until answered: REQ, REP, DREQ, SIDR_REQ */
	bool answers; /* REP, RTU, MRA, REJ, DREP, SIDR_REP */
	uint16_t attr_id;
	uint32_t sender_id; /* comm id or request id; 0: none */
	uint32_t receiver_id;
};

/** mad_talk_of() - classify a MAD; all zero if it is no CM message. */
struct mad_talk mad_talk_of(const uint8_t mad[MAD_BYTES]);

/* "\2purecm": a service that no host has; 2 in the first byte marks a locally assigned id. */
#define MAD_PROBE_SERVICE_ID UINT64_C(0x0270757265636d00)

/** mad_probe_write() - write a probe: a lookup that every connection manager answers */
void mad_probe_write(uint32_t request_id, uint8_t ret[MAD_BYTES]);

/** mad_probe_answer() - write the answer to a probe. Return: false if @mad is no probe. */
bool mad_probe_answer(const uint8_t mad[MAD_BYTES], uint8_t ret[MAD_BYTES]);

#endif

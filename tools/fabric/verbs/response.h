/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a response has to be like, for the requester of connected queue pairs.
 */
#ifndef FABRIC_RESPONSE_H
#define FABRIC_RESPONSE_H

#include "tools/fabric/verbs/objects.h"

/** response_bytes() - return the length of the response to the oldest unacknowledged PSN */
uint32_t response_bytes(const struct fab_qp *qp, const struct fab_send *send);

/**
 * response_is_good() - check a response with that PSN, to a send that may need none
 *
 * IBTA vol. 1, 9.7.6.1 and 9.9.2: a response with an unexpected opcode or length is bad.
 */
bool response_is_good(const struct fab_qp *qp, const struct fab_send *send,
		      const struct fab_packet *packet);

#endif

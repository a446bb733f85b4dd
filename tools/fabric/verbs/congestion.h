/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How much a requester may have under way, and how long an answer to it takes. All of it locked.
 *
 * Where packets that are too many get lost (RoCE), the window adapts: it doubles in a round trip
 * until one is lost or marked by a router, is halved then, and grows by one packet a round trip
 * from there, like TCP's (RFC 5681). It is halved, too, while a round trip takes more than a
 * quarter of the timeout. Queue pairs that share a path share it evenly so.
 */
#ifndef FABRIC_CONGESTION_H
#define FABRIC_CONGESTION_H

#include "tools/fabric/verbs/objects.h"

/** congestion_reset() - begin anew, with the numbers that the queue pair has. */
void congestion_reset(struct fab_qp *qp);

/** congestion_psns() - how many full packets make so many bytes; at least 1. */
uint32_t congestion_psns(const struct fab_qp *qp, uint32_t bytes);

/** congestion_sent() - a packet leaves, whose PSN is sq.send_psn. */
void congestion_sent(struct fab_qp *qp, const struct fab_packet *packet);

/** congestion_acked() - all before @una is acknowledged; sq.una still is what it was. */
void congestion_acked(struct fab_qp *qp, uint64_t una);

/**
 * congestion_lost() - packets were lost, or marked
 * @late: and no answer tells of it
 */
void congestion_lost(struct fab_qp *qp, bool late);

/** congestion_timeout_ns() - the local ACK timeout of a queue pair that has one. */
uint64_t congestion_timeout_ns(const struct fab_qp *qp);

/** congestion_patience_ns() - the retransmission timeout; 0: no round trip was measured yet. */
uint64_t congestion_patience_ns(const struct fab_qp *qp);

#endif

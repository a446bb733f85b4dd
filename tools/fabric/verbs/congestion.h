/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How much a requester may have under way, and how long an answer to it takes. All of it locked.
 *
 * Where packets that are too many get lost (RoCE), the window adapts: it doubles in a round trip
 * until one is lost or marked by a router, is halved then, and grows by one packet a round trip
 * from there, like TCP's (RFC 5681). A large one is halved, too, while a round trip takes more than
 * a quarter of the timeout. Queue pairs that share a path share it evenly so.
 */
#ifndef FABRIC_CONGESTION_H
#define FABRIC_CONGESTION_H

#include "tools/fabric/verbs/objects.h"

/** congestion_reset() - reset to the queue pair's present PSNs */
void congestion_reset(struct fab_qp *qp);

/** congestion_psns() - the number of full packets for @bytes; at least 1 */
uint32_t congestion_psns(const struct fab_qp *qp, uint32_t bytes);

/** congestion_sent() - note a sent packet, whose PSN is sq.send_psn */
void congestion_sent(struct fab_qp *qp, const struct fab_packet *packet);

/**
 * congestion_acked() - note that all PSNs before @una are acknowledged; sq.una is not yet updated
 */
void congestion_acked(struct fab_qp *qp, uint64_t una);

/**
 * congestion_lost() - note lost or marked packets
 * @late: detected by timeout only
 */
void congestion_lost(struct fab_qp *qp, bool late);

/**
 * congestion_retry_ns() - the time without progress that counts as a retry: the local ACK timeout,
 * lengthened if it is short (IBTA vol. 1, 9.7.6.1.3, permits four times as much)
 */
uint64_t congestion_retry_ns(const struct fab_qp *qp);

/** congestion_patience_ns() - the time after which packets are sent again for the first time */
uint64_t congestion_patience_ns(const struct fab_qp *qp);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* What responders of this process grant to their peers: ../wire/grants.h. The context is locked. */
#ifndef FABRIC_GRANT_H
#define FABRIC_GRANT_H

#include "tools/fabric/verbs/carrier.h"

/** grants_open() - offer grants; without them, peers use packets */
void grants_open(struct fab_context *context);

/** grants_close() - may be called repeatedly, and without grants_open() */
void grants_close(struct fab_context *context);

/**
 * grants_take_packets() - handle what peers have left in rings. Return: whether there was anything.
 */
bool grants_take_packets(struct fab_context *context, deliver_fn *deliver);

/** grants_set_polled() - show peers whether the program takes packets all the time */
void grants_set_polled(struct fab_context *context, bool is_polled);

/**
 * grant_publish() - permit the sender of an accepted write or read to do so without packets
 * @mr:   the region
 * @turn: of the host's page, from before the rights were checked
 */
void grant_publish(struct fab_qp *qp, const struct fab_packet *packet, const struct fab_mr *mr,
		   uint32_t turn);

/**
 * grant_advance() - after each packet to an unreliable queue pair: show the peer which PSN is next
 *
 * The peer, who gets no acknowledgements, writes without packets only if it has sent no other.
 */
void grant_advance(const struct fab_qp *qp);

/** grant_is_given() - return whether the peer of the queue pair may look for a grant */
bool grant_is_given(const struct fab_qp *qp);

/** grant_end() - end the queue pair's grant; nothing comes after that */
void grant_end(struct fab_qp *qp);

/** grant_end_region() - end all grants for a region that changes; nothing comes after that */
void grant_end_region(struct fab_context *context, const struct fab_mr *mr);

#endif

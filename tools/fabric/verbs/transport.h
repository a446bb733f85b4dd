/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What moves data: the requester and the responder of connected queue pairs, and datagrams; and
 * what these three have in common (transport_*). All of it locked.
 */
#ifndef FABRIC_TRANSPORT_H
#define FABRIC_TRANSPORT_H

#include "tools/fabric/verbs/objects.h"

/** requester_push() - send what may be sent now. */
void requester_push(struct fab_qp *qp);

/** requester_is_drained() - is nothing under way that was begun? */
bool requester_is_drained(const struct fab_qp *qp);

/** requester_tell_drained() - by an event, once, if the program wants one. */
void requester_tell_drained(struct fab_qp *qp);

/** requester_answered() - an ACK, a NAK or a response came. */
void requester_answered(struct fab_qp *qp, const struct fab_packet *packet, const void *payload);

/** requester_slow_down() - a router is congested by what the queue pair sends or asks for. */
void requester_slow_down(struct fab_qp *qp);

/** requester_timer() - is it time to send again, or to give up? */
void requester_timer(struct fab_qp *qp, uint64_t now_ns);

/** responder_asked() - a request came. */
void responder_asked(struct fab_qp *qp, const struct fab_packet *packet, const void *payload);

/**
 * responder_end_turn() - send what all queue pairs owe for the packets of a turn
 *
 * What is too much for one turn is left: context->unacked is not empty.
 */
void responder_end_turn(struct fab_context *context);

/**
 * datagram_send() - send one; to all members of a group
 *
 * Return: how the send ends.
 */
enum ibv_wc_status datagram_send(struct fab_qp *qp, const struct fab_send *send);

/** datagram_came() - give it to the queue pair, if it may have it. */
void datagram_came(struct fab_qp *qp, const struct fab_packet *packet, const void *payload);

/** transport_send() - send a packet, if the port that it leaves by is up. */
void transport_send(struct fab_context *context, const char *path, const struct fab_packet *packet,
		    const void *payload);

/** transport_header() - a packet to a connected queue pair's peer, but for what it is about. */
void transport_header(const struct fab_qp *qp, struct fab_packet *ret);

/**
 * transport_gather() - part of what a send's list holds
 * @ret: where it lies in one piece, until the next call or the program changes it: in the program's
 *       memory if it does so there
 *
 * Return: IBV_WC_SUCCESS or why not.
 */
enum ibv_wc_status transport_gather(const struct fab_qp *qp, const struct fab_send *send,
				    uint64_t offset, uint32_t bytes, const void **ret);

/** transport_scatter() - write to part of a list; Return: as transport_gather(). */
enum ibv_wc_status transport_scatter(const struct fab_qp *qp, const struct ibv_sge *sge,
				     uint32_t n_sge, uint64_t offset, const void *data,
				     uint32_t bytes);

/**
 * transport_take_receive() - the next receive, of the queue pair or its shared queue
 *
 * Return: NULL if there is none; good until the next call for this queue pair.
 */
struct fab_receive *transport_take_receive(struct fab_qp *qp);

#endif

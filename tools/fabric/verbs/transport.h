/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The transport: requester and responder of connected queue pairs, and datagrams; and their common
 * functions (transport_*). All functions are locked.
 */
#ifndef FABRIC_TRANSPORT_H
#define FABRIC_TRANSPORT_H

#include "tools/fabric/verbs/objects.h"

/** requester_push() - send as much as is allowed now */
void requester_push(struct fab_qp *qp);

/** requester_is_drained() - return whether no started send is pending */
bool requester_is_drained(const struct fab_qp *qp);

/**
 * requester_report_drained() - report the drained queue by an event, once, if the program requests
 * one
 */
void requester_report_drained(struct fab_qp *qp);

/** requester_receive() - handle an ACK, a NAK or a response */
void requester_receive(struct fab_qp *qp, const struct fab_packet *packet, const void *payload);

/** requester_slow_down() - handle congestion caused by the queue pair's sends or reads */
void requester_slow_down(struct fab_qp *qp);

/** requester_timer() - retransmit or give up at the deadline */
void requester_timer(struct fab_qp *qp, uint64_t now_ns);

/** responder_receive() - handle a request */
void responder_receive(struct fab_qp *qp, const struct fab_packet *packet, const void *payload);

/**
 * responder_end_turn() - send the output of all queue pairs for the packets of a turn
 *
 * Output beyond one turn's share remains: context->unacked is then not empty.
 */
void responder_end_turn(struct fab_context *context);

/**
 * datagram_send() - send a datagram; to all members, if it is for a group
 *
 * Return: the status of the send.
 */
enum ibv_wc_status datagram_send(struct fab_qp *qp, const struct fab_send *send);

/** datagram_receive() - deliver a datagram to the queue pair, if allowed */
void datagram_receive(struct fab_qp *qp, const struct fab_packet *packet, const void *payload);

/** transport_send() - send a packet, if its source port is active */
void transport_send(struct fab_context *context, const char *path, const struct fab_packet *packet,
		    const void *payload);

/** transport_may_send() - count and capture a packet. Return: false if its port is not active. */
bool transport_may_send(struct fab_context *context, const struct fab_packet *packet,
			const void *payload);

/** transport_address() - make a packet from a queue pair to an address */
void transport_address(const struct fab_qp *qp, const struct ibv_ah_attr *av,
		       const union ibv_gid *sgid, struct fab_packet *ret);

/**
 * transport_header() - make a packet to a connected queue pair's peer, without operation and data
 */
void transport_header(const struct fab_qp *qp, struct fab_packet *ret);

/**
 * transport_gather() - get a part of a send's data in one piece
 * @bytes: FAB_FRAGMENT_BYTES at most
 * @ret:   the data, valid until the next packet
 *
 * Return: IBV_WC_SUCCESS or the error.
 */
enum ibv_wc_status transport_gather(const struct fab_qp *qp, const struct fab_send *send,
				    uint64_t offset, uint32_t bytes, const void **ret);

/** transport_scatter() - write to a part of a list. Return: as transport_gather(). */
enum ibv_wc_status transport_scatter(const struct fab_qp *qp, const struct ibv_sge *sge,
				     uint32_t n_sge, uint64_t offset, const void *data,
				     uint32_t bytes);

/**
 * transport_take_receive() - take the next receive of the queue pair or its shared queue
 *
 * Return: NULL if there is none; valid until the next call for this queue pair.
 */
struct fab_receive *transport_take_receive(struct fab_qp *qp);

#endif

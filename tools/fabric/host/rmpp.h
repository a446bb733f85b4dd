/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RMPP, IBTA vol. 1, 13.6: messages of subnet administration that are longer than a MAD, in
 * segments. As in the kernel's umad, a program writes and reads such a message in one piece:
 * headers, then all data.
 */
#ifndef FABRIC_HOST_RMPP_H
#define FABRIC_HOST_RMPP_H

#include "tools/fabric/host/host.h"

#define RMPP_HEADERS_BYTES 56 /* MAD, RMPP and SA headers of each segment */
#define RMPP_DATA_MAX	   ((4u << 20) - RMPP_HEADERS_BYTES)

struct conn;

/**
 * rmpp_is_active() - return whether @mad is a segment, or begins a message to be sent in segments
 */
bool rmpp_is_active(const uint8_t mad[FAB_MAD_BYTES]);

/**
 * rmpp_send() - send a message in segments
 * @from:    the sender, to which it returns with ETIMEDOUT if it is not acknowledged; may be NULL
 * @head:    the destination
 * @message: headers and data; the RMPP header is set here
 *
 * Return: 0, or a positive errno as from write().
 */
int rmpp_send(struct host *host, uint8_t port_num, struct conn *from,
	      const struct ib_user_mad *head, const uint8_t *message, size_t bytes);

/**
 * rmpp_input() - handle a received MAD
 *
 * A complete message is delivered with agents_receive().
 *
 * Return: false if the MAD is to be delivered unchanged: it is not a segment, or its agent
 * assembles messages itself.
 */
bool rmpp_input(struct host *host, uint8_t port_num, const struct ib_user_mad *head,
		const uint8_t mad[FAB_MAD_BYTES]);

/** rmpp_expire() - retransmit or give up what is due. Return: whether any transfer is active. */
bool rmpp_expire(struct host *host, uint64_t now_ns);

/** rmpp_forget() - drop the messages of a program; NULL drops all */
void rmpp_forget(struct host *host, const struct conn *from);

#endif

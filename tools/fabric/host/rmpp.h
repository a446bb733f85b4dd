/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RMPP, IBTA vol. 1, 13.6: messages of subnet administration that are longer than a MAD, in
 * segments. As the kernel does it for agents of umad: a program writes and reads such a message as
 * one, headers first, then all data.
 */
#ifndef FABRIC_HOST_RMPP_H
#define FABRIC_HOST_RMPP_H

#include "tools/fabric/host/host.h"

#define RMPP_HEADERS_BYTES 56 /* of MAD, RMPP and SA, in each segment */

struct conn;

/** rmpp_is_active() - is it a segment, or the first bytes of a message to be sent in segments? */
bool rmpp_is_active(const uint8_t mad[FAB_MAD_BYTES]);

/**
 * rmpp_send() - send a message in segments
 * @from:    whose it is; it comes back with ETIMEDOUT if nobody acknowledges it. NULL: nobody's
 * @head:    where to
 * @message: headers and data; the header of RMPP is filled here
 *
 * Return: 0, or an errno (positive) as write() would give it.
 */
int rmpp_send(struct host *host, uint8_t port_num, struct conn *from,
	      const struct ib_user_mad *head, const uint8_t *message, size_t bytes);

/**
 * rmpp_input() - a MAD came
 *
 * A message that is complete is given to agents_receive().
 *
 * Return: false if it is to be given to an agent as it is: it is no segment, or the agent
 * assembles messages itself.
 */
bool rmpp_input(struct host *host, uint8_t port_num, const struct ib_user_mad *head,
		const uint8_t mad[FAB_MAD_BYTES]);

/** rmpp_expire() - send again and give up what is due. Return: whether anything is under way. */
bool rmpp_expire(struct host *host, uint64_t now_ns);

/** rmpp_forget() - forget the messages of a program; with NULL: all. */
void rmpp_forget(struct host *host, const struct conn *from);

#endif

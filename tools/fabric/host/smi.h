/* SPDX-License-Identifier: BSD-2-Clause */
/* Subnet management (QP0) of a host's ports, for programs that use umad: see smi.c. */
#ifndef FABRIC_HOST_SMI_H
#define FABRIC_HOST_SMI_H

#include "tools/fabric/host/host.h"

#define FAB_SWITCH_PORTS_MAX 254
#define SMI_LID_SWITCH	     0xbe00 /* of the switch of each subnet, no host's */

/** smi_is_for() - is it a subnet management MAD (QP0), LID-routed or with a directed route? */
bool smi_is_for(const uint8_t mad[FAB_MAD_BYTES]);

/**
 * smi_answer() - answer a question of a program on this host
 * @head: where it is sent to
 * @mad:  the question; becomes the answer
 *
 * Return: false if nobody answers: there is no way, or it is no question; always on RoCE.
 */
bool smi_answer(const struct host *host, uint8_t port_num, const struct ib_user_mad *head,
		uint8_t mad[FAB_MAD_BYTES]);

#endif

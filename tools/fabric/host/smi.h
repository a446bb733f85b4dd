/* SPDX-License-Identifier: BSD-2-Clause */
/* Subnet management (QP0) of a host's ports, for programs that use umad: see smi.c. */
#ifndef FABRIC_HOST_SMI_H
#define FABRIC_HOST_SMI_H

#include <infiniband/umad_sm.h>

#include "tools/fabric/host/host.h"

#define FAB_SWITCH_PORTS_MAX 254
#define SMI_LID_SWITCH	     0xbe00 /* of the switch of each subnet, no host's */

/* A host's port, and where the switch has it. */
struct smi_end {
	char host[FAB_NAME_BYTES];
	uint8_t number; /* of the port, from 1 */
	uint8_t n_ports;
	uint8_t switch_port;
	uint64_t node_guid;
	struct fab_port port;
};

struct smi_subnet {
	uint8_t number;
	unsigned int n_ends;
	struct smi_end end[FAB_SWITCH_PORTS_MAX];
};

/* Where a question arrives. */
struct smi_place {
	const struct smi_subnet *subnet;
	const struct smi_end *end; /* NULL: the switch */
	uint8_t entry;		   /* the port that it came in by; 0: it began there */
};

/** smi_read_subnet() - the ports of a subnet, by the pages of the hosts. */
void smi_read_subnet(const struct host *host, uint8_t number, struct smi_subnet *ret);

/**
 * smi_get() - an attribute of a port or the switch; @data: as in a MAD
 *
 * Return: 0, or the status that a MAD gets.
 */
unsigned int smi_get(const struct smi_place *place, uint16_t attr_id, uint32_t modifier,
		     uint8_t data[UMAD_LEN_SMP_DATA]);

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

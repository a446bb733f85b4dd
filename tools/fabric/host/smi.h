/* SPDX-License-Identifier: BSD-2-Clause */
/* Subnet management (QP0) of a host's ports, for programs that use umad: see smi.c. */
#ifndef FABRIC_HOST_SMI_H
#define FABRIC_HOST_SMI_H

#include <infiniband/umad_sm.h>

#include "tools/fabric/host/host.h"

#define FAB_SWITCH_PORTS_MAX 254
#define SMI_LID_SWITCH	     0xbe00 /* LID of the switch of each subnet; not assigned to hosts */

/* A host's port, and its switch port. */
struct smi_end {
	char host[FAB_NAME_BYTES];
	uint8_t number; /* port number, from 1 */
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

/* Where a request arrives. */
struct smi_place {
	const struct smi_subnet *subnet;
	const struct smi_end *end; /* NULL: the switch */
	uint8_t entry;		   /* ingress port; 0: originates here */
};

/** smi_read_subnet() - read the ports of a subnet from the hosts' pages */
void smi_read_subnet(const struct host *host, uint8_t number, struct smi_subnet *ret);

/** smi_switch_ports() - the number of the switch's ports */
uint8_t smi_switch_ports(const struct smi_subnet *subnet);

/** smi_end_at() - the host's port at a port of the switch, or NULL */
const struct smi_end *smi_end_at(const struct smi_subnet *subnet, unsigned int switch_port);

/**
 * smi_get() - get an attribute of a port or the switch; @data as in a MAD
 *
 * Return: 0, or the status of the response MAD.
 */
unsigned int smi_get(const struct smi_place *place, uint16_t attr_id, uint32_t modifier,
		     uint8_t data[UMAD_LEN_SMP_DATA]);

/**
 * smi_is_for() - return whether @mad is for subnet management (QP0), LID-routed or directed-route
 */
bool smi_is_for(const uint8_t mad[FAB_MAD_BYTES]);

/**
 * smi_answer() - respond to a request from a program on this host
 * @head: its destination
 * @mad:  the request; replaced by the response
 *
 * Return: false if there is no response: no route, or not a request; always on RoCE.
 */
bool smi_answer(const struct host *host, uint8_t port_num, const struct ib_user_mad *head,
		uint8_t mad[FAB_MAD_BYTES]);

#endif

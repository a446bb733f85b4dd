/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The traffic counters of a host's ports: a file that the host's process creates, and that every
 * process with the device open has mapped. Each process adds to counters of its own, found by its
 * slot, which the next process of that slot continues; the counters of a port are their sums.
 */
#ifndef FABRIC_COUNTERS_H
#define FABRIC_COUNTERS_H

#include "tools/fabric/wire/folder.h"
#include "tools/fabric/wire/packet.h"

enum fab_counter {
	FAB_XMIT_OCTETS, /* with headers and ICRC; of Ethernet and IP as if they were LRH and GRH */
	FAB_XMIT_PACKETS,
	FAB_XMIT_MULTICAST,
	FAB_XMIT_DISCARDS, /* the port was down */
	FAB_XMIT_LOST,	   /* by a fault, after they were sent */
	FAB_RCV_OCTETS,
	FAB_RCV_PACKETS,
	FAB_RCV_MULTICAST, /* for each member */
	FAB_LINK_DOWNED,
	FAB_N_COUNTERS,
};

struct fab_port_counters {
	uint64_t n[FAB_N_COUNTERS];
};

/* Those of one process; its peers add what they write to its memory (grants.h). */
struct fab_counters {
	struct fab_port_counters port[FAB_PORTS];
};

/**
 * fab_counters_create() - create the file of this host, with all counters 0
 *
 * Return: 0, with *ret the counters of each slot, mapped until the process ends; -errno.
 */
int fab_counters_create(const struct fab_folder *folder, struct fab_counters **ret);

/**
 * fab_counters_open() - map the counters of a host; to be released with fab_counters_close()
 *
 * Return: 0, with *ret those of each slot; -errno.
 */
int fab_counters_open(const struct fab_folder *folder, const char *host, struct fab_counters **ret);

/** fab_counters_close() - unmap; NULL is allowed */
void fab_counters_close(struct fab_counters *of_slots);

/** fab_count() - add to a counter; NULL counts nothing */
void fab_count(struct fab_counters *own, uint8_t port_num, enum fab_counter counter, uint64_t n);

/** fab_count_sent() - count a packet, unless it is from a port to itself, and so not on the wire */
void fab_count_sent(struct fab_counters *own, const struct fab_packet *packet);

/** fab_count_received() - count a packet of port packet->port_num, as above */
void fab_count_received(struct fab_counters *own, const struct fab_packet *packet);

/** fab_counters_sum() - add up the counters of a port */
void fab_counters_sum(const struct fab_counters *of_slots, uint8_t port_num,
		      struct fab_port_counters *ret);

/** fab_packet_octets() - the bytes of a packet from LRH to ICRC */
uint32_t fab_packet_octets(const struct fab_packet *packet);

#endif

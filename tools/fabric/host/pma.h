/* SPDX-License-Identifier: BSD-2-Clause */
/* Performance management of InfiniBand ports and their switch (IBTA vol. 1, 16.1). */
#ifndef FABRIC_HOST_PMA_H
#define FABRIC_HOST_PMA_H

#include "tools/fabric/host/host.h"

/* As files of /sys name them; X(name). */
#define PMA_COUNTERS(X)                    \
	X(symbol_error)                    \
	X(link_error_recovery)             \
	X(link_downed)                     \
	X(port_rcv_errors)                 \
	X(port_rcv_remote_physical_errors) \
	X(port_rcv_switch_relay_errors)    \
	X(port_xmit_discards)              \
	X(port_xmit_constraint_errors)     \
	X(port_rcv_constraint_errors)      \
	X(local_link_integrity_errors)     \
	X(excessive_buffer_overrun_errors) \
	X(VL15_dropped)                    \
	X(port_xmit_wait)                  \
	X(port_xmit_data)                  \
	X(port_rcv_data)                   \
	X(port_xmit_packets)               \
	X(port_rcv_packets)                \
	X(unicast_xmit_packets)            \
	X(unicast_rcv_packets)             \
	X(multicast_xmit_packets)          \
	X(multicast_rcv_packets)

enum pma_counter {
#define X(name) PMA_##name,
	PMA_COUNTERS(X)
#undef X
	PMA_N_COUNTERS,
};

/** pma_read() - the counters of a port of this host, since they were set the last time */
void pma_read(const struct host *host, uint8_t port_num, uint64_t ret[PMA_N_COUNTERS]);

/**
 * pma_received() - handle a MAD of the class that no agent of a program has
 * @dlid: the LID that it was sent to: a port's or the switch's
 *
 * Return: whether it was a request, and was answered.
 */
bool pma_received(struct host *host, uint8_t port_num, uint16_t dlid,
		  const struct ib_user_mad *head, const uint8_t mad[FAB_MAD_BYTES]);

#endif

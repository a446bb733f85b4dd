/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The initial name of a host's device, and port attributes common to libibverbs, libibumad and
 * /sys.
 */
#ifndef FABRIC_DEVICE_H
#define FABRIC_DEVICE_H

#include "tools/fabric/wire/page.h"

#define FAB_DEVICE    "fab0"
#define FAB_FW_VER    "1.0"
#define FAB_VENDOR_ID 0x5043

#define FAB_WIDTH_4X  2
#define FAB_SPEED_QDR 4
#define FAB_RATE_GBPS 40

static inline bool fab_port_is_roce(const struct fab_port *port)
{
	return port->link_layer == IBV_LINK_LAYER_ETHERNET;
}

/** fab_port_phys_state() - 5: LinkUp, 3: Disabled (IBTA vol. 1, 14.2.5.6) */
static inline uint8_t fab_port_phys_state(const struct fab_port *port)
{
	return port->state >= IBV_PORT_INIT ? 5 : 3;
}

/** fab_port_cap_flags() - bits of IBV_PORT_*_SUP. */
static inline uint32_t fab_port_cap_flags(const struct fab_port *port)
{
	return IBV_PORT_CM_SUP | (fab_port_is_roce(port) ? (uint32_t)IBV_PORT_IP_BASED_GIDS : 0);
}

static inline unsigned int fab_port_pkeys(const struct fab_port *port)
{
	return fab_port_is_roce(port) ? 1 : FAB_PKEYS;
}

#endif

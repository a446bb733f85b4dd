/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The VRF of an interface. The kernel gives packets of a VRF only to sockets that are bound to it,
 * and uses its routes and addresses only for what they send.
 */
#ifndef FABRIC_UDP_VRF_H
#define FABRIC_UDP_VRF_H

#include <stdint.h>

#include "base/fd.h"

/** udp_vrf_of() - find the VRF that an interface belongs to. Return: its interface; 0: none. */
uint32_t udp_vrf_of(uint32_t ifindex);

/**
 * udp_vrf_bind() - bind a new socket to a VRF
 * @vrf: from udp_vrf_of(); 0 leaves the socket unbound
 *
 * Return: 0 or -errno: -EPERM before Linux 5.7 without CAP_NET_RAW.
 */
static inline int udp_vrf_bind(int fd, uint32_t vrf)
{
	return vrf ? fd_bind_to_interface(fd, vrf) : 0;
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device node of a port: how it is opened, and what the kernel wants to be told of where a MAD
 * goes.
 */
#ifndef MAD_UMAD_NODE_H
#define MAD_UMAD_NODE_H

#include <stdint.h>

#include <infiniband/umad.h>

#include "mad/port.h"

#define UMAD_BYTES_MAX 2048 /* of an Omni-Path MAD: a smaller buffer would block the queue */

/**
 * umad_open_node() - open a port, without waiting on reads and closed on exec
 * @device:   name of the RDMA device
 * @port_num: from 1
 * @node:     from umad_find_node(); empty if the kernel does not know the device
 *
 * Return: a descriptor, or -errno of open(); -ENXIO if no stand-in for libibumad has the port.
 */
int umad_open_node(const char *device, uint8_t port_num, const char *node);

/** umad_error() - what to return for an errno of read() or write(): a removed device says EIO. */
int umad_error(int err);

/** umad_path_to_addr() - where a MAD goes, as the kernel wants it. */
void umad_path_to_addr(const struct mad_path *path, struct ib_mad_addr *addr);

#endif

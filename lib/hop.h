/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Is the next hop of a MAD's path resolved? Asked before the engine's thread sends.
 */
#ifndef LIB_HOP_H
#define LIB_HOP_H

#include "lib/device.h"

/**
 * hop_is_ready() - can a MAD leave at once?
 * @port: where it would leave
 * @path: its way
 *
 * If not, the kernel is asked to resolve the next hop, so that a later try finds it.
 *
 * Return: true if the link address is known, or if nothing is known against sending.
 */
bool hop_is_ready(const struct port *port, const struct mad_path *path);

/** hop_addr() - the IP address of a RoCE v2 GID; a link-local one is pinned to @ifindex. */
void hop_addr(const struct mad_gid *gid, unsigned int ifindex, union addr *ret);

#endif

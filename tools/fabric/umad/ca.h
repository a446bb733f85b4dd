/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The room of libibumad, which programs load instead of the distribution's: umad.c is ports,
 * agents and MADs, ca.c the device, names.c what is for printing. It may call wire/ and nothing
 * else of ours; what the kernel would do is done by the host's process, at the other end of a
 * socket (wire/umad_wire.h). It holds no state of a port: a port is its descriptor.
 *
 * Below: which device and port a program means.
 */
#ifndef FABRIC_UMAD_CA_H
#define FABRIC_UMAD_CA_H

#include "tools/fabric/wire/folder.h"

/**
 * ca_find() - which device and port are meant, and the folder of the fabric
 * @name:     NULL for any
 * @port_num: 0 for any; set to the one that is meant
 *
 * Return: 0, or -ENODEV, -EINVAL.
 */
int ca_find(const char *name, int *port_num, struct fab_folder *ret);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libibumad for programs on a fabric, in place of the distribution's: umad.c has ports, agents and
 * MADs, ca.c and pair.c the device, names.c the printing functions. It may call wire/ only; the
 * kernel's part is done by the host's process, at the other end of a socket (wire/umad_wire.h). It
 * keeps no state of a port: a port is its descriptor.
 *
 * Below: lookup of a device and port.
 */
#ifndef FABRIC_UMAD_CA_H
#define FABRIC_UMAD_CA_H

#include "tools/fabric/wire/folder.h"

/**
 * ca_find() - find a device and port, and the fabric's folder
 * @name:     NULL for any
 * @port_num: 0 for any; set to the port found
 *
 * Return: 0, or -ENODEV, -EINVAL.
 */
int ca_find(const char *name, int *port_num, struct fab_folder *ret);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which device and port a program means. Called by the files of umad/.
 */
#ifndef FABRIC_UMAD_CA_H
#define FABRIC_UMAD_CA_H

#include "tools/fabric/wire/place.h"

/**
 * ca_find() - the place of a device and port
 * @name:     NULL for any
 * @port_num: 0 for any; set to the one that is meant
 *
 * Return: 0, or -ENODEV, -EINVAL.
 */
int ca_find(const char *name, int *port_num, struct fab_place *ret);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the one device of a host is called. By verbs/ and umad/.
 */
#ifndef FABRIC_DEVICE_H
#define FABRIC_DEVICE_H

#define FAB_DEVICE "fab0"

#endif

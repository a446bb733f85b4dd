/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices that are added and removed while the process runs, from the kernel's uevents.
 *
 * An open port reports its own removal. Other removals, and new devices, are only known from
 * uevents.
 */
#ifndef LIB_CONN_HOTPLUG_H
#define LIB_CONN_HOTPLUG_H

/** hotplug_start() - handle uevents in the engine's thread. Return: 0 or -errno. */
int hotplug_start(void);

/** hotplug_stop() - stop; in a forked child, or when the engine could not start. */
void hotplug_stop(void);

#endif

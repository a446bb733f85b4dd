/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices that come and go while the process runs, as the kernel announces them to everyone
 * (uevents).
 *
 * A port says of itself that it is gone, but only one that we have open; and nothing else says
 * that a device has come.
 */
#ifndef LIB_CONN_HOTPLUG_H
#define LIB_CONN_HOTPLUG_H

/** hotplug_start() - have announcements acted on in the engine's thread. Return: 0 or -errno. */
int hotplug_start(void);

/** hotplug_stop() - no more; in a forked child, or when the engine could not start. */
void hotplug_stop(void);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices that come and go while the process runs, as the kernel announces them to everyone
 * (uevents). Called by the engine.
 *
 * A port says of itself that it is gone, but only one that we have open; and nothing else says
 * that a device has come.
 */
#ifndef LIB_HOTPLUG_H
#define LIB_HOTPLUG_H

/**
 * hotplug_open() - start listening
 *
 * Return: a non-blocking descriptor to be polled and closed by the caller; -errno.
 */
int hotplug_open(void);

/** hotplug_drain() - take what was announced and act on it; no lock is held. */
void hotplug_drain(int fd);

#endif

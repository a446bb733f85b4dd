/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices that are added and removed while the process runs, from the kernel's uevents.
 *
 * An open port reports its own removal, but not one while cmportd is replaced. Other removals, and
 * new devices, are only known from uevents.
 */
#ifndef LIB_CONN_HOTPLUG_H
#define LIB_CONN_HOTPLUG_H

#include "base/time.h"
#include "lib/engine/served_port.h"

/** hotplug_start() - handle uevents in the engine's thread. Return: 0 or -errno. */
int hotplug_start(void);

/** hotplug_watch_additions() - listen on devices that are added from now on */
void hotplug_watch_additions(void);

/** hotplug_stop() - stop; in a forked child, or when the engine could not start. */
void hotplug_stop(void);

/**
 * hotplug_expect() - a device was removed, perhaps by a reset or a driver that is loaded again: if
 * an id listens on all devices, look for it for two minutes, as its return may not be announced
 * here; no lock is held
 */
void hotplug_expect(void);

/**
 * hotplug_settle() - if a port could not be opened because its device is just coming, or going: try
 * again for ten seconds; no lock is held
 */
void hotplug_settle(void);

/**
 * hotplug_check() - cmportd was replaced: notice removals meanwhile, and try again to open ports
 * that it could not open; no lock is held
 */
void hotplug_check(void);

/** hotplug_port_gone() - cmportd reports that the device of the port is gone; no lock is held */
void hotplug_port_gone(struct port *port);

/** hotplug_extend() - open the ports of new devices if an id listens on all; no lock is held */
void hotplug_extend(void);

/** hotplug_look() - scan for devices if it is time; in the engine's thread, before it sleeps */
void hotplug_look(void);

/** hotplug_deadline() - time by which to call hotplug_look() */
struct cm_time hotplug_deadline(void);

#endif

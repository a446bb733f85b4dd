/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device went away: its ids get an event, its connections are forgotten. In the engine's thread.
 */
#ifndef LIB_CONN_REMOVAL_H
#define LIB_CONN_REMOVAL_H

#include "lib/device/device.h"

/** removal_of_device() - a device is gone; once is enough; no lock is held. */
void removal_of_device(struct device *device);

/** removal_of_port() - an open port says that its device is gone; no lock is held. */
void removal_of_port(struct port *port);

#endif

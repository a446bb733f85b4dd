/* SPDX-License-Identifier: BSD-2-Clause */
/* Device removal: its ids get an event, its connections are dropped. In the engine's thread. */
#ifndef LIB_CONN_REMOVAL_H
#define LIB_CONN_REMOVAL_H

#include "lib/device/device.h"

/** removal_of_device() - handle a removed device; idempotent; no lock is held. */
void removal_of_device(struct device *device);

/** removal_of_port() - handle the removal that an open port reports; no lock is held. */
void removal_of_port(struct port *port);

#endif

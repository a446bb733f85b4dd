/* SPDX-License-Identifier: BSD-2-Clause */
/* Device removal: its ids get an event, its connections are dropped. */
#ifndef LIB_CONN_REMOVAL_H
#define LIB_CONN_REMOVAL_H

#include "lib/device/device.h"
#include "lib/id/id.h"

/** removal_of_device() - handle a removed device, for device_set_gone(); no lock is held. */
void removal_of_device(struct device *device);

/**
 * removal_of_id() - for an id, not of a request, that was put on a device that had been removed
 * meanwhile; once only; the engine's lock is held
 */
void removal_of_id(struct engine *engine, struct id *id);

#endif

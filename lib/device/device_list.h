/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of open devices, as device.c sees it, and when a device may be closed. device.h declares
 * what other rooms call. The lock may be held across system calls; it is never taken with the
 * engine's lock held.
 */
#ifndef LIB_DEVICE_DEVICE_LIST_H
#define LIB_DEVICE_DEVICE_LIST_H

#include "lib/device/device.h"

/** device_list_lock() - take the lock of the list, of opening devices, and of their ports */
void device_list_lock(void);
void device_list_unlock(void);

/** device_list_find() - the listed device that libibverbs lists, or NULL. The lock is held. */
struct device *device_list_find(const struct ibv_device *ibv);

/** device_list_add() - list a device that is open. The lock is held. Return: 0 or -ENOMEM. */
int device_list_add(struct device *device);

/** device_list_drop() - mark a device as removed, and list it no longer. The lock is held. */
void device_list_drop(struct device *device);

/**
 * device_list_next_unreported() - a removed device for which device_set_gone()'s function was not
 * called
 *
 * Return: the device, which now counts as reported, with a reference for device_put(); or NULL.
 */
struct device *device_list_next_unreported(void);

/**
 * device_list_take_unused() - take a removed device without users out of all lists
 * @seen_too: also if the program has seen it
 *
 * Return: to be closed and freed; or NULL, also while a thread looks at devices.
 */
struct device *device_list_take_unused(bool seen_too);

/** device_list_walk() - call a function for all devices that have not been closed */
void device_list_walk(void (*visit)(struct device *device));

#endif

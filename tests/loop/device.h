/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loop-back device of device.c, as the programs of this folder see it.
 */
#ifndef TESTS_LOOP_DEVICE_H
#define TESTS_LOOP_DEVICE_H

#define LOOP_ADDR  "10.77.0.1"
#define LOOP_ADDR6 "fd77::1"

/** loop_n_objects() - the number of protection domains, queue pairs and other objects. */
int loop_n_objects(void);

#endif

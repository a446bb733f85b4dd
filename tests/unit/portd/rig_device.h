/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fake device as the rig sees it; tests see rig.h.
 */
#ifndef TESTS_UNIT_PORTD_RIG_DEVICE_H
#define TESTS_UNIT_PORTD_RIG_DEVICE_H

/** rig_device_forget() - what was sent, and what has arrived and was not taken. */
void rig_device_forget(void);

#endif

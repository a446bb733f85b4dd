/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The subnet that the rig's ports are on, if a test says that they are on one: what is asked of its
 * administrator is recorded, and answered as the test says.
 */
#ifndef TESTS_UNIT_PORTD_RIG_SUBNET_H
#define TESTS_UNIT_PORTD_RIG_SUBNET_H

#include <infiniband/verbs.h>

#include "mad/sa_msg.h"

#define RIG_PKEYS 2 /* in the table of a port of it */

/** rig_is_infiniband() - ports that are opened from now on are on a subnet. */
void rig_is_infiniband(void);

/** rig_n_asked() - how many questions were sent to the administrator. */
unsigned int rig_n_asked(void);

/** rig_asked() - the n-th of them, from 0; of the latest 4,096. */
const struct sa_msg *rig_asked(unsigned int n);

/** rig_sa_answers() - it answers the n-th: the same record, with a LID in it; dealt with. */
void rig_sa_answers(unsigned int n, uint16_t status, uint16_t lid);

/** rig_sa_lists() - it answers the n-th with a table of services 0, 1, 2 ...; dealt with. */
void rig_sa_lists(unsigned int n, unsigned int n_services);

/** rig_port_event() - the device has news about port 1; dealt with. */
void rig_port_event(enum ibv_event_type type, uint16_t sm_lid);

#endif

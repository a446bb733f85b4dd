/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The subnet of the rig's ports, if a test sets one: requests to its administrator are recorded,
 * and tests send the responses.
 */
#ifndef TESTS_UNIT_PORTD_RIG_SUBNET_H
#define TESTS_UNIT_PORTD_RIG_SUBNET_H

#include <infiniband/verbs.h>

#include "mad/sa_msg.h"

#define RIG_PKEYS 2 /* in the table of a port: 0x8001, 0xffff */

/** rig_use_infiniband() - put ports that are opened from now on onto a subnet. */
void rig_use_infiniband(void);

/** rig_n_asked() - the number of requests to the administrator. */
unsigned int rig_n_asked(void);

/** rig_asked() - the n-th request, from 0; among the latest 4,096. */
const struct sa_msg *rig_asked(unsigned int n);

/** rig_asked_with() - the P_Key index of the latest request. */
uint16_t rig_asked_with(void);

/** rig_answer_by_sa() - respond to the n-th request with the same record and a LID, and settle. */
void rig_answer_by_sa(unsigned int n, uint16_t status, uint16_t lid);

/**
 * rig_list_by_sa() - respond to the n-th request with a table of services 0, 1, 2 ..., and settle.
 */
void rig_list_by_sa(unsigned int n, unsigned int n_services);

/** rig_port_event() - report an event of port 1, and settle. */
void rig_port_event(enum ibv_event_type type, uint16_t sm_lid);

#endif

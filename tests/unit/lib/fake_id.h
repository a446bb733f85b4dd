/* SPDX-License-Identifier: BSD-2-Clause */
/* Ids that were shown the device of tests/unit/fake_verbs.h, on a channel of their own. */
#ifndef TESTS_UNIT_LIB_FAKE_ID_H
#define TESTS_UNIT_LIB_FAKE_ID_H

#include "lib/id/id.h"
#include "tests/unit/fake_verbs.h"

extern struct device fake_device; /* as the library keeps it, without having listed it */

/** fake_begin() - the device, with nothing made on it; fake_end() frees what it keeps. */
void fake_begin(void);
void fake_end(void);

/** fake_device_list() - list the device instead. Return: as the library keeps it then. */
struct device *fake_device_list(void);

/**
 * fake_id() - an id that was shown the fake device
 * @qp_type: as rdma_create_ep() would have set it
 *
 * Return: the id, for fake_id_free().
 */
struct id *fake_id(enum ibv_qp_type qp_type);
void fake_id_free(struct id *id);

#endif

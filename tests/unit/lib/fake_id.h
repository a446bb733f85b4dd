/* SPDX-License-Identifier: BSD-2-Clause */
/* Ids on the device of tests/unit/fake_verbs.h, on a channel of their own. */
#ifndef TESTS_UNIT_LIB_FAKE_ID_H
#define TESTS_UNIT_LIB_FAKE_ID_H

#include "lib/id/id.h"
#include "tests/unit/fake_verbs.h"

extern struct device fake_device; /* as the library has it, unlisted */

/** fake_begin() - start the device without objects; fake_end() frees what it keeps. */
void fake_begin(void);
void fake_end(void);

/** fake_device_list() - list the device. Return: the library's device. */
struct device *fake_device_list(void);

/**
 * fake_id() - an id on the fake device
 * @qp_type: as rdma_create_ep() would have set it
 *
 * Return: the id, for fake_id_free().
 */
struct id *fake_id(enum ibv_qp_type qp_type);
void fake_id_free(struct id *id);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Everything that can happen to the connection on a rig, by name: "local REP", "REJ 10", "timer".
 */
#ifndef TESTS_UNIT_CM_INPUTS_H
#define TESTS_UNIT_CM_INPUTS_H

#include "tests/unit/cm/rig.h"

/** n_inputs() - how many there are. */
int n_inputs(void);

/** input_name() - the name of one of them. */
const char *input_name(int i);

/** input_is_call() - whether an input is the caller's, which is told when it is not legal. */
bool input_is_call(const char *name);

/** rig_input() - let it happen. Return: 0, or what the call returned. */
int rig_input(struct rig *rig, const char *name);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* All inputs of the connection on a rig, by name: "local REP", "REJ 10", "timer". */
#ifndef TESTS_UNIT_CM_INPUTS_H
#define TESTS_UNIT_CM_INPUTS_H

#include "tests/unit/cm/rig.h"

/** n_inputs() - the number of inputs. */
int n_inputs(void);

/** input_name() - the name of an input. */
const char *input_name(int i);

/**
 * input_is_call() - return whether an input is a call, which returns an error if it is not legal.
 */
bool input_is_call(const char *name);

/** rig_input() - apply an input. Return: 0, or the result of the call. */
int rig_input(struct rig *rig, const char *name);

#endif

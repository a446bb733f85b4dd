/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One message of each kind twice: as a host struct and as bytes, written by hand, every field with
 * a value of its own. They detect accidental changes of a row; tests/judge checks the rows against
 * an independent decoder.
 */
#ifndef TESTS_UNIT_MAD_VECTORS_H
#define TESTS_UNIT_MAD_VECTORS_H

#include "mad/cm_msg.h"

struct vector {
	struct cm_msg msg;
	const char *hex;
};

extern const struct vector vectors[];
extern const int n_vectors;

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* An ibacm that answers what the test says, in place of the client in lib/path/ibacm.c. */
#ifndef TESTS_UNIT_LIB_FAKE_IBACM_H
#define TESTS_UNIT_LIB_FAKE_IBACM_H

#include "lib/path/ibacm.h"

struct fake_ibacm {
	struct ibacm_answer answer;
	int err; /* in its place: -errno */
	unsigned int n_asked;
	struct ibacm_question question; /* the last one */
};

extern struct fake_ibacm fake_ibacm;

/** fake_ibacm_begin() - from now on it is asked, and knows nothing. */
void fake_ibacm_begin(void);

#endif

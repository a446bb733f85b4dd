/* SPDX-License-Identifier: BSD-2-Clause */
/* A fake ibacm with responses of the test, in place of the client in lib/path/ibacm.c. */
#ifndef TESTS_UNIT_LIB_FAKE_IBACM_H
#define TESTS_UNIT_LIB_FAKE_IBACM_H

#include "lib/path/ibacm.h"

struct fake_ibacm {
	struct ibacm_answer answer;
	int err; /* instead of a response: -errno */
	unsigned int n_asked;
	struct ibacm_question question; /* the latest one */
};

extern struct fake_ibacm fake_ibacm;

/** fake_ibacm_begin() - start; it has no path. */
void fake_ibacm_begin(void);

#endif

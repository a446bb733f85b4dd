/* SPDX-License-Identifier: BSD-2-Clause */
/* The main() of every test program: runs one suite, and returns its result as exit status. */
#ifndef TESTS_UNIT_CM_RUN_H
#define TESTS_UNIT_CM_RUN_H

#include <stdlib.h>

#include "tests/unit/test.h"

/** run_suite() - run and free a suite. Return: main()'s exit status. */
static inline int run_suite(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Variables of a library, at load and at the time of the call. */
#include <stdlib.h>

#include "base/env.h"
#include "tests/unit/test.h"

/*
 * Runs before the constructor of env.c, which copies the variable: constructors with a priority run
 * first.
 */
__attribute__((constructor(101))) static void set_at_load(void)
{
	setenv("PURECM_TEST", "at load", 1);
	setenv("OTHER_TEST", "at load", 1);
}

TEST(variable_that_is_removed_keeps_its_value_at_load)
{
	unsetenv("PURECM_TEST");
	ck_assert_str_eq(env_get("PURECM_TEST"), "at load");
	clearenv();
	ck_assert_str_eq(env_get("PURECM_TEST"), "at load");
}

TEST(variable_that_is_set_has_its_new_value)
{
	setenv("PURECM_TEST", "now", 1);
	ck_assert_str_eq(env_get("PURECM_TEST"), "now");
}

TEST(unrelated_variable_is_not_kept)
{
	unsetenv("OTHER_TEST");
	ck_assert_ptr_null(env_get("OTHER_TEST"));
	ck_assert_ptr_null(env_get("PURECM_TES"));
}

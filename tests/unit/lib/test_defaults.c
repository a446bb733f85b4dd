/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/diag/defaults.c: options of ids from the environment. */
#include <stdlib.h>

#include "lib/diag/defaults.h"
#include "tests/unit/cm/run.h"
#include "tests/unit/test.h"

/* Return: the options with one variable set. */
static struct id_options with(const char *name, const char *value)
{
	struct id_options options;

	unsetenv("PURECM_CONNECT_TIMEOUT_MS");
	unsetenv("PURECM_RETRIES");
	unsetenv("PURECM_RETRY_WAITS_MS");
	unsetenv("PURECM_TOS");
	if (name)
		setenv(name, value, 1);
	defaults_read(&options);
	return options;
}

TEST(unset_variables_give_the_librarys_defaults)
{
	struct id_options options = with(NULL, NULL);

	ck_assert_uint_eq(options.give_up_ns, 0);
	ck_assert_uint_eq(options.waits.first_ms, 0);
	ck_assert_uint_eq(options.waits.transmissions_max, 0);
}

TEST(a_timeout_is_in_milliseconds)
{
	ck_assert_uint_eq(with("PURECM_CONNECT_TIMEOUT_MS", "1500").give_up_ns, 1500000000u);
}

TEST(zero_retries_are_one_transmission)
{
	ck_assert_uint_eq(with("PURECM_RETRIES", "0").waits.transmissions_max, 1);
}

TEST(intervals_are_the_first_and_the_last)
{
	struct cm_waits waits = with("PURECM_RETRY_WAITS_MS", "50,400").waits;

	ck_assert_uint_eq(waits.first_ms, 50);
	ck_assert_uint_eq(waits.last_ms, 400);
}

TEST(type_of_service_may_be_0)
{
	ck_assert(!with(NULL, NULL).has_tos);
	ck_assert(with("PURECM_TOS", "0").has_tos);
	ck_assert_uint_eq(with("PURECM_TOS", "104").tos, 104);
}

static const char *const bad[][2] = {
	{ "PURECM_TOS", "256" },
	{ "PURECM_CONNECT_TIMEOUT_MS", "0" },
	{ "PURECM_CONNECT_TIMEOUT_MS", "-1" },
	{ "PURECM_CONNECT_TIMEOUT_MS", "5s" },
	{ "PURECM_CONNECT_TIMEOUT_MS", "4294967296" },
	{ "PURECM_CONNECT_TIMEOUT_MS", " 5" },
	{ "PURECM_RETRIES", "255" },
	{ "PURECM_RETRIES", "many" },
	{ "PURECM_RETRY_WAITS_MS", "50" },
	{ "PURECM_RETRY_WAITS_MS", "50," },
	{ "PURECM_RETRY_WAITS_MS", "400,50" },
	{ "PURECM_RETRY_WAITS_MS", "0,50" },
	{ "PURECM_RETRY_WAITS_MS", "50,400,1" },
};

TEST_LOOP(invalid_settings_are_ignored, 0,
	  sizeof(bad) / sizeof(bad[0])) /* loop test: _i is the row */
{
	struct id_options options = with(bad[_i][0], bad[_i][1]);

	ck_assert_uint_eq(options.give_up_ns, 0);
	ck_assert_uint_eq(options.waits.first_ms, 0);
	ck_assert_uint_eq(options.waits.transmissions_max, 0);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Texts and counters of <purecm/purecm.h> (lib/conn/purecm.c).
 */
#include <check.h>
#include <errno.h>
#include <purecm/purecm.h>
#include <stdlib.h>
#include <string.h>

#include "lib/engine/engine.h"

static struct purecm_counters counters;

static void setup(void)
{
	struct engine *engine = engine_lock();
	unsigned int i;

	for (i = 0; i < CM_N_COUNTERS; i++)
		engine->core.count[i] = 100 + i;
	for (i = 0; i < PURECM_N_MESSAGES; i++) {
		engine->core.sent[CM_ATTR_REQ + i] = 200 + i;
		engine->core.received[CM_ATTR_REQ + i] = 300 + i;
	}
	engine_unlock();
	memset(&counters, 0xff, sizeof(counters));
}

static void get(size_t bytes)
{
	ck_assert_int_eq(purecm_get_counters(&counters, bytes), 0);
}

START_TEST(messages_are_counted_by_kind) /* loop test: _i is the kind */
{
	get(sizeof(counters));
	ck_assert_uint_eq(counters.sent[_i], 200u + (unsigned int)_i);
	ck_assert_uint_eq(counters.received[_i], 300u + (unsigned int)_i);
}
END_TEST

START_TEST(every_counter_of_the_core_has_its_member)
{
	get(sizeof(counters));
	ck_assert_uint_eq(counters.repeated, 100 + CM_COUNT_RETRIED);
	ck_assert_uint_eq(counters.duplicate, 100 + CM_COUNT_DUPLICATE);
	ck_assert_uint_eq(counters.malformed, 100 + CM_COUNT_MALFORMED);
	ck_assert_uint_eq(counters.unknown, 100 + CM_COUNT_UNKNOWN);
	ck_assert_uint_eq(counters.alien, 100 + CM_COUNT_ALIEN);
	ck_assert_uint_eq(counters.unexpected, 100 + CM_COUNT_UNEXPECTED);
	ck_assert_uint_eq(counters.no_memory, 100 + CM_COUNT_NO_MEMORY);
	ck_assert_uint_eq(counters.unsupported, 100 + CM_COUNT_UNSUPPORTED);
}
END_TEST

START_TEST(older_program_gets_what_it_knows)
{
	get(offsetof(struct purecm_counters, alien));
	ck_assert_uint_eq(counters.unknown, 100 + CM_COUNT_UNKNOWN);
	ck_assert_uint_eq(counters.alien, UINT64_MAX);
}
END_TEST

START_TEST(newer_program_gets_zeros_beyond)
{
	struct {
		struct purecm_counters known;
		uint64_t beyond;
	} newer;

	memset(&newer, 0xff, sizeof(newer));
	ck_assert_int_eq(purecm_get_counters(&newer.known, sizeof(newer)), 0);
	ck_assert_uint_eq(newer.known.unsupported, 100 + CM_COUNT_UNSUPPORTED);
	ck_assert_uint_eq(newer.beyond, 0);
}
END_TEST

START_TEST(nowhere_to_put_counters_is_refused)
{
	ck_assert_int_eq(purecm_get_counters(NULL, sizeof(counters)), -1);
	ck_assert_int_eq(errno, EINVAL);
}
END_TEST

START_TEST(reasons_have_phrases)
{
	ck_assert_str_eq(purecm_reject_str(28), "rejected by the consumer");
	ck_assert_str_eq(purecm_reject_str(-1), "reserved reason");
	ck_assert_str_eq(purecm_reject_str(0x10000 + 28), "reserved reason");
}
END_TEST

START_TEST(statuses_have_phrases)
{
	ck_assert_str_eq(purecm_sidr_str(3), "no queue pair available");
	ck_assert_str_eq(purecm_sidr_str(-1), "reserved status");
	ck_assert_str_eq(purecm_sidr_str(0x100), "reserved status");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("purecm");
	TCase *tc = tcase_create("purecm");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tc);
	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_loop_test(tc, messages_are_counted_by_kind, 0, PURECM_N_MESSAGES);
	tcase_add_test(tc, every_counter_of_the_core_has_its_member);
	tcase_add_test(tc, older_program_gets_what_it_knows);
	tcase_add_test(tc, newer_program_gets_zeros_beyond);
	tcase_add_test(tc, nowhere_to_put_counters_is_refused);
	tcase_add_test(tc, reasons_have_phrases);
	tcase_add_test(tc, statuses_have_phrases);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

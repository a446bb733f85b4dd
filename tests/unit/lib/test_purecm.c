/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Texts and counters of <purecm/purecm.h> (lib/conn/purecm.c).
 */
#include <errno.h>
#include <purecm/purecm.h>
#include <stdlib.h>
#include <string.h>

#include "lib/engine/engine.h"
#include "tests/unit/test.h"

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

FIXTURE(setup, NULL);

static void get(size_t bytes)
{
	ck_assert_int_eq(purecm_get_counters(&counters, bytes), 0);
}

TEST_LOOP(messages_are_counted_by_kind, 0, PURECM_N_MESSAGES) /* loop test: _i is the kind */
{
	get(sizeof(counters));
	ck_assert_uint_eq(counters.sent[_i], 200u + (unsigned int)_i);
	ck_assert_uint_eq(counters.received[_i], 300u + (unsigned int)_i);
}

TEST(every_counter_of_the_core_has_its_member)
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

TEST(older_program_gets_its_members)
{
	get(offsetof(struct purecm_counters, alien));
	ck_assert_uint_eq(counters.unknown, 100 + CM_COUNT_UNKNOWN);
	ck_assert_uint_eq(counters.alien, UINT64_MAX);
}

TEST(newer_program_gets_zeros_for_new_members)
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

TEST(missing_counters_are_refused)
{
	ck_assert_int_eq(purecm_get_counters(NULL, sizeof(counters)), -1);
	ck_assert_int_eq(errno, EINVAL);
}

TEST(reasons_have_phrases)
{
	ck_assert_str_eq(purecm_reject_str(28), "rejected by the consumer");
	ck_assert_str_eq(purecm_reject_str(-1), "reserved reason");
	ck_assert_str_eq(purecm_reject_str(0x10000 + 28), "reserved reason");
}

TEST(statuses_have_phrases)
{
	ck_assert_str_eq(purecm_sidr_str(3), "no queue pair available");
	ck_assert_str_eq(purecm_sidr_str(-1), "reserved status");
	ck_assert_str_eq(purecm_sidr_str(0x100), "reserved status");
}

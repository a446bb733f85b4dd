/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests that register themselves: Check's, with one name each. A folder of tests is one
 * program, a file is a suite of it, named after the file (test_timer.c is "timer").
 *
 * 	FIXTURE(set_up, tear_down);
 *
 * 	TEST(popped_timer_is_not_armed)
 * 	{
 * 		ck_assert(...);
 * 	}
 *
 * Fixtures, time limits and required features apply to the tests that follow in the file.
 */
#ifndef TESTS_UNIT_TEST_H
#define TESTS_UNIT_TEST_H

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Check writes to its parent for each assertion that holds, to report the last one after a crash:
 * millions of system calls. The name of the crashed test suffices.
 */
#define _mark_point(file, line) ((void)0)

#define TEMPORARY_BYTES		48 /* socket names in it fit */
#define TEMPORARY_FOLDER_MAX	24

/* For mkdtemp() and mkstemp(): in $TMPDIR, which tools/alone removes in any case. */
static inline char *name_temporary(char ret[TEMPORARY_BYTES])
{
	const char *folder = getenv("TMPDIR");

	if (!folder || strlen(folder) > TEMPORARY_FOLDER_MAX)
		folder = "/tmp";
	snprintf(ret, TEMPORARY_BYTES, "%s/purecm-test-XXXXXX", folder);
	return ret;
}

/* A test, or a setting for the tests that follow. */
struct test_entry {
	const char *file;
	int line;
	const TTest *test; /* NULL: a fixture or a need */
	int signal;	   /* that the test must end by, or 0 */
	int first, end;	   /* values of _i */
	SFun set_up, tear_down;
	bool (*is_possible)(void);
	struct test_entry *next;
};

/** test_register() - register an entry of a file, in any order; called before main(). */
void test_register(struct test_entry *entry);

#define TEST_ENTRY(name, ...)                                                                   \
	__attribute__((constructor)) static void name(void)                                     \
	{                                                                                       \
		static struct test_entry entry = { .file = __FILE__, .line = __LINE__ };        \
                                                                                                \
		entry = (struct test_entry){ .file = __FILE__, .line = __LINE__, __VA_ARGS__ }; \
		test_register(&entry);                                                          \
	}

#define TEST_OF(name, ...)                                     \
	static const TTest *name;                              \
	TEST_ENTRY(name##_register, .test = name, __VA_ARGS__) \
	START_TEST(name)

/* TEST() - define a test. */
#define TEST(name) TEST_OF(name, .end = 1)

/* TEST_LOOP() - define a test for each value of _i from first_i to end_i - 1. */
#define TEST_LOOP(name, first_i, end_i) TEST_OF(name, .first = (int)(first_i), .end = (int)(end_i))

/* TEST_SIGNAL() - define a test that must end by a signal. */
#define TEST_SIGNAL(name, number) TEST_OF(name, .end = 1, .signal = (number))

/* FIXTURE() - functions that run before and after each test that follows; NULL is none. */
#define FIXTURE(before, after)                                                              \
	TEST_ENTRY(TEST_JOIN(fixture_, __LINE__), .set_up = (before), .tear_down = (after)) \
	struct test_entry

/*
 * NEEDS() - the tests that follow are skipped where this function returns false, after printing
 * what the machine lacks. A program that skips all tests ends with status 77.
 */
#define NEEDS(function)                                                    \
	TEST_ENTRY(TEST_JOIN(needs_, __LINE__), .is_possible = (function)) \
	struct test_entry

#define TEST_JOIN(a, b)	 TEST_JOIN_(a, b)
#define TEST_JOIN_(a, b) a##b

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A substitute for Check in the tests of the pure folders, for machines and C libraries for which
 * Debian has a compiler but no Check. Every test that is added runs, in the process of the program;
 * the first assertion that fails ends it.
 */
#ifndef TESTS_MACHINES_CHECK_H
#define TESTS_MACHINES_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef void (*SFun)(void);
typedef struct TTest {
	const char *name;
	void (*fn)(int i);
} TTest;
typedef struct TCase TCase;
typedef struct Suite Suite;
typedef struct SRunner SRunner;
enum print_output {
	CK_ENV
};

Suite *suite_create(const char *name);
void suite_add_tcase(Suite *suite, TCase *tcase);
TCase *tcase_create(const char *name);
void tcase_set_timeout(TCase *tcase, double seconds);
void tcase_add_checked_fixture(TCase *tcase, SFun set_up, SFun tear_down);
void _tcase_add_test(TCase *tcase, const TTest *test, int signal, int status, int first, int end);
SRunner *srunner_create(Suite *suite);
void srunner_add_suite(SRunner *runner, Suite *suite);
void srunner_run_all(SRunner *runner, enum print_output output);
int srunner_ntests_run(SRunner *runner);
int srunner_ntests_failed(SRunner *runner);
void srunner_free(SRunner *runner);

/** check_failed() - print the failed assertion of the running test, and end the program. */
__attribute__((noreturn, format(printf, 3, 4))) void check_failed(const char *file, int line,
								  const char *format, ...);

#define START_TEST(test)                                        \
	static void test##_fn(int _i);                          \
	static const TTest test##_ttest = { #test, test##_fn }; \
	static const TTest *test = &test##_ttest;               \
	static void test##_fn(int _i __attribute__((unused)))
#define END_TEST
#define tcase_add_test(tcase, test)		     _tcase_add_test(tcase, test, 0, 0, 0, 1)
#define tcase_add_loop_test(tcase, test, first, end) _tcase_add_test(tcase, test, 0, 0, first, end)

#define ck_abort_msg(...)			     check_failed(__FILE__, __LINE__, __VA_ARGS__)
#define ck_assert(is_true)			     ((is_true) ? (void)0 : check_failed(__FILE__, __LINE__, "%s", #is_true))
#define ck_assert_msg(is_true, ...) \
	((is_true) ? (void)0 : check_failed(__FILE__, __LINE__, __VA_ARGS__))

#define CHECK_NUMBERS(type, format, a, op, b)                                                      \
	do {                                                                                       \
		type check_a = (a);                                                                \
		type check_b = (b);                                                                \
                                                                                                   \
		ck_assert_msg(check_a op check_b, "%s is %" format ", %s is %" format, #a " " #op, \
			      check_a, #b, check_b);                                               \
	} while (0)
#define ck_assert_int_eq(a, b)	 CHECK_NUMBERS(intmax_t, "jd", a, ==, b)
#define ck_assert_int_ne(a, b)	 CHECK_NUMBERS(intmax_t, "jd", a, !=, b)
#define ck_assert_int_lt(a, b)	 CHECK_NUMBERS(intmax_t, "jd", a, <, b)
#define ck_assert_int_le(a, b)	 CHECK_NUMBERS(intmax_t, "jd", a, <=, b)
#define ck_assert_int_gt(a, b)	 CHECK_NUMBERS(intmax_t, "jd", a, >, b)
#define ck_assert_int_ge(a, b)	 CHECK_NUMBERS(intmax_t, "jd", a, >=, b)
#define ck_assert_uint_eq(a, b)	 CHECK_NUMBERS(uintmax_t, "ju", a, ==, b)
#define ck_assert_uint_ne(a, b)	 CHECK_NUMBERS(uintmax_t, "ju", a, !=, b)
#define ck_assert_uint_lt(a, b)	 CHECK_NUMBERS(uintmax_t, "ju", a, <, b)
#define ck_assert_uint_le(a, b)	 CHECK_NUMBERS(uintmax_t, "ju", a, <=, b)
#define ck_assert_uint_gt(a, b)	 CHECK_NUMBERS(uintmax_t, "ju", a, >, b)
#define ck_assert_uint_ge(a, b)	 CHECK_NUMBERS(uintmax_t, "ju", a, >=, b)
#define ck_assert_ptr_eq(a, b)	 CHECK_NUMBERS(const void *, "p", a, ==, b)
#define ck_assert_ptr_ne(a, b)	 CHECK_NUMBERS(const void *, "p", a, !=, b)
#define ck_assert_ptr_null(a)	 ck_assert_ptr_eq(a, NULL)
#define ck_assert_ptr_nonnull(a) ck_assert_ptr_ne(a, NULL)

#define CHECK_STRINGS(a, b, is_equal)                                                  \
	do {                                                                           \
		const char *check_a = (a), *check_b = (b);                             \
                                                                                       \
		ck_assert_msg((strcmp(check_a, check_b) == 0) == (is_equal),           \
			      "%s is \"%s\", %s is \"%s\"", #a, check_a, #b, check_b); \
	} while (0)
#define ck_assert_str_eq(a, b)	      CHECK_STRINGS(a, b, true)
#define ck_assert_str_ne(a, b)	      CHECK_STRINGS(a, b, false)
#define ck_assert_mem_eq(a, b, bytes) ck_assert(memcmp(a, b, bytes) == 0)
#define ck_assert_mem_ne(a, b, bytes) ck_assert(memcmp(a, b, bytes) != 0)

#endif

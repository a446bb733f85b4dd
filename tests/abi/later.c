/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Holds lib/later.h, the functions that still fail with ENOSYS, against the tracked list, and calls
 * each of them in the built library. Arguments: the library, later.txt.
 */
#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
#define LATER(type, failure, name, params) #name,
#include "lib/later.h"
	NULL,
};

static const char *list_path;
static void *library;

START_TEST(unfinished_function_fails_with_enosys) /* loop test: _i is the row */
{
	long (*call)(long, long, long, long, long, long);

	*(void **)&call = dlsym(library, names[_i]);
	ck_assert_msg(call != NULL, "%s is not exported", names[_i]);
	errno = 0;
	call(0, 0, 0, 0, 0, 0);
	ck_assert_msg(errno == ENOSYS, "%s: errno %d", names[_i], errno);
}
END_TEST

static bool is_unfinished(const char *name)
{
	for (const char *const *row = names; *row; row++)
		if (strcmp(*row, name) == 0)
			return true;
	return false;
}

START_TEST(unfinished_functions_are_the_tracked_ones)
{
	size_t listed = 0, rows = sizeof(names) / sizeof(names[0]) - 1;
	FILE *list = fopen(list_path, "r");
	char line[128];

	ck_assert_msg(list != NULL, "%s: %s", list_path, strerror(errno));
	while (fgets(line, sizeof(line), list)) {
		line[strcspn(line, "\n")] = '\0';
		ck_assert_msg(is_unfinished(line), "%s is done: take it out of %s", line,
			      list_path);
		listed++;
	}
	fclose(list);
	ck_assert_msg(listed == rows, "lib/later.h has %zu functions, %s lists %zu", rows,
		      list_path, listed);
}
END_TEST

int main(int argc, char **argv)
{
	SRunner *runner = srunner_create(suite_create("later"));
	TCase *tcase = tcase_create("later");
	Suite *suite = suite_create("later");
	int failed;

	if (argc != 3 || !(library = dlopen(argv[1], RTLD_NOW))) {
		fprintf(stderr, "%s\nusage: %s LIBRARY LIST\n", argc == 3 ? dlerror() : "",
			argv[0]);
		return EXIT_FAILURE;
	}
	list_path = argv[2];
	suite_add_tcase(suite, tcase);
	tcase_add_loop_test(tcase, unfinished_function_fails_with_enosys, 0,
			    sizeof(names) / sizeof(names[0]) - 1);
	tcase_add_test(tcase, unfinished_functions_are_the_tracked_ones);
	srunner_add_suite(runner, suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	dlclose(library);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every function of the ABI is implemented: each socket function is called, and none fails with
 * ENOSYS. Arguments: the library, symbols.txt.
 */
#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *list_path;
static void *library;

/* Called with -1 as the descriptor and no other arguments, which all of them refuse. */
static void expect_no_enosys(const char *name)
{
	long (*call)(long, long, long, long, long, long);

	*(void **)&call = dlsym(library, name);
	ck_assert_msg(call != NULL, "%s is not exported", name);
	errno = 0;
	call(-1, 0, 0, 0, 0, 0);
	ck_assert_msg(errno != ENOSYS, "%s: ENOSYS", name);
}

static int is_socket_function(const char *name)
{
	return name[0] == 'r' && strncmp(name, "rdma_", 5) != 0;
}

START_TEST(no_socket_function_fails_with_enosys)
{
	FILE *list = fopen(list_path, "r");
	char line[128], name[128];
	int n = 0;

	ck_assert_msg(list != NULL, "%s: %s", list_path, strerror(errno));
	while (fgets(line, sizeof(line), list)) {
		if (sscanf(line, "%127[a-z_0-9]", name) != 1 || !is_socket_function(name))
			continue;
		expect_no_enosys(name);
		n++;
	}
	fclose(list);
	ck_assert_int_eq(n, 30);
}
END_TEST

int main(int argc, char **argv)
{
	SRunner *runner = srunner_create(suite_create("enosys"));
	TCase *tcase = tcase_create("enosys");
	Suite *suite = suite_create("enosys");
	int failed;

	if (argc != 3 || !(library = dlopen(argv[1], RTLD_NOW))) {
		fprintf(stderr, "%s\nusage: %s LIBRARY SYMBOLS\n", argc == 3 ? dlerror() : "",
			argv[0]);
		return EXIT_FAILURE;
	}
	list_path = argv[2];
	suite_add_tcase(suite, tcase);
	tcase_add_test(tcase, no_socket_function_fails_with_enosys);
	srunner_add_suite(runner, suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	dlclose(library);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * main() of a folder's unit tests: PROGRAM [SUITE]... runs the suites named, or all; PROGRAM --list
 * prints their names.
 */
#include "tests/unit/test.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define NAME_BYTES  64
#define SUITES_MAX  64
#define SKIPPED	    77
#define DESCRIPTORS 20000
#define LIMIT_S	    300 /* of a test, which only one that hangs reaches */

static struct test_entry *entries;	   /* sorted by file and line */
static char names[SUITES_MAX][NAME_BYTES]; /* names of suites, which Check does not copy */
static unsigned int n_names;
static unsigned int n_skipped; /* tests that the machine cannot run */

static int compare(const struct test_entry *a, const struct test_entry *b)
{
	int by_file = strcmp(a->file, b->file);

	return by_file ? by_file : a->line - b->line;
}

/* The linker determines the order of constructors. */
void test_register(struct test_entry *entry)
{
	struct test_entry **link = &entries;

	while (*link && compare(*link, entry) < 0)
		link = &(*link)->next;
	entry->next = *link;
	*link = entry;
}

/* ".../test_timer.c" is "timer". */
static const char *suite_name(const char *path, char ret[NAME_BYTES])
{
	const char *base = strrchr(path, '/');

	base = base ? base + 1 : path;
	if (strncmp(base, "test_", 5) == 0)
		base += 5;
	snprintf(ret, NAME_BYTES, "%.*s", (int)strcspn(base, "."), base);
	return ret;
}

static void add_test(Suite *suite, const struct test_entry *entry, const struct test_entry *fixture)
{
	TCase *tcase = tcase_create(entry->test->name);

	tcase_set_timeout(tcase, LIMIT_S);
	if (fixture)
		tcase_add_checked_fixture(tcase, fixture->set_up, fixture->tear_down);
	_tcase_add_test(tcase, entry->test, entry->signal, 0, entry->first, entry->end);
	suite_add_tcase(suite, tcase);
}

/* Return: the suite of the file whose first entry this is. */
static Suite *make_suite(const struct test_entry *entry)
{
	const char *file = entry->file;
	Suite *suite = suite_create(suite_name(file, names[n_names++]));
	const struct test_entry *fixture = NULL;
	bool is_possible = true;

	for (; entry && strcmp(entry->file, file) == 0; entry = entry->next) {
		if (entry->test && !is_possible)
			n_skipped++;
		else if (entry->test)
			add_test(suite, entry, fixture);
		else if (entry->is_possible)
			is_possible = entry->is_possible();
		else
			fixture = entry;
	}
	return suite;
}

static bool is_wanted(const char *file, int argc, char **argv)
{
	char name[NAME_BYTES];
	int i;

	suite_name(file, name);
	for (i = 1; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return true;
	return argc == 1;
}

static const struct test_entry *next_file(const struct test_entry *entry)
{
	const char *file = entry->file;

	while (entry && strcmp(entry->file, file) == 0)
		entry = entry->next;
	return entry;
}

static int run(int argc, char **argv)
{
	SRunner *runner = srunner_create(NULL);
	const struct test_entry *entry;
	int n_failed, n_run;

	for (entry = entries; entry && n_names < SUITES_MAX; entry = next_file(entry))
		if (is_wanted(entry->file, argc, argv))
			srunner_add_suite(runner, make_suite(entry));
	srunner_run_all(runner, CK_ENV);
	n_failed = srunner_ntests_failed(runner);
	n_run = srunner_ntests_run(runner);
	srunner_free(runner);
	if (n_skipped)
		printf("%u tests were skipped\n", n_skipped);
	if (!n_run && n_skipped)
		return SKIPPED;
	if (!n_run)
		fprintf(stderr, "there is no such suite; --list prints their names\n");
	return n_failed || !n_run ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Some tests need thousands, and the default limit is 1,024. */
static void allow_descriptors(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur < DESCRIPTORS)
		limit.rlim_cur = limit.rlim_max < DESCRIPTORS ? limit.rlim_max : DESCRIPTORS;
	setrlimit(RLIMIT_NOFILE, &limit);
}

int main(int argc, char **argv)
{
	const struct test_entry *entry;
	char name[NAME_BYTES];

	allow_descriptors();
	if (argc != 2 || strcmp(argv[1], "--list") != 0)
		return run(argc, argv);
	for (entry = entries; entry; entry = next_file(entry))
		puts(suite_name(entry->file, name));
	return EXIT_SUCCESS;
}

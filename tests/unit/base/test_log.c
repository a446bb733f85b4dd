/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * base/log.c: which lines are written, and in which form. The level is read once in a process, so
 * each test writes in a child process, and reads its standard error.
 */
#include "base/log.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/test.h"

static char printed[4096];

static void write_both(void)
{
	log_warn("warning %d", 1);
	log_debug("detail %d", 2);
}

static void write_both_as_daemon(void)
{
	log_as_daemon("cmportd");
	write_both();
}

/* @value: of PURECM_LOG; NULL: not set */
static const char *printed_by(void (*run)(void), const char *value)
{
	size_t n = 0;
	int fd[2];
	pid_t pid;

	ck_assert_int_eq(pipe(fd), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		dup2(fd[1], STDERR_FILENO);
		if (value)
			setenv("PURECM_LOG", value, 1);
		else
			unsetenv("PURECM_LOG");
		run();
		_exit(0);
	}
	close(fd[1]);
	for (ssize_t more = 1; more > 0; n += (size_t)more)
		more = read(fd[0], printed + n, sizeof(printed) - 1 - n);
	printed[n] = '\0';
	close(fd[0]);
	waitpid(pid, NULL, 0);
	return printed;
}

static void assert_like(const char *text, const char *pattern)
{
	ck_assert_msg(fnmatch(pattern, text, 0) == 0, "%s is not like %s", text, pattern);
}

TEST(program_logs_nothing_by_default)
{
	ck_assert_str_eq(printed_by(write_both, NULL), "");
	ck_assert_str_eq(printed_by(write_both, ""), "");
	ck_assert_str_eq(printed_by(write_both, "off"), "");
}

TEST(program_logs_warnings_for_any_other_value)
{
	assert_like(printed_by(write_both, "warn"),
		    "purecm\\[[1-9]*] [0-9]*.[0-9][0-9][0-9][0-9][0-9][0-9] warn: warning 1\n");
	assert_like(printed_by(write_both, "yes"), "* warn: warning 1\n");
}

TEST(program_prints_details_for_debug)
{
	assert_like(printed_by(write_both, "debug"),
		    "purecm* warn: warning 1\npurecm\\[[1-9]*] [0-9]*.[0-9]* detail 2\n");
}

TEST(daemon_prints_warnings_unless_they_are_off)
{
	ck_assert_str_eq(printed_by(write_both_as_daemon, NULL), "cmportd: warning 1\n");
	ck_assert_str_eq(printed_by(write_both_as_daemon, ""), "cmportd: warning 1\n");
	ck_assert_str_eq(printed_by(write_both_as_daemon, "off"), "");
}

TEST(daemon_prints_details_for_debug)
{
	assert_like(printed_by(write_both_as_daemon, "debug"),
		    "cmportd: warning 1\ncmportd: [0-9]*.[0-9]* detail 2\n");
}

static void be_verbose(void)
{
	log_as_daemon("cmportd");
	log_set_verbose();
	if (log_is_debug())
		log_warn("verbose");
}

TEST(verbose_logs_debug_whatever_the_variable)
{
	ck_assert_str_eq(printed_by(be_verbose, "off"), "cmportd: verbose\n");
}

static void write_control_bytes(void)
{
	log_as_daemon("cmportd");
	log_warn("a\033[2J\nb\177 \303\244 \2332J \302\2332J \340\202\233 \xc3");
}

TEST(line_has_no_control_bytes)
{
	ck_assert_str_eq(printed_by(write_control_bytes, NULL),
			 "cmportd: a?[2J?b? \303\244 ?2J ??2J ??? ?\n");
}

static void write_too_much(void)
{
	char text[5000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	log_warn("%s", text);
}

TEST(long_line_is_cut_and_ended)
{
	printed_by(write_too_much, "warn");
	ck_assert_uint_gt(strlen(printed), 1000);
	ck_assert_uint_le(strlen(printed), 1024);
	ck_assert_int_eq(printed[strlen(printed) - 1], '\n');
}

static void show_errno(void)
{
	close(STDERR_FILENO);
	errno = EXDEV;
	log_warn("lost");
	_exit(errno == EXDEV ? 0 : 1);
}

TEST(errno_is_kept_even_if_nothing_can_be_written)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		setenv("PURECM_LOG", "warn", 1);
		show_errno();
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

static void write_to_file(void)
{
	char path[TEMPORARY_BYTES], text[64] = "";
	int fd = mkstemp(name_temporary(path));

	log_as_daemon("cmportd");
	if (log_to_file(path) == 0)
		log_warn("in the file");
	unlink(path);
	if (read(fd, text, sizeof(text) - 1) > 0)
		fprintf(stderr, "read: %s", text);
}

TEST(lines_go_to_the_file)
{
	ck_assert_str_eq(printed_by(write_to_file, NULL), "read: cmportd: in the file\n");
}

TEST(symbolic_link_is_no_log_file)
{
	char path[TEMPORARY_BYTES], link[sizeof(path) + 8];
	int fd = mkstemp(name_temporary(path));

	ck_assert_int_ge(fd, 0);
	snprintf(link, sizeof(link), "%s.link", path);
	ck_assert_int_eq(symlink(path, link), 0);
	ck_assert_int_eq(log_to_file(link), -ELOOP);
	unlink(link);
	unlink(path);
	close(fd);
}

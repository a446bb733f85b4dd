/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Conversations with exhausted resources: the n-th allocation of the library fails, or only n
 * descriptors are free, for n = 0, 1, ... until a conversation is unaffected. Each n has a process
 * of its own, which runs a second conversation without limits.
 *
 * scarce memory ADDR [FIRST]: needs failmem.so preloaded; scarce fds ADDR [FIRST]
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "talk.h"

#define PORT	"7201"
#define WAIT_MS 30000
#define ALARM_S 400 /* limit for a conversation that hangs */
#define ROUNDS	1000

enum verdict {
	UNNOTICED,
	FAILED,
	LEAKED,
	SILENT,
	POISONED
};

static const char *const verdicts[] = {
	[UNNOTICED] = "unnoticed",
	[FAILED] = "failed cleanly",
	[LEAKED] = "leaked descriptors",
	[SILENT] = "kept silent",
	[POISONED] = "spoilt the next conversation",
};

static void (*fail_nth)(long n);
static long (*failures)(void);

/* --- limited resources --------------------------------------------------- */

static void restrict_memory(int n)
{
	fail_nth(n);
}

static bool memory_was_missed(void)
{
	bool was = failures() > 0;

	fail_nth(-1);
	return was;
}

static struct rlimit plenty;

static void restrict_fds(int n)
{
	struct rlimit limit = plenty;

	limit.rlim_cur = (rlim_t)(count_fds() + n);
	setrlimit(RLIMIT_NOFILE, &limit);
}

static bool fds_were_missed(void)
{
	setrlimit(RLIMIT_NOFILE, &plenty);
	return true;
}

static const struct good {
	const char *name;
	void (*restrict_to)(int n);
	bool (*was_missed)(void); /* ends the limit */
} goods[] = {
	{ "memory", restrict_memory, memory_was_missed },
	{ "fds", restrict_fds, fds_were_missed },
};

/* --- one round ----------------------------------------------------------- */

static enum verdict judge(const struct good *good, const char *addr, int n)
{
	int before, after;
	bool was_missed;
	struct outcome first, second, third;

	good->restrict_to(n);
	first = talk(addr, PORT, WAIT_MS);
	was_missed = good->was_missed();
	if (first.what)
		printf("%s %d: %s: %s\n", good->name, n, first.what, strerror(first.err));
	if (first.is_silent)
		return SILENT;
	second = talk(addr, PORT, WAIT_MS);
	before = count_fds();
	third = talk(addr, PORT, WAIT_MS);
	after = count_fds();
	if (second.what || third.what) {
		second = second.what ? second : third;
		printf("%s %d, afterwards: %s: %s\n", good->name, n, second.what,
		       strerror(second.err));
		return POISONED;
	}
	if (after != before)
		return LEAKED;
	return first.what || (was_missed && good->restrict_to == restrict_memory) ? FAILED
										  : UNNOTICED;
}

/* Return: a verdict, or -1 if the process died. */
static int run_round(const struct good *good, const char *addr, int n)
{
	pid_t child;
	int status;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		alarm(ALARM_S);
		status = (int)judge(good, addr, n);
		exit(status);
	}
	if (child < 0 || waitpid(child, &status, 0) != child) {
		perror("scarce");
		exit(2);
	}
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	printf("%s %d: %s\n", good->name, n, strsignal(WTERMSIG(status)));
	return -1;
}

static int all_rounds(const struct good *good, const char *addr, int first)
{
	int n, verdict, bad = 0;

	for (n = first; n < ROUNDS; n++) {
		verdict = run_round(good, addr, n);
		if (verdict == UNNOTICED)
			break;
		if (verdict == FAILED)
			continue;
		bad++;
		if (verdict > FAILED && verdict <= POISONED)
			printf("%s %d: %s\n", good->name, n, verdicts[verdict]);
	}
	printf("%s: %d rounds, %d bad\n", good->name, n - first, bad);
	return bad ? 1 : 0;
}

int main(int argc, char **argv)
{
	size_t i;

	if (argc < 3) {
		fputs("usage: scarce memory|fds ADDR [FIRST]\n", stderr);
		return 2;
	}
	*(void **)&fail_nth = dlsym(RTLD_DEFAULT, "failmem_nth");
	*(void **)&failures = dlsym(RTLD_DEFAULT, "failmem_count");
	getrlimit(RLIMIT_NOFILE, &plenty);
	for (i = 0; i < sizeof(goods) / sizeof(goods[0]); i++)
		if (strcmp(argv[1], goods[i].name) == 0)
			return all_rounds(&goods[i], argv[2], argc > 3 ? atoi(argv[3]) : 0);
	fprintf(stderr, "scarce: '%s' is never scarce\n", argv[1]);
	return 2;
}

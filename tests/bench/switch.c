/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measures a switch between two threads, and between two processes: one byte is passed back and
 * forth through pipes, on one CPU. Prints "threads NS" and "processes NS", the fastest of several
 * rounds.
 */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define TRIPS  3000
#define ROUNDS 7

struct pair {
	int to[2], from[2];
};

static void check(int bad, const char *what)
{
	if (!bad)
		return;
	perror(what);
	exit(1);
}

static void *answer_all(void *arg)
{
	struct pair *pair = arg;
	char byte;
	int i;

	for (i = 0; i < TRIPS; i++) {
		check(read(pair->to[0], &byte, 1) != 1, "read");
		check(write(pair->from[1], &byte, 1) != 1, "write");
	}
	return NULL;
}

/* Return: ns for each switch. */
static uint64_t ask_all(const struct pair *pair)
{
	uint64_t begin_ns = clock_ns();
	char byte = 0;
	int i;

	for (i = 0; i < TRIPS; i++) {
		check(write(pair->to[1], &byte, 1) != 1, "write");
		check(read(pair->from[0], &byte, 1) != 1, "read");
	}
	return (clock_ns() - begin_ns) / (2 * TRIPS);
}

static uint64_t between_threads(struct pair *pair)
{
	pthread_t thread;
	uint64_t ns;

	check(pthread_create(&thread, NULL, answer_all, pair), "pthread_create");
	ns = ask_all(pair);
	pthread_join(thread, NULL);
	return ns;
}

static uint64_t between_processes(struct pair *pair)
{
	pid_t child = fork();
	uint64_t ns;

	check(child < 0, "fork");
	if (!child) {
		answer_all(pair);
		_exit(0);
	}
	ns = ask_all(pair);
	waitpid(child, NULL, 0);
	return ns;
}

static void print_fastest(const char *what, uint64_t (*measure)(struct pair *), struct pair *pair)
{
	uint64_t ns, fastest_ns = UINT64_MAX;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		ns = measure(pair);
		fastest_ns = ns < fastest_ns ? ns : fastest_ns;
	}
	printf("%s %llu\n", what, (unsigned long long)fastest_ns);
	fflush(stdout);
}

int main(void)
{
	struct pair pair;
	cpu_set_t cpu;

	CPU_ZERO(&cpu);
	CPU_SET(0, &cpu);
	check(sched_setaffinity(0, sizeof(cpu), &cpu), "sched_setaffinity");
	check(pipe(pair.to) || pipe(pair.from), "pipe");
	print_fastest("threads", between_threads, &pair);
	print_fastest("processes", between_processes, &pair);
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An allocator like jemalloc: handlers that the first allocation registers take its locks before a
 * fork, and release them after it. With jemalloc, a handler that allocates while they are held
 * waits forever; with this allocator the program aborts.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

extern void *__libc_malloc(size_t bytes), *__libc_calloc(size_t n, size_t bytes);
extern void *__libc_realloc(void *before, size_t bytes);
extern void __libc_free(void *bytes);

static _Thread_local bool is_locked;

static void take_locks(void)
{
	is_locked = true;
}

static void give_locks(void)
{
	is_locked = false;
}

static void use_locks(void)
{
	static const char text[] = "a handler of forks allocates while the allocator is locked\n";
	static atomic_flag is_registered = ATOMIC_FLAG_INIT;

	if (!atomic_flag_test_and_set(&is_registered))
		pthread_atfork(take_locks, give_locks, give_locks);
	if (is_locked && write(STDERR_FILENO, text, sizeof(text) - 1))
		abort();
}

#pragma GCC visibility push(default)

void *malloc(size_t bytes)
{
	use_locks();
	return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
	use_locks();
	return __libc_calloc(n, bytes);
}

void *realloc(void *before, size_t bytes)
{
	use_locks();
	return __libc_realloc(before, bytes);
}

void free(void *bytes)
{
	use_locks();
	__libc_free(bytes);
}

#pragma GCC visibility pop

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts forks, to distinguish objects of the parent from this process's own: the parent's locks
 * may be held, and what its objects refer to is gone. Registers handlers of forks.
 */
#ifndef BASE_FORKS_H
#define BASE_FORKS_H

/* Forks between the process that called forks_count() and this one; for reading only. */
extern unsigned int forks_so_far;

/** forks_count() - begin to count; call it once */
void forks_count(void);

/**
 * forks_watch() - register handlers that allocate or free memory; for constructors
 *
 * An allocator such as jemalloc registers its own handlers, which take and release its locks, at
 * the first allocation. Handlers run in reverse order before a fork, and in order after it, so the
 * allocator's must be registered first: this function allocates, and then calls pthread_atfork().
 */
void forks_watch(void (*before)(void), void (*in_parent)(void), void (*in_child)(void));

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts forks, to distinguish objects of the parent from this process's own: the parent's locks
 * may be held, and what its objects refer to is gone. And handlers of forks.
 */
#ifndef BASE_FORKS_H
#define BASE_FORKS_H

/* Forks between the process that called forks_count() and this one; for reading only. */
extern unsigned int forks_so_far;

/** forks_count() - begin to count; call it once */
void forks_count(void);

/**
 * forks_watch() - pthread_atfork(), for constructors of handlers that use memory
 *
 * Handlers run in reverse order before a fork, and in order after it. An allocator such as jemalloc
 * registers its own, which take and release its locks, at the first allocation: this makes one.
 */
void forks_watch(void (*before)(void), void (*in_parent)(void), void (*in_child)(void));

#endif

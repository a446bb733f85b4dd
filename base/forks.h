/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts forks, to distinguish objects of the parent from this process's own: the parent's locks
 * may be held, and what its objects refer to is gone.
 */
#ifndef BASE_FORKS_H
#define BASE_FORKS_H

/* Forks between the process that called forks_count() and this one; for reading only. */
extern unsigned int forks_so_far;

/** forks_count() - begin to count; call it once */
void forks_count(void);

#endif

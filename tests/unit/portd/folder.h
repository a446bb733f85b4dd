/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A temporary folder with room for a socket, and child processes, for the tests of cmportd's start.
 */
#ifndef TESTS_UNIT_PORTD_FOLDER_H
#define TESTS_UNIT_PORTD_FOLDER_H

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "tests/unit/test.h"

extern char folder[64];	     /* accessible to its owner only */
extern char socket_path[96]; /* folder/s */
extern char state_path[128]; /* folder/s.state */

/** folder_make() - a folder of this test's own; removed when the program ends. */
void folder_make(void);

/**
 * limit_files() - files may not grow beyond @bytes, RLIM_INFINITY for any size
 *
 * Check writes files too, so report nothing to it while it has no room.
 */
void limit_files(rlim_t bytes);

/** leave_descriptors() - limit this process to @n more descriptors, at most 8 */
void leave_descriptors(unsigned int n);

/** allow_descriptors() - restore the hard limit; the leak sanitizer needs some at the end */
void allow_descriptors(void);

/** in_child() - run a function in a child that exits without cleanup. Return: its exit status. */
int in_child(int (*run)(void));

/** is_root() - return whether this is root; otherwise print that the test is skipped, and why */
bool is_root(void);

#endif

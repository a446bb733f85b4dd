/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A temporary folder with room for a socket, and processes that come and go, for the tests of
 * cmportd's beginnings.
 */
#ifndef TESTS_UNIT_PORTD_FOLDER_H
#define TESTS_UNIT_PORTD_FOLDER_H

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "tests/unit/test.h"

extern char folder[64];	     /* the folder, which is its owner's alone */
extern char socket_path[96]; /* folder/s */
extern char state_path[128]; /* folder/s.state */

/** folder_make() - a folder of this test's own; removed when the program ends. */
void folder_make(void);

/**
 * limit_files() - files may not grow beyond @bytes, RLIM_INFINITY for any size
 *
 * Check writes files, too: while there is no room for those, nothing is to be said to it.
 */
void limit_files(rlim_t bytes);

/** leave_descriptors() - from now on this process can have @n more, at most 8 */
void leave_descriptors(unsigned int n);

/** allow_descriptors() - the limit is the hard one again; the leak sanitizer needs some at the end
 */
void allow_descriptors(void);

/** in_child() - run something in a child that then just stops. Return: its exit status. */
int in_child(int (*run)(void));

/** is_root() - says that the test is skipped, and why, if we are not */
bool is_root(void);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Counting the instructions of a function, which no other load of the machine changes. */
#ifndef TESTS_UNIT_STEPS_H
#define TESTS_UNIT_STEPS_H

#include <sys/types.h>

/**
 * steps_begin() - a child that is to run a function under PTRACE_SINGLESTEP
 *
 * It stops before. Where processes cannot be traced it exits with 77 instead, in a build with a
 * sanitizer after it has run the function.
 */
pid_t steps_begin(void (*run)(void));

/** steps_of() - its instructions, in a child; 0, and a line that says so, if they cannot be. */
unsigned long steps_of(void (*run)(void));

#endif

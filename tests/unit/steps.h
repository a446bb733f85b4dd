/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts the instructions of a function, which do not depend on other load of the machine. */
#ifndef TESTS_UNIT_STEPS_H
#define TESTS_UNIT_STEPS_H

#include <sys/types.h>

/**
 * steps_begin() - start a child that runs a function under PTRACE_SINGLESTEP
 *
 * It is stopped before the function. Where processes cannot be traced it exits with 77 instead, in
 * a build with a sanitizer after it has run the function.
 */
pid_t steps_begin(void (*run)(void));

/**
 * steps_of() - the number of its instructions, in a child; 0, and a printed reason, if they cannot
 * be counted.
 */
unsigned long steps_of(void (*run)(void));

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Access to memory that may be unmapped: a program may release what it has registered, or register
 * addresses before there is memory. A device survives that; here the access would kill the program.
 */
#ifndef FABRIC_GUARD_H
#define FABRIC_GUARD_H

#include <stdbool.h>

/**
 * guard_install() - handle SIGSEGV and SIGBUS of guarded accesses
 *
 * Other signals go to the handler that was there before. One that a program installs later replaces
 * this one.
 */
void guard_install(void);

/** guard_run() - call a function that takes no lock. Return: whether it met no unmapped memory. */
bool guard_run(void (*access)(void *arg), void *arg);

#endif

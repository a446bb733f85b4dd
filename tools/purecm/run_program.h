/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks of purecm run before it executes the program: which library to use, and whether it can be
 * preloaded.
 */
#ifndef TOOLS_PURECM_RUN_PROGRAM_H
#define TOOLS_PURECM_RUN_PROGRAM_H

#include <limits.h>
#include <stdbool.h>

/**
 * run_find_library() - find purecm's librdmacm.so.1
 * @given: path from the user, or NULL for the one installed with this program
 * @ret:   its absolute path
 *
 * Return: 0; -ENOENT or -EINVAL, after an error message, if it is missing or not purecm's.
 */
int run_find_library(const char *given, char ret[PATH_MAX]);

/** run_is_purecm() - return whether a file is purecm's library, which contains PURECM_LOG */
bool run_is_purecm(const char *path);

/**
 * run_check_program() - check whether a library can be preloaded into a program
 * @name: as for execvp()
 *
 * Return: 0, also for a program that is not found; -EINVAL, after an error message, for one that is
 * statically linked or set-user-ID.
 */
int run_check_program(const char *name);

#endif

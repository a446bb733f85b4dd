/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What purecm run looks at before it becomes the program: which library, and can the program be
 * given it?
 */
#ifndef TOOLS_PURECM_RUN_PROGRAM_H
#define TOOLS_PURECM_RUN_PROGRAM_H

#include <limits.h>
#include <stdbool.h>

/**
 * run_find_library() - purecm's librdmacm.so.1
 * @given: by the user, or NULL for the one that belongs to this program
 * @ret:   its path, from the root
 *
 * Return: 0; -ENOENT or -EINVAL, after a complaint, if it is not there or is another's.
 */
int run_find_library(const char *given, char ret[PATH_MAX]);

/** run_is_purecm() - is a file purecm's library? It knows PURECM_LOG. */
bool run_is_purecm(const char *path);

/**
 * run_check_program() - can a library be preloaded into a program?
 * @name: as for execvp()
 *
 * Return: 0, also for a program that is not found; -EINVAL, after a complaint, for one that is
 * statically linked or changes its user.
 */
int run_check_program(const char *name);

#endif

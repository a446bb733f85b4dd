/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Variables of a library. Programs may clear their environment before the first call, and write
 * over the memory that it was in, to show a title in ps; so a copy is made at load.
 */
#ifndef BASE_ENV_H
#define BASE_ENV_H

/**
 * env_get() - the value of a variable of purecm, of sockets (RS_*, RDMAV_*) or LD_LIBRARY_PATH
 *
 * The value at load counts only if the program has removed the variable since.
 *
 * Return: NULL if there is none, or if the program is set-user-ID or has raised capabilities.
 */
const char *env_get(const char *name);

#endif

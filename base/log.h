/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The log, a line each. In a program: to standard error for whoever asks for it with PURECM_LOG,
 * "warn" for what a user can mend, "debug" for every transition and every message too; silent by
 * default. In a daemon: to standard error or a file; warnings unless PURECM_LOG is "off".
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>

/**
 * log_as_daemon() - the process is a daemon, whose lines begin with its name
 *
 * To be called before the first line that could be written. PURECM_LOG is not read in a process
 * that has more rights than its user.
 */
void log_as_daemon(const char *name);

/** log_set_verbose() - as if PURECM_LOG were "debug" */
void log_set_verbose(void);

/** log_to_file() - append to a file from now on. Return: 0, or -errno and no change. */
int log_to_file(const char *path);

/** log_is_debug() - are transitions and messages wanted? */
bool log_is_debug(void);

/** log_warn() - something a user can mend: what, where, what to do. errno is kept. */
void log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** log_debug() - what the library or the daemon does. errno is kept. */
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif

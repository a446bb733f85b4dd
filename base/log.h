/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The log, one line per message, to standard error, in a daemon also to a file. PURECM_LOG: "warn"
 * for problems that the user can fix, the default of a daemon; "debug" also for all transitions and
 * messages; "off" for nothing, the default of a program.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>

/**
 * log_as_daemon() - log as a daemon; lines begin with its name
 *
 * Call it before anything is logged. A set-user-ID process ignores PURECM_LOG.
 */
void log_as_daemon(const char *name);

/** log_set_verbose() - log as if PURECM_LOG were "debug" */
void log_set_verbose(void);

/** log_to_file() - append to a file from now on. Return: 0; -errno, with nothing changed. */
int log_to_file(const char *path);

/** log_is_debug() - true if debug messages are logged. */
bool log_is_debug(void);

/** log_warn() - log a problem that the user can fix: what, where, what to do. Preserves errno. */
void log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** log_debug() - log what the library or the daemon does. Preserves errno. */
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif

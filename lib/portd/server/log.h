/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What cmportd says, a line each: to standard error or to a file. Warnings unless PURECM_LOG is
 * "off"; with "debug", or --verbose, every message and every change of state too.
 */
#ifndef LIB_PORTD_SERVER_LOG_H
#define LIB_PORTD_SERVER_LOG_H

#include <stdbool.h>

/** portd_log_set_verbose() - as if PURECM_LOG were "debug" */
void portd_log_set_verbose(void);

/** portd_log_to_file() - append to a file from now on. Return: 0, or -errno and no change. */
int portd_log_to_file(const char *path);

/**
 * portd_log_through() - say all in the words of a program's own log, which decides what is wanted
 *
 * For a server in a thread of a program. PURECM_LOG is not read then.
 */
void portd_log_through(bool (*is_debug)(void), void (*warn)(const char *format, ...),
		       void (*debug)(const char *format, ...));

/** portd_log_is_debug() - is anybody interested in details? */
bool portd_log_is_debug(void);

/** portd_log_warn() - something a user can mend: what, where, what to do. errno is kept. */
void portd_log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** portd_log_debug() - what cmportd does; the line bears the time. errno is kept. */
void portd_log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One line on standard error for whoever asks for it with PURECM_LOG: "warn" for what a user can
 * mend, "debug" for every transition and every message too. Silent by default.
 */
#ifndef LIB_DIAG_LOG_H
#define LIB_DIAG_LOG_H

#include <stdbool.h>

/** log_is_debug() - are transitions and messages wanted? */
bool log_is_debug(void);

/** log_warn() - something a user can mend: what, where, what to do. errno is kept. */
void log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** log_debug() - what the library does. errno is kept. */
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif

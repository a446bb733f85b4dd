/* SPDX-License-Identifier: BSD-2-Clause */
/* Translates reports of the core to events of ids. */
#ifndef LIB_CONN_CORE_REPORT_H
#define LIB_CONN_CORE_REPORT_H

#include "lib/engine/engine.h"

/**
 * report_dispatch() - handle one report of the core
 * @engine: locked
 * @box:    receives answers
 * @msg:    the message that caused it; undefined for timeouts
 */
void report_dispatch(struct engine *engine, struct outbox *box, const struct cm_report *report,
		     const struct cm_msg *msg);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From what the core reports to events of ids.
 */
#ifndef LIB_CONN_REPORT_H
#define LIB_CONN_REPORT_H

#include "lib/engine/engine.h"

/**
 * report_handle() - deal with one report of the core
 * @engine: locked
 * @box:    where answers go
 * @msg:    the message that made it happen; meaningless for timeouts
 */
void report_handle(struct engine *engine, struct outbox *box, const struct cm_report *report,
		   const struct cm_msg *msg);

#endif

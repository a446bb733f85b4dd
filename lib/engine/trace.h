/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every message and every transition: a line each with PURECM_LOG=debug, and a call each of the
 * program's function that was given to purecm_set_trace().
 */
#ifndef LIB_ENGINE_TRACE_H
#define LIB_ENGINE_TRACE_H

#include "cm/fsm.h"
#include "lib/engine/port.h"

/**
 * trace_message() - a message came ('<') or goes ('>')
 * @port: through which port
 * @path: to or from whom
 * @mad:  all of it
 */
void trace_message(char way, const struct port *port, const struct mad_path *path,
		   const uint8_t mad[MAD_BYTES]);

/** trace_step() - cm_core.trace: a connection moved. */
void trace_step(const struct cm_conn *conn, enum cm_state from, enum cm_event why);

/** trace_after_fork() - a child keeps its parent's function, and not the threads that were in it.
 */
void trace_after_fork(void);

#endif

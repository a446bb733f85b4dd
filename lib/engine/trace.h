/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Traces every message and every transition: one log line each with PURECM_LOG=debug, and one call
 * each of the function from purecm_set_trace().
 */
#ifndef LIB_ENGINE_TRACE_H
#define LIB_ENGINE_TRACE_H

#include "cm/fsm.h"
#include "lib/engine/served_port.h"

/**
 * trace_message() - trace a received ('<') or sent ('>') message
 * @port: the local port
 * @path: path from or to the peer
 * @mad:  the whole MAD
 */
void trace_message(char way, const struct port *port, const struct mad_path *path,
		   const uint8_t mad[MAD_BYTES]);

/** trace_step() - cm_core.trace: trace a transition. */
void trace_step(const struct cm_conn *conn, enum cm_state from, enum cm_event why);

/** trace_after_fork() - in a forked child: keep the function, reset the lock. */
void trace_after_fork(void);

#endif

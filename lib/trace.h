/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PURECM_LOG=debug: every message and every transition, a line each.
 */
#ifndef LIB_TRACE_H
#define LIB_TRACE_H

#include "cm/fsm.h"
#include "lib/device.h"

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

#endif

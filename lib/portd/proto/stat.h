/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections and counters of a core as records of STAT, for the library and for cmportd. Pure.
 */
#ifndef LIB_PORTD_PROTO_STAT_H
#define LIB_PORTD_PROTO_STAT_H

#include "cm/conn.h"
#include "lib/portd/proto/proto.h"

/**
 * portd_stat_conn() - set the members known to a connection: all except id, port, addresses, age
 */
void portd_stat_conn(const struct cm_conn *conn, struct portd_stat_id *ret);

/**
 * portd_stat_tally() - report the counters of a core at a port
 * @put: called for each non-zero counter, with port 0 and an empty row head
 */
void portd_stat_tally(const struct cm_tally *tally,
		      void (*put)(struct portd_stat_count *count, void *arg), void *arg);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The record of a connection: what another core needs to end it. It is the first part of a core's
 * connection (conn.h), part of the protocol between a program and cmportd (lib/portd/proto), the
 * content of cmportd's file, and what a core adopts (core.h). Calls nothing.
 */
#ifndef CM_RECORD_H
#define CM_RECORD_H

#include <stdint.h>

#include "mad/port.h"

/*
 * Do not move members: files of other versions of cmportd have this layout.
 *
 * A lookup (SIDR) keeps the service id in remote_ca_guid, and the peer's request id in
 * remote_comm_id.
 */
#define CM_RECORD_MEMBERS                                                                   \
	uint8_t state;	/* enum cm_state */                                                 \
	uint8_t active; /* we sent the REQ */                                               \
	uint8_t handle; /* cmportd's handle of the port; a core uses a pointer */           \
	uint32_t local_comm_id;                                                             \
	uint32_t remote_comm_id; /* 0 until known, and always for the side that looks up */ \
	uint32_t local_qpn;                                                                 \
	uint32_t remote_qpn;                                                                \
	uint64_t remote_ca_guid;                                                            \
	uint64_t tid;                                                                       \
	uint8_t packet_life_time;  /* encoded, 4.096 us * 2^t */                            \
	uint8_t local_ack_timeout; /* encoded; the queue pair's timeout */                  \
	struct mad_path path;	   /* to the peer's CM */

struct cm_record {
	CM_RECORD_MEMBERS
};

/* Embeds a record in another struct: its members by their own names, and together as @name. */
#define CM_RECORD_AS(name)                \
	union {                           \
		struct cm_record name;    \
		struct {                  \
			CM_RECORD_MEMBERS \
		};                        \
	}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Probes of the fast path, ours and those of peers. */
#ifndef LIB_PORTD_SERVER_WIRE_PROBES_H
#define LIB_PORTD_SERVER_WIRE_PROBES_H

#include "lib/portd/server/server_state.h"

/** probe_peers() - send the probes that are due; warn once if they do not reach a peer */
void probe_peers(struct host_port *host_port);

/** probe_answer() - answer @mad if it is a probe of the peer at @path. Return: whether it was. */
bool probe_answer(struct host_port *host_port, const struct mad_path *path,
		  const uint8_t mad[MAD_BYTES]);

#endif

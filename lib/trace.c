/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines for the debug log. Costs one test of a flag when the log is off.
 */
#include "lib/trace.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/log.h"

void trace_message(char way, const struct port *port, const struct mad_path *path,
		   const uint8_t mad[MAD_BYTES])
{
	char peer[INET6_ADDRSTRLEN] = "?";
	struct cm_msg msg;
	char *text = NULL;
	size_t bytes;
	FILE *out;

	if (!log_is_debug())
		return;
	out = open_memstream(&text, &bytes);
	if (!out)
		return;
	if (cm_msg_decode(mad, MAD_BYTES, &msg))
		fputs("not a CM message", out);
	else
		cm_msg_print(&msg, out);
	fclose(out);
	inet_ntop(AF_INET6, path->dgid.raw, peer, sizeof(peer));
	log_debug("%s/%u %c %s: %s", ibv_get_device_name(port->device->verbs->device),
		  port->port_num, way, peer, text);
	free(text);
}

void trace_step(const struct cm_conn *conn, enum cm_state from, enum cm_event why)
{
	if (log_is_debug())
		log_debug("conn 0x%08x %s -> %s, %s", conn->local_comm_id, cm_state_str(from),
			  cm_state_str(conn->state), cm_event_str(why));
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending what the core wanted sent, after the engine's lock was given up. Called by the API in
 * the program's threads, and by the engine's thread.
 */
#include "lib/outbox.h"

#include <string.h>

#include "lib/device.h"
#include "lib/hop.h"
#include "lib/log.h"
#include "lib/trace.h"

static int send_one(const struct cm_send *send)
{
	struct port *port = port_of(send->port);
	int err;

	trace_message('>', port, &send->path, send->mad);
	err = mad_port_send(port->mad, &send->path, send->mad);
	if (err)
		log_debug("that message was not sent: %s", strerror(-err));
	return err;
}

int outbox_flush(struct outbox *box)
{
	unsigned int i;
	int err, first = 0;

	for (i = 0; i < box->n; i++) {
		err = send_one(&box->send[i]);
		first = first ? first : err;
		port_put(port_of(box->send[i].port));
	}
	box->n = 0;
	return first;
}

/* The kernel would wait up to a second in write() for a link address that it does not know. The
 * program's threads can bear that; the engine's thread serves everyone. */
void outbox_flush_without_waiting(struct outbox *box)
{
	unsigned int i;

	for (i = 0; i < box->n; i++) {
		if (hop_is_ready(port_of(box->send[i].port), &box->send[i].path))
			send_one(&box->send[i]);
		port_put(port_of(box->send[i].port));
	}
	box->n = 0;
}

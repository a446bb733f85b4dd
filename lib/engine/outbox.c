/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends messages of the core after the engine's lock is released. cmportd resolves link addresses
 * for all processes, so nothing here blocks on that.
 */
#include "lib/engine/outbox.h"

#include <string.h>

#include "base/log.h"
#include "lib/engine/served_port.h"
#include "lib/engine/session.h"
#include "lib/engine/trace.h"

/* Queues a message, unless cmportd does not have its port. */
static void hold_message(const struct cm_send *send, bool again)
{
	struct port *port = port_of(send->port);
	struct portd_record record; /* large, so not cleared */

	trace_message('>', port, &send->path, send->mad);
	if (port->handle < 0)
		return;
	record.type = PORTD_MAD;
	record.mad.port = (uint8_t)port->handle;
	record.mad.again = again;
	record.mad.path = send->path;
	memcpy(record.mad.mad, send->mad, MAD_BYTES);
	portd_hold(session_client(), &record);
}

void outbox_hold(struct outbox *box, bool again)
{
	struct portd_record record = { .type = PORTD_CLOSE };
	unsigned int i;

	for (i = 0; i < box->n; i++) {
		hold_message(&box->send[i], again);
		port_put(port_of(box->send[i].port));
	}
	for (i = 0; i < box->n_closed; i++) {
		record.close = box->closed[i];
		portd_hold(session_client(), &record);
	}
	outbox_init(box);
}

void outbox_release(void)
{
	int err = portd_send_held(session_client());

	if (err)
		log_debug("that was not sent: %s", strerror(-err));
}

/* Without a message, the notice that a comm id is free waits for the next one. */
void outbox_flush(struct outbox *box)
{
	bool has_message = box->n;

	outbox_hold(box, false);
	if (has_message)
		outbox_release();
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends messages of the core after the engine's lock is released. cmportd resolves link addresses
 * for all processes, so nothing here blocks on that.
 */
#include "lib/engine/outbox.h"

#include <string.h>

#include "base/log.h"
#include "lib/engine/session.h"
#include "lib/engine/port.h"
#include "lib/engine/trace.h"

/* Return: false if cmportd does not have the message's port. */
static bool fill_mad(const struct cm_send *send, bool again, struct portd_mad *ret)
{
	struct port *port = port_of(send->port);

	trace_message('>', port, &send->path, send->mad);
	if (port->handle < 0)
		return false;
	ret->port = (uint8_t)port->handle;
	ret->again = again;
	ret->path = send->path;
	memcpy(ret->mad, send->mad, MAD_BYTES);
	return true;
}

/* Closes the comm ids, after their messages, and empties the box. */
static void empty_outbox(struct outbox *box)
{
	unsigned int i;

	for (i = 0; i < box->n_closed; i++)
		portd_closed(session_client(), &box->closed[i]);
	for (i = 0; i < box->n; i++)
		port_put(port_of(box->send[i].port));
	outbox_init(box);
}

int outbox_flush(struct outbox *box)
{
	struct portd_mad mad[OUTBOX_MAX];
	unsigned int i, n = 0;
	int err = 0;

	for (i = 0; i < box->n; i++)
		n += fill_mad(&box->send[i], false, &mad[n]);
	if (n)
		err = portd_send(session_client(), mad, n);
	if (err)
		log_debug("that was not sent: %s", strerror(-err));
	empty_outbox(box);
	return err;
}

void outbox_hold(struct outbox *box, bool again)
{
	struct portd_mad mad;
	unsigned int i;

	for (i = 0; i < box->n; i++)
		if (fill_mad(&box->send[i], again, &mad))
			portd_hold(session_client(), &mad);
	empty_outbox(box);
}

void outbox_release(void)
{
	int err = portd_send_held(session_client());

	if (err)
		log_debug("what was held was not sent: %s", strerror(-err));
}

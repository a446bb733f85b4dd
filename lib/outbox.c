/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending what the core wanted sent, after the engine's lock was given up. Called by the API in
 * the program's threads, and by the engine's thread.
 */
#include "lib/outbox.h"

#include <errno.h>
#include <string.h>

#include "lib/device.h"
#include "lib/host.h"
#include "lib/log.h"
#include "lib/trace.h"
#include "lib/net/hop.h"

static int send_slowly(const struct cm_send *send)
{
	return mad_port_send(port_of(send->port)->mad, &send->path, send->mad);
}

/* What left from our own queue pair, and did not get out. */
static void send_failed(const struct port *port)
{
	uint8_t mad[MAD_BYTES];
	struct mad_path path;

	while (port->sender && mad_sender_failed(port->sender, &path, mad))
		if (mad_port_send(port->mad, &path, mad))
			log_debug("a message was sent neither way");
}

static int send_fast(const struct cm_send *send)
{
	struct port *port = port_of(send->port);
	int err = -EAGAIN;

	if (port->sender)
		err = mad_sender_send(port->sender, &send->path, send->mad);
	if (err)
		err = send_slowly(send);
	send_failed(port);
	return err;
}

static int send_one(const struct cm_send *send, int (*way)(const struct cm_send *send))
{
	int err;

	trace_message('>', port_of(send->port), &send->path, send->mad);
	err = way(send);
	if (err)
		log_debug("that message was not sent: %s", strerror(-err));
	return err;
}

static bool can_leave(const struct cm_send *send)
{
	const struct port *port = port_of(send->port);

	return !send->path.grh || hop_is_ready(port->device->verbs, port->port_num,
					       send->path.sgid_index, &send->path.dgid);
}

static void doubt(const struct cm_send *send)
{
	const struct port *port = port_of(send->port);

	if (port->sender)
		mad_sender_doubt(port->sender, &send->path.dgid, send->mad);
	if (send->path.grh)
		hop_doubt(port->device->verbs, port->port_num, send->path.sgid_index,
			  &send->path.dgid);
}

static void trace_all(const struct outbox *box)
{
	unsigned int i;

	for (i = 0; i < box->n; i++)
		trace_message('>', port_of(box->send[i].port), &box->send[i].path,
			      box->send[i].mad);
}

static void empty(struct outbox *box)
{
	unsigned int i;

	for (i = 0; i < box->n; i++)
		port_put(port_of(box->send[i].port));
	outbox_init(box);
}

/* cmportd waits for link addresses itself, and for all processes. */
static int hand_over(struct outbox *box)
{
	int err;

	trace_all(box);
	err = box->n || box->n_closed ? host_send(box) : 0;
	if (err)
		log_debug("that was not sent: %s", strerror(-err));
	empty(box);
	return err;
}

static void hand_over_later(struct outbox *box, bool again)
{
	trace_all(box);
	host_hold(box, again);
	empty(box);
}

void outbox_release(void)
{
	int err = host_client() ? host_release() : 0;

	if (err)
		log_debug("what was held was not sent: %s", strerror(-err));
}

int outbox_flush(struct outbox *box)
{
	unsigned int i;
	int err, first = 0;

	if (host_client())
		return hand_over(box);
	for (i = 0; i < box->n; i++) {
		err = send_one(&box->send[i], send_fast);
		first = first ? first : err;
		port_put(port_of(box->send[i].port));
	}
	box->n = 0;
	return first;
}

void outbox_hold(struct outbox *box)
{
	if (host_client())
		hand_over_later(box, false);
	else
		outbox_flush(box);
}

/*
 * The kernel would wait up to a second for a link address that it does not know. The program's
 * threads can bear that; the engine's thread serves everyone.
 *
 * What a timer repeats goes the slow way: if the peer has moved to another link address without a
 * word, only the kernel's look at its neighbour finds that out.
 */
void outbox_hold_without_waiting(struct outbox *box)
{
	unsigned int i;

	if (host_client()) {
		hand_over_later(box, true);
		return;
	}
	for (i = 0; i < box->n; i++) {
		send_failed(port_of(box->send[i].port));
		if (can_leave(&box->send[i])) {
			doubt(&box->send[i]);
			send_one(&box->send[i], send_slowly);
		}
		port_put(port_of(box->send[i].port));
	}
	box->n = 0;
}

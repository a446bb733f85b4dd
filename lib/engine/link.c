/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way to cmportd: see link.h.
 */
#include "lib/engine/link.h"

#include <string.h>

#include "cm/action.h"
#include "lib/engine/port.h"

static struct portd_client *client;		      /* atomic; written once in a process */
static struct portd_close closing[OUTBOX_CLOSED_MAX]; /* of a step; under the engine's lock */
static unsigned int n_closing;

struct portd_client *link_client(void)
{
	return __atomic_load_n(&client, __ATOMIC_ACQUIRE);
}

void link_begin(struct portd_client *found)
{
	__atomic_store_n(&client, found, __ATOMIC_RELEASE);
}

void link_after_fork(void)
{
	portd_client_after_fork(client);
	client = NULL;
	n_closing = 0;
}

/* --- comm ids that are free again ---------------------------------------- */

/* Where no outbox is at hand, a port was removed, and there is nothing to send. */
void link_released(struct cm_core *core, const struct cm_conn *conn)
{
	struct portd_close close = { .local_comm_id = conn->local_comm_id,
				     .remote_comm_id = conn->remote_comm_id,
				     .remote_ca_guid = conn->remote_ca_guid };

	(void)core;
	if (!conn->port)
		return; /* cmportd never heard of it */
	close.peer_gid = cm_peer_gid(&conn->path);
	if (n_closing < OUTBOX_CLOSED_MAX)
		closing[n_closing++] = close;
	else
		portd_closed(client, &close);
}

void link_take_closed(struct outbox *box)
{
	unsigned int i;

	for (i = 0; i < n_closing; i++) {
		if (box->n_closed < OUTBOX_CLOSED_MAX)
			box->closed[box->n_closed++] = closing[i];
		else
			portd_closed(client, &closing[i]);
	}
	n_closing = 0;
}

/* --- messages ------------------------------------------------------------ */

/* Return: whether cmportd has that port. */
static bool address(const struct cm_send *send, bool again, struct portd_mad *ret)
{
	int handle = port_of(send->port)->handle;

	if (handle < 0)
		return false;
	ret->port = (uint8_t)handle;
	ret->again = again;
	ret->path = send->path;
	memcpy(ret->mad, send->mad, MAD_BYTES);
	return true;
}

static void tell_closed(const struct outbox *box)
{
	unsigned int i;

	for (i = 0; i < box->n_closed; i++)
		portd_closed(client, &box->closed[i]);
}

int link_send(const struct outbox *box)
{
	struct portd_mad mad[OUTBOX_MAX];
	unsigned int i, n = 0;
	int err = 0;

	for (i = 0; i < box->n; i++)
		n += address(&box->send[i], false, &mad[n]);
	if (n)
		err = portd_send(client, mad, n);
	tell_closed(box);
	return err;
}

void link_hold(const struct outbox *box, bool again)
{
	struct portd_mad mad;
	unsigned int i;

	for (i = 0; i < box->n; i++)
		if (address(&box->send[i], again, &mad))
			portd_hold(client, &mad);
	tell_closed(box);
}

int link_release(void)
{
	return portd_send_held(client);
}

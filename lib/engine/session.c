/* SPDX-License-Identifier: BSD-2-Clause */
/* The connection to cmportd, and the comm ids to return to it: see session.h. */
#include "lib/engine/session.h"

#include "lib/engine/served_port.h"

static struct portd_client *client;		      /* atomic; written once per process */
static struct portd_close closing[OUTBOX_CLOSED_MAX]; /* of one step; under the engine's lock */
static unsigned int n_closing;
static bool up;		 /* atomic */
static uint32_t n_heard; /* MADs received, as in a CLOSE; under the engine's lock */

struct portd_client *session_client(void)
{
	return __atomic_load_n(&client, __ATOMIC_ACQUIRE);
}

void session_begin(struct portd_client *found)
{
	__atomic_store_n(&client, found, __ATOMIC_RELEASE);
	session_set_up(true);
}

void session_set_up(bool is)
{
	__atomic_store_n(&up, is, __ATOMIC_RELEASE);
}

unsigned int session_events(int handle)
{
	return __atomic_load_n(&up, __ATOMIC_ACQUIRE) ? portd_port_events(client, handle) : 0;
}

void session_after_fork(void)
{
	portd_client_after_fork();
	client = NULL;
	up = false;
	n_closing = 0;
	n_heard = 0;
}

void session_count_mad(void)
{
	n_heard++;
}

void session_reset_count(void)
{
	n_heard = 0;
}

/* --- freed comm ids -------------------------------------------------------- */

static void hold_close(const struct portd_close *close)
{
	portd_hold(client, &(struct portd_record){ .type = PORTD_CLOSE, .close = *close });
}

/*
 * More comm ids than that are freed only when a port was removed; then no message has to go first.
 */
void session_note_released(struct cm_core *core, const struct cm_conn *conn)
{
	struct portd_close close = { .local_comm_id = conn->local_comm_id,
				     .remote_comm_id = conn->remote_comm_id,
				     .remote_ca_guid = conn->remote_ca_guid,
				     .n_heard = n_heard };

	(void)core;
	if (!conn->port)
		return; /* cmportd does not know it */
	close.peer_gid = mad_path_peer(&conn->path);
	if (n_closing < OUTBOX_CLOSED_MAX)
		closing[n_closing++] = close;
	else
		hold_close(&close);
}

void session_take_closed(struct outbox *box)
{
	unsigned int i;

	for (i = 0; i < n_closing; i++) {
		if (box->n_closed < OUTBOX_CLOSED_MAX)
			box->closed[box->n_closed++] = closing[i];
		else
			hold_close(&closing[i]);
	}
	n_closing = 0;
}

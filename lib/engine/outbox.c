/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending what the core wanted sent, after the engine's lock was given up. cmportd waits for link
 * addresses itself, and for all processes: nothing here blocks for them.
 */
#include "lib/engine/outbox.h"

#include <string.h>

#include "base/log.h"
#include "lib/engine/link.h"
#include "lib/engine/port.h"
#include "lib/engine/trace.h"

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

int outbox_flush(struct outbox *box)
{
	int err;

	trace_all(box);
	err = box->n || box->n_closed ? link_send(box) : 0;
	if (err)
		log_debug("that was not sent: %s", strerror(-err));
	empty(box);
	return err;
}

static void hold(struct outbox *box, bool again)
{
	trace_all(box);
	link_hold(box, again);
	empty(box);
}

void outbox_hold(struct outbox *box)
{
	hold(box, false);
}

void outbox_hold_again(struct outbox *box)
{
	hold(box, true);
}

void outbox_release(void)
{
	int err = link_release();

	if (err)
		log_debug("what was held was not sent: %s", strerror(-err));
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The answers to a REQ: see response.h. */
#include "lib/conn/response.h"

#include <errno.h>

#include "lib/diag/lock_order.h"
#include "lib/engine/engine.h"
#include "lib/verbs/ece.h"
#include "lib/verbs/qp.h"

static int answer_rep(struct id *id)
{
	struct engine *engine;
	struct outbox box;
	int err = ece_agree(id);

	if (!err)
		err = qp_to_rts(id);
	if (err) {
		qp_to_error(id);
		return err;
	}
	outbox_init(&box);
	engine = engine_lock();
	err = id->conn ? engine_step(engine, &box, id->conn, CM_CALL_RTU, NULL) : -ENODEV;
	engine_unlock();
	outbox_flush(&box);
	if (err)
		qp_to_error(id);
	return err;
}

/* If the library has the queue pair, the program gets an event only when all is ready. */
int response_taken(struct event *event)
{
	struct id *id = event->subject;
	bool is_external;
	int err;

	id->remote_ece = event->ece;
	lock_take(&id->qp_lock, LOCK_QP);
	is_external = !id->pub.qp;
	err = is_external ? 0 : answer_rep(id);
	lock_give(&id->qp_lock, LOCK_QP);
	if (is_external)
		return 0;
	if (!err) {
		event->pub.event = RDMA_CM_EVENT_ESTABLISHED;
		return 0;
	}
	id->connect_error = true;
	id_event_spoil(event, RDMA_CM_EVENT_CONNECT_ERROR, err);
	return 0;
}

int response_rejected(struct event *event)
{
	struct id *id = event->subject;

	lock_take(&id->qp_lock, LOCK_QP);
	qp_to_error(id);
	lock_give(&id->qp_lock, LOCK_QP);
	return 0;
}

int response_missing(struct event *event)
{
	struct portd_record record;
	bool is_ours;

	engine_lock();
	is_ours = path_revalidate(&event->subject->path, &record);
	engine_unlock();
	if (is_ours)
		subnet_send(&record);
	return 0;
}

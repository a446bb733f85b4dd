/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_write_cm_event(): queues an event of the program's own on the id's channel. It is charged to
 * the id and acknowledged like other events.
 */
#include <errno.h>

#include "lib/api.h"
#include "lib/engine/engine.h"

static int write_event(struct id *id, int status, uint64_t arg)
{
	struct event *event = id_user_event(id, status, arg);
	int err = 0;

	if (!event)
		return -ENOMEM;
	engine_lock();
	if (id->state == ID_DESTROYING) {
		err = -EINVAL;
		id_event_free(event);
	} else {
		id_post(event);
	}
	engine_unlock();
	return err;
}

int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event, int status,
			uint64_t arg)
{
	if (event != RDMA_CM_EVENT_USER)
		return api_return(-EINVAL);
	return api_return(id_check(id) ?: write_event(id_of(id), status, arg));
}

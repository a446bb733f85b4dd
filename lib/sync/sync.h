/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Synchronous ids: created without a channel, they have one of their own, and a call that starts an
 * operation returns when its event arrives. That event, of any type, stays in id->event until the
 * next such call.
 *
 * Calls that produce an event return through sync_return(); other calls need no change.
 */
#ifndef LIB_SYNC_SYNC_H
#define LIB_SYNC_SYNC_H

#include "lib/api.h"
#include "lib/id/id.h"

/**
 * sync_complete() - wait for the event of an operation, and store it in id->event
 * @id:           a synchronous id
 * @cancel_state: the program's, see api.h
 *
 * Acknowledges the previous event first. If the id's channel is O_NONBLOCK, repeat this when the
 * channel is readable.
 *
 * Return: 0 if the event's status is 0; -ECONNREFUSED for REJECTED, else the event's status as
 * -errno; -EAGAIN with O_NONBLOCK; as event_take().
 */
int sync_complete(struct id *id, int cancel_state);

/**
 * sync_finish() - sync_complete() for an operation that was just started
 * @id:           a synchronous id
 * @had_event:    true if an event was queued before
 * @cancel_state: the program's, see api.h
 *
 * With O_NONBLOCK a call never completes at once, even if its event is queued: programs for the
 * kernel's connection manager continue when the channel becomes readable, and would wait forever.
 *
 * Return: as sync_complete().
 */
int sync_finish(struct id *id, bool had_event, int cancel_state);

/** sync_drop_event() - acknowledge the event in id->event, if any. */
void sync_drop_event(struct id *id);

/**
 * sync_return() - api_return() for a call that starts an operation on an id, after id_check()
 *
 * Checks before the call whether the id is synchronous: if it is not, another thread may take its
 * event and destroy it before the call returns.
 */
#define sync_return(begun, call)                                                                 \
	({                                                                                       \
		int sync_err = id_check(begun);                                                  \
		bool sync_is = !sync_err && id_is_sync(id_of(begun));                            \
		bool sync_had_event = sync_is && channel_has_event(id_of(begun)->channel);       \
		int sync_cancel_state = api_enter();                                             \
                                                                                                 \
		if (!sync_err)                                                                   \
			sync_err = (call);                                                       \
		if (!sync_err && sync_is)                                                        \
			sync_err = sync_finish(id_of(begun), sync_had_event, sync_cancel_state); \
		api_leave(sync_cancel_state);                                                    \
		api_result(sync_err);                                                            \
	})

#endif

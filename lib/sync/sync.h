/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Synchronous ids: made without a channel, they have one of their own, and a call that begins
 * something returns when its event has come. That event, whatever it is, is then in id->event
 * until the next such call.
 *
 * Calls that produce an event end in sync_return(); the others know nothing of this.
 */
#ifndef LIB_SYNC_SYNC_H
#define LIB_SYNC_SYNC_H

#include "lib/api.h"
#include "lib/id/id.h"

/**
 * sync_complete() - wait for the event of what was begun, and keep it in id->event
 * @id:           a synchronous id
 * @cancel_state: that of the program, see api.h
 *
 * The event before is acknowledged first. With O_NONBLOCK on the id's channel this is the part that
 * is to be repeated when the channel is readable.
 *
 * Return: 0 if the event's status is 0; -ECONNREFUSED for REJECTED, else the event's status as
 * -errno; -EAGAIN with O_NONBLOCK; as event_take().
 */
int sync_complete(struct id *id, int cancel_state);

/**
 * sync_finish() - sync_complete() for what was begun just now
 * @id:           a synchronous id
 * @had_event:    an event was waiting before that
 * @cancel_state: that of the program, see api.h
 *
 * With O_NONBLOCK a call never completes at once, even if its event is there: programs that were
 * written for the kernel go on when the channel becomes readable, and would wait for ever.
 *
 * Return: as sync_complete().
 */
int sync_finish(struct id *id, bool had_event, int cancel_state);

/** sync_drop_event() - acknowledge the event in id->event, if there is one. */
void sync_drop_event(struct id *id);

/** sync_or_null() - the id if there is one and it is synchronous, else NULL. */
static inline struct id *sync_or_null(struct id *id)
{
	return id && id_is_sync(id) ? id : NULL;
}

/**
 * sync_return() - api_return() for a call that begins something on an id, which may be NULL
 *
 * Whether the id is synchronous is looked up before the call: another thread may take the event of
 * an id that is not, and destroy the id, before the call returns.
 */
#define sync_return(begun_id, call)                                                         \
	({                                                                                  \
		struct id *sync_id = sync_or_null(begun_id);                                \
		bool sync_had_event = sync_id && channel_has_event(sync_id->channel);       \
		int sync_cancel_state = api_enter();                                        \
		int sync_err = (call);                                                      \
                                                                                            \
		if (!sync_err && sync_id)                                                   \
			sync_err = sync_finish(sync_id, sync_had_event, sync_cancel_state); \
		api_leave(sync_cancel_state);                                               \
		api_result(sync_err);                                                       \
	})

#endif

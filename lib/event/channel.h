/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event channels: a queue of events and a descriptor that is readable exactly while the queue is
 * not empty. Ids post to them, rdma_get_cm_event() takes from them.
 *
 * The descriptor is an eventfd. New events add to its count, which wakes pollers of every kind, and
 * whoever takes the last event resets it. The count is added after all locks are given up: who is
 * woken would else run straight into them.
 *
 * rdma_get_cm_event() sleeps on a semaphore, since a futex is restarted after a signal handler that
 * was installed with SA_RESTART, as the kernel's read of an event is; poll() never is.
 */
#ifndef LIB_EVENT_CHANNEL_H
#define LIB_EVENT_CHANNEL_H

#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <semaphore.h>
#include <stdbool.h>

#include "base/list.h"
#include "mad/cm_msg.h"

struct id;
struct group;

struct event {
	struct rdma_cm_event pub; /* first: what the program sees */
	struct list link;	  /* in the channel's queue */
	struct list of_owner;	  /* among its owner's, while it is in the queue */
	struct id *owner;    /* whom it is charged to: the listener for a request, else its id */
	struct id *subject;  /* pub.id */
	struct group *group; /* charged, too, with events about a multicast group; else NULL */
	/*
	 * What the event means for its id, as the program sees it: called in the program's thread,
	 * when it takes the event; or NULL. Return: 0; -errno if the event is no more.
	 */
	int (*taken)(struct event *event);
	struct ibv_ece ece; /* of REQ and REP */
	bool is_long;	    /* it has what follows; most have nothing to put there */
	uint8_t private_data[CM_SIDR_REQ_PRIVATE_BYTES];
};

struct channel {
	struct rdma_event_channel pub; /* first */
	pthread_mutex_t lock;
	struct list events;
	struct channel *next_open; /* channel_set.c's */
	unsigned int refs; /* atomic: its maker, its ids, and each thread inside channel_take() */
	bool closed;
	struct list posted; /* in the list of channels to be signalled */
	bool is_posted;
	uint64_t n_signals;	/* written, or about to be, and not yet read */
	unsigned int n_writers; /* atomic: that are about to */
	sem_t wake;		/* posted for each thread that is to look again */
	unsigned int n_asleep;	/* threads that wait, or were woken and have not looked yet */
	unsigned int n_woken;	/* of these: never more than the semaphore was posted for */
};

/** channel_of() - from what the program holds to what we know. */
static inline struct channel *channel_of(struct rdma_event_channel *pub)
{
	return (struct channel *)pub;
}

/** channel_new() - Return: 0 or -errno. */
int channel_new(struct channel **ret);

/**
 * channel_close() - close the descriptor; threads that wait for events are left waiting
 * @channel: one that is not open any more, or never was, is passed over
 *
 * The memory goes when the last of them is out and the last id is gone: a program that destroys
 * them in the wrong order is in error, but not to be punished with what was freed.
 */
void channel_close(struct channel *channel);

/** channel_get() - an id more; channel_put() for each. */
void channel_get(struct channel *channel);
void channel_put(struct channel *channel);

/**
 * channel_post() - append an event; the engine's lock is held
 *
 * It is the channel's until it is taken; a closed channel drops it. Never blocks. Pollers are woken
 * when the engine's lock is given up.
 */
void channel_post(struct channel *channel, struct event *event);

/** channel_take_posted() - the channels that are to be signalled; the engine's lock is held. */
void channel_take_posted(struct list *ret);

/** channel_after_fork() - forget the channels of the parent that were to be signalled. */
void channel_after_fork(void);

/** channel_signal_posted() - wake the pollers of these channels; no lock is held. */
void channel_signal_posted(struct list *channels);

/**
 * channel_take() - take the oldest event, wait for one if the descriptor is blocking
 * @channel:      may be closed, and freed: the pointer is not followed unless it is an open one's
 * @cancel_state: that of the program, in force while this waits: see api.h
 *
 * The event is charged to its owner before the channel is unlocked.
 *
 * As with the kernel's, who waits when the channel is closed waits until it is cancelled or the
 * process ends: programs close a channel with a thread inside and call an error fatal.
 *
 * Return: 0; -EAGAIN if the descriptor is non-blocking and there is none; -EINTR after a signal
 * handler without SA_RESTART; -EBADF if the channel was closed before.
 */
int channel_take(struct channel *channel, int cancel_state, struct event **ret);

/** channel_is_blocking() - does channel_take() wait? */
bool channel_is_blocking(const struct channel *channel);

/** channel_has_event() - would channel_take() return at once? */
bool channel_has_event(struct channel *channel);

/**
 * channel_withdraw() - move the events that are charged to an id to a list, in order
 * @group: those about this one only; NULL: all
 */
void channel_withdraw(struct channel *channel, struct id *owner, const struct group *group,
		      struct list *ret);

/** channel_withdraw_request() - the one that tells of a new id. Return: NULL if it was taken. */
struct event *channel_withdraw_request(struct channel *channel, struct id *child);

#endif

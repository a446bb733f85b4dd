/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event channels: a queue of events, and a descriptor that is readable exactly while the queue is
 * not empty, except for an event that a thread in rdma_get_cm_event() has been woken to take: that
 * saves two system calls. Ids post events.
 *
 * The descriptor is an eventfd. New events add to its count, which wakes all kinds of pollers;
 * taking the last event resets it. The count is added after all locks are released, since a woken
 * thread would otherwise block on them at once.
 *
 * rdma_get_cm_event() sleeps on a semaphore: the kernel restarts a futex wait after a signal
 * handler with SA_RESTART, as it does the read of an event in stock librdmacm, but it never
 * restarts poll().
 */
#ifndef LIB_EVENT_CHANNEL_H
#define LIB_EVENT_CHANNEL_H

#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <semaphore.h>
#include <stdbool.h>

#include "base/forks.h"
#include "base/list.h"
#include "mad/cm_msg.h"

struct id;
struct group;

#define EVENT_DROPPED 1

struct event {
	struct rdma_cm_event pub; /* first; the part that the program sees */
	struct list link;	  /* in the channel's queue */
	struct list of_owner;	  /* in the owner's list, while queued */
	struct id *owner;    /* id charged with it: the listener for a request, otherwise subject */
	struct id *subject;  /* pub.id */
	struct group *group; /* multicast group that is also charged, or NULL */
	/*
	 * Applies the event to its id, as the program sees it, or NULL. Called in the program's
	 * thread when it takes the event. Return: 0; -errno if the event is obsolete;
	 * EVENT_DROPPED if it is freed, and the program gets the next one.
	 */
	int (*taken)(struct event *event);
	struct ibv_ece ece; /* of REQ and REP */
	bool is_long;	    /* allocated with private_data; most events need none */
	uint8_t private_data[CM_SIDR_REQ_PRIVATE_BYTES];
};

struct channel {
	struct rdma_event_channel pub; /* first */
	unsigned int n_forks;	       /* forks_so_far, when it was created */
	pthread_mutex_t lock;
	struct list events;
	struct channel *next_open; /* of channel_set.c */
	unsigned int refs;	   /* atomic: creator, ids, and each thread in channel_take() */
	bool closed;
	struct list posted; /* in the list of channels to signal */
	bool is_posted;
	uint64_t n_signals;	/* signals written, or about to be, and not yet read */
	unsigned int n_writers; /* atomic: threads about to write */
	sem_t wake;		/* posted for each thread that must check again */
	unsigned int n_asleep;	/* threads that wait, or were woken and have not checked yet */
	unsigned int n_woken;	/* of n_asleep; at most the posts of the semaphore */
};

/** channel_of() - the channel of the program's pointer. */
static inline struct channel *channel_of(struct rdma_event_channel *pub)
{
	return (struct channel *)pub;
}

/** channel_is_inherited() - true for a channel from before a fork() */
static inline bool channel_is_inherited(const struct channel *channel)
{
	return channel->n_forks != forks_so_far;
}

/** channel_new() - create a channel. Return: 0 or -errno. */
int channel_new(struct channel **ret);

/**
 * channel_close() - close the descriptor; threads that wait for events keep waiting
 * @channel: ignored unless it is open; of an inherited one, only the descriptor is closed
 *
 * The memory is freed when the last thread has left and the last id is gone: a program that
 * destroys them in the wrong order is in error, but must not cause a use after free.
 */
void channel_close(struct channel *channel);

/** channel_is_closed() - return whether channel_close() was called */
bool channel_is_closed(struct channel *channel);

/** channel_get() - take a reference for an id; channel_put() for each. */
void channel_get(struct channel *channel);
void channel_put(struct channel *channel);

/**
 * channel_post() - append an event; the engine's lock is held
 *
 * Takes ownership of the event; a closed channel drops it. Never blocks. Pollers are woken when the
 * engine's lock is released.
 */
void channel_post(struct channel *channel, struct event *event);

/**
 * channel_take_posted() - take the list of channels to signal; the engine's lock is held
 *
 * Return: false if there are none; @ret is not set.
 */
bool channel_take_posted(struct list *ret);

/** channel_signal_posted() - wake the pollers of these channels; no lock is held. */
void channel_signal_posted(struct list *channels);

/**
 * channel_take() - take the oldest event; wait for one if the descriptor is blocking
 * @channel:      may be closed and freed: dereferenced only if it is an open channel
 * @cancel_state: the program's, in force while waiting: see api.h
 *
 * The event is charged to its owner before the channel is unlocked.
 *
 * As in the kernel, a thread that waits when the channel is closed keeps waiting until it is
 * cancelled or the process ends: programs close a channel with a thread inside, and treat an error
 * as fatal.
 *
 * Return: 0; -EAGAIN if the descriptor is non-blocking and there is no event; -EINTR after a signal
 * handler without SA_RESTART; -EBADF if the channel was closed before; -EACCES if it is inherited.
 */
int channel_take(struct channel *channel, int cancel_state, struct event **ret);

/** channel_is_blocking() - true if channel_take() may wait. */
bool channel_is_blocking(const struct channel *channel);

/** channel_has_event() - true if channel_take() would return at once. */
bool channel_has_event(struct channel *channel);

/**
 * channel_withdraw() - move the events that are charged to an id to a list, in order
 * @group: only events about this group; NULL: all events
 */
void channel_withdraw(struct channel *channel, struct id *owner, const struct group *group,
		      struct list *ret);

/** channel_withdraw_request() - remove the request of a new id. Return: NULL if it was taken. */
struct event *channel_withdraw_request(struct channel *channel, struct id *child);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A queue of events with a descriptor that is readable while it has any. Used for completion
 * channels and for the asynchronous events of a context.
 */
#ifndef FABRIC_EVENT_QUEUE_H
#define FABRIC_EVENT_QUEUE_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>

#include "base/list.h"

struct event_queue {
	pthread_mutex_t lock;
	struct list events;
	int fd; /* passed to the program, which may make it non-blocking */
	sem_t wake;
	unsigned int n_asleep; /* not woken yet; more if a signal or cancellation ended a wait */
};

/** event_queue_init() - Return: 0 or -errno. */
int event_queue_init(struct event_queue *queue);

/** event_queue_fini() - free the queue and its events */
void event_queue_fini(struct event_queue *queue);

/**
 * event_queue_post() - add an event
 * @taken: NULL, or the count of the object's events that were taken, which event_queue_take()
 *         increments. It is final after event_queue_forget().
 *
 * Return: 0 or -ENOMEM.
 */
int event_queue_post(struct event_queue *queue, const struct ibv_async_event *event,
		     unsigned int *taken);

/**
 * event_queue_take() - wait for the oldest event
 *
 * Return: 0; -EAGAIN if there is none and the descriptor is non-blocking; -EINTR, but
 * not after a handler with SA_RESTART, as with a kernel's descriptor.
 */
int event_queue_take(struct event_queue *queue, struct ibv_async_event *ret);

/** event_queue_forget() - remove the events of an object that is destroyed */
void event_queue_forget(struct event_queue *queue, const void *object);

#endif

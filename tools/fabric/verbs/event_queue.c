/* SPDX-License-Identifier: BSD-2-Clause */
/* Events in memory, and an eventfd that is readable while there are any: see event_queue.h. */
#include "tools/fabric/verbs/event_queue.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct event {
	struct list link;
	struct ibv_async_event event;
	unsigned int *taken;
};

int event_queue_init(struct event_queue *queue)
{
	list_init(&queue->events);
	queue->fd = eventfd(0, EFD_CLOEXEC);
	if (queue->fd < 0)
		return -errno;
	pthread_mutex_init(&queue->lock, NULL);
	sem_init(&queue->wake, 0, 0);
	queue->n_asleep = 0;
	return 0;
}

static void clear_descriptor(struct event_queue *queue)
{
	eventfd_t count;

	if (list_is_empty(&queue->events))
		eventfd_read(queue->fd, &count);
}

void event_queue_fini(struct event_queue *queue)
{
	struct event *event;

	list_for_each_entry_safe (event, &queue->events, link)
		free(event);
	close(queue->fd);
	sem_destroy(&queue->wake);
	pthread_mutex_destroy(&queue->lock);
}

int event_queue_post(struct event_queue *queue, const struct ibv_async_event *event,
		     unsigned int *taken)
{
	struct event *node = malloc(sizeof(*node));

	if (!node)
		return -ENOMEM;
	node->event = *event;
	node->taken = taken;
	pthread_mutex_lock(&queue->lock);
	list_append(&queue->events, &node->link);
	eventfd_write(queue->fd, 1);
	if (queue->n_asleep) {
		queue->n_asleep--;
		sem_post(&queue->wake);
	}
	pthread_mutex_unlock(&queue->lock);
	return 0;
}

/* @sleeps: the caller waits on the semaphore if there is no event. */
static int try_take(struct event_queue *queue, struct ibv_async_event *ret, bool sleeps)
{
	struct event *node;

	pthread_mutex_lock(&queue->lock);
	if (list_is_empty(&queue->events)) {
		queue->n_asleep += sleeps;
		pthread_mutex_unlock(&queue->lock);
		return -EAGAIN;
	}
	node = container_of(queue->events.next, struct event, link);
	list_remove(&node->link);
	clear_descriptor(queue);
	if (node->taken) /* locked: a thread that destroys the object then waits */
		++*node->taken;
	pthread_mutex_unlock(&queue->lock);
	*ret = node->event;
	free(node);
	return 0;
}

int event_queue_take(struct event_queue *queue, struct ibv_async_event *ret)
{
	while (try_take(queue, ret, false)) {
		if (fcntl(queue->fd, F_GETFL) & O_NONBLOCK)
			return -EAGAIN;
		if (!try_take(queue, ret, true))
			return 0;
		if (sem_wait(&queue->wake))
			return -errno;
	}
	return 0;
}

void event_queue_forget(struct event_queue *queue, const void *object)
{
	struct event *event;
	bool some = false;

	pthread_mutex_lock(&queue->lock);
	list_for_each_entry_safe (event, &queue->events, link) {
		/* A port number cannot equal an object's address. */
		if (event->event.element.cq != object)
			continue;
		list_remove(&event->link);
		free(event);
		some = true;
	}
	if (some)
		clear_descriptor(queue);
	pthread_mutex_unlock(&queue->lock);
}

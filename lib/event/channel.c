/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event channels: see channel.h.
 */
#include "lib/event/channel.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/api.h"
#include "lib/diag/lock_order.h"
#include "lib/event/channel_set.h"
#include "lib/id/id.h"

/* Channels with new events, each with a reference; under the engine's lock. */
static struct list posted = { &posted, &posted };

static void after_fork(void)
{
	list_init(&posted);
	channel_set_after_fork();
}

static void watch_forks(void)
{
	forks_count();
	pthread_atfork(NULL, NULL, after_fork);
}

int channel_new(struct channel **ret)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct channel *channel = calloc(1, sizeof(*channel));
	int fd = eventfd(0, EFD_CLOEXEC);
	int err = errno;

	pthread_once(&once, watch_forks);
	if (!channel || fd < 0) {
		free(channel);
		if (fd < 0)
			return -err;
		close(fd);
		return -ENOMEM;
	}
	channel->pub.fd = fd;
	channel->n_forks = forks_so_far;
	channel->refs = 1;
	channel->lock = (pthread_mutex_t)PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
	sem_init(&channel->wake, 0, 0);
	list_init(&channel->events);
	list_init(&channel->posted);
	channel_set_add(channel);
	*ret = channel;
	return 0;
}

void channel_get(struct channel *channel)
{
	__atomic_add_fetch(&channel->refs, 1, __ATOMIC_RELAXED);
}

void channel_put(struct channel *channel)
{
	if (__atomic_sub_fetch(&channel->refs, 1, __ATOMIC_ACQ_REL))
		return;
	pthread_mutex_destroy(&channel->lock);
	sem_destroy(&channel->wake);
	free(channel);
}

void channel_close(struct channel *channel)
{
	if (!channel_set_remove(channel))
		return;
	if (channel_is_inherited(channel)) {
		close(channel->pub.fd);
		return;
	}
	lock_take(&channel->lock, LOCK_CHANNEL);
	channel->closed = true;
	lock_give(&channel->lock, LOCK_CHANNEL);
	while (__atomic_load_n(&channel->n_writers, __ATOMIC_ACQUIRE))
		sched_yield(); /* writers are quick */
	close(channel->pub.fd);
	channel_put(channel);
}

bool channel_is_closed(struct channel *channel)
{
	bool is_closed;

	lock_take(&channel->lock, LOCK_CHANNEL);
	is_closed = channel->closed;
	lock_give(&channel->lock, LOCK_CHANNEL);
	return is_closed;
}

/* Each id has a list of its own events, so that destroying it does not scan others. Lock held. */
static void queue_event(struct channel *channel, struct event *event)
{
	list_append(&channel->events, &event->link);
	list_append(&event->owner->unread, &event->of_owner);
	if (event->subject != event->owner)
		event->subject->request = event;
}

static void unqueue_event(struct event *event)
{
	list_remove(&event->link);
	list_remove(&event->of_owner);
	event->subject->request = NULL;
}

/*
 * Called after events were removed. When the queue is empty, reads all counts from the eventfd; one
 * that a writer has announced but not yet written arrives soon.
 */
static void settle_count(struct channel *channel)
{
	struct pollfd poller = { .fd = channel->pub.fd, .events = POLLIN };
	uint64_t count;

	if (channel->closed || !list_is_empty(&channel->events))
		return;
	while (channel->n_signals) {
		if (read(channel->pub.fd, &count, sizeof(count)) == sizeof(count))
			channel->n_signals -= count;
		else
			poll(&poller, 1, -1);
	}
}

void channel_post(struct channel *channel, struct event *event)
{
	lock_take(&channel->lock, LOCK_CHANNEL);
	if (channel->closed) {
		id_event_free(event);
	} else {
		queue_event(channel, event);
		if (!channel->is_posted) {
			channel->is_posted = true;
			channel_get(channel);
			list_append(&posted, &channel->posted);
		}
	}
	lock_give(&channel->lock, LOCK_CHANNEL);
}

bool channel_take_posted(struct list *ret)
{
	struct channel *channel;

	if (list_is_empty(&posted))
		return false;
	list_init(ret);
	list_for_each_entry_safe (channel, &posted, posted) {
		list_remove(&channel->posted);
		list_append(ret, &channel->posted);
	}
	return true;
}

static bool has_one_event(const struct channel *channel)
{
	return !list_is_empty(&channel->events) && channel->events.next == channel->events.prev;
}

/*
 * No signal if the event was taken meanwhile, or if it is the only one and a woken thread will take
 * it. *ret_wakes: number of sleepers to wake.
 */
static bool begin_signal(struct channel *channel, unsigned int *ret_wakes)
{
	bool wanted;

	*ret_wakes = 0;
	lock_take(&channel->lock, LOCK_CHANNEL);
	channel->is_posted = false;
	wanted = !channel->closed && !list_is_empty(&channel->events);
	if (wanted) {
		*ret_wakes = channel->n_asleep - channel->n_woken;
		channel->n_woken = channel->n_asleep;
		wanted = !channel->n_woken || !has_one_event(channel);
	}
	if (wanted) {
		channel->n_signals++;
		__atomic_add_fetch(&channel->n_writers, 1, __ATOMIC_RELAXED);
	}
	lock_give(&channel->lock, LOCK_CHANNEL);
	return wanted;
}

static void write_signal(const struct channel *channel)
{
	const uint64_t one = 1;
	ssize_t n = write(channel->pub.fd, &one, sizeof(one));

	assert(n == sizeof(one));
	(void)n;
}

static void signal_channel(struct channel *channel)
{
	unsigned int wakes;
	bool wanted = begin_signal(channel, &wakes);

	if (wanted)
		write_signal(channel);
	/* It signals without the lock, which the woken threads take now. */
	__atomic_sub_fetch(&channel->n_writers, wanted, __ATOMIC_RELEASE);
	while (wakes--)
		sem_post(&channel->wake);
	channel_put(channel);
}

void channel_signal_posted(struct list *channels)
{
	struct channel *channel;

	list_for_each_entry_safe (channel, channels, posted) {
		list_remove(&channel->posted);
		signal_channel(channel);
	}
}

void channel_withdraw(struct channel *channel, struct id *owner, const struct group *group,
		      struct list *ret)
{
	struct event *event;

	lock_take(&channel->lock, LOCK_CHANNEL);
	list_for_each_entry_safe (event, &owner->unread, of_owner) {
		if (group && event->group != group)
			continue;
		unqueue_event(event);
		list_append(ret, &event->link);
	}
	settle_count(channel);
	lock_give(&channel->lock, LOCK_CHANNEL);
}

struct event *channel_withdraw_request(struct channel *channel, struct id *child)
{
	struct event *event;

	lock_take(&channel->lock, LOCK_CHANNEL);
	event = child->request;
	if (event) {
		unqueue_event(event);
		settle_count(channel);
	}
	lock_give(&channel->lock, LOCK_CHANNEL);
	return event;
}

/* The lock is held. */
static struct event *first_event(struct channel *channel)
{
	struct event *event;

	if (list_is_empty(&channel->events))
		return NULL;
	event = container_of(channel->events.next, struct event, link);
	unqueue_event(event);
	settle_count(channel);
	id_charge(event);
	return event;
}

/*
 * A cancellation point. Return: 0; -EINTR, except after a handler with SA_RESTART.
 *
 * Inlined, because the address sanitizer of GCC 12 does not clear the stack of a function that is
 * left by cancellation without a handler of its own.
 */
static inline __attribute__((always_inline)) int sleep_on(sem_t *wake, int cancel_state)
{
	int err;

	api_leave(cancel_state);
	err = sem_wait(wake) ? -errno : 0;
	api_enter();
	return err;
}

static void end_sleep(struct channel *channel)
{
	lock_take(&channel->lock, LOCK_CHANNEL);
	channel->n_asleep--;
	if (channel->n_woken)
		channel->n_woken--;
}

/*
 * An interrupted thread leaves its post in the semaphore: a later sleeper wakes spuriously. It also
 * leaves the event that it was woken for, which may not have been signalled.
 */
static void leave_event(struct channel *channel)
{
	if (channel->closed || list_is_empty(&channel->events) || channel->n_signals)
		return;
	channel->n_signals++;
	write_signal(channel);
}

static void cancel_sleep(void *arg)
{
	struct channel *channel = arg;

	end_sleep(channel);
	leave_event(channel);
	lock_give(&channel->lock, LOCK_CHANNEL);
	channel_put(channel);
}

/*
 * Releases the lock while it sleeps; rdma_get_cm_event() can be cancelled here. A thread that waits
 * on a closed channel is never woken.
 */
static int wait_for_event(struct channel *channel, int cancel_state)
{
	int err;

	channel->n_asleep++;
	lock_give(&channel->lock, LOCK_CHANNEL);
	pthread_cleanup_push(cancel_sleep, channel);
	err = sleep_on(&channel->wake, cancel_state);
	pthread_cleanup_pop(0);
	end_sleep(channel);
	if (err)
		leave_event(channel);
	return err;
}

/* Sleeps until the thread is cancelled. */
static int sleep_for_ever(int cancel_state)
{
	sem_t never;

	sem_init(&never, 0, 0);
	return sleep_on(&never, cancel_state);
}

bool channel_is_blocking(const struct channel *channel)
{
	return !(fcntl(channel->pub.fd, F_GETFL) & O_NONBLOCK);
}

bool channel_has_event(struct channel *channel)
{
	bool has_event;

	lock_take(&channel->lock, LOCK_CHANNEL);
	has_event = !list_is_empty(&channel->events);
	lock_give(&channel->lock, LOCK_CHANNEL);
	return has_event;
}

int channel_take(struct channel *channel, int cancel_state, struct event **ret)
{
	struct event *event = NULL;
	int err = channel_set_lock(channel);

	if (err == -EBADF && channel_set_just_lost(channel))
		return sleep_for_ever(cancel_state);
	if (err)
		return err;
	channel_get(channel);
	while (!err && !(event = first_event(channel))) {
		/*
		 * A thread that waits when the channel is closed keeps waiting: an error would make
		 * rping fail at its end.
		 */
		if (!channel->closed && !channel_is_blocking(channel)) {
			err = -EAGAIN;
			break;
		}
		err = wait_for_event(channel, cancel_state);
	}
	lock_give(&channel->lock, LOCK_CHANNEL);
	channel_put(channel);
	if (!err)
		*ret = event;
	return err;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * repoll_create(), repoll_ctl(), repoll_wait(): epoll for sockets of ours and other descriptors.
 *
 * An instance is an epoll descriptor. Other descriptors are in it as they are; a socket of ours is
 * in it with the descriptor that its completions come on. What may have changed is in a list, and a
 * wait looks at the members of that list only, so that it costs what is ready, not what is there.
 * No thread is needed.
 *
 * Locks: the instance's, then a socket's, then that of the list.
 */
#include <errno.h>
#include <fcntl.h>
#include <rdma/rsocket.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/rsocket/calls.h"
#include "lib/rsocket/repoll.h"

#define FLAGS	     (O_CLOEXEC | O_NONBLOCK)
#define AT_ONCE	     64
#define BUCKETS_MIN  64
#define ERROR_EVENTS (EPOLLERR | EPOLLHUP)

static const struct rsock_ops repoll_ops;

static struct repoll *repoll_of(struct rsock *rs)
{
	return (struct repoll *)rs;
}

/* --- items --------------------------------------------------------------- */

static struct list *bucket_of(const struct repoll *repoll, int fd)
{
	return &repoll->bucket[(size_t)fd & (repoll->n_buckets - 1)];
}

static int set_buckets(struct repoll *repoll, size_t n)
{
	struct list *bucket = calloc(n, sizeof(*bucket));
	struct list *before = repoll->bucket;
	size_t n_before = repoll->n_buckets;

	if (!bucket)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		list_init(&bucket[i]);
	repoll->bucket = bucket;
	repoll->n_buckets = n;
	for (size_t i = 0; i < n_before; i++)
		while (!list_is_empty(&before[i])) {
			struct item *item = container_of(before[i].next, struct item, all);

			list_remove(&item->all);
			list_append(bucket_of(repoll, item->fd), &item->all);
		}
	free(before);
	return 0;
}

static void drop(struct repoll *repoll, struct item *item)
{
	if (item->rs) {
		pthread_mutex_lock(&item->rs->lock);
		watch_remove(&item->watch);
		pthread_mutex_unlock(&item->rs->lock);
	}
	if (item->sleep_fd >= 0)
		epoll_ctl(repoll->base.fd, EPOLL_CTL_DEL, item->sleep_fd, NULL);
	changed_unmark(item);
	list_remove(&item->all);
	if (item->rs)
		rsock_unhold(item->rs);
	free(item);
	repoll->n_items--;
}

static bool is_closed(struct item *item)
{
	bool closed = false;

	if (item->rs) {
		pthread_mutex_lock(&item->rs->lock);
		closed = item->rs->closed;
		pthread_mutex_unlock(&item->rs->lock);
	}
	return closed;
}

/* Closed sockets leave by themselves, as with epoll. */
static struct item *find(struct repoll *repoll, int fd)
{
	struct list *node, *after;

	list_for_each_safe (node, after, bucket_of(repoll, fd)) {
		struct item *item = container_of(node, struct item, all);

		if (item->fd != fd)
			continue;
		if (!is_closed(item))
			return item;
		drop(repoll, item);
	}
	return NULL;
}

/* --- looking ------------------------------------------------------------- */

static void follow(struct repoll *repoll, struct item *item, int sleep_fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = item };

	if (sleep_fd == item->sleep_fd || sleep_fd < 0)
		return;
	if (epoll_ctl(repoll->base.fd, EPOLL_CTL_ADD, sleep_fd, &event) == 0)
		item->sleep_fd = sleep_fd;
}

/* What of a socket is ready now; if it may be left alone after this, it is armed before it is
 * looked at, so that whatever comes later marks it. */
static uint32_t look(struct repoll *repoll, struct item *item)
{
	struct rsock *rs = item->rs;
	short wanted = (short)(item->asked.events & (EPOLLIN | EPOLLOUT | EPOLLPRI));
	bool is_level = !(item->asked.events & EPOLLET);
	short events = 0;

	pthread_mutex_lock(&rs->lock);
	/* What is ready stays in the list, and needs no wake-up until it is not. */
	if (!rs->closed && is_level) {
		rs->ops->progress(rs);
		events = rs->ops->events(rs, wanted);
	}
	if (!rs->closed && !events) {
		follow(repoll, item, rs->ops->arm(rs, wanted));
		rs->ops->progress(rs);
		events = rs->ops->events(rs, wanted);
	}
	pthread_mutex_unlock(&rs->lock);
	return (uint32_t)events & (item->asked.events | ERROR_EVENTS);
}

static void report(struct item *item, uint32_t events, struct epoll_event *ret)
{
	*ret = (struct epoll_event){ .events = events, .data = item->asked.data };
	item->is_spent = (item->asked.events & EPOLLONESHOT) != 0;
	/* Level-triggered: it is looked at again, until it is found to be idle. */
	if (!(item->asked.events & (EPOLLET | EPOLLONESHOT)))
		changed_mark(item, false);
}

static int look_at_changed(struct repoll *repoll, struct epoll_event *events, int n)
{
	struct list list;
	struct item *item;
	int found = 0;

	changed_take(repoll, &list);
	while (found < n && (item = changed_take_first(repoll, &list))) {
		uint32_t ready = item->is_spent ? 0 : look(repoll, item);

		if (ready)
			report(item, ready, &events[found++]);
	}
	changed_put_back(repoll, &list);
	return found;
}

static void disarm(struct item *item)
{
	pthread_mutex_lock(&item->rs->lock);
	if (!item->rs->closed)
		item->rs->ops->disarm(item->rs);
	pthread_mutex_unlock(&item->rs->lock);
	changed_mark(item, false);
}

/* What the kernel knows of: others are reported, sockets are marked. Return: how many reported. */
static int look_at_epoll(struct repoll *repoll, struct epoll_event *events, int room)
{
	struct epoll_event event[AT_ONCE];
	int most = room < AT_ONCE ? room : AT_ONCE;
	int found = 0;
	int n = epoll_wait(repoll->base.fd, event, most, 0);

	for (int i = 0; i < n; i++) {
		struct item *item = event[i].data.ptr;

		if (!item)
			changed_clear_wake(repoll);
		else if (item->rs)
			disarm(item);
		else
			events[found++] = (struct epoll_event){ .events = event[i].events,
								.data = item->asked.data };
	}
	return found;
}

/* The lock is held. Other descriptors that take all the room give it to the sockets once. */
static int look_at_all(struct repoll *repoll, struct epoll_event *events, int n)
{
	int found = repoll->is_full ? look_at_changed(repoll, events, n) : 0;

	repoll->is_full = false;
	if (found)
		return found;
	found = look_at_epoll(repoll, events, n);
	repoll->is_full = found == n;
	return found + look_at_changed(repoll, events + found, n - found);
}

/* --- repoll_wait() ------------------------------------------------------- */

/* The lock is held, and given up to sleep. */
static int sleep_until(struct repoll *repoll, struct cm_time until)
{
	struct pollfd fd = { .fd = repoll->base.fd, .events = POLLIN };
	int err;

	repoll->n_sleeping++;
	pthread_mutex_unlock(&repoll->base.lock);
	err = poll(&fd, 1, wait_left_ms(until)) < 0 ? -errno : 0;
	pthread_mutex_lock(&repoll->base.lock);
	repoll->n_sleeping--;
	return err;
}

/* The lock is held. */
static int find_or_sleep(struct repoll *repoll, struct epoll_event *events, int n,
			 struct cm_time until)
{
	int found = 0, err = 0;

	/* The wake-up of the end is left there, for all who sleep. */
	while (!repoll->base.closed && !(found = look_at_all(repoll, events, n))) {
		if (err || wait_is_over(until) || rsock_is_nonblocking(&repoll->base, 0))
			return err;
		err = sleep_until(repoll, until);
	}
	return repoll->base.closed ? -EBADF : found;
}

static int wait_events(struct rsock *rs, struct epoll_event *events, int n, int timeout_ms)
{
	struct cm_time until = wait_deadline(timeout_ms);
	int result;

	if (rs->ops != &repoll_ops || n <= 0 || !events)
		return -EINVAL;
	pthread_mutex_lock(&rs->lock);
	result = find_or_sleep(repoll_of(rs), events, n, until);
	pthread_mutex_unlock(&rs->lock);
	return result;
}

/* Positive errors are the contract of the other two, see rsocket.h. A count leaves errno alone, so
 * that who sets it to 0 before can tell. */
int repoll_wait(int epfd, struct epoll_event *events, int maxevents, int timeout)
{
	int before = errno;
	int result = rsock_call(epfd, wait_events(rs, events, maxevents, timeout));

	if (result < 0)
		return errno;
	errno = before;
	return result;
}

/* --- repoll_ctl() -------------------------------------------------------- */

static int add_other(struct repoll *repoll, struct item *item)
{
	struct epoll_event event = { .events = item->asked.events, .data.ptr = item };

	if (epoll_ctl(repoll->base.fd, EPOLL_CTL_ADD, item->fd, &event))
		return -errno;
	item->sleep_fd = item->fd;
	return 0;
}

static void add_ours(struct item *item)
{
	pthread_mutex_lock(&item->rs->lock);
	watch_add(item->rs, &item->watch);
	pthread_mutex_unlock(&item->rs->lock);
	changed_mark(item, true);
}

static int add(struct repoll *repoll, struct rsock *rs, int fd, const struct epoll_event *event)
{
	struct item *item;
	int err = 0;

	if (repoll->n_items >= repoll->n_buckets)
		err = set_buckets(repoll, repoll->n_buckets * 2);
	item = err ? NULL : calloc(1, sizeof(*item));
	if (!item)
		return -ENOMEM;
	item->watch.changed = changed_tell;
	list_init(&item->watch.link);
	list_init(&item->changed);
	item->owner = repoll;
	item->fd = fd;
	item->sleep_fd = -1;
	item->asked = *event;
	if (!rs)
		err = add_other(repoll, item);
	if (err) {
		free(item);
		return err;
	}
	list_append(bucket_of(repoll, fd), &item->all);
	repoll->n_items++;
	if (rs) {
		rsock_hold(rs);
		item->rs = rs;
		add_ours(item);
	}
	return 0;
}

static int modify(struct repoll *repoll, struct item *item, const struct epoll_event *event)
{
	struct epoll_event other = { .events = event->events, .data.ptr = item };

	item->asked = *event;
	item->is_spent = false;
	if (item->rs)
		changed_mark(item, true);
	else if (epoll_ctl(repoll->base.fd, EPOLL_CTL_MOD, item->fd, &other))
		return -errno;
	return 0;
}

/* Another descriptor that is closed leaves the epoll descriptor, and nobody tells us: its number
 * can be added again if the kernel says so. */
static int add_again(struct repoll *repoll, struct item *item, struct rsock *rs, int fd,
		     const struct epoll_event *event)
{
	struct epoll_event asked = item->asked;
	int err;

	if (rs && !item->rs) {
		drop(repoll, item);
		return add(repoll, rs, fd, event);
	}
	item->asked = *event;
	err = item->rs ? -EEXIST : add_other(repoll, item);
	if (err)
		item->asked = asked;
	return err;
}

/* The lock is held. rs: what fd is, or NULL. */
static int control(struct repoll *repoll, int op, struct rsock *rs, int fd,
		   const struct epoll_event *event)
{
	struct item *item = find(repoll, fd);

	if (op != EPOLL_CTL_DEL && !event)
		return -EFAULT;
	switch (op) {
	case EPOLL_CTL_ADD:
		return item ? add_again(repoll, item, rs, fd, event) : add(repoll, rs, fd, event);
	case EPOLL_CTL_MOD:
		return item ? modify(repoll, item, event) : -ENOENT;
	case EPOLL_CTL_DEL:
		if (!item)
			return -ENOENT;
		drop(repoll, item);
		return 0;
	}
	return -EINVAL;
}

static int control_fd(struct rsock *rs, int op, int fd, const struct epoll_event *event)
{
	struct rsock *member;
	int err;

	if (rs->ops != &repoll_ops || fd < 0 || fd == rs->fd)
		return rs->ops != &repoll_ops || fd >= 0 ? -EINVAL : -EBADF;
	member = table_get(fd);
	pthread_mutex_lock(&rs->lock);
	err = control(repoll_of(rs), op, member, fd, event);
	pthread_mutex_unlock(&rs->lock);
	if (member)
		rsock_put(member);
	return err;
}

int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	return rsock_call(epfd, control_fd(rs, op, fd, event)) ? errno : 0;
}

/* --- an instance's life -------------------------------------------------- */

static void nothing(struct rsock *rs)
{
	(void)rs;
}

/* What was reported and is still ready has no wake-up, see look(). */
static bool has_ready(struct repoll *repoll)
{
	struct list list;
	struct item *item;
	bool found = false;

	changed_take(repoll, &list);
	while (!found && (item = changed_take_first(repoll, &list))) {
		found = !item->is_spent && look(repoll, item);
		if (found)
			changed_mark(item, false);
	}
	changed_put_back(repoll, &list);
	return found;
}

/* Others may sleep on an instance as on an epoll descriptor. */
static short repoll_events(struct rsock *rs, short wanted)
{
	struct pollfd fd = { .fd = rs->fd, .events = wanted };

	if (poll(&fd, 1, 0) > 0)
		return fd.revents;
	return has_ready(repoll_of(rs)) ? wanted & (POLLIN | POLLRDNORM) : 0;
}

static int repoll_arm(struct rsock *rs, short wanted)
{
	(void)wanted;
	return rs->fd;
}

static int repoll_close(struct rsock *rs)
{
	pthread_mutex_lock(&rs->lock);
	rs->closed = true;
	changed_wake(repoll_of(rs));
	watch_notify(rs);
	pthread_mutex_unlock(&rs->lock);
	return 0;
}

static void repoll_end(struct rsock *rs)
{
	struct repoll *repoll = repoll_of(rs);

	for (size_t i = 0; i < repoll->n_buckets; i++)
		while (!list_is_empty(&repoll->bucket[i]))
			drop(repoll, container_of(repoll->bucket[i].next, struct item, all));
	free(repoll->bucket);
	if (repoll->wake_fd >= 0)
		close(repoll->wake_fd);
	if (rs->fd >= 0)
		close(rs->fd);
	pthread_mutex_destroy(&repoll->changed_lock);
}

static const struct rsock_ops repoll_ops = {
	.progress = nothing,
	.events = repoll_events,
	.arm = repoll_arm,
	.disarm = nothing,
	.close = repoll_close,
	.end = repoll_end,
};

static int open_fds(struct repoll *repoll, int flags)
{
	struct epoll_event event = { .events = EPOLLIN };

	repoll->base.fd = epoll_create1(flags & O_CLOEXEC ? EPOLL_CLOEXEC : 0);
	if (repoll->base.fd < 0)
		return -errno;
	repoll->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (repoll->wake_fd < 0 ||
	    epoll_ctl(repoll->base.fd, EPOLL_CTL_ADD, repoll->wake_fd, &event))
		return -errno;
	return 0;
}

static int create(int flags)
{
	struct repoll *repoll;
	int fd, err;

	if (flags & ~FLAGS)
		return -EINVAL;
	repoll = calloc(1, sizeof(*repoll));
	if (!repoll)
		return -ENOMEM;
	rsock_init(&repoll->base, &repoll_ops);
	pthread_mutex_init(&repoll->changed_lock, NULL);
	list_init(&repoll->changed);
	repoll->wake_fd = -1;
	repoll->base.nonblocking = (flags & O_NONBLOCK) != 0;
	err = set_buckets(repoll, BUCKETS_MIN);
	if (!err)
		err = open_fds(repoll, flags);
	fd = repoll->base.fd;
	if (!err)
		err = table_add(&repoll->base);
	if (err)
		rsock_put(&repoll->base);
	return err ? err : fd;
}

int repoll_create(int flags)
{
	return api_return(create(flags));
}

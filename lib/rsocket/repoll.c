/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * repoll_create(), repoll_ctl(), repoll_wait(): epoll for rsockets and other descriptors.
 *
 * An instance is an epoll descriptor. Other descriptors are in its set directly; an rsocket is in
 * it with the descriptor of its completion events. Items that may have changed are in a list, and a
 * wait checks only that list, so that its cost depends on the number of ready items, not on their
 * total. No thread is needed.
 *
 * Locks nest in this order: the instance's, a socket's, the list's.
 */
#include <errno.h>
#include <fcntl.h>
#include <rdma/rsocket.h>
#include <stdlib.h>

#include "base/fd.h"
#include "lib/rsocket/repoll.h"

#define FLAGS	     (O_CLOEXEC | O_NONBLOCK)
#define AT_ONCE	     64
#define ITEMS_MIN    64
#define ERROR_EVENTS (EPOLLERR | EPOLLHUP)

static const struct rsock_ops repoll_ops;

static struct repoll *repoll_of(struct rsock *rs)
{
	return (struct repoll *)rs;
}

/* --- the list of changed items -------------------------------------------- */

static void mark_changed(struct item *item)
{
	struct repoll *repoll = item->owner;

	pthread_mutex_lock(&repoll->changed_lock);
	if (list_is_empty(&item->changed))
		list_append(&repoll->changed, &item->changed);
	pthread_mutex_unlock(&repoll->changed_lock);
}

static void mark_and_wake(struct item *item)
{
	mark_changed(item);
	waker_set(&item->owner->waker);
}

static size_t count_changed(struct repoll *repoll)
{
	size_t n;

	pthread_mutex_lock(&repoll->changed_lock);
	n = list_length(&repoll->changed);
	pthread_mutex_unlock(&repoll->changed_lock);
	return n;
}

/* The list is not empty: only the holder of the instance's lock takes items. */
static struct item *take_changed(struct repoll *repoll)
{
	struct item *item;

	pthread_mutex_lock(&repoll->changed_lock);
	item = container_of(repoll->changed.next, struct item, changed);
	list_remove(&item->changed);
	pthread_mutex_unlock(&repoll->changed_lock);
	return item;
}

/* For items that did not fit: their wake-up has been consumed. */
static void wake_another(struct repoll *repoll, size_t n_left)
{
	if (n_left && repoll->n_sleeping)
		waker_set(&repoll->waker);
}

/*
 * The watch of a socket, whose lock is held. A closed socket leaves the epoll set now: a call in
 * progress may keep its descriptor open for long, and events would refer to an item that may have
 * been freed.
 */
static void socket_changed(struct watcher *watch)
{
	struct item *item = container_of(watch, struct item, watch);

	if (item->rs->closed && item->sleep_fd >= 0) {
		epoll_ctl(item->owner->base.fd, EPOLL_CTL_DEL, item->sleep_fd, NULL);
		item->sleep_fd = -1;
	}
	mark_and_wake(item);
}

/* --- items --------------------------------------------------------------- */

/*
 * The data of a descriptor's events in the epoll set; the waker has that of -1. It is no pointer to
 * the item: a closed descriptor stays in the set while a duplicate or another process has it open,
 * and its events continue after the item was freed.
 */
static uint64_t key_of(int fd)
{
	return (uint32_t)fd;
}

static void drop_item(struct repoll *repoll, struct item *item)
{
	if (item->rs) {
		pthread_mutex_lock(&item->rs->lock);
		watch_remove(&item->watch);
		pthread_mutex_unlock(&item->rs->lock);
	}
	if (item->sleep_fd >= 0)
		epoll_ctl(repoll->base.fd, EPOLL_CTL_DEL, item->sleep_fd, NULL);
	pthread_mutex_lock(&repoll->changed_lock);
	list_remove(&item->changed);
	pthread_mutex_unlock(&repoll->changed_lock);
	hash_remove(&repoll->items, &item->node);
	if (item->rs)
		rsock_unhold(item->rs);
	free(item);
}

/* Drops closed sockets, as epoll does. */
static struct item *find_item(struct repoll *repoll, int fd)
{
	struct hash_node *node;

	while ((node = hash_first(&repoll->items, key_of(fd)))) {
		struct item *item = container_of(node, struct item, node);
		bool is_closed = false;

		if (item->rs) {
			pthread_mutex_lock(&item->rs->lock);
			is_closed = item->rs->closed;
			pthread_mutex_unlock(&item->rs->lock);
		}
		if (!is_closed)
			return item;
		drop_item(repoll, item);
	}
	return NULL;
}

/* --- checking ------------------------------------------------------------- */

/*
 * Return: the socket's events. A socket that is not marked again was armed before it was checked,
 * so that any later event marks it.
 */
static uint32_t look_at_socket(struct repoll *repoll, struct item *item)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = key_of(item->fd) };
	struct rsock *rs = item->rs;
	short wanted = (short)(item->asked.events & (EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLRDHUP));
	short events = 0;
	int fd;

	pthread_mutex_lock(&rs->lock);
	/*
	 * A level-triggered item that is ready stays in the list and needs no event until it is
	 * idle.
	 */
	if (!rs->closed && !(item->asked.events & EPOLLET)) {
		rs->ops->progress(rs);
		events = rs->ops->events(rs, wanted);
	}
	if (!rs->closed && !events) {
		fd = rs->ops->arm(rs, wanted);
		if (fd >= 0 && fd != item->sleep_fd) {
			if (epoll_ctl(repoll->base.fd, EPOLL_CTL_ADD, fd, &event) == 0)
				item->sleep_fd = fd;
			else /* at its limit, and looked at whenever a wait wakes up */
				mark_changed(item);
		}
		rs->ops->progress(rs);
		events = rs->ops->events(rs, wanted);
	}
	pthread_mutex_unlock(&rs->lock);
	return (uint32_t)events & (item->asked.events | ERROR_EVENTS);
}

static uint32_t take_ready(struct item *item)
{
	uint32_t ready = item->ready;

	item->ready = 0;
	return ready;
}

/* Items marked meanwhile are left for the next call. Return: the number of events reported. */
static int look_at_changed(struct repoll *repoll, struct epoll_event *events, int room)
{
	size_t left = count_changed(repoll);
	int found = 0;

	for (; left && found < room; left--) {
		struct item *item = take_changed(repoll);
		uint32_t ready = item->is_spent ? 0
				 : item->rs	? look_at_socket(repoll, item)
						: take_ready(item);

		if (!ready)
			continue;
		events[found++] = (struct epoll_event){ .events = ready, .data = item->asked.data };
		if (!item->rs)
			continue;
		item->is_spent = (item->asked.events & EPOLLONESHOT) != 0;
		/* Level-triggered: check it again until it is idle. */
		if (!(item->asked.events & (EPOLLET | EPOLLONESHOT)))
			mark_changed(item);
	}
	wake_another(repoll, left);
	return found;
}

/* Return: NULL for the waker's event, and for that of a removed descriptor: see key_of(). */
static struct item *item_of(struct repoll *repoll, const struct epoll_event *event)
{
	struct hash_node *node = hash_first(&repoll->items, event->data.u64);

	return node ? container_of(node, struct item, node) : NULL;
}

/* Marks a socket that has an event. Return: whether it is one. */
static bool mark_socket(struct repoll *repoll, struct item *item)
{
	if (!item) {
		waker_reset(&repoll->waker);
		return true;
	}
	if (!item->rs)
		return false;
	pthread_mutex_lock(&item->rs->lock);
	if (!item->rs->closed)
		item->rs->ops->disarm(item->rs);
	pthread_mutex_unlock(&item->rs->lock);
	mark_changed(item);
	return true;
}

/*
 * Reports events of other descriptors, and marks sockets with events. Return: the number of events
 * reported.
 */
static int look_at_epoll(struct repoll *repoll, struct epoll_event *events, int room)
{
	struct epoll_event event[AT_ONCE];
	int found = 0;
	int n = epoll_wait(repoll->base.fd, event, room < AT_ONCE ? room : AT_ONCE, 0);

	for (int i = 0; i < n; i++) {
		struct item *item = item_of(repoll, &event[i]);

		if (mark_socket(repoll, item))
			continue;
		events[found++] =
			(struct epoll_event){ .events = event[i].events | take_ready(item),
					      .data = item->asked.data };
	}
	return found;
}

/* The lock must be held. If other descriptors filled @events, sockets come first the next time. */
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

static int wait_events(struct rsock *rs, struct epoll_event *events, int n, int timeout_ms)
{
	struct cm_time deadline = wait_deadline(timeout_ms);
	struct pollfd fd = { .fd = rs->fd, .events = POLLIN };
	struct repoll *repoll = repoll_of(rs);
	int found = 0, err = 0;

	if (rs->ops != &repoll_ops || n <= 0 || !events)
		return -EINVAL;
	pthread_mutex_lock(&rs->lock);
	/*
	 * The wake-up by repoll_close() is not consumed, so that it reaches all sleeping threads.
	 */
	while (!rs->closed && !(found = look_at_all(repoll, events, n))) {
		if (err || wait_is_over(deadline) || rsock_is_nonblocking(rs, 0))
			break;
		repoll->n_sleeping++;
		pthread_mutex_unlock(&rs->lock);
		err = poll(&fd, 1, wait_left_ms(deadline)) < 0 ? -errno : 0;
		pthread_mutex_lock(&rs->lock);
		repoll->n_sleeping--;
	}
	if (rs->closed)
		err = -EBADF;
	pthread_mutex_unlock(&rs->lock);
	return err && !found ? err : found;
}

/*
 * The other two return positive errors by contract, see rsocket.h. A successful call preserves
 * errno, so a program that clears it before can distinguish both.
 */
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
	struct epoll_event event = { .events = item->asked.events, .data.u64 = key_of(item->fd) };

	if (epoll_ctl(repoll->base.fd, EPOLL_CTL_ADD, item->fd, &event))
		return -errno;
	item->sleep_fd = item->fd;
	return 0;
}

static int add_item(struct repoll *repoll, struct rsock *rs, int fd,
		    const struct epoll_event *event)
{
	int err = 0;
	struct item *item;

	if (hash_reserve(&repoll->items, repoll->items.n_nodes + 1))
		return -ENOMEM;
	item = calloc(1, sizeof(*item));
	if (!item)
		return -ENOMEM;
	item->watch.changed = socket_changed;
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
	hash_insert(&repoll->items, &item->node, key_of(fd));
	if (rs) {
		rsock_hold(rs);
		item->rs = rs;
		pthread_mutex_lock(&rs->lock);
		watch_add(rs, &item->watch);
		pthread_mutex_unlock(&rs->lock);
		mark_and_wake(item);
	}
	return 0;
}

static int modify_item(struct repoll *repoll, struct item *item, const struct epoll_event *event)
{
	struct epoll_event other = { .events = event->events, .data.u64 = key_of(item->fd) };

	if (!item->rs && epoll_ctl(repoll->base.fd, EPOLL_CTL_MOD, item->fd, &other))
		return -errno;
	item->asked = *event;
	item->ready = 0;
	item->is_spent = false;
	if (item->rs)
		mark_and_wake(item);
	return 0;
}

/*
 * Another descriptor leaves the epoll set without notice when it is closed, so its number can be
 * added again if the kernel accepts it.
 */
static int add_item_again(struct repoll *repoll, struct item *item, struct rsock *rs, int fd,
			  const struct epoll_event *event)
{
	struct epoll_event asked = item->asked;
	int err;

	if (rs && !item->rs) {
		drop_item(repoll, item);
		return add_item(repoll, rs, fd, event);
	}
	item->asked = *event;
	err = item->rs ? -EEXIST : add_other(repoll, item);
	if (err)
		item->asked = asked;
	return err;
}

static int control_item(struct rsock *rs, int op, int fd, const struct epoll_event *event)
{
	struct repoll *repoll = repoll_of(rs);
	struct rsock *member;
	struct item *item;
	int err = -EINVAL;

	if (rs->ops != &repoll_ops || fd == rs->fd)
		return -EINVAL;
	if (fd < 0)
		return -EBADF;
	member = table_get(fd);
	pthread_mutex_lock(&rs->lock);
	item = find_item(repoll, fd);
	if (op != EPOLL_CTL_DEL && !event)
		err = -EFAULT;
	else if (op == EPOLL_CTL_ADD && item)
		err = add_item_again(repoll, item, member, fd, event);
	else if (op == EPOLL_CTL_ADD)
		err = add_item(repoll, member, fd, event);
	else if (op == EPOLL_CTL_MOD)
		err = item ? modify_item(repoll, item, event) : -ENOENT;
	else if (op == EPOLL_CTL_DEL)
		err = item ? 0 : -ENOENT;
	if (!err && op == EPOLL_CTL_DEL)
		drop_item(repoll, item);
	pthread_mutex_unlock(&rs->lock);
	if (member)
		rsock_put(member);
	return err;
}

int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	return rsock_call(epfd, control_item(rs, op, fd, event)) ? errno : 0;
}

/* --- an instance ---------------------------------------------------------- */

static void do_nothing(struct rsock *rs)
{
	(void)rs;
}

/* As look_at_epoll(), but leaves events to be reported. Return: whether another is ready. */
static bool peek_at_epoll(struct repoll *repoll)
{
	struct epoll_event event[AT_ONCE];
	int n = epoll_wait(repoll->base.fd, event, AT_ONCE, 0);
	bool found = false;

	for (int i = 0; i < n; i++) {
		struct item *item = item_of(repoll, &event[i]);

		if (mark_socket(repoll, item))
			continue;
		found = true;
		if (!(item->asked.events & (EPOLLET | EPOLLONESHOT)))
			continue;
		item->ready |= event[i].events;
		mark_changed(item);
	}
	return found;
}

/* An instance can be polled like an epoll descriptor. */
static short repoll_events(struct rsock *rs, short wanted)
{
	struct repoll *repoll = repoll_of(rs);
	bool found = peek_at_epoll(repoll);

	/* A reported item that is still ready has no event: see look_at_socket(). */
	for (size_t left = count_changed(repoll); left && !found; left--) {
		struct item *item = take_changed(repoll);

		found = item->ready ||
			(item->rs && !item->is_spent && look_at_socket(repoll, item));
		if (found)
			mark_changed(item);
	}
	wake_another(repoll, count_changed(repoll));
	return found ? wanted & (POLLIN | POLLRDNORM) : 0;
}

static int repoll_arm(struct rsock *rs, short wanted)
{
	(void)wanted;
	return rs->fd;
}

static void repoll_close(struct rsock *rs)
{
	pthread_mutex_lock(&rs->lock);
	rs->closed = true;
	waker_set(&repoll_of(rs)->waker);
	watch_notify(rs);
	pthread_mutex_unlock(&rs->lock);
}

static void repoll_end(struct rsock *rs)
{
	struct repoll *repoll = repoll_of(rs);
	struct item *item;

	hash_for_each_entry_safe (item, &repoll->items, node)
		drop_item(repoll, item);
	hash_fini(&repoll->items);
	waker_close(&repoll->waker);
	fd_close(&rs->fd);
	pthread_mutex_destroy(&repoll->changed_lock);
}

static const struct rsock_ops repoll_ops = {
	.progress = do_nothing,
	.events = repoll_events,
	.arm = repoll_arm,
	.disarm = do_nothing,
	.close = repoll_close,
	.end = repoll_end,
};

static int open_fds(struct repoll *repoll, int flags)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = key_of(-1) };

	repoll->base.fd = epoll_create1(flags & O_CLOEXEC ? EPOLL_CLOEXEC : 0);
	if (repoll->base.fd < 0)
		return -errno;
	if (waker_open(&repoll->waker) ||
	    epoll_ctl(repoll->base.fd, EPOLL_CTL_ADD, repoll->waker.fd, &event))
		return -errno;
	return 0;
}

static int create_repoll(int flags)
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
	repoll->waker.fd = -1;
	repoll->base.nonblocking = (flags & O_NONBLOCK) != 0;
	err = hash_init(&repoll->items, ITEMS_MIN);
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
	return api_return(create_repoll(flags));
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of items of an instance of repoll that may have changed: see repoll.h.
 */
#include "lib/rsocket/repoll.h"

#include <errno.h>
#include <unistd.h>

static void set_wake(struct repoll *repoll)
{
	uint64_t one = 1;

	if (repoll->is_awake)
		return;
	repoll->is_awake = true;
	while (write(repoll->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

void changed_wake(struct repoll *repoll)
{
	pthread_mutex_lock(&repoll->changed_lock);
	set_wake(repoll);
	pthread_mutex_unlock(&repoll->changed_lock);
}

void changed_clear_wake(struct repoll *repoll)
{
	uint64_t count;

	pthread_mutex_lock(&repoll->changed_lock);
	while (repoll->is_awake && read(repoll->wake_fd, &count, sizeof(count)) < 0 &&
	       errno == EINTR)
		;
	repoll->is_awake = false;
	pthread_mutex_unlock(&repoll->changed_lock);
}

void changed_mark(struct item *item, bool wake)
{
	struct repoll *repoll = item->owner;

	pthread_mutex_lock(&repoll->changed_lock);
	if (list_is_empty(&item->changed))
		list_append(&repoll->changed, &item->changed);
	if (wake)
		set_wake(repoll);
	pthread_mutex_unlock(&repoll->changed_lock);
}

void changed_unmark(struct item *item)
{
	pthread_mutex_lock(&item->owner->changed_lock);
	list_remove(&item->changed);
	pthread_mutex_unlock(&item->owner->changed_lock);
}

/* A closed socket leaves the epoll set now: a call inside may keep its descriptor open for long,
 * and its events would lead to an item that may be gone by then. */
void changed_notify(struct watcher *watch)
{
	struct item *item = container_of(watch, struct item, watch);

	if (item->rs->closed && item->sleep_fd >= 0) {
		epoll_ctl(item->owner->base.fd, EPOLL_CTL_DEL, item->sleep_fd, NULL);
		item->sleep_fd = -1;
	}
	changed_mark(item, true);
}

void changed_take(struct repoll *repoll, struct list *ret)
{
	list_init(ret);
	pthread_mutex_lock(&repoll->changed_lock);
	while (!list_is_empty(&repoll->changed)) {
		struct list *node = repoll->changed.next;

		list_remove(node);
		list_append(ret, node);
	}
	pthread_mutex_unlock(&repoll->changed_lock);
}

struct item *changed_take_first(struct repoll *repoll, struct list *from)
{
	struct item *item = NULL;

	pthread_mutex_lock(&repoll->changed_lock);
	if (!list_is_empty(from)) {
		item = container_of(from->next, struct item, changed);
		list_remove(&item->changed);
	}
	pthread_mutex_unlock(&repoll->changed_lock);
	return item;
}

void changed_put_back(struct repoll *repoll, struct list *from)
{
	pthread_mutex_lock(&repoll->changed_lock);
	if (!list_is_empty(from) && repoll->n_sleeping)
		set_wake(repoll);
	while (!list_is_empty(from)) {
		struct list *node = from->prev;

		list_remove(node);
		list_prepend(&repoll->changed, node);
	}
	pthread_mutex_unlock(&repoll->changed_lock);
}

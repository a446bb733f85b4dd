/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCE packets to the processes that have the queue pairs: a connected socket for each slot. See
 * host.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fd.h"
#include "tools/fabric/host/host.h"

#define SEND_BYTES (4 << 20)

struct waiting {
	struct list link;
	size_t bytes;
	uint8_t data[];
};

struct guest {
	struct relay *relay;
	unsigned int slot;
	int fd;
	struct watch room; /* in its socket, while packets wait */
	struct list queue; /* of struct waiting */
	size_t n_waiting;
};

struct relay {
	struct loop *loop;
	const struct fab_place *place;
	struct guest *guest[FAB_SLOTS];
};

struct relay *relay_new(struct loop *loop, const struct fab_place *place)
{
	struct relay *relay = calloc(1, sizeof(*relay));

	if (!relay)
		return NULL;
	relay->loop = loop;
	relay->place = place;
	return relay;
}

static void forget_guest(struct guest *guest)
{
	struct list *node, *after;

	list_for_each_safe (node, after, &guest->queue)
		free(container_of(node, struct waiting, link));
	loop_unwatch(guest->relay->loop, &guest->room);
	fd_close(&guest->fd);
	guest->relay->guest[guest->slot] = NULL;
	free(guest);
}

void relay_free(struct relay *relay)
{
	unsigned int i;

	for (i = 0; relay && i < FAB_SLOTS; i++)
		if (relay->guest[i])
			forget_guest(relay->guest[i]);
	free(relay);
}

static int connect_to(const struct fab_place *place, unsigned int slot)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	char path[FAB_PATH_BYTES];
	struct sockaddr_un addr;
	int bytes = SEND_BYTES;

	if (fd < 0)
		return -errno;
	fab_place_slot(place, place->host, slot, path);
	fab_place_sockaddr(path, &addr);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		fd_close(&fd);
		return -ECONNREFUSED;
	}
	/* Best effort: with less, more waits in memory. */
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	return fd;
}

static struct guest *find_guest(struct relay *relay, unsigned int slot)
{
	struct guest *guest = relay->guest[slot];
	int fd;

	if (guest)
		return guest;
	fd = connect_to(relay->place, slot);
	guest = fd < 0 ? NULL : calloc(1, sizeof(*guest));
	if (!guest) {
		fd_close(&fd);
		return NULL;
	}
	guest->relay = relay;
	guest->slot = slot;
	guest->fd = fd;
	guest->room.fd = -1;
	list_init(&guest->queue);
	relay->guest[slot] = guest;
	return guest;
}

static void send_waiting(struct watch *watch, uint32_t events)
{
	struct guest *guest = container_of(watch, struct guest, room);
	struct waiting *waiting;

	(void)events;
	while (!list_is_empty(&guest->queue)) {
		waiting = container_of(guest->queue.next, struct waiting, link);
		if (send(guest->fd, waiting->data, waiting->bytes, MSG_NOSIGNAL) < 0) {
			if (errno != EAGAIN && errno != ENOBUFS)
				forget_guest(guest);
			return;
		}
		list_remove(&waiting->link);
		guest->n_waiting -= waiting->bytes;
		free(waiting);
	}
	loop_unwatch(guest->relay->loop, watch);
}

static void keep_frames(struct guest *guest, const struct fab_frames *frames, const uint8_t *bytes)
{
	size_t n = sizeof(*frames) + frames->bytes;
	struct waiting *waiting;

	if (guest->n_waiting + n > RELAY_WAITING_MAX)
		return;
	waiting = malloc(sizeof(*waiting) + n);
	if (!waiting)
		return;
	waiting->bytes = n;
	memcpy(waiting->data, frames, sizeof(*frames));
	memcpy(waiting->data + sizeof(*frames), bytes, frames->bytes);
	if (list_is_empty(&guest->queue))
		loop_watch(guest->relay->loop, &guest->room, guest->fd, EPOLLOUT, send_waiting);
	list_append(&guest->queue, &waiting->link);
	guest->n_waiting += n;
}

static int send_now(struct guest *guest, const struct fab_frames *frames, const uint8_t *bytes)
{
	struct iovec iov[2] = {
		{.iov_base = (void *)(uintptr_t)frames, .iov_len = sizeof(*frames)},
		{ .iov_base = (void *)(uintptr_t)bytes, .iov_len = frames->bytes	 },
	};
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	return sendmsg(guest->fd, &msg, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

void relay_frames(struct relay *relay, unsigned int slot, const struct fab_frames *frames,
		  const uint8_t *bytes)
{
	struct guest *guest = find_guest(relay, slot);
	int err;

	if (!guest)
		return;
	err = list_is_empty(&guest->queue) ? send_now(guest, frames, bytes) : -EAGAIN;
	if (err == -EAGAIN || err == -ENOBUFS) {
		keep_frames(guest, frames, bytes);
	} else if (err) {
		/* The process ended; another may have the slot by now. */
		forget_guest(guest);
		guest = find_guest(relay, slot);
		if (guest)
			send_now(guest, frames, bytes);
	}
}

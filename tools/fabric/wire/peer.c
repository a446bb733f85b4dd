/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connected datagram sockets, kept and found by the path they lead to: see peer.h.
 */
#include "tools/fabric/wire/peer.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "tools/fabric/wire/place.h"

#define SEND_BYTES    (1 << 21)
#define DATAGRAMS_MAX 8192

struct waiting {
	struct list link;
	size_t bytes;
	char data[];
};

/* A packet that the wire keeps for a while. */
struct delayed {
	struct list link;
	uint64_t due_ns;
	char path[FAB_PATH_BYTES];
	struct fab_packet packet;
	char payload[];
};

struct fab_peer {
	struct list link; /* in peers->recent */
	struct hash_node by_path;
	struct fab_peers *peers;
	int fd;
	struct watch room; /* in its socket, while packets wait */
	struct list queue; /* of struct waiting */
	unsigned int n_queued;
	char path[FAB_PATH_BYTES];
};

static void drop_queue(struct fab_peer *peer)
{
	struct list *node, *after;

	list_for_each_safe (node, after, &peer->queue)
		free(container_of(node, struct waiting, link));
	list_init(&peer->queue);
}

static void forget_peer(struct fab_peers *peers, struct fab_peer *peer)
{
	hash_remove(&peers->by_path, &peer->by_path);
	list_remove(&peer->link);
	drop_queue(peer);
	loop_unwatch(&peers->loop, &peer->room);
	close(peer->fd);
	free(peer);
}

static int open_socket(const char *path)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un addr;
	int bytes = SEND_BYTES;
	int err;

	if (fd < 0)
		return -errno;
	fab_place_sockaddr(path, &addr);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		err = errno == ENOENT ? -ECONNREFUSED : -errno;
		close(fd);
		return err;
	}
	/* Best effort: with less, more waits in memory. */
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	return fd;
}

static void make_room(struct fab_peers *peers)
{
	struct list *node, *before;

	for (node = peers->recent.prev;
	     peers->by_path.n_nodes >= FAB_PEERS_MAX && node != &peers->recent; node = before) {
		struct fab_peer *peer = container_of(node, struct fab_peer, link);

		before = node->prev;
		if (list_is_empty(&peer->queue))
			forget_peer(peers, peer);
	}
}

static int add_peer(struct fab_peers *peers, const char *path, struct fab_peer **ret)
{
	struct fab_peer *peer;
	int fd;

	make_room(peers);
	fd = open_socket(path);
	if (fd < 0)
		return fd;
	peer = calloc(1, sizeof(*peer));
	if (!peer) {
		close(fd);
		return -ENOMEM;
	}
	peer->peers = peers;
	peer->fd = fd;
	peer->room.fd = -1;
	strncpy(peer->path, path, sizeof(peer->path) - 1);
	list_init(&peer->queue);
	hash_insert(&peers->by_path, &peer->by_path, hash_bytes(path, strlen(path)));
	list_prepend(&peers->recent, &peer->link);
	*ret = peer;
	return 0;
}

static int find_peer(struct fab_peers *peers, const char *path, struct fab_peer **ret)
{
	struct hash_node *node;
	struct fab_peer *peer;

	hash_for_each_match (node, &peers->by_path, hash_bytes(path, strlen(path))) {
		peer = container_of(node, struct fab_peer, by_path);
		if (strcmp(peer->path, path) != 0)
			continue;
		if (peers->recent.next != &peer->link) {
			list_remove(&peer->link);
			list_prepend(&peers->recent, &peer->link);
		}
		*ret = peer;
		return 0;
	}
	return add_peer(peers, path, ret);
}

static bool is_full(int err)
{
	return err == EAGAIN || err == EWOULDBLOCK || err == ENOBUFS;
}

static void send_waiting(struct watch *watch, uint32_t events)
{
	struct fab_peer *peer = container_of(watch, struct fab_peer, room);
	struct fab_peers *peers = peer->peers;
	struct waiting *waiting;
	ssize_t n;

	(void)events;
	while (!list_is_empty(&peer->queue)) {
		waiting = container_of(peer->queue.next, struct waiting, link);
		n = send(peer->fd, waiting->data, waiting->bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && is_full(errno))
			return;
		if (n < 0) {
			forget_peer(peers, peer);
			return;
		}
		list_remove(&waiting->link);
		free(waiting);
		peer->n_queued--;
	}
	loop_unwatch(&peers->loop, watch);
}

static int keep_packet(struct fab_peers *peers, struct fab_peer *peer,
		       const struct fab_packet *packet, const void *payload)
{
	struct waiting *waiting;

	/* Datagrams to a process that does not receive are dropped, as on any wire. */
	if (packet->op == FAB_OP_DATAGRAM && peer->n_queued >= DATAGRAMS_MAX)
		return 0;
	waiting = malloc(sizeof(*waiting) + sizeof(*packet) + packet->bytes);

	if (!waiting)
		return -ENOMEM;
	waiting->bytes = sizeof(*packet) + packet->bytes;
	memcpy(waiting->data, packet, sizeof(*packet));
	if (packet->bytes)
		memcpy(waiting->data + sizeof(*packet), payload, packet->bytes);
	if (list_is_empty(&peer->queue))
		loop_watch(&peers->loop, &peer->room, peer->fd, EPOLLOUT, send_waiting);
	list_append(&peer->queue, &waiting->link);
	peer->n_queued++;
	return 0;
}

static int try_send(struct fab_peers *peers, struct fab_peer *peer, const struct fab_packet *packet,
		    const void *payload)
{
	struct iovec iov[2] = {
		{.iov_base = (void *)(uintptr_t)packet,	 .iov_len = sizeof(*packet)},
		{ .iov_base = (void *)(uintptr_t)payload, .iov_len = packet->bytes  },
	};
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = packet->bytes ? 2 : 1 };

	if (!list_is_empty(&peer->queue))
		return keep_packet(peers, peer, packet, payload);
	if (sendmsg(peer->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return 0;
	return is_full(errno) ? keep_packet(peers, peer, packet, payload) : -errno;
}

static int send_now(struct fab_peers *peers, const char *path, const struct fab_packet *packet,
		    const void *payload)
{
	struct fab_peer *peer;
	int err = find_peer(peers, path, &peer);

	if (!err)
		err = try_send(peers, peer, packet, payload);
	else
		return err;
	if (err != -ECONNREFUSED && err != -ENOTCONN && err != -EPIPE && err != -ECONNRESET)
		return err;
	/* The process ended; another may be bound to the same path by now. */
	forget_peer(peers, peer);
	err = find_peer(peers, path, &peer);
	return err ? err : try_send(peers, peer, packet, payload);
}

/* --- faults -------------------------------------------------------------- */

static void set_timer(struct fab_peers *peers)
{
	struct itimerspec at = { .it_value = { .tv_sec = 0 } };
	uint64_t due_ns;

	if (!list_is_empty(&peers->delayed)) {
		due_ns = container_of(peers->delayed.next, struct delayed, link)->due_ns;
		at.it_value.tv_sec = (time_t)(due_ns / 1000000000);
		at.it_value.tv_nsec = (long)(due_ns % 1000000000);
	}
	timerfd_settime(peers->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

static int delay_packet(struct fab_peers *peers, const char *path, const struct fab_packet *packet,
			const void *payload, uint32_t delay_us)
{
	struct delayed *delayed = malloc(sizeof(*delayed) + packet->bytes);
	struct list *node;

	if (!delayed)
		return -ENOMEM;
	delayed->due_ns = clock_ns() + delay_us * UINT64_C(1000);
	strncpy(delayed->path, path, sizeof(delayed->path) - 1);
	delayed->path[sizeof(delayed->path) - 1] = '\0';
	delayed->packet = *packet;
	if (packet->bytes)
		memcpy(delayed->payload, payload, packet->bytes);
	node = peers->delayed.prev;
	while (node != &peers->delayed &&
	       container_of(node, struct delayed, link)->due_ns > delayed->due_ns)
		node = node->prev;
	list_prepend(node, &delayed->link);
	if (peers->delayed.next == &delayed->link)
		set_timer(peers);
	return 0;
}

/* A copy with one bit inverted. */
static int send_corrupted(struct fab_peers *peers, const char *path,
			  const struct fab_packet *packet, const void *payload,
			  const struct fab_fate *fate)
{
	char *copy = malloc(packet->bytes);
	int err;

	if (!copy)
		return -ENOMEM;
	memcpy(copy, payload, packet->bytes);
	copy[fate->corrupt_bit / 8] ^= (char)(1 << fate->corrupt_bit % 8);
	err = fate->delay_us ? delay_packet(peers, path, packet, copy, fate->delay_us)
			     : send_now(peers, path, packet, copy);
	free(copy);
	return err;
}

int fab_peers_send(struct fab_peers *peers, const char *path, const struct fab_packet *packet,
		   const void *payload)
{
	struct fab_fate fate = fab_faults_decide(peers->faults, &peers->random, packet);
	int err = 0;

	while (!err && fate.copies--) {
		if (fate.corrupt_bit >= 0)
			err = send_corrupted(peers, path, packet, payload, &fate);
		else if (fate.delay_us)
			err = delay_packet(peers, path, packet, payload, fate.delay_us);
		else
			err = send_now(peers, path, packet, payload);
	}
	return err;
}

static void send_due(struct watch *watch, uint32_t events)
{
	struct fab_peers *peers = container_of(watch, struct fab_peers, timer);
	uint64_t count, now = clock_ns();
	struct delayed *delayed;

	(void)events;
	if (read(peers->timer_fd, &count, sizeof(count)) < 0)
		return;
	while (!list_is_empty(&peers->delayed)) {
		delayed = container_of(peers->delayed.next, struct delayed, link);
		if (delayed->due_ns > now)
			break;
		list_remove(&delayed->link);
		send_now(peers, delayed->path, &delayed->packet, delayed->payload);
		free(delayed);
	}
	set_timer(peers);
}

void fab_peers_flush(struct fab_peers *peers)
{
	loop_turn(&peers->loop, 0);
}

/* --- beginning and end ---------------------------------------------------- */

void fab_peers_none(struct fab_peers *peers)
{
	*peers = (struct fab_peers){ .loop = { .fd = -1 }, .timer_fd = -1 };
	list_init(&peers->recent);
	list_init(&peers->delayed);
}

int fab_peers_init(struct fab_peers *peers, const char *dir, uint32_t sender)
{
	int err;

	fab_peers_none(peers);
	peers->faults = fab_faults_open(dir);
	peers->random = sender;
	if (peers->faults)
		peers->random |= (uint64_t)peers->faults->seed << 32;
	err = hash_init(&peers->by_path, FAB_PEERS_MAX);
	if (err)
		return err;
	peers->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (peers->timer_fd < 0)
		return -errno;
	err = loop_init(&peers->loop);
	if (err)
		return err;
	return loop_watch(&peers->loop, &peers->timer, peers->timer_fd, EPOLLIN, send_due);
}

void fab_peers_fini(struct fab_peers *peers)
{
	struct list *node, *after;

	/* First: a forked child has this epoll in common with its parent, who needs the watches. */
	loop_fini(&peers->loop);
	while (!list_is_empty(&peers->recent))
		forget_peer(peers, container_of(peers->recent.next, struct fab_peer, link));
	hash_fini(&peers->by_path);
	list_for_each_safe (node, after, &peers->delayed)
		free(container_of(node, struct delayed, link));
	list_init(&peers->delayed);
	fab_faults_close(peers->faults);
	peers->faults = NULL;
	fd_close(&peers->timer_fd);
}

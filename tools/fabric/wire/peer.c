/* SPDX-License-Identifier: BSD-2-Clause */
/* Connected datagram sockets, cached by path: see peer.h. */
#include "tools/fabric/wire/peer.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fd.h"
#include "tools/fabric/wire/folder.h"
#include "tools/fabric/wire/grants.h"

#define SEND_BYTES    (1 << 21)
#define DATAGRAMS_MAX (16u << 20)  /* queued bytes */
#define UNREAD_MAX    (128u << 20) /* queued bytes of UC since the peer has read any */
#define RING_AFTER    32	   /* packets of connections; a short one needs no ring */

struct waiting {
	struct list link;
	size_t bytes;
	char data[];
};

struct fab_peer {
	struct list link; /* in peers->recent */
	struct hash_node by_path;
	struct fab_peers *peers;
	int fd;
	struct watch room;	   /* waits for room in the socket while packets are queued */
	struct list queue;	   /* of struct waiting */
	size_t n_queued, n_unread; /* bytes; those queued since the socket has accepted any */
	unsigned int n_sent;
	struct fab_grants *grants; /* with the ring that is claimed there */
	uint8_t claimed;	   /* 0: none */
	char path[FAB_PATH_BYTES];
};

static void drop_queue(struct fab_peer *peer)
{
	struct waiting *waiting;

	list_for_each_entry_safe (waiting, &peer->queue, link)
		free(waiting);
	list_init(&peer->queue);
}

static void forget_peer(struct fab_peers *peers, struct fab_peer *peer)
{
	hash_remove(&peers->by_path, &peer->by_path);
	list_remove(&peer->link);
	drop_queue(peer);
	loop_unwatch(&peers->loop, &peer->room);
	close(peer->fd);
	if (peer->claimed)
		fab_ring_release(&peer->grants->rings.ring[peer->claimed - 1]);
	fab_grants_close(peer->grants);
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
	fab_folder_sockaddr(path, &addr);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		err = errno == ENOENT ? -ECONNREFUSED : -errno;
		fab_folder_report_denied(err);
		close(fd);
		return err;
	}
	/* Best effort: with a smaller buffer, more is queued in memory. */
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	return fd;
}

/* Closes sockets that nothing is queued for until there are fewer than @n. */
static void make_room(struct fab_peers *peers, size_t n)
{
	struct list *node, *before;

	for (node = peers->recent.prev; peers->by_path.n_nodes >= n && node != &peers->recent;
	     node = before) {
		struct fab_peer *peer = container_of(node, struct fab_peer, link);

		before = node->prev;
		if (list_is_empty(&peer->queue))
			forget_peer(peers, peer);
	}
}

static void report_full(void)
{
	static int is_reported;

	if (!__atomic_exchange_n(&is_reported, 1, __ATOMIC_RELAXED))
		fprintf(stderr,
			"fabric: process %d has no descriptor left to send with: packets are lost; "
			"raise `ulimit -n`\n",
			(int)getpid());
}

static int open_in_room(struct fab_peers *peers, const char *path)
{
	int fd;

	make_room(peers, FAB_PEERS_MAX);
	fd = open_socket(path);
	if (fd == -EMFILE) {
		make_room(peers, peers->by_path.n_nodes);
		fd = open_socket(path);
	}
	if (fd == -EMFILE)
		report_full();
	return fd;
}

static int add_peer(struct fab_peers *peers, const char *path, struct fab_peer **ret)
{
	struct fab_peer *peer;
	int fd = open_in_room(peers, path);

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
	struct fab_peer *peer = container_of(peers->recent.next, struct fab_peer, link);

	if (!list_is_empty(&peers->recent) && strcmp(peer->path, path) == 0) {
		*ret = peer;
		return 0;
	}
	hash_for_each_match (node, &peers->by_path, hash_bytes(path, strlen(path))) {
		peer = container_of(node, struct fab_peer, by_path);
		if (strcmp(peer->path, path) != 0)
			continue;
		list_remove(&peer->link);
		list_prepend(&peers->recent, &peer->link);
		*ret = peer;
		return 0;
	}
	return add_peer(peers, path, ret);
}

/* --- rings --------------------------------------------------------------- */

/* The next packet is a datagram, so the ring is used when all before it have been taken. */
static void claim_ring(struct fab_peer *peer)
{
	char path[FAB_PATH_BYTES];

	if (peer->peers->use_rings && fab_folder_grants_of(peer->path, path))
		peer->claimed = fab_grants_claim_ring(path, &peer->grants);
}

static void count_datagram(struct fab_peer *peer)
{
	if (peer->claimed)
		peer->grants->rings.ring[peer->claimed - 1].n_datagrams++;
}

/* Return: false if the packet must be a datagram. */
static bool put_into_ring(struct fab_peer *peer, const struct fab_packet *packet,
			  const void *payload)
{
	enum fab_put put;

	if (!peer->claimed) {
		if (packet->service != FAB_SERVICE_UD && ++peer->n_sent == RING_AFTER)
			claim_ring(peer);
		return false;
	}
	if (!list_is_empty(&peer->queue) || !fab_grants_is_alive(peer->grants))
		return false;
	put = fab_rings_put(&peer->grants->rings, peer->claimed, packet, payload);
	if (put == FAB_PUT_WAKE)
		send(peer->fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	return put != FAB_PUT_NOT;
}

/* --- datagrams ----------------------------------------------------------- */

static bool is_full(int err)
{
	return err == EAGAIN || err == EWOULDBLOCK || err == ENOBUFS;
}

static void send_waiting(struct watch *watch)
{
	struct fab_peer *peer = container_of(watch, struct fab_peer, room);
	struct fab_peers *peers = peer->peers;
	struct waiting *waiting;
	ssize_t n;

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
		peer->n_queued -= waiting->bytes;
		peer->n_unread = 0;
		free(waiting);
		count_datagram(peer);
	}
	loop_unwatch(&peers->loop, watch);
}

/*
 * Packets to a process that does not receive are dropped, as on any wire. A sender of UC may be
 * faster than a process that does, and than the thread that empties the queue.
 */
static bool is_dropped(struct fab_peer *peer, const struct fab_packet *packet)
{
	struct pollfd room = { .fd = peer->fd, .events = POLLOUT };

	if (peer->n_unread >= UNREAD_MAX && poll(&room, 1, 0) > 0)
		peer->n_unread = 0;
	if (packet->op == FAB_OP_DATAGRAM)
		return peer->n_queued >= DATAGRAMS_MAX;
	return packet->service == FAB_SERVICE_UC && peer->n_unread >= UNREAD_MAX;
}

static int keep_packet(struct fab_peers *peers, struct fab_peer *peer,
		       const struct fab_packet *packet, const void *payload)
{
	struct waiting *waiting;

	if (is_dropped(peer, packet))
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
	peer->n_queued += waiting->bytes;
	peer->n_unread += waiting->bytes;
	return 0;
}

static int try_send(struct fab_peers *peers, struct fab_peer *peer, const struct fab_packet *packet,
		    const void *payload)
{
	struct fab_packet datagram;
	struct iovec iov[2] = {
		{ .iov_base = &datagram, .iov_len = sizeof(datagram) },
		{ .iov_base = (void *)(uintptr_t)payload, .iov_len = packet->bytes },
	};
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = packet->bytes ? 2 : 1 };

	if (put_into_ring(peer, packet, payload))
		return 0;
	datagram = *packet;
	datagram.ring = peer->claimed;
	if (!list_is_empty(&peer->queue))
		return keep_packet(peers, peer, &datagram, payload);
	if (sendmsg(peer->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return is_full(errno) ? keep_packet(peers, peer, &datagram, payload) : -errno;
	count_datagram(peer);
	return 0;
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
	/* The process has ended; another may be bound to the path by now. */
	forget_peer(peers, peer);
	err = find_peer(peers, path, &peer);
	return err ? err : try_send(peers, peer, packet, payload);
}

/* --- faults -------------------------------------------------------------- */

/* Sends a copy with one bit inverted. */
static int send_corrupted(struct fab_peers *peers, const char *path,
			  const struct fab_packet *packet, const void *payload, uint32_t bit)
{
	char *copy = malloc(packet->bytes);
	int err;

	if (!copy)
		return -ENOMEM;
	memcpy(copy, payload, packet->bytes);
	bit %= 8 * packet->bytes;
	copy[bit / 8] ^= (char)(1 << bit % 8);
	err = send_now(peers, path, packet, copy);
	free(copy);
	return err;
}

static int put_packet(struct fab_faulty *faulty, const void *way, const struct fab_packet *packet,
		      const void *payload, int32_t corrupt_bit)
{
	struct fab_peers *peers = container_of(faulty, struct fab_peers, faulty);

	if (corrupt_bit >= 0 && packet->bytes)
		return send_corrupted(peers, way, packet, payload, (uint32_t)corrupt_bit);
	return send_now(peers, way, packet, payload);
}

int fab_peers_send(struct fab_peers *peers, const char *path, const struct fab_packet *packet,
		   const void *payload)
{
	return fab_faulty_send(&peers->faulty, path, strlen(path) + 1, packet, payload);
}

void fab_peers_flush(struct fab_peers *peers)
{
	loop_turn(&peers->loop, 0);
}

/* --- beginning and end ---------------------------------------------------- */

void fab_peers_clear(struct fab_peers *peers)
{
	*peers = (struct fab_peers){ .loop = { .fd = -1 } };
	list_init(&peers->recent);
	fab_faulty_clear(&peers->faulty);
}

int fab_peers_init(struct fab_peers *peers, const char *dir, uint32_t sender)
{
	int err;

	fab_peers_clear(peers);
	err = hash_init(&peers->by_path, FAB_PEERS_MAX);
	if (err)
		return err;
	err = loop_init(&peers->loop);
	if (err)
		return err;
	return fab_faulty_init(&peers->faulty, dir, sender, &peers->loop, put_packet);
}

void fab_peers_fini(struct fab_peers *peers)
{
	/*
	 * First, because a forked child shares this epoll instance with its parent, which needs the
	 * watches.
	 */
	loop_fini(&peers->loop);
	while (!list_is_empty(&peers->recent))
		forget_peer(peers, container_of(peers->recent.next, struct fab_peer, link));
	hash_fini(&peers->by_path);
	fab_faulty_fini(&peers->faulty);
}

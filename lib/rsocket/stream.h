/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream socket: a synchronous id, a queue pair, two buffers in registered memory, and the
 * accounts of what may be sent.
 *
 * Members are guarded by the handle's lock unless their comment says otherwise. One sender at a
 * time has the turn to send, one receiver the turn to receive, so that long copies need no lock.
 */
#ifndef LIB_RSOCKET_STREAM_H
#define LIB_RSOCKET_STREAM_H

#include <rdma/rdma_cma.h>

#include "lib/rsocket/rsock.h"
#include "lib/rsocket/service.h"
#include "lib/rsocket/state.h"
#include "lib/rsocket/turn.h"
#include "lib/rsocket/window.h"

/* What the program may choose before connecting; accepted sockets inherit it. */
struct stream_sizes {
	uint32_t sq_size;
	uint32_t rq_size;
	uint32_t inline_size;
	uint32_t send_bytes;
	uint32_t recv_bytes;
	uint32_t iomap_size;
};

/* Socket options with no effect here but to be read again, and those of keepalive.c and close. */
struct stream_options {
	int reuse_addr;
	int keepalive;
	int oob_inline;
	int nodelay;
	int keepalive_s;
	int tos;
	int v6only;
	struct linger linger;
};

/* A completion queue. There are two, so that a reader sleeps on while sends complete. */
struct completions {
	struct ibv_cq *cq;
	bool armed;
	unsigned int n_unacked; /* events taken off the channel */
};

/* Registered memory and the objects of the device; see memory.h. */
struct stream_memory {
	struct ibv_comp_channel *channel;
	struct completions recv, send;
	bool has_qp;
	bool is_flushing; /* a receive has failed */

	uint8_t *send_ring; /* data, then room for notes: see memory_note() */
	struct ibv_mr *send_mr;
	uint8_t *recv_ring;
	struct ibv_mr *recv_mr;
	struct rs_entry *table; /* written by the peer: RS_TABLE_ENTRIES, then its buffers */
	struct ibv_mr *table_mr;
	unsigned int next_note; /* index in that room */
};

/* What we may write to at the peer, besides its buffer. */
struct stream_peer {
	uint64_t table_addr;
	uint32_t table_key;
	uint32_t table_entries;
	uint32_t iomap_size;
	bool big_endian;
};

#define OWES_SHUTDOWN	1
#define OWES_DISCONNECT 2

struct stream;

/* The steps of the active side's set-up: 0 or -errno; the lock is held. */
struct stream_opening {
	int (*find_route)(struct stream *s);
	int (*send_req)(struct stream *s);
};

struct stream {
	struct rsock base; /* first */
	int domain;
	struct rdma_cm_id *id;
	enum stream_state state;
	int error;	/* positive errno for SO_ERROR; cleared when asked for */
	int last_error; /* the same, and stays */
	struct stream_sizes sizes;
	struct stream_options options;
	struct stream_memory memory;
	struct stream_peer peer;
	struct send_window out;
	struct recv_window in;
	unsigned int owes; /* OWES_: to be sent when a slot is free */
	uint32_t n_sent;   /* completions still to come */
	struct turn send_turn;
	struct turn recv_turn;

	/* Set-up: see connect.c. */
	const struct stream_opening *opening;
	struct serviced cm;
	void *route; /* from the program: RDMA_ROUTE, or NULL */
	size_t route_bytes;
	uint32_t timeout_ms;
	unsigned int n_retries;
	struct sockaddr_storage target; /* of rconnect() */
	struct stream *listener;	/* until it is ready for raccept(); service's lock */
	/* Of a listener: the set-up of its child is done or has failed; service's lock. */
	void (*settled)(struct stream *child, int err);
	struct list sibling; /* in the listener's list of pending or of ready */

	/* Listeners: see listen.c. */
	struct list pending; /* set-up under way; service's lock */
	struct list ready;   /* for raccept() */
	unsigned int n_ready;
	unsigned int backlog;

	struct serviced keepalive;
	struct list iomaps; /* struct iomap, ours: see iomap.c */
};

extern const struct rsock_ops stream_ops;

static inline struct stream *stream_of(struct rsock *rs)
{
	return (struct stream *)rs;
}

/**
 * stream_new() - a socket around an id
 * @id:     synchronous, without events; the socket's from now on
 * @domain: address family
 * @like:   whose sizes and options it gets, or NULL for the settings
 * @ret:    has one reference, the caller's; its descriptor is that of the id's channel
 *
 * Return: 0 or -errno; the id is then still the caller's.
 */
int stream_new(struct rdma_cm_id *id, int domain, const struct stream *like, struct stream **ret);

/** stream_open() - rsocket() for SOCK_STREAM. Return: 0 or -errno. */
int stream_open(int domain, struct rsock **ret);

/**
 * stream_happen() - an event: step the state table and carry out the action; the lock is held
 * @err: for events that carry one: -errno
 *
 * The socket's watches are notified if its state has changed.
 *
 * Return: 0; -EINVAL if the event is impossible in this state; -errno of the action.
 */
int stream_happen(struct stream *s, enum stream_event event, int err);

/** stream_progress() - rsock_ops.progress: handles completions, sends what is owed. */
void stream_progress(struct rsock *rs);

/** stream_send_owed() - send owed messages as far as slots are free; the lock is held. */
void stream_send_owed(struct stream *s);

/** stream_owes() - is a message owed that waits for a slot? The lock is held. */
static inline bool stream_owes(const struct stream *s)
{
	return s->owes || (stream_can_read(s->state) && recv_window_is_due(&s->in));
}

/** stream_flush() - move the queue pair to ERR, which ends all requests; the lock is held. */
void stream_flush(struct stream *s);

/** stream_may_send() - would a send take at least a byte now? The lock is held. */
static inline bool stream_may_send(const struct stream *s)
{
	return stream_can_write(s->state) && send_window_room(&s->out);
}

/** stream_may_recv() - would a receive return now: data, the end or an error? Locked. */
bool stream_may_recv(const struct stream *s);

/** stream_send(), stream_recv(): rsock_ops.send, .recv; see transfer.c. */
ssize_t stream_send(struct rsock *rs, const struct rs_transfer *out);
ssize_t stream_recv(struct rsock *rs, struct rs_transfer *in);

/**
 * stream_write() - riowrite(): data for the peer's buffers, see iomap.h
 *
 * It is copied even if it is registered: a program has no way to learn when it was sent, and
 * riostream overwrites the buffer at once.
 *
 * Return: bytes written, up to the end of the peer's buffers; or -errno.
 */
ssize_t stream_write(struct stream *s, const struct rs_transfer *out, off_t offset);

/**
 * stream_await_room() - wait until a message that needs credit can be sent
 * @flags: MSG_DONTWAIT
 *
 * The caller has the turn to send, and the lock, which is released to wait.
 *
 * Return: 0; -EAGAIN; -errno of the connection's end.
 */
int stream_await_room(struct stream *s, int flags);

/** stream_setopt(), stream_getopt(): rsock_ops.setopt, .getopt; see option.c. */
int stream_setopt(struct rsock *rs, int level, int name, const void *value, socklen_t bytes);
int stream_getopt(struct rsock *rs, int level, int name, void *value, socklen_t *bytes);

/* Keepalives, SO_KEEPALIVE: see keepalive.c. */

/** keepalive_init() - none yet. */
void keepalive_init(struct stream *s);

/** keepalive_default_s() - the host's, for TCP. */
int keepalive_default_s(void);

/** keepalive_update() - the options or the state have changed; the service's lock is held. */
void keepalive_update(struct stream *s);

#endif

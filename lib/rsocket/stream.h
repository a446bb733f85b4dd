/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream socket: a synchronous id, a queue pair, two buffers in registered memory, and the flow
 * control in both directions.
 *
 * The handle's lock protects members unless their comment has another rule. One thread at a time
 * has the token to send, and one the token to receive, so that long copies need no lock.
 */
#ifndef LIB_RSOCKET_STREAM_H
#define LIB_RSOCKET_STREAM_H

#include <rdma/rdma_cma.h>

#include "lib/rsocket/rsock.h"
#include "lib/rsocket/service_thread.h"
#include "lib/rsocket/state.h"
#include "lib/rsocket/token.h"
#include "lib/rsocket/window.h"

/* Settings before connecting; accepted sockets inherit them. */
struct stream_sizes {
	uint32_t sq_size;
	uint32_t rq_size;
	uint32_t inline_size;
	uint32_t send_bytes;
	uint32_t recv_bytes;
	uint32_t iomap_size;
};

/* Socket options that are only stored, and those of keepalive.c and close. */
struct stream_options {
	int reuse_addr;
	int keepalive;
	int oob_inline;
	int nodelay;
	int keepalive_s;
	int tos;
	int v6only;
	struct linger linger;
	struct timeval recv_timeout; /* 0: none */
	struct timeval send_timeout;
};

/* A completion queue. There are two, so that send completions do not wake up a sleeping reader. */
struct completions {
	struct ibv_cq *cq;
	bool armed;
	unsigned int n_unacked; /* events read from the channel */
};

/* Registered memory and the objects of the device; see memory.h. */
struct stream_memory {
	struct ibv_comp_channel *channel;
	struct completions recv, send;
	bool has_qp;
	bool is_flushing; /* a receive has failed */

	uint8_t *send_ring; /* data, then room for notes: see memory_note() */
	struct ibv_mr *send_mr;
	struct rs_entry *table; /* written by the peer: RS_TABLE_ENTRIES, then its buffers ... */
	uint8_t *recv_ring;	/* ... and its data */
	struct ibv_mr *recv_mr; /* of both */
	unsigned int next_note; /* index of a note in send_ring */
};

/* The peer's memory that we may write to, besides its receive buffer. */
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

/* Steps of the active set-up. Return: 0 or -errno. The lock must be held. */
struct stream_opening {
	int (*find_route)(struct stream *s);
	int (*send_req)(struct stream *s);
};

struct stream {
	struct rsock base; /* first */
	int domain;
	struct rdma_cm_id *id;
	enum stream_state state;
	int error;	/* positive errno for SO_ERROR; cleared when read */
	int last_error; /* the same, not cleared */
	struct stream_sizes sizes;
	struct stream_options options;
	struct stream_memory memory;
	struct stream_peer peer;
	struct send_window out;
	struct recv_window in;
	unsigned int owes;	/* OWES_*: to be sent when a slot is free */
	uint32_t n_sent;	/* completions outstanding */
	struct roster_row *row; /* or NULL */
	struct token send_token;
	struct token recv_token;

	/* Set-up: see connecting.c. */
	const struct stream_opening *opening;
	struct serviced cm;
	void *route; /* from RDMA_ROUTE, or NULL */
	size_t route_bytes;
	uint32_t timeout_ms;
	unsigned int n_retries;
	struct sockaddr_storage target; /* of rconnect() */
	bool in_progress;		/* the next rconnect() is to return the result */
	struct stream *listener;	/* until it is ready for raccept(); service's lock */
	struct work accepting;
	/* For a listener: the set-up of its child has succeeded or failed; service's lock. */
	void (*settled)(struct stream *child, int err);
	struct list sibling; /* in the listener's list pending or ready */

	/* Listeners: see stream_listen.c. */
	struct list pending; /* being set up, the oldest first; service's lock */
	struct list ready;   /* for raccept() */
	unsigned int n_ready;
	unsigned int backlog;

	struct serviced keepalive;

	/* Used after the end, until all is sent: see leave.c; service's lock. */
	struct serviced leave;
	struct list leaving;
	uint32_t n_unsent; /* changes with each message that leaves or is acknowledged */

	struct list iomaps; /* struct iomap, our buffers: see iomap.c */
};

extern const struct rsock_ops stream_ops;

static inline struct stream *stream_of(struct rsock *rs)
{
	return (struct stream *)rs;
}

/**
 * stream_new() - create a socket for an id
 * @id:     synchronous, without events; owned by the socket from now on
 * @domain: address family
 * @like:   socket to copy sizes and options from, or NULL for the settings
 * @ret:    has one reference, the caller's; its descriptor is that of the id's channel
 *
 * Return: 0 or -errno; the caller then still owns the id.
 */
int stream_new(struct rdma_cm_id *id, int domain, const struct stream *like, struct stream **ret);

/** stream_open() - rsocket() for SOCK_STREAM. Return: 0 or -errno. */
int stream_open(int domain, struct rsock **ret);

/**
 * stream_apply() - apply an event to the state table and carry out the action; the lock must be
 * held
 * @err: -errno, for events that have one
 *
 * Notifies the socket's watches if the state has changed.
 *
 * Return: 0; -EINVAL if the event is impossible in this state; -errno of the action.
 */
int stream_apply(struct stream *s, enum stream_event event, int err);

/** stream_progress() - rsock_ops.progress: handle completions, send owed messages */
void stream_progress(struct rsock *rs);

/** stream_send_owed() - send owed messages as far as slots are free; the lock is held. */
void stream_send_owed(struct stream *s);

/** stream_owes() - return whether a message waits for a slot; the lock must be held */
static inline bool stream_owes(const struct stream *s)
{
	return s->owes || (stream_can_read(s->state) && recv_window_is_due(&s->in));
}

/** stream_flush() - move the queue pair to ERR, which ends all requests; the lock must be held */
void stream_flush(struct stream *s);

/** stream_may_send() - return whether a send would accept at least a byte; the lock must be held */
static inline bool stream_may_send(const struct stream *s)
{
	return stream_can_write(s->state) && send_window_room(&s->out);
}

/** stream_may_recv() - return whether a receive would return data, the end or an error; locked */
bool stream_may_recv(const struct stream *s);

/** stream_send(), stream_recv(): rsock_ops.send, .recv; see transfer.c. */
ssize_t stream_send(struct rsock *rs, const struct rs_transfer *out);
ssize_t stream_recv(struct rsock *rs, struct rs_transfer *in);

/**
 * stream_write() - riowrite(): write to the peer's buffers, see iomap.h
 *
 * Copies even from registered memory: a program cannot learn when the data was sent, and riostream
 * overwrites its buffer at once.
 *
 * Return: bytes written, up to the end of the peer's buffers; or -errno.
 */
ssize_t stream_write(struct stream *s, const struct rs_transfer *out, off_t offset);

/**
 * stream_await_room() - wait until a message that needs credit can be sent
 * @flags: MSG_DONTWAIT
 *
 * The caller has the token to send, and holds the lock, which is released to wait.
 *
 * Return: 0; -EAGAIN; -errno of the connection's end.
 */
int stream_await_room(struct stream *s, int flags, struct cm_time deadline);

/** stream_setopt(), stream_getopt(): rsock_ops.setopt, .getopt; see stream_option.c. */
int stream_setopt(struct rsock *rs, int level, int name, const void *value, socklen_t bytes);
int stream_getopt(struct rsock *rs, int level, int name, void *value, socklen_t *bytes);

/* Keepalives, SO_KEEPALIVE: see keepalive.c. */

/** keepalive_init() - initialize without keepalives */
void keepalive_init(struct stream *s);

/** keepalive_default_s() - the host's default for TCP, in seconds */
int keepalive_default_s(void);

/** keepalive_update() - apply a change of options or state; the service's lock must be held */
void keepalive_update(struct stream *s);

#endif

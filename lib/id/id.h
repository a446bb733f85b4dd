/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the library knows of an rdma_cm_id. The public struct comes first; programs read it, so it
 * is written only by the program's own calls and inside rdma_get_cm_event(), never by the CM
 * thread.
 *
 * Members are guarded by the engine's lock (engine.h) unless their comment says otherwise. The
 * state of the rdma_cm level is here; that of the CM protocol is in the connection (cm/conn.h).
 */
#ifndef LIB_ID_ID_H
#define LIB_ID_ID_H

#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>

#include "cm/core.h"
#include "lib/event/channel.h"
#include "lib/net/port_space.h"
#include "lib/path/path.h"
#include "lib/path/subnet.h"

/* States of an id, in the order of an active connection's life. */
#define ID_STATES(X)      \
	X(IDLE)           \
	X(ADDR_BOUND)     \
	X(LISTEN)         \
	X(ADDR_QUERY)     \
	X(ADDR_RESOLVED)  \
	X(ROUTE_QUERY)    \
	X(ROUTE_RESOLVED) \
	X(CONNECT)        \
	X(DISCONNECT)     \
	X(DEVICE_REMOVAL) \
	X(DESTROYING)

enum id_state {
#define X(name) ID_##name,
	ID_STATES(X)
#undef X
};

/* What rdma_set_option() has set; zero means the default. */
struct id_options {
	bool has_tos;
	uint8_t tos;
	uint8_t ack_timeout;
	bool has_ack_timeout;
	bool has_afonly;
	uint64_t give_up_ns;
	struct cm_waits waits;
};

/* A link address as it was when it was found, once it has become another. */
struct first_hw {
	bool is_known;
	uint8_t hw[NET_ETHERNET_HW_BYTES];
};

struct id {
	struct rdma_cm_id pub; /* first */
	enum id_state state;
	struct list link;		/* in the engine's list of ids */
	void (*destroy)(struct id *id); /* as rdma_destroy_id(); no lock is held */
	struct channel *channel;	/* where events go */
	struct list unread;		/* its events there: the channel's, under its lock */
	struct event *request;		/* CONNECT_REQUEST, while nobody has taken it: as well */
	bool is_sync; /* it is the id's own: see sync.h; atomic, by the functions below */
	struct port_claim claim; /* our port and address, the peer's address */
	uint32_t claim_id; /* cmportd's name for it; 0 if there is none, or on a leased port */
	bool binding;	   /* a port is being asked for */
	struct id_options option;
	struct path path;	 /* known as far as its address is bound or resolved */
	bool has_own_route;	 /* rdma_resolve_route() found its path */
	struct first_hw peer_hw; /* of the peer, when that was */
	struct first_hw own_hw;	 /* of the interface of path.gid */
	struct path *alternate;	 /* of the request, where its queue pair may migrate to; or NULL */

	struct cm_conn *conn; /* NULL before connect, and for listeners */
	struct cm_time born;
	uint32_t starting_psn; /* random; where the peer starts sending */
	uint32_t qkey;	       /* datagrams: of the queue pair, once it was asked for or learnt */
	bool accepted;	       /* passive: the program took it over, events may go to it */
	bool connect_error;    /* CONNECT_ERROR was delivered: no more bad news */
	bool hides_scope;      /* the program is shown its addresses without a scope, as by stock */
	bool device_gone;      /* DEVICE_REMOVAL was posted */

	/* Listeners. */
	struct cm_service service;
	bool serving; /* the service is in the core */
	unsigned int backlog;
	unsigned int n_requests; /* posted and not yet taken */
	struct list waiting;	 /* events of requests for which there is no room: see backlog.h */
	unsigned int n_waiting;
	struct cm_time taken_at; /* the last request, while others waited */

	/* Endpoints: see endpoint.c; by the program's threads only. */
	struct ibv_qp_init_attr *request_qp; /* for the queue pairs of requests, or NULL */
	void *prefix;			     /* of the private data, sent once, or NULL */
	size_t prefix_bytes;

	/* Address resolution under way. */
	struct list resolving;	       /* in the engine's list of resolutions */
	struct cm_timer resolve_timer; /* next look at the neighbour */
	struct cm_time resolve_give_up;

	/* Names: the look-up under way, and what the last one found, until it is fetched. */
	struct lookup *lookup;
	struct rdma_addrinfo *addrinfo;

	struct subnet_ask route_ask; /* InfiniBand: in ROUTE_QUERY */

	struct list groups; /* multicast: struct group, in the order they were joined */

	/* The device that the program was shown; by the program's threads only, as what follows. */
	struct device *attached;
	struct ibv_ece local_ece;  /* what REQ or REP says of us; vendor 0: nothing */
	struct ibv_ece remote_ece; /* what the program was shown of the peer's */

	/*
	 * Held by who takes an event that uses the queue pair or a group's attachment, and by who
	 * takes these away meanwhile. Outside the engine's lock.
	 */
	pthread_mutex_t qp_lock;

	/* Accounting of events; under this lock. */
	pthread_mutex_t lock;
	char *failure;	     /* the last, in words: see failure.h; NULL: there was none */
	struct event *spare; /* for bad news when memory has run out; NULL while it is out */
	pthread_cond_t all_acked;
	unsigned int n_taken;
	unsigned int n_acked;
};

static inline struct id *id_of(struct rdma_cm_id *pub)
{
	return (struct id *)pub;
}

/** id_is_sync() - does its channel belong to it alone? No lock: it may be moved by another thread.
 */
static inline bool id_is_sync(const struct id *id)
{
	return __atomic_load_n(&id->is_sync, __ATOMIC_RELAXED);
}

/** id_set_sync() - while it is made or moved */
static inline void id_set_sync(struct id *id, bool is_sync)
{
	__atomic_store_n(&id->is_sync, is_sync, __ATOMIC_RELAXED);
}

/**
 * id_transport() - of which type its connections are, whatever queue pair it may get
 *
 * The port space says; the queue pair type that rdma_create_ep() has set counts only where that
 * leaves it open, in RDMA_PS_IB. As with the kernel: a UC endpoint in RDMA_PS_TCP speaks RC.
 */
enum ibv_qp_type id_transport(const struct id *id);

/** id_state_str() - "ADDR_BOUND" */
const char *id_state_str(enum id_state state);

/**
 * id_new() - an id in IDLE that no one knows of yet
 * @channel: where its events go
 * @ps:      enum rdma_port_space
 * @ret:     to be given to id_free() or, once engine_add_id() was called, to rdma_destroy_id()
 *
 * Return: 0, -EINVAL for an unknown port space, -ENOMEM.
 */
int id_new(struct channel *channel, enum rdma_port_space ps, struct id **ret);

/** id_free() - free an id that no thread, channel or core knows any more. */
void id_free(struct id *id);

/** id_after_fork() - in a forked child: the parent's ids and events are none of ours. */
void id_after_fork(void);
void id_events_after_fork(void);

/** id_make_spare() - the event in reserve, for id_new(). Return: 0 or -ENOMEM. */
int id_make_spare(struct id *id);

/** id_free_spare() - and its end, for id_free(). */
void id_free_spare(struct id *id);

/**
 * id_set_channel() - let an id's events go to another channel; the engine's lock is held
 *
 * Those that are in the old one's queue stay there.
 */
void id_set_channel(struct id *id, struct channel *channel);

/** id_charge() - an event was taken: one more for its owner, and for its multicast group. */
void id_charge(const struct event *event);

/** id_credit() - one of the taken events was acknowledged; frees it, or keeps it to spare. */
void id_credit(struct id *id, struct event *event);

/** id_wait_acked() - wait until every event taken for this id is acknowledged. */
void id_wait_acked(struct id *id);

/** id_wait_group_acked() - wait until those about one of its multicast groups are. */
void id_wait_group_acked(struct id *id, const struct group *group);

/**
 * id_event() - make an event about an id
 * @id:     whom it is about, and to whom it is charged
 * @status: 0, -errno or a code of the peer
 *
 * Return: the event, for id_post(); NULL when out of memory.
 */
struct event *id_event(struct id *id, enum rdma_cm_event_type type, int status);

/**
 * id_user_event() - make an event of the program's own about an id
 *
 * It does without what the id has to spare: that is for news that only the library knows.
 *
 * Return: as id_event().
 */
struct event *id_user_event(struct id *id, int status, uint64_t arg);

/** id_event_free() - free an event that was not posted; NULL is allowed. */
void id_event_free(struct event *event);

/** id_post() - queue an event on its owner's channel; the engine's lock is held. */
void id_post(struct event *event);

/** id_notify() - id_event() and id_post() in one, for events without parameters. */
void id_notify(struct id *id, enum rdma_cm_event_type type, int status);

/** id_notify_taken() - id_notify() for an event with a meaning; see struct event. */
void id_notify_taken(struct id *id, enum rdma_cm_event_type type, int status,
		     int (*taken)(struct event *event));

/**
 * id_event_spoil() - an event turns bad while it is taken
 * @type: what it is now
 * @err:  -errno, or a driver's own error, which the program is shown as it is; errno is set
 */
void id_event_spoil(struct event *event, enum rdma_cm_event_type type, int err);

/**
 * id_drop_events() - free events that were withdrawn, and the ids of requests among them; no lock
 *                    is held
 */
void id_drop_events(struct list *events);

/** id_show_addrs() - show the program the local address, and a destination of its family. */
void id_show_addrs(struct id *id);

/**
 * id_attach() - show the program the device: verbs, pd, port_num, GIDs, P_Key, addresses
 *
 * Called in the program's thread, with no lock held.
 *
 * Return: 0, -ENODEV if no device is known, or what kept the protection domain from being made.
 */
int id_attach(struct id *id);

/**
 * id_follow_address() - have queue pair and messages leave from the id's address, wherever in the
 * GID table it is now; takes the engine's lock
 *
 * Return: 0; -ENODATA if the port has lost the address; -EINVAL without a device; -ENOMEM.
 */
int id_follow_address(struct id *id);

#endif

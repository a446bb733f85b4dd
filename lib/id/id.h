/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library's state of an rdma_cm_id. The public struct comes first; since programs read it, it
 * is written only in the program's calls, including rdma_get_cm_event(), never in the CM thread.
 *
 * The engine's lock (engine.h) guards all members unless their comment has another rule. The state
 * of the rdma_cm level is here; that of the CM protocol is in the connection (cm/conn.h).
 */
#ifndef LIB_ID_ID_H
#define LIB_ID_ID_H

#include <errno.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>

#include "base/forks.h"
#include "cm/core.h"
#include "lib/event/channel.h"
#include "lib/net/port_space.h"
#include "lib/path/path.h"
#include "lib/path/subnet.h"
#include "lib/portd/proto/proto.h"

enum id_state {
#define X(name) ID_##name,
	PORTD_ID_STATES(X)
#undef X
};

/* Options from rdma_set_option(); zero means the default. */
struct id_options {
	bool has_tos;
	uint8_t tos;
	uint8_t ack_timeout;
	bool has_ack_timeout;
	bool has_afonly;
	uint64_t give_up_ns;
	struct cm_waits waits;
};

/* The original link address, once it has changed. */
struct first_hw {
	bool is_known;
	uint8_t hw[NET_IPOIB_HW_BYTES];
};

struct id {
	struct rdma_cm_id pub; /* first */
	unsigned int n_forks;  /* forks_so_far, when it was created */
	enum id_state state;
	struct list link;		/* in the engine's list of ids */
	void (*destroy)(struct id *id); /* as rdma_destroy_id(); no lock is held */
	struct channel *channel;	/* for its events */
	struct list unread;		/* its queued events; under the channel's lock */
	struct event *request;		/* CONNECT_REQUEST, until taken; under the channel's lock */
	bool is_sync; /* the channel is the id's own: see sync.h; atomic, use the functions below */
	struct port_claim claim; /* local port and address, the peer's address */
	uint32_t claim_id;	 /* id of the claim at cmportd; 0 without one */
	bool is_leased;		 /* the port is a leased one */
	bool binding;		 /* a port request is pending */
	struct id_options option;
	struct path path;	 /* valid as far as the address is bound or resolved */
	struct device *device;	 /* that of path.gid, with a reference; or NULL */
	bool has_own_route;	 /* rdma_resolve_route() found its path */
	struct first_hw peer_hw; /* of the peer, when the route was resolved */
	struct first_hw own_hw;	 /* of the interface of path.gid */
	struct path *alternate;	 /* of the request, for migration of its queue pair; or NULL */

	struct cm_conn *conn; /* NULL before connect, and for listeners */
	struct cm_time born;
	uint32_t starting_psn; /* random; the peer's first PSN to us */
	uint32_t qkey;	       /* datagrams: of the queue pair, once known */
	bool accepted;	       /* connecting, or accepted by the program: it may get events */
	bool connect_error;    /* CONNECT_ERROR was delivered: suppress further errors */
	bool chose_source;     /* resolution replaced a wildcard; undone if it fails */
	bool hides_scope;      /* the program sees its addresses without a scope, as in stock */
	bool device_gone;      /* DEVICE_REMOVAL was posted */

	/* Listeners. */
	struct cm_service service;
	bool serving; /* the service is in the core */
	unsigned int backlog;
	unsigned int n_requests; /* posted, not yet taken */
	struct list waiting;	 /* events of requests beyond the backlog: see backlog.h */
	unsigned int n_waiting;
	struct cm_time taken_at; /* when the last request was taken while others waited */

	/* Endpoints: see endpoint.c; used by the program's threads only. */
	struct ibv_qp_init_attr *request_qp; /* for the queue pairs of requests, or NULL */
	void *prefix;			     /* put in front of the private data, once; or NULL */
	size_t prefix_bytes;

	/* Pending address resolution. */
	struct hash_node resolving;    /* in engine.resolving */
	struct cm_timer resolve_timer; /* next check of the neighbour */
	struct cm_time resolve_give_up;

	/* Names: the pending lookup, and the last result until it is fetched. */
	struct lookup *lookup;
	struct rdma_addrinfo *addrinfo;
	bool is_looked_up; /* ADDR_RESOLVED is that of a lookup, and another peer may follow */

	struct subnet_ask route_ask; /* InfiniBand: in ROUTE_QUERY */

	struct list groups; /* multicast: struct group, in the order of joining */

	/* The attached device, with a reference; this and the ECE are used by the program's
	 * threads. */
	struct device *attached;
	struct ibv_ece local_ece;  /* to send in REQ or REP; vendor 0: none */
	struct ibv_ece remote_ece; /* the peer's, as passed to the program */

	/*
	 * Held while taking an event that uses the queue pair or a group's attachment, and while
	 * removing these. Taken outside the engine's lock.
	 */
	pthread_mutex_t qp_lock;

	/* Accounting of events; under this lock. */
	pthread_mutex_t lock;
	char *failure;	     /* text of the last failure: see failure.h; or NULL */
	struct event *spare; /* for errors when out of memory; NULL while in use */
	pthread_cond_t all_acked;
	unsigned int n_taken; /* atomic */
	unsigned int n_acked;
};

static inline struct id *id_of(struct rdma_cm_id *pub)
{
	return (struct id *)pub;
}

/**
 * id_check() - check the id that a program passes to a call
 *
 * Return: 0; -EINVAL for NULL; -EACCES, as in stock, for an id from before a fork().
 */
static inline int id_check(const struct rdma_cm_id *id)
{
	if (!id)
		return -EINVAL;
	return ((const struct id *)id)->n_forks == forks_so_far ? 0 : -EACCES;
}

/**
 * id_is_sync() - true if the channel belongs to the id alone. Lock-free: another thread may move
 * it.
 */
static inline bool id_is_sync(const struct id *id)
{
	return __atomic_load_n(&id->is_sync, __ATOMIC_RELAXED);
}

/** id_set_sync() - set on creation or migration */
static inline void id_set_sync(struct id *id, bool is_sync)
{
	__atomic_store_n(&id->is_sync, is_sync, __ATOMIC_RELAXED);
}

/**
 * id_transport() - transport type of its connections, whatever its queue pair
 *
 * The port space determines it; the queue pair type from rdma_create_ep() counts only in
 * RDMA_PS_IB. As in the kernel, a UC endpoint in RDMA_PS_TCP uses RC.
 */
enum ibv_qp_type id_transport(const struct id *id);

static inline bool id_is_datagram(const struct id *id)
{
	return id_transport(id) == IBV_QPT_UD;
}

/**
 * id_new() - create an id in IDLE
 * @channel: channel of its events
 * @ps:      enum rdma_port_space
 * @ret:     the id, for id_free() or, once in engine.ids, for rdma_destroy_id()
 *
 * Return: 0; -EINVAL for an unknown port space; -ENOMEM.
 */
int id_new(struct channel *channel, enum rdma_port_space ps, struct id **ret);

/** id_free() - free an id that no thread, channel or core refers to. */
void id_free(struct id *id);

/** id_after_fork() - in a forked child: drop the parent's ids and events. */
void id_after_fork(void);
void id_events_after_fork(void);

/** id_make_spare() - allocate the spare event, for id_new(). Return: 0 or -ENOMEM. */
int id_make_spare(struct id *id);

/** id_free_spare() - free the spare event, for id_free(). */
void id_free_spare(struct id *id);

/**
 * id_set_channel() - set the channel for later events; the engine's lock is held
 *
 * Events in the old channel's queue stay there.
 */
void id_set_channel(struct id *id, struct channel *channel);

/** id_charge() - charge a taken event to its owner, and to its multicast group. */
void id_charge(const struct event *event);

/** id_credit() - credit an acknowledged event; frees it or keeps it as the spare. */
void id_credit(struct id *id, struct event *event);

/** id_wait_acked() - wait until all taken events of this id are acknowledged. */
void id_wait_acked(struct id *id);

/** id_wait_group_acked() - wait until all taken events of a multicast group are acknowledged. */
void id_wait_group_acked(struct id *id, const struct group *group);

/**
 * id_event() - allocate an event about an id
 * @id:     subject and owner of the event
 * @status: 0, -errno or a code of the peer
 *
 * Return: the event, for id_post(); NULL when out of memory.
 */
struct event *id_event(struct id *id, enum rdma_cm_event_type type, int status);

/**
 * id_user_event() - allocate an event of the program's own about an id
 *
 * Does not use the id's spare event, which is for events of the library.
 *
 * Return: as id_event().
 */
struct event *id_user_event(struct id *id, int status, uint64_t arg);

/** id_event_free() - free an event that was not posted; NULL is allowed. */
void id_event_free(struct event *event);

/** id_post() - queue an event on its owner's channel; the engine's lock is held. */
void id_post(struct event *event);

/** id_notify() - id_event() and id_post(), for events without parameters. */
void id_notify(struct id *id, enum rdma_cm_event_type type, int status);

/** id_notify_taken() - id_notify() for an event with a taken() function; see struct event. */
void id_notify_taken(struct id *id, enum rdma_cm_event_type type, int status,
		     int (*taken)(struct event *event));

/**
 * id_event_spoil() - change an event to a failure while it is being taken
 * @type: new type
 * @err:  -errno, or a driver's own error, which is passed to the program unchanged; sets errno
 */
void id_event_spoil(struct event *event, enum rdma_cm_event_type type, int err);

/** id_drop_events() - free withdrawn events, and destroy the ids of requests; no lock is held */
void id_drop_events(struct list *events);

/** id_use_device() - keep the device of path.gid from being closed; the engine's lock is held */
void id_use_device(struct id *id);

/**
 * id_publish_addrs() - store the local address in the public part, and a destination of its family.
 */
void id_publish_addrs(struct id *id);

/**
 * id_attach() - set the public members of the device: verbs, pd, port_num, GIDs, P_Key, addresses
 *
 * Call in the program's thread, with no lock held.
 *
 * Return: 0; -ENODEV if no device is known; -errno of creating the protection domain.
 */
int id_attach(struct id *id);

/**
 * id_follow_address() - use the current GID index of the id's address for queue pair and messages;
 * takes the engine's lock
 *
 * Return: 0; -ENODATA if the port has lost the address; -EINVAL without a device; -ENOMEM.
 */
int id_follow_address(struct id *id);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine: the core of the CM protocol, a lock around it, and a thread that receives messages
 * and runs timers. API calls step the core in the caller's thread, messages and deadlines in the
 * engine's.
 *
 * The lock guards the core, the state of all ids and the listeners. It is held for
 * a step, about a microsecond, and never across a blocking system call: messages from the core are
 * put into an outbox and sent after the lock is released. lock_order.h defines the lock order. One
 * lock is enough: the system calls around a step take a hundred times as long.
 *
 * The thread steps the core for all messages of a datagram from cmportd; then the answers leave in
 * one datagram, and the program's pollers are woken once.
 */
#ifndef LIB_ENGINE_ENGINE_H
#define LIB_ENGINE_ENGINE_H

#include "base/loop.h"
#include "cm/core.h"
#include "lib/engine/outbox.h"
#include "lib/id/id.h"
#include "lib/net/port_space.h"

struct engine {
	struct cm_core core;
	struct port_limits limits;
	struct list ids;
	struct hash subnet_asks;      /* by number, see subnet.h */
	struct hash resolving;	      /* id.resolving: address resolutions, by next hop */
	struct cm_timers resolutions; /* id.resolve_timer */
	unsigned int n_wildcards;     /* ids that listen on every device */
	uint64_t random_secret;
	uint64_t random_count; /* atomic */
};

/* Functions of the folders above the engine, called through this table only: see upcalls.c. */
struct engine_upcalls {
	/* In engine_start(): watch their descriptors. Return: 0 or -errno. */
	int (*start)(void);
	void (*stop)(void); /* start() has failed, or this is a forked child */
	/* A report of the core; the lock is held. */
	void (*report)(struct engine *engine, struct outbox *box, const struct cm_report *report,
		       const struct cm_msg *msg);
	/* The others are called in the engine's thread, without the lock. */
	void (*prepare)(struct port *port); /* before a request that it received is handled */
	void (*neighbour_changed)(const struct net_event *event);
	void (*interface_changed)(const struct net_event *event);
	void (*interfaces_changed)(void); /* ports may have come, or their GIDs have changed */
	/* A timer of engine.resolutions has expired. */
	void (*expire)(struct cm_time now);
	void (*before_sleep)(void); /* before the engine's thread sleeps */
	/* Time by which before_sleep() must be called even if nothing happens; the lock is held. */
	struct cm_time (*deadline)(void);
	void (*after_fork)(void); /* in a forked child: drop the parent's state */
};

/**
 * engine_start() - start the engine with the first id of the process
 * @above: the upcalls; must stay valid
 *
 * After fork(), the child's first call starts a new engine; the child must not use the parent's
 * ids.
 *
 * Return: 0 or -errno.
 */
int engine_start(const struct engine_upcalls *above);

/**
 * engine_init() - engine_start() without the thread: the caller runs engine_turn()
 *
 * Return: 0 or -errno.
 */
int engine_init(const struct engine_upcalls *above);

/**
 * engine_turn() - receive, run timers, call before_sleep(); in the engine's thread
 * @most_ms: timeout for input in milliseconds; -1 waits forever
 */
void engine_turn(int most_ms);

/** engine_is_started() - true if this process has an engine. */
bool engine_is_started(void);

/**
 * engine_destroy_connections() - end all connections when the process exits
 * @most_ms: timeout for the lock in milliseconds: exit() may have been called with it held
 *
 * Return: true if it was done.
 */
bool engine_destroy_connections(int most_ms);

/** engine_lock() - take the lock. Return: the engine. */
struct engine *engine_lock(void);

/** engine_held() - Return: the engine, for callers that hold the lock. */
struct engine *engine_held(void);

void engine_unlock(void);

/** engine_id_is() - true if the id is in this state now. Takes the lock. */
bool engine_id_is(const struct id *id, enum id_state state);

/** engine_random() - 64 bits that peers cannot guess; makes no system call. */
uint64_t engine_random(void);

/**
 * engine_step() - call the core for the owner of a connection; the lock is held
 * @box: receives the messages to send; empty it with outbox_flush()
 *
 * Return: as cm_core_call().
 */
int engine_step(struct engine *engine, struct outbox *box, struct cm_conn *conn, enum cm_event verb,
		const struct cm_args *args);

/** engine_wake() - a deadline may have moved nearer; the lock is held. */
void engine_wake(void);

/** engine_wake_at() - call before_sleep() of the upcalls by this time; the lock is held. */
void engine_wake_at(struct cm_time time);

/**
 * engine_watch() - call a function in the engine's thread whenever a descriptor is readable
 *
 * Return: as loop_watch().
 */
int engine_watch(struct watch *watch, int fd, void (*ready)(struct watch *watch));

/** engine_unwatch() - stop watching; in the engine's thread. */
void engine_unwatch(struct watch *watch);

/** engine_receive() - process a received message; in the engine's thread. */
void engine_receive(struct port *port, const struct mad_path *path, const uint8_t mad[MAD_BYTES]);

/** engine_received_all() - after a batch of engine_receive(): send answers, wake programs. */
void engine_received_all(void);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine: one core of the CM protocol, one lock around it, one thread that receives and runs
 * timers. Everything of a process passes here: calls of the API step the core in the caller's
 * thread, messages and deadlines in the engine's.
 *
 * The lock guards the core, the state of all ids, the port space and the listeners. It is held
 * for the length of a step, about a microsecond, and never across a system call that can block;
 * what the core wants sent is put into an outbox and sent after the lock was given up. Locks nest
 * in the order of lock_order.h. One lock is enough: the system calls around a step take a hundred
 * times as long.
 *
 * The thread steps the core for all messages of a datagram from cmportd; then the answers leave in
 * one datagram and the program's pollers are woken once.
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
	struct port_space ports;
	struct list ids;
	struct list subnet_asks;      /* see subnet.h */
	struct list resolving;	      /* id.resolving: address resolutions under way */
	struct cm_timers resolutions; /* id.resolve_timer */
	unsigned int n_wildcards;     /* ids that listen on every device */
	uint64_t random_secret;
	uint64_t random_count; /* atomic */
};

/* The rooms above the engine, which calls them by this table only: see rooms.c. */
struct engine_rooms {
	/* Within engine_start(): descriptors of theirs to watch. Return: 0 or -errno. */
	int (*start)(void);
	void (*stop)(void); /* start() has failed, or we are a forked child */
	/* The core reports; the lock is held. */
	void (*report)(struct engine *engine, struct outbox *box, const struct cm_report *report,
		       const struct cm_msg *msg);
	/* The others are called in the engine's thread, without the lock. */
	void (*neighbour_changed)(const struct net_event *event);
	void (*interface_changed)(const struct net_event *event);
	void (*interfaces_changed)(void); /* ports may have come, or their GIDs changed */
	void (*expire)(struct cm_time now);
	void (*before_sleep)(void); /* before the thread sleeps */
	/* When before_sleep() is needed although nothing happens; the lock is held. */
	struct cm_time (*deadline)(void);
	void (*after_fork)(void); /* in a forked child: the parent's things are none of ours */
};

/**
 * engine_start() - make the engine, at the first id of the process
 * @above: kept
 *
 * After fork() the child's first call makes a new one; the parent's ids are of no use to it.
 *
 * Return: 0 or -errno.
 */
int engine_start(const struct engine_rooms *above);

/**
 * engine_init() - engine_start() without the thread: its work is done by engine_turn()
 *
 * Return: 0 or -errno.
 */
int engine_init(const struct engine_rooms *above);

/**
 * engine_turn() - receive what has come, run timers, look after the rooms; the engine's thread
 * @most_ms: how long to wait for something to come; -1: until then
 */
void engine_turn(int most_ms);

/** engine_is_started() - is there an engine in this process? */
bool engine_is_started(void);

/**
 * engine_destroy_connections() - end all connections at once, as the process exits
 * @most_ms: how long to wait for the lock: exit() may have been called with it held
 *
 * Return: whether that was done.
 */
bool engine_destroy_connections(int most_ms);

/** engine_lock() - Return: the engine. */
struct engine *engine_lock(void);

/** engine_held() - Return: the engine, for who is called with the lock held. */
struct engine *engine_held(void);

void engine_unlock(void);

/** engine_id_is() - is the id in this state at the moment? Takes the lock. */
bool engine_id_is(const struct id *id, enum id_state state);

/** engine_random() - 64 bits that a peer cannot guess; costs no system call. */
uint64_t engine_random(void);

/**
 * engine_step() - let the owner of a connection call the core; the lock is held
 * @box: where to put what is to be sent; emptied by outbox_flush()
 *
 * Return: as cm_core_call().
 */
int engine_step(struct engine *engine, struct outbox *box, struct cm_conn *conn, enum cm_event verb,
		const struct cm_args *args);

/** engine_wake() - a deadline may have come nearer; the lock is held. */
void engine_wake(void);

/**
 * engine_watch() - have a function called in the engine's thread whenever a descriptor is readable
 *
 * Return: as loop_watch().
 */
int engine_watch(struct watch *watch, int fd, void (*ready)(struct watch *watch, uint32_t events));

/** engine_unwatch() - no more; in the engine's thread. */
void engine_unwatch(struct watch *watch);

/** engine_receive() - a message has arrived; the engine's thread, before engine_received_all(). */
void engine_receive(struct port *port, const struct mad_path *path, const uint8_t mad[MAD_BYTES]);

/** engine_received_all() - no other has; now they are answered, and programs learn of them. */
void engine_received_all(void);

#endif

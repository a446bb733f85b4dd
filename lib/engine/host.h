/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the library needs of its host: somebody who has the CM class of the ports, and hands out
 * comm ids and port numbers. That is cmportd, which serves all processes and outlives them; or,
 * with PURECM_PORTD=inline, the same in a thread of this process (lib/portd/inline.h), which serves
 * nobody else and goes with it.
 *
 * Nothing here may be called with the engine's lock held, except where it says so.
 */
#ifndef LIB_ENGINE_HOST_H
#define LIB_ENGINE_HOST_H

#include "lib/engine/outbox.h"
#include "lib/id/id.h"
#include "lib/portd/client/client.h"

/* What the rooms above do with what is not about messages. All are called in the engine's thread.
 */
struct host_rooms {
	void (*port_gone)(struct port *port); /* its device was removed */
	void (*receive)(const struct portd_record *record);
	void (*resend)(struct portd_client *to);	   /* what they know, to the next cmportd */
	void (*before_sleep)(struct portd_client *client); /* before the thread sleeps */
	struct cm_time (*deadline)(void); /* when before_sleep() is needed in any case */
	void (*forget)(void);		  /* cmportd is gone */
};

/** host_set_rooms() - who is above; before host_start(). */
void host_set_rooms(const struct host_rooms *above);

/**
 * host_start() - find cmportd, or start it, unless that was done before or is not wanted
 *
 * Return: 0; -errno as portd_client_open(), with a warning in the log that says what to do.
 */
int host_start(void);

/**
 * host_open_port() - have cmportd deliver the messages of a port
 * @port: its device and number are set; filled: handle, and what cm_port_init() fills
 *
 * Return: 0, or as umad_port_open(), with a warning in the log.
 */
int host_open_port(struct port *port);

/** host_close_port() - no port is delivered to any more under this handle. */
void host_close_port(struct port *port);

/** host_port() - what is open under a handle. Return: with a reference, or NULL. */
struct port *host_port(uint8_t handle);

/** host_before_sleep() - the engine's thread, before it sleeps: more comm ids, the next cmportd. */
void host_before_sleep(void);

/** host_deadline() - when host_before_sleep() is needed even if nothing happens. */
struct cm_time host_deadline(void);

/**
 * host_record_of() - what cmportd should know of a connection whose state changes without a message
 * @conn: as it is; the engine's lock is held
 * @ret:  for portd_track()
 *
 * Return: false if cmportd never heard of it.
 */
bool host_record_of(const struct cm_conn *conn, struct cm_record *ret);

/** host_ends_with_us() - is cmportd one that goes when the process does? */
bool host_ends_with_us(void);

/**
 * host_end() - leave it, as the process exits, and let it tell peers that connections have ended
 * @ms: it is not waited for longer
 */
void host_end(int ms);

/** host_after_fork() - in a forked child: a new start. */
void host_after_fork(void);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library's calls to cmportd, which owns the CM class of the ports, and hands out comm ids and
 * port numbers: the host's, which serves all processes and outlives them; or, with
 * PURECM_PORTD=inline, one that serves only this process and ends after it.
 *
 * Do not call these functions with the engine's lock held, unless stated otherwise.
 */
#ifndef LIB_ENGINE_CMPORTD_H
#define LIB_ENGINE_CMPORTD_H

#include "lib/engine/outbox.h"
#include "lib/id/id.h"
#include "lib/portd/client/portd_client.h"

/* Upcalls for records other than messages, in the engine's thread. */
struct cmportd_upcalls {
	void (*port_gone)(
		struct port *port); /* the device that had the port's handle was removed */
	void (*receive)(const struct portd_record *record);
	void (*resend)(struct portd_client *to); /* report their state to the next cmportd */
	void (*before_sleep)(struct portd_client *client); /* before the engine's thread sleeps */
	struct cm_time (*deadline)(void); /* time by which to call before_sleep() */
	void (*forget)(void);		  /* cmportd is gone */
	void (*resumed)(void);		  /* the next cmportd has all records and the ports */
};

/** cmportd_set_upcalls() - set the upcalls; before cmportd_start(). */
void cmportd_set_upcalls(const struct cmportd_upcalls *above);

/**
 * cmportd_start() - find cmportd or start it, unless already done or not wanted
 *
 * Return: 0; -errno as portd_client_open(), with a warning in the log that names the remedy.
 */
int cmportd_start(void);

/** cmportd_await() - wait until cmportd is there again, with no lock held; see portd_await() */
int cmportd_await(void);

/**
 * cmportd_open_port() - let cmportd deliver the messages of a port
 * @port: in: device and port number; out: handle, and the members that cm_port_init() sets
 *
 * Return: 0; -EPIPE if cmportd is gone; -errno as umad_port_open(), with a warning in the log.
 */
int cmportd_open_port(struct port *port);

/**
 * cmportd_reopen_port() - open a port again that the next cmportd could not open
 *
 * Return: 0; -errno as cmportd_open_port(). A port with a handle is left as it is.
 */
int cmportd_reopen_port(struct port *port);

/** cmportd_close_port() - stop delivery to a port and free its handle. */
void cmportd_close_port(struct port *port);

/** cmportd_get_ports() - get all open ports. Return: how many, each with a reference. */
unsigned int cmportd_get_ports(struct port *ret[PORTD_PORTS_MAX]);

/** cmportd_find_port() - find a port by its handle. Return: the port with a reference, or NULL. */
struct port *cmportd_find_port(uint8_t handle);

/** cmportd_before_sleep() - in the engine's thread: fetch comm ids, reconnect to cmportd. */
void cmportd_before_sleep(void);

/** cmportd_deadline() - time by which to call cmportd_before_sleep() even if nothing happens. */
struct cm_time cmportd_deadline(void);

/**
 * cmportd_record_of() - the record of a connection whose state changes without a message
 * @conn: the connection; the engine's lock is held
 * @ret:  for portd_track()
 *
 * Return: false if cmportd does not know the connection.
 */
bool cmportd_record_of(const struct cm_conn *conn, struct cm_record *ret);

/**
 * cmportd_leave() - when the process exits: end a cmportd that serves only this process
 * @ms: how long to wait until it has ended the connections to peers and freed the ports
 *
 * Return: false if there is none.
 */
bool cmportd_leave(int ms);

/** cmportd_after_fork() - in a forked child: start anew. */
void cmportd_after_fork(void);

#endif

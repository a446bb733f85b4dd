/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cmportd as functions: the program cmportd runs it for all processes of a host, and a program that
 * wants to do without has one of its own, in a thread. What only the former needs, it is given:
 * files that outlive it, tracers, signals.
 */
#ifndef LIB_PORTD_SERVER_SERVER_H
#define LIB_PORTD_SERVER_SERVER_H

#include <stdbool.h>

#include "lib/portd/server/quota.h"

struct server;
struct server_recovery;
struct server_tracing;

/* At a socket, where the files beside it tell the next one what it must know. */
extern const struct server_recovery server_recovery_from_files;
/* Tracing, the recording of the latest messages, and statistics. */
extern const struct server_tracing server_tracing_all;

struct server_options {
	const struct server_recovery *recovery; /* NULL: nothing outlives the server */
	const struct server_tracing *tracing;	/* NULL: neither is offered */
	const char *path;			/* of the socket; NULL without one */
	const char *port_file;			/* of port_file.h; NULL without one */
	int stop_fd;	      /* readable when it is to stop; -1 if nobody says so */
	int reload_fd;	      /* a signalfd, readable when the file is to be read again; or -1 */
	int client_fd;	      /* of the one client, with which it leaves; -1: who comes */
	unsigned int idle_s;  /* leave after that long without clients, and close ports that nobody
				 has had for so long; 0: never, and after UNUSED_S */
	struct quotas quotas; /* zeros: the defaults */
	uint32_t n_recorded;  /* messages that PATH.recorded keeps; 0: none */
	bool opens_ports;     /* of all devices, at once, not each when a client asks for it */
	bool qp1_alone;	      /* no messages to or from queue pairs of our own: mad/sender.h */
	void (*serves)(void); /* called when clients can come; may be NULL */
	/* Called before and after each wait for events; NULL: nothing is to be called. */
	void (*unlock)(void);
	void (*lock)(void);
};

/**
 * server_run() - serve a socket path until the idle timeout expires or a stop is requested
 *
 * Return: 0; -EADDRINUSE if there is one already; -errno.
 */
int server_run(const struct server_options *options);

/**
 * server_start() - allocate and open everything that server_serve() needs
 * @options: the client's descriptor is the server's from now on, also on an error
 * @ret:     to be given to server_serve(), by any thread
 *
 * Return: as server_run().
 */
int server_start(const struct server_options *options, struct server **ret);

/** server_serve() - run the event loop until the end, then free the server. */
void server_serve(struct server *server);

/** server_drop() - free a server whose event loop was never run. */
void server_drop(struct server *server);

/** server_after_fork() - in a forked child: close the descriptors; it was between unlock() and
 * lock(). */
void server_after_fork(struct server *server);

#endif

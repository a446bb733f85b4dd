/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cmportd as functions. The program cmportd runs a server for all processes of a host; a program
 * that does without cmportd runs its own server in a thread. Features that only cmportd needs are
 * passed in: files that survive a restart, tracers, signals.
 */
#ifndef LIB_PORTD_SERVER_SERVER_H
#define LIB_PORTD_SERVER_SERVER_H

#include <stdbool.h>

#include "lib/portd/server/quota.h"

struct server;
struct server_recovery;
struct server_tracing;

/* With a socket, and files beside it that pass state to the next cmportd. */
extern const struct server_recovery server_recovery_from_files;
/* Tracing, the recording of the latest messages, and statistics. */
extern const struct server_tracing server_tracing_all;

struct server_options {
	const struct server_recovery *recovery; /* NULL: no state survives the server */
	const struct server_tracing *tracing;	/* NULL: no tracing and statistics */
	const char *path;			/* of the socket; NULL: none */
	const char *port_file;			/* see port_file.h; NULL: none */
	int stop_fd;				/* readable when shutdown is requested; -1: none */
	int reload_fd;	      /* a signalfd, readable when port_file is to be reloaded; -1: none */
	int client_fd;	      /* the only client, with which the server ends; -1: listen */
	unsigned int idle_s;  /* idle time until it ends or a port closes; 0: never, UNUSED_S */
	struct quotas quotas; /* zeros: defaults */
	uint32_t n_recorded;  /* number of messages kept in PATH.recorded; 0: none */
	bool opens_ports;     /* open the ports of all devices at once, not on demand */
	bool has_strangers;   /* clients are not trusted: close what they send in threads */
	bool qp1_alone;	      /* use umad only and no queue pair of our own: mad/sender.h */
	void (*serves)(void); /* called when clients can connect; may be NULL */
	/* Called before and after each wait for events; may be NULL. */
	void (*unlock)(void);
	void (*lock)(void);
};

/**
 * server_run() - serve a socket path until the idle timeout expires or a stop is requested
 *
 * Return: 0; -EADDRINUSE if another server has the path; -errno.
 */
int server_run(const struct server_options *options);

/**
 * server_start() - allocate and open everything that server_serve() needs
 * @options: client_fd is owned by the server from now on, also on error
 * @ret:     to be passed to server_serve(), from any thread
 *
 * Return: as server_run().
 */
int server_start(const struct server_options *options, struct server **ret);

/** server_serve() - run the event loop until the end, then free the server. */
void server_serve(struct server *server);

/** server_drop() - free a server whose event loop was never run. */
void server_drop(struct server *server);

/**
 * server_after_fork() - in a forked child: close the descriptors
 *
 * The fork must take place between unlock() and lock().
 */
void server_after_fork(struct server *server);

#endif

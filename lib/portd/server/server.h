/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cmportd as a function: the program cmportd serves all processes of a host, or one client.
 */
#ifndef LIB_PORTD_SERVER_SERVER_H
#define LIB_PORTD_SERVER_SERVER_H

#include <stdbool.h>

#include "lib/portd/server/limits.h"

struct server_options {
	const char *path;      /* of the socket; NULL: none, client_fd is served */
	const char *port_file; /* see port_file.h; NULL: none */
	int stop_fd;	       /* readable when shutdown is requested */
	int reload_fd;	       /* a signalfd, readable when port_file is to be reloaded; -1: none */
	int client_fd;	       /* the only client, with which the server ends; -1: listen */
	unsigned int idle_s;   /* idle time until it ends or a port closes; 0: never, UNUSED_S */
	struct quotas quotas;  /* zeros: defaults */
	uint32_t n_recorded;   /* number of messages kept in PATH.recorded; 0: none */
	bool opens_ports;      /* open the ports of all devices at once, not on demand */
	bool qp1_alone;	       /* use umad only and no queue pair of our own: mad/sender.h */
	void (*serves)(void);  /* called when clients can connect; may be NULL */
};

/**
 * server_run() - serve a socket path until the idle timeout expires or a stop is requested; or one
 * client, until it leaves and the peers of its connections know, for at most two seconds
 *
 * Return: 0; -EADDRINUSE if another server has the path; -errno.
 */
int server_run(const struct server_options *options);

struct server;

/**
 * server_begin() - take the socket directory, and set up the event loop
 * @server: zeroed except for its options; release with server_end(), also on error
 *
 * Return: as server_run().
 */
int server_begin(struct server *server);

/** server_turn() - wait for events or timers, and handle them */
void server_turn(struct server *server);

/** server_is_over() - return whether the server has nothing left to do */
bool server_is_over(const struct server *server);

/** server_end() - leave the socket directory and free all but the struct; nothing is sent */
void server_end(struct server *server);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cmportd as a function: called by main.c, and by tests.
 */
#ifndef LIB_PORTD_SERVER_SERVER_H
#define LIB_PORTD_SERVER_SERVER_H

#include <stdbool.h>

struct server_options {
	const char *path;     /* of the socket */
	unsigned int idle_s;  /* leave after that long without clients; 0: never */
	bool opens_ports;     /* of all devices, at once, not each when a client asks for it */
	bool qp1_alone;	      /* no messages to or from queue pairs of our own: mad/sender.h */
	void (*serves)(void); /* called when clients can come; may be NULL */
};

/**
 * server_run() - be the cmportd of a path, until it has been idle for long enough, or SIGTERM or
 * SIGINT comes
 *
 * Return: 0; -EADDRINUSE if there is one already; -errno.
 */
int server_run(const struct server_options *options);

#endif

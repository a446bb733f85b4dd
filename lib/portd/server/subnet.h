/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cmportd's way to the subnet administrators: one agent for each InfiniBand port, and what clients
 * have asked of it.
 */
#ifndef LIB_PORTD_SERVER_SUBNET_H
#define LIB_PORTD_SERVER_SUBNET_H

#include "lib/portd/server/state.h"

/**
 * subnet_open() - have a way to the administrator of a host port's subnet, if it is on one
 *
 * Return: 0, also for a port that is on none; -errno.
 */
int subnet_open(struct server *server, struct host_port *host_port);

/** subnet_after_fork() - in a child: close the copy of its descriptor. */
void subnet_after_fork(struct host_port *host_port);

/** subnet_close() - forget it, and what clients have asked there; nobody is told. */
void subnet_close(struct server *server, struct host_port *host_port);

/** subnet_expire() - run timers. */
void subnet_expire(struct server *server, struct host_port *host_port);

/** subnet_deadline() - when subnet_expire() is next needed. */
struct cm_time subnet_deadline(const struct host_port *host_port);

/**
 * subnet_record() - a client asks, joins a group, no longer wants to know, or reports that a path
 * does not work
 *
 * Return: false if it is another record.
 */
bool subnet_record(struct server *server, struct client *client, const struct portd_record *record);

/**
 * subnet_forget_client() - a client is gone
 * @leaves: its groups; else the next cmportd hears of them
 */
void subnet_forget_client(struct server *server, struct client *client, bool leaves);

#endif

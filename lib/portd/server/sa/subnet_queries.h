/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Access of cmportd to the subnet administrators: an agent for each InfiniBand port, and the
 * queries of clients.
 */
#ifndef LIB_PORTD_SERVER_SA_SUBNET_QUERIES_H
#define LIB_PORTD_SERVER_SA_SUBNET_QUERIES_H

#include "lib/portd/server/server_state.h"

/**
 * subnet_open() - set up the agent of a host port, if the port is InfiniBand
 *
 * Return: 0, also for a port that is not; -errno.
 */
int subnet_open(struct server *server, struct host_port *host_port);

/** subnet_port_changed() - read again what the agent knows of its port, if there is an agent */
void subnet_port_changed(struct server *server, struct host_port *host_port, bool reregister);

/** subnet_close() - free the agent and the queries of clients there; clients get no response */
void subnet_close(struct server *server, struct host_port *host_port);

/** subnet_expire() - run the agent's timers */
void subnet_expire(struct server *server, struct host_port *host_port);

/** subnet_tell() - tell clients more of the tables that have come, the users in turn */
void subnet_tell(struct server *server);

/** subnet_deadline() - when subnet_expire() is next needed. */
struct cm_time subnet_deadline(const struct host_port *host_port);

/**
 * subnet_record() - handle a query, a join, a cancellation, or a report of a path that fails
 *
 * Return: false if @record is of another type.
 */
bool subnet_record(struct server *server, struct client *client, const struct portd_record *record);

/**
 * subnet_client_goes() - withdraw a query, or leave a group, of a client that has disconnected
 *
 * Return: false if it has none.
 */
bool subnet_client_goes(struct client *client);

/** subnet_forget_client() - free its queries; a client that has not disconnected repeats them to
 * the next cmportd
 */
void subnet_forget_client(struct client *client);

#endif

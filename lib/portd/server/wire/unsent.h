/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that are not sent yet: REQs, SIDR_REQs, and REJs that cancel them. They leave at the end
 * of a turn, after all responses, users in turn, and the hosts that a user sends to in turn: a host
 * that does not answer, or answers slowly, delays only the requests to itself.
 */
#ifndef LIB_PORTD_SERVER_WIRE_UNSENT_H
#define LIB_PORTD_SERVER_WIRE_UNSENT_H

#include <stdbool.h>

#include "mad/port.h"

#define REQUESTS_HOLD_MS 1 /* between looks at the requests above the rate of their host */

struct server;
struct client;
struct host_port;
struct user;
struct xmit;

/** unsent_of() - return the user on whose account a client sends; server.nobody for NULL */
struct user *unsent_of(struct server *server, const struct client *sender);

/** unsent_to() - return whether requests of the sender's user to that peer are queued */
bool unsent_to(struct server *server, const struct client *sender, const struct mad_path *path);

/** unsent_put() - queue a request; out of memory, it is freed and counted as lost */
void unsent_put(struct server *server, struct xmit *xmit);

/** unsent_forget_sender() - detach the requests of a client that ends; they are sent */
void unsent_forget_sender(struct server *server, struct client *sender);

/** unsent_port_gone() - free the requests queued at a host port */
void unsent_port_gone(struct server *server, const struct host_port *host_port);

/**
 * unsent_send() - send up to SEND_BATCH requests, and to each host at three quarters of the rate
 * that it accepts
 */
void unsent_send(struct server *server);

/** unsent_are_none() - return whether no request is queued */
bool unsent_are_none(const struct server *server);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that are not sent yet: REQs, SIDR_REQs, and REJs that cancel them. They leave at the end
 * of a turn, after all responses, users in turn, and the hosts that a user sends to in turn: a host
 * that does not answer, or answers slowly, delays only the requests to itself.
 */
#ifndef LIB_PORTD_SERVER_REQUESTS_H
#define LIB_PORTD_SERVER_REQUESTS_H

#include <stdbool.h>

#include "mad/port.h"

#define REQUESTS_HOLD_MS 1 /* between looks at the requests above the rate of their host */

struct server;
struct client;
struct host_port;
struct user;
struct xmit;

/** requests_of() - return the user on whose account a client sends; server.nobody for NULL */
struct user *requests_of(struct server *server, const struct client *sender);

/** requests_to() - return whether requests of the sender's user to that peer are queued */
bool requests_to(struct server *server, const struct client *sender, const struct mad_path *path);

/** requests_put() - queue a request; out of memory, it is freed and counted as lost */
void requests_put(struct server *server, struct xmit *xmit);

/** requests_forget_sender() - detach the requests of a client that ends; they are sent */
void requests_forget_sender(struct server *server, struct client *sender);

/** requests_port_gone() - free the requests queued at a host port */
void requests_port_gone(struct server *server, const struct host_port *host_port);

/**
 * requests_send() - send up to SEND_BATCH requests, and to each host at three quarters of the rate
 * that it accepts
 */
void requests_send(struct server *server);

/** requests_are_none() - return whether no request is queued */
bool requests_are_none(const struct server *server);

#endif

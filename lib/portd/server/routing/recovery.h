/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What survives a cmportd that was killed: the files beside its socket, clients that resume, and
 * connections of clients that do not. A cmportd of one client has the same files in memory, where
 * they end with it.
 */
#ifndef LIB_PORTD_SERVER_ROUTING_RECOVERY_H
#define LIB_PORTD_SERVER_ROUTING_RECOVERY_H

#include "lib/portd/server/server_state.h"

#define OPEN_AGAIN_NS (20 * CM_NS_PER_MS) /* after which a port that is closing is opened again */

/** recovery_open() - take the files, and the listening socket. Return: as socket_dir_take(). */
int recovery_open(struct server *server);

/** recovery_begin() - begin the grace period if clients may resume */
void recovery_begin(struct server *server);

/** recovery_close() - leave them, at the end */
void recovery_close(struct server *server);

/** recovery_welcome() - record a client whose HELLO was accepted, as one that may resume */
void recovery_welcome(struct server *server, struct client *client);

/** recovery_introduce() - record whose connections those of a client are */
void recovery_introduce(struct server *server, const struct client *client);

/** recovery_return() - a client has its first block again: so it has its connections */
void recovery_return(struct server *server, const struct client *client);

/**
 * recovery_await_more() - extend the grace period: it begins anew, up to a limit in all
 *
 * On a busy host, hundreds of programs, or one with many claims, need more than one such period.
 */
void recovery_await_more(struct server *server);

/** recovery_resumed() - a client has reported everything */
void recovery_resumed(struct server *server, const struct client *client);

/** recovery_awaits() - return whether any client may still resume */
bool recovery_awaits(struct server *server);

/** recovery_in_grace() - return whether clients of a previous cmportd may still resume */
bool recovery_in_grace(struct server *server);

/**
 * recovery_port_is_closing() - return whether a port that could not be opened may be later
 * @err: of host_port_open()
 *
 * The kernel closes the umad descriptor of a killed cmportd some time after its sockets.
 */
bool recovery_port_is_closing(const struct server *server, int err);

/** orphans_are_none() - return whether no connection of a previous cmportd is left */
bool orphans_are_none(const struct server *server);

/** orphans_end() - end some of those that nobody will resume; each turn */
void orphans_end(struct server *server);

/** orphans_deadline() - when to call orphans_end() next */
struct cm_time orphans_deadline(const struct server *server);

#endif

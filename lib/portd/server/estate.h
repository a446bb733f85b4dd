/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a cmportd that was killed has left behind: connections whose programs come back and tell
 * of them, and others whose programs were killed with it. Those are ended as if the program had
 * died just now. Called by server.c, answer.c and station.c.
 */
#ifndef LIB_PORTD_SERVER_ESTATE_H
#define LIB_PORTD_SERVER_ESTATE_H

#include "lib/portd/server/state.h"

/**
 * estate_open() - have the wills lie beside the socket, and look at those that lie there
 *
 * To be called when the place was taken, before there are clients and stations. If there can be no
 * such file, the log says so, and all is as if nothing had been left.
 *
 * Return: 0 or -ENOMEM.
 */
int estate_open(struct server *server);

/** estate_close() - what is not at its end is left for the next one. */
void estate_close(struct server *server);

/** estate_is_none() - has everything that was left been dealt with? */
bool estate_is_none(const struct server *server);

/** estate_awaits() - may somebody come back of whom the place does not know? */
bool estate_awaits(const struct server *server);

/** estate_returned() - a client has told us all: what it did not tell of is over. */
void estate_returned(struct server *server, const struct guest *guest);

/** estate_deadline() - when estate_settle() is next needed. */
struct cm_time estate_deadline(const struct server *server);

/** estate_settle() - end what nobody will come back to. To be called each turn. */
void estate_settle(struct server *server);

/** estate_introduce() - a client is known, or has a block of comm ids: tell the wills who it is. */
void estate_introduce(struct server *server, const struct guest *guest);

/** estate_handle() - the handle that a station of a port should have; -ENOSPC. */
int estate_handle(struct server *server, const char *device, uint8_t port_num);

#endif

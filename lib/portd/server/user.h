/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The users of a host: what all clients of one have together, for the quotas of a user. Who has no
 * client is remembered until he could have a full burst again, lest he get one by coming anew.
 */
#ifndef LIB_PORTD_SERVER_USER_H
#define LIB_PORTD_SERVER_USER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/time.h"
#include "lib/portd/server/quota.h"

#define USER_TURN 512 /* messages and requests of one user that a turn reads, and a datagram */

struct server;
struct client;

struct user {
	struct list link; /* in server.users */
	uid_t uid;
	uint16_t number; /* for the tracker; 0: of nobody */
	uint32_t n_clients;
	uint32_t n_ports;   /* ports.c counts */
	uint32_t n_blocks;  /* of comm ids */
	uint32_t n_tracked; /* the tracker counts */
	uint32_t n_queued;
	uint32_t n_asks;
	double tokens; /* what is left of its rate */
	struct cm_time tokens_at;
	double connects; /* how often he may connect now */
	struct cm_time connects_at;
	uint32_t n_waits;     /* messages that wait for link addresses, of ... */
	struct list hops;     /* ... these */
	struct list waits;    /* in server.waiting.users, if there are any */
	struct list requests; /* transmit entries: REQs, SIDR_REQs, which let answers go first */
	struct list sends;    /* in server.senders, if there are any */
	double turn;	      /* messages and requests that were read in this turn ... */
	uint64_t turn_no;     /* ... of the server */
	uint32_t was_refused; /* a bit a quota: the log says it once */
};

/** user_enter() - a client is of a user. Return: false when out of memory. */
bool user_enter(struct server *server, struct client *client, uid_t uid);

/**
 * user_may_connect() - may somebody connect once more?
 *
 * Before anything is done for him, since he may connect and leave in a loop, and spends nothing
 * else by that. Return: false if he has connected too often; the log says so once.
 */
bool user_may_connect(struct server *server, uid_t uid);

/** user_init() - one without clients. */
void user_init(struct user *user, uid_t uid);

/** user_leave() - it goes. */
void user_leave(struct client *client);

/**
 * user_may() - may the user of a client have one more?
 * @has: what it has
 *
 * Return: true for root. If not, the log says so, once for each quota.
 */
bool user_may(struct client *client, enum quota quota, uint32_t has);

/** user_room() - how many more may the user of a client have? UINT32_MAX for root. */
uint32_t user_room(const struct client *client, enum quota quota, uint32_t has);

/** user_may_track() - may a client, and its user, have one tracked connection more? */
bool user_may_track(struct client *client);

/** user_spend() - take from the rate of a client and its user. */
void user_spend(struct client *client, double tokens);

/** user_has_turn() - may its user be read from once more in this turn? */
bool user_has_turn(const struct client *client);

/** user_forget_all() - free those who are remembered; nobody has clients. */
void user_forget_all(struct server *server);

/** user_refill() - give both what the time that has passed has earned. */
void user_refill(struct client *client);

#endif

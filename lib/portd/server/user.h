/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The users of a host, each as long as it has clients: what all clients of one have together, for
 * the quotas of a user.
 */
#ifndef LIB_PORTD_SERVER_USER_H
#define LIB_PORTD_SERVER_USER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/time.h"
#include "lib/portd/server/quota.h"

struct server;
struct client;

struct user {
	struct list link; /* in server.users */
	struct list clients;
	uid_t uid;
	uint32_t n_clients;
	uint32_t n_tracked; /* the tracker counts */
	uint32_t n_queued;
	double tokens; /* what is left of its rate */
	struct cm_time tokens_at;
	uint32_t was_refused; /* a bit a quota: the log says it once */
};

/** user_enter() - a client is of a user. Return: false when out of memory. */
bool user_enter(struct server *server, struct client *client, uid_t uid);

/** user_leave() - it goes. */
void user_leave(struct client *client);

/**
 * user_may() - may the user of a client have one more?
 * @has: what it has; of what is counted here, user_has() says it
 *
 * Return: true for root. If not, the log says so, once for each quota.
 */
bool user_may(struct client *client, enum quota quota, uint32_t has);

/** user_has() - what all clients of its user have: USER_PORTS, USER_IDS, USER_SA. */
uint32_t user_has(const struct client *client, enum quota quota);

/** user_spend() - take from the rate of a client and its user. */
void user_spend(struct client *client, double tokens);

/** user_refill() - give both what the time that has passed has earned. */
void user_refill(struct client *client);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The users of a host: the resources that all clients of one user hold together, for the quotas of
 * a user. A user without clients is kept until a full burst would be available again, so that
 * reconnecting does not renew the burst.
 */
#ifndef LIB_PORTD_SERVER_CLIENTS_USER_H
#define LIB_PORTD_SERVER_CLIENTS_USER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/hash.h"
#include "base/list.h"
#include "lib/portd/server/clients/bucket.h"
#include "lib/portd/server/limits.h"

#define DOUBTS_LOG2    6
#define USER_WHY_BYTES 256

struct server;
struct client;
struct closing;

struct user {
	struct list link;    /* in users.all */
	struct list resting; /* in users.resting, while n_clients is 0 */
	struct hash_node by_uid;
	uid_t uid;
	uint16_t number; /* for the tracker, index in users.numbered; 0: of server.nobody */
	uint32_t n_clients;
	uint32_t n_ports;   /* maintained by ports.c */
	uint32_t n_tracked; /* maintained by the tracker */
	uint32_t n_queued;  /* datagrams in backlogs of its clients */
	uint32_t n_asks;
	struct list tables; /* answers that its clients are being told */
	struct list tells;  /* in server.tellers, if tables is not empty */
	uint32_t n_leaving; /* groups that its clients were the last members of */
	struct cm_time doubts[1 << DOUBTS_LOG2]; /* when a path to a GID last failed, by its hash */
	struct bucket rate;
	struct bucket connects; /* to cmportd */
	uint32_t n_waits;	/* messages waiting for link addresses */
	uint32_t n_requests;
	struct list lanes;	    /* by host: REQs and SIDR_REQs; responses go first */
	struct list sends;	    /* in server.senders, if lanes is not empty */
	struct list held_lanes;	    /* whose hosts take no more for now */
	struct list holds;	    /* in server.holders, if held_lanes is not empty */
	uint32_t turn;		    /* messages and requests read in turn turn_no */
	uint64_t turn_no;	    /* of the server */
	struct closing *closing;    /* received descriptors, see closer.h */
	struct closing *hanging_up; /* sockets with something in their queue */
	uint32_t was_refused;	    /* bitmap of quotas whose excess was logged */
	uint32_t n_turned_away;	    /* connects, since that was logged */
	struct cm_time turned_at;   /* when it was; 0 ns: never */
	bool has_lied;		    /* a client's report was refused; logged once */
};

struct users {
	struct list all;
	struct list resting; /* without clients, longest first */
	struct hash by_uid;
	unsigned int n;
	uint16_t last; /* the number assigned last */
	struct user *numbered[USERS_MAX];
};

/** users_init() - an empty table. Return: 0 or -ENOMEM. */
int users_init(struct users *users);

/**
 * user_enter() - account a client to its user
 *
 * If there are USERS_MAX users, one without clients is forgotten to make room.
 *
 * Return: false when out of memory, or if all users have clients or connections of ended clients.
 */
bool user_enter(struct server *server, struct client *client, uid_t uid);

/**
 * user_may_connect() - return whether a user may connect once more
 * @ret_user: the user, or NULL for one that is not known yet
 * @ret_why:  set unless the user may; has USER_WHY_BYTES
 *
 * To be checked before any resources are used, as connects are limited by nothing else.
 *
 * Return: 0; -EAGAIN if it has connected too often, or if all places but root's are taken;
 * -EDQUOT if it has too many clients.
 */
int user_may_connect(struct server *server, uid_t uid, struct user **ret_user, char *ret_why);

/** user_turned_away() - log that a user could not connect, at most once a minute, with a count */
void user_turned_away(struct server *server, struct user *user, uid_t uid, const char *why);

/** user_init() - initialize a user without clients */
void user_init(struct user *user, uid_t uid);

/** user_leave() - release the account of a client that has disconnected */
void user_leave(struct client *client);

/** user_has() - how much of a quota a user uses; PORTD_QUOTA_EACH if it is a rate */
uint32_t user_has(const struct server *server, const struct user *user, enum quota quota);

/**
 * user_may() - return whether a client's user may have more of a quota
 *
 * Return: true for root. The first refusal of each quota is logged.
 */
bool user_may(struct client *client, enum quota quota);

/** user_why() - why user_may() has just refused: which quota it is, and what raises it */
void user_why(const struct client *client, enum quota quota, char ret[USER_WHY_BYTES]);

/** user_room() - how much more of a quota a client's user may have; UINT32_MAX for root */
uint32_t user_room(const struct client *client, enum quota quota);

/** user_spend() - count a message of a client against its user's rate and turn */
void user_spend(struct client *client);

/** user_end_turn() - read from no client of its user any more in this turn */
void user_end_turn(struct client *client);

/** user_has_turn() - return whether the clients of its user may be read from again in this turn */
bool user_has_turn(const struct client *client);

/**
 * user_discard() - have a thread close a descriptor that this user has sent, because close() may
 *                  block
 * @user: NULL if unknown
 * @fd:   -1 is allowed
 */
void user_discard(struct server *server, struct user *user, int fd);

/** user_hang_up() - likewise for a unix socket of ours, which this user may have sent any through
 */
void user_hang_up(struct server *server, struct user *user, int socket);

/** users_fini() - free all users; there must be no clients */
void users_fini(struct server *server);

/** user_has_rate() - return whether a client's user has not used up its rate */
bool user_has_rate(const struct client *client);

#endif

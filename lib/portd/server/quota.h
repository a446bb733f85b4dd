/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Limits on the resources of a cmportd that one user, or one client, may use. One row a quota;
 * cmportd(8) prints the same table. The clients of root are exempt from quotas of a user, because
 * root may end cmportd anyway.
 */
#ifndef LIB_PORTD_SERVER_QUOTA_H
#define LIB_PORTD_SERVER_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

#define QUOTA_ALL_USERS 4   /* times the quota of one user is what all together may have */
#define QUOTA_LITTLE	256 /* a part so small of a quota is little */

/* X(number, name, default, unit) */
#define QUOTAS(X)                                                                             \
	X(USER_CLIENTS, "user-clients", 1024, "connections of one user to cmportd")           \
	X(USER_CONNECTS, "user-connects", 500, "times that one user may connect a second")    \
	X(USER_PORTS, "user-ports", 24576, "port numbers that one user has bound or leased")  \
	X(USER_IDS, "user-ids", 4096, "blocks of comm ids of one user")                       \
	X(USER_TRACKED, "user-tracked", 262144, "tracked connections of one user")            \
	X(USER_DEAD, "user-dead", 131072, "connections of ended programs of one user")        \
	X(USER_QUEUED, "user-queued", 2048, "datagrams that wait for clients of one user")    \
	X(USER_UNSENT, "user-unsent", 65536, "requests of one user that are not sent yet")    \
	X(USER_RATE, "user-rate", 200000, "messages and requests of one user a second")       \
	X(USER_SA, "user-sa", 4096, "queries, memberships and groups being left of one user") \
	X(USER_HOST, "user-host", 65536,                                                      \
	  "unanswered messages of one user's connections to a host")                          \
	X(USER_HOST_RATE, "user-host-rate", 2000, "more of these a second")                   \
	X(CLIENT_HELLO, "client-hello", 10000, "ms until the first request of a client")      \
	X(CLIENT_TRACKED, "client-tracked", 65536, "tracked connections of one client")       \
	X(CLIENT_RATE, "client-rate", 50000, "messages and requests of one client a second")  \
	X(CLIENT_SA, "client-sa", 1024, "queries and memberships of one client")              \
	X(PEER_RATE, "peer-rate", 20000,                                                      \
	  "requests, and messages for nobody, of one host a second")                          \
	X(STRANGERS_RATE, "strangers-rate", 100000,                                           \
	  "of these, of all hosts that have had no connection")

enum quota {
#define X(number, name, is, unit) QUOTA_##number,
	QUOTAS(X)
#undef X
	N_QUOTAS,
};

/* 0 selects the default. */
struct quotas {
	uint32_t is[N_QUOTAS];
};

/** quota_of() - the limit in effect */
uint32_t quota_of(const struct quotas *quotas, enum quota quota);

/** quota_of_all() - what all users together may have */
uint32_t quota_of_all(const struct quotas *quotas, enum quota quota);

/**
 * quota_leaves_share() - return whether a user may have one more without taking others' share
 * @has:  what he has
 * @all:  what all users together have
 * @most: what they may have
 *
 * A user who has little may have more up to @most. Other users must leave an eighth of @most to
 * them, and as much as they have to everybody, unless their quota exceeds a quarter of @most.
 */
bool quota_leaves_share(const struct quotas *quotas, enum quota quota, uint32_t has, uint32_t all,
			uint32_t most);

/** quota_name() - the name, for example "user-clients" */
const char *quota_name(enum quota quota);

/** quota_unit() - what the quota counts, for example "connections of one user to cmportd" */
const char *quota_unit(enum quota quota);

/**
 * quota_set() - set a quota from "NAME=NUMBER"
 *
 * Return: false if there is no such quota, or if NUMBER is not from 1 to 1,000,000,000.
 */
bool quota_set(struct quotas *quotas, const char *text);

#endif

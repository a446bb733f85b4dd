/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All limits of cmportd: what one user, one program and one remote host may take, so that the
 * others can go on. Within its limits each user is served in turn: a turn reads so many messages of
 * a user, or one that takes long. Root has no limits of a user, because it may end cmportd anyway.
 */
#ifndef LIB_PORTD_SERVER_LIMITS_H
#define LIB_PORTD_SERVER_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "cm/ids.h"

/* Quotas: what cmportd --quota sets; cmportd(8) prints the same table. X(number, name, is, unit) */
#define QUOTAS(X)                                                                              \
	X(USER_CLIENTS, "user-clients", 1024, "connections of one user to cmportd")            \
	X(USER_PORTS, "user-ports", 24576, "port numbers that one user has bound or leased")   \
	X(USER_CONNS, "user-conns", 262144, "connections of one user, with those being ended") \
	X(USER_QUEUED, "user-queued", 2048, "datagrams that wait for clients of one user")     \
	X(USER_UNSENT, "user-unsent", 65536, "requests of one user that are not sent yet")     \
	X(USER_RATE, "user-rate", 200000, "messages and requests of one user a second")        \
	X(HOST_RATE, "host-rate", 20000, "requests, and messages for nobody, of one host a second")

/* All users */
#define CLIENTS_MAX	 4096
#define ROOT_CLIENTS	 64   /* of these, for root */
#define USERS_MAX	 8192 /* with clients, or a used-up rate: twice CLIENTS_MAX */
#define USER_TURN	 64 /* messages of one user that a turn reads, and the rest of a datagram */
#define CONNECTS_S	 500  /* of a user: each takes a block of comm ids, of 65,536 ... */
#define CONNECTS_MAX	 2000 /* ... and these at once, as all programs of a job start */
#define WAITING_CONNECTS 64   /* that wait for accept(), of all users */
#define NET_NS_SHOWN_MAX 64   /* network namespaces of a user whose addresses are read */
#define ASKS_MAX	 4096 /* queries and memberships of a user: a port has 16,384 groups */
#define HOST_PORTS_MAX	 64
#define NOBODYS_MAX	 8192 /* unsent REQs and REJs of ended clients */
#define WAITING_MAX	 1024 /* messages for which a next hop of a port has no link address */

/* One port number, or one key of connections: each more is compared with all of these */
#define PORTS_SHARED_MAX  1024 /* claims of one port, of all clients */
#define PORTS_LISTEN_MAX  256  /* of these, listeners */
#define TRACKED_ALIKE_MAX 16   /* connections with one peer and comm id, or queue pair */

/* One client; a program usually is one */
#define HELLO_MS	 10000		  /* until its first request */
#define ID_BLOCKS_MAX	 CM_ID_BLOCKS_MAX /* of 65,536 comm ids */
#define PORTS_CLAIMS_MAX 65536		  /* port numbers, and addresses with one */
#define REQUESTS_MAX	 512		  /* unsent REQs; above, it is not read from */
#define BACKLOG_MAX	 64  /* datagrams that it has not read; REQs are dropped from half of it */
#define WAITS_MAX	 256 /* of WAITING_MAX; of what others leave, its user may have half ... */
#define WAITS_FEW	 4   /* ... and these in any case */

/* One remote host; hosts of one hash share an entry */
#define HOSTS_LOG2     13
#define HOSTS	       (1 << HOSTS_LOG2)
#define UNANSWERED_MAX 512   /* REQs that it has not answered: a quarter of its queue ... */
#define UNANSWERED_S   2000  /* ... and that many more a second: a listener may be slow */
#define REQUEST_BURST  4000  /* REQs to a host that answers, at once; 3/4 of host-rate a second */
#define SAID_FEW       512   /* messages that it has not answered, of a user, ... */
#define SAID_EACH      4     /* ... so many more for each connection of that user, ... */
#define SAID_MAX       65536 /* ... of all these, ... */
#define SAID_S	       2000  /* ... and that many more a second */

/* All hosts that have sent no message of a connection, as their addresses may be forged */
#define STRANGERS_TIMES	 5  /* their rate is so many times that of one host */
#define STRANGERS_HOPS	 50 /* next hops to be resolved for them at once ... */
#define STRANGERS_HOPS_S 10 /* ... and that many more a second */

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

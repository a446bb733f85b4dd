/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages whose next hop has no link address yet. They wait by user and hop, in their order, and
 * leave when the kernel announces the neighbour; a hop without news is looked at every 50 ms. To
 * look is a matter of system calls, and anybody can name hosts that are not there: so a hop is
 * looked at once for all messages of a user, users take turns, and a turn of the loop looks at a
 * few.
 */
#ifndef LIB_PORTD_SERVER_WAITING_H
#define LIB_PORTD_SERVER_WAITING_H

#include <stdbool.h>

#include "base/list.h"
#include "base/time.h"
#include "cm/index.h"
#include "lib/net/addr.h"
#include "mad/port.h"

#define WAITING_MAX	   1024 /* messages of a host port */
#define WAITS_MAX	   256	/* of one client, or of nobody; of one user half of what is left */
#define WAITING_LOOK_MS	   50
#define WAITING_LOOKS_MAX  16 /* at hops without news, before the rest of the host gets its turn */
#define WAITING_PAUSE_MS   4  /* between so many of those looks */
#define WAITING_LEAVES_MAX 64 /* messages in a turn */

struct server;
struct client;
struct host_port;
struct xmit;

struct waiting {
	struct cm_index hops;	    /* by user, host port, GID index and peer */
	struct list users;	    /* who has any; who had his turn goes to the end */
	struct cm_time look_at;	    /* the next time; CM_TIME_NEVER: nothing waits */
	struct cm_time pause_until; /* no looks at hops without news */
	struct cm_time moved_at;    /* routes have changed: news of all hops */
};

/** waiting_init() - nothing waits. Return: 0 or -ENOMEM, and then waiting_fini() is allowed. */
int waiting_init(struct waiting *waiting, uint64_t secret);

/** waiting_fini() - all host ports are closed. */
void waiting_fini(struct waiting *waiting);

/** waiting_for() - return whether messages of the sender's user already wait for that hop. */
bool waiting_for(struct server *server, const struct host_port *host_port,
		 const struct client *sender, const struct mad_path *path);

/** waiting_put() - a message waits from now on. It is freed, and counted as lost, if there is no
 * room. */
void waiting_put(struct server *server, struct xmit *xmit);

/** waiting_forget_sender() - a client goes: its messages are nobody's. */
void waiting_forget_sender(struct server *server, const struct client *sender);

/** waiting_port_gone() - free what waits at a host port. */
void waiting_port_gone(struct server *server, const struct host_port *host_port);

/** waiting_neighbour() - a neighbour has a link address now. */
void waiting_neighbour(struct server *server, const union addr *addr);

/** waiting_moved() - routes have changed, or nobody knows what has. */
void waiting_moved(struct server *server);

/** waiting_look() - send what can leave, and forget what has waited for too long. */
void waiting_look(struct server *server);

#endif

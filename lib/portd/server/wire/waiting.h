/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages whose next hop has no link address yet. They are queued by hop, in order, and sent when
 * the kernel announces the neighbour; a hop without an announcement is checked every 50 ms. A check
 * costs system calls, and any user can name hosts that do not exist. Therefore one check of a hop
 * serves all its messages, announced hops come first, and the number of checks per turn is limited.
 */
#ifndef LIB_PORTD_SERVER_WIRE_WAITING_H
#define LIB_PORTD_SERVER_WIRE_WAITING_H

#include <stdbool.h>

#include "base/list.h"
#include "base/time.h"
#include "cm/index.h"
#include "lib/net/addr.h"
#include "mad/port.h"

#define WAITING_LOOK_MS	   50
#define WAITING_LOOKS_MAX  16 /* checks of unannounced hops per turn */
#define WAITING_PAUSE_MS   4  /* after WAITING_LOOKS_MAX such checks */
#define WAITING_LEAVES_MAX 64 /* messages sent or dropped per turn */

struct server;
struct client;
struct host_port;
struct xmit;

struct waiting {
	struct cm_index hops;	    /* keyed by host port, GID index and peer */
	struct list in_order;	    /* announced ones first, then by looked_at */
	struct cm_time look_at;	    /* next check; CM_TIME_NEVER: nothing waits */
	struct cm_time pause_until; /* no checks of unannounced hops until then */
	struct cm_time moved_at;    /* latest change of routes, which affects all hops */
};

/**
 * waiting_init() - initialize empty queues
 *
 * Return: 0 or -ENOMEM; waiting_fini() is allowed after both.
 */
int waiting_init(struct waiting *waiting, uint64_t secret);

/** waiting_fini() - free the tables; all host ports must be closed */
void waiting_fini(struct waiting *waiting);

/** waiting_for() - return whether messages already wait for that hop */
bool waiting_for(struct server *server, const struct host_port *host_port,
		 const struct mad_path *path);

/** waiting_put() - queue a message; if there is no room, it is freed and counted as lost */
void waiting_put(struct server *server, struct xmit *xmit);

/** waiting_forget_sender() - detach the queued messages of a client that ends */
void waiting_forget_sender(struct server *server, struct client *sender);

/** waiting_port_gone() - free the messages queued at a host port */
void waiting_port_gone(struct server *server, const struct host_port *host_port);

/** waiting_neighbour() - note that a neighbour has a link address now */
void waiting_neighbour(struct server *server, const union addr *addr);

/** waiting_moved() - note that routes have changed, or may have */
void waiting_moved(struct server *server);

/** waiting_look() - send messages that can be sent, and drop those that have waited too long */
void waiting_look(struct server *server);

#endif

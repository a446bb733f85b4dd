/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The complete state of a running cmportd, reachable from struct server. One thread, no locks;
 * nothing blocks. A turn of the event loop processes all pending input, sends the responses at its
 * end, and then sends a few REQs, so that no REP waits behind a burst of REQs.
 *
 * All CM messages pass through cmportd in both directions, which lets it track connections without
 * reports from clients, and costs a program less than posting to the device itself would.
 *
 * The rooms, each of which calls those above it only:
 *
 *   files/    what outlives this process: the state file, holders of ports, the socket's folder
 *   ledger/   tracked connections
 *   ports/    port spaces and leases, by network namespace
 *   clients/  limits and users; who becomes a client, and what it is sent
 *   sa/       queries of clients to subnet administrators
 *   wire/     the ports of this host: receiving, and sending in the right order
 *   routing/  which client receives a message, and what a client may send; ended programs
 *   asks/     what clients send: messages, requests, queries
 *   server.c  start, event loop, timers and shutdown
 */
#ifndef LIB_PORTD_SERVER_SERVER_STATE_H
#define LIB_PORTD_SERVER_SERVER_STATE_H

#include <sys/types.h>

#include "cm/core.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/loop.h"
#include "mad/port.h"
#include "mad/sender.h"
#include "mad/umad.h"
#include "lib/portd/proto/port_file.h"
#include "lib/portd/proto/trace_ring.h"
#include "lib/portd/proto/proto.h"
#include "lib/portd/server/limits.h"
#include "lib/portd/server/ports/net_ns.h"
#include "lib/portd/server/files/process.h"
#include "lib/portd/server/wire/unsent.h"
#include "lib/portd/server/server.h"
#include "lib/portd/server/wire/remote_hosts.h"
#include "lib/portd/server/ledger/tracked.h"
#include "lib/portd/server/clients/user.h"
#include "lib/portd/server/clients/client.h"
#include "lib/portd/server/wire/host_port.h"
#include "lib/portd/server/wire/waiting.h"

#define NOBODY	       UINT16_MAX
#define ID_BLOCKS      65536 /* of 65536 comm ids each */
#define ID_BLOCK_SHIFT 16
#define REFUSALS_MAX   16 /* refused connections per turn */
#define SAY_AGAIN_NS   (60000 * CM_NS_PER_MS)

struct server;

struct server {
	struct server_options options;
	/* the upcall from wire/: a message arrived at a host port, sent from @source_qpn */
	void (*received)(struct server *server, struct host_port *host_port,
			 const struct mad_path *path, uint32_t source_qpn,
			 const uint8_t mad[MAD_BYTES]);
	struct socket_dir *dir;
	struct state_file *state_file; /* owned by dir */
	uint16_t *port_holders;	       /* mapped, see port_holders.h; or NULL */
	struct loop loop;
	struct watch listening, net;
	struct watch stop, reload;
	struct port_file port_file;
	struct cm_time stop_at;	     /* shutdown was requested; its last deadline */
	struct cm_time linger_until; /* shutdown deadline while clients are connected */
	bool has_one_client;	     /* client_fd was given; the server ends after that client */
	bool any_leaving, any_unread;
	bool any_port_news; /* a host port is_gone or has_moved */
	uint64_t turn_no;
	struct cm_time now; /* start of this turn */
	struct cm_time idle_since;
	struct cm_time listens_again_at; /* 0 ns: connections are accepted */
	struct cm_time full_at;		 /* when the log said that none are; 0 ns: never */
	struct cm_time begun_at;
	struct cm_time opens_again_at; /* a port that was taken */
	struct cm_time grace_until;    /* 0 ns: no grace period */
	uint64_t grace_turn;	       /* the last in which it was looked at */
	struct cm_core core;	       /* ended processes' connections, stray messages */
	struct tracker *tracker;
	struct hosts hosts;
	struct cm_time recovery_look_at;   /* when to check the orphans next */
	const struct tracked *next_orphan; /* where to go on; NULL: with the first */
	struct process_look process_look;  /* the latest */
	uint64_t n_process_looks;	   /* so far */
	struct net_ns *home;
	struct client *client[CLIENTS_MAX];
	unsigned int n_clients;
	int64_t n_buffer_bytes; /* of all clients' data sockets */
	struct host_port *host_port[HOST_PORTS_MAX];
	unsigned int n_host_ports; /* highest handle ever used, plus one */
	struct users users;
	struct closer
		*closer;     /* NULL: the only client is trusted, its descriptors are closed here */
	struct user nobody;  /* our own core, and clients that have disconnected */
	struct list senders; /* users with requests to send, in round-robin order */
	struct list holders; /* users with requests that their hosts do not take yet, likewise */
	struct cm_time resume_at; /* when to look at these next */
	struct cm_index lanes;	  /* their unsent requests by user and peer */
	struct cm_index asks;	  /* pending queries by client and ask_id, see sa/ */
	struct list tellers;	  /* users whose clients are being told tables */
	struct waiting waiting;
	struct list strangers; /* clients that have sent no request yet, oldest first */
	struct list filled;    /* clients with an unsent batch */
	struct batch *spare;   /* unused one, or NULL */
	unsigned int n_throttled;
	struct cm_time unthrottle_at; /* when to look at them next */
	struct trace_ring recording;  /* the latest messages, in a file; zeros: none */
	uint32_t n_stats;	      /* STAT queries so far */
	bool requests_left;	      /* the next turn must not wait */
	bool asks_again;	      /* nor may this one: a request was deferred */
	uint16_t block_owner[ID_BLOCKS];
	/*
	 * When the owner ended; zeros: never. Blocks are lent in turn, so one is not soon lent
	 * again. It may be: held back, one user's short-lived programs would use up all of them.
	 */
	struct cm_time block_left[ID_BLOCKS];
	struct portd_datagram in; /* the datagram being read */
};

static inline struct host_port *host_port_of(struct cm_port *cm)
{
	return (struct host_port *)cm;
}

/** stat_count() - count a message at a host port; @mad is NULL if its kind is unknown */
static inline void stat_count(struct host_port *host_port, enum portd_stat_counter what,
			      const uint8_t *mad)
{
	host_port->passed[what][mad ? cm_tally_kind(cm_mad_attr(mad)) : CM_TALLY_NONE]++;
}

/** server_says_again() - return whether what the log said then may be said once more */
static inline bool server_says_again(const struct server *server, struct cm_time said_at)
{
	return !said_at.ns || cm_time_reached(cm_time_after(said_at, SAY_AGAIN_NS), server->now);
}

/** server_next_client() - the next client from index @at, which is advanced, or NULL */
static inline struct client *server_next_client(const struct server *server, unsigned int *at)
{
	while (*at < CLIENTS_MAX)
		if (server->client[(*at)++])
			return server->client[*at - 1];
	return NULL;
}

/** server_next_host_port() - like server_next_client(), for open ports */
static inline struct host_port *server_next_host_port(const struct server *server, unsigned int *at)
{
	while (*at < server->n_host_ports)
		if (server->host_port[(*at)++])
			return server->host_port[*at - 1];
	return NULL;
}

/* The body may remove any of the elements. */
#define for_each_client(client, server) \
	for (unsigned int at_ = 0; ((client) = server_next_client(server, &at_));)
#define for_each_host_port(host_port, server) \
	for (unsigned int at_ = 0; ((host_port) = server_next_host_port(server, &at_));)

/** server_close() - stop watching a descriptor, and close it. */
static inline void server_close(struct server *server, struct watch *watch)
{
	int fd = watch->fd;

	loop_unwatch(&server->loop, watch);
	fd_close(&fd);
}

/** client_host_port() - look up a port that the client has opened. Return: NULL if it has not. */
static inline struct host_port *client_host_port(const struct server *server,
						 const struct client *client, uint8_t handle)
{
	return handle < HOST_PORTS_MAX && client->host_ports >> handle & 1
		       ? server->host_port[handle]
		       : NULL;
}

#endif

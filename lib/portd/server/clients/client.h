/* SPDX-License-Identifier: BSD-2-Clause */
/* A client of cmportd: two sockets, and all that it has here. */
#ifndef LIB_PORTD_SERVER_CLIENTS_CLIENT_H
#define LIB_PORTD_SERVER_CLIENTS_CLIENT_H

#include <sys/types.h>

#include "base/list.h"
#include "base/loop.h"
#include "base/time.h"
#include "lib/portd/proto/proto.h"
#include "lib/portd/server/limits.h"
#include "lib/portd/server/clients/read_batch.h"

struct net_ns;
struct server;
struct user;

/* Messages to be sent to a client. */
struct batch {
	struct list link;
	struct portd_datagram datagram;
};

struct client {
	struct server *server;
	uint16_t index;
	pid_t pid;	/* 0 if the process is in a pid namespace that we cannot see */
	uint32_t start; /* process_start() of pid */
	uid_t uid;
	struct user *user;
	struct list stranger; /* in server.strangers until the first request */
	struct cm_time speaks_until;
	struct net_ns *net_ns; /* whose port spaces the client uses */
	bool welcome;	       /* HELLO was accepted */
	bool resuming;
	bool leaving;	      /* close at the end of this turn */
	bool is_ending;	      /* sockets are closed, connections are being ended */
	bool is_disconnected; /* no longer read from */
	bool has_asked;
	struct portd_record asked; /* deferred: HELLO in the grace period, BIND for a turn */
	uint64_t asked_turn;	   /* of the server, in which it was deferred */
	struct cm_time opens_at;   /* when a deferred OPEN_PORT is due */
	bool looked_again;
	int asked_fd;
	struct watch control;
	struct watch data;
	struct list asks; /* pending queries to subnet administrators */
	unsigned int n_asks;
	uint64_t host_ports; /* bitmap of opened port handles */
	unsigned int n_blocks;
	uint16_t block[ID_BLOCKS_MAX];
	bool throttled;
	bool visits;		    /* makes no connections */
	uint32_t stat_no, stat_pid; /* of the latest STAT query; 0: none, all */
	uint32_t n_stats_before;    /* its HELLO */
	struct cm_time stat_at;
	struct list requests; /* transmit entries in lanes of its user, oldest first */
	unsigned int n_requests;
	unsigned int n_waits;	 /* transmit entries waiting for a hop */
	struct read_batch batch; /* datagrams to try to read per turn */
	int n_buffer_bytes;	 /* of the data socket */
	struct list backlog;	 /* batches that the socket had no room for */
	unsigned int n_backlog;
	struct batch *out; /* being filled; sent at the end of the turn */
	struct list link;  /* in server.filled while out is set */
};

#endif

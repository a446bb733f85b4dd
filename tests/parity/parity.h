/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parity program: an ordinary librdmacm client and server that print every return value, errno,
 * event and id field they see. It is compiled once and run against stock librdmacm and against this
 * one; run.py compares the outputs.
 *
 * A scenario is one function for each side (local ones have no server side). Each runs in a process
 * of its own, with a time limit, so that neither a crash nor a leftover id of one scenario affects
 * the next.
 */
#ifndef PARITY_H
#define PARITY_H

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <rdma/rdma_cma.h>

/* How long a scenario waits for an expected event, and for an unexpected one. */
#define PATIENCE_MS 60000
#define QUIET_MS    150

/* Timeout passed to rdma_resolve_addr and rdma_resolve_route. */
#define RESOLVE_MS 4000

/* What a scenario's process knows of the two hosts. */
struct scene {
	struct sockaddr_storage self; /* an address of this host, port 0 */
	struct sockaddr_storage peer; /* an address of the other host, port 0 */
	sa_family_t family;	      /* of both */
	uint16_t port;		      /* host byte order; this scenario's own */
	int control;		      /* socket to the other side's process, -1 in local ones */
	struct rdma_event_channel *channel;
};

enum scenario_flags {
	SLOW = 1, /* waits for timers: run beside the others */
	LONG = 2, /* minutes: run only on request */
	V4_ONLY = 4,
	V6_ONLY = 8,
	ALONE = 16, /* changes the host's settings: nothing may run beside it */
	BARE = 32,  /* starts without a channel: forks before it uses the library */
};

struct scenario {
	const char *name;
	void (*client)(struct scene *s);
	void (*server)(struct scene *s); /* NULL: local, the other host only has to exist */
	unsigned flags;
	unsigned limit_s; /* 0: the usual time limit */
	const char *what; /* one sentence */
};

/* The rows of a theme's table. A local scenario has no server; LIMIT: in seconds. */
#define LOCAL(name, client, flags, what) LOCAL_LIMIT(name, client, flags, 0, what)
#define LOCAL_LIMIT(name, client, flags, limit, what)  \
	{                                              \
		name, client, NULL, flags, limit, what \
	}
#define PAIR(name, client, server, flags, what) PAIR_LIMIT(name, client, server, flags, 0, what)
#define PAIR_LIMIT(name, client, server, flags, limit, what) \
	{                                                    \
		name, client, server, flags, limit, what     \
	}
#define LAST_SCENARIO                        \
	{                                    \
		NULL, NULL, NULL, 0, 0, NULL \
	}

extern const struct scenario args_scenarios[], bind_scenarios[], option_scenarios[],
	resolve_scenarios[], qp_scenarios[], refuse_scenarios[], connect_scenarios[],
	param_scenarios[], disconnect_scenarios[], destroy_scenarios[], event_scenarios[],
	migrate_scenarios[], external_scenarios[], state_scenarios[], gone_scenarios[],
	datagram_scenarios[], datagram_odd_scenarios[], datagram_state_scenarios[],
	sync_scenarios[], exit_scenarios[], backlog_scenarios[], account_scenarios[],
	conflict_scenarios[], identity_scenarios[], endpoint_scenarios[], srq_scenarios[],
	move_scenarios[], ece_scenarios[], type_scenarios[], multicast_scenarios[],
	multicast_data_scenarios[], bad_scenarios[], verbs_scenarios[], killed_scenarios[],
	signal_scenarios[], remain_scenarios[], forked_scenarios[], resolve_odd_scenarios[];

/**
 * find_scenario() - look a scenario up by name
 * @name: its name
 * @port: out: the port it has for itself on this host, host byte order; may be NULL
 *
 * Return: the scenario, or NULL.
 */
const struct scenario *find_scenario(const char *name, uint16_t *port);

/**
 * each_scenario() - call a function for every scenario, in table order
 * @visit: gets the scenario and @arg
 * @arg:   passed on
 */
void each_scenario(void (*visit)(const struct scenario *, void *), void *arg);

#endif

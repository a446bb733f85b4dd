/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One port's view of the subnet administrator: pending requests, known paths, joined multicast
 * groups. Pure: time, calls and MADs go in; MADs and answers come out. cmportd has one for each of
 * its InfiniBand ports and serves all programs from it; so does a program that owns its ports.
 */
#ifndef MAD_SA_AGENT_H
#define MAD_SA_AGENT_H

#include "base/hash.h"
#include "mad/sa/flight.h"
#include "mad/sa/paths.h"

#define SA_WAIT_MS_MIN (SA_TRIES * SA_TRY_MS_MIN)
#define SA_LEAVE_MS    800   /* four transmissions */
#define SA_RENEW_MS    60000 /* how long a new administrator may take to start */
#define SA_RENEW_MAX   64    /* groups that are renewed in a call */
#define SA_GROUPS_MAX  16384 /* several times what one user may have */

/*
 * A request of a client. The message defines it: GET or GET_TABLE of a PathRecord, a
 * ServiceRecord or a MCMemberRecord; or SET of a MCMemberRecord, which joins a group.
 */
struct sa_ask {
	struct list link; /* in the list of clients with the same request */
	struct cm_timer timer;
	struct query *query; /* the request on the wire; NULL: none */
	struct sa_group *group;
	bool is_reported;  /* its membership was reported */
	struct sa_msg msg; /* from sa_msg_init(); its transaction id is not used */
	unsigned int timeout_ms;
	struct cm_time since; /* paths that were known then or before do not count; 0 ns: all do */
	uint8_t turn;	      /* less than SA_TURNS: requests of one turn leave room for others */
	uint16_t payer;	      /* for agent.leaving */
	/*
	 * Called once, with the answer or an error; a table remains valid until the request is
	 * withdrawn, which is required then. Errors: -ETIMEDOUT, -EINVAL, -ENOENT, -ENOMEM,
	 * -ENOSPC. For a group called again, with -ENETRESET, if the membership is lost later. It
	 * may ask and withdraw.
	 */
	void (*done)(struct sa_ask *ask, int err, const struct sa_msg *answer);
};

/* What a port knows of its subnet, from ibv_query_port(). */
struct sa_subnet {
	uint16_t lid;
	uint16_t sm_lid;
	uint8_t sm_sl;
	bool is_active;
};

struct sa_agent {
	struct sa_flights flights;
	struct sa_paths *paths; /* NULL until one is known */
	struct hash queries;	/* requests on the wire, each shared by all clients with the same
				   request */
	struct list tables;	/* queries whose answers were tables, until nobody needs them */
	uint64_t secret;	/* hash key, since clients choose the requests */
	struct cm_timers waits; /* of all requests, by their own timeouts */
	struct list groups;
	struct hash memberships; /* the groups: see joined_group.c */
	unsigned int n_groups;
	uint32_t n_renewals; /* times that all groups had to be renewed */
	struct sa_subnet subnet;
	struct cm_time now; /* of the current call */
	uint64_t n_from_cache;
	/*
	 * Called when nobody wants a group any more, with the payer of its last member and 1, and
	 * when that is over, with -1. May be NULL.
	 */
	void (*leaving)(struct sa_agent *agent, uint16_t payer, int n);
	/* Whether others on this host are in a group: then no DELETE is sent. May be NULL. */
	bool (*is_shared)(const struct mad_gid *mgid);
};

/**
 * sa_agent_init() - initialise without requests and paths
 * @seed:   start of the transaction ids
 * @secret: random
 * @send:   sends a MAD; responses after @wait_ms milliseconds are ignored
 */
void sa_agent_init(struct sa_agent *agent, uint32_t seed, uint64_t secret,
		   void (*send)(void *arg, const uint8_t mad[MAD_BYTES], unsigned int wait_ms),
		   void *arg);

/** sa_agent_fini() - drop all requests; calls no done() and sends nothing. */
void sa_agent_fini(struct sa_agent *agent);

/**
 * sa_agent_subnet() - the port's attributes have changed
 * @reregister: the administrator wants memberships to be reported again
 *
 * A change of LID or administrator invalidates known paths, renews memberships, and retransmits
 * outstanding requests.
 */
void sa_agent_subnet(struct sa_agent *agent, const struct sa_subnet *subnet, bool reregister,
		     struct cm_time now);

/** sa_agent_ask() - ask, or join a group. May call done() before it returns. */
void sa_agent_ask(struct sa_agent *agent, struct sa_ask *ask, struct cm_time now);

/**
 * sa_agent_withdraw() - cancel a request or leave a group; done() is not called any more
 *
 * The last member leaves the group. No effect on a request that was answered or never made.
 */
void sa_agent_withdraw(struct sa_agent *agent, struct sa_ask *ask, struct cm_time now);

/** sa_agent_forget() - like sa_agent_withdraw(), without a message: the agent is about to end */
void sa_agent_forget(struct sa_agent *agent, struct sa_ask *ask);

/** sa_agent_input() - process a received MAD of class SA. */
void sa_agent_input(struct sa_agent *agent, const uint8_t *mad, size_t bytes, struct cm_time now);

/** sa_agent_expire() - run the first timers that are due, as sa_flights_expire(). */
void sa_agent_expire(struct sa_agent *agent, struct cm_time now);

/** sa_agent_deadline() - when to call sa_agent_expire() next. */
struct cm_time sa_agent_deadline(const struct sa_agent *agent);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The subnet administrator as seen from one port: what was asked of it, the paths that it has told,
 * the multicast groups that are joined. Pure: time, calls and MADs go in, MADs and answers come
 * out. cmportd has one for each of its InfiniBand ports and serves all programs from it; a program
 * that owns its ports itself has them, too.
 */
#ifndef MAD_SA_AGENT_H
#define MAD_SA_AGENT_H

#include "base/hash.h"
#include "mad/sa/flight.h"
#include "mad/sa/paths.h"

#define SA_LEAVE_MS   800   /* four transmissions */
#define SA_RENEW_MS   60000 /* how long another administrator may take to begin */
#define SA_GROUPS_MAX 4096

/*
 * Somebody who asks. The message says what for: a GET of a PathRecord, a ServiceRecord or a
 * MCMemberRecord; or a SET of a MCMemberRecord, which joins a group.
 */
struct sa_ask {
	struct list link;      /* of those who wait for the same */
	struct errand *errand; /* the question that it waits for; NULL if it waits for none */
	struct sa_group *group;
	bool is_told;	   /* that it is a member */
	struct sa_msg msg; /* begun by sa_msg_init(), its transaction id is not used */
	unsigned int timeout_ms;
	/*
	 * Called once, with the answer or why there is none: -ETIMEDOUT, -EINVAL, -ENOMEM, -ENOSPC.
	 * For a group again, with -ENETRESET, if the membership was lost later. It may ask and
	 * withdraw.
	 */
	void (*done)(struct sa_ask *ask, int err, const struct sa_msg *answer);
};

/* What a port is told of its subnet, as ibv_query_port() has it. */
struct sa_subnet {
	uint16_t lid;
	uint16_t sm_lid;
	uint8_t sm_sl;
	bool is_active;
};

struct sa_agent {
	struct sa_flights flights;
	struct sa_paths *paths; /* NULL until there is one */
	struct hash errands;	/* questions under way, each for all who ask it */
	uint64_t secret;	/* clients choose what they ask */
	struct list groups;
	unsigned int n_groups;
	struct sa_subnet subnet;
	struct cm_time now; /* of the call that is being served */
	uint64_t n_from_cache;
};

/**
 * sa_agent_init() - nothing asked, nothing known
 * @seed:   where transaction ids begin
 * @secret: random
 * @send:   puts a MAD on the wire; @wait_ms: an answer that comes later is of no use
 */
void sa_agent_init(struct sa_agent *agent, uint32_t seed, uint64_t secret,
		   void (*send)(void *arg, const uint8_t mad[MAD_BYTES], unsigned int wait_ms),
		   void *arg);

/** sa_agent_fini() - forget all who ask, without a word to them or to the administrator. */
void sa_agent_fini(struct sa_agent *agent);

/**
 * sa_agent_subnet() - the port was told something
 * @reregister: the administrator wants to hear again who is in which group
 *
 * Another LID or administrator makes known paths worthless and memberships to be renewed, and what
 * is under way is asked once more.
 */
void sa_agent_subnet(struct sa_agent *agent, const struct sa_subnet *subnet, bool reregister,
		     struct cm_time now);

/** sa_agent_ask() - ask, or join. done() may be called before it returns. */
void sa_agent_ask(struct sa_agent *agent, struct sa_ask *ask, struct cm_time now);

/**
 * sa_agent_withdraw() - no longer interested: done() is not called any more
 *
 * The last one who is in a group leaves it. Harmless for who has had an answer, or none to expect.
 */
void sa_agent_withdraw(struct sa_agent *agent, struct sa_ask *ask, struct cm_time now);

/** sa_agent_revalidate() - paths to this port lead nowhere, so the next one is asked for anew. */
void sa_agent_revalidate(struct sa_agent *agent, const struct mad_gid *dgid);

/** sa_agent_input() - a MAD of class SA has arrived. */
void sa_agent_input(struct sa_agent *agent, const uint8_t *mad, size_t bytes, struct cm_time now);

/** sa_agent_expire() - run timers that are due. */
void sa_agent_expire(struct sa_agent *agent, struct cm_time now);

/** sa_agent_deadline() - when sa_agent_expire() is next needed. */
struct cm_time sa_agent_deadline(const struct sa_agent *agent);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast groups of this port: one membership for all local members of a group, because a leave
 * would end it for all of them.
 */
#ifndef MAD_SA_JOINED_GROUP_H
#define MAD_SA_JOINED_GROUP_H

#include "mad/sa/agent.h"

enum sa_group_state {
	SA_GROUP_JOINING,
	SA_GROUP_WITHDRAWN, /* joining, or renewing, but nobody wants it any more */
	SA_GROUP_MEMBER,
	SA_GROUP_RENEWING, /* probably still a member */
	SA_GROUP_LEAVING,  /* new members wait until it is over */
};

struct sa_group {
	struct list link;      /* in agent.groups: those that are due to be renewed come first */
	uint32_t n_renewals;   /* agent.n_renewals when it was made, or renewed */
	struct hash_node node; /* in agent.memberships: see joined_group.c */
	struct sa_agent *agent;
	enum sa_group_state state;
	uint16_t payer;	      /* while it is withdrawn or being left: of its last member */
	struct sa_msg joined; /* the request, then its response */
	struct sa_msg asked;
	struct list members; /* sa_ask.link */
	struct sa_flight flight;
};

/** group_join() - add a member. */
void group_join(struct sa_agent *agent, struct sa_ask *ask);

/** group_leave() - remove a member. */
void group_leave(struct sa_agent *agent, struct sa_ask *ask);

/** groups_renew() - begin to report all memberships again, with the first SA_RENEW_MAX */
void groups_renew(struct sa_agent *agent);

/** groups_renew_some() - report the next SA_RENEW_MAX memberships again */
void groups_renew_some(struct sa_agent *agent);

/** groups_are_due() - return whether memberships are left to be reported */
bool groups_are_due(const struct sa_agent *agent);

/** groups_free() - free all; sends nothing. */
void groups_free(struct sa_agent *agent);

#endif

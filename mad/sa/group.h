/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast groups that this port is a member of: one membership for all who are in it, because one
 * leave would end it for all.
 */
#ifndef MAD_SA_GROUP_H
#define MAD_SA_GROUP_H

#include "mad/sa/agent.h"

enum sa_group_state {
	SA_GROUP_JOINING,
	SA_GROUP_MEMBER,
	SA_GROUP_RENEWING, /* a member, as far as we know */
	SA_GROUP_LEAVING,  /* who comes now waits until that is over */
};

struct sa_group {
	struct list link; /* in agent.groups */
	struct sa_agent *agent;
	enum sa_group_state state;
	struct sa_msg joined; /* the question, then the answer to it */
	struct sa_msg asked;
	struct list members; /* sa_ask.link */
	unsigned int timeout_ms;
	struct sa_flight flight;
};

/** group_join() - have an ask be a member. */
void group_join(struct sa_agent *agent, struct sa_ask *ask);

/** group_leave() - it no longer is. */
void group_leave(struct sa_agent *agent, struct sa_ask *ask);

/** groups_renew() - tell the administrator of all memberships again. */
void groups_renew(struct sa_agent *agent);

/** groups_free() - without a word. */
void groups_free(struct sa_agent *agent);

#endif

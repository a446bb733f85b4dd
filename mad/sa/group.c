/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memberships: see group.h.
 */
#include "mad/sa/group.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LEAVE_MASK (SA_MEMBER_MGID | SA_MEMBER_PORT_GID | SA_MEMBER_JOIN_STATE)

static struct sa_group *group_of(struct sa_flight *flight)
{
	return container_of(flight, struct sa_group, flight);
}

static struct sa_ask *first_of(struct sa_group *group)
{
	return container_of(group->members.next, struct sa_ask, link);
}

/* --- the table ------------------------------------------------------------ */

static uint64_t hash_membership(const struct sa_agent *agent, const struct mad_gid *mgid,
				const struct sa_member *asked)
{
	uint64_t words[5] = { 0 };
	unsigned int i;

	memcpy(words, mgid, sizeof(*mgid));
	memcpy(words + 2, &asked->port_gid, sizeof(asked->port_gid));
	words[4] = asked->join_state;
	for (i = 0; i < 5; i++)
		words[i] = (words[i] + agent->secret) * (agent->secret | 1);
	return hash_bytes(words, sizeof(words));
}

static bool is_same_gid(const struct mad_gid *a, const struct mad_gid *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* MGID 0 asks the administrator for a new group. */
static bool asks_for_new(const struct mad_gid *mgid)
{
	static const struct mad_gid none;

	return is_same_gid(mgid, &none);
}

/*
 * The MGID that counts is that of the response: the administrator may have chosen it. A group
 * without one is not looked for, and thousands of them would share a chain.
 */
static void file_group(struct sa_group *group)
{
	struct sa_agent *agent = group->agent;
	const struct mad_gid *mgid = &group->joined.member.mgid;

	hash_remove(&agent->memberships, &group->node);
	if (!asks_for_new(mgid))
		hash_insert(&agent->memberships, &group->node,
			    hash_membership(agent, mgid, &group->asked.member));
}

static void set_state(struct sa_group *group, enum sa_group_state state)
{
	struct sa_agent *agent = group->agent;

	if (agent->leaving && (group->state == SA_GROUP_LEAVING) != (state == SA_GROUP_LEAVING))
		agent->leaving(agent, group->payer, state == SA_GROUP_LEAVING ? 1 : -1);
	group->state = state;
}

static void group_free(struct sa_group *group)
{
	set_state(group, SA_GROUP_JOINING);
	hash_remove(&group->agent->memberships, &group->node);
	list_remove(&group->link);
	group->agent->n_groups--;
	free(group);
}

static void detach_ask(struct sa_ask *ask)
{
	list_remove(&ask->link);
	ask->group = NULL;
}

/* --- requests ------------------------------------------------------------- */

static sa_landed join_landed, renewal_landed, leave_landed;

static void start_flight(struct sa_group *group, enum sa_group_state state, sa_landed *landed,
			 unsigned int timeout_ms)
{
	set_state(group, state);
	group->flight.landed = landed;
	sa_flight_start(&group->agent->flights, &group->flight, timeout_ms, group->agent->now);
}

static void start_join(struct sa_group *group)
{
	group->flight.msg = group->asked;
	group->flight.turn = first_of(group)->turn;
	start_flight(group, SA_GROUP_JOINING, join_landed, group->timeout_ms);
}

/* @last: a member of it, or who was one until now */
static void start_leave(struct sa_group *group, const struct sa_ask *last)
{
	const struct sa_member *member = &group->joined.member;
	struct sa_msg *msg = &group->flight.msg;

	sa_msg_init(msg, SA_METHOD_DELETE, SA_ATTR_MCMEMBER_RECORD, LEAVE_MASK, 0);
	msg->member.mgid = member->mgid;
	msg->member.port_gid = group->asked.member.port_gid;
	msg->member.join_state = group->asked.member.join_state;
	group->payer = last->payer;
	group->flight.turn = last->turn;
	start_flight(group, SA_GROUP_LEAVING, leave_landed, SA_LEAVE_MS);
}

/* --- responses ------------------------------------------------------------ */

/* The group's members lose it; done() may ask again at once, for a new group. */
static void dismiss_all(struct sa_group *group, int err)
{
	struct list gone;
	struct sa_ask *ask;

	list_init(&gone);
	while (!list_is_empty(&group->members)) {
		ask = first_of(group);
		detach_ask(ask);
		list_append(&gone, &ask->link);
	}
	while (!list_is_empty(&gone)) {
		ask = container_of(gone.next, struct sa_ask, link);
		list_remove(&ask->link);
		ask->done(ask, err, NULL);
	}
}

/* Members that were told are behind the others: all join before the group's answer, or after. */
static struct sa_ask *first_untold(struct sa_group *group)
{
	struct sa_ask *ask = list_is_empty(&group->members) ? NULL : first_of(group);

	return ask && !ask->is_told ? ask : NULL;
}

static void report_joined(struct sa_group *group, struct sa_ask *ask)
{
	struct sa_msg joined = group->joined;

	ask->is_told = true;
	list_remove(&ask->link);
	list_append(&group->members, &ask->link);
	ask->done(ask, 0, &joined);
}

static void join_landed(struct sa_flight *flight, int err, const struct sa_msg *answer)
{
	struct sa_group *group = group_of(flight);
	struct sa_ask *ask;

	if (!err) {
		group->joined = *answer;
		file_group(group);
		group->state = SA_GROUP_MEMBER;
		/* done() may leave the group, and so may others meanwhile. */
		while (group->state == SA_GROUP_MEMBER && (ask = first_untold(group)))
			report_joined(group, ask);
		return;
	}
	/* Requests from done() begin a new group. */
	hash_remove(&group->agent->memberships, &group->node);
	list_remove(&group->link);
	dismiss_all(group, err);
	group_free(group);
}

/* Parameters that were reported to members: where packets of the group go, and with which key. */
static bool is_same_membership(const struct sa_member *a, const struct sa_member *b)
{
	return a->mlid == b->mlid && a->qkey == b->qkey && a->pkey == b->pkey && a->sl == b->sl &&
	       a->mtu == b->mtu;
}

static void renewal_landed(struct sa_flight *flight, int err, const struct sa_msg *answer)
{
	struct sa_group *group = group_of(flight);

	/* err is nonzero if there is no answer. */
	if (!err && is_same_membership(&answer->member, &group->joined.member)) {
		group->state = SA_GROUP_MEMBER;
		return;
	}
	start_leave(group, first_of(group));
	dismiss_all(group, -ENETRESET);
}

static void leave_landed(struct sa_flight *flight, int err, const struct sa_msg *answer)
{
	struct sa_group *group = group_of(flight);

	(void)err; /* the administrator knows, or does not answer */
	(void)answer;
	if (list_is_empty(&group->members))
		group_free(group);
	else
		start_join(group);
}

/* --- calls --------------------------------------------------------------- */

static struct sa_group *find_group(struct sa_agent *agent, const struct sa_member *wanted)
{
	struct sa_group *group;

	if (agent->n_groups == 0 || asks_for_new(&wanted->mgid))
		return NULL;
	hash_for_each_match_entry (group, &agent->memberships,
				   hash_membership(agent, &wanted->mgid, wanted), node)
		if (is_same_gid(&group->joined.member.mgid, &wanted->mgid) &&
		    is_same_gid(&group->asked.member.port_gid, &wanted->port_gid) &&
		    group->asked.member.join_state == wanted->join_state)
			return group;
	return NULL;
}

static struct sa_group *group_new(struct sa_agent *agent, const struct sa_ask *ask)
{
	struct sa_group *group = calloc(1, sizeof(*group));

	if (!group || hash_reserve(&agent->memberships, agent->n_groups + 1)) {
		free(group);
		return NULL;
	}
	group->agent = agent;
	group->asked = ask->msg;
	group->joined = ask->msg;
	group->timeout_ms = ask->timeout_ms;
	list_init(&group->members);
	list_append(&agent->groups, &group->link);
	file_group(group);
	agent->n_groups++;
	return group;
}

void group_join(struct sa_agent *agent, struct sa_ask *ask)
{
	struct sa_group *group = find_group(agent, &ask->msg.member);
	bool is_new = !group;

	if (is_new && agent->n_groups < SA_GROUPS_MAX)
		group = group_new(agent, ask);
	if (!group) {
		ask->done(ask, agent->n_groups < SA_GROUPS_MAX ? -ENOMEM : -ENOSPC, NULL);
		return;
	}
	ask->group = group;
	list_append(&group->members, &ask->link);
	if (is_new)
		start_join(group);
	else if (group->state == SA_GROUP_MEMBER || group->state == SA_GROUP_RENEWING)
		report_joined(group, ask);
}

void group_leave(struct sa_agent *agent, struct sa_ask *ask)
{
	struct sa_group *group = ask->group;

	detach_ask(ask);
	if (!list_is_empty(&group->members) || group->state == SA_GROUP_LEAVING)
		return;
	/* A join that was not answered may have taken effect. */
	sa_flight_stop(&agent->flights, &group->flight, agent->now);
	start_leave(group, ask);
}

void groups_renew(struct sa_agent *agent)
{
	struct sa_group *group;

	list_for_each_entry (group, &agent->groups, link) {
		if (group->state != SA_GROUP_MEMBER)
			continue;
		group->flight.msg = group->asked;
		/* If the administrator chose the MGID, keep its choice. */
		group->flight.msg.member.mgid = group->joined.member.mgid;
		start_flight(group, SA_GROUP_RENEWING, renewal_landed, SA_RENEW_MS);
	}
}

void groups_free(struct sa_agent *agent)
{
	struct sa_group *group;

	list_for_each_entry_safe (group, &agent->groups, link) {
		while (!list_is_empty(&group->members))
			detach_ask(first_of(group));
		cm_timer_disarm(&agent->flights.timers, &group->flight.timer);
		group_free(group);
	}
}

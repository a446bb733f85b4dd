/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memberships: see joined_group.h.
 *
 * A group that is being joined is found by its whole request: the administrator may refuse another
 * request for the same group, or not answer it. Others are found by MGID, port GID and join state,
 * of which there is one membership: if two requests for it succeed, one group takes the members of
 * both.
 */
#include "mad/sa/joined_group.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mad/sa/query.h"

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

static bool is_same_gid(const struct mad_gid *a, const struct mad_gid *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* MGID 0 asks the administrator for a new group. */
static bool is_for_new_group(const struct mad_gid *mgid)
{
	static const struct mad_gid none;

	return is_same_gid(mgid, &none);
}

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

/* A group that asks for a new one is not looked for, and thousands of them would share a chain. */
static void file_by_request(struct sa_group *group)
{
	uint8_t mad[MAD_BYTES];

	if (is_for_new_group(&group->asked.member.mgid))
		return;
	request_encode(&group->asked, mad);
	hash_insert(&group->agent->memberships, &group->node, request_hash(group->agent, mad));
}

/* The MGID that counts is that of the response: the administrator may have chosen it. */
static void queue_by_membership(struct sa_group *group)
{
	struct sa_agent *agent = group->agent;
	const struct mad_gid *mgid = &group->joined.member.mgid;

	hash_remove(&agent->memberships, &group->node);
	if (!is_for_new_group(mgid))
		hash_insert(&agent->memberships, &group->node,
			    hash_membership(agent, mgid, &group->asked.member));
}

static struct sa_group *find_joining(const struct sa_agent *agent, const struct sa_msg *asked)
{
	uint8_t mad[MAD_BYTES], its[MAD_BYTES];
	struct sa_group *group;

	request_encode(asked, mad);
	hash_for_each_match_entry (group, &agent->memberships, request_hash(agent, mad), node) {
		request_encode(&group->asked, its);
		if (group->state == SA_GROUP_JOINING && memcmp(mad, its, sizeof(its)) == 0)
			return group;
	}
	return NULL;
}

static struct sa_group *find_member(const struct sa_agent *agent, const struct mad_gid *mgid,
				    const struct sa_member *wanted)
{
	struct sa_group *group;

	hash_for_each_match_entry (group, &agent->memberships, hash_membership(agent, mgid, wanted),
				   node)
		if (group->state != SA_GROUP_JOINING &&
		    is_same_gid(&group->joined.member.mgid, mgid) &&
		    is_same_gid(&group->asked.member.port_gid, &wanted->port_gid) &&
		    group->asked.member.join_state == wanted->join_state)
			return group;
	return NULL;
}

/* Return: another group with the same membership, or NULL */
static struct sa_group *find_duplicate(const struct sa_group *group)
{
	const struct mad_gid *mgid = &group->joined.member.mgid;

	return is_for_new_group(mgid) ? NULL
				      : find_member(group->agent, mgid, &group->asked.member);
}

static bool is_left(enum sa_group_state state)
{
	return state == SA_GROUP_WITHDRAWN || state == SA_GROUP_LEAVING;
}

static void set_state(struct sa_group *group, enum sa_group_state state)
{
	struct sa_agent *agent = group->agent;

	if (agent->leaving && is_left(group->state) != is_left(state))
		agent->leaving(agent, group->payer, is_left(state) ? 1 : -1);
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

static sa_landed join_landed, withdrawn_landed, renewal_landed, leave_landed;

static void start_flight(struct sa_group *group, enum sa_group_state state, sa_landed *landed,
			 unsigned int timeout_ms)
{
	set_state(group, state);
	group->flight.landed = landed;
	sa_flight_start(&group->agent->flights, &group->flight, timeout_ms, group->agent->now);
}

/* The leave has the turn and the payer of a flight or a call that has just ended. */
static void start_leave(struct sa_group *group)
{
	const struct sa_member *member = &group->joined.member;
	struct sa_msg *msg = &group->flight.msg;

	sa_msg_init(msg, SA_METHOD_DELETE, SA_ATTR_MCMEMBER_RECORD, LEAVE_MASK, 0);
	msg->member.mgid = member->mgid;
	msg->member.port_gid = group->asked.member.port_gid;
	msg->member.join_state = group->asked.member.join_state;
	queue_by_membership(group);
	start_flight(group, SA_GROUP_LEAVING, leave_landed, SA_LEAVE_MS);
}

/*
 * The subnet administrator has one membership for each port and group. A DELETE ends it for all
 * members on this host.
 */
static bool is_shared(const struct sa_group *group)
{
	const struct sa_agent *agent = group->agent;

	return agent->is_shared && agent->is_shared(&group->joined.member.mgid);
}

static void leave(struct sa_group *group)
{
	if (is_shared(group))
		group_free(group);
	else
		start_leave(group);
}

/* @last: the group's last member, or a present one */
static void set_payer(struct sa_group *group, const struct sa_ask *last)
{
	group->payer = last->payer;
	group->flight.turn = last->turn;
}

/* --- responses ------------------------------------------------------------ */

static void move_members(struct sa_group *group, struct list *ret)
{
	struct sa_ask *ask;

	list_init(ret);
	while (!list_is_empty(&group->members)) {
		ask = first_of(group);
		detach_ask(ask);
		list_append(ret, &ask->link);
	}
}

static struct sa_ask *take_first(struct list *asks)
{
	struct sa_ask *ask = container_of(asks->next, struct sa_ask, link);

	list_remove(&ask->link);
	return ask;
}

/* The group's members lose it; their done() may join again at once: as a new group. */
static void dismiss_all(struct sa_group *group, int err)
{
	struct sa_agent *agent = group->agent;
	struct list gone;

	move_members(group, &gone);
	while (!list_is_empty(&gone))
		ask_complete(agent, take_first(&gone), err, NULL);
}

/* Requests from done() begin a new group. */
static void dissolve(struct sa_group *group, int err)
{
	hash_remove(&group->agent->memberships, &group->node);
	list_remove(&group->link);
	dismiss_all(group, err);
	group_free(group);
}

static void report_joined(struct sa_group *group, struct sa_ask *ask)
{
	struct sa_msg joined = group->joined;

	ask->is_reported = true;
	list_remove(&ask->link);
	list_append(&group->members, &ask->link);
	ask_complete(group->agent, ask, 0, &joined);
}

/* Members that were notified are behind the others. done() may leave the group, for any member. */
static void report_all(struct sa_group *group)
{
	while ((group->state == SA_GROUP_MEMBER || group->state == SA_GROUP_RENEWING) &&
	       !list_is_empty(&group->members) && !first_of(group)->is_reported)
		report_joined(group, first_of(group));
}

/*
 * Members that joined by another request are notified now, or when the group was left and joined
 * again.
 */
static void merge(struct sa_group *group, struct sa_group *into)
{
	struct sa_ask *ask;

	while (!list_is_empty(&group->members)) {
		ask = container_of(group->members.prev, struct sa_ask, link);
		list_remove(&ask->link);
		list_prepend(&into->members, &ask->link); /* before the notified members */
		ask->group = into;
	}
	group_free(group);
	report_all(into);
}

static void join_landed(struct sa_flight *flight, int err, const struct sa_msg *answer)
{
	struct sa_group *group = group_of(flight), *twin;

	if (err) {
		dissolve(group, err);
		return;
	}
	group->joined = *answer;
	twin = find_duplicate(group);
	if (twin) {
		merge(group, twin);
		return;
	}
	queue_by_membership(group);
	group->state = SA_GROUP_MEMBER;
	report_all(group);
}

/* A request without an answer may have taken effect. */
static void withdrawn_landed(struct sa_flight *flight, int err, const struct sa_msg *answer)
{
	struct sa_group *group = group_of(flight);

	if (!err)
		group->joined = *answer;
	if (err == -EINVAL || is_for_new_group(&group->joined.member.mgid) || find_duplicate(group))
		group_free(group);
	else
		leave(group);
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
	if (is_shared(group)) {
		dissolve(group, -ENETRESET);
		return;
	}
	set_payer(group, first_of(group));
	start_leave(group);
	dismiss_all(group, -ENETRESET);
}

/* Members that came meanwhile join now. */
static void leave_landed(struct sa_flight *flight, int err, const struct sa_msg *answer)
{
	struct sa_group *group = group_of(flight);
	struct sa_agent *agent = group->agent;
	struct list members;

	(void)err; /* the administrator knows, or does not answer */
	(void)answer;
	move_members(group, &members);
	group_free(group);
	while (!list_is_empty(&members))
		group_join(agent, take_first(&members));
}

/* --- calls --------------------------------------------------------------- */

static struct sa_group *find_group(struct sa_agent *agent, const struct sa_msg *asked)
{
	const struct sa_member *wanted = &asked->member;
	struct sa_group *group;

	if (agent->n_groups == 0 || is_for_new_group(&wanted->mgid))
		return NULL;
	group = find_member(agent, &wanted->mgid, wanted);
	return group ? group : find_joining(agent, asked);
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
	group->flight.turn = ask->turn;
	group->n_renewals = agent->n_renewals;
	list_init(&group->members);
	list_append(&agent->groups, &group->link);
	agent->n_groups++;
	return group;
}

static void start_join(struct sa_group *group, unsigned int timeout_ms)
{
	file_by_request(group);
	group->flight.msg = group->asked;
	start_flight(group, SA_GROUP_JOINING, join_landed, timeout_ms);
}

void group_join(struct sa_agent *agent, struct sa_ask *ask)
{
	struct sa_group *group = find_group(agent, &ask->msg);
	bool is_new = !group;

	if (is_new && agent->n_groups < SA_GROUPS_MAX)
		group = group_new(agent, ask);
	if (!group) {
		ask_complete(agent, ask, agent->n_groups < SA_GROUPS_MAX ? -ENOMEM : -ENOSPC, NULL);
		return;
	}
	ask->group = group;
	list_append(&group->members, &ask->link);
	if (is_new) {
		start_join(group, request_wait_ms(ask));
	} else if (group->state == SA_GROUP_JOINING) {
		sa_flight_wait(&agent->flights, &group->flight, request_wait_ms(ask), agent->now);
		sa_flight_turn(&agent->flights, &group->flight, ask->turn, agent->now);
	} else if (group->state != SA_GROUP_LEAVING) {
		report_joined(group, ask);
	}
}

void group_leave(struct sa_agent *agent, struct sa_ask *ask)
{
	struct sa_group *group = ask->group;

	detach_ask(ask);
	if (!list_is_empty(&group->members) || group->state == SA_GROUP_LEAVING)
		return;
	if (sa_flight_rest(&agent->flights, &group->flight, agent->now)) {
		hash_remove(&agent->memberships, &group->node);
		group->payer = ask->payer;
		set_state(group, SA_GROUP_WITHDRAWN);
		group->flight.landed = withdrawn_landed;
	} else if (group->state == SA_GROUP_JOINING) {
		group_free(group); /* the administrator was not asked */
	} else {
		set_payer(group, ask);
		leave(group);
	}
}

static void renew(struct sa_group *group)
{
	group->flight.msg = group->asked;
	/* If the administrator chose the MGID, keep its choice. */
	group->flight.msg.member.mgid = group->joined.member.mgid;
	start_flight(group, SA_GROUP_RENEWING, renewal_landed, SA_RENEW_MS);
}

static struct sa_group *next_due(const struct sa_agent *agent)
{
	struct sa_group *first = container_of(agent->groups.next, struct sa_group, link);

	return !list_is_empty(&agent->groups) && first->n_renewals != agent->n_renewals ? first
											: NULL;
}

bool groups_are_due(const struct sa_agent *agent)
{
	return next_due(agent);
}

void groups_renew_some(struct sa_agent *agent)
{
	struct sa_group *group;
	unsigned int i;

	for (i = 0; i < SA_RENEW_MAX && (group = next_due(agent)); i++) {
		group->n_renewals = agent->n_renewals;
		list_remove(&group->link);
		list_append(&agent->groups, &group->link);
		if (group->state == SA_GROUP_MEMBER)
			renew(group);
	}
}

void groups_renew(struct sa_agent *agent)
{
	agent->n_renewals++;
	groups_renew_some(agent);
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

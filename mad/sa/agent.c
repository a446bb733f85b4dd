/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asking the subnet administrator: see agent.h. What several ask at once is asked once.
 */
#include "mad/sa/agent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mad/sa/group.h"

/* A question under way. */
struct errand {
	struct list link; /* in agent.errands */
	struct sa_agent *agent;
	struct list asks;
	struct sa_flight flight;
};

void sa_agent_init(struct sa_agent *agent, uint32_t seed,
		   void (*send)(void *arg, const uint8_t mad[MAD_BYTES], unsigned int wait_ms),
		   void *arg)
{
	memset(agent, 0, sizeof(*agent));
	sa_flights_init(&agent->flights, seed, send, arg);
	list_init(&agent->errands);
	list_init(&agent->groups);
}

/* --- questions ----------------------------------------------------------- */

static struct sa_ask *take_first(struct list *asks)
{
	struct sa_ask *ask = container_of(asks->next, struct sa_ask, link);

	list_remove(&ask->link);
	return ask;
}

static void errand_free(struct errand *errand)
{
	list_remove(&errand->link);
	free(errand);
}

static void errand_landed(struct sa_flight *flight, int err, const struct sa_msg *answer)
{
	struct errand *errand = container_of(flight, struct errand, flight);
	struct sa_agent *agent = errand->agent;
	struct sa_ask *ask;

	if (!err && answer->hdr.attr_id == SA_ATTR_PATH_RECORD) {
		if (!agent->paths)
			agent->paths = calloc(1, sizeof(*agent->paths));
		/* Without memory for it, it is not kept. */
		if (agent->paths)
			sa_paths_keep(agent->paths, &flight->msg, answer, agent->now);
	}
	list_remove(&errand->link); /* who asks again from done() gets another one */
	while (!list_is_empty(&errand->asks)) {
		ask = take_first(&errand->asks);
		ask->done(ask, err, answer);
	}
	errand_free(errand);
}

static bool is_same_question(const struct sa_msg *a, const struct sa_msg *b)
{
	uint8_t mad_a[MAD_BYTES], mad_b[MAD_BYTES];
	struct sa_msg untagged = *b;

	untagged.hdr.tid = a->hdr.tid;
	sa_msg_encode(a, mad_a);
	sa_msg_encode(&untagged, mad_b);
	return memcmp(mad_a, mad_b, sizeof(mad_a)) == 0;
}

static struct errand *errand_like(const struct sa_agent *agent, const struct sa_msg *question)
{
	struct errand *errand;
	struct list *node;

	list_for_each (node, &agent->errands) {
		errand = container_of(node, struct errand, link);
		if (is_same_question(&errand->flight.msg, question))
			return errand;
	}
	return NULL;
}

static void errand_start(struct sa_agent *agent, struct sa_ask *ask)
{
	struct errand *errand = calloc(1, sizeof(*errand));

	if (!errand) {
		ask->done(ask, -ENOMEM, NULL);
		return;
	}
	errand->agent = agent;
	errand->flight.msg = ask->msg;
	errand->flight.landed = errand_landed;
	list_init(&errand->asks);
	list_append(&errand->asks, &ask->link);
	list_append(&agent->errands, &errand->link);
	sa_flight_start(&agent->flights, &errand->flight, ask->timeout_ms, agent->now);
}

static void get(struct sa_agent *agent, struct sa_ask *ask)
{
	const struct sa_msg *known = NULL;
	struct errand *errand;
	struct sa_msg answer;

	if (agent->paths && ask->msg.hdr.attr_id == SA_ATTR_PATH_RECORD)
		known = sa_paths_find(agent->paths, &ask->msg, agent->now);
	if (known) {
		agent->n_from_cache++;
		answer = *known;
		ask->done(ask, 0, &answer);
		return;
	}
	errand = errand_like(agent, &ask->msg);
	if (errand)
		list_append(&errand->asks, &ask->link);
	else
		errand_start(agent, ask);
}

void sa_agent_ask(struct sa_agent *agent, struct sa_ask *ask, struct cm_time now)
{
	agent->now = now;
	list_init(&ask->link);
	ask->group = NULL;
	ask->is_told = false;
	if (ask->msg.hdr.method == SA_METHOD_SET)
		group_join(agent, ask);
	else
		get(agent, ask);
}

/* An errand that nobody waits for any more. */
static void drop_idle_errands(struct sa_agent *agent)
{
	struct list *node, *after;
	struct errand *errand;

	list_for_each_safe (node, after, &agent->errands) {
		errand = container_of(node, struct errand, link);
		if (!list_is_empty(&errand->asks))
			continue;
		sa_flight_stop(&agent->flights, &errand->flight, agent->now);
		errand_free(errand);
	}
}

void sa_agent_withdraw(struct sa_agent *agent, struct sa_ask *ask, struct cm_time now)
{
	agent->now = now;
	if (ask->group) {
		group_leave(agent, ask);
	} else if (!list_is_empty(&ask->link)) {
		list_remove(&ask->link);
		drop_idle_errands(agent);
	}
}

void sa_agent_revalidate(struct sa_agent *agent, const struct mad_gid *dgid)
{
	if (agent->paths)
		sa_paths_forget(agent->paths, dgid);
}

/* --- the subnet ---------------------------------------------------------- */

void sa_agent_subnet(struct sa_agent *agent, const struct sa_subnet *subnet, bool reregister,
		     struct cm_time now)
{
	const struct sa_subnet *was = &agent->subnet;
	bool is_other = was->lid != subnet->lid || was->sm_lid != subnet->sm_lid ||
			was->sm_sl != subnet->sm_sl || was->is_active != subnet->is_active;

	agent->now = now;
	agent->subnet = *subnet;
	if (!is_other && !reregister)
		return;
	if (agent->paths)
		sa_paths_forget(agent->paths, NULL);
	if (!subnet->is_active)
		return;
	sa_flights_again(&agent->flights, now);
	groups_renew(agent);
}

/* --- what the owner drives ----------------------------------------------- */

void sa_agent_input(struct sa_agent *agent, const uint8_t *mad, size_t bytes, struct cm_time now)
{
	agent->now = now;
	sa_flights_input(&agent->flights, mad, bytes, now);
}

void sa_agent_expire(struct sa_agent *agent, struct cm_time now)
{
	agent->now = now;
	sa_flights_expire(&agent->flights, now);
}

struct cm_time sa_agent_deadline(const struct sa_agent *agent)
{
	return cm_timers_deadline(&agent->flights.timers);
}

void sa_agent_fini(struct sa_agent *agent)
{
	struct list *node, *after;
	struct errand *errand;

	groups_free(agent);
	list_for_each_safe (node, after, &agent->errands) {
		errand = container_of(node, struct errand, link);
		while (!list_is_empty(&errand->asks))
			take_first(&errand->asks);
		cm_timer_disarm(&agent->flights.timers, &errand->flight.timer);
		errand_free(errand);
	}
	free(agent->paths);
	agent->paths = NULL;
}

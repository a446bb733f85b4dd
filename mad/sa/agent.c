/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests to the subnet administrator: see agent.h. Equal requests share one errand. */
#include "mad/sa/agent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mad/sa/group.h"

/* A request on the wire. */
struct errand {
	struct hash_node link; /* in agent.errands */
	struct sa_agent *agent;
	struct list asks;
	struct sa_flight flight;
};

void sa_agent_init(struct sa_agent *agent, uint32_t seed, uint64_t secret,
		   void (*send)(void *arg, const uint8_t mad[MAD_BYTES], unsigned int wait_ms),
		   void *arg)
{
	memset(agent, 0, sizeof(*agent));
	sa_flights_init(&agent->flights, seed, send, arg);
	agent->secret = secret;
	list_init(&agent->groups);
}

/* --- questions ----------------------------------------------------------- */

static void join_errand(struct errand *errand, struct sa_ask *ask)
{
	ask->errand = errand;
	list_append(&errand->asks, &ask->link);
}

static void leave_errand(struct sa_ask *ask)
{
	list_remove(&ask->link);
	ask->errand = NULL;
}

static struct sa_ask *take_first(struct list *asks)
{
	struct sa_ask *ask = container_of(asks->next, struct sa_ask, link);

	leave_errand(ask);
	return ask;
}

static void errand_free(struct errand *errand)
{
	hash_remove(&errand->agent->errands, &errand->link);
	free(errand);
}

static bool is_for_path(const struct sa_msg *question)
{
	return question->hdr.attr_id == SA_ATTR_PATH_RECORD &&
	       question->hdr.method == SA_METHOD_GET;
}

static void errand_landed(struct sa_flight *flight, int err, const struct sa_msg *answer)
{
	struct errand *errand = container_of(flight, struct errand, flight);
	struct sa_agent *agent = errand->agent;
	struct sa_ask *ask;

	if (!err && is_for_path(&flight->msg)) {
		if (!agent->paths)
			agent->paths = calloc(1, sizeof(*agent->paths));
		/* Without memory, do not cache. */
		if (agent->paths)
			sa_paths_keep(agent->paths, &flight->msg, answer, agent->now);
	}
	hash_remove(&agent->errands, &errand->link); /* requests from done() begin a new errand */
	while (!list_is_empty(&errand->asks)) {
		ask = take_first(&errand->asks);
		ask->done(ask, err, answer);
	}
	errand_free(errand);
}

static void encode_untagged(const struct sa_msg *question, uint8_t ret[MAD_BYTES])
{
	struct sa_msg untagged = *question;

	untagged.hdr.tid = 0;
	sa_msg_encode(&untagged, ret);
}

static uint64_t hash_question(const struct sa_agent *agent, const uint8_t mad[MAD_BYTES])
{
	uint64_t words[MAD_BYTES / sizeof(uint64_t)];
	unsigned int i;

	memcpy(words, mad, sizeof(words));
	for (i = 0; i < MAD_BYTES / sizeof(uint64_t); i++)
		words[i] = (words[i] + agent->secret) * (agent->secret | 1);
	return hash_bytes(words, sizeof(words));
}

static struct errand *errand_like(const struct sa_agent *agent, const uint8_t mad[MAD_BYTES])
{
	uint8_t its[MAD_BYTES];
	struct errand *errand;

	if (agent->errands.n_nodes == 0)
		return NULL;
	hash_for_each_match_entry (errand, &agent->errands, hash_question(agent, mad), link) {
		encode_untagged(&errand->flight.msg, its);
		if (memcmp(its, mad, sizeof(its)) == 0)
			return errand;
	}
	return NULL;
}

static void errand_start(struct sa_agent *agent, struct sa_ask *ask, const uint8_t mad[MAD_BYTES])
{
	struct errand *errand = calloc(1, sizeof(*errand));

	if (!errand || hash_reserve(&agent->errands, agent->errands.n_nodes + 1)) {
		free(errand);
		ask->done(ask, -ENOMEM, NULL);
		return;
	}
	errand->agent = agent;
	errand->flight.msg = ask->msg;
	errand->flight.landed = errand_landed;
	list_init(&errand->asks);
	join_errand(errand, ask);
	hash_insert(&agent->errands, &errand->link, hash_question(agent, mad));
	sa_flight_start(&agent->flights, &errand->flight, ask->timeout_ms, agent->now);
}

static void get_record(struct sa_agent *agent, struct sa_ask *ask)
{
	const struct sa_msg *known = NULL;
	uint8_t mad[MAD_BYTES];
	struct errand *errand;
	struct sa_msg answer;

	if (agent->paths && is_for_path(&ask->msg))
		known = sa_paths_find(agent->paths, &ask->msg, agent->now);
	if (known) {
		agent->n_from_cache++;
		answer = *known;
		ask->done(ask, 0, &answer);
		return;
	}
	encode_untagged(&ask->msg, mad);
	errand = errand_like(agent, mad);
	if (errand)
		join_errand(errand, ask);
	else
		errand_start(agent, ask, mad);
}

void sa_agent_ask(struct sa_agent *agent, struct sa_ask *ask, struct cm_time now)
{
	agent->now = now;
	list_init(&ask->link);
	ask->errand = NULL;
	ask->group = NULL;
	ask->is_told = false;
	if (ask->msg.hdr.method == SA_METHOD_SET)
		group_join(agent, ask);
	else
		get_record(agent, ask);
}

/* The loop that answers an errand frees it. */
static void drop_if_idle(struct sa_agent *agent, struct errand *errand)
{
	if (!list_is_empty(&errand->asks) || !sa_flight_is_on(&errand->flight))
		return;
	sa_flight_stop(&agent->flights, &errand->flight, agent->now);
	errand_free(errand);
}

void sa_agent_withdraw(struct sa_agent *agent, struct sa_ask *ask, struct cm_time now)
{
	struct errand *errand = ask->errand;

	agent->now = now;
	if (ask->group) {
		group_leave(agent, ask);
	} else if (errand) {
		leave_errand(ask);
		drop_if_idle(agent, errand);
	} else {
		list_remove(&ask->link); /* dismissed, its done() is about to be called */
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
	struct errand *errand;

	groups_free(agent);
	if (agent->errands.n_nodes) {
		hash_for_each_entry_safe (errand, &agent->errands, link) {
			while (!list_is_empty(&errand->asks))
				take_first(&errand->asks);
			cm_timer_disarm(&agent->flights.timers, &errand->flight.timer);
			errand_free(errand);
		}
	}
	hash_fini(&agent->errands);
	free(agent->paths);
	agent->paths = NULL;
}

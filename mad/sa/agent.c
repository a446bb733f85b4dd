/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests to the subnet administrator: see agent.h. Equal requests share one query. */
#include "mad/sa/agent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mad/sa/joined_group.h"
#include "mad/sa/query.h"

/* A request on the wire. */
struct query {
	struct hash_node link; /* in agent.queries */
	struct sa_agent *agent;
	struct list asks;
	struct sa_flight flight;
	struct list link_table; /* in agent.tables */
	struct table *table;	/* the answer, if it was one */
	bool is_landing;	/* done() is being called */
};

struct table {
	struct sa_msg msg;
	uint8_t records[];
};

void sa_agent_init(struct sa_agent *agent, uint32_t seed, uint64_t secret,
		   void (*send)(void *arg, const uint8_t mad[MAD_BYTES], unsigned int wait_ms),
		   void *arg)
{
	memset(agent, 0, sizeof(*agent));
	sa_flights_init(&agent->flights, seed, send, arg);
	agent->secret = secret;
	list_init(&agent->groups);
	list_init(&agent->tables);
}

/* --- questions ----------------------------------------------------------- */

static void start_waiting(struct sa_agent *agent, struct sa_ask *ask)
{
	cm_timer_arm(&agent->waits, &ask->timer,
		     cm_time_after(agent->now, ask->timeout_ms * CM_NS_PER_MS));
}

static void join_query(struct query *query, struct sa_ask *ask)
{
	ask->query = query;
	list_append(&query->asks, &ask->link);
}

static void leave_query(struct sa_ask *ask)
{
	list_remove(&ask->link);
	ask->query = NULL;
}

static struct sa_ask *take_first(struct list *asks)
{
	struct sa_ask *ask = container_of(asks->next, struct sa_ask, link);

	leave_query(ask);
	return ask;
}

static void query_free(struct query *query)
{
	hash_remove(&query->agent->queries, &query->link);
	list_remove(&query->link_table);
	free(query->table);
	free(query);
}

static bool is_for_path(const struct sa_msg *question)
{
	return question->hdr.attr_id == SA_ATTR_PATH_RECORD &&
	       question->hdr.method == SA_METHOD_GET;
}

/* Keeps the answer until all clients have it. Return: 0 or -ENOMEM. */
static int keep_table(struct query *query, const struct sa_msg *answer)
{
	const size_t bytes = answer->n_records * answer->record_bytes;

	query->table = malloc(sizeof(*query->table) + bytes);
	if (!query->table)
		return -ENOMEM;
	memcpy(query->table->records, answer->table, bytes);
	query->table->msg = *answer;
	query->table->msg.table = query->table->records;
	list_append(&query->agent->tables, &query->link_table);
	return 0;
}

/* Asks that have the answer are behind the others, until they are withdrawn. */
static void report_table(struct query *query)
{
	struct sa_ask *ask;

	query->is_landing = true;
	while (!list_is_empty(&query->asks)) {
		ask = container_of(query->asks.next, struct sa_ask, link);
		if (ask->is_reported)
			break;
		ask->is_reported = true;
		list_remove(&ask->link);
		list_append(&query->asks, &ask->link);
		ask_complete(query->agent, ask, 0, &query->table->msg);
	}
	query->is_landing = false;
	if (list_is_empty(&query->asks))
		query_free(query);
}

static void query_landed(struct sa_flight *flight, int err, const struct sa_msg *answer)
{
	struct query *query = container_of(flight, struct query, flight);
	struct sa_agent *agent = query->agent;
	struct sa_ask *ask;

	if (!err && is_for_path(&flight->msg)) {
		if (!agent->paths)
			agent->paths = calloc(1, sizeof(*agent->paths));
		/* Without memory, do not cache. */
		if (agent->paths)
			sa_paths_keep(agent->paths, &flight->msg, answer, agent->now);
	}
	hash_remove(&agent->queries, &query->link); /* requests from done() begin a new query */
	if (!err && answer->table) {
		err = keep_table(query, answer);
		if (!err) {
			report_table(query);
			return;
		}
		answer = NULL;
	}
	while (!list_is_empty(&query->asks)) {
		ask = take_first(&query->asks);
		ask_complete(agent, ask, err, answer);
	}
	query_free(query);
}

static struct query *query_like(const struct sa_agent *agent, const uint8_t mad[MAD_BYTES])
{
	uint8_t its[MAD_BYTES];
	struct query *query;

	if (agent->queries.n_nodes == 0)
		return NULL;
	hash_for_each_match_entry (query, &agent->queries, request_hash(agent, mad), link) {
		request_encode(&query->flight.msg, its);
		if (memcmp(its, mad, sizeof(its)) == 0)
			return query;
	}
	return NULL;
}

static void query_start(struct sa_agent *agent, struct sa_ask *ask, const uint8_t mad[MAD_BYTES])
{
	struct query *query = calloc(1, sizeof(*query));

	if (!query || hash_reserve(&agent->queries, agent->queries.n_nodes + 1)) {
		free(query);
		ask_complete(agent, ask, -ENOMEM, NULL);
		return;
	}
	query->agent = agent;
	query->flight.msg = ask->msg;
	query->flight.landed = query_landed;
	query->flight.turn = ask->turn;
	list_init(&query->asks);
	list_init(&query->link_table);
	join_query(query, ask);
	hash_insert(&agent->queries, &query->link, request_hash(agent, mad));
	sa_flight_start(&agent->flights, &query->flight, request_wait_ms(ask), agent->now);
}

static void get_record(struct sa_agent *agent, struct sa_ask *ask)
{
	const struct sa_msg *known = NULL;
	uint8_t mad[MAD_BYTES];
	struct query *query;
	struct sa_msg answer;

	if (agent->paths && is_for_path(&ask->msg))
		known = sa_paths_find(agent->paths, &ask->msg, ask->since, agent->now);
	if (known) {
		agent->n_from_cache++;
		answer = *known;
		ask->done(ask, 0, &answer);
		return;
	}
	start_waiting(agent, ask);
	request_encode(&ask->msg, mad);
	query = query_like(agent, mad);
	if (!query) {
		query_start(agent, ask, mad);
		return;
	}
	join_query(query, ask);
	sa_flight_wait(&agent->flights, &query->flight, request_wait_ms(ask), agent->now);
	/* The first client may have many waiting requests: use the new client's turn. */
	sa_flight_turn(&agent->flights, &query->flight, ask->turn, agent->now);
}

void sa_agent_ask(struct sa_agent *agent, struct sa_ask *ask, struct cm_time now)
{
	agent->now = now;
	list_init(&ask->link);
	ask->timer = (struct cm_timer){ .link = NULL };
	ask->query = NULL;
	ask->group = NULL;
	ask->is_reported = false;
	if (ask->msg.hdr.method != SA_METHOD_SET) {
		get_record(agent, ask);
		return;
	}
	start_waiting(agent, ask);
	group_join(agent, ask);
}

/* The loop that answers a query frees it. */
static void drop_if_idle(struct sa_agent *agent, struct query *query)
{
	if (!list_is_empty(&query->asks) || query->is_landing ||
	    (!query->table && !sa_flight_is_on(&query->flight)))
		return;
	if (query->table || !sa_flight_rest(&agent->flights, &query->flight, agent->now))
		query_free(query);
}

void sa_agent_withdraw(struct sa_agent *agent, struct sa_ask *ask, struct cm_time now)
{
	struct query *query = ask->query;

	agent->now = now;
	cm_timer_disarm(&agent->waits, &ask->timer);
	if (ask->group) {
		group_leave(agent, ask);
	} else if (query) {
		leave_query(ask);
		drop_if_idle(agent, query);
	} else {
		list_remove(&ask->link); /* removed from its query; its done() is called next */
	}
}

void sa_agent_forget(struct sa_agent *agent, struct sa_ask *ask)
{
	cm_timer_disarm(&agent->waits, &ask->timer);
	list_remove(&ask->link);
	ask->query = NULL;
	ask->group = NULL;
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
		sa_paths_forget(agent->paths);
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

/* Each client has its own timeout, whatever the others with the same request wait for. */
void sa_agent_expire(struct sa_agent *agent, struct cm_time now)
{
	struct cm_timer *timer;
	struct sa_ask *ask;
	unsigned int i;

	agent->now = now;
	groups_renew_some(agent);
	sa_flights_expire(&agent->flights, now);
	for (i = 0; i < SA_EXPIRE_MAX && (timer = cm_timers_pop(&agent->waits, now)); i++) {
		ask = container_of(timer, struct sa_ask, timer);
		sa_agent_withdraw(agent, ask, now);
		ask->done(ask, -ETIMEDOUT, NULL);
	}
}

struct cm_time sa_agent_deadline(const struct sa_agent *agent)
{
	if (groups_are_due(agent))
		return agent->now;
	return cm_time_earlier(sa_flights_deadline(&agent->flights),
			       cm_timers_deadline(&agent->waits));
}

void sa_agent_fini(struct sa_agent *agent)
{
	struct query *query;

	groups_free(agent);
	if (agent->queries.n_nodes) {
		hash_for_each_entry_safe (query, &agent->queries, link) {
			while (!list_is_empty(&query->asks))
				take_first(&query->asks);
			cm_timer_disarm(&agent->flights.timers, &query->flight.timer);
			query_free(query);
		}
	}
	while (!list_is_empty(&agent->tables)) {
		query = container_of(agent->tables.next, struct query, link_table);
		while (!list_is_empty(&query->asks))
			take_first(&query->asks);
		query_free(query);
	}
	hash_fini(&agent->queries);
	hash_fini(&agent->memberships);
	free(agent->paths);
	agent->paths = NULL;
}

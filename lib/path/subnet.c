/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests to subnet administrators: see subnet.h. */
#include "lib/path/subnet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/engine/engine.h"
#include "lib/engine/session.h"

static uint32_t next_ask_id; /* under the engine's lock */

static struct portd_record record_of_ask(const struct subnet_ask *ask)
{
	struct portd_record record = { .type = PORTD_SA_ASK,
				       .sa_ask = { .port = (uint8_t)ask->port->handle,
						   .method = ask->msg.hdr.method,
						   .attr = ask->msg.hdr.attr_id,
						   .ask_id = ask->ask_id,
						   .timeout_ms = ask->timeout_ms,
						   .comp_mask = ask->msg.sa.comp_mask } };

	wire_encode(sa_msg_layout(ask->msg.hdr.attr_id), &ask->msg.path, record.sa_ask.record);
	return record;
}

void subnet_ask(struct engine *engine, struct subnet_ask *ask, struct port *port,
		struct portd_record *ret_record)
{
	ask->port = port;
	ask->ask_id = ++next_ask_id;
	ask->is_first = true;
	/* Without memory the chains get longer. */
	hash_reserve(&engine->subnet_asks, engine->subnet_asks.n_nodes + 1);
	hash_insert(&engine->subnet_asks, &ask->link, ask->ask_id);
	*ret_record = record_of_ask(ask);
}

static struct subnet_ask *find_ask(struct engine *engine, uint32_t ask_id)
{
	struct subnet_ask *ask;

	if (!engine->subnet_asks.n_nodes)
		return NULL;
	hash_for_each_match_entry (ask, &engine->subnet_asks, ask_id, link)
		return ask;
	return NULL;
}

bool subnet_drop(struct subnet_ask *ask, struct portd_record *ret_record)
{
	struct engine *engine = engine_held();

	/* In a forked child, a request of the parent is not in the table. */
	if (find_ask(engine, ask->ask_id) != ask)
		return false;
	hash_remove(&engine->subnet_asks, &ask->link);
	*ret_record = (struct portd_record){ .type = PORTD_SA_DROP,
					     .sa_drop = { .ask_id = ask->ask_id } };
	return true;
}

struct portd_record subnet_revalidate(const struct port *port, const struct mad_gid *dgid)
{
	return (struct portd_record){ .type = PORTD_SA_REVALIDATE,
				      .sa_revalidate = { .port = (uint8_t)port->handle,
							 .dgid = *dgid } };
}

/* If a request was cancelled before it was sent, its SA_DROP was sent first: repeat that. */
void subnet_send(const struct portd_record *record)
{
	struct portd_record drop = { .type = PORTD_SA_DROP };
	bool is_gone;
	int err;

	if (record->type == PORTD_NONE)
		return;
	err = portd_put_data(session_client(), record);
	if (record->type != PORTD_SA_ASK)
		return;
	/* The next cmportd gets all requests, but nobody would answer one that is lost now. */
	if (err && err != -EPIPE && err != -ECONNRESET) {
		subnet_answered(&(struct portd_sa_told){ .ask_id = record->sa_ask.ask_id,
							 .error = ETIMEDOUT });
		return;
	}
	is_gone = !find_ask(engine_lock(), record->sa_ask.ask_id);
	engine_unlock();
	if (!is_gone)
		return;
	drop.sa_drop.ask_id = record->sa_ask.ask_id;
	portd_put_data(session_client(), &drop);
}

void subnet_answered(const struct portd_sa_told *told)
{
	struct portd_record record = { .type = PORTD_NONE };
	struct engine *engine = engine_lock();
	struct subnet_ask *ask = find_ask(engine, told->ask_id);
	struct sa_msg answer;
	unsigned int left;

	if (!ask)
		goto out;
	ask->left = told->error ? 0 : told->left;
	if (told->error || (ask->msg.hdr.method != SA_METHOD_SET && !told->left))
		hash_remove(&engine->subnet_asks, &ask->link); /* memberships stay */
	answer = ask->msg;
	if (!told->error)
		wire_decode(sa_msg_layout(answer.hdr.attr_id), told->record, &answer.path);
	left = ask->left;
	if (ask->done(ask, -told->error, told->error ? NULL : &answer))
		subnet_ask(engine, ask, ask->port, &record);
	else if (left)
		ask->is_first = false;
out:
	engine_unlock();
	subnet_send(&record);
}

/* The next cmportd has assigned new handles to the ports. */
void subnet_resend(struct portd_client *client)
{
	struct engine *engine = engine_lock();
	struct portd_record *records;
	size_t i, n = 0;
	struct subnet_ask *ask;

	records = calloc(engine->subnet_asks.n_nodes + 1, sizeof(*records));
	hash_for_each_entry_safe (ask, &engine->subnet_asks, link) {
		ask->is_first = true;
		if (records)
			records[n++] = record_of_ask(ask);
	}
	engine_unlock();
	if (!records)
		portd_tell_failed(client);
	for (i = 0; i < n; i++)
		portd_tell_data(client, &records[i]);
	free(records);
}

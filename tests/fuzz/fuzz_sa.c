/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A malicious subnet administrator for clients that query paths and groups: any responses, any
 * bytes, at any time, while clients query again or cancel. Each request has at most one result,
 * groups one more; after all are cancelled, nothing is left.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mad/sa/agent.h"
#include "mad/sa/joined_group.h"
#include "tests/fuzz/input.h"

#define ASKS	  24
#define SENT_MAX  16
#define ANSWERED  0x80
#define ANY_FIELD 12
#define END_TURNS 1000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

struct asker {
	struct sa_ask ask;
	bool waits;
	bool is_member;
	const struct sa_msg *table; /* a table that is being reported */
};

static struct {
	struct sa_agent agent;
	struct asker askers[ASKS];
	uint8_t sent[SENT_MAX][MAD_BYTES];
	unsigned int n_sent;
	struct cm_time now;
	struct cm_time since[8]; /* paths that do not work, by DGID */
	struct input in;
	unsigned int depth; /* nesting of done() calls that start requests */
} world;

static void on_wire(void *arg, const uint8_t mad[MAD_BYTES], unsigned int wait_ms)
{
	(void)arg;
	assert(wait_ms > 0);
	memcpy(world.sent[world.n_sent++ % SENT_MAX], mad, MAD_BYTES);
}

static void ask(void);
static void withdraw(void);

static void done(struct sa_ask *ask_of, int err, const struct sa_msg *answer)
{
	struct asker *asker = container_of(ask_of, struct asker, ask);

	assert(asker->waits || (asker->is_member && err == -ENETRESET));
	assert(!err == !!answer);
	asker->waits = false;
	asker->table = answer && answer->table ? answer : NULL;
	asker->is_member = !err && ask_of->msg.hdr.method == SA_METHOD_SET;
	if (world.depth > 2 || !world.in.left)
		return;
	world.depth++;
	switch (next_byte(&world.in) % 8) {
	case 0:
		ask();
		break;
	case 1:
		withdraw();
		break;
	}
	world.depth--;
}

static void member_question(struct sa_msg *msg)
{
	sa_msg_init(msg, SA_METHOD_SET, SA_ATTR_MCMEMBER_RECORD, next_byte(&world.in), 0);
	msg->member.mgid.raw[15] = next_byte(&world.in) & 3;
	msg->member.join_state = next_byte(&world.in) & 1 ? SA_JOIN_FULL : SA_JOIN_SEND_ONLY_FULL;
}

static void question(struct sa_msg *msg)
{
	uint8_t kind = next_byte(&world.in);

	if (kind % 2) {
		member_question(msg);
		return;
	}
	sa_msg_init(msg, kind % 16 == 2 ? SA_METHOD_GET_TABLE : SA_METHOD_GET,
		    kind % 4 ? SA_ATTR_SERVICE_RECORD : SA_ATTR_PATH_RECORD,
		    next_byte(&world.in) & 3, 0);
	if (kind % 4)
		msg->service.service_id = next_byte(&world.in) & 7;
	else
		msg->path.dgid.raw[15] = next_byte(&world.in) % 8;
}

static void ask(void)
{
	struct asker *asker = &world.askers[next_byte(&world.in) % ASKS];

	if (asker->waits || asker->is_member || asker->table)
		return;
	question(&asker->ask.msg);
	asker->ask.timeout_ms = next_byte(&world.in) * 20u;
	asker->ask.since = world.since[asker->ask.msg.path.dgid.raw[15] % 8];
	asker->ask.done = done;
	asker->waits = true;
	sa_agent_ask(&world.agent, &asker->ask, world.now);
}

static void forget(struct asker *asker)
{
	struct sa_msg table;

	if (!asker->waits && !asker->is_member && !asker->table)
		return;
	if (asker->table && asker->table->n_records) {
		table = *asker->table;
		sa_msg_record(&table, table.n_records - 1);
	}
	asker->table = NULL;
	asker->waits = false;
	asker->is_member = false;
	sa_agent_withdraw(&world.agent, &asker->ask, world.now);
}

static void withdraw(void)
{
	forget(&world.askers[next_byte(&world.in) % ASKS]);
}

/* A response to one of the latest requests, with some arbitrary bytes. */
static void answer(void)
{
	uint8_t mad[MAD_BYTES], fields, i;

	memcpy(mad, world.sent[next_byte(&world.in) % SENT_MAX], MAD_BYTES);
	mad[3] = (mad[3] == SA_METHOD_SET ? SA_METHOD_GET : mad[3]) | ANSWERED;
	fields = next_byte(&world.in) % ANY_FIELD;
	for (i = 0; i < fields; i++) {
		uint8_t at = next_byte(&world.in);

		mad[at] = next_byte(&world.in);
	}
	sa_agent_input(&world.agent, mad, sizeof(mad), world.now);
}

/* On the heap, so that a sanitizer detects reads beyond its end. */
static void bytes_arrive(void)
{
	size_t n = next_byte(&world.in) * 2u;
	uint8_t *mad = malloc(n ? n : 1);

	assert(mad);
	next_bytes(&world.in, mad, n);
	sa_agent_input(&world.agent, mad, n, world.now);
	free(mad);
}

static void wait_ms(uint64_t ms)
{
	world.now = cm_time_after(world.now, ms * CM_NS_PER_MS);
	sa_agent_expire(&world.agent, world.now);
}

static void wait_a_while(void)
{
	uint8_t ms = next_byte(&world.in);

	wait_ms(ms & 1 ? ms * 500u : ms);
}

static void subnet_changes(void)
{
	uint8_t how = next_byte(&world.in);
	struct sa_subnet subnet = { how & 3, how >> 2 & 1, 0, how & 8 };

	sa_agent_subnet(&world.agent, &subnet, how & 16, world.now);
}

static void revalidate(void)
{
	world.since[next_byte(&world.in) % 8] = world.now;
}

/* All clients cancel, and the administrator sends nothing more. */
static void end(void)
{
	unsigned int i;

	world.in.left = 0;
	world.depth = 3;
	for (i = 0; i < ASKS; i++)
		forget(&world.askers[i]);
	for (i = 0; i < END_TURNS && sa_agent_deadline(&world.agent).ns != UINT64_MAX; i++) {
		world.now = sa_agent_deadline(&world.agent);
		sa_agent_expire(&world.agent, world.now);
	}
	assert(sa_agent_deadline(&world.agent).ns == UINT64_MAX);
	assert(world.agent.queries.n_nodes == 0 && list_is_empty(&world.agent.groups));
	assert(world.agent.n_groups == 0 && world.agent.flights.n_out == 0);
	assert(world.agent.flights.n_waiting == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static void (*const does[])(void) = { ask,	    answer,	    bytes_arrive, withdraw,
					      wait_a_while, subnet_changes, revalidate,	  answer };

	memset(&world, 0, sizeof(world));
	world.in = (struct input){ data, bytes };
	sa_agent_init(&world.agent, 1, 2, on_wire, NULL);
	while (world.in.left)
		does[next_byte(&world.in) % (sizeof(does) / sizeof(does[0]))]();
	if (bytes % 4 != 0)
		end();
	sa_agent_fini(&world.agent);
	return 0;
}

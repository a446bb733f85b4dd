/* SPDX-License-Identifier: BSD-2-Clause */
/* Exchanges and their required results under all faults: see pattern.h. */
#include "tests/sim/pattern.h"

#include <errno.h>
#include <string.h>

#include "tests/sim/app.h"
#include "tests/sim/host.h"
#include "tests/sim/net.h"
#include "tests/sim/oracle.h"
#include "tests/sim/world.h"

#define SEED	1
#define SLOW_US 2500000 /* longer than the first two timeouts for an answer */
#define CLIENT	0
#define SERVER	1
#define END_ANY '*'
#define END_UP	'+'

static struct sim_host *host_of(struct sim *sim, int number)
{
	return &sim->host[number];
}

static struct sim_id *first_id(struct sim *sim, int number)
{
	return host_of(sim, number)->n_ids ? host_of(sim, number)->id[0] : NULL;
}

/* --- beginnings ---------------------------------------------------------- */

static void connect_to_server(struct sim *sim)
{
	app_connect(host_of(sim, CLIENT), SERVER);
}

static void connect_to_each_other(struct sim *sim)
{
	connect_to_server(sim);
	app_connect(host_of(sim, SERVER), CLIENT);
}

static void look_up(struct sim *sim)
{
	app_look_up(host_of(sim, CLIENT), SERVER);
}

static void disconnect_by_client(struct sim *sim)
{
	app_call(first_id(sim, CLIENT), CM_CALL_DREQ);
}

static void disconnect_by_server(struct sim *sim)
{
	app_call(first_id(sim, SERVER), CM_CALL_DREQ);
}

static void disconnect_on_both_sides(struct sim *sim)
{
	disconnect_by_client(sim);
	disconnect_by_server(sim);
}

static void destroy_by_client(struct sim *sim)
{
	app_call(first_id(sim, CLIENT), CM_CALL_DESTROY);
}

static void destroy_by_server(struct sim *sim)
{
	app_call(first_id(sim, SERVER), CM_CALL_DESTROY);
}

static void destroy_on_both_sides(struct sim *sim)
{
	destroy_by_client(sim);
	destroy_by_server(sim);
}

/* --- traits of applications ---------------------------------------------- */

static void answer_slowly(struct app_traits *traits)
{
	traits->think_min_us = SLOW_US;
}

static void answer_with_mra(struct app_traits *traits)
{
	answer_slowly(traits);
	traits->patience = 1000;
}

static void reject_requests(struct app_traits *traits)
{
	traits->accept = 0;
	traits->reject = 1000;
}

static void reject_slowly(struct app_traits *traits)
{
	reject_requests(traits);
	answer_with_mra(traits);
}

static void reject_rep(struct app_traits *traits)
{
	traits->confirm = 0;
	traits->refuse_rep = 1000;
}

static void disconnect_at_once(struct app_traits *traits)
{
	traits->hang_up = 1000;
}

static void establish_early(struct app_traits *traits)
{
	traits->early = 1000;
}

struct pattern {
	const char *name;
	bool connected; /* before the pattern begins */
	void (*begin)(struct sim *sim);
	void (*traits)(struct app_traits *traits);
	char client, server; /* how their first ids end: a letter of order.c, or END_* */
};

/* clang-format off */
static const struct pattern patterns[] = {
	{ "connect",           false, connect_to_server,     NULL,             END_UP, END_UP },
	{ "connect-answer_slowly",      false, connect_to_server,     answer_slowly,             END_UP, END_UP },
	{ "connect-answer_with_mra",   false, connect_to_server,     answer_with_mra,          END_UP, END_UP },
	{ "connect-early",     false, connect_to_server,     establish_early,    END_UP, END_UP },
	{ "connect-crossing",  false, connect_to_each_other, NULL,             END_UP, END_UP },
	{ "connect-and-leave", false, connect_to_server,     disconnect_at_once,       't',    END_ANY },
	{ "disconnect-client", true,  disconnect_by_client,    NULL,             't',    't' },
	{ "disconnect-server", true,  disconnect_by_server,    NULL,             't',    't' },
	{ "disconnect-both",   true,  disconnect_on_both_sides,       NULL,             't',    't' },
	{ "disconnect-answer_slowly",   true,  disconnect_by_client,    answer_slowly,             't',    't' },
	{ "destroy-client",    true,  destroy_by_client,       NULL,             'X',    't' },
	{ "destroy-server",    true,  destroy_by_server,       NULL,             't',    'X' },
	{ "destroy-both",      true,  destroy_on_both_sides,          NULL,             'X',    'X' },
	{ "reject",            false, connect_to_server,     reject_requests,        'j',    'J' },
	{ "reject-answer_with_mra",    false, connect_to_server,     reject_slowly, 'j',    'J' },
	{ "reject-reply",      false, connect_to_server,     reject_rep,     'J',    END_ANY },
	{ "lookup",            false, look_up,               NULL,             'a',    'B' },
	{ "lookup-answer_slowly",       false, look_up,               answer_slowly,             'a',    'B' },
	{ "lookup-refused",    false, look_up,               reject_requests,        'a',    'X' },
};
/* clang-format on */

#define N_PATTERNS (sizeof(patterns) / sizeof(patterns[0]))

const char *pattern_name(unsigned int number)
{
	return number < N_PATTERNS ? patterns[number].name : NULL;
}

static void check_end(struct sim *sim, int number, char expected)
{
	const struct sim_id *id = first_id(sim, number);
	char last = id && id->n_letters ? id->letters[id->n_letters - 1] : 0;

	if (expected == END_ANY)
		return;
	if (!id)
		sim_fail(sim, "host %c never had an id", 'A' + number);
	else if (expected == END_UP ? !id->up : last != expected)
		sim_fail(sim, "host %c id 0: '%s' does not end as expected (%c)", 'A' + number,
			 id->letters, expected);
}

/* Return: the number of fates that it used. */
static unsigned int run(struct sim *sim, const struct pattern *pattern, const uint8_t *fates,
			unsigned int depth)
{
	unsigned int used;

	world_rewind(sim, SEED);
	sim->is_healed = true;
	for (unsigned int i = 0; i < sim->n_hosts; i++)
		sim->host[i].traits = app_accepts();
	if (pattern->connected) {
		connect_to_server(sim);
		world_run(sim, UINT64_MAX);
	}
	for (unsigned int i = 0; i < sim->n_hosts && pattern->traits; i++)
		pattern->traits(&sim->host[i].traits);
	net_fates(sim, fates, depth);
	pattern->begin(sim);
	world_run(sim, UINT64_MAX);
	used = sim->net.n_fated;
	if (!sim->failed)
		oracle_quiet(sim);
	check_end(sim, CLIENT, pattern->client);
	check_end(sim, SERVER, pattern->server);
	net_fates(sim, NULL, 0);
	world_end(sim);
	return used;
}

/* --- all combinations ---------------------------------------------------- */

static void complain(const struct sim *sim, const struct pattern *pattern, const uint8_t *fates,
		     unsigned int depth)
{
	printf("FAIL %s: %s\nagain: sim --pattern %s --fates ", pattern->name, sim->why,
	       pattern->name);
	for (unsigned int i = 0; i < depth; i++)
		putchar('0' + fates[i]);
	putchar('\n');
}

/* The next combination that differs in used fates. Return: false after the last. */
static bool advance(uint8_t *fates, unsigned int used)
{
	while (used) {
		if (++fates[used - 1] < NET_N_FATES)
			return true;
		fates[--used] = 0;
	}
	return false;
}

int pattern_run_all(unsigned int number, unsigned int depth, struct pattern_counts *counts)
{
	const struct pattern *pattern = &patterns[number];
	uint8_t fates[NET_FATES_MAX] = { 0 };
	unsigned int used;
	struct sim sim;
	int ret = 0;

	world_init(&sim, SEED, 2);
	*counts = (struct pattern_counts){ 0 };
	do {
		used = run(&sim, pattern, fates, depth);
		counts->runs++;
		counts->patterns += UINT64_C(1) << 2 * (depth - used);
		counts->calls += sim.n_calls;
		counts->messages += sim.n_messages;
		if (sim.failed) {
			complain(&sim, pattern, fates, depth);
			ret = -1;
		}
	} while (!ret && advance(fates, used));
	world_fini(&sim);
	return ret;
}

int pattern_replay(const char *name, const char *text, FILE *out)
{
	uint8_t fates[NET_FATES_MAX] = { 0 };
	size_t i = 0, depth = strlen(text);
	struct sim sim;
	int ret;

	while (i < N_PATTERNS && strcmp(patterns[i].name, name) != 0)
		i++;
	if (i == N_PATTERNS || depth == 0 || depth > NET_FATES_MAX || strspn(text, "0123") != depth)
		return -EINVAL;
	for (size_t n = 0; n < depth; n++)
		fates[n] = (uint8_t)(text[n] - '0');
	world_init(&sim, SEED, 2);
	sim.chart = out;
	run(&sim, &patterns[i], fates, (unsigned int)depth);
	ret = sim.failed ? -1 : 0;
	world_fini(&sim);
	return ret;
}

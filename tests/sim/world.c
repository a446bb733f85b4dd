/* SPDX-License-Identifier: BSD-2-Clause */
/* The event loop of all worlds: see world.h. */
#include "tests/sim/world.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/app.h"
#include "tests/sim/host.h"
#include "tests/sim/net.h"
#include "tests/sim/oracle.h"

#define START_NS  SIM_NS_PER_S
#define STEPS_MAX 2000000 /* more than this is a message storm */

void sim_fail(struct sim *sim, const char *format, ...)
{
	va_list args;

	if (sim->failed)
		return;
	sim->failed = true;
	va_start(args, format);
	vsnprintf(sim->why, sizeof(sim->why), format, args);
	va_end(args);
	if (sim->chart)
		fprintf(sim->chart, "%12.3f ms  %s\n", (double)sim->now_ns / 1e6, sim->why);
}

void world_identity(struct sim_host *host, unsigned int life)
{
	host->guid = (life + 1) * 0x100 + 0xa + host->number;
	host->gid = (struct mad_gid){
		.raw = { [10] = 0xff, 0xff, 10, 0, (uint8_t)life, host->number }
	};
}

static void reset(struct sim *sim, uint64_t seed)
{
	sim->seed = seed;
	sim->now_ns = START_NS;
	sim->is_healed = sim->is_ending = sim->failed = false;
	sim->n_calls = sim->n_messages = 0;
	clock_clear(&sim->clock);
	net_reset(sim);
}

void world_init(struct sim *sim, uint64_t seed, unsigned int n_hosts)
{
	*sim = (struct sim){ .n_hosts = n_hosts };
	sim->host = calloc(n_hosts, sizeof(*sim->host));
	sim->net.link = calloc((size_t)n_hosts * n_hosts, sizeof(*sim->net.link));
	if (!sim->host || !sim->net.link)
		abort();
	reset(sim, seed);
	for (unsigned int i = 0; i < n_hosts; i++) {
		struct sim_host *host = &sim->host[i];

		host->sim = sim;
		host->number = (uint8_t)i;
		host->traits = app_accepts();
		world_identity(host, 0);
		host_start(host);
		host_rewind(host);
	}
}

void world_rewind(struct sim *sim, uint64_t seed)
{
	reset(sim, seed);
	for (unsigned int i = 0; i < sim->n_hosts; i++)
		host_rewind(&sim->host[i]);
}

void world_fini(struct sim *sim)
{
	for (unsigned int i = 0; i < sim->n_hosts; i++)
		host_fini(&sim->host[i]);
	clock_fini(&sim->clock);
	net_fini(&sim->net);
	free(sim->host);
}

static void carry_out_plan(struct sim *sim)
{
	struct plan plan = clock_take(&sim->clock);

	switch (plan.kind) {
	case PLAN_ARRIVE:
		net_arrive(sim, plan.what);
		break;
	case PLAN_CALL:
		app_due(sim, &plan);
		break;
	case PLAN_WORLD:
		sim->act(sim, &plan);
		break;
	}
}

/* The first due event: a plan, a host's timer, or a held packet. */
static bool step(struct sim *sim, uint64_t until_ns)
{
	const struct plan *plan = clock_next(&sim->clock);
	uint64_t at_ns = plan ? plan->at_ns : UINT64_MAX, held_ns = net_held_ns(sim), due_ns;
	struct sim_host *first = NULL;

	for (unsigned int i = 0; i < sim->n_hosts; i++) {
		due_ns = host_due_ns(&sim->host[i]);
		if (due_ns < at_ns) {
			at_ns = due_ns;
			first = &sim->host[i];
		}
	}
	if (held_ns < at_ns)
		at_ns = held_ns;
	if (at_ns == UINT64_MAX || at_ns > until_ns)
		return false;
	if (at_ns > sim->now_ns)
		sim->now_ns = at_ns;
	if (held_ns == at_ns)
		net_release(sim);
	else if (first)
		host_expire(first);
	else
		carry_out_plan(sim);
	return true;
}

void world_run(struct sim *sim, uint64_t until_ns)
{
	unsigned int n = 0;

	while (!sim->failed && step(sim, until_ns))
		if (++n > STEPS_MAX)
			sim_fail(sim, "it goes on for ever");
	if (!sim->failed && until_ns != UINT64_MAX && sim->now_ns < until_ns)
		sim->now_ns = until_ns;
}

void world_end(struct sim *sim)
{
	if (sim->failed)
		return;
	app_destroy_all(sim);
	world_run(sim, UINT64_MAX);
	if (!sim->failed)
		oracle_empty(sim);
}

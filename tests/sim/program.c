/* SPDX-License-Identifier: BSD-2-Clause */
/* The events of a random program, and their times: see program.h. */
#include "tests/sim/program.h"

#include <inttypes.h>

#include "tests/sim/app.h"
#include "tests/sim/chart.h"
#include "tests/sim/host.h"
#include "tests/sim/lie.h"
#include "tests/sim/net.h"
#include "tests/sim/oracle.h"
#include "tests/sim/world.h"

#define HOSTS_USUAL	6 /* the maximum if the seed determines the number */
#define FAULTS_NS_MAX	(100 * SIM_NS_PER_S)
#define CONNECTS_MAX	40
#define LOOKUPS_MAX	15
#define WILD_MAX	60
#define LIES_MAX	60
#define CUTS_MAX	4
#define CRASHES_MAX	3
#define SLEEPS_MAX	3
#define DOWN_NS_MAX	(20 * SIM_NS_PER_S)
#define JUMP_NS_MAX	(100 * SIM_NS_PER_S)
#define IDS_BEFORE_WRAP 20

enum world_act {
	ACT_CONNECT,
	ACT_LOOK_UP,
	ACT_WILD_CALL,
	ACT_LIE,
	ACT_CUT,
	ACT_MEND,
	ACT_CRASH,
	ACT_START,
	ACT_SLEEP,
	ACT_JUMP,
	ACT_HEAL,
};

struct program {
	struct rng rng;
	uint64_t faults_end_ns;
};

static uint64_t below(struct sim *sim, uint64_t n)
{
	struct program *program = sim->program;

	return rng_below(&program->rng, n);
}

static void plan(struct sim *sim, enum world_act act, uint64_t at_ns, uint8_t host, uint32_t more)
{
	clock_plan(&sim->clock, (struct plan){ .at_ns = at_ns,
					       .kind = PLAN_WORLD,
					       .host = host,
					       .what = act,
					       .more = more });
}

/* --- events -------------------------------------------------------------- */

static uint8_t other_host(struct sim *sim, uint8_t host)
{
	return (uint8_t)((host + 1 + below(sim, sim->n_hosts - 1)) % sim->n_hosts);
}

static void wild_call(struct sim *sim, struct sim_host *host)
{
	struct sim_id *id = host->n_ids ? host->id[below(sim, host->n_ids)] : NULL;
	enum cm_event verb = (enum cm_event)below(sim, CM_CALL_FORGET + 1);

	if (id && id->conn)
		app_call(id, verb);
}

static void crash(struct sim *sim, struct sim_host *host)
{
	chart_note(sim, host->number, "crashes");
	host_crash(host);
	plan(sim, ACT_START, sim->now_ns + below(sim, DOWN_NS_MAX), host->number,
	     below(sim, 3) == 0);
}

static void restart_host(struct sim *sim, struct sim_host *host, bool as_another)
{
	chart_note(sim, host->number, as_another ? "comes back as another" : "comes back");
	if (as_another)
		world_identity(host, host->incarnation);
	host_start(host);
}

static void pause_host(struct sim *sim, struct sim_host *host)
{
	uint64_t ns = below(sim, DOWN_NS_MAX);

	chart_note(sim, host->number, "sleeps");
	host->asleep_ns = sim->now_ns + ns;
	host->odd_ns += ns;
}

static void jump_time(struct sim *sim, struct sim_host *host)
{
	uint64_t ns = below(sim, JUMP_NS_MAX);

	chart_note(sim, host->number, "its clock jumps");
	host->skew_ns += ns;
	host->odd_ns += ns;
}

static void act(struct sim *sim, const struct plan *plan_)
{
	struct sim_host *host = &sim->host[plan_->host];
	uint8_t other = other_host(sim, host->number);

	if (!host->is_up && plan_->what != ACT_START && plan_->what != ACT_HEAL)
		return;
	switch ((enum world_act)plan_->what) {
	case ACT_CONNECT:
		app_connect(host, other);
		break;
	case ACT_LOOK_UP:
		app_look_up(host, other);
		break;
	case ACT_WILD_CALL:
		wild_call(sim, host);
		break;
	case ACT_LIE:
		falsify_at_random(sim, host, &sim->host[other]);
		break;
	case ACT_CUT:
	case ACT_MEND:
		chart_note(sim, host->number,
			   plan_->what == ACT_CUT ? "cut off, one way" : "mended");
		net_link_of(sim, host->number, plan_->more)->cut = plan_->what == ACT_CUT;
		break;
	case ACT_CRASH:
		crash(sim, host);
		break;
	case ACT_START:
		restart_host(sim, host, plan_->more);
		break;
	case ACT_SLEEP:
		pause_host(sim, host);
		break;
	case ACT_JUMP:
		jump_time(sim, host);
		break;
	case ACT_HEAL:
		chart_note(sim, 0, "the network is healed");
		net_heal(sim);
		break;
	}
}

/* --- creation of a world ------------------------------------------------- */

static struct app_traits any_character(struct sim *sim)
{
	static const uint16_t chances[] = { 0, 0, 50, 300, 700, 1000, 1000 };
	static const uint32_t times_us[] = { 0, 1000, 100000, 3000000, 20000000 };
	struct app_traits t = app_accepts();

	if (below(sim, 3) == 0)
		return t;
#define ANY_CHANCE chances[below(sim, 7)]
	t.accept = 500 + (uint16_t)below(sim, 501);
	t.reject = ANY_CHANCE;
	t.forget = ANY_CHANCE;
	t.patience = ANY_CHANCE;
	t.confirm = 500 + (uint16_t)below(sim, 501);
	t.refuse_rep = ANY_CHANCE;
	t.answer = ANY_CHANCE;
	t.hang_up = ANY_CHANCE;
	t.destroy = (uint16_t)below(sim, 100);
	t.early = ANY_CHANCE;
	t.again = (uint16_t)below(sim, 500);
	t.think_max_us = times_us[below(sim, 5)];
	t.life_max_us = times_us[below(sim, 5)];
	t.destroy_over = below(sim, 2);
#undef ANY_CHANCE
	return t;
}

static void any_faults(struct sim *sim, struct net_link *link, bool may_break)
{
	static const uint32_t delays_us[] = { 0, 100, 10000, 1000000, 16000000 };
	unsigned int harm = (unsigned int)below(sim, 3) * 250; /* none, some, many; in 1000 */
	struct net_fault fault = { 0 };

	for (int kind = 0; kind < NET_KINDS && harm; kind++) {
		/* Either the same for several kinds, or different ones. */
		if (kind == 0 || below(sim, 3) == 0)
			fault = (struct net_fault){
				.lose = (uint16_t)below(sim, harm + 1),
				.duplicate = (uint16_t)below(sim, harm + 1),
				.corrupt = may_break ? (uint16_t)below(sim, harm / 4 + 1) : 0,
				.delay = (uint16_t)below(sim, 2 * harm + 1),
				.delay_max_us = delays_us[below(sim, 5)],
			};
		link->fault[kind] = fault;
	}
}

static void make_network(struct sim *sim)
{
	bool may_break = below(sim, 3) == 0;

	for (unsigned int from = 0; from < sim->n_hosts; from++)
		for (unsigned int to = 0; to < sim->n_hosts; to++)
			any_faults(sim, net_link_of(sim, from, to), may_break);
	if (below(sim, 4) == 0)
		sim->net.queue_max = 1 + (unsigned int)below(sim, 8);
	sim->net.latency_us = 1 + (uint32_t)below(sim, 2000);
}

static void make_host(struct sim *sim, struct sim_host *host)
{
	static const unsigned int turns[] = { 1, 2, 5, 128 };
	struct cm_ids *ids = &host->core.ids;

	host->traits = any_character(sim);
	host->core.out_max = turns[below(sim, 4)];
	if (below(sim, 3) == 0)
		ids->next = UINT32_MAX - (uint32_t)below(sim, IDS_BEFORE_WRAP);
	if (below(sim, 3) == 0) {
		cm_core_lend_ids(&host->core, (uint32_t)below(sim, 0x10000) << 16, CM_ID_BLOCK);
		ids->block[0].step = CM_ID_BLOCK - 1 - (uint32_t)below(sim, IDS_BEFORE_WRAP);
	}
}

static void plan_some(struct sim *sim, enum world_act act_, uint64_t max)
{
	struct program *program = sim->program;
	uint64_t span_ns = program->faults_end_ns - sim->now_ns, at_ns;

	for (uint64_t n = below(sim, max + 1); n; n--) {
		uint8_t host = (uint8_t)below(sim, sim->n_hosts);

		at_ns = sim->now_ns + below(sim, span_ns);
		plan(sim, act_, at_ns, host, 0);
	}
}

static void plan_cuts(struct sim *sim)
{
	struct program *program = sim->program;
	uint64_t span_ns = program->faults_end_ns - sim->now_ns, at_ns;

	for (uint64_t n = below(sim, CUTS_MAX + 1); n; n--) {
		uint8_t from = (uint8_t)below(sim, sim->n_hosts), to = other_host(sim, from);

		at_ns = sim->now_ns + below(sim, span_ns);
		plan(sim, ACT_CUT, at_ns, from, to);
		plan(sim, ACT_MEND, at_ns + below(sim, span_ns), from, to);
	}
}

static void plan_all(struct sim *sim)
{
	struct program *program = sim->program;

	program->faults_end_ns = sim->now_ns + 1 + below(sim, FAULTS_NS_MAX);
	plan_some(sim, ACT_CONNECT, CONNECTS_MAX);
	plan_some(sim, ACT_LOOK_UP, LOOKUPS_MAX);
	if (below(sim, 2) == 0)
		plan_some(sim, ACT_WILD_CALL, WILD_MAX);
	if (below(sim, 4) == 0)
		plan_some(sim, ACT_LIE, LIES_MAX);
	if (below(sim, 2) == 0)
		plan_cuts(sim);
	if (below(sim, 3) == 0)
		plan_some(sim, ACT_CRASH, CRASHES_MAX);
	if (below(sim, 3) == 0)
		plan_some(sim, ACT_SLEEP, SLEEPS_MAX);
	if (below(sim, 3) == 0)
		plan_some(sim, ACT_JUMP, SLEEPS_MAX);
	plan(sim, ACT_HEAL, program->faults_end_ns, 0, 0);
}

/* As the seed determines it. */
static unsigned int some_hosts(struct rng *rng)
{
	return 2 + (unsigned int)rng_below(rng, HOSTS_USUAL - 1);
}

static void print_finding(const struct sim *sim, unsigned int n_hosts)
{
	printf("FAIL %s\nagain: sim --seed %" PRIu64, sim->why, sim->seed);
	if (n_hosts)
		printf(" --hosts %u", n_hosts);
	putchar('\n');
}

int program_run(uint64_t seed, unsigned int n_hosts, FILE *chart, struct program_counts *counts)
{
	struct program program = { .rng = rng_fork(seed, 1) };
	unsigned int usual = some_hosts(&program.rng);
	struct sim sim;

	world_init(&sim, seed, n_hosts ? n_hosts : usual);
	sim.program = &program;
	sim.act = act;
	sim.chart = chart;
	make_network(&sim);
	for (unsigned int i = 0; i < sim.n_hosts; i++)
		make_host(&sim, &sim.host[i]);
	plan_all(&sim);
	world_run(&sim, UINT64_MAX);
	if (!sim.failed)
		oracle_quiet(&sim);
	world_end(&sim);
	counts->programs++;
	counts->calls += sim.n_calls;
	counts->messages += sim.n_messages;
	for (unsigned int i = 0; i < sim.n_hosts; i++)
		counts->ids += sim.host[i].n_ids;
	if (sim.failed)
		print_finding(&sim, n_hosts);
	world_fini(&sim);
	return sim.failed ? -1 : 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All combinations of faults in the first transmissions of a connection: each is delivered, lost,
 * duplicated or delayed past the next. In any case, both callers must get a report of the end, in a
 * legal order, and nothing may remain.
 */
#include <string.h>

#include "tests/unit/cm/pair.h"
#include "tests/unit/test.h"

/* A sanitizer makes each run ten times as slow; the plain build has all of them. */
#ifdef __SANITIZE_ADDRESS__
#define N_TRANSMISSIONS 4
#define N_WAYS		256 /* N_TRANSMISSIONS-th power of PAIR_N_FATES */
#else
#define N_TRANSMISSIONS 6
#define N_WAYS		4096
#endif

static bool is_one_of(const char *log, const char *const *legal)
{
	while (*legal && strcmp(log, *legal) != 0)
		legal++;
	return *legal;
}

/* A caller that destroys its end gets no more reports. A DREQ may overtake the RTU. */
static const char *const legal[2][PAIR_N_HASTES][4] = {
	[PAIR_CLIENT] = {
		[PAIR_STAYS] = { "RESPONSE, DISCONNECTED, TIMEWAIT_EXIT" },
		[PAIR_DISCONNECTS] = { "RESPONSE, DISCONNECTED, TIMEWAIT_EXIT" },
		[PAIR_DESTROYS] = { "RESPONSE" },
	},
	[PAIR_SERVER] = {
		[PAIR_STAYS] = { "REQUEST, ESTABLISHED, DISCONNECTED, TIMEWAIT_EXIT",
				 "REQUEST, DISCONNECTED, TIMEWAIT_EXIT" },
		[PAIR_DISCONNECTS] = { "REQUEST, ESTABLISHED, DISCONNECTED, TIMEWAIT_EXIT",
				       "REQUEST, DISCONNECTED, TIMEWAIT_EXIT" },
		[PAIR_DESTROYS] = { "REQUEST, ESTABLISHED",
				    "REQUEST, DISCONNECTED, TIMEWAIT_EXIT" },
	},
};

/*
 * A REQ that arrives when the server's end is in TIMEWAIT or destroyed is taken for a new one, as
 * in the kernel; its REP gets no answer.
 */
static const char *const ghost[] = { "REQUEST, UNREACHABLE -110", NULL };

static void assert_diaries(struct pair *pair)
{
	for (int side = 0; side < 2; side++) {
		struct pair_host *host = &pair->host[side];

		ck_assert_uint_ge(host->n_ends, 1);
		ck_assert_msg(is_one_of(host->end[0].log, legal[side][host->haste]),
			      "\"%s\" is not legal: %s", host->end[0].log, pair->chart);
		for (unsigned int i = 1; i < host->n_ends; i++)
			ck_assert_msg(side == PAIR_SERVER && is_one_of(host->end[i].log, ghost),
				      "\"%s\" is not legal: %s", host->end[i].log, pair->chart);
	}
}

static void play_fates(int way, int hastes)
{
	enum pair_fate fates[N_TRANSMISSIONS];
	struct pair pair;

	for (int i = 0; i < N_TRANSMISSIONS; i++, way /= PAIR_N_FATES)
		fates[i] = (enum pair_fate)(way % PAIR_N_FATES);
	pair_init(&pair);
	pair.fates = fates;
	pair.n_fates = N_TRANSMISSIONS;
	pair.host[PAIR_CLIENT].haste = (enum pair_haste)(hastes / PAIR_N_HASTES);
	pair.host[PAIR_SERVER].haste = (enum pair_haste)(hastes % PAIR_N_HASTES);
	pair_connect(&pair);
	pair_run(&pair);
	assert_diaries(&pair);
	pair_fini(&pair);
}

/* From 1: one side must disconnect. */
TEST_LOOP(connect_and_disconnect_end_under_all_faults, 1, PAIR_N_HASTES *PAIR_N_HASTES)
{
	for (int way = 0; way < N_WAYS; way++)
		play_fates(way, _i);
}

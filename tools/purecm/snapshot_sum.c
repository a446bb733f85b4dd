/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages that present processes have dropped at a port, by cause, in total: cmportd forwards
 * messages, and does not learn what becomes of them. Part of snapshot.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/purecm/snapshot.h"

/* Counted by each process, but not by cmportd at a port. */
static const enum portd_stat_counter summed[] = {
	PORTD_COUNT_DUPLICATE,	PORTD_COUNT_UNKNOWN,   PORTD_COUNT_ALIEN,
	PORTD_COUNT_UNEXPECTED, PORTD_COUNT_NO_MEMORY, PORTD_COUNT_UNSUPPORTED,
};

#define N_SUMMED (sizeof(summed) / sizeof(summed[0]))

struct sums {
	uint64_t value[PORTD_PORTS_MAX][PORTD_N_COUNTERS][CM_TALLY_KINDS];
};

static void add_up(const struct snapshot *snapshot, struct sums *sums)
{
	const struct portd_stat_count *count;
	size_t i;

	for (i = 0; i < snapshot->n_counts; i++) {
		count = &snapshot->count[i];
		if (count->row.client != PORTD_STAT_PASSING && count->port < PORTD_PORTS_MAX)
			sums->value[count->port][count->what][count->message] += count->value;
	}
}

/* Sums once for each port, in any order of rows. Return: number of counters stored at @to. */
static size_t put_sums(struct sums *sums, struct portd_stat_row row, uint8_t port,
		       struct portd_stat_count *to)
{
	size_t i, n = 0;
	uint8_t kind;

	for (i = 0; i < N_SUMMED; i++) {
		for (kind = 0; kind < CM_TALLY_KINDS; kind++) {
			if (!sums->value[port][summed[i]][kind])
				continue;
			to[n++] = (struct portd_stat_count){
				.row = row,
				.port = port,
				.message = kind,
				.what = (uint8_t)summed[i],
				.value = sums->value[port][summed[i]][kind],
			};
		}
	}
	memset(sums->value[port], 0, sizeof(sums->value[port]));
	return n;
}

static bool ends_port(const struct snapshot *snapshot, size_t i)
{
	const struct portd_stat_count *count = &snapshot->count[i];

	return count->row.client == PORTD_STAT_PASSING && count->port < PORTD_PORTS_MAX &&
	       (i + 1 == snapshot->n_counts || count[1].row.client != PORTD_STAT_PASSING ||
		count[1].port != count->port);
}

int snapshot_sum(struct snapshot *snapshot)
{
	size_t i, n = 0, max = snapshot->n_counts + PORTD_PORTS_MAX * N_SUMMED * CM_TALLY_KINDS;
	struct portd_stat_count *count = calloc(max, sizeof(*count));
	struct sums *sums = calloc(1, sizeof(*sums));

	if (!count || !sums) {
		free(count);
		free(sums);
		return -ENOMEM;
	}
	add_up(snapshot, sums);
	for (i = 0; i < snapshot->n_counts; i++) {
		count[n++] = snapshot->count[i];
		if (ends_port(snapshot, i))
			n += put_sums(sums, count[n - 1].row, count[n - 1].port, &count[n]);
	}
	free(sums);
	free(snapshot->count);
	snapshot->count = count;
	snapshot->n_counts = n;
	return 0;
}

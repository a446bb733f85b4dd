/* SPDX-License-Identifier: BSD-2-Clause */
/* Queries of cmportd and the processes: see snapshot.h. */
#include "tools/purecm/snapshot.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "lib/portd/client/portd_client.h"
#include "tools/purecm/subcommand.h"

struct gathering {
	struct snapshot *snapshot;
	uint32_t ask_id;
	unsigned int n_awaited; /* STAT_END records outstanding */
	bool has_begun;		/* cmportd's own rows are complete */
	int err;
};

/* Appends an entry to an array, which grows at powers of two. Return: 0 or -ENOMEM. */
static int append_row(void *array, size_t *n, const void *row, size_t bytes)
{
	void **rows = array, *larger = *rows;

	if ((*n & (*n - 1)) == 0)
		larger = realloc(*rows, (*n ? 2 * *n : 1) * bytes);
	if (!larger)
		return -ENOMEM;
	*rows = larger;
	memcpy((char *)larger + (*n)++ * bytes, row, bytes);
	return 0;
}

/* --- processes ----------------------------------------------------------- */

void snapshot_read_program(struct snapshot_process *process)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/comm", process->pid);
	if (fd_read_file(path, process->program, sizeof(process->program)) <= 0)
		strcpy(process->program, "?");
	process->program[strcspn(process->program, "\n")] = '\0';
	text_make_printable(process->program);
}

int snapshot_add_process(struct snapshot *snapshot, const struct snapshot_process *process)
{
	return append_row(&snapshot->process, &snapshot->n_processes, process, sizeof(*process));
}

static int take_process(struct snapshot *snapshot, const struct portd_stat_process *row)
{
	struct snapshot_process process = {
		.client = row->row.client,
		.pid = row->pid,
		.uid = row->uid,
		.n_conns = row->n_conns,
	};

	snapshot_read_program(&process);
	snapshot->index[process.client] = (uint16_t)snapshot->n_processes;
	return snapshot_add_process(snapshot, &process);
}

/* Rows of a client that cmportd has not announced are nobody's; earlier versions pass them on. */
static bool is_announced(const struct snapshot *snapshot, uint16_t client)
{
	return snapshot->index[client] || client == PORTD_STAT_ITSELF ||
	       client == PORTD_STAT_PASSING;
}

static struct snapshot_process *find_process(const struct snapshot *snapshot, uint16_t client)
{
	return &snapshot->process[snapshot->index[client]];
}

const struct snapshot_process *snapshot_process(const struct snapshot *snapshot, uint16_t client)
{
	return find_process(snapshot, client);
}

/* --- rows ---------------------------------------------------------------- */

static void take_port(struct snapshot *snapshot, const struct portd_stat_port *row)
{
	struct snapshot_port *port;

	if (row->port >= PORTD_PORTS_MAX)
		return;
	port = &snapshot->port[row->port];
	port->is_known = true;
	port->port_num = row->port_num;
	memcpy(port->device, row->device, sizeof(port->device));
	port->device[sizeof(port->device) - 1] = '\0';
}

int snapshot_add_id(struct snapshot *snapshot, const struct portd_stat_id *row)
{
	return append_row(&snapshot->id, &snapshot->n_ids, row, sizeof(*row));
}

int snapshot_add_count(struct snapshot *snapshot, const struct portd_stat_count *row)
{
	if (row->what >= PORTD_N_COUNTERS || row->message >= CM_TALLY_KINDS)
		return 0; /* from a later version: unknown */
	return append_row(&snapshot->count, &snapshot->n_counts, row, sizeof(*row));
}

static int take_quota(struct snapshot *snapshot, const struct portd_stat_quota *row)
{
	struct portd_stat_quota quota = *row;

	quota.name[PORTD_QUOTA_BYTES - 1] = '\0';
	return append_row(&snapshot->quota, &snapshot->n_quotas, &quota, sizeof(quota));
}

static void take_end(struct gathering *gathering, const struct portd_stat_end *row)
{
	struct snapshot_process *process = find_process(gathering->snapshot, row->row.client);

	if (process->has_answered)
		return;
	process->has_answered = true;
	process->is_partial = row->is_partial;
	process->n_said = row->n_rows;
	gathering->has_begun = gathering->has_begun || process == gathering->snapshot->process;
	gathering->n_awaited--;
}

static void take_record(const struct portd_record *record, void *arg)
{
	struct gathering *gathering = arg;
	struct snapshot *snapshot = gathering->snapshot;
	int err = 0;

	if (((record->type < PORTD_STAT_PORT || record->type > PORTD_STAT_END) &&
	     record->type != PORTD_STAT_QUOTA) ||
	    record->stat_row.ask_id != gathering->ask_id ||
	    (record->type != PORTD_STAT_PROCESS &&
	     !is_announced(snapshot, record->stat_row.client)))
		return; /* of an earlier query, or of a client that was not asked */
	if (record->type == PORTD_STAT_PROCESS)
		err = take_process(snapshot, &record->stat_process);
	else if (record->type == PORTD_STAT_ID)
		err = snapshot_add_id(snapshot, &record->stat_id);
	else if (record->type == PORTD_STAT_COUNT)
		err = snapshot_add_count(snapshot, &record->stat_count);
	else if (record->type == PORTD_STAT_QUOTA)
		err = take_quota(snapshot, &record->stat_quota);
	else if (record->type == PORTD_STAT_PORT)
		take_port(snapshot, &record->stat_port);
	if (record->type == PORTD_STAT_END)
		take_end(gathering, &record->stat_end);
	else if (record->type == PORTD_STAT_PROCESS)
		snapshot->process[0].n_rows++; /* a row of cmportd itself */
	else
		find_process(snapshot, record->stat_row.client)->n_rows++;
	gathering->err = gathering->err ? gathering->err : err;
}

static int await_rows(struct portd_client *client, struct gathering *gathering,
		      unsigned int wait_ms)
{
	uint64_t until = clock_ns() + wait_ms * UINT64_C(1000000), now;
	struct pollfd poll_fd = { .fd = portd_client_fd(client), .events = POLLIN };
	int err = 0;

	while (!gathering->err && gathering->n_awaited) {
		now = clock_ns();
		if (now >= until || (poll(&poll_fd, 1, (int)((until - now) / 1000000 + 1)) < 0))
			break;
		err = portd_receive(client, take_record, gathering);
		if (err && err != -EAGAIN)
			return err;
	}
	if (gathering->err)
		return gathering->err;
	return gathering->has_begun ? 0 : -ETIMEDOUT;
}

int snapshot_gather(struct portd_client *client, uint32_t pid, unsigned int wait_ms,
		    struct snapshot *ret)
{
	const struct snapshot_process itself = { .client = PORTD_STAT_ITSELF,
						 .program = "cmportd" };
	struct gathering gathering = { .snapshot = ret };
	struct portd_reply reply = { .error = 0 };
	int err;

	memset(ret, 0, sizeof(*ret));
	err = snapshot_add_process(ret, &itself);
	if (err)
		return err;
	err = portd_stat(client, pid, &reply);
	if (err)
		return err;
	ret->time_ns = clock_ns_of(CLOCK_REALTIME);
	gathering.ask_id = reply.first;
	gathering.n_awaited = reply.count + 1;
	return await_rows(client, &gathering, wait_ms);
}

void snapshot_fini(struct snapshot *snapshot)
{
	free(snapshot->process);
	free(snapshot->id);
	free(snapshot->count);
	free(snapshot->quota);
}

void snapshot_complain(const struct snapshot *snapshot)
{
	const struct snapshot_process *process;
	size_t i;

	for (i = 0; i < snapshot->n_processes; i++) {
		process = &snapshot->process[i];
		if (!process->has_answered)
			complain("%s[%u] does not answer: it is stopped, or too busy; cmportd "
				 "knows of %u connections",
				 process->program, process->pid, process->n_conns);
		else if (process->n_rows < process->n_said || process->is_partial)
			complain("%s[%u]: %u rows are missing%s", process->program, process->pid,
				 process->n_said - process->n_rows,
				 process->is_partial ? ", and those that it has no memory for"
						     : "");
	}
}

/* --- sums ------------------------------------------------------------------ */

/*
 * Messages that present processes have dropped at a port, by cause, in total: cmportd forwards
 * messages, and does not learn what becomes of them.
 */

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

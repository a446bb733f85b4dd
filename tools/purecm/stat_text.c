/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Snapshots for people: a table of ids and connections if the terminal is wide enough, otherwise a
 * paragraph for each; then the counters. Part of snapshot.h.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/purecm/page.h"
#include "tools/purecm/snapshot.h"

const char *const stat_titles[STAT_N_COLUMNS] = {
	[STAT_PROCESS] = "PROCESS",
	[STAT_ID] = "ID",
	[STAT_CONNECTION] = "CONNECTION",
	[STAT_LOCAL] = "LOCAL",
	[STAT_PEER] = "PEER",
	[STAT_DEVICE] = "DEVICE",
	[STAT_QPN] = "QPN",
	[STAT_COMM_IDS] = "COMM IDS",
	[STAT_AGE] = "AGE",
	[STAT_RETRIES] = "RETRIES",
};

/* --- cells --------------------------------------------------------------- */

static void print_process(const struct snapshot_process *process, char buf[STAT_CELL_BYTES])
{
	if (!process->pid) /* cmportd, a kernel module, "?" */
		snprintf(buf, STAT_CELL_BYTES, "%s", process->program);
	else
		snprintf(buf, STAT_CELL_BYTES, "%s[%u]", process->program, process->pid);
}

static void print_age(uint64_t ms, char buf[STAT_CELL_BYTES])
{
	uint64_t s = ms / 1000;

	if (ms == UINT64_MAX)
		snprintf(buf, STAT_CELL_BYTES, "-");
	else if (s < 60)
		snprintf(buf, STAT_CELL_BYTES, "%" PRIu64 ".%" PRIu64 " s", s, ms / 100 % 10);
	else if (s < 3600)
		snprintf(buf, STAT_CELL_BYTES, "%" PRIu64 ":%02" PRIu64 " min", s / 60, s % 60);
	else if (s < 86400)
		snprintf(buf, STAT_CELL_BYTES, "%" PRIu64 ":%02" PRIu64 " h", s / 3600,
			 s / 60 % 60);
	else
		snprintf(buf, STAT_CELL_BYTES, "%" PRIu64 " d %" PRIu64 " h", s / 86400,
			 s / 3600 % 24);
}

/* Ours and the peer's; "-" if unknown. */
static void print_pair(uint32_t local, uint32_t remote, char buf[STAT_CELL_BYTES])
{
	char theirs[16] = "-";

	if (remote)
		snprintf(theirs, sizeof(theirs), "0x%x", remote);
	if (local)
		snprintf(buf, STAT_CELL_BYTES, "0x%x %s", local, theirs);
	else
		snprintf(buf, STAT_CELL_BYTES, "%s%s", remote ? "- " : "", theirs);
}

void stat_fill_row(const struct snapshot *snapshot, const struct portd_stat_id *id,
		   struct stat_row *row)
{
	const char *space = snapshot_space(id->ps);
	char place[PLACE_BYTES];

	print_process(snapshot_process(snapshot, id->row.client), row->text[STAT_PROCESS]);
	snprintf(row->text[STAT_ID], STAT_CELL_BYTES, "%s%s%s",
		 id->id_state == PORTD_STAT_NONE ? "" : space,
		 id->id_state == PORTD_STAT_NONE ? "" : " ", snapshot_id_state(id));
	if (id->n_requests)
		snprintf(row->text[STAT_CONNECTION], STAT_CELL_BYTES, "%u waiting", id->n_requests);
	else
		snprintf(row->text[STAT_CONNECTION], STAT_CELL_BYTES, "%s",
			 snapshot_conn_state(id));
	snprintf(row->text[STAT_LOCAL], STAT_CELL_BYTES, "%s", snapshot_local(id, place));
	snprintf(row->text[STAT_PEER], STAT_CELL_BYTES, "%s", snapshot_peer(id, place));
	snprintf(row->text[STAT_DEVICE], STAT_CELL_BYTES, "%s",
		 snapshot_port_str(snapshot, id->port, place));
	print_pair(id->local_qpn, id->remote_qpn, row->text[STAT_QPN]);
	print_pair(id->local_comm_id, id->remote_comm_id, row->text[STAT_COMM_IDS]);
	print_age(id->age_ms, row->text[STAT_AGE]);
	row->age_ms = id->age_ms;
	row->retries = id->retries == SNAPSHOT_UNKNOWN ? 0 : id->retries;
	if (id->retries == SNAPSHOT_UNKNOWN)
		snprintf(row->text[STAT_RETRIES], STAT_CELL_BYTES, "-");
	else
		snprintf(row->text[STAT_RETRIES], STAT_CELL_BYTES, "%u", id->retries);
}

/* --- ids ----------------------------------------------------------------- */

unsigned int stat_measure(const struct stat_row *rows, size_t n,
			  unsigned int ret_widths[STAT_N_COLUMNS])
{
	unsigned int i, width, sum = 0;
	size_t at;

	for (i = 0; i < STAT_N_COLUMNS; i++) {
		ret_widths[i] = (unsigned int)strlen(stat_titles[i]);
		for (at = 0; at < n; at++) {
			width = (unsigned int)strlen(rows[at].text[i]);
			if (width > ret_widths[i])
				ret_widths[i] = width;
		}
		sum += ret_widths[i] + STAT_GAP;
	}
	return sum - STAT_GAP;
}

const char *stat_format(const struct stat_row *row, const enum stat_column *columns,
			size_t n_columns, const unsigned int widths[STAT_N_COLUMNS],
			char ret[STAT_LINE_BYTES])
{
	size_t i, at, n = 0;

	for (i = 0; i < n_columns; i++) {
		at = columns ? columns[i] : i;
		n += (size_t)sprintf(ret + n, "%-*s", (int)(widths[at] + STAT_GAP),
				     row ? row->text[at] : stat_titles[at]);
	}
	while (n && ret[n - 1] == ' ')
		ret[--n] = '\0';
	return ret;
}

static void print_paragraph(const struct stat_row *row, unsigned int width)
{
	char text[STAT_N_COLUMNS * STAT_CELL_BYTES + 64];

	fputs(row->text[STAT_PROCESS], stdout);
	snprintf(text, sizeof(text),
		 "%s, connection %s, %s to %s, device %s, QPN %s, comm ids %s, "
		 "age %s, %s retries",
		 row->text[STAT_ID], row->text[STAT_CONNECTION], row->text[STAT_LOCAL],
		 row->text[STAT_PEER], row->text[STAT_DEVICE], row->text[STAT_QPN],
		 row->text[STAT_COMM_IDS], row->text[STAT_AGE], row->text[STAT_RETRIES]);
	putchar(' ');
	page_fill(text, (unsigned int)strlen(row->text[STAT_PROCESS]) + 1, STAT_GAP, width, stdout);
}

static void print_ids(const struct snapshot *snapshot, unsigned int width)
{
	struct stat_row *rows = calloc(snapshot->n_ids + 1, sizeof(*rows));
	unsigned int widths[STAT_N_COLUMNS];
	char text[STAT_LINE_BYTES];
	bool is_table;
	size_t i;

	if (!snapshot->n_ids || !rows)
		puts("no ids");
	for (i = 0; rows && i < snapshot->n_ids; i++)
		stat_fill_row(snapshot, &snapshot->id[i], &rows[i]);
	is_table = rows && (stat_measure(rows, snapshot->n_ids, widths) <= width || !width);
	if (is_table && snapshot->n_ids)
		puts(stat_format(NULL, NULL, STAT_N_COLUMNS, widths, text));
	for (i = 0; rows && i < snapshot->n_ids; i++) {
		if (is_table)
			puts(stat_format(&rows[i], NULL, STAT_N_COLUMNS, widths, text));
		else
			print_paragraph(&rows[i], width);
	}
	free(rows);
}

/* --- counters ------------------------------------------------------------ */

static bool is_of(const struct portd_stat_count *count, const struct portd_stat_count *other)
{
	return count->row.client == other->row.client && count->port == other->port;
}

static bool is_first(const struct snapshot *snapshot, size_t at)
{
	return at == 0 || !is_of(&snapshot->count[at], &snapshot->count[at - 1]);
}

static void print_heading(const struct snapshot *snapshot, const struct portd_stat_count *count)
{
	char place[PLACE_BYTES], who[STAT_CELL_BYTES];

	snapshot_port_str(snapshot, count->port, place);
	print_process(snapshot_process(snapshot, count->row.client), who);
	if (count->row.client == PORTD_STAT_PASSING)
		printf("\nall that passes %s\n", place);
	else if (count->row.client == PORTD_STAT_ITSELF)
		printf("\ncmportd at %s, for those who are gone or never were\n", place);
	else
		printf("\n%s at %s\n", who, place);
}

/* One line per counter: its messages by kind are words, which may take several lines. */
static size_t print_counter(const struct snapshot *snapshot, size_t at, unsigned int width)
{
	const struct portd_stat_count *first = &snapshot->count[at];
	bool is_gauge = snapshot_is_gauge(first->what);
	char text[CM_TALLY_KINDS * 40] = "";
	size_t n = 0;

	for (; at < snapshot->n_counts && snapshot->count[at].what == first->what &&
	       is_of(&snapshot->count[at], first) && n < sizeof(text) - 40;
	     at++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s%s%" PRIu64, n ? ", " : "",
				      is_gauge ? "" : snapshot_message(snapshot->count[at].message),
				      is_gauge ? "" : " ", snapshot->count[at].value);
	printf("  %-12s", snapshot_counter(first->what));
	page_fill(text, 14, 14, width, stdout);
	return at;
}

static void print_counts(const struct snapshot *snapshot, unsigned int width)
{
	size_t at = 0;

	while (at < snapshot->n_counts) {
		if (is_first(snapshot, at))
			print_heading(snapshot, &snapshot->count[at]);
		at = print_counter(snapshot, at, width);
	}
}

void stat_print_quotas(const struct snapshot *snapshot)
{
	const struct portd_stat_quota *row;
	char uid[16], has[16];

	printf("%-10s  %-16s%10s%12s\n", "USER", "QUOTA", "HAS", "LIMIT");
	for (row = snapshot->quota; row < snapshot->quota + snapshot->n_quotas; row++) {
		snprintf(uid, sizeof(uid), "%u", row->uid);
		snprintf(has, sizeof(has), "%u", row->has);
		printf("%-10s  %-16s%10s%12u%s\n", row->uid == PORTD_QUOTA_EACH ? "each" : uid,
		       row->name, row->has == PORTD_QUOTA_EACH ? "-" : has, row->limit,
		       row->was_reached ? "  was reached" : "");
	}
}

void stat_print_text(const struct snapshot *snapshot, unsigned int width)
{
	print_ids(snapshot, width);
	print_counts(snapshot, width);
}

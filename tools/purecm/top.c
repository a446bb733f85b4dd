/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * purecm top: ids and connections of this host as they change, of purecm and of the kernel's
 * connection manager in one table.
 */
#include <curses.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "lib/portd/client/portd_client.h"
#include "tools/purecm/snapshot.h"

#define DELAY_S	   2
#define ANSWER_MS  500
#define HEAD_LINES 4

enum origin {
	OF_PURECM,
	OF_KERNEL,
	N_ORIGINS,
};

/* When an id of the kernel was first seen, which does not report its age. */
struct sighting {
	uint64_t key;
	uint64_t first_ns;
};

/* Total of messages at all ports. */
struct passed {
	uint64_t sent, received, repeated;
};

struct top {
	struct snapshot_filter filter; /* first */
	double delay_s;

	struct portd_client *client;	  /* NULL: no cmportd known */
	struct sighting *seen, *sighting; /* at the last look, by key, and at this one */
	size_t n_seen, n_sightings;

	struct stat_row *row;
	size_t n_rows;
	size_t n_of[N_ORIGINS];
	bool has[N_ORIGINS];
	unsigned int n_mute; /* processes that do not respond */
	struct passed passed, before;
	uint64_t at_ns, before_ns;

	enum stat_column sorted_by;
	bool is_reverse;
	size_t first; /* first row on the screen */
};

/* By priority: a narrow terminal omits columns from the end. */
static const enum stat_column columns[] = { STAT_PROCESS, STAT_ID,     STAT_CONNECTION,
					    STAT_PEER,	  STAT_AGE,    STAT_RETRIES,
					    STAT_LOCAL,	  STAT_DEVICE, STAT_QPN,
					    STAT_COMM_IDS };

#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))

/* clang-format off */
static const struct command_option options[] = {
	{ "delay", 'd', "SECONDS", "between one look and the next (2)",
	  COMMAND_SECONDS_AT(top, delay_s, 0.1, 3600) },
	{ 0 },
};
/* clang-format on */

static const struct command_line usage = {
	.doc = "Shows all ids and connections of this host as they change, of programs over purecm "
	       "and over the kernel's connection manager. Keys: < and > sort by another column, r "
	       "the other way round, arrows and pages move, q ends. Without a terminal it prints "
	       "the table once.",
	.options = options,
	.more = snapshot_options,
	.check = snapshot_check,
};

/* --- one snapshot --------------------------------------------------------- */

static int compare_sightings(const void *a, const void *b)
{
	const struct sighting *one = a, *other = b;

	return (one->key > other->key) - (one->key < other->key);
}

static void keep_sightings(struct top *top)
{
	free(top->seen);
	top->seen = top->sighting;
	top->n_seen = top->n_sightings;
	top->sighting = NULL;
	top->n_sightings = 0;
	if (top->n_seen)
		qsort(top->seen, top->n_seen, sizeof(*top->seen), compare_sightings);
}

/* Return: for how many milliseconds it has been seen. */
static uint64_t age_of(struct top *top, const struct snapshot *snapshot,
		       const struct portd_stat_id *id)
{
	struct sighting *now = &top->sighting[top->n_sightings++];
	const struct sighting *before;
	struct stat_row row;

	memset(&row, 0, sizeof(row));
	stat_fill_row(snapshot, id, &row);
	memset(row.text[STAT_ID], 0, 2 * sizeof(row.text[0])); /* its states change */
	*now = (struct sighting){ hash_bytes(&row, sizeof(row)), top->at_ns };
	before = top->n_seen ? bsearch(now, top->seen, top->n_seen, sizeof(*now), compare_sightings)
			     : NULL;
	if (before)
		now->first_ns = before->first_ns;
	return (top->at_ns - now->first_ns) / 1000000;
}

static void fill_row(struct top *top, const struct snapshot *snapshot,
		     const struct portd_stat_id *id, struct stat_row *row)
{
	struct portd_stat_id seen = *id;

	if (snapshot->of_kernel)
		seen.age_ms = age_of(top, snapshot, id);
	stat_fill_row(snapshot, &seen, row);
	if (snapshot->of_kernel) {
		memmove(row->text[STAT_AGE] + 1, row->text[STAT_AGE], STAT_CELL_BYTES - 2);
		row->text[STAT_AGE][0] = '>';
	}
}

static void count_passed(struct top *top, const struct snapshot *snapshot)
{
	const struct portd_stat_count *count;
	size_t i;

	for (i = 0; i < snapshot->n_counts; i++) {
		count = &snapshot->count[i];
		if (count->row.client != PORTD_STAT_PASSING)
			continue;
		if (count->what == PORTD_COUNT_SENT)
			top->passed.sent += count->value;
		else if (count->what == PORTD_COUNT_RECEIVED)
			top->passed.received += count->value;
		else if (count->what == PORTD_COUNT_REPEATED)
			top->passed.repeated += count->value;
	}
}

static void add_snapshot(struct top *top, struct snapshot *snapshot, enum origin origin)
{
	struct stat_row *rows;
	size_t i;

	count_passed(top, snapshot);
	snapshot_select(snapshot, &top->filter);
	rows = realloc(top->row, (top->n_rows + snapshot->n_ids + 1) * sizeof(*rows));
	if (rows)
		top->row = rows;
	if (snapshot->of_kernel)
		top->sighting = calloc(snapshot->n_ids + 1, sizeof(*top->sighting));
	if (!rows || (snapshot->of_kernel && !top->sighting))
		return;
	top->has[origin] = true;
	top->n_of[origin] = snapshot->n_ids;
	for (i = 0; i < snapshot->n_ids; i++)
		fill_row(top, snapshot, &snapshot->id[i], &rows[top->n_rows++]);
	for (i = 1; i < snapshot->n_processes; i++)
		top->n_mute += !snapshot->process[i].has_answered;
}

static void look_at_purecm(struct top *top)
{
	static struct snapshot snapshot;
	struct portd_why why;

	if (!top->client && portd_client_visit(&top->client, &why)) {
		top->client = NULL;
		return;
	}
	if (snapshot_gather(top->client, top->filter.pid, ANSWER_MS, &snapshot)) {
		portd_client_close(top->client);
		top->client = NULL;
	} else {
		add_snapshot(top, &snapshot, OF_PURECM);
	}
	snapshot_fini(&snapshot);
}

static void look_at_kernel(struct top *top)
{
	static struct snapshot snapshot;

	if (snapshot_gather_kernel(top->filter.pid, &snapshot) == 0)
		add_snapshot(top, &snapshot, OF_KERNEL);
	snapshot_fini(&snapshot);
}

static const struct top *sorting; /* qsort() has no argument for its function */

static int compare_rows(const void *a, const void *b)
{
	const struct stat_row *one = a, *other = b;
	int order;

	if (sorting->sorted_by == STAT_AGE)
		order = (one->age_ms > other->age_ms) - (one->age_ms < other->age_ms);
	else if (sorting->sorted_by == STAT_RETRIES)
		order = (one->retries < other->retries) - (one->retries > other->retries);
	else
		order = strverscmp(one->text[sorting->sorted_by], other->text[sorting->sorted_by]);
	return sorting->is_reverse ? -order : order;
}

static void sort_rows(struct top *top)
{
	sorting = top;
	if (top->n_rows)
		qsort(top->row, top->n_rows, sizeof(*top->row), compare_rows);
}

static void look_once(struct top *top)
{
	top->before = top->passed;
	top->before_ns = top->at_ns;
	top->at_ns = clock_ns();
	top->passed = (struct passed){ .sent = 0 };
	top->n_rows = 0;
	top->n_mute = 0;
	memset(top->has, 0, sizeof(top->has));
	memset(top->n_of, 0, sizeof(top->n_of));
	look_at_purecm(top);
	look_at_kernel(top);
	keep_sightings(top);
	sort_rows(top);
}

/* --- the table ------------------------------------------------------------ */

/* Return: number of columns that fit. */
static size_t measure_columns(const struct top *top, unsigned int widths[STAT_N_COLUMNS],
			      unsigned int room)
{
	unsigned int sum = 0;
	size_t i;

	stat_measure(top->row, top->n_rows, widths);
	for (i = 0; i < N_COLUMNS; i++) {
		sum += widths[columns[i]] + (i ? STAT_GAP : 0);
		if (room && sum > room)
			break;
	}
	return i ? i : 1;
}

static const char *why_empty(const struct top *top)
{
	if (top->has[OF_PURECM] || top->has[OF_KERNEL])
		return "no ids";
	return "no cmportd runs, and the kernel has no connection manager: no program can connect";
}

static int print_once(struct top *top)
{
	char text[STAT_LINE_BYTES];
	unsigned int widths[STAT_N_COLUMNS];
	size_t i, n_columns;

	look_once(top);
	if (!top->n_rows) {
		complain("%s", why_empty(top));
		return top->has[OF_PURECM] || top->has[OF_KERNEL] ? STATUS_OK : STATUS_FAILED;
	}
	n_columns = measure_columns(top, widths, 0);
	puts(stat_format(NULL, columns, n_columns, widths, text));
	for (i = 0; i < top->n_rows; i++)
		puts(stat_format(&top->row[i], columns, n_columns, widths, text));
	return STATUS_OK;
}

/* --- the screen ----------------------------------------------------------- */

static double rate_of(const struct top *top, uint64_t now, uint64_t before)
{
	if (!top->before_ns || now < before || top->at_ns == top->before_ns)
		return 0;
	return (double)(now - before) * 1e9 / (double)(top->at_ns - top->before_ns);
}

static void draw_head(const struct top *top)
{
	time_t now = time(NULL);
	struct tm at;
	char text[16];

	strftime(text, sizeof(text), "%T", localtime_r(&now, &at));
	mvprintw(0, 0, "%s  ids: %zu over purecm%s, %zu over the kernel's connection manager%s",
		 text, top->n_of[OF_PURECM], top->has[OF_PURECM] ? "" : " (no cmportd)",
		 top->n_of[OF_KERNEL], top->has[OF_KERNEL] ? "" : " (not there)");
	mvprintw(1, 0,
		 "messages a second: %.1f sent, %.1f received, %.1f repeated; %" PRIu64
		 " repeated in all",
		 rate_of(top, top->passed.sent, top->before.sent),
		 rate_of(top, top->passed.received, top->before.received),
		 rate_of(top, top->passed.repeated, top->before.repeated), top->passed.repeated);
	if (top->n_mute)
		mvprintw(2, 0, "%u processes do not answer", top->n_mute);
	else
		mvprintw(2, 0, "by %s%s; < > other column, r reverse, q end",
			 stat_titles[top->sorted_by], top->is_reverse ? ", reversed" : "");
}

static void draw_page(struct top *top)
{
	char text[STAT_LINE_BYTES];
	unsigned int widths[STAT_N_COLUMNS];
	size_t i, n_columns, room = LINES > HEAD_LINES ? (size_t)(LINES - HEAD_LINES) : 1;

	if (top->first + room > top->n_rows)
		top->first = top->n_rows > room ? top->n_rows - room : 0;
	erase();
	draw_head(top);
	n_columns = measure_columns(top, widths, (unsigned int)COLS);
	attron(A_REVERSE);
	mvprintw(HEAD_LINES - 1, 0, "%-*.*s", COLS, COLS,
		 stat_format(NULL, columns, n_columns, widths, text));
	attroff(A_REVERSE);
	if (!top->n_rows)
		mvaddstr(HEAD_LINES, 0, why_empty(top));
	for (i = 0; i < room && top->first + i < top->n_rows; i++) {
		stat_format(&top->row[top->first + i], columns, n_columns, widths, text);
		mvaddnstr((int)(HEAD_LINES + i), 0, text, COLS);
	}
	refresh();
}

static void sort_by_next(struct top *top, size_t step)
{
	size_t i = 0;

	while (columns[i] != top->sorted_by)
		i++;
	top->sorted_by = columns[(i + step) % N_COLUMNS];
	sort_rows(top);
}

/* Return: false to quit. */
static bool handle_key(struct top *top, int key)
{
	const size_t page = LINES > HEAD_LINES + 1 ? (size_t)(LINES - HEAD_LINES - 1) : 1;

	switch (key) {
	case 'q':
		return false;
	case '>':
		sort_by_next(top, 1);
		break;
	case '<':
		sort_by_next(top, N_COLUMNS - 1);
		break;
	case 'r':
		top->is_reverse = !top->is_reverse;
		sort_rows(top);
		break;
	case KEY_DOWN:
		top->first++;
		break;
	case KEY_UP:
		top->first -= top->first > 0;
		break;
	case KEY_NPAGE:
		top->first += page;
		break;
	case KEY_PPAGE:
		top->first -= top->first > page ? page : top->first;
		break;
	case KEY_HOME:
		top->first = 0;
		break;
	case KEY_END:
		top->first = top->n_rows;
		break;
	}
	return true;
}

static void watch_keys(struct top *top)
{
	uint64_t next_ns, now_ns;
	int key = ERR;

	do {
		look_once(top);
		next_ns = clock_ns() + (uint64_t)(top->delay_s * 1e9);
		do {
			draw_page(top);
			now_ns = clock_ns();
			timeout(now_ns < next_ns ? (int)((next_ns - now_ns) / 1000000) + 1 : 0);
			key = getch();
		} while (key != ERR && handle_key(top, key));
		now_ns = clock_ns();
		if (key == ERR && now_ns < next_ns) /* a closed terminal returns at once */
			napms((int)((next_ns - now_ns) / 1000000));
	} while (key == ERR);
}

int top_main(int argc, char **argv)
{
	struct top top = { .delay_s = DELAY_S };
	int status = STATUS_OK;

	command_parse(&usage, argc, argv, &top);
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		status = print_once(&top);
	} else if (!newterm(NULL, stdout, stdin)) {
		complain("this terminal cannot be drawn on (TERM=%s): `purecm stat --watch`",
			 getenv("TERM") ? getenv("TERM") : "");
		status = STATUS_FAILED;
	} else {
		cbreak();
		noecho();
		keypad(stdscr, true);
		curs_set(0);
		watch_keys(&top);
		endwin();
	}
	portd_client_close(top.client);
	free(top.seen);
	free(top.row);
	return status;
}

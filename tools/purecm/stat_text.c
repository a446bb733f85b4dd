/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Snapshots for people: a table of ids and connections if the terminal is wide enough, otherwise a
 * paragraph for each; then the counters. Part of snapshot.h.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cm/conn.h"
#include "tools/purecm/subcommand.h"
#include "tools/purecm/field.h"
#include "tools/purecm/observation.h"
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

/* --- names of the parts of a snapshot ------------------------------------- */

const char *snapshot_port_str(const struct snapshot *snapshot, uint8_t port, char buf[PLACE_BYTES])
{
	const struct snapshot_port *known = &snapshot->port[port % PORTD_PORTS_MAX];

	if (port >= PORTD_PORTS_MAX || !known->is_known)
		snprintf(buf, PLACE_BYTES, "-");
	else
		snprintf(buf, PLACE_BYTES, "%s/%u", known->device, known->port_num);
	return buf;
}

const char *snapshot_id_state(const struct portd_stat_id *id)
{
	static const char *const names[] = {
#define X(name) #name,
		PORTD_ID_STATES(X)
#undef X
	};

	return id->id_state < sizeof(names) / sizeof(names[0]) ? names[id->id_state] : "-";
}

const char *snapshot_conn_state(const struct portd_stat_id *id)
{
	static const char *const of_qp[] = { "QP RESET", "QP INIT", "QP RTR", "QP RTS",
					     "QP SQD",	 "QP SQE",  "QP ERR" };
	unsigned int qp_state = id->conn_state - SNAPSHOT_QP_STATE;

	if (qp_state < sizeof(of_qp) / sizeof(of_qp[0]))
		return of_qp[qp_state];
	return id->conn_state < CM_N_STATES ? cm_state_str((enum cm_state)id->conn_state) : "-";
}

/* --- addresses ----------------------------------------------------------- */

static const char *place_str(uint8_t family, const uint8_t addr[16], uint16_t port,
			     char buf[PLACE_BYTES])
{
	char text[INET6_ADDRSTRLEN];

	if (family == 4)
		snprintf(buf, PLACE_BYTES, "%s:%u",
			 inet_ntop(AF_INET, addr + 12, text, sizeof(text)), port);
	else
		snprintf(buf, PLACE_BYTES, "[%s]:%u", inet_ntop(AF_INET6, addr, text, sizeof(text)),
			 port);
	return buf;
}

const char *snapshot_local(const struct portd_stat_id *id, char buf[PLACE_BYTES])
{
	if (!id->family || (gid_is_zero(id->local_addr) && !id->local_port))
		return strcpy(buf, "-");
	return place_str(id->family, id->local_addr, id->local_port, buf);
}

const char *snapshot_peer(const struct portd_stat_id *id, char buf[PLACE_BYTES])
{
	bool is_named = id->family && !gid_is_zero(id->peer_addr);

	if (is_named)
		return place_str(id->family, id->peer_addr, id->peer_port, buf);
	if (gid_is_zero(id->peer_gid.raw))
		return strcpy(buf, "-");
	return who_str(&id->peer_gid, buf);
}

const char *snapshot_space(uint16_t ps)
{
	const char *name = service_space((uint64_t)ps << 16);

	return name ? name : "?";
}

/* --- counters ------------------------------------------------------------ */

const char *snapshot_message(unsigned int kind)
{
	return kind < CM_TALLY_NONE ? cm_msg_layout((uint16_t)(CM_ATTR_REQ + kind))->name : "none";
}

static const char *const counters[] = {
#define X(name, text) #name,
	PORTD_STAT_COUNTERS(X)
#undef X
};

const char *snapshot_counter(unsigned int what)
{
	static char name[32];
	size_t i;

	if (what >= PORTD_N_COUNTERS)
		return NULL;
	for (i = 0; counters[what][i]; i++)
		name[i] = counters[what][i] == '_' ? '-' : (char)tolower(counters[what][i]);
	name[i] = '\0';
	return name;
}

bool snapshot_is_gauge(unsigned int what)
{
	return what == PORTD_COUNT_FAST_PEERS || what == PORTD_COUNT_LOST_PEERS;
}

/* --- filters --------------------------------------------------------------- */

/* clang-format off */
const struct command_option snapshot_options[] = {
	{ "pid", 'p', "PID", "of this process only",
	  COMMAND_NUMBER_AT(snapshot_filter, pid, 1, INT32_MAX) },
	{ "state", 0, "STATE,...",
	  "only ids whose own state, or whose connection's, is one of these: LISTEN, ESTABLISHED",
	  COMMAND_TEXT_AT(snapshot_filter, states) },
	{ "port", 0, "PORT", "only ids that have this port, or whose peer has it",
	  COMMAND_NUMBER_AT(snapshot_filter, port, 1, UINT16_MAX) },
	{ "peer", 0, "ADDRESS", "only ids whose peer has this address",
	  COMMAND_TEXT_AT(snapshot_filter, peer) },
	{ 0 },
};
/* clang-format on */

/* Return: whether a list has a state; "QP RTS" is also RTS. */
static bool has_state(const char *states, const char *state)
{
	const size_t skip = strncmp(state, "QP ", 3) == 0 ? 3 : 0, n = strlen(state + skip);

	for (; states; states = strchr(states, ',')) {
		states += *states == ',';
		if (strncasecmp(states, state + skip, n) == 0 && (!states[n] || states[n] == ','))
			return true;
	}
	return false;
}

static bool is_state(const char *word)
{
	struct portd_stat_id row = { .id_state = 0 };
	unsigned int i;

	for (i = 0; i < PORTD_STAT_NONE; i++) {
		row.id_state = row.conn_state = (uint8_t)i;
		if (has_state(word, snapshot_id_state(&row)) ||
		    has_state(word, snapshot_conn_state(&row)))
			return true;
	}
	return false;
}

void snapshot_check(const void *input, struct argp_state *state)
{
	const struct snapshot_filter *filter = input;
	const char *word = filter->states;
	struct mad_gid gid;

	for (; word; word = strchr(word, ',')) {
		word += *word == ',';
		if (!is_state(word))
			argp_error(state, "--state: there is no state %s", word);
	}
	if (filter->peer && observation_parse_gid(filter->peer, &gid))
		argp_error(state, "--peer: %s is no IP address or GID", filter->peer);
}

static bool is_taken(const struct snapshot_filter *filter, const struct portd_stat_id *id)
{
	struct mad_gid wanted, peer = id->peer_gid;

	if (id->family == 4)
		peer = observation_gid_of_ip4(id->peer_addr + 12);
	else if (id->family)
		memcpy(peer.raw, id->peer_addr, sizeof(peer.raw));
	return (!filter->states || has_state(filter->states, snapshot_id_state(id)) ||
		has_state(filter->states, snapshot_conn_state(id))) &&
	       (!filter->port || id->local_port == filter->port || id->peer_port == filter->port) &&
	       (!filter->peer ||
		(!observation_parse_gid(filter->peer, &wanted) && gid_is_same(&wanted, &peer)));
}

void snapshot_select(struct snapshot *snapshot, const struct snapshot_filter *filter)
{
	size_t i, n = 0;

	if (!filter->states && !filter->port && !filter->peer)
		return;
	for (i = 0; i < snapshot->n_ids; i++) {
		if (is_taken(filter, &snapshot->id[i]))
			snapshot->id[n++] = snapshot->id[i];
	}
	snapshot->n_ids = n;
	snapshot->n_counts = 0;
}

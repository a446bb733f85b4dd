/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ids, connections and counters of this host at one moment, as reported by its processes and
 * cmportd, or by the kernel for its own connection manager.
 */
#ifndef TOOLS_PURECM_SNAPSHOT_H
#define TOOLS_PURECM_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

#include "cm/tally.h"
#include "lib/portd/proto/proto.h"
#include "tools/purecm/subcommand.h"

#define PROGRAM_BYTES 64
#define PLACE_BYTES   96 /* of an address and a port number */

/*
 * The kernel does not report retries of an id. Instead of a connection's state it reports that of
 * the queue pair, stored as SNAPSHOT_QP_STATE plus enum ibv_qp_state.
 */
#define SNAPSHOT_UNKNOWN  UINT32_MAX
#define SNAPSHOT_QP_STATE 0x80

struct snapshot_port {
	bool is_known;
	uint8_t port_num;
	char device[PORTD_DEVICE_BYTES];
};

struct snapshot_process {
	uint16_t client;
	uint32_t pid;
	uint32_t uid;
	uint32_t n_conns;
	char program[PROGRAM_BYTES]; /* "?" if unknown */
	bool has_answered;
	bool is_partial;
	uint32_t n_rows; /* received */
	uint32_t n_said; /* sent by the process */
};

struct snapshot {
	uint64_t time_ns; /* CLOCK_REALTIME */
	bool of_kernel;
	struct snapshot_port port[PORTD_PORTS_MAX];
	struct snapshot_process *process; /* the first is cmportd itself, or the kernel */
	size_t n_processes;
	uint16_t index[UINT16_MAX + 1]; /* by client: index into process */
	struct portd_stat_id *id;
	size_t n_ids;
	struct portd_stat_count *count;
	size_t n_counts;
	struct portd_stat_quota *quota;
	size_t n_quotas;
};

struct portd_client;

/**
 * snapshot_gather() - query cmportd and all visible processes
 * @pid:     the process to query, or 0 for all
 * @wait_ms: timeout in milliseconds for processes that do not respond
 * @ret:     to be released with snapshot_fini(), also on error
 *
 * Return: 0; -ETIMEDOUT if cmportd itself does not respond; -errno if the connection to it has
 * ended.
 */
int snapshot_gather(struct portd_client *client, uint32_t pid, unsigned int wait_ms,
		    struct snapshot *ret);

/**
 * snapshot_gather_kernel() - query the kernel for the ids and counters of its connection manager
 * @pid: the process to query, or 0 for all
 * @ret: to be released with snapshot_fini(), also on error
 *
 * Its processes are those that have ids; a kernel module with ids is one without pid.
 *
 * Return: 0; -ENOENT if it has no connection manager, or no device; -errno.
 */
int snapshot_gather_kernel(uint32_t pid, struct snapshot *ret);

/** snapshot_add_process(), snapshot_add_id(), snapshot_add_count() - Return: 0 or -ENOMEM. */
int snapshot_add_process(struct snapshot *snapshot, const struct snapshot_process *process);
int snapshot_add_id(struct snapshot *snapshot, const struct portd_stat_id *row);
int snapshot_add_count(struct snapshot *snapshot, const struct portd_stat_count *row);

/** snapshot_read_program() - set the name of a process from its pid; "?" if unknown */
void snapshot_read_program(struct snapshot_process *process);

/**
 * snapshot_sum() - add the drop counters of processes to those of each port
 *
 * Includes present processes only: the sums fall when a process ends.
 *
 * Return: 0 or -ENOMEM.
 */
int snapshot_sum(struct snapshot *snapshot);

/** snapshot_fini() - free a snapshot */
void snapshot_fini(struct snapshot *snapshot);

/** snapshot_process() - the process of a row; cmportd if it is unknown; never NULL */
const struct snapshot_process *snapshot_process(const struct snapshot *snapshot, uint16_t client);

/** snapshot_complain() - print processes that have not responded, or not completely */
void snapshot_complain(const struct snapshot *snapshot);

/** snapshot_port_str() - format "rxe0/1", or "-". Return: @buf. */
const char *snapshot_port_str(const struct snapshot *snapshot, uint8_t port, char buf[PLACE_BYTES]);

/** snapshot_id_state() - "LISTEN"; "-" for a connection without id. */
const char *snapshot_id_state(const struct portd_stat_id *id);

/** snapshot_conn_state() - "ESTABLISHED", "QP RTS"; "-" for an id without connection. */
const char *snapshot_conn_state(const struct portd_stat_id *id);

/** snapshot_local() - format "10.77.0.1:7174", "[fd00::1]:7174", or "-". Return: @buf. */
const char *snapshot_local(const struct portd_stat_id *id, char buf[PLACE_BYTES]);

/** snapshot_peer() - likewise; the GID for a connection without id. Return: @buf. */
const char *snapshot_peer(const struct portd_stat_id *id, char buf[PLACE_BYTES]);

/** snapshot_space() - "TCP", "UDP", "IB", "IPoIB", or "?" */
const char *snapshot_space(uint16_t ps);

/** snapshot_message() - "REQ"; "none" for messages of no kind */
const char *snapshot_message(unsigned int kind);

/** snapshot_counter() - "sent", "no-memory"; NULL beyond the last. */
const char *snapshot_counter(unsigned int what);

/** snapshot_is_gauge() - return whether a counter is a number of peers, which may fall */
bool snapshot_is_gauge(unsigned int what);

/* --- which ids are shown --------------------------------------------------- */

struct snapshot_filter {
	uint32_t pid;	    /* 0: of all processes */
	const char *states; /* NULL: in all */
	uint32_t port;	    /* at either end; 0: any */
	const char *peer;   /* an address; NULL: any */
};

/* For inputs that begin with a struct snapshot_filter. */
extern const struct command_option snapshot_options[];

/** snapshot_check() - refuse what is no state and no address */
void snapshot_check(const void *input, struct argp_state *state);

/** snapshot_select() - drop the other ids, and the counters unless the filter takes all */
void snapshot_select(struct snapshot *snapshot, const struct snapshot_filter *filter);

/* --- output ---------------------------------------------------------------- */

#define STAT_CELL_BYTES 112
#define STAT_LINE_BYTES (STAT_N_COLUMNS * (STAT_CELL_BYTES + STAT_GAP))
#define STAT_GAP	2

enum stat_column {
	STAT_PROCESS,
	STAT_ID,
	STAT_CONNECTION,
	STAT_LOCAL,
	STAT_PEER,
	STAT_DEVICE,
	STAT_QPN,
	STAT_COMM_IDS,
	STAT_AGE,
	STAT_RETRIES,
	STAT_N_COLUMNS,
};

/* A row of the table of ids. */
struct stat_row {
	char text[STAT_N_COLUMNS][STAT_CELL_BYTES];
	uint64_t age_ms;
	uint32_t retries;
};

extern const char *const stat_titles[STAT_N_COLUMNS];

/** stat_fill_row() - format an id */
void stat_fill_row(const struct snapshot *snapshot, const struct portd_stat_id *id,
		   struct stat_row *ret);

/** stat_measure() - find the widths of columns. Return: that of all of them. */
unsigned int stat_measure(const struct stat_row *rows, size_t n,
			  unsigned int ret_widths[STAT_N_COLUMNS]);

/**
 * stat_format() - format a line of the table
 * @row:     NULL for the titles
 * @columns: their order; NULL: as above
 *
 * Return: @ret.
 */
const char *stat_format(const struct stat_row *row, const enum stat_column *columns,
			size_t n_columns, const unsigned int widths[STAT_N_COLUMNS],
			char ret[STAT_LINE_BYTES]);

/**
 * stat_print_sockets() - print the connections of sockets, which struct snapshot does not contain
 * @pid: of this process only; 0: of all
 *
 * Return: false if there is no such process.
 */
bool stat_print_sockets(uint32_t pid, bool json);

/** stat_print_quotas() - print the quotas of users as text */
void stat_print_quotas(const struct snapshot *snapshot);

/** stat_print_text() - print as text; @width of the terminal, 0 for no limit */
void stat_print_text(const struct snapshot *snapshot, unsigned int width);

/** stat_print_json() - print an object per line */
void stat_print_json(const struct snapshot *snapshot);

/**
 * stat_print_prometheus() - print for a scraper
 * @snapshot: NULL if there is no cmportd or, without processes, no connection manager in the kernel
 */
void stat_print_prometheus(const struct snapshot *snapshot);

/* Metrics in the text format of Prometheus, on standard output. */

/** metric_begin() - print the head of a metric. @type: "counter" if @name ends in _total. */
void metric_begin(const char *name, const char *type, const char *help);

/** metric_label() - print name="value", escaped */
void metric_label(const char *name, const char *value);

#endif

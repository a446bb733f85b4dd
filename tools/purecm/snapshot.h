/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ids, connections and counters of this host at one moment, as its processes and cmportd report
 * them, or the kernel, for its own connection manager.
 */
#ifndef TOOLS_PURECM_SNAPSHOT_H
#define TOOLS_PURECM_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

#include "cm/tally.h"
#include "lib/portd/proto/proto.h"

#define PROGRAM_BYTES 64
#define PLACE_BYTES   96 /* of an address and a port number */

/* What the kernel does not tell of an id: retries. In place of a connection's state it tells that
 * of the queue pair, enum ibv_qp_state from here on. */
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
	char program[PROGRAM_BYTES]; /* "?" if it cannot be told */
	bool has_answered;
	bool is_partial;
	uint32_t n_rows; /* that have come, and ... */
	uint32_t n_said; /* ... that it has sent */
};

struct snapshot {
	uint64_t time_ns; /* CLOCK_REALTIME */
	bool of_kernel;
	struct snapshot_port port[PORTD_PORTS_MAX];
	struct snapshot_process *process; /* the first one is cmportd itself, or the kernel */
	size_t n_processes;
	uint16_t index[UINT16_MAX + 1]; /* of a client's process */
	struct portd_stat_id *id;
	size_t n_ids;
	struct portd_stat_count *count;
	size_t n_counts;
	struct portd_stat_quota *quota;
	size_t n_quotas;
};

struct portd_client;

/**
 * snapshot_gather() - ask cmportd and all processes that may be seen
 * @pid:     of one process, or 0
 * @wait_ms: how long to wait for those that do not answer
 * @ret:     to be given back with snapshot_fini(), also on an error
 *
 * Return: 0; -ETIMEDOUT if cmportd itself does not answer; -errno, and cmportd is gone.
 */
int snapshot_gather(struct portd_client *client, uint32_t pid, unsigned int wait_ms,
		    struct snapshot *ret);

/**
 * snapshot_gather_kernel() - ask the kernel for the ids and counters of its connection manager
 * @pid: of one process, or 0
 * @ret: to be given back with snapshot_fini(), also on an error
 *
 * Its processes are those that have ids; a module that has some is one without process id.
 *
 * Return: 0; -ENOENT if it has no connection manager, or no device; -errno.
 */
int snapshot_gather_kernel(uint32_t pid, struct snapshot *ret);

/** snapshot_add_process(), snapshot_add_id(), snapshot_add_count() - Return: 0 or -ENOMEM. */
int snapshot_add_process(struct snapshot *snapshot, const struct snapshot_process *process);
int snapshot_add_id(struct snapshot *snapshot, const struct portd_stat_id *row);
int snapshot_add_count(struct snapshot *snapshot, const struct portd_stat_count *row);

/** snapshot_read_program() - the name of a process by its pid; "?" if it cannot be told. */
void snapshot_read_program(struct snapshot_process *process);

/**
 * snapshot_sum() - add to the counters of each port what its processes have dropped by themselves
 *
 * Of those that are here: the sums fall when one goes.
 *
 * Return: 0 or -ENOMEM.
 */
int snapshot_sum(struct snapshot *snapshot);

/** snapshot_fini() - forget it. */
void snapshot_fini(struct snapshot *snapshot);

/** snapshot_process() - of whom a row is; never NULL: who is not known is cmportd. */
const struct snapshot_process *snapshot_process(const struct snapshot *snapshot, uint16_t client);

/** snapshot_complain() - of processes that have not answered, or not with all. */
void snapshot_complain(const struct snapshot *snapshot);

/** snapshot_port_str() - "rxe0/1", or "-". Return: @buf. */
const char *snapshot_port_str(const struct snapshot *snapshot, uint8_t port, char buf[PLACE_BYTES]);

/** snapshot_id_state() - "LISTEN"; "-" for a connection without id. */
const char *snapshot_id_state(const struct portd_stat_id *id);

/** snapshot_conn_state() - "ESTABLISHED", "QP RTS"; "-" for an id without connection. */
const char *snapshot_conn_state(const struct portd_stat_id *id);

/** snapshot_local() - "10.77.0.1:7174", "[fd00::1]:7174", or "-". Return: @buf. */
const char *snapshot_local(const struct portd_stat_id *id, char buf[PLACE_BYTES]);

/** snapshot_peer() - likewise; of a connection without id the GID. Return: @buf. */
const char *snapshot_peer(const struct portd_stat_id *id, char buf[PLACE_BYTES]);

/** snapshot_space() - "TCP", "UDP", "IB", "IPoIB", or "?" */
const char *snapshot_space(uint16_t ps);

/** snapshot_message() - "REQ"; "none" for what is no message. */
const char *snapshot_message(unsigned int kind);

/** snapshot_counter() - "sent", "no-memory"; NULL beyond the last. */
const char *snapshot_counter(unsigned int what);

/** snapshot_counter_text() - what it means. */
const char *snapshot_counter_text(unsigned int what);

/** snapshot_is_gauge() - is it a number of peers, which may fall, and not of messages? */
bool snapshot_is_gauge(unsigned int what);

/** stat_print_quotas() - those of users, for people */
void stat_print_quotas(const struct snapshot *snapshot);

/** stat_print_text() - for people; @width: of the terminal, 0 for any. */
void stat_print_text(const struct snapshot *snapshot, unsigned int width);

/** stat_print_json() - an object a line. */
void stat_print_json(const struct snapshot *snapshot);

/** stat_print_prometheus() - as a scraper wants it; NULL: no cmportd is there, or, without
 * processes, no connection manager of the kernel. */
void stat_print_prometheus(const struct snapshot *snapshot);

#endif

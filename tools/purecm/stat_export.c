/* SPDX-License-Identifier: BSD-2-Clause */
/* Snapshots for programs: JSON, and the text format of Prometheus. Part of snapshot.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cm/conn.h"
#include "tools/purecm/json.h"
#include "tools/purecm/snapshot.h"

/* --- JSON ---------------------------------------------------------------- */

static void print_begin(const struct snapshot *snapshot, const char *type)
{
	json_begin(NULL, stdout);
	json_text("type", type, stdout);
	json_time(snapshot->time_ns, stdout);
}

static void print_whose(const struct snapshot *snapshot, uint16_t client)
{
	const struct snapshot_process *process = snapshot_process(snapshot, client);

	json_uint("pid", process->pid, stdout);
	json_text("program", process->program, stdout);
}

static void print_json_process(const struct snapshot *snapshot,
			       const struct snapshot_process *process)
{
	print_begin(snapshot, "process");
	print_whose(snapshot, process->client);
	json_uint("uid", process->uid, stdout);
	json_uint("connections", process->n_conns, stdout);
	json_bool("answered", process->has_answered, stdout);
	json_uint("missing_rows", process->has_answered ? process->n_said - process->n_rows : 0,
		  stdout);
	json_end(stdout);
}

static void print_json_id(const struct snapshot *snapshot, const struct portd_stat_id *id)
{
	char place[PLACE_BYTES];

	print_begin(snapshot, "id");
	print_whose(snapshot, id->row.client);
	json_text("id_state", snapshot_id_state(id), stdout);
	json_text("connection_state", snapshot_conn_state(id), stdout);
	json_text("port_space", id->ps ? snapshot_space(id->ps) : "-", stdout);
	json_text("local", snapshot_local(id, place), stdout);
	json_text("peer", snapshot_peer(id, place), stdout);
	json_text("device", snapshot_port_str(snapshot, id->port, place), stdout);
	json_bool("active", id->active, stdout);
	json_uint("local_comm_id", id->local_comm_id, stdout);
	json_uint("remote_comm_id", id->remote_comm_id, stdout);
	json_uint("local_qpn", id->local_qpn, stdout);
	json_uint("remote_qpn", id->remote_qpn, stdout);
	json_uint("waiting_requests", id->n_requests, stdout);
	if (id->retries != SNAPSHOT_UNKNOWN)
		json_uint("retries", id->retries, stdout);
	if (id->age_ms != UINT64_MAX)
		json_uint("age_ms", id->age_ms, stdout);
	json_end(stdout);
}

static void print_json_count(const struct snapshot *snapshot, const struct portd_stat_count *count)
{
	char place[PLACE_BYTES];

	print_begin(snapshot, count->row.client == PORTD_STAT_PASSING ? "port_count" : "count");
	if (count->row.client != PORTD_STAT_PASSING)
		print_whose(snapshot, count->row.client);
	json_text("device", snapshot_port_str(snapshot, count->port, place), stdout);
	json_text("message", snapshot_message(count->message), stdout);
	json_text("what", snapshot_counter(count->what), stdout);
	json_uint("value", count->value, stdout);
	json_end(stdout);
}

static void print_json_quota(const struct snapshot *snapshot, const struct portd_stat_quota *row)
{
	print_begin(snapshot, "quota");
	json_text("quota", row->name, stdout);
	if (row->uid != PORTD_QUOTA_EACH) {
		json_uint("uid", row->uid, stdout);
		json_uint("has", row->has, stdout);
		json_bool("was_reached", row->was_reached, stdout);
	}
	json_uint("limit", row->limit, stdout);
	json_end(stdout);
}

void stat_print_json(const struct snapshot *snapshot)
{
	size_t i;

	for (i = 1; i < snapshot->n_processes; i++)
		print_json_process(snapshot, &snapshot->process[i]);
	for (i = 0; i < snapshot->n_ids; i++)
		print_json_id(snapshot, &snapshot->id[i]);
	for (i = 0; i < snapshot->n_counts; i++)
		print_json_count(snapshot, &snapshot->count[i]);
	for (i = 0; i < snapshot->n_quotas; i++)
		print_json_quota(snapshot, &snapshot->quota[i]);
}

/* --- Prometheus ---------------------------------------------------------- */

void metric_begin(const char *name, const char *type, const char *help)
{
	printf("# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Backslash, quote and newline are escaped; bytes that are not text are omitted. */
void metric_label(const char *name, const char *value)
{
	printf("%s=\"", name);
	for (; *value; value++) {
		if (*value == '\\' || *value == '"')
			putchar('\\');
		if ((unsigned char)*value >= ' ' && (unsigned char)*value < 0x7f)
			putchar(*value);
	}
	putchar('"');
}

static void print_process_labels(const struct snapshot_process *process)
{
	printf("pid=\"%u\",", process->pid);
	metric_label("program", process->program);
}

static void print_port_labels(const struct snapshot *snapshot, uint8_t port)
{
	const struct snapshot_port *known = &snapshot->port[port % PORTD_PORTS_MAX];
	bool is_known = port < PORTD_PORTS_MAX && known->is_known;

	metric_label("device", is_known ? known->device : "");
	printf(",port=\"%u\"", is_known ? known->port_num : 0);
}

/* Counts by state; ids without connection, and connections without id, are in the last entry. */
struct census {
	uint32_t n_ids[UINT8_MAX + 1];
	uint32_t n_conns[UINT8_MAX + 1];
};

static struct census *take_census(const struct snapshot *snapshot)
{
	struct census *census = calloc(snapshot->n_processes, sizeof(*census));
	const struct portd_stat_id *id;
	size_t i, process;

	for (i = 0; census && i < snapshot->n_ids; i++) {
		id = &snapshot->id[i];
		process = snapshot->index[id->row.client];
		census[process].n_ids[id->id_state]++;
		census[process].n_conns[id->conn_state]++;
	}
	return census;
}

static void print_states(const struct snapshot_process *process, const char *metric,
			 const uint32_t n[UINT8_MAX + 1], bool of_ids)
{
	struct portd_stat_id row;
	unsigned int state;

	for (state = 0; state < PORTD_STAT_NONE; state++) {
		if (!n[state])
			continue;
		row.id_state = row.conn_state = (uint8_t)state;
		printf("%s{", metric);
		print_process_labels(process);
		putchar(',');
		metric_label("state", of_ids ? snapshot_id_state(&row) : snapshot_conn_state(&row));
		printf("} %u\n", n[state]);
	}
}

static void print_gauges(const struct snapshot *snapshot)
{
	struct census *census = take_census(snapshot);
	size_t i;

	if (!census)
		return;
	metric_begin("purecm_ids", "gauge", "rdma_cm ids, by state");
	for (i = 0; i < snapshot->n_processes; i++)
		print_states(&snapshot->process[i], "purecm_ids", census[i].n_ids, true);
	metric_begin("purecm_connections", "gauge", "connections of the CM protocol, by state");
	for (i = 0; i < snapshot->n_processes; i++)
		print_states(&snapshot->process[i], "purecm_connections", census[i].n_conns, false);
	free(census);
}

static void print_answers(const struct snapshot *snapshot)
{
	const struct snapshot_process *process;
	size_t i;

	metric_begin("purecm_process_answers", "gauge",
		     "1 for a process whose figures are here, 0 for one that has not answered");
	for (i = 1; i < snapshot->n_processes; i++) {
		process = &snapshot->process[i];
		printf("purecm_process_answers{");
		print_process_labels(process);
		printf("} %d\n", process->has_answered && !process->is_partial &&
					 process->n_rows >= process->n_said);
	}
}

static void print_sample(const struct snapshot *snapshot, const struct portd_stat_count *count,
			 bool at_port)
{
	fputs(at_port ? "purecm_port_messages_total{" : "purecm_messages_total{", stdout);
	if (!at_port) {
		print_process_labels(snapshot_process(snapshot, count->row.client));
		putchar(',');
	}
	print_port_labels(snapshot, count->port);
	printf(",message=\"%s\",what=\"%s\"} %" PRIu64 "\n", snapshot_message(count->message),
	       snapshot_counter(count->what), count->value);
}

static void print_samples(const struct snapshot *snapshot, bool at_port)
{
	size_t i;

	for (i = 0; i < snapshot->n_counts; i++)
		if ((snapshot->count[i].row.client == PORTD_STAT_PASSING) == at_port &&
		    !snapshot_is_gauge(snapshot->count[i].what))
			print_sample(snapshot, &snapshot->count[i], at_port);
}

static void print_peers(const struct snapshot *snapshot)
{
	const struct portd_stat_count *count;
	size_t i;

	metric_begin("purecm_port_peers", "gauge", "peers of a port, by what reaches them");
	for (i = 0; i < snapshot->n_counts; i++) {
		count = &snapshot->count[i];
		if (!snapshot_is_gauge(count->what))
			continue;
		fputs("purecm_port_peers{", stdout);
		print_port_labels(snapshot, count->port);
		printf(",way=\"%s\"} %" PRIu64 "\n",
		       count->what == PORTD_COUNT_FAST_PEERS ? "fast" : "umad", count->value);
	}
}

void stat_print_prometheus(const struct snapshot *snapshot)
{
	if (snapshot && snapshot->of_kernel) {
		metric_begin("purecm_kernel_up", "gauge",
			     "1 while the kernel's connection manager serves this host");
		printf("purecm_kernel_up %d\n", snapshot->n_processes > 0);
	} else {
		metric_begin("purecm_up", "gauge", "1 while a cmportd serves this host");
		printf("purecm_up %d\n", snapshot != NULL);
	}
	if (!snapshot || !snapshot->n_processes)
		return;
	print_answers(snapshot);
	print_gauges(snapshot);
	metric_begin("purecm_messages_total", "counter",
		     "CM messages of a process, by kind and what became of them");
	print_samples(snapshot, false);
	metric_begin("purecm_port_messages_total", "counter",
		     "CM messages that passed a port, by kind and what became of them");
	print_samples(snapshot, true);
	print_peers(snapshot);
}

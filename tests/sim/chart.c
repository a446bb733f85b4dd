/* SPDX-License-Identifier: BSD-2-Clause */
/* A chart as text, with a bar for each host: see chart.h. */
#include "tests/sim/chart.h"

#include <string.h>

#define FIRST_COLUMN 16
#define COLUMN	     36
#define LINE_BYTES   (FIRST_COLUMN + COLUMN * SIM_HOSTS_MAX + 60)

static unsigned int column(unsigned int host)
{
	return FIRST_COLUMN + host * COLUMN;
}

static void begin(const struct sim *sim, char *line)
{
	int n = snprintf(line, FIRST_COLUMN, "%12.3f ms", (double)sim->now_ns / 1e6);

	memset(line + n, ' ', LINE_BYTES - n);
	for (unsigned int i = 0; i < sim->n_hosts; i++)
		line[column(i)] = '|';
}

static void end(struct sim *sim, char *line)
{
	size_t n = LINE_BYTES;

	while (n && line[n - 1] == ' ')
		n--;
	fprintf(sim->chart, "%.*s\n", (int)n, line);
}

static void put(char *line, unsigned int at, const char *text)
{
	size_t n = strlen(text);

	if (at + n <= LINE_BYTES)
		memcpy(line + at, text, n);
}

void chart_note(struct sim *sim, unsigned int host, const char *text)
{
	char line[LINE_BYTES];

	if (!sim->chart)
		return;
	begin(sim, line);
	put(line, column(host) + 2, text);
	end(sim, line);
}

/* Such as "REJ 28 2>1": the message, and the hosts whose ids it names. */
static void describe(const uint8_t *mad, char *text, size_t bytes)
{
	struct cm_msg msg;
	int n;

	if (cm_msg_decode(mad, MAD_BYTES, &msg)) {
		snprintf(text, bytes, "broken");
		return;
	}
	n = snprintf(text, bytes, "%s", cm_msg_layout(msg.hdr.attr_id)->name);
	if (msg.hdr.attr_id == CM_ATTR_REJ)
		n += snprintf(text + n, bytes - n, " %u", msg.rej.reason);
	if (msg.hdr.attr_id == CM_ATTR_REQ || msg.hdr.attr_id == CM_ATTR_SIDR_REQ ||
	    msg.hdr.attr_id == CM_ATTR_SIDR_REP)
		snprintf(text + n, bytes - n, " %08x", msg.req.local_comm_id);
	else
		snprintf(text + n, bytes - n, " %08x/%08x", msg.rtu.local_comm_id,
			 msg.rtu.remote_comm_id);
}

static void arrow(struct sim *sim, unsigned int from, unsigned int to, char dash, const char *text)
{
	unsigned int left = column(from < to ? from : to), right = column(from < to ? to : from);
	char line[LINE_BYTES];

	begin(sim, line);
	if (from == to)
		right = left + COLUMN;
	memset(line + left + 1, dash, right - left - 1);
	put(line, left + 3, text);
	if (from < to)
		line[right - 1] = '>';
	else
		line[left + 1] = '<';
	end(sim, line);
}

void chart_send(struct sim *sim, uint8_t from, uint8_t to, const uint8_t mad[MAD_BYTES],
		enum net_fate fate)
{
	static const char *const mark[] = { "", " lost", " twice", " late" };
	char what[64], text[80];

	if (!sim->chart)
		return;
	describe(mad, what, sizeof(what));
	snprintf(text, sizeof(text), " %s%s ", what, mark[fate]);
	arrow(sim, from, to, '-', text);
}

void chart_arrive(struct sim *sim, const struct net_packet *packet)
{
	char what[64], text[80];

	if (!sim->chart)
		return;
	describe(packet->mad, what, sizeof(what));
	snprintf(text, sizeof(text), " %s ", what);
	arrow(sim, packet->from, packet->to, '~', text);
}

void chart_call(struct sim *sim, const struct sim_id *id, enum cm_event verb, int err)
{
	char text[64];

	if (!sim->chart)
		return;
	snprintf(text, sizeof(text), "%08x %s%s%s", id->comm_id, cm_event_str(verb),
		 err ? ": " : "", err ? strerrorname_np(-err) : "");
	chart_note(sim, id->host->number, text);
}

void chart_report(struct sim *sim, const struct sim_host *host, const struct cm_report *report)
{
	static const char *const name[] = {
		[CM_REPORT_REQUEST] = "REQUEST",
		[CM_REPORT_RESPONSE] = "RESPONSE",
		[CM_REPORT_ESTABLISHED] = "ESTABLISHED",
		[CM_REPORT_REJECTED] = "REJECTED",
		[CM_REPORT_UNREACHABLE] = "UNREACHABLE",
		[CM_REPORT_DISCONNECTED] = "DISCONNECTED",
		[CM_REPORT_TIMEWAIT_EXIT] = "TIMEWAIT_EXIT",
		[CM_REPORT_ANSWERED] = "ANSWERED",
	};
	char text[64];

	if (!sim->chart)
		return;
	snprintf(text, sizeof(text), "* %08x %s%s", report->conn->local_comm_id, name[report->kind],
		 report->status ? " (timeout)" : "");
	chart_note(sim, host->number, text);
}

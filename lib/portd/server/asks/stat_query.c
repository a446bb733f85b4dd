/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of connections and counters, for `purecm stat`. Only clients know their ids and
 * connections, so they are asked; their rows are forwarded to the requester, after cmportd has set
 * their origin. cmportd adds its own rows: ports, counters of ports, connections of ended
 * processes. Without queries the cost is one addition per message.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/portd/proto/stat.h"
#include "lib/portd/server/asks/asks.h"
#include "lib/portd/server/clients/client_out.h"
#include "lib/portd/server/clients/user.h"
#include "lib/portd/server/ledger/tracked.h"
#include "lib/portd/server/server_state.h"
#include "lib/portd/server/wire/host_port.h"

#define PAUSE_NS (20 * CM_NS_PER_MS) /* minimum interval between a client's queries */

/* A query id contains the index of its client, and is new for a later client of the same index. */
#define ASKER_BITS 12
_Static_assert(CLIENTS_MAX == 1 << ASKER_BITS, "a client's index fits into the number");

static uint32_t query_id(const struct client *asker)
{
	return asker->stat_no << ASKER_BITS | asker->index;
}

static bool sees_all(const struct client *asker)
{
	return asker->uid == 0 || asker->uid == geteuid();
}

/* There may be thousands of rows. A requester that sees all is trusted with the memory. */
static unsigned int room_of(const struct client *asker)
{
	return sees_all(asker) ? 16 * BACKLOG_MAX : BACKLOG_MAX;
}

static bool may_see(const struct client *asker, const struct client *client)
{
	return sees_all(asker) || asker->uid == client->uid;
}

/* --- cmportd's own rows --------------------------------------------------- */

struct report {
	struct server *server;
	struct client *asker;
	struct portd_stat_row row; /* head of the next rows */
	uint8_t port;		   /* handle in the next rows */
	uint32_t n_rows;
};

static void put_row(struct report *report, struct portd_record *record)
{
	record->stat_row = report->row;
	report->n_rows++;
	client_show(report->server, report->asker, record, room_of(report->asker));
}

static void put_count(struct portd_stat_count *count, void *arg)
{
	struct portd_record record = { .type = PORTD_STAT_COUNT, .stat_count = *count };
	struct report *report = arg;

	record.stat_count.port = report->port;
	put_row(report, &record);
}

static void put_port(struct report *report, const struct host_port *host_port)
{
	struct portd_record record = { .type = PORTD_STAT_PORT };

	record.stat_port.port = host_port->handle;
	record.stat_port.port_num = host_port->port_num;
	memcpy(record.stat_port.device, host_port->device, sizeof(record.stat_port.device));
	record.stat_port.gid0 = host_port->cm.gid0;
	put_row(report, &record);
}

static void put_peers(struct report *report, const struct host_port *host_port)
{
	struct portd_stat_count count = { .message = CM_TALLY_NONE };
	struct mad_sender_score score = { 0 };

	if (host_port->sender)
		mad_sender_score(host_port->sender, &score);
	count.what = PORTD_COUNT_FAST_PEERS;
	count.value = score.n_reached;
	if (count.value)
		put_count(&count, report);
	count.what = PORTD_COUNT_LOST_PEERS;
	count.value = score.n_lost;
	if (count.value)
		put_count(&count, report);
}

static void put_passed(struct report *report, const struct host_port *host_port)
{
	struct portd_stat_count count = { .what = 0 };

	put_peers(report, host_port);
	for (; count.what < PORTD_N_COUNTERS; count.what++) {
		for (count.message = 0; count.message < CM_TALLY_KINDS; count.message++) {
			count.value = host_port->passed[count.what][count.message];
			if (count.value)
				put_count(&count, report);
		}
	}
}

static void put_own(struct report *report, const struct host_port *host_port)
{
	portd_stat_tally(&host_port->cm.tally, put_count, report);
}

/* A connection whose process has ended has no id. */
static void put_dead(struct cm_conn *conn, void *arg)
{
	struct portd_record record = { .type = PORTD_STAT_ID };
	struct portd_stat_id *is = &record.stat_id;

	portd_stat_conn(conn, is);
	is->id_state = PORTD_STAT_NONE;
	is->age_ms = UINT64_MAX;
	is->port = conn->port ? host_port_of(conn->port)->handle : PORTD_STAT_NO_PORT;
	put_row(arg, &record);
}

static void put_host_ports(struct report *report,
			   void (*what)(struct report *report, const struct host_port *host_port))
{
	struct host_port *host_port;

	for_each_host_port (host_port, report->server) {
		host_port_follow_name(report->server, host_port);
		report->port = host_port->handle;
		what(report, host_port);
	}
}

/* --- quotas -------------------------------------------------------------- */

/* @user: NULL for quotas whose use is not known. */
static void put_quotas(struct report *report, const struct user *user)
{
	struct portd_record record = { .type = PORTD_STAT_QUOTA };
	struct portd_stat_quota *row = &record.stat_quota;
	enum quota quota;
	uint32_t has;

	for (quota = 0; quota < N_QUOTAS; quota++) {
		has = user_has(report->server, user ? user : &report->server->nobody, quota);
		if ((has == PORTD_QUOTA_EACH) == (user != NULL))
			continue;
		row->uid = user ? user->uid : PORTD_QUOTA_EACH;
		row->has = has;
		row->limit = quota_of(&report->server->options.quotas, quota);
		row->was_reached = user && user->was_refused >> quota & 1;
		memset(row->name, 0, sizeof(row->name));
		strncpy(row->name, quota_name(quota), sizeof(row->name) - 1);
		put_row(report, &record);
	}
}

static void put_end(struct report *report)
{
	struct portd_record end = { .type = PORTD_STAT_END };

	report->row.client = PORTD_STAT_ITSELF;
	end.stat_end.n_rows = report->n_rows;
	put_row(report, &end);
}

static void put_all_quotas(struct report *report)
{
	const struct user *user;

	report->row.client = PORTD_STAT_ITSELF;
	if (!sees_all(report->asker))
		put_quotas(report, report->asker->user);
	else
		list_for_each_entry (user, &report->server->users.all, link)
			put_quotas(report, user);
	put_quotas(report, NULL);
	put_end(report);
}

/* Counters of ports are public; ended processes' connections are not. */
static void put_all(struct report *report)
{
	report->row.client = PORTD_STAT_PASSING;
	put_host_ports(report, put_port);
	put_host_ports(report, put_passed);
	report->row.client = PORTD_STAT_ITSELF;
	put_host_ports(report, put_own);
	if (sees_all(report->asker))
		cm_core_walk(&report->server->core, put_dead, report);
	put_end(report);
}

/* --- rows of clients ------------------------------------------------------ */

static bool is_asked(const struct client *asker, const struct client *client, uint32_t pid)
{
	return client->welcome && !client->visits && (!pid || pid == (uint32_t)client->pid) &&
	       may_see(asker, client);
}

static void ask_client(struct report *report, struct client *client)
{
	struct portd_record question = { .type = PORTD_STAT_ASK };
	struct portd_record process = { .type = PORTD_STAT_PROCESS };

	process.stat_process.pid = (uint32_t)client->pid;
	process.stat_process.uid = client->uid;
	process.stat_process.n_conns = tracker_count(report->server->tracker, client->index);
	report->row.client = client->index;
	put_row(report, &process);
	question.stat_ask.ask_id = report->row.ask_id;
	client_show(report->server, client, &question, BACKLOG_MAX / 2);
}

int stat_ask(struct server *server, struct client *client, uint32_t pid, struct portd_reply *ret)
{
	struct report report = { .server = server, .asker = client };
	struct client *other;

	if (client->stat_no && server->now.ns - client->stat_at.ns < PAUSE_NS)
		return -EBUSY;
	client->stat_at = server->now;
	client->stat_no = ++server->n_stats;
	client->stat_pid = pid;
	report.row.ask_id = ret->first = query_id(client);
	if (pid == PORTD_STAT_QUOTAS) {
		put_all_quotas(&report);
		return 0;
	}
	for_each_client (other, server) {
		if (other->leaving || !is_asked(client, other, pid))
			continue;
		ask_client(&report, other);
		ret->count++;
	}
	put_all(&report);
	return 0;
}

/* Rows of others would seem to be cmportd's own. Return: NULL unless it has asked this client. */
static struct client *asker_of(const struct server *server, const struct client *client,
			       uint32_t ask_id)
{
	struct client *asker = server->client[ask_id & (CLIENTS_MAX - 1)];

	if (!asker || !asker->stat_no || query_id(asker) != ask_id || asker->leaving ||
	    (int32_t)(asker->stat_no - client->n_stats_before) <= 0)
		return NULL;
	return is_asked(asker, client, asker->stat_pid) ? asker : NULL;
}

static uint8_t known_port(const struct client *client, uint8_t port)
{
	return port < HOST_PORTS_MAX && client->host_ports >> port & 1 ? port : PORTD_STAT_NO_PORT;
}

bool stat_row(struct server *server, struct client *client, struct portd_record *record)
{
	struct client *asker;

	if (record->type == PORTD_STAT_ID)
		record->stat_id.port = known_port(client, record->stat_id.port);
	else if (record->type == PORTD_STAT_COUNT)
		record->stat_count.port = known_port(client, record->stat_count.port);
	else if (record->type != PORTD_STAT_END)
		return false;
	asker = asker_of(server, client, record->stat_row.ask_id);
	if (!asker)
		return true; /* it has disconnected, or sent a new query */
	record->stat_row.client = client->index;
	client_show(server, asker, record, room_of(asker));
	return true;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queries of clients to subnet administrators: see subnet_queries.h. The agent in mad/sa/ does the
 * work; this file provides its clock, descriptor and port events.
 */
#include "lib/portd/server/sa/subnet_queries.h"
#include "lib/portd/server/clients/client_out.h"
#include "lib/portd/server/clients/user.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>

#include "base/log.h"
#include "lib/net/membership.h"
#include "mad/umad_sa.h"
#include "mad/sa/agent.h"

#define TIMEOUT_MS_MAX 600000
#define HOPS_TO_SM     255
#define PKEY_BASE      0x7fff /* of the default partition, without the bit of full members */
#define TABLE_MAX      1024   /* records that a client is told */

/*
 * IBTA vol. 1, 14.2.1: the well-known GUID of the administrator, used if a GRH is needed to reach
 * it.
 */
#define SA_GUID UINT64_C(0x0200000000000002)

struct subnet {
	struct sa_agent agent;
	struct umad_sa sa;
	struct watch sa_watch;
	struct host_port *host_port;
	struct mad_path to_sm;
	struct mad_gid gid0; /* of the port */
};

struct client_ask {
	struct list link;     /* in client.asks */
	struct cm_node by_id; /* in server.asks */
	struct sa_ask ask;
	const struct sa_msg *table; /* the answer, if it is one */
	size_t n_told;		    /* of its records */
	struct list telling;	    /* in user.tables */
	uint32_t ask_id;
	struct server *server;
	struct client *client;
	struct host_port *host_port;
};

/* --- the port ------------------------------------------------------------ */

static void send_query(void *arg, const uint8_t mad[MAD_BYTES], unsigned int wait_ms)
{
	struct subnet *subnet = arg;
	int err = umad_sa_send(&subnet->sa, &subnet->to_sm, mad, wait_ms);

	if (err)
		log_debug("a question to the subnet administrator was not sent: %s",
			  strerror(-err));
}

/* Return: the index of the default P_Key, which the administrator has; 0 if there is none. */
static uint16_t find_default_pkey(const struct host_port *host_port)
{
	uint16_t index;
	__be16 pkey;

	for (index = 0; index < host_port->n_pkeys; index++)
		if (!ibv_query_pkey(host_port->verbs, host_port->port_num, index, &pkey) &&
		    (be16toh(pkey) & PKEY_BASE) == PKEY_BASE)
			return index;
	return 0;
}

static void set_path_to_sm(struct subnet *subnet, const struct ibv_port_attr *attr)
{
	uint64_t guid = htobe64(SA_GUID);

	subnet->to_sm = (struct mad_path){ .dlid = attr->sm_lid,
					   .sl = attr->sm_sl,
					   .pkey_index = find_default_pkey(subnet->host_port) };
	if (!(attr->flags & IBV_QPF_GRH_REQUIRED))
		return;
	subnet->to_sm.grh = true;
	subnet->to_sm.hop_limit = HOPS_TO_SM;
	subnet->to_sm.dgid = subnet->gid0;
	memcpy(subnet->to_sm.dgid.raw + 8, &guid, sizeof(guid));
}

void subnet_port_changed(struct server *server, struct host_port *host_port, bool reregister)
{
	struct subnet *subnet = host_port->subnet;
	struct ibv_port_attr attr;
	struct sa_subnet now;

	if (!subnet || ibv_query_port(host_port->verbs, host_port->port_num, &attr))
		return;
	ibv_query_gid(host_port->verbs, host_port->port_num, 0, (union ibv_gid *)&subnet->gid0);
	host_port->n_pkeys = attr.pkey_tbl_len;
	set_path_to_sm(subnet, &attr);
	now = (struct sa_subnet){ .lid = attr.lid,
				  .sm_lid = attr.sm_lid,
				  .sm_sl = attr.sm_sl,
				  .is_active = attr.state == IBV_PORT_ACTIVE };
	log_debug("%s port %u: LID %u, subnet manager at LID %u", host_port->device,
		  host_port->port_num, now.lid, now.sm_lid);
	sa_agent_subnet(&subnet->agent, &now, reregister, server->now);
}

/* A user who joins and leaves all the time would otherwise use up all groups of the port. */
static void count_leaving(struct sa_agent *agent, uint16_t payer, int n)
{
	struct subnet *subnet = container_of(agent, struct subnet, agent);
	struct user *user = subnet->host_port->server->users.numbered[payer];

	user->n_leaving += (uint32_t)n;
}

static bool is_shared(const struct mad_gid *mgid)
{
	return net_kernel_has_group(mgid->raw);
}

static struct subnet *subnet_new(struct host_port *host_port)
{
	struct subnet *subnet = calloc(1, sizeof(*subnet));
	uint64_t random[2]; /* transaction ids and hash positions must not be predictable */

	if (!subnet || getrandom(random, sizeof(random), 0) != sizeof(random)) {
		free(subnet);
		return NULL;
	}
	subnet->host_port = host_port;
	subnet->gid0 = host_port->cm.gid0;
	subnet->sa.fd = -1;
	subnet->sa_watch.fd = -1;
	sa_agent_init(&subnet->agent, (uint32_t)random[0], random[1], send_query, subnet);
	subnet->agent.leaving = count_leaving;
	subnet->agent.is_shared = is_shared;
	return subnet;
}

static void receive_answers(struct watch *watch)
{
	struct subnet *subnet = container_of(watch, struct subnet, sa_watch);
	struct server *server = subnet->host_port->server;
	const uint8_t *mad;
	unsigned int n;
	size_t bytes;
	int err = 0;

	for (n = 0; n < RECEIVE_BATCH && (!err || err == -ENOMSG); n++) {
		err = umad_sa_receive(&subnet->sa, &mad, &bytes);
		if (!err)
			sa_agent_input(&subnet->agent, mad, bytes, server->now);
	}
	if (err == -ENODEV)
		loop_change(&server->loop, watch, 0); /* the host port notices it too */
}

int subnet_open(struct server *server, struct host_port *host_port)
{
	struct ibv_port_attr attr;
	int err = ibv_query_port(host_port->verbs, host_port->port_num, &attr);

	if (err || attr.link_layer != IBV_LINK_LAYER_INFINIBAND)
		return -err;
	host_port->subnet = subnet_new(host_port);
	if (!host_port->subnet)
		return -ENOMEM;
	err = umad_sa_open(host_port->device, host_port->port_num, &host_port->subnet->sa);
	if (!err)
		err = loop_watch(&server->loop, &host_port->subnet->sa_watch,
				 host_port->subnet->sa.fd, EPOLLIN, receive_answers);
	if (err)
		subnet_close(server, host_port);
	else
		subnet_port_changed(server, host_port, false);
	return err;
}

void subnet_expire(struct server *server, struct host_port *host_port)
{
	if (host_port->subnet)
		sa_agent_expire(&host_port->subnet->agent, server->now);
}

struct cm_time subnet_deadline(const struct host_port *host_port)
{
	return host_port->subnet ? sa_agent_deadline(&host_port->subnet->agent) : CM_TIME_NEVER;
}

/* --- clients ------------------------------------------------------------- */

static struct cm_key key_of(const struct client *client, uint32_t ask_id)
{
	return (struct cm_key){ .guid = client->index, .id = ask_id };
}

static struct client_ask *find_query(const struct client *client, uint32_t ask_id)
{
	struct cm_key key = key_of(client, ask_id);
	struct cm_node *node = cm_index_find(&client->server->asks, &key);

	return node ? container_of(node, struct client_ask, by_id) : NULL;
}

static void client_ask_free(struct client_ask *asked)
{
	struct user *user = asked->client->user;

	cm_index_remove(&asked->server->asks, &asked->by_id);
	list_remove(&asked->link);
	list_remove(&asked->telling);
	if (list_is_empty(&user->tables))
		list_remove(&user->tells);
	asked->client->n_asks--;
	user->n_asks--;
	free(asked);
}

static void end_query(struct client_ask *asked)
{
	sa_agent_withdraw(&asked->host_port->subnet->agent, &asked->ask, asked->server->now);
	client_ask_free(asked);
}

static void refuse_query(struct server *server, struct client *client, uint32_t ask_id, int err)
{
	struct portd_record record = { .type = PORTD_SA_TOLD,
				       .sa_told = { .ask_id = ask_id, .error = (uint16_t)-err } };

	client_tell(server, client, &record);
}

/* Tell a client the record of an answer; of a table so many follow. */
static void tell_record(const struct client_ask *asked, const struct sa_msg *answer, size_t left)
{
	struct portd_record record = { .type = PORTD_SA_TOLD,
				       .sa_told = { .ask_id = asked->ask_id,
						    .left = (uint16_t)left } };

	wire_encode(sa_msg_layout(answer->hdr.attr_id), &answer->path, record.sa_told.record);
	client_tell(asked->server, asked->client, &record);
}

/* A client may have a thousand equal queries for a table of a thousand. */
static void tell_later(struct client_ask *asked, const struct sa_msg *table)
{
	struct user *user = asked->client->user;

	asked->table = table;
	if (list_is_empty(&user->tables))
		list_append(&asked->server->tellers, &user->tells);
	list_append(&user->tables, &asked->telling);
}

static void answer_client(struct sa_ask *ask, int err, const struct sa_msg *answer)
{
	struct client_ask *asked = container_of(ask, struct client_ask, ask);

	if (!err && answer->table && answer->n_records <= TABLE_MAX) {
		tell_later(asked, answer);
		return;
	}
	if (!err && answer->table) {
		sa_agent_withdraw(&asked->host_port->subnet->agent, ask, asked->server->now);
		err = -E2BIG;
	}
	if (err)
		refuse_query(asked->server, asked->client, asked->ask_id, err);
	else
		tell_record(asked, answer, 0);
	/* A group membership lasts; other queries end with their response. */
	if (err || ask->msg.hdr.method != SA_METHOD_SET)
		client_ask_free(asked);
}

/* Tells as much as its user may be told in this turn, and one record in any case. Return: may it be
 * told more? */
static bool tell_more(struct client_ask *asked)
{
	struct sa_msg table = *asked->table;
	struct client *client = asked->client;

	do {
		user_spend(client);
		if (client->leaving)
			break;
		sa_msg_record(&table, asked->n_told++);
		tell_record(asked, &table, table.n_records - asked->n_told);
	} while (asked->n_told < table.n_records && user_has_turn(client));
	if (client->leaving || asked->n_told == table.n_records)
		end_query(asked);
	return user_has_turn(client);
}

void subnet_tell(struct server *server)
{
	struct client_ask *asked;
	struct user *user;

	list_for_each_entry_safe (user, &server->tellers, tells) {
		do
			asked = container_of(user->tables.next, struct client_ask, telling);
		while (tell_more(asked) && !list_is_empty(&user->tables));
	}
}

/* The only permitted queries: clients must not change anything except their own memberships. */
static bool is_welcome(const struct portd_sa_ask *ask)
{
	if (!sa_msg_layout(ask->attr))
		return false;
	return ask->method == SA_METHOD_GET ||
	       (ask->method == SA_METHOD_GET_TABLE && ask->attr == SA_ATTR_SERVICE_RECORD) ||
	       (ask->method == SA_METHOD_SET && ask->attr == SA_ATTR_MCMEMBER_RECORD);
}

/* Paths to a few GIDs share it, which costs their user queries, but others nothing. */
static struct cm_time *doubt_of(const struct client *client, const struct host_port *host_port,
				const struct mad_gid *dgid)
{
	return &client->user->doubts[mad_gid_hash(dgid, host_port->handle, DOUBTS_LOG2)];
}

static void set_query(struct client_ask *asked, const struct portd_sa_ask *wanted)
{
	struct sa_msg *msg = &asked->ask.msg;

	sa_msg_init(msg, (enum sa_method)wanted->method, (enum sa_attr)wanted->attr,
		    wanted->comp_mask, 0);
	wire_decode(sa_msg_layout(wanted->attr), wanted->record, &msg->path);
	if (wanted->method == SA_METHOD_SET)
		msg->member.port_gid = asked->host_port->subnet->gid0;
	if (wanted->attr == SA_ATTR_PATH_RECORD)
		asked->ask.since = *doubt_of(asked->client, asked->host_port, &msg->path.dgid);
	asked->ask_id = wanted->ask_id;
	asked->ask.timeout_ms = wanted->timeout_ms < TIMEOUT_MS_MAX ? wanted->timeout_ms
								    : TIMEOUT_MS_MAX;
	/* Not turn 0, which has no limit. */
	asked->ask.turn = (uint8_t)(1 + asked->client->user->number % (SA_TURNS - 1));
	asked->ask.payer = asked->client->user->number;
	asked->ask.done = answer_client;
}

static int check_query(struct client *client, const struct host_port *host_port,
		       const struct portd_sa_ask *wanted)
{
	if (!host_port)
		return -ENODEV;
	if (!host_port->subnet || !is_welcome(wanted))
		return -EPERM;
	if (client->user->uid != 0 && client->user->n_asks + client->user->n_leaving >= ASKS_MAX)
		return -EDQUOT;
	return 0;
}

static void handle_query(struct server *server, struct client *client,
			 const struct portd_sa_ask *wanted)
{
	struct host_port *host_port = client_host_port(server, client, wanted->port);
	struct cm_key key = key_of(client, wanted->ask_id);
	struct client_ask *asked = NULL;
	struct sa_agent *agent;
	int err;

	/*
	 * If a cmportd dies while a thread is about to send it a query, subnet_resend() and that
	 * thread both send the query to this one. The second has the old handle of the port.
	 */
	if (find_query(client, wanted->ask_id))
		return;
	err = check_query(client, host_port, wanted);
	if (!err && cm_index_reserve(&server->asks, server->asks.table.n_nodes + 1) == 0)
		asked = calloc(1, sizeof(*asked));
	if (!asked) {
		refuse_query(server, client, wanted->ask_id, err ? err : -ENOMEM);
		return;
	}
	list_init(&asked->telling);
	agent = &host_port->subnet->agent;
	asked->server = server;
	asked->client = client;
	asked->host_port = host_port;
	set_query(asked, wanted);
	list_append(&client->asks, &asked->link);
	cm_index_insert(&server->asks, &asked->by_id, &key);
	client->n_asks++;
	client->user->n_asks++;
	sa_agent_ask(agent, &asked->ask, server->now);
}

static void withdraw_query(const struct client *client, uint32_t ask_id)
{
	struct client_ask *asked = find_query(client, ask_id);

	if (asked)
		end_query(asked);
}

bool subnet_record(struct server *server, struct client *client, const struct portd_record *record)
{
	const struct portd_sa_revalidate *failed = &record->sa_revalidate;
	struct host_port *host_port;

	switch ((int)record->type) {
	case PORTD_SA_ASK:
		handle_query(server, client, &record->sa_ask);
		return true;
	case PORTD_SA_DROP:
		withdraw_query(client, record->sa_drop.ask_id);
		return true;
	case PORTD_SA_REVALIDATE:
		host_port = client_host_port(server, client, failed->port);
		if (host_port)
			*doubt_of(client, host_port, &failed->dgid) = server->now;
		return true;
	}
	return false;
}

static void forget_query(struct client_ask *asked)
{
	sa_agent_forget(&asked->host_port->subnet->agent, &asked->ask);
	client_ask_free(asked);
}

bool subnet_client_goes(struct client *client)
{
	if (list_is_empty(&client->asks))
		return false;
	end_query(container_of(client->asks.next, struct client_ask, link));
	return true;
}

void subnet_forget_client(struct client *client)
{
	struct client_ask *asked;

	list_for_each_entry_safe (asked, &client->asks, link)
		forget_query(asked);
}

static void forget_queries_of(struct server *server, const struct host_port *host_port)
{
	struct client_ask *asked;
	struct client *client;

	for_each_client (client, server) {
		list_for_each_entry_safe (asked, &client->asks, link)
			if (asked->host_port == host_port)
				forget_query(asked);
	}
}

void subnet_close(struct server *server, struct host_port *host_port)
{
	struct subnet *subnet = host_port->subnet;

	if (!subnet)
		return;
	forget_queries_of(server, host_port);
	sa_agent_fini(&subnet->agent);
	loop_unwatch(&server->loop, &subnet->sa_watch);
	umad_sa_close(&subnet->sa);
	free(subnet);
	host_port->subnet = NULL;
}

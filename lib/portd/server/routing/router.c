/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Routing: the client that receives a message, and whether a client may send a message. Messages of
 * no connected client go to our own core (cm/), which has the connections of ended processes and
 * answers stray messages.
 */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "cm/guard.h"
#include "lib/portd/server/routing/router.h"
#include "lib/portd/server/clients/client_out.h"
#include "lib/portd/server/clients/user.h"
#include "lib/portd/server/ledger/tracked_adopt.h"
#include "lib/portd/server/ledger/tracked_table.h"
#include "lib/portd/server/routing/fields.h"
#include "lib/portd/server/routing/recovery.h"
#include "lib/portd/server/wire/host_port.h"
#include "lib/portd/server/wire/recording.h"

#define LEFT_NS (60000 * CM_NS_PER_MS) /* longer than a peer repeats a REP */

/* A message that has arrived. */
struct arrived {
	struct host_port *host_port;
	const struct mad_path *path;
	struct mad_gid peer; /* mad_path_peer() of path */
	struct host *host;   /* that it is of */
	uint32_t source_qpn;
	const uint8_t *mad;
	bool is_stale; /* a REQ that shows a connection of its receiver to be stale */
	struct cm_msg msg;
};

static uint16_t owner_of_id(const struct server *server, uint32_t comm_id)
{
	return server->block_owner[comm_id >> ID_BLOCK_SHIFT];
}

static bool is_request(const struct cm_msg *msg)
{
	return msg->hdr.attr_id == CM_ATTR_REQ || msg->hdr.attr_id == CM_ATTR_SIDR_REQ;
}

/* --- our own core -------------------------------------------------------- */

static void send_effects(struct server *server, const struct cm_effects *fx)
{
	unsigned int i;

	for (i = 0; i < fx->n_sends; i++)
		host_port_send(server, host_port_of(fx->send[i].port), NULL, &fx->send[i].path,
			       fx->send[i].mad, false);
}

/* A live process may resume after the grace period; its peer repeats the message until then. */
static bool is_of_orphan(const struct server *server, const struct cm_msg *msg)
{
	const uint16_t block = (uint16_t)(msg->rtu.remote_comm_id >> ID_BLOCK_SHIFT);

	return !is_request(msg) && tracker_hold_block(server->tracker, block, false);
}

/* During the grace period, the client that a message is for may be about to resume. */
static bool may_answer(struct server *server, const struct arrived *in)
{
	bool may = !recovery_in_grace(server) && !is_of_orphan(server, &in->msg);

	stat_count(in->host_port, may ? PORTD_COUNT_ANSWERED : PORTD_COUNT_HELD_BACK, in->mad);
	return may;
}

/* A message of a connection has come from it. */
static void note_peer(const struct arrived *in)
{
	host_port_heard(in->host_port, in->path, in->source_qpn);
	host_know(in->host, &in->peer);
}

void router_left(struct server *server, uint32_t comm_id)
{
	server->block_left[comm_id >> ID_BLOCK_SHIFT] = server->now;
}

static bool has_left(const struct server *server, uint32_t comm_id)
{
	const struct cm_time at = server->block_left[comm_id >> ID_BLOCK_SHIFT];

	return at.ns && owner_of_id(server, comm_id) == NOBODY &&
	       !cm_time_reached(cm_time_after(at, LEFT_NS), server->now);
}

/* It sends DREQ until that is answered; one in TIMEWAIT has sent REJ, once. */
static bool is_being_ended(const struct server *server, uint32_t comm_id)
{
	const struct cm_key key = { .id = comm_id };
	struct cm_node *node = cm_index_find(&server->core.by_local, &key);

	return node && container_of(node, struct cm_conn, by_local)->state != CM_TIMEWAIT;
}

/*
 * The REJ for a connection of a program that has ended is sent once. If it was lost, the peer
 * repeats its REP, or has sent RTU and would wait for ever. Reason 4, as the peer of an RTU or MRA
 * may not know our comm id.
 */
static void reject_for_left(struct server *server, const struct arrived *in)
{
	const struct cm_msg *msg = &in->msg;
	const uint16_t attr = msg->hdr.attr_id;
	const uint32_t comm_id = msg->rtu.remote_comm_id; /* REP and MRA begin with both, too */
	uint8_t mad[MAD_BYTES];
	struct cm_msg rej;

	if ((attr != CM_ATTR_REP && attr != CM_ATTR_RTU && attr != CM_ATTR_MRA) ||
	    !has_left(server, comm_id) || is_being_ended(server, comm_id))
		return;
	cm_msg_init(&rej, CM_ATTR_REJ, msg->hdr.tid);
	rej.rej.local_comm_id = comm_id;
	rej.rej.remote_comm_id = msg->rtu.local_comm_id;
	rej.rej.message = attr == CM_ATTR_REP ? CM_ANSWERED_REP : CM_ANSWERED_OTHER;
	cm_rej_timeout(&rej.rej, in->host_port->cm.ca_guid);
	cm_msg_encode(&rej, mad);
	host_port_send(server, in->host_port, NULL, in->path, mad, false);
}

static void answer_for_nobody(struct server *server, const struct arrived *in)
{
	struct cm_effects fx;

	if (!may_answer(server, in))
		return;
	cm_core_input(&server->core, &in->host_port->cm, in->path, in->mad, MAD_BYTES, server->now,
		      &fx);
	if (fx.is_known)
		note_peer(in);
	send_effects(server, &fx);
	reject_for_left(server, in);
}

static struct cm_msg refusal_of(const struct cm_msg *request, enum cm_rej_reason reason)
{
	const struct cm_sidr_req *lookup = &request->sidr_req;
	struct cm_msg msg;

	if (request->hdr.attr_id == CM_ATTR_SIDR_REQ) {
		cm_msg_init(&msg, CM_ATTR_SIDR_REP, request->hdr.tid);
		msg.sidr_rep.request_id = lookup->request_id;
		msg.sidr_rep.service_id = lookup->service_id;
		msg.sidr_rep.status = CM_SIDR_REJECT;
		return msg;
	}
	cm_msg_init(&msg, CM_ATTR_REJ, request->hdr.tid);
	msg.rej.remote_comm_id = request->req.local_comm_id;
	msg.rej.message = CM_ANSWERED_REQ;
	msg.rej.reason = reason;
	return msg;
}

/*
 * As the kernel does: if there are listeners on the port, the request is rejected as by a program,
 * although none of them accepts its address.
 */
static void refuse_request(struct server *server, const struct arrived *in,
			   enum cm_rej_reason reason)
{
	struct cm_msg msg = refusal_of(&in->msg, reason);
	uint8_t mad[MAD_BYTES];

	if (!may_answer(server, in))
		return;
	cm_msg_encode(&msg, mad);
	host_port_send(server, in->host_port, NULL, in->path, mad, false);
}

void router_reap(struct server *server, const struct cm_record *tracked, uint16_t lane)
{
	struct host_port *host_port = server->host_port[tracked->handle];
	struct cm_conn *conn = NULL;
	struct cm_effects fx;

	if (tracked->local_comm_id) /* else the program has sent no message */
		router_left(server, tracked->local_comm_id);
	hosts_know_peer_of(&server->hosts, tracked);
	if (host_port)
		conn = cm_core_adopt(&server->core, tracked, &host_port->cm, NULL);
	if (!conn) {
		/* Already over, or out of memory; the peer will time out. */
		tracker_reaped(server->tracker, tracked->local_comm_id);
		return;
	}
	conn->lane = lane;
	log_debug("conn 0x%08x is left behind in %s", conn->local_comm_id,
		  cm_state_str(conn->state));
	if (cm_core_call(&server->core, conn, CM_CALL_DESTROY, NULL, server->now, &fx) == 0)
		send_effects(server, &fx);
}

void router_expire(struct server *server)
{
	struct cm_effects fx;
	unsigned int i;

	while (cm_core_expire(&server->core, server->now, &fx))
		for (i = 0; i < fx.n_sends; i++)
			host_port_send(server, host_port_of(fx.send[i].port), NULL,
				       &fx.send[i].path, fx.send[i].mad, true);
}

/* --- receiver of a message ------------------------------------------------ */

static uint16_t client_of(const struct tracked *tracked)
{
	return tracked ? tracked->client : NOBODY;
}

/*
 * A retransmitted request, or one that shows a stale connection, goes to the client of that
 * connection; a new one goes to the listener.
 */
static uint16_t route_new(const struct server *server, const struct arrived *in,
			  uint64_t service_id, const uint8_t *data)
{
	struct ports_request request = { .service_id = service_id,
					 .data = data,
					 .handles = in->host_port->of_device };
	const struct net_ns *net_ns = server->home;
	const struct gid_entry *gid = NULL;

	if (in->path->grh)
		gid = host_port_gid(in->host_port, in->path->sgid_index);
	if (gid) {
		net_ns = net_ns_of_gid(server->home, gid, server->now);
		request.ifindex = gid->ifindex;
	}
	return net_ns_listener(server->home, net_ns, &request);
}

/*
 * Return whether the REQ is a retransmission. After the connection has ended, the peer's host may
 * lease its comm id to another program, while the client here still has the connection.
 */
static bool is_again(const struct tracked *of, const struct cm_req *req)
{
	return of && of->is.remote_qpn == req->local_qpn && !tracked_has_ended(of);
}

static uint16_t route_req(const struct server *server, struct arrived *in)
{
	const struct cm_req *req = &in->msg.req;
	const struct tracked *of;
	uint16_t to, listener;

	of = tracker_of_remote(server->tracker, &in->peer, req->local_ca_guid, req->local_comm_id);
	if (is_again(of, req))
		return of->client;
	listener = route_new(server, in, req->service_id, req->private_data);
	to = client_of(
		tracker_of_qpn(server->tracker, &in->peer, req->local_ca_guid, req->local_qpn));
	in->is_stale = to != NOBODY && to != listener;
	return to == NOBODY ? listener : to;
}

static uint16_t route_lookup(const struct server *server, const struct arrived *in)
{
	const struct cm_sidr_req *lookup = &in->msg.sidr_req;
	const uint16_t to = route_new(server, in, lookup->service_id, lookup->private_data);
	uint16_t before;

	if (to < CLIENTS_MAX)
		return to;
	before = client_of(tracker_of_remote(server->tracker, &in->peer, lookup->service_id,
					     lookup->request_id));
	return before == NOBODY ? to : before;
}

static uint16_t route_msg(const struct server *server, struct arrived *in)
{
	const struct cm_msg *msg = &in->msg;
	uint16_t to = NOBODY;

	switch (msg->hdr.attr_id) {
	case CM_ATTR_REQ:
		return route_req(server, in);
	case CM_ATTR_SIDR_REQ:
		return route_lookup(server, in);
	case CM_ATTR_SIDR_REP:
		return owner_of_id(server, msg->sidr_rep.request_id);
	case CM_ATTR_REJ:
		/* A peer that gives up on a REQ without response sends only its own id. */
		if (msg->rej.reason == CM_REJ_TIMEOUT)
			to = client_of(tracker_of_remote(server->tracker, &in->peer,
							 cm_rej_guid(&msg->rej),
							 msg->rej.local_comm_id));
		if (to != NOBODY)
			return to;
	}
	/* All others begin with both ids. */
	if (is_being_ended(server, msg->rtu.remote_comm_id) &&
	    !tracker_of_local(server->tracker, msg->rtu.remote_comm_id))
		return NOBODY; /* the core's, though the owner of the id is here again */
	return owner_of_id(server, msg->rtu.remote_comm_id);
}

/*
 * Limits what a host can trigger without a connection: a search for a listener, a response, or a
 * record. A host gets one message of equal size for each of its own. Comm ids can be guessed, so a
 * message that names a client but none of its connections counts, too. Such messages may take only
 * a quarter of the burst, so that they do not displace requests of other users of that host.
 */
static bool may_ask(struct server *server, const struct arrived *in)
{
	const uint32_t rate = quota_of(&server->options.quotas, QUOTA_HOST_RATE);

	return hosts_may_ask(&server->hosts, in->host, &in->peer, rate,
			     is_request(&in->msg) || rate < 4 ? rate : rate / 4, server->now);
}

/*
 * Return: false for a message to be dropped, which limits what a remote flood makes us store for a
 * client that does not respond.
 *
 * The peer's queue pair is learnt only from messages of a connection: any host can send others,
 * with any source address, and they must not affect our responses to that address.
 */
static bool track_request(struct server *server, const struct arrived *in, uint16_t to,
			  bool *ret_is_known)
{
	const bool asks = is_request(&in->msg);
	struct mad_path way = *in->path;

	*ret_is_known = false;
	if (in->is_stale) /* not tracked: any user can name future queue pairs of others */
		return true;
	if (asks && !user_may(server->client[to], QUOTA_USER_CONNS))
		return false;
	if (asks)
		host_port_mark_source(in->host_port, &way);
	if (tracker_received(server->tracker, to, in->host_port->handle, &way, &in->msg,
			     ret_is_known))
		return false;
	if (*ret_is_known)
		note_peer(in);
	return *ret_is_known || asks || may_ask(server, in);
}

/*
 * A listener that does not read gets no more requests; when it reads again, their peers retransmit
 * them. Requests have been counted before their receiver was searched.
 */
static bool may_go_to(struct server *server, const struct arrived *in, uint16_t to)
{
	if (is_request(&in->msg))
		return to >= CLIENTS_MAX || client_takes_requests(server->client[to]);
	return to != NOBODY || may_ask(server, in);
}

static bool answers_request(const struct cm_msg *msg)
{
	switch (msg->hdr.attr_id) {
	case CM_ATTR_MRA:
		return msg->mra.message == CM_ANSWERED_REQ;
	case CM_ATTR_REP:
	case CM_ATTR_REJ:
	case CM_ATTR_SIDR_REP:
		return true;
	}
	return false;
}

static void note_answer(struct server *server, const struct arrived *in)
{
	if (!answers_request(&in->msg))
		return;
	bucket_give(&in->host->unanswered);
	server->resume_at = server->now; /* requests may have waited for this */
}

/* Of a message that has been decoded. Return: the client that gets it, NOBODY, or NOT_FOR_THEM. */
static uint16_t receiver_of(struct server *server, struct arrived *in)
{
	const uint16_t to = route_msg(server, in);
	struct client *client = to < CLIENTS_MAX ? server->client[to] : NULL;

	if (!client || (client->resuming && !client->is_ending))
		return to;
	if (client->is_ending || !client_host_port(server, client, in->host_port->handle))
		return NOBODY;
	return to;
}

/* The receiver of a stale REQ must not see private data, which is for the listener. */
static void hide_private_data(struct arrived *in, uint8_t ret[MAD_BYTES])
{
	memset(in->msg.req.private_data, 0, sizeof(in->msg.req.private_data));
	cm_msg_encode(&in->msg, ret);
	in->mad = ret;
}

/* The host knows a connection of the client's user, or asks for one. */
static void deliver(struct server *server, struct client *client, const struct arrived *in,
		    bool is_known)
{
	bucket_give(hosts_said(&server->hosts, in->host, client->user->number));
	client_deliver(server, client, in->host_port, in->path, in->mad, is_known);
}

void router_received(struct server *server, struct host_port *host_port,
		     const struct mad_path *path, uint32_t source_qpn, const uint8_t mad[MAD_BYTES])
{
	struct arrived in; /* large, so not cleared */
	uint8_t shown[MAD_BYTES];
	struct client *client;
	bool may, is_known;
	uint16_t to;

	if (cm_msg_decode(mad, MAD_BYTES, &in.msg)) {
		stat_count(host_port, PORTD_COUNT_MALFORMED, NULL);
		return;
	}
	stat_count(host_port, PORTD_COUNT_RECEIVED, mad);
	in.host_port = host_port;
	in.path = path;
	in.peer = mad_path_peer(path);
	in.host = hosts_at(&server->hosts, &in.peer);
	in.source_qpn = source_qpn;
	in.mad = mad;
	in.is_stale = false;
	note_answer(server, &in);
	may = !is_request(&in.msg) || may_ask(server, &in);
	to = may ? receiver_of(server, &in) : NOBODY;
	client = to < CLIENTS_MAX ? server->client[to] : NULL;
	/* Its reports are older than this message: they would take back a REP. */
	if (client && client->resuming) {
		stat_count(host_port, PORTD_COUNT_HELD_BACK, mad);
		return;
	}
	/* What is dropped is not recorded either: it would replace what is not. */
	if (!may || !may_go_to(server, &in, to) ||
	    (client && !track_request(server, &in, to, &is_known))) {
		stat_count(host_port, PORTD_COUNT_OVERFLOW, mad);
		return;
	}
	if (in.is_stale)
		hide_private_data(&in, shown);
	recording_add(server, host_port, PORTD_RECEIVED, client, path, in.mad);
	if (client)
		deliver(server, client, &in, is_known);
	if (in.is_stale)
		refuse_request(server, &in, CM_REJ_STALE_CONNECTION);
	else if (to == PORTS_NOT_FOR_THEM)
		refuse_request(server, &in, CM_REJ_CONSUMER);
	else if (!client)
		answer_for_nobody(server, &in);
}

/* --- checks before sending ------------------------------------------------ */

/*
 * The GID index in a message was valid when the connection began; that GID may have gone since, and
 * another may have its index. Return: false if the GID is gone.
 */
static bool find_source(const struct tracked *tracked, const struct client *client,
			struct host_port *host_port, struct mad_path *path,
			const struct cm_msg *msg)
{
	if (!tracked || tracked->client != client->index || !tracked->is.path.sgid_tag ||
	    (msg->hdr.attr_id == CM_ATTR_REQ && !tracked_is_again(tracked, &msg->req))) {
		host_port_mark_source(host_port, path);
		return true;
	}
	path->sgid_tag = tracked->is.path.sgid_tag;
	return host_port_follow_source(host_port, path);
}

/*
 * Limits messages for connections that the host has forgotten: it counts them as those of this
 * host, of all users, and its queue holds few. A host that knows a connection says something, too.
 * A user with many connections may end all at once.
 */
static bool may_say(struct server *server, const struct client *client, const struct mad_path *path)
{
	const struct mad_gid peer = mad_path_peer(path);
	const struct host *host = hosts_at(&server->hosts, &peer);
	const struct user *user = client->user;
	const uint32_t burst = SAID_FEW + SAID_EACH * user->n_tracked;

	return user->uid == 0 || bucket_take(hosts_said(&server->hosts, host, user->number), SAID_S,
					     burst < SAID_MAX ? burst : SAID_MAX, server->now);
}

/*
 * The message names the queue pair of another user's connection. The peer would reject it and end
 * that connection, so the server rejects it in the peer's place.
 */
static void refuse_for_peer(struct server *server, struct client *client,
			    struct host_port *host_port, const struct mad_path *path,
			    const struct cm_msg *msg)
{
	const bool is_req = msg->hdr.attr_id == CM_ATTR_REQ;
	struct cm_msg rej;
	uint8_t mad[MAD_BYTES];

	cm_msg_init(&rej, CM_ATTR_REJ, msg->hdr.tid);
	rej.rej.local_comm_id = is_req ? 0 : msg->rep.remote_comm_id;
	rej.rej.remote_comm_id = is_req ? msg->req.local_comm_id : msg->rep.local_comm_id;
	rej.rej.message = is_req ? CM_ANSWERED_REQ : CM_ANSWERED_REP;
	rej.rej.reason = CM_REJ_STALE_CONNECTION;
	cm_msg_encode(&rej, mad);
	client_deliver(server, client, host_port, path, mad, true);
}

static int check_message(struct server *server, struct client *client, struct host_port *host_port,
			 struct portd_mad *mad)
{
	const struct tracked *of;
	struct cm_msg msg;
	const char *wrong;
	int err = cm_msg_decode(mad->mad, MAD_BYTES, &msg);

	if (err)
		return err;
	of = tracker_of_sent(server->tracker, client->index, &mad->path, &msg);
	if (!find_source(of, client, host_port, &mad->path, &msg)) {
		user_end_turn(client);
		return -EADDRNOTAVAIL;
	}
	wrong = fields_wrong(server, client, host_port, &mad->path, &msg);
	if (wrong) {
		user_end_turn(client);
		log_debug("client %u, pid %d: not its %s", client->index, (int)client->pid, wrong);
		if (wrong == fields_own_qpn)
			refuse_for_peer(server, client, host_port, &mad->path, &msg);
		return -EPERM;
	}
	if (!is_request(&msg) && !may_say(server, client, &mad->path))
		return -EDQUOT;
	err = tracker_sent(server->tracker, of, client->index, host_port->handle, &mad->path, &msg,
			   user_may(client, QUOTA_USER_CONNS));
	if (err != -EPERM || msg.hdr.attr_id != CM_ATTR_DREP)
		return err;
	user_end_turn(client); /* for a connection that its client has forgotten, which is rare */
	return 0;
}

void router_sent(struct server *server, struct client *client, struct portd_mad *mad)
{
	struct host_port *host_port = client_host_port(server, client, mad->port);
	int err;

	if (!host_port)
		return; /* the device was removed */
	err = check_message(server, client, host_port, mad);
	if (err) {
		stat_count(host_port, PORTD_COUNT_FORBIDDEN, mad->mad);
		log_debug("client %u, pid %d: a message was refused: %s", client->index,
			  (int)client->pid, strerror(-err));
		return;
	}
	host_port_send(server, host_port, client, &mad->path, mad->mad, mad->again != 0);
}

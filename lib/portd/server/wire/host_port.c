/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ports of this host on which cmportd owns the CM class. Responses are sent at once. Requests
 * are queued until all input has been handled, and are sent a few at a time, before new responses.
 * A message whose next hop has no link address is queued: the kernel would block us until it has.
 *
 * A port that no client has used for a while is closed, and its device with the last of its ports:
 * a driver cannot be unloaded while its device is open.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/fd.h"
#include "base/log.h"
#include "lib/net/hop.h"
#include "lib/portd/server/wire/host_port.h"
#include "lib/portd/server/clients/client_out.h"
#include "lib/portd/server/clients/user.h"
#include "lib/portd/server/ledger/tracked_adopt.h"
#include "lib/portd/server/sa/subnet_queries.h"
#include "lib/portd/server/server_state.h"
#include "lib/portd/server/wire/recording.h"
#include "lib/portd/server/wire/unsent.h"
#include "lib/portd/server/wire/waiting.h"

/* --- opening and closing ------------------------------------------------- */

static int open_verbs(const char *device, struct ibv_context **ret)
{
	struct ibv_device **list;
	int i, err = fd_check_for_verbs();

	if (err)
		return err;
	list = ibv_get_device_list(NULL);
	if (!list)
		return errno == ENOMEM ? -ENOMEM : -ENODEV;
	err = -ENODEV;
	for (i = 0; list[i]; i++) {
		if (strcmp(ibv_get_device_name(list[i]), device) != 0)
			continue;
		errno = 0;
		*ret = ibv_open_device(list[i]);
		err = *ret ? 0 : errno ? -errno : -ENODEV;
	}
	ibv_free_device_list(list);
	return err;
}

static int read_device(struct host_port *host_port)
{
	struct ibv_device_attr attr;
	struct mad_gid gid0 = { 0 };
	int err = ibv_query_device(host_port->verbs, &attr);

	if (err)
		return -err;
	if (host_port->port_num == 0 || host_port->port_num > attr.phys_port_cnt)
		return -ENODEV;
	ibv_query_gid(host_port->verbs, host_port->port_num, 0, (union ibv_gid *)&gid0);
	cm_port_init(&host_port->cm, be64toh(attr.node_guid), &gid0);
	return 0;
}

static void host_port_free(struct host_port *host_port)
{
	loop_unwatch(&host_port->server->loop, &host_port->watch);
	loop_unwatch(&host_port->server->loop, &host_port->inbox);
	loop_unwatch(&host_port->server->loop, &host_port->async);
	mad_sender_close(host_port->sender);
	mad_port_close(host_port->mad);
	if (host_port->verbs)
		ibv_close_device(host_port->verbs);
	free(host_port);
}

static void qp1_ready(struct watch *watch);
static void inbox_ready(struct watch *watch);

static int open_parts(struct server *server, struct host_port *host_port,
		      struct umad_owner *ret_who)
{
	int err = open_verbs(host_port->device, &host_port->verbs);

	if (!err)
		err = read_device(host_port);
	if (!err)
		err = umad_port_open(host_port->device, host_port->port_num, &host_port->mad,
				     ret_who);
	if (err)
		return err;
	if (!server->options.qp1_alone)
		err = mad_sender_open(host_port->verbs, host_port->port_num, &host_port->sender);
	if (err)
		log_debug("messages go through umad, which is slower: %s", strerror(-err));
	err = loop_watch(&server->loop, &host_port->watch, host_port->mad->fd, EPOLLIN, qp1_ready);
	if (!err && host_port->sender)
		err = loop_watch(&server->loop, &host_port->inbox,
				 mad_sender_port(host_port->sender)->fd, EPOLLIN, inbox_ready);
	if (!err)
		err = subnet_open(server, host_port);
	return err ? err : device_events_watch(server, host_port);
}

static struct host_port *host_port_find(struct server *server, const char *device, uint8_t port_num)
{
	struct host_port *host_port;

	for_each_host_port (host_port, server) {
		if (host_port->port_num != port_num)
			continue;
		host_port_follow_name(server, host_port);
		if (!strcmp(host_port->device, device))
			return host_port;
	}
	return NULL;
}

/* A device may have been reset without anybody having noticed yet: the next one has its name. */
static struct host_port *find_alive(struct server *server, const char *device, uint8_t port_num)
{
	struct host_port *host_port = host_port_find(server, device, port_num);
	struct ibv_device_attr attr;
	int err = host_port ? ibv_query_device(host_port->verbs, &attr) : 0;

	if (err != EIO && err != ENODEV)
		return host_port;
	log_warn("RDMA device %s is gone", host_port->device);
	host_port_close(server, host_port);
	return NULL;
}

int host_port_open(struct server *server, const char *device, uint8_t port_num,
		   struct host_port **ret, struct umad_owner *ret_who)
{
	struct host_port *host_port = find_alive(server, device, port_num);
	int handle, err;

	*ret = host_port;
	if (host_port)
		return 0;
	host_port = calloc(1, sizeof(*host_port));
	if (!host_port)
		return -ENOMEM;
	host_port->server = server;
	host_port->watch.fd = host_port->inbox.fd = host_port->async.fd = -1;
	host_port->unused_at = server->now;
	host_port->port_num = port_num;
	strncpy(host_port->device, device, sizeof(host_port->device) - 1);
	host_port->tos = port_file_tos(&server->port_file, device, port_num);
	err = open_parts(server, host_port, ret_who);
	handle = err ? err : host_port_choose_handle(server, host_port);
	if (handle < 0) {
		subnet_close(server, host_port);
		host_port_free(host_port);
		return handle;
	}
	host_port->handle = (uint8_t)handle;
	log_debug("%s port %u is open", device, port_num);
	server->host_port[handle] = host_port;
	if (server->n_host_ports <= (unsigned int)handle)
		server->n_host_ports = (unsigned int)handle + 1;
	host_port_group(server);
	*ret = host_port;
	return 0;
}

static uint8_t count_ports(struct ibv_device *device)
{
	struct ibv_context *verbs = ibv_open_device(device);
	struct ibv_device_attr attr = { .phys_port_cnt = 0 };

	if (!verbs || ibv_query_device(verbs, &attr))
		log_warn("%s cannot be opened: %s", ibv_get_device_name(device), strerror(errno));
	if (verbs)
		ibv_close_device(verbs);
	return attr.phys_port_cnt;
}

void host_port_open_all(struct server *server)
{
	struct ibv_device **list = fd_check_for_verbs() ? NULL : ibv_get_device_list(NULL);
	struct host_port *host_port;
	const char *device;
	uint8_t port_num;
	int i, err;

	for (i = 0; list && list[i]; i++) {
		device = ibv_get_device_name(list[i]);
		for (port_num = count_ports(list[i]); port_num; port_num--) {
			struct umad_owner who = { .what = "" };

			err = host_port_open(server, device, port_num, &host_port, &who);
			if (err)
				log_warn("%s port %u cannot be opened: %s%s%s", device, port_num,
					 strerror(-err), who.what[0] ? ": " : "", who.what);
		}
	}
	if (list)
		ibv_free_device_list(list);
}

void host_port_close(struct server *server, struct host_port *host_port)
{
	struct client *client;

	cm_core_port_gone(&server->core, &host_port->cm, NULL, NULL);
	if (server->tracker) /* NULL at the end: connections are left for the next cmportd */
		tracker_port_gone(server->tracker, host_port->handle);
	for_each_client (client, server)
		client_port_gone(server, client, host_port->handle);
	unsent_port_gone(server, host_port);
	waiting_port_gone(server, host_port);
	subnet_close(server, host_port);
	server->host_port[host_port->handle] = NULL;
	host_port_group(server);
	gid_forget(host_port->verbs);
	host_port_free(host_port);
}

/* --- use ----------------------------------------------------------------- */

void host_port_taken(struct client *client, struct host_port *host_port)
{
	uint64_t bit = UINT64_C(1) << host_port->handle;

	if (!(client->host_ports & bit))
		host_port->n_clients++;
	client->host_ports |= bit;
}

void host_port_left(struct server *server, const struct client *client)
{
	struct host_port *host_port;

	for_each_host_port (host_port, server) {
		if (!client_host_port(server, client, host_port->handle))
			continue;
		host_port->n_clients--;
		host_port->unused_at = server->now;
	}
}

struct cm_time host_port_deadline(const struct host_port *host_port)
{
	const struct server_options *options = &host_port->server->options;
	uint64_t s = options->idle_s ? options->idle_s : UNUSED_S;

	if (host_port->n_clients || options->opens_ports || host_port->server->has_one_client)
		return CM_TIME_NEVER;
	return cm_time_after(host_port->unused_at, s * 1000 * CM_NS_PER_MS);
}

/* Messages wait, or connections of ended processes are being disconnected. */
static bool is_needed(const struct server *server, const struct host_port *host_port)
{
	return host_port->n_waiting || server->core.n_conns || !unsent_are_none(server) ||
	       tracker_has_orphans(server->tracker);
}

void host_port_expire(struct server *server)
{
	struct host_port *host_port;

	for_each_host_port (host_port, server) {
		if (!cm_time_reached(host_port_deadline(host_port), server->now))
			continue;
		if (is_needed(server, host_port)) {
			host_port->unused_at = server->now; /* check again later */
			continue;
		}
		log_debug("%s port %u is closed: nobody uses it", host_port->device,
			  host_port->port_num);
		host_port_close(server, host_port);
	}
}

/* --- receiving ----------------------------------------------------------- */

/* Return: the number of messages handled, up to @n_max; if it is less, @ret_err says why. */
static unsigned int receive_mads(struct server *server, struct host_port *host_port,
				 struct mad_port *port, unsigned int n_max, int *ret_err)
{
	uint8_t mad[MAD_BYTES];
	struct mad_path path;
	unsigned int n;

	for (n = 0; n < n_max; n++) {
		*ret_err = mad_port_receive(port, &path, mad);
		if (*ret_err == -ENOMSG)
			continue;
		if (*ret_err)
			break;
		if (host_port->sender &&
		    mad_sender_note_arrival(host_port->sender, &path.dgid, port->source_qpn, mad))
			continue;
		if (probe_answer(host_port, &path, mad))
			continue;
		server->received(server, host_port, &path, port->source_qpn, mad);
	}
	return n;
}

void host_port_heard(struct host_port *host_port, const struct mad_path *path, uint32_t qpn)
{
	if (host_port->sender)
		mad_sender_note_qpn(host_port->sender, &path->dgid, qpn);
}

static void qp1_ready(struct watch *watch)
{
	struct host_port *host_port = container_of(watch, struct host_port, watch);
	struct server *server = host_port->server;
	int err = 0;
	unsigned int n = receive_mads(server, host_port, host_port->mad,
				      read_batch_size(&host_port->batch), &err);

	read_batch_note(&host_port->batch, n, err, RECEIVE_BATCH);
	if (err == -ENODEV) {
		log_warn("RDMA device %s is gone", host_port->device);
		host_port->is_gone = true;
		server->any_port_news = true;
		loop_change(&server->loop, &host_port->watch, 0);
	}
}

void host_port_receive_inbox(struct server *server, struct host_port *host_port)
{
	int err;
	unsigned int n = receive_mads(server, host_port, mad_sender_port(host_port->sender),
				      RECEIVE_BATCH, &err);

	host_port->has_unread = n == RECEIVE_BATCH;
	server->any_unread = server->any_unread || host_port->has_unread;
}

static void inbox_ready(struct watch *watch)
{
	struct host_port *host_port = container_of(watch, struct host_port, inbox);

	host_port_receive_inbox(host_port->server, host_port);
}

/* --- sending ------------------------------------------------------------- */

bool host_port_reaches_hop(struct host_port *host_port, const struct mad_path *path)
{
	const bool is_ready = !path->grh || hop_is_ready(host_port->verbs, host_port->port_num,
							 path->sgid_index, &path->dgid);

	host_port->n_unresolved += !is_ready;
	return is_ready;
}

bool host_port_may_solicit(struct host_port *host_port, const struct mad_path *path)
{
	struct server *server = host_port->server;

	return !path->grh || hosts_hops_left(&server->hosts, server->now) ||
	       hop_is_known(host_port->verbs, host_port->port_num, path->sgid_index, &path->dgid);
}

static void send_by_umad(struct host_port *host_port, const struct mad_path *path,
			 const uint8_t mad[MAD_BYTES])
{
	int err = mad_port_send(host_port->mad, path, mad);

	stat_count(host_port, PORTD_COUNT_BY_UMAD, mad);
	if (!err)
		return;
	stat_count(host_port, PORTD_COUNT_UNSENT, mad);
	log_debug("a message was not sent: %s", strerror(-err));
}

/*
 * If the peer has got another link address unannounced, only the kernel's neighbour solicitation
 * detects that, so retransmissions go through umad, like messages that the sender refuses. So do
 * messages that would overtake a queued one: a peer takes a REQ that arrives after its DREQ for a
 * new request.
 */
static bool send_by(struct host_port *host_port, struct client *sender, const struct mad_path *path,
		    const uint8_t mad[MAD_BYTES], bool again)
{
	const bool tries = host_port->sender && !again &&
			   !mad_port_has_queued(host_port->mad, &path->dgid);
	enum mad_sender_way way = tries ? mad_sender_try(host_port->sender, path, mad)
					: MAD_SENDER_REFUSES;

	if (way == MAD_SENDER_HOLDS)
		return true;
	if (!host_port_reaches_hop(host_port, path))
		return false;
	if (way == MAD_SENDER_RESOLVES && sender)
		user_end_turn(sender); /* to make an address handle may be a command of firmware */
	if (way == MAD_SENDER_RESOLVES && !mad_sender_hold(host_port->sender, path, mad))
		return true;
	if (again && host_port->sender)
		mad_sender_unanswered(host_port->sender, path);
	if (again && path->grh)
		hop_revalidate(host_port->verbs, host_port->port_num, path->sgid_index,
			       &path->dgid);
	if (host_port->sender && mad_sender_is_busy(host_port->sender))
		mad_sender_release(host_port->sender); /* it was held earlier, so it goes first */
	send_by_umad(host_port, path, mad);
	return true;
}

/* A message whose source address has gone is dropped, as if it had been lost. */
static bool send_now(struct host_port *host_port, struct client *sender,
		     const struct mad_path *path, const uint8_t mad[MAD_BYTES], bool again)
{
	struct mad_path now = *path;

	if (host_port_follow_source(host_port, &now))
		return send_by(host_port, sender, &now, mad, again);
	stat_count(host_port, PORTD_COUNT_UNSENT, mad);
	return true;
}

static struct xmit *xmit_new(struct server *server, struct host_port *host_port,
			     struct client *sender, const struct mad_path *path,
			     const uint8_t mad[MAD_BYTES], bool again)
{
	struct xmit *xmit = malloc(sizeof(*xmit));

	if (!xmit) {
		stat_count(host_port, PORTD_COUNT_OVERFLOW, mad);
		return NULL;
	}
	xmit->deadline = cm_time_after(server->now, sender ? WAITING_NS : OUR_WAITING_NS);
	xmit->host_port = host_port;
	xmit->sender = sender;
	list_init(&xmit->of_sender);
	xmit->again = again;
	xmit->path = *path;
	memcpy(xmit->mad, mad, MAD_BYTES);
	return xmit;
}

/* A message that cancels a REQ must not overtake it. */
static bool has_to_queue(struct server *server, const struct client *sender,
			 const struct mad_path *path, const uint8_t mad[MAD_BYTES])
{
	uint16_t attr = cm_mad_attr(mad);

	return attr == CM_ATTR_REQ || attr == CM_ATTR_SIDR_REQ ||
	       (attr == CM_ATTR_REJ && unsent_to(server, sender, path));
}

/* If a client is not read from, others of its user are. */
static bool has_room(const struct server *server, struct client *sender)
{
	return sender ? user_may(sender, QUOTA_USER_UNSENT)
		      : server->nobody.n_requests < NOBODYS_MAX;
}

/* Return: whether the message is on its way, or dropped; false if it has to wait for its hop. */
static bool send_at_once(struct server *server, struct host_port *host_port, struct client *sender,
			 const struct mad_path *path, const uint8_t mad[MAD_BYTES], bool again)
{
	const struct mad_gid peer = mad_path_peer(path);
	const bool is_known = host_is_known(hosts_at(&server->hosts, &peer), &peer);
	const unsigned int before = host_port->n_unresolved;
	bool is_gone;

	if (waiting_for(server, host_port, path))
		return false;
	if (!is_known && !host_port_may_solicit(host_port, path)) {
		stat_count(host_port, PORTD_COUNT_UNSENT, mad);
		return true;
	}
	is_gone = sender ? send_by(host_port, sender, path, mad, again)
			 : send_now(host_port, sender, path, mad, again);
	if (!is_known)
		hosts_use_hops(&server->hosts, host_port->n_unresolved - before);
	return is_gone;
}

void host_port_send(struct server *server, struct host_port *host_port, struct client *sender,
		    const struct mad_path *path, const uint8_t mad[MAD_BYTES], bool again)
{
	bool queues = has_to_queue(server, sender, path, mad);
	struct xmit *xmit;

	recording_add(server, host_port, again ? PORTD_REPEATED : PORTD_SENT, sender, path, mad);
	stat_count(host_port, again ? PORTD_COUNT_REPEATED : PORTD_COUNT_SENT, mad);
	if (!queues && send_at_once(server, host_port, sender, path, mad, again))
		return;
	if (queues && !has_room(server, sender)) {
		stat_count(host_port, PORTD_COUNT_OVERFLOW, mad);
		return;
	}
	xmit = xmit_new(server, host_port, sender, path, mad, again);
	if (xmit && queues)
		unsent_put(server, xmit);
	else if (xmit)
		waiting_put(server, xmit);
}

bool host_port_try(const struct xmit *xmit)
{
	return send_now(xmit->host_port, xmit->sender, &xmit->path, xmit->mad, xmit->again);
}

static void send_held(struct server *server, struct host_port *host_port)
{
	uint8_t mad[MAD_BYTES];
	struct mad_path path;
	struct xmit *xmit;

	probe_peers(host_port);
	mad_sender_release(host_port->sender);
	/* Messages that the device has failed to send. */
	while (mad_sender_failed(host_port->sender, &path, mad)) {
		if (host_port_reaches_hop(host_port, &path)) {
			send_by_umad(host_port, &path, mad);
			continue;
		}
		xmit = xmit_new(server, host_port, NULL, &path, mad, true);
		if (xmit)
			waiting_put(server, xmit);
	}
}

void host_port_flush(struct server *server, struct host_port *host_port)
{
	if (host_port->sender && (host_port->probes_at.ns || mad_sender_is_busy(host_port->sender)))
		send_held(server, host_port);
}

void host_port_paths_changed(struct host_port *host_port)
{
	if (host_port->sender)
		mad_sender_forget(host_port->sender);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ports of this host on which cmportd owns the CM class. Answers leave at once; requests gather
 * until all that has arrived was looked at, and leave a few at a time, so that in a storm of
 * requests no REP waits behind them. A message whose next hop has no link address yet waits here,
 * because the kernel would make us wait for it. Called by server.c, router.c and answer.c.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "lib/net/hop.h"
#include "lib/portd/server/log.h"
#include "lib/portd/server/state.h"
#include "lib/portd/server/subnet.h"

/* --- parcels in lists ---------------------------------------------------- */

static void queue_request(struct station *station, struct parcel *parcel)
{
	list_append(&station->requests, &parcel->link);
	if (parcel->sender)
		parcel->sender->n_requests++;
}

static struct parcel *take_request(struct server *server, struct parcel *parcel)
{
	struct client *sender = parcel->sender;

	list_remove(&parcel->link);
	if (sender && --sender->n_requests == REQUESTS_MAX - 1)
		server->above->may_send(server, sender);
	return parcel;
}

static bool has_room_to_wait(const struct station *station, const struct parcel *parcel)
{
	return station->n_waiting < WAITING_MAX &&
	       (!parcel->sender || parcel->sender->n_waits < WAITS_MAX);
}

static void queue_waiting(struct station *station, struct parcel *parcel)
{
	list_append(&station->waiting, &parcel->link);
	station->n_waiting++;
	if (parcel->sender)
		parcel->sender->n_waits++;
}

static struct parcel *take_waiting(struct station *station, struct parcel *parcel)
{
	list_remove(&parcel->link);
	station->n_waiting--;
	if (parcel->sender)
		parcel->sender->n_waits--;
	return parcel;
}

static void forget_sender(struct list *parcels, const struct client *sender)
{
	struct parcel *parcel;
	struct list *node;

	list_for_each (node, parcels) {
		parcel = container_of(node, struct parcel, link);
		if (parcel->sender == sender)
			parcel->sender = NULL;
	}
}

void station_forget_sender(struct station *station, const struct client *sender)
{
	if (sender->n_requests)
		forget_sender(&station->requests, sender);
	if (sender->n_waits)
		forget_sender(&station->waiting, sender);
}

/* --- opening and closing ------------------------------------------------- */

static int open_verbs(const char *device, struct ibv_context **ret)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int i, err = -ENODEV;

	if (!list)
		return errno == ENOMEM ? -ENOMEM : -ENODEV;
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

static int identify(struct station *station)
{
	struct ibv_device_attr attr;
	struct mad_gid gid0 = { 0 };
	int err = ibv_query_device(station->verbs, &attr);

	if (err)
		return -err;
	if (station->port_num == 0 || station->port_num > attr.phys_port_cnt)
		return -ENODEV;
	ibv_query_gid(station->verbs, station->port_num, 0, (union ibv_gid *)&gid0);
	cm_port_init(&station->cm, be64toh(attr.node_guid), &gid0);
	return 0;
}

static void station_free(struct station *station)
{
	mad_sender_close(station->sender);
	mad_port_close(station->mad);
	if (station->verbs)
		ibv_close_device(station->verbs);
	free(station);
}

static int watch_inbox(struct server *server, struct station *station)
{
	const struct mad_port *inbox = mad_sender_port(station->sender);

	station->inbox = (struct watch){ .kind = WATCH_INBOX, .fd = inbox->fd };
	return server_watch(server, &station->inbox, EPOLLIN);
}

static int equip(struct server *server, struct station *station, struct umad_owner *ret_who)
{
	int err = open_verbs(station->device, &station->verbs);

	if (!err)
		err = identify(station);
	if (!err)
		err = umad_port_open(station->device, station->port_num, &station->mad, ret_who);
	if (err)
		return err;
	if (!server->options.qp1_alone)
		err = mad_sender_open(station->verbs, station->port_num, &station->sender);
	if (err)
		portd_log_debug("messages go through umad, which is slower: %s", strerror(-err));
	station->watch = (struct watch){ .kind = WATCH_STATION, .fd = station->mad->fd };
	err = server_watch(server, &station->watch, EPOLLIN);
	if (!err && station->sender)
		err = watch_inbox(server, station);
	return err ? err : subnet_open(server, station);
}

static struct station *station_find(const struct server *server, const char *device,
				    uint8_t port_num)
{
	struct station *station;
	unsigned int i;

	for (i = 0; i < STATIONS_MAX; i++) {
		station = server->station[i];
		if (station && station->port_num == port_num && !strcmp(station->device, device))
			return station;
	}
	return NULL;
}

int station_open(struct server *server, const char *device, uint8_t port_num, struct station **ret,
		 struct umad_owner *ret_who)
{
	struct station *station = station_find(server, device, port_num);
	int handle, err;

	*ret = station;
	if (station)
		return 0;
	handle = server->options.estate->handle(server, device, port_num);
	if (handle < 0)
		return handle;
	station = calloc(1, sizeof(*station));
	if (!station)
		return -ENOMEM;
	station->handle = (uint8_t)handle;
	station->batch = 1;
	station->port_num = port_num;
	strncpy(station->device, device, sizeof(station->device) - 1);
	list_init(&station->requests);
	list_init(&station->waiting);
	err = equip(server, station, ret_who);
	if (err) {
		station_free(station);
		return err;
	}
	portd_log_debug("%s port %u is open", device, port_num);
	server->station[handle] = station;
	if (server->n_stations <= (unsigned int)handle)
		server->n_stations = (unsigned int)handle + 1;
	*ret = station;
	return 0;
}

static uint8_t count_ports(struct ibv_device *device)
{
	struct ibv_context *verbs = ibv_open_device(device);
	struct ibv_device_attr attr = { .phys_port_cnt = 0 };

	if (!verbs || ibv_query_device(verbs, &attr))
		portd_log_warn("%s cannot be opened: %s", ibv_get_device_name(device),
			       strerror(errno));
	if (verbs)
		ibv_close_device(verbs);
	return attr.phys_port_cnt;
}

static void open_port(struct server *server, const char *device, uint8_t port_num)
{
	struct umad_owner who = { .what = "" };
	struct station *station;
	int err = station_open(server, device, port_num, &station, &who);

	if (err)
		portd_log_warn("%s port %u cannot be opened: %s%s%s", device, port_num,
			       strerror(-err), who.what[0] ? ": " : "", who.what);
}

void station_open_all(struct server *server)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	unsigned int port_num;
	int i;

	for (i = 0; list && list[i]; i++)
		for (port_num = count_ports(list[i]); port_num; port_num--)
			open_port(server, ibv_get_device_name(list[i]), (uint8_t)port_num);
	if (list)
		ibv_free_device_list(list);
}

static void drop_all(struct server *server, struct station *station)
{
	struct list *node, *after;

	list_for_each_safe (node, after, &station->requests)
		free(take_request(server, container_of(node, struct parcel, link)));
	list_for_each_safe (node, after, &station->waiting)
		free(take_waiting(station, container_of(node, struct parcel, link)));
}

void station_close(struct server *server, struct station *station)
{
	unsigned int i;

	epoll_ctl(server->poll_fd, EPOLL_CTL_DEL, station->watch.fd, NULL);
	cm_core_port_gone(&server->core, &station->cm, NULL, NULL);
	if (server->wills) /* or they are left for the next cmportd */
		wills_port_gone(server->wills, station->handle);
	for (i = 0; i < CLIENTS_MAX; i++)
		if (server->client[i])
			server->above->port_gone(server, server->client[i], station->handle);
	drop_all(server, station);
	subnet_close(server, station);
	server->station[station->handle] = NULL;
	gid_forget(station->verbs);
	station_free(station);
}

/* Zero is that of a device which only tests have. */
static void close_copy(int fd)
{
	if (fd > STDERR_FILENO)
		close(fd);
}

/* As long as a child has them open, the port and the queue pair are not free, whatever becomes of
 * the parent. Verbs calls would take them from the parent. */
void station_after_fork(struct station *station)
{
	mad_port_close(station->mad);
	if (station->sender)
		close_copy(mad_sender_port(station->sender)->fd);
	subnet_after_fork(station);
	close_copy(station->verbs->async_fd);
	close_copy(station->verbs->cmd_fd);
}

/* --- receiving ----------------------------------------------------------- */

/* Return: how many were looked at, of so many that may be; fewer if @ret_err says why. */
static unsigned int receive(struct server *server, struct station *station, struct mad_port *port,
			    unsigned int n_max, int *ret_err)
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
		if (station->sender)
			mad_sender_came(station->sender, &path.dgid, mad);
		server->above->received(server, station, &path, port->source_qpn, mad);
	}
	return n;
}

void station_heard(struct station *station, const struct mad_path *path, uint32_t qpn)
{
	if (station->sender)
		mad_sender_heard(station->sender, &path->dgid, qpn);
}

/* To find that there is nothing more costs a system call: as many are tried as there were of late.
 */
void station_receive(struct server *server, struct station *station)
{
	int err = 0;
	unsigned int n = receive(server, station, station->mad, station->batch, &err);

	station->batch = err ? n : 2 * n;
	if (station->batch == 0 || station->batch > RECEIVE_BATCH)
		station->batch = station->batch ? RECEIVE_BATCH : 1;
	if (err == -ENODEV) {
		portd_log_warn("RDMA device %s is gone", station->device);
		station->is_gone = true;
		server->any_gone = true;
		server_watch(server, &station->watch, 0);
	}
}

void station_receive_inbox(struct server *server, struct station *station)
{
	int err;
	unsigned int n =
		receive(server, station, mad_sender_port(station->sender), RECEIVE_BATCH, &err);

	station->has_unread = n == RECEIVE_BATCH;
	server->any_unread = server->any_unread || station->has_unread;
}

/* --- sending ------------------------------------------------------------- */

static bool is_hop_ready(const struct station *station, const struct mad_path *path)
{
	return !path->grh ||
	       hop_is_ready(station->verbs, station->port_num, path->sgid_index, &path->dgid);
}

static void count_unsent(struct server *server, struct station *station, const uint8_t *mad)
{
	server->count[SERVER_COUNT_UNSENT]++;
	stat_count(station, PORTD_COUNT_UNSENT, mad);
}

static void send_slowly(struct server *server, struct station *station, const struct mad_path *path,
			const uint8_t mad[MAD_BYTES])
{
	int err = mad_port_send(station->mad, path, mad);

	if (!err)
		return;
	count_unsent(server, station, mad);
	portd_log_debug("a message was not sent: %s", strerror(-err));
}

static void cast_doubt(struct station *station, const struct mad_path *path,
		       const uint8_t mad[MAD_BYTES])
{
	if (station->sender)
		mad_sender_doubt(station->sender, &path->dgid, mad);
	if (path->grh)
		hop_doubt(station->verbs, station->port_num, path->sgid_index, &path->dgid);
}

/* If the peer has moved to another link address without a word, only the kernel's look at its
 * neighbour finds that out: what is repeated goes the slow way. So does what the sender cannot
 * take; what it takes is kept until the end of the turn. */
static bool leave(struct server *server, struct station *station, const struct mad_path *path,
		  const uint8_t mad[MAD_BYTES], bool again)
{
	bool may_be_fast = !again && station->sender;
	bool is_fast = may_be_fast && mad_sender_is_ready(station->sender, path, mad);

	if (!is_fast && !is_hop_ready(station, path))
		return false;
	if (may_be_fast && !mad_sender_hold(station->sender, path, mad))
		return true;
	if (is_fast && !is_hop_ready(station, path))
		return false;
	if (again)
		cast_doubt(station, path, mad);
	if (station->sender)
		mad_sender_release(station->sender); /* it was said before */
	send_slowly(server, station, path, mad);
	return true;
}

static struct parcel *parcel_new(struct server *server, struct client *sender,
				 const struct mad_path *path, const uint8_t mad[MAD_BYTES],
				 bool again)
{
	struct parcel *parcel = malloc(sizeof(*parcel));

	if (!parcel)
		return NULL;
	parcel->deadline = cm_time_after(server->now, sender ? WAITING_NS : OUR_WAITING_NS);
	parcel->sender = sender;
	parcel->again = again;
	parcel->path = *path;
	memcpy(parcel->mad, mad, MAD_BYTES);
	return parcel;
}

static void wait_for_hop(struct server *server, struct station *station, struct parcel *parcel)
{
	if (parcel && has_room_to_wait(station, parcel)) {
		queue_waiting(station, parcel);
		return;
	}
	server->count[SERVER_COUNT_OVERFLOW]++;
	stat_count(station, PORTD_COUNT_OVERFLOW, parcel ? parcel->mad : NULL);
	free(parcel);
}

static bool is_request(const uint8_t mad[MAD_BYTES])
{
	return cm_mad_attr(mad) == CM_ATTR_REQ || cm_mad_attr(mad) == CM_ATTR_SIDR_REQ;
}

/* What takes back a REQ must not overtake it. */
static bool has_to_queue(const struct station *station, const uint8_t mad[MAD_BYTES])
{
	return is_request(mad) ||
	       (cm_mad_attr(mad) == CM_ATTR_REJ && !list_is_empty(&station->requests));
}

void station_send(struct server *server, struct station *station, struct client *sender,
		  const struct mad_path *path, const uint8_t mad[MAD_BYTES], bool again)
{
	struct parcel *parcel;

	onlook_message(server, station, again ? PORTD_REPEATED : PORTD_SENT, sender, path, mad);
	stat_count(station, again ? PORTD_COUNT_REPEATED : PORTD_COUNT_SENT, mad);
	if (!has_to_queue(station, mad)) {
		if (!leave(server, station, path, mad, again))
			wait_for_hop(server, station, parcel_new(server, sender, path, mad, again));
		return;
	}
	parcel = parcel_new(server, sender, path, mad, again);
	if (parcel) {
		queue_request(station, parcel);
		return;
	}
	server->count[SERVER_COUNT_OVERFLOW]++;
	stat_count(station, PORTD_COUNT_OVERFLOW, mad);
}

/* What the device did not send after all. */
static void send_failed(struct server *server, struct station *station)
{
	uint8_t mad[MAD_BYTES];
	struct mad_path path;

	while (mad_sender_failed(station->sender, &path, mad)) {
		if (is_hop_ready(station, &path))
			send_slowly(server, station, &path, mad);
		else
			wait_for_hop(server, station, parcel_new(server, NULL, &path, mad, true));
	}
}

static void send_held(struct server *server, struct station *station)
{
	mad_sender_release(station->sender);
	send_failed(server, station);
}

void station_flush(struct server *server, struct station *station)
{
	struct parcel *parcel;
	int i;

	for (i = 0; i < SEND_BATCH && !list_is_empty(&station->requests); i++) {
		parcel = container_of(station->requests.next, struct parcel, link);
		take_request(server, parcel);
		if (leave(server, station, &parcel->path, parcel->mad, parcel->again))
			free(parcel);
		else
			wait_for_hop(server, station, parcel);
	}
	server->requests_left = server->requests_left || !list_is_empty(&station->requests);
	if (station->sender)
		send_held(server, station);
}

/* A hop that does not answer is asked once a look, not once a message. */
void station_retry(struct server *server, struct station *station)
{
	const struct mad_gid *unready = NULL;
	struct list *node, *after;
	struct parcel *parcel;
	bool done;

	list_for_each_safe (node, after, &station->waiting) {
		parcel = container_of(node, struct parcel, link);
		done = cm_time_reached(parcel->deadline, server->now);
		if (done)
			count_unsent(server, station, parcel->mad);
		else if (!unready || memcmp(unready, &parcel->path.dgid, sizeof(*unready)) != 0)
			done = leave(server, station, &parcel->path, parcel->mad, parcel->again);
		if (!done) {
			unready = &parcel->path.dgid;
			continue;
		}
		free(take_waiting(station, parcel));
	}
}

void station_paths_changed(struct server *server, struct station *station)
{
	(void)server;
	if (station->sender)
		mad_sender_forget(station->sender);
}

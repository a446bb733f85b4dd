/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wire between hosts of one machine: datagrams of unix sockets in the fabric's folder. See
 * carrier.h.
 */
#include <dirent.h>
#include <string.h>

#include "tools/fabric/verbs/carrier.h"
#include "tools/fabric/verbs/grant.h"
#include "tools/fabric/wire/quirks.h"
#include "tools/fabric/wire/route.h"

#define WINDOW_PSNS  64
#define READ_PSNS    16
#define ASK_ACK_PSNS 16
#define BATCH	     64

/* Captured packets must be possible with RoCE v2. */
static uint32_t payload_bytes(const struct fab_context *context, enum ibv_mtu path_mtu)
{
	return context->capture.is_open ? 128u << path_mtu : FAB_FRAGMENT_BYTES;
}

static void peers_have_room(struct watch *watch)
{
	struct fab_context *context = container_of(watch, struct fab_context, waiting);

	pthread_mutex_lock(&context->lock);
	fab_peers_flush(&context->peers);
	pthread_mutex_unlock(&context->lock);
}

static int open_peers(struct fab_context *context)
{
	int err = fab_peers_init(&context->peers, context->device->folder.dir, context->slot);

	if (!err)
		err = loop_watch(&context->loop, &context->waiting, context->peers.loop.fd, EPOLLIN,
				 peers_have_room);
	context->peers.faulty.counters = context->counters;
	if (!err)
		grants_open(context);
	context->peers.use_rings = context->grants;
	return err ? err : context->fd;
}

static void close_peers(struct fab_context *context)
{
	grants_close(context);
	fab_peers_fini(&context->peers);
}

static int find_owner(struct fab_context *context, const struct ibv_ah_attr *attr,
		      struct fab_owner *ret)
{
	const struct fab_port *port = &context->device->page->port[attr->port_num - 1];
	struct fab_route route = { .dlid = attr->dlid,
				   .has_grh = attr->is_global,
				   .hop_limit = attr->grh.hop_limit,
				   .dgid = attr->grh.dgid };

	return -fab_route_find(&context->device->folder, port, &route, ret);
}

static void send_packet(struct fab_context *context, const char *path,
			const struct fab_packet *packet, const void *payload)
{
	fab_peers_send(&context->peers, path, packet, payload);
}

/* --- datagrams ----------------------------------------------------------- */

static void send_to(struct fab_context *context, const char *host, struct fab_packet *packet,
		    const void *payload)
{
	const struct fab_folder *folder = &context->device->folder;
	char path[FAB_PATH_BYTES];
	unsigned int slot = packet->dest_qpn >> FAB_SLOT_SHIFT;

	if (packet->dest_qpn == FAB_QP1 &&
	    fab_has_quirk(context->device->page, FAB_QUIRK_NO_FAST_PATH))
		return;
	if (slot == 0)
		fab_folder_gsi(folder, host, path);
	else
		fab_folder_slot(folder, host, slot, path);
	send_packet(context, path, packet, payload);
}

static void send_to_group(struct fab_qp *qp, struct fab_packet *packet, const void *payload)
{
	struct fab_context *context = to_context(qp->ex.qp_base.context);
	char path[FAB_PATH_BYTES], host[FAB_NAME_BYTES];
	struct dirent *entry;
	DIR *dir;

	fab_folder_group(&context->device->folder, &packet->dgid, path);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		if (!fab_folder_read_member(entry->d_name, host, &packet->dest_qpn))
			continue;
		/* Not to the sender: IBTA vol. 1, 10.5.3.2. */
		if (packet->dest_qpn == qp->ex.qp_base.qp_num &&
		    strcmp(host, context->device->folder.host) == 0)
			continue;
		send_to(context, host, packet, payload);
	}
	if (dir)
		closedir(dir);
}

static void send_datagram(struct fab_qp *qp, const struct fab_ah *ah, struct fab_packet *packet,
			  const void *payload)
{
	packet->port_num = ah->to.port_num;
	if (ah->to.host[0])
		send_to(context_of(qp), ah->to.host, packet, payload);
	else
		send_to_group(qp, packet, payload);
}

static void handle_packet(struct fab_context *context, size_t bytes, deliver_fn *deliver)
{
	const struct fab_packet *packet = (const struct fab_packet *)context->buffer;

	if (bytes < sizeof(*packet) || packet->magic != FAB_MAGIC ||
	    bytes != sizeof(*packet) + packet->bytes)
		return;
	/* What its sender has put into a ring before. */
	grants_take_packets(context, deliver);
	fab_count_received(context->counters, packet);
	deliver(context, packet, packet + 1);
	if (context->grants)
		fab_rings_took_datagram(&context->grants->rings, (uint8_t)packet->ring);
}

const struct carrier carrier_unix = {
	.window_bytes_min = WINDOW_PSNS * FAB_FRAGMENT_BYTES,
	.window_bytes_start = WINDOW_PSNS * FAB_FRAGMENT_BYTES,
	.window_bytes_max = WINDOW_PSNS * FAB_FRAGMENT_BYTES,
	.read_bytes = READ_PSNS * FAB_FRAGMENT_BYTES,
	.ask_ack_bytes = ASK_ACK_PSNS * FAB_FRAGMENT_BYTES,
	.batch = BATCH,
	.retry_ns_min = CARRIER_RETRY_NS_MIN,
	.payload_bytes = payload_bytes,
	.open = open_peers,
	.close = close_peers,
	.find = find_owner,
	.send = send_packet,
	.send_datagram = send_datagram,
	.receive = handle_packet,
};

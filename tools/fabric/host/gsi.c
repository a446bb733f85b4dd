/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QP1: MADs to and from the wire.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "tools/fabric/host/host.h"
#include "tools/fabric/host/smi.h"
#include "tools/fabric/wire/device.h"
#include "tools/fabric/wire/quirks.h"
#include "tools/fabric/wire/route.h"

#define BATCH	    64
#define FULL_MEMBER 0x8000
#define SA_GUID	    0x0200000000000002ull
#define PKEY_MASK   0x7fff

/* IBTA vol. 1, 14.2.1: the well-known GUID, independent of the port's GID. */
static bool is_administrator(const union ibv_gid *gid)
{
	return gid->global.interface_id == htobe64(SA_GUID);
}

/* Responses go back to the source of the request. IBTA vol. 1, 13.5.4. */
static void deliver_mad(struct host *host, const struct fab_packet *packet, const uint8_t *mad)
{
	const struct fab_port *port = &host->page->port[packet->port_num - 1];
	struct ib_user_mad head = {
		.length = sizeof(head) + FAB_MAD_BYTES,
		.addr = { .qpn = htonl(packet->src_qpn),
			  .qkey = htonl(packet->qkey),
			  .lid = htons(packet->slid),
			  .sl = packet->sl,
			  .path_bits = packet->dlid & ((1u << port->lmc) - 1) },
	};
	int index = is_administrator(&packet->dgid)
			    ? 0
			    : fab_page_find_gid(host->page, packet->port_num, &packet->dgid);

	if (packet->flags & FAB_GRH) {
		if (index < 0)
			return;
		head.addr.grh_present = 1;
		head.addr.gid_index = (uint8_t)index;
		head.addr.hop_limit = packet->hop_limit;
		head.addr.traffic_class = packet->traffic_class;
		head.addr.flow_label = htonl(packet->flow_label);
		memcpy(head.addr.gid, &packet->sgid, sizeof(head.addr.gid));
	}
	host->mad_came(host, packet->port_num, packet->dlid, &head, mad);
}

static bool is_valid_packet(const struct host *host, const struct fab_packet *packet)
{
	return packet->op == FAB_OP_DATAGRAM && packet->dest_qpn == FAB_QP1 &&
	       packet->bytes == FAB_MAD_BYTES && packet->qkey == FAB_QP1_QKEY &&
	       packet->port_num > 0 && packet->port_num <= host->page->n_ports &&
	       host->page->port[packet->port_num - 1].state == IBV_PORT_ACTIVE;
}

static void gsi_ready(struct watch *watch)
{
	struct host *host = container_of(watch, struct host, gsi);
	struct {
		struct fab_packet packet;
		uint8_t mad[FAB_MAD_BYTES];
	} in;
	ssize_t n;
	int i;

	for (i = 0; i < BATCH; i++) {
		n = recv(watch->fd, &in, sizeof(in), MSG_DONTWAIT | MSG_TRUNC);
		if (n < 0)
			return;
		if (n != sizeof(in) || in.packet.magic != FAB_MAGIC ||
		    !is_valid_packet(host, &in.packet))
			continue;
		if (in.packet.dlid != SMI_LID_SWITCH) /* which the packet does not leave */
			fab_count_received(host->counters, &in.packet);
		deliver_mad(host, &in.packet, in.mad);
	}
}

/* IBTA vol. 1, 10.9.3: QP1 accepts packets of all partitions of the port. */
static bool has_pkey(const struct fab_port *port, uint16_t pkey)
{
	unsigned int i;

	for (i = 0; i < FAB_PKEYS; i++)
		if (port->pkey[i] && (port->pkey[i] & PKEY_MASK) == (pkey & PKEY_MASK) &&
		    ((port->pkey[i] | pkey) & FULL_MEMBER))
			return true;
	return false;
}

void gsi_receive(struct host *host, const struct fab_packet *packet, const uint8_t *payload)
{
	if (!is_valid_packet(host, packet))
		return;
	fab_count_received(host->counters, packet);
	if (has_pkey(&host->page->port[packet->port_num - 1], packet->pkey))
		deliver_mad(host, packet, payload);
}

int gsi_open(struct host *host, mad_handler_fn *mad_came)
{
	char path[FAB_PATH_BYTES];
	int fd;

	host->mad_came = mad_came;
	fab_folder_gsi(&host->folder, host->folder.host, path);
	fd = fab_folder_bind(path, SOCK_DGRAM);
	if (fd == -EADDRINUSE)
		host_log(host, "there is a host of this name");
	if (fd < 0)
		return fd;
	return loop_watch(&host->loop, &host->gsi, fd, EPOLLIN, gsi_ready);
}

/* --- sending ------------------------------------------------------------- */

/* The administrator's host answers for the switch of its subnet. */
static int find_owner(const struct host *host, uint8_t port_num, const struct ib_user_mad *head,
		      struct fab_owner *ret)
{
	const struct fab_port *port = &host->page->port[port_num - 1];
	struct fab_route route = { .dlid = ntohs(head->addr.lid),
				   .has_grh = head->addr.grh_present,
				   .hop_limit = head->addr.hop_limit };

	memcpy(&route.dgid, head->addr.gid, sizeof(route.dgid));
	if (!fab_port_is_roce(port) && route.dlid == SMI_LID_SWITCH)
		route.dlid = port->sm_lid;
	return -fab_route_find(&host->folder, port, &route, ret);
}

static uint32_t interface_of(const struct host *host, uint8_t port_num, uint8_t gid_index)
{
	struct fab_gid sgid;

	return fab_page_gid(host->page, port_num, gid_index, &sgid) ? sgid.ifindex : 0;
}

static int fill_packet(const struct host *host, uint8_t port_num, uint16_t slid,
		       const struct ib_user_mad *head, struct fab_packet *ret)
{
	const struct fab_port *port = &host->page->port[port_num - 1];
	struct fab_gid sgid;

	*ret = (struct fab_packet){
		.magic = FAB_MAGIC,
		.service = FAB_SERVICE_UD,
		.op = FAB_OP_DATAGRAM,
		.flags = FAB_FIRST | FAB_LAST,
		.from_port = port_num,
		.subnet = port->subnet,
		.sl = head->addr.sl,
		.pkey = port->pkey[head->addr.pkey_index % FAB_PKEYS],
		.slid = slid,
		.dlid = ntohs(head->addr.lid),
		.dest_qpn = FAB_QP1,
		.src_qpn = FAB_QP1,
		.qkey = FAB_QP1_QKEY,
		.bytes = FAB_MAD_BYTES,
	};
	if (port->state != IBV_PORT_ACTIVE)
		return ENETDOWN;
	if (!head->addr.grh_present)
		return fab_needs_grh(host->page, port_num) ? EINVAL : 0;
	if (!fab_page_gid(host->page, port_num, head->addr.gid_index, &sgid))
		return EINVAL;
	ret->flags |= FAB_GRH;
	ret->sgid = sgid.gid;
	memcpy(&ret->dgid, head->addr.gid, sizeof(ret->dgid));
	ret->hop_limit = head->addr.hop_limit;
	ret->traffic_class = head->addr.traffic_class;
	ret->flow_label = ntohl(head->addr.flow_label);
	fab_route_sent(ret);
	return 0;
}

int gsi_send_from(struct host *host, uint8_t port_num, uint16_t slid,
		  const struct ib_user_mad *head, const uint8_t mad[FAB_MAD_BYTES])
{
	char path[FAB_PATH_BYTES];
	struct fab_packet packet;
	struct fab_owner to;
	int err = fill_packet(host, port_num, slid, head, &packet);

	if (!err)
		udp_capture_write(&host->capture, &packet, mad);
	if (!err && slid != SMI_LID_SWITCH)
		fab_count_sent(host->counters, &packet);
	if (!err && host->wire == FAB_WIRE_ROCE) {
		udp_out_packet(&host->out, &packet,
			       interface_of(host, port_num, head->addr.gid_index), mad);
		udp_out_flush(&host->out);
		return 0;
	}
	if (!err)
		err = find_owner(host, port_num, head, &to);
	if (err)
		return err;
	packet.port_num = to.port_num;
	fab_folder_gsi(&host->folder, to.host, path);
	/* An unreachable host fails silently, like a slow one. */
	fab_peers_send(&host->peers, path, &packet, mad);
	return 0;
}

int gsi_send(struct host *host, uint8_t port_num, const struct ib_user_mad *head,
	     const uint8_t mad[FAB_MAD_BYTES])
{
	uint16_t lid = host->page->port[port_num - 1].lid;

	return gsi_send_from(host, port_num, (uint16_t)(lid | head->addr.path_bits), head, mad);
}

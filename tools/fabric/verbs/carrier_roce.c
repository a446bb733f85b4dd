/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCE v2 as a wire: see carrier.h.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "tools/fabric/roce/icrc.h"
#include "tools/fabric/udp/in.h"
#include "tools/fabric/udp/share.h"
#include "tools/fabric/verbs/carrier.h"
#include "tools/fabric/wire/frames.h"
#include "tools/fabric/wire/quirks.h"

#define WINDOW_BYTES_MIN   8192
#define WINDOW_BYTES_START (128 << 10)
#define WINDOW_BYTES_MAX   (1 << 20)
#define READ_BYTES	   (64 << 10)
#define ASK_ACK_BYTES	   (32 << 10)
#define BATCH		   4 /* x 64 KiB: a quarter of the window, so that the sender need not stop */
#define TIMEOUT_NS_MIN	   20000000
#define EARLY_NS_MIN	   5000000
#define MTU_BYTES(mtu)	   (128u << (mtu))

static uint32_t payload_bytes(const struct fab_context *context, enum ibv_mtu path_mtu)
{
	(void)context;
	return MTU_BYTES(path_mtu);
}

static void sockets_have_room(struct watch *watch)
{
	struct fab_context *context = container_of(watch, struct fab_context, waiting);

	pthread_mutex_lock(&context->lock);
	udp_out_send_waiting(&context->out);
	pthread_mutex_unlock(&context->lock);
}

/* The VRF of the host does not exist in the network namespace of a pod. */
static uint32_t own_vrf(const struct fab_page *page)
{
	return page->network == fab_page_own_network() ? page->vrf : 0;
}

static int open_sockets(struct fab_context *context)
{
	const struct fab_device *device = context->device;
	int err = udp_out_init(&context->out, own_vrf(device->page), device->folder.dir,
			       context->slot);

	icrc_flush_as_rxe(fab_has_quirk(context->device->page, FAB_QUIRK_RXE_FLUSH));
	if (!err)
		err = loop_watch(&context->loop, &context->waiting, context->out.loop.fd, EPOLLIN,
				 sockets_have_room);
	if (!err)
		context->udp_fd = err =
			share_request_socket(&device->folder, context->slot, &context->udp_conn);
	return err;
}

static void close_sockets(struct fab_context *context)
{
	udp_out_fini(&context->out);
	fd_close(&context->udp_fd);
	fd_close(&context->udp_conn);
}

/* --- sending ------------------------------------------------------------- */

/* The interface with a GID of ours, or 0. */
static uint32_t interface_of(const struct fab_context *context, uint8_t port_num,
			     const union ibv_gid *gid)
{
	const struct fab_page *page = context->device->page;
	int index = fab_page_find_gid(page, port_num, gid);
	struct fab_gid entry;

	if (index < 0 || !fab_page_gid(page, port_num, (uint32_t)index, &entry))
		return 0;
	return entry.ifindex;
}

/* Does not find out whether a host has the address: IP only shows whether there is a route. */
static int find_way(struct fab_context *context, const struct ibv_ah_attr *attr,
		    struct fab_owner *ret)
{
	struct fab_gid sgid;
	int err;

	memset(ret, 0, sizeof(*ret));
	if (!fab_page_gid(context->device->page, attr->port_num, attr->grh.sgid_index, &sgid))
		return EINVAL;
	err = udp_out_reach(&context->out, &sgid.gid, &attr->grh.dgid, sgid.ifindex);
	return err == ENETUNREACH ? EHOSTUNREACH : err;
}

static void send_packet(struct fab_context *context, const char *path,
			const struct fab_packet *packet, const void *payload)
{
	(void)path;
	udp_out_packet(&context->out, packet, 0, payload);
}

static void send_datagram(struct fab_qp *qp, const struct fab_ah *ah, struct fab_packet *packet,
			  const void *payload)
{
	struct fab_context *context = context_of(qp);

	(void)ah;
	if (packet->dest_qpn == FAB_QP1 &&
	    fab_has_quirk(context->device->page, FAB_QUIRK_NO_FAST_PATH))
		return;
	udp_out_packet(&context->out, packet,
		       interface_of(context, packet->from_port, &packet->sgid), payload);
}

/* A program that polls may leave the thread no processor to send what waits for room. */
static void flush_out(struct fab_context *context)
{
	udp_out_flush(&context->out);
	udp_out_retry(&context->out);
}

static bool are_coalesced(const struct fab_context *context)
{
	return udp_out_has_segments(&context->out);
}

/* --- receiving ----------------------------------------------------------- */

static void deliver_to_group(struct fab_context *context, struct fab_packet *packet,
			     const void *payload, deliver_fn *deliver)
{
	bool is_ours = fab_page_find_gid(context->device->page, packet->port_num, &packet->sgid) >=
		       0;
	struct fab_qp *qp;

	list_for_each_entry_safe (qp, &context->attached, attached) {
		/* Not to the sender: IBTA vol. 1, 10.5.3.2. */
		if (is_ours && packet->src_qpn == qp->ex.qp_base.qp_num)
			continue;
		packet->dest_qpn = qp->ex.qp_base.qp_num;
		deliver(context, packet, payload);
	}
}

/* A BTH does not identify the sender: it is the peer, if the packet has the peer's address. */
static void name_sender(const struct fab_context *context, struct fab_packet *packet)
{
	const struct fab_qp *qp = context->qp[packet->dest_qpn % FAB_SLOT_QPS];

	if (qp && packet->op != FAB_OP_DATAGRAM)
		packet->src_qpn = qp->attr.dest_qp_num;
}

static void handle_frame(struct fab_context *context, const struct fab_frames *frames,
			 const uint8_t *bytes, size_t n, deliver_fn *deliver)
{
	struct fab_packet packet;
	const uint8_t *payload;

	if (!udp_in_packet(frames, bytes, n, &packet, &payload))
		return;
	udp_capture_received(&context->capture, &context->device->folder, &packet, payload);
	fab_count_received(context->counters, &packet);
	name_sender(context, &packet);
	if (packet.dest_qpn == FAB_QPN_MULTICAST && packet.op == FAB_OP_DATAGRAM)
		deliver_to_group(context, &packet, payload, deliver);
	else
		deliver(context, &packet, payload);
}

/* Packets for us that other processes have received. */
static void handle_forwarded(struct fab_context *context, size_t n_bytes, deliver_fn *deliver)
{
	const struct fab_frames *frames = (const struct fab_frames *)context->buffer;

	if (n_bytes >= sizeof(*frames) && frames->magic == FAB_FRAMES_MAGIC &&
	    n_bytes == sizeof(*frames) + frames->bytes)
		handle_frame(context, frames, (const uint8_t *)(frames + 1), frames->bytes,
			     deliver);
}

static bool is_for_us(const struct fab_context *context, const uint8_t *bytes)
{
	uint32_t qpn = roce_dest_qpn(bytes);

	return qpn >> FAB_SLOT_SHIFT == context->slot || qpn == FAB_QPN_MULTICAST;
}

/*
 * The kernel coalesces a sender's packets for any queue pair, and selects the socket by the first
 * of them.
 */
static void forward_frames(const struct fab_context *context, const struct fab_frames *frames,
			   const uint8_t *bytes, uint32_t n)
{
	struct fab_frames one = *frames;

	one.bytes = n;
	fab_frames_forward(context->fd, &context->device->folder,
			   roce_dest_qpn(bytes) >> FAB_SLOT_SHIFT, &one, bytes);
}

static bool take_frames(struct fab_context *context, deliver_fn *deliver)
{
	struct fab_frames *frames = (struct fab_frames *)context->buffer;
	uint8_t *bytes = (uint8_t *)(frames + 1);
	uint32_t at, n, left, step;

	if (!udp_in_receive(context->udp_fd, context->device->page, frames, bytes))
		return false;
	step = frames->segment_bytes;
	for (at = 0; frames->port_num && frames->bytes - at >= ROCE_BYTES_MIN; at += n) {
		left = frames->bytes - at;
		n = step < left ? step : left;
		if (is_for_us(context, bytes + at))
			handle_frame(context, frames, bytes + at, n, deliver);
		else
			forward_frames(context, frames, bytes + at, n);
		frames->identification++;
	}
	return true;
}

/* --- groups -------------------------------------------------------------- */

static int join_group(struct fab_qp *qp, const union ibv_gid *mgid)
{
	const struct fab_page *page = context_of(qp)->device->page;
	uint8_t port_num = qp->attr.port_num ? (uint8_t)qp->attr.port_num : 1; /* not in RESET */
	int fd = udp_out_join(mgid, fab_page_interface(page, port_num));

	if (fd < 0)
		return -fd;
	qp->mgid_fd[qp->n_mgids] = fd;
	udp_in_take_groups(context_of(qp)->udp_fd, true);
	if (list_is_empty(&qp->attached))
		list_append(&context_of(qp)->attached, &qp->attached);
	return 0;
}

static void leave_group(struct fab_qp *qp, unsigned int i)
{
	close(qp->mgid_fd[i]);
	qp->mgid_fd[i] = qp->mgid_fd[qp->n_mgids - 1];
	if (qp->n_mgids == 1)
		list_remove(&qp->attached);
	if (list_is_empty(&context_of(qp)->attached))
		udp_in_take_groups(context_of(qp)->udp_fd, false);
}

const struct carrier carrier_roce = {
	.window_bytes_min = WINDOW_BYTES_MIN,
	.window_bytes_start = WINDOW_BYTES_START,
	.window_bytes_max = WINDOW_BYTES_MAX,
	.read_bytes = READ_BYTES,
	.ask_ack_bytes = ASK_ACK_BYTES,
	.batch = BATCH,
	.timeout_ns_min = TIMEOUT_NS_MIN,
	.retry_ns_min = CARRIER_RETRY_NS_MIN,
	.early_ns_min = EARLY_NS_MIN,
	.payload_bytes = payload_bytes,
	.open = open_sockets,
	.close = close_sockets,
	.find = find_way,
	.send = send_packet,
	.send_datagram = send_datagram,
	.flush = flush_out,
	.coalesces = are_coalesced,
	.take = take_frames,
	.receive = handle_forwarded,
	.join = join_group,
	.leave = leave_group,
};

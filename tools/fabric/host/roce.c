/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UDP port 4791 of the host: packets for QP1 are decoded here. Packets for other queue pairs go to
 * sockets of their processes (steer.c).
 */
#include <errno.h>
#include <net/if.h>
#include <unistd.h>

#include "tools/fabric/host/host.h"
#include "tools/fabric/udp/in.h"
#include "tools/fabric/udp/vrf.h"

#define BATCH 64

static void pass_to_gsi(struct host *host, const struct fab_frames *frames, const uint8_t *bytes)
{
	struct fab_packet packet;
	const uint8_t *payload;

	if (!udp_in_packet(frames, bytes, frames->bytes, &packet, &payload))
		return;
	udp_capture_received(&host->capture, &host->folder, &packet, payload);
	gsi_receive(host, &packet, payload);
}

/* A packet for another queue pair came together with one for QP1, or its process has just ended. */
static void handle_frame(struct host *host, const struct fab_frames *frames, const uint8_t *bytes)
{
	uint32_t qpn = roce_dest_qpn(bytes);

	if (qpn == FAB_QP1)
		pass_to_gsi(host, frames, bytes);
	else if (qpn >> FAB_SLOT_SHIFT && qpn != FAB_QPN_MULTICAST)
		fab_frames_forward(host->gsi.fd, &host->folder, qpn >> FAB_SLOT_SHIFT, frames,
				   bytes);
}

static void handle_frames(struct host *host, const struct fab_frames *frames, const uint8_t *bytes)
{
	uint32_t at, left, step = frames->segment_bytes;
	struct fab_frames one = *frames;

	for (at = 0; frames->bytes - at >= ROCE_BYTES_MIN; at += one.bytes) {
		left = frames->bytes - at;
		one.bytes = step < left ? step : left;
		handle_frame(host, &one, bytes + at);
	}
}

static void udp_ready(struct watch *watch)
{
	struct host *host = container_of(watch, struct host, udp);
	static uint8_t bytes[FAB_FRAMES_BYTES_MAX];
	struct fab_frames frames;
	int i;

	for (i = 0; i < BATCH && udp_in_receive(watch->fd, host->page, &frames, bytes); i++)
		if (frames.port_num)
			handle_frames(host, &frames, bytes);
}

static void out_ready(struct watch *watch)
{
	udp_out_send_waiting(&container_of(watch, struct host, out_watch)->out);
}

/* --- opening ------------------------------------------------------------- */

static void print_port_owner(const struct host *host)
{
	if (access("/sys/module/rdma_rxe", F_OK) == 0)
		host_log(host,
			 "UDP port 4791 is taken. rdma_rxe is loaded: if it receives RoCE in this "
			 "network namespace (\"rdma link\" shows its devices), \"rdma link delete "
			 "rxe0\" frees the port; or use that device, or another network namespace. "
			 "Or a process has it (\"ss -ulnp sport = 4791\" shows that)");
	else
		host_log(host,
			 "UDP port 4791 is taken: another process receives RoCE in this network "
			 "namespace, maybe another fabric (\"ss -ulnp sport = 4791\" shows it)");
}

int roce_open(struct host *host)
{
	int err, fd;

	host->vrf = udp_vrf_of(if_nametoindex(host->netdev[0]));
	fd = udp_in_open(host->vrf);
	if (fd == -EADDRINUSE)
		print_port_owner(host);
	if (fd < 0)
		return fd;
	err = loop_watch(&host->loop, &host->udp, fd, EPOLLIN, udp_ready);
	if (!err)
		err = steer_open(host);
	if (!err)
		err = udp_out_init(&host->out, host->vrf, host->folder.dir, 0);
	return err ? err
		   : loop_watch(&host->loop, &host->out_watch, host->out.loop.fd, EPOLLIN,
				out_ready);
}

void roce_close(struct host *host)
{
	udp_out_fini(&host->out);
	if (host->udp.fd >= 0)
		close(host->udp.fd);
	host->udp.fd = -1;
}

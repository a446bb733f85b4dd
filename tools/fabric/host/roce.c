/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UDP port 4791 of the host: packets for QP1 are decoded here, all others go to the process whose
 * slot is in the queue pair's number, those for a group to all that are attached to it.
 */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tools/fabric/host/host.h"
#include "tools/fabric/roce/icrc.h"
#include "tools/fabric/udp/in.h"

#define BATCH 64

static bool is_multicast(const union ibv_gid *gid)
{
	return icrc_is_ipv4(gid) ? (gid->raw[12] & 0xf0) == 0xe0 : gid->raw[0] == 0xff;
}

/* By the address; of a group by the interface. Return: 0 if it is none of the device's. */
static uint8_t find_port(const struct host *host, const struct fab_frames *frames)
{
	uint8_t port_num;

	for (port_num = 1; port_num <= host->page->n_ports; port_num++) {
		if (is_multicast(&frames->dgid)
			    ? host->page->port[port_num - 1].gid[0].ifindex == frames->ifindex
			    : fab_page_find_gid(host->page, port_num, &frames->dgid) >= 0)
			return port_num;
	}
	return 0;
}

static void give_to_gsi(struct host *host, const struct fab_frames *frames, const uint8_t *bytes)
{
	struct fab_packet packet;
	const uint8_t *payload;

	if (udp_in_packet(frames, bytes, frames->bytes, &packet, &payload))
		gsi_packet_came(host, &packet, payload);
}

/* Once to each process that has a member. */
static void give_to_group(struct host *host, const struct fab_frames *frames, const uint8_t *bytes)
{
	char path[FAB_PATH_BYTES], name[FAB_NAME_BYTES];
	bool is_given[FAB_SLOTS] = { false };
	struct dirent *entry;
	uint32_t qpn;
	DIR *dir;

	fab_place_group(&host->place, &frames->dgid, path);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		if (!fab_place_read_member(entry->d_name, name, &qpn) ||
		    strcmp(name, host->place.host) != 0 || qpn >> FAB_SLOT_SHIFT >= FAB_SLOTS ||
		    is_given[qpn >> FAB_SLOT_SHIFT])
			continue;
		is_given[qpn >> FAB_SLOT_SHIFT] = true;
		relay_frames(host->relay, qpn >> FAB_SLOT_SHIFT, frames, bytes);
	}
	if (dir)
		closedir(dir);
}

/* One packet, or several for one queue pair. */
static void give_run(struct host *host, const struct fab_frames *frames, const uint8_t *bytes)
{
	uint32_t qpn = roce_dest_qpn(bytes);

	if (qpn == FAB_QPN_MULTICAST)
		give_to_group(host, frames, bytes);
	else if (qpn >> FAB_SLOT_SHIFT)
		relay_frames(host->relay, qpn >> FAB_SLOT_SHIFT, frames, bytes);
	else if (qpn == FAB_QP1)
		give_to_gsi(host, frames, bytes);
}

static bool is_single(uint32_t qpn)
{
	return qpn == FAB_QP1 || qpn == FAB_QPN_MULTICAST;
}

/* The kernel joins packets of a sender whomever they are for. */
static void give_frames(struct host *host, const struct fab_frames *frames, const uint8_t *bytes)
{
	size_t at = 0, end, left = frames->bytes, step = frames->segment_bytes;
	struct fab_frames run = *frames;
	uint32_t qpn;

	while (left - at >= ROCE_BYTES_MIN && at < left) {
		qpn = roce_dest_qpn(bytes + at);
		end = at + step < left ? at + step : left;
		while (!is_single(qpn) && left - end >= ROCE_BYTES_MIN && end < left &&
		       roce_dest_qpn(bytes + end) == qpn)
			end = end + step < left ? end + step : left;
		run.bytes = (uint32_t)(end - at);
		give_run(host, &run, bytes + at);
		at = end;
	}
}

static void udp_ready(struct watch *watch, uint32_t events)
{
	struct host *host = container_of(watch, struct host, udp);
	static uint8_t bytes[FAB_FRAMES_BYTES_MAX];
	struct fab_frames frames;
	int i;

	(void)events;
	for (i = 0; i < BATCH && udp_in_receive(watch->fd, &frames, bytes); i++) {
		frames.port_num = find_port(host, &frames);
		if (frames.port_num)
			give_frames(host, &frames, bytes);
	}
}

static void out_ready(struct watch *watch, uint32_t events)
{
	(void)events;
	udp_out_send_waiting(&container_of(watch, struct host, out_watch)->out);
}

/* --- opening ------------------------------------------------------------- */

static void say_who_has_the_port(const struct host *host)
{
	if (access("/sys/module/rdma_rxe", F_OK) == 0)
		host_say(host,
			 "UDP port 4791 is taken: rdma_rxe is loaded, and receives RoCE in this "
			 "network namespace. \"rdma link delete rxe0\" frees the port; or use "
			 "that device, or another network namespace");
	else
		host_say(host,
			 "UDP port 4791 is taken: another process receives RoCE in this network "
			 "namespace, maybe another fabric (\"ss -ulnp sport = 4791\" shows it)");
}

int roce_open(struct host *host)
{
	int err, fd;

	host->relay = relay_new(&host->loop, &host->place);
	if (!host->relay)
		return -ENOMEM;
	fd = udp_in_open();
	if (fd == -EADDRINUSE)
		say_who_has_the_port(host);
	if (fd < 0)
		return fd;
	err = loop_watch(&host->loop, &host->udp, fd, EPOLLIN, udp_ready);
	if (!err)
		err = udp_out_init(&host->out);
	return err ? err
		   : loop_watch(&host->loop, &host->out_watch, host->out.loop.fd, EPOLLIN,
				out_ready);
}

void roce_close(struct host *host)
{
	relay_free(host->relay);
	host->relay = NULL;
	udp_out_fini(&host->out);
	if (host->udp.fd >= 0)
		close(host->udp.fd);
	host->udp.fd = -1;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands for a host: "port 1 down", "port 1 up", "pod 1 10.77.0.9 5", "lid 17",
 * "pkeys 0x8001,0x8002", "remove", "reset", "rename roceo1"; "forget" for the subnet administrator,
 * and "reregister" for its clients. Each is a datagram of tools/fabric/fabric with a descriptor;
 * the sender waits until this process closes the descriptor.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "tools/fabric/host/host.h"
#include "tools/fabric/host/sa.h"

#define ORDER_BYTES 96

static void set_port(struct host *host, unsigned int port_num, bool up)
{
	struct fab_port *port = &host->page->port[port_num - 1];
	uint8_t state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;

	if (port_num == 0 || port_num > host->page->n_ports || port->state == state)
		return;
	fab_page_write_begin(host->page);
	port->state = state;
	if (!up)
		fab_count(host->counters, (uint8_t)port_num, FAB_LINK_DOWNED, 1);
	fab_page_write_end(host->page);
	sysfs_write(host);
	events_send(host, up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR, (uint8_t)port_num);
}

static void close_watch(struct host *host, struct watch *watch)
{
	int fd = watch->fd;

	loop_unwatch(&host->loop, watch);
	close(fd);
}

/*
 * Like a hot unplug: each process with the device open gets an event, and the device cannot be
 * opened again.
 */
static void remove_device(struct host *host)
{
	unsigned int i;

	if (host->page->is_removed)
		return;
	host->page->is_removed = 1;
	sysfs_remove(host);
	events_send(host, IBV_EVENT_DEVICE_FATAL, 0);
	identity_forget(host);
	for (i = 0; i < host->page->n_ports; i++)
		close_watch(host, &host->listener[i].watch);
	close_watch(host, &host->gsi);
	agents_close(host);
}

/* Like a driver whose device hangs: the device disappears, and returns with its name. */
static void reset_device(struct host *host)
{
	remove_device(host);
	host->is_reset = true;
	host->is_ending = true;
}

static void add_pod(struct host *host, unsigned int port_num, const char *address,
		    unsigned int ifindex)
{
	struct pod_gid pod = { .gid.raw = { [10] = 0xff, [11] = 0xff },
			       .port_num = (uint8_t)port_num,
			       .ifindex = ifindex };

	if (port_num == 0 || port_num > host->n_ports ||
	    (inet_pton(AF_INET, address, pod.gid.raw + 12) != 1 &&
	     inet_pton(AF_INET6, address, pod.gid.raw) != 1))
		host_log(host, "no such port or address: %u %s", port_num, address);
	else
		identity_add_pod(host, &pod);
}

static void carry_out(struct host *host, const char *order)
{
	unsigned int port_num, lid, ifindex;
	char what[8], address[64];

	if (sscanf(order, "port %u %7s", &port_num, what) == 2)
		set_port(host, port_num, strcmp(what, "up") == 0);
	else if (sscanf(order, "lid %u", &lid) == 1)
		subnet_set_lid(host, (uint16_t)lid);
	else if (sscanf(order, "pod %u %45s %u", &port_num, address, &ifindex) == 3)
		add_pod(host, port_num, address, ifindex);
	else if (sscanf(order, "pkeys %63[0-9a-fx,]", address) == 1)
		subnet_set_pkeys(host, address);
	else if (strcmp(order, "remove") == 0)
		remove_device(host);
	else if (strcmp(order, "reset") == 0)
		reset_device(host);
	else if (sscanf(order, "rename %63s", address) == 1)
		identity_rename(host, address);
	else if (strcmp(order, "forget") == 0)
		sa_forget(host);
	else if (strcmp(order, "reregister") == 0)
		events_send(host, IBV_EVENT_CLIENT_REREGISTER, 1);
	else
		host_log(host, "unknown order: %s", order);
}

static void control_ready(struct watch *watch)
{
	struct host *host = container_of(watch, struct host, control);
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
	char order[ORDER_BYTES + 1] = "";
	struct iovec text = { order, ORDER_BYTES };
	struct msghdr msg = { .msg_iov = &text,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = CMSG_LEN(sizeof(int)) }; /* for one only */
	int fd;

	if (recvmsg(watch->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) <= 0)
		return;
	carry_out(host, order);
	fd = agents_descriptor_of(&msg);
	fd_close(&fd);
}

int control_open(struct host *host)
{
	char path[FAB_PATH_BYTES];
	int fd;

	snprintf(path, sizeof(path), "%s/hosts/%s/control", host->folder.dir, host->folder.host);
	fd = fab_folder_bind(path, SOCK_DGRAM);
	return fd < 0 ? fd : loop_watch(&host->loop, &host->control, fd, EPOLLIN, control_ready);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The UDP sockets of the processes: a process that connects and sends its slot gets a socket of
 * port 4791, and the kernel delivers packets for the slot to that socket while the connection
 * lasts. See host.h.
 *
 * Sockets are never closed, because others would then take their place in the kernel's order; they
 * are reused.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "tools/fabric/host/host.h"
#include "tools/fabric/udp/in.h"
#include "tools/fabric/udp/share.h"

#define NOBODY UDP_IN_SOCKETS_MAX

struct owner {
	struct watch watch;
	struct steering *steering;
	unsigned int socket; /* or NOBODY: none yet */
};

struct steering {
	struct host *host;
	struct watch listener;
	unsigned int n_sockets;
	int fd[UDP_IN_SOCKETS_MAX - 1];
	uint16_t slot[UDP_IN_SOCKETS_MAX - 1]; /* 0: free */
};

static int steer_sockets(struct steering *steering)
{
	return udp_in_steer(steering->host->udp.fd, steering->slot, steering->n_sockets);
}

/* Return: the index of a free socket, or -errno. */
static int find_socket(struct steering *steering)
{
	unsigned int i;
	int fd;

	for (i = 0; i < steering->n_sockets; i++)
		if (!steering->slot[i])
			return (int)i;
	if (i == UDP_IN_SOCKETS_MAX - 1)
		return -EMFILE;
	fd = udp_in_open_more(steering->host->vrf);
	if (fd < 0)
		return fd;
	steering->fd[steering->n_sockets++] = fd;
	return (int)i;
}

static int give_socket(struct owner *owner, uint16_t slot)
{
	struct steering *steering = owner->steering;
	int i = find_socket(steering), err;

	if (i < 0)
		return i;
	udp_in_take_groups(steering->fd[i], false);
	udp_in_drain(steering->fd[i]);
	steering->slot[i] = slot;
	owner->socket = (unsigned int)i;
	err = steer_sockets(steering);
	return err ? err : steering->fd[i];
}

static void forget_owner(struct owner *owner)
{
	struct steering *steering = owner->steering;
	int fd = owner->watch.fd;

	if (owner->socket != NOBODY) {
		steering->slot[owner->socket] = 0;
		steer_sockets(steering);
	}
	loop_unwatch(&steering->host->loop, &owner->watch);
	fd_close(&fd);
	free(owner);
}

static void owner_ready(struct watch *watch)
{
	struct owner *owner = container_of(watch, struct owner, watch);
	uint16_t slot = share_read_slot(watch->fd);

	if (!slot || owner->socket != NOBODY)
		forget_owner(owner);
	else
		share_send_socket(watch->fd, give_socket(owner, slot));
}

static void listener_ready(struct watch *watch)
{
	struct steering *steering = container_of(watch, struct steering, listener);
	int fd = accept_conn(steering->host, watch->fd);
	struct owner *owner = fd < 0 ? NULL : calloc(1, sizeof(*owner));

	if (!owner) {
		fd_close(&fd);
		return;
	}
	owner->steering = steering;
	owner->socket = NOBODY;
	if (loop_watch(&steering->host->loop, &owner->watch, fd, EPOLLIN, owner_ready)) {
		fd_close(&fd);
		free(owner);
	}
}

int steer_open(struct host *host)
{
	struct steering *steering = calloc(1, sizeof(*steering));
	char path[FAB_PATH_BYTES];
	int fd;

	if (!steering)
		return -ENOMEM;
	host->steering = steering;
	steering->host = host;
	fab_folder_udp(&host->folder, path);
	fd = fab_folder_bind(path, SOCK_SEQPACKET);
	if (fd < 0)
		return fd;
	if (listen(fd, SOMAXCONN))
		return fd_give_up(fd);
	return loop_watch(&host->loop, &steering->listener, fd, EPOLLIN, listener_ready);
}

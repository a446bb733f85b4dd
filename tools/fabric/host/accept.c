/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections of processes, with a descriptor in reserve to refuse one with. */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "tools/fabric/host/host.h"

static int accept_next(int listener)
{
	return accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

void accept_reserve(struct host *host)
{
	host->reserve_fd = open("/", O_RDONLY | O_CLOEXEC);
}

/* A connection that waits would end each turn of the loop at once, and its process would wait. */
int accept_conn(struct host *host, int listener)
{
	int fd = accept_next(listener);

	if (fd >= 0 || errno != EMFILE)
		return fd;
	host_log(host, "no descriptor is left: a process is refused");
	fd_close(&host->reserve_fd);
	fd = accept_next(listener);
	fd_close(&fd);
	accept_reserve(host);
	return -1;
}

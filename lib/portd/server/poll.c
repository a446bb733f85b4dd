/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What every part of the server needs: descriptors to be polled, and whether clients of a
 * predecessor may still come back.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "lib/portd/server/log.h"
#include "lib/portd/server/state.h"

int server_watch(struct server *server, struct watch *watch, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = watch };

	int change = !watch->is_watched ? EPOLL_CTL_ADD : events ? EPOLL_CTL_MOD : EPOLL_CTL_DEL;

	if (watch->events == events)
		return 0;
	if (epoll_ctl(server->poll_fd, change, watch->fd, &event))
		return -errno;
	watch->is_watched = events != 0;
	watch->events = events;
	return 0;
}

void server_unwatch(struct server *server, struct watch *watch)
{
	if (watch->fd < 0)
		return;
	if (watch->is_watched)
		epoll_ctl(server->poll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
	watch->is_watched = false;
	close(watch->fd);
	watch->fd = -1;
}

bool server_in_grace(struct server *server)
{
	if (server->grace_until.ns && (cm_time_reached(server->grace_until, server->now) ||
				       !server->options.recovery->awaits(server))) {
		server->grace_until.ns = 0;
		portd_log_debug("whoever was to come back has come");
	}
	return server->grace_until.ns != 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sockets in an epoll whose connection is still being set up: one whose connection fails
 * becomes TCP and stays in its epolls.
 */
#ifndef PRELOAD_CONNECTING_H
#define PRELOAD_CONNECTING_H

#include <stdint.h>
#include <sys/epoll.h>

#include "base/list.h"
#include "lib/rsocket/preload/map.h"

/** connecting_note() - what an epoll asks of a socket; nothing if it has no connect() pending. */
void connecting_note(int fd, const struct sock *sock);

/** connecting_leave() - a socket is taken from an epoll. */
void connecting_leave(int fd, int epfd);

/** connecting_forget() - a descriptor is closed, a socket or an epoll. */
void connecting_forget(int fd);

/** connecting_deadline() - Return: the first time to give one up in an epoll, or @deadline. */
struct cm_time connecting_deadline(int epfd, struct cm_time deadline);

/**
 * connecting_take_failed() - look for a connection that has failed or is late
 * @epfd: the epoll descriptor
 * @events: what the instance beside it reports
 * @n: how many; one less if the event of the connection was among them and is taken out
 *
 * What has been set up is forgotten. Return: the descriptor, or -1 if there is none (any more).
 */
int connecting_take_failed(int epfd, struct epoll_event *events, int *n, struct cm_time now);

/** connecting_take() - a socket leaves its epolls. @ret: which, for connecting_give(). */
void connecting_take(int fd, struct list *ret);

/** connecting_give() - the descriptor is one of the kernel's now: add it to its epolls again. */
void connecting_give(struct list *taken);

#endif

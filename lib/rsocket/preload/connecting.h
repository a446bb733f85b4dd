/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sockets in an epoll whose connection is still being made: one that cannot be had becomes TCP
 * and stays in its epolls. fallback.c, map.c and wait.c call this.
 */
#ifndef PRELOAD_CONNECTING_H
#define PRELOAD_CONNECTING_H

#include <stdint.h>
#include <sys/epoll.h>

#include "lib/rsocket/preload/map.h"

struct connecting;

/** connecting_note() - what an epoll is asked of a socket; nothing if no connection is made. */
void connecting_note(int fd, const struct sock *sock);

/** connecting_leave() - a socket is taken from an epoll. */
void connecting_leave(int fd, int epfd);

/** connecting_forget() - a descriptor is closed, a socket or an epoll. */
void connecting_forget(int fd);

/** connecting_until_ms() - Return: the first time to give one up in an epoll, or end_ms; -1: never.
 */
int64_t connecting_until_ms(int epfd, int64_t end_ms);

/**
 * connecting_failed() - look for a connection that cannot be had
 * @epfd: the epoll descriptor
 * @events: what the instance beside it says
 * @n: how many; one less if the event of the connection was there and is taken out
 * @now_ms: CLOCK_MONOTONIC
 *
 * What has been set up is forgotten. Return: the descriptor, or -1 if there is none (any more).
 */
int connecting_failed(int epfd, struct epoll_event *events, int *n, int64_t now_ms);

/** connecting_take() - a socket leaves its epolls. Return: which, for connecting_give(). */
struct connecting *connecting_take(int fd);

/** connecting_give() - the descriptor is one of the kernel's now: its epolls get it back. */
void connecting_give(struct connecting *taken);

#endif

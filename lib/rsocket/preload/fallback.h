/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP where there is no RDMA: the second socket of a listener, and what becomes of a connection
 * that cannot be had.
 */
#ifndef PRELOAD_FALLBACK_H
#define PRELOAD_FALLBACK_H

#include "lib/rsocket/preload/map.h"
#include "lib/rsocket/preload/real.h"

/** fallback_bind() - bind(), both sockets to one port; only TCP if the address has no RDMA. */
int fallback_bind(int fd, struct sock *sock, const struct sockaddr *addr, socklen_t bytes);

/** fallback_now_ms() - CLOCK_MONOTONIC */
int64_t fallback_now_ms(void);

/** fallback_connect() - connect(), with TCP if it fails, or if nobody answers for a while. */
int fallback_connect(int fd, struct sock *sock, const struct sockaddr *addr, socklen_t bytes);

/**
 * fallback_retry() - a connection that was being set up has failed: try TCP, without waiting
 *
 * Return: false if it was not being set up, or was tried before; the descriptor is else TCP's.
 */
bool fallback_retry(int fd, struct sock *sock);

/** fallback_listen() - the TCP socket of a listener. Return: as listen(). */
int fallback_listen(struct sock *sock, int backlog);

/**
 * fallback_control() - epoll_ctl() of the TCP socket of what may be a listener
 * @repoll: the instance that has the socket itself
 *
 * Until it listens, a TCP socket hangs up, which no epoll can be told to leave out: it is added
 * when it does.
 */
void fallback_control(struct sock *sock, int repoll, int op, struct epoll_event *event);

#endif

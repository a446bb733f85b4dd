/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP where there is no RDMA: the second socket of a listener, and the replacement of a connection
 * that fails.
 */
#ifndef PRELOAD_FALLBACK_H
#define PRELOAD_FALLBACK_H

#include "lib/rsocket/preload/map.h"
#include "lib/rsocket/preload/real.h"

/** fallback_bind() - bind(), both sockets to one port; only TCP if the address has no RDMA. */
int fallback_bind(int fd, struct sock *sock, const struct sockaddr *addr, socklen_t bytes);

/** fallback_connect() - connect(), with TCP if it fails or nobody answers for a while. */
int fallback_connect(int fd, struct sock *sock, const struct sockaddr *addr, socklen_t bytes);

/**
 * fallback_retry() - a pending connect() has failed: try TCP, without waiting
 *
 * Return: false if none was pending, or TCP was tried before; else the descriptor is TCP's.
 */
bool fallback_retry(int fd, struct sock *sock);

/** fallback_listen() - the TCP socket of a listener. Return: as listen(). */
int fallback_listen(struct sock *sock, int backlog);

/**
 * fallback_control() - epoll_ctl() of the TCP socket of what may be a listener
 * @repoll: the instance that has the socket itself
 *
 * Until it listens, a TCP socket reports a hang-up, which epoll cannot mask: it is added when it
 * listens.
 */
void fallback_control(struct sock *sock, int repoll, int op, struct epoll_event *event);

#endif

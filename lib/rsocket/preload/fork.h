/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fork mode, for servers that fork after accept(): RDMAV_FORK_SAFE is set to a number that is not
 * 0, at both ends. A queue pair cannot be handed to a child, so connections are made over TCP, and
 * become RDMA in the process that uses them first.
 *
 * The accepting end then listens on the RDMA port of the same number, sends four zero bytes over
 * TCP, and accepts one connection; the other end waits for the zeros, and connects. Until then a
 * descriptor is plain TCP, and it stays so if the other end is not in fork mode.
 */
#ifndef PRELOAD_FORK_H
#define PRELOAD_FORK_H

#include <stdbool.h>

#include "lib/rsocket/preload/map.h"

/** fork_mode() - is it on? */
bool fork_mode(void);

/**
 * fork_note_socket(), fork_note_connect(), fork_note_accept() - record what a TCP descriptor is
 *
 * A socket that would be ours; one whose connect() has begun; one from accept() on @listener. A
 * descriptor that was not noted as a socket stays TCP.
 */
void fork_note_socket(int fd);
void fork_note_connect(int fd);
void fork_note_accept(int listener, int fd);

/** fork_forget() - the descriptor is closed, or something else now. */
void fork_forget(int fd);

/** fork_alias() - a duplicate stands for the same; the one used first becomes RDMA. */
void fork_alias(int from, int to);

/**
 * fork_settle() - the descriptor is about to be used: make it RDMA if possible
 *
 * Waits for the other end's first use, 10 s on the connecting end. errno is kept.
 */
void fork_settle(int fd);

/** fork_settled() - map_get() of a descriptor that is about to be used. */
static inline struct sock *fork_settled(int fd)
{
	fork_settle(fd);
	return map_get(fd);
}

#endif

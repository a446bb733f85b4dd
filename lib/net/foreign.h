/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses of another network namespace, read without entering it: through a netlink socket that
 * was created there and passed on. Its creator still has the socket, and can take responses away.
 * Those that are not the kernel's, or have not the request's random number, are dropped. So a
 * forged one is a response of the kernel to a request that the creator has sent with that number,
 * between two system calls of the reader.
 *
 * Only addresses of interfaces on top of an interface of this namespace count (macvlan, ipvlan,
 * VLAN): no user can create such an interface without privileges here, whereas any address can be
 * set in a namespace that the user has created.
 */
#ifndef LIB_NET_FOREIGN_H
#define LIB_NET_FOREIGN_H

#include <stdbool.h>

#include "mad/cm_msg.h"

struct net_foreign {
	struct mad_gid gid;   /* GID of the address on RoCE */
	unsigned int ifindex; /* in the other namespace */
};

/**
 * net_foreign_socket() - open a socket in the thread's namespace. Return: the socket, or -errno.
 */
int net_foreign_socket(void);

/** net_foreign_is_socket() - true if any descriptor is such a socket. */
bool net_foreign_is_socket(int fd);

/**
 * net_foreign_read() - read the addresses of the other namespace
 * @fd:   checked with net_foreign_is_socket(), non-blocking
 * @ret:  filled in
 * @room: size of @ret; further addresses are left out
 * @ret_datagrams: how many were read, also on failure: about 0.1 ms each
 *
 * Return: number of addresses; -EAGAIN if responses were taken away; other -errno.
 */
int net_foreign_read(int fd, struct net_foreign *ret, unsigned int room,
		     unsigned int *ret_datagrams);

#endif

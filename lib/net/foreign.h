/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The addresses of another network namespace, for who may not enter it: read through a netlink
 * socket that somebody has made there and passed on. Who did that has the socket, too, and can take
 * answers away; what he cannot do is write one, as answers that are not the kernel's are dropped.
 *
 * Only addresses of interfaces that lie on one of this namespace count (macvlan, ipvlan, VLAN): no
 * user can make such an interface without rights here, while he can have any address on an
 * interface of a namespace that he has made himself.
 */
#ifndef LIB_NET_FOREIGN_H
#define LIB_NET_FOREIGN_H

#include <stdbool.h>

#include "mad/cm_msg.h"

struct net_foreign {
	struct mad_gid gid;   /* that RoCE has for the address */
	unsigned int ifindex; /* in that namespace */
};

/** net_foreign_socket() - a socket of the calling thread's namespace. Return: it, or -errno. */
int net_foreign_socket(void);

/** net_foreign_is_socket() - is any descriptor, from anybody, such a socket? */
bool net_foreign_is_socket(int fd);

/**
 * net_foreign_read() - what addresses there are
 * @fd:   net_foreign_is_socket(), not blocking
 * @ret:  filled
 * @room: how many fit; others are left out
 *
 * Return: how many; -EAGAIN if answers are taken away; -errno.
 */
int net_foreign_read(int fd, struct net_foreign *ret, unsigned int room);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proof that a process may bind privileged ports: a UDP socket that it has bound to one, at
 * LOW_PORT_ADDR. The kernel checks CAP_NET_BIND_SERVICE while it binds, in the user namespace that
 * owns the socket's network namespace; so a proof names no process, which could be another one by
 * now. The library makes one; cmportd, which gets it with the question, only looks at it, and
 * needs no privilege for that.
 */
#ifndef LIB_NET_LOW_PORT_H
#define LIB_NET_LOW_PORT_H

#include <stdint.h>

/* No service has a socket there: one that is inherited, as by socket activation, proves nothing. */
#define LOW_PORT_ADDR 0x7f52434d /* 127.82.67.77 */

/**
 * low_port_prove() - have the kernel check what the calling thread may bind
 * @port: which it wants, in host byte order, not 0
 * @ret:  the proof, to be closed soon: no UDP socket can be bound to the wildcard address and its
 *        port meanwhile
 *
 * Return: 0; -EACCES if it may not; -errno.
 */
int low_port_prove(uint16_t port, int *ret);

/**
 * low_port_proved() - which port is a proof bound to?
 * @fd: any descriptor, from anybody, or -1
 *
 * It proves something only if the port is below net.ipv4.ip_unprivileged_port_start of the network
 * namespace that the socket was made in.
 *
 * Return: the port; 0 if it is no proof.
 */
uint16_t low_port_proved(int fd);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proof that a process may bind privileged ports: a UDP socket that it has bound to one, at
 * LOW_PORT_ADDR. On bind() the kernel checks CAP_NET_BIND_SERVICE in the user namespace that owns
 * the socket's network namespace. The proof refers to no process id, which could be reused. The
 * library creates it; cmportd gets it with the request and only inspects it, which needs no
 * privilege.
 */
#ifndef LIB_NET_LOW_PORT_H
#define LIB_NET_LOW_PORT_H

#include <stdint.h>

/* No service binds there, so an inherited socket, as from socket activation, proves nothing. */
#define LOW_PORT_ADDR 0x7f52434d /* 127.82.67.77 */

/**
 * low_port_prove() - let the kernel check the calling thread's privilege
 * @port: the requested port, in host byte order, not 0
 * @ret:  the proof; close it soon: meanwhile no UDP socket can bind the wildcard address and its
 *        port
 *
 * Return: 0; -EACCES without the privilege; other -errno.
 */
int low_port_prove(uint16_t port, int *ret);

/**
 * low_port_proved() - get the port of a proof
 * @fd: any descriptor, from any process, or -1
 *
 * It is a proof only if the port is below net.ipv4.ip_unprivileged_port_start of the socket's
 * network namespace.
 *
 * Return: the port; 0 if it is no such socket.
 */
uint16_t low_port_proved(int fd);

#endif

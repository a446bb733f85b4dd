/* SPDX-License-Identifier: BSD-2-Clause */
/* The device node of a port: opens it, writes MADs to it and reads them from it. */
#ifndef MAD_UMAD_NODE_H
#define MAD_UMAD_NODE_H

#include <stddef.h>
#include <stdint.h>

#include <infiniband/umad.h>

#include "mad/port.h"

/**
 * umad_open_node() - open a port, non-blocking and close-on-exec
 * @device:   name of the RDMA device
 * @port_num: from 1
 * @node:     from umad_find_node(); empty if the kernel does not know the device
 *
 * Return: a descriptor; -errno of open(); -ENXIO if no substitute for libibumad has the port.
 */
int umad_open_node(const char *device, uint8_t port_num, const char *node);

#define UMAD_QP1 1

/**
 * umad_write() - send a MAD
 * @qpn:     destination: UMAD_QP1, or a queue pair with the same Q_Key
 * @wait_ms: how long the kernel waits for a response, in milliseconds; 0: none is expected
 *
 * Return: 0; -ENODEV when the device is gone; other -errno of write().
 */
int umad_write(int fd, uint32_t agent, const struct mad_path *path, uint32_t qpn,
	       const uint8_t mad[MAD_BYTES], unsigned int wait_ms);

/**
 * umad_read() - receive a MAD, truncated if it is longer
 * @ret_head: the kernel's header
 *
 * Return: 0; -EAGAIN when there is none; -ENODEV when the device is gone; other -errno of read().
 */
int umad_read(int fd, struct ib_user_mad *ret_head, uint8_t ret_mad[MAD_BYTES]);

/* A buffer for a message of any length: struct ib_user_mad, and the MAD after it. */
struct umad_buffer {
	uint8_t *at; /* room bytes, of malloc(); NULL until it is needed */
	size_t room;
};

/**
 * umad_read_whole() - take a message that has arrived, of whatever length (RMPP)
 * @buffer:    grows if need be
 * @ret_bytes: of the MAD, which begins after its struct ib_user_mad
 *
 * Return: as umad_read(); -ENOMEM; -EMSGSIZE: it was lost, and the next one like it will fit.
 */
int umad_read_whole(int fd, struct umad_buffer *buffer, size_t *ret_bytes);

#endif

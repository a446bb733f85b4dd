/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Access to the subnet administrator from a port, through libibumad: a descriptor with an agent
 * that owns no method, which can always be registered. The kernel assembles long responses (RMPP).
 */
#ifndef MAD_UMAD_SA_H
#define MAD_UMAD_SA_H

#include <stddef.h>
#include <stdint.h>

#include "mad/port.h"
#include "mad/umad_node.h"

struct umad_sa {
	int fd; /* readable when umad_sa_receive() has a MAD */
	uint32_t agent;
	struct umad_buffer buffer;
};

/**
 * umad_sa_open() - open access to the subnet administrator
 * @device:   name of the RDMA device
 * @port_num: its port, from 1
 * @ret:      filled in on success, to be closed with umad_sa_close()
 *
 * Return: 0; -ENXIO without a umad node; -EACCES; other -errno.
 */
int umad_sa_open(const char *device, uint8_t port_num, struct umad_sa *ret);

/** umad_sa_close() - close and set fd to -1; no effect if it is -1. */
void umad_sa_close(struct umad_sa *sa);

/**
 * umad_sa_send() - send a request; never blocks
 * @path:    to the administrator
 * @wait_ms: how long the kernel accepts a response, in milliseconds
 *
 * The kernel overwrites the high half of the transaction id; it is arbitrary in responses.
 *
 * Return: 0 or -errno.
 */
int umad_sa_send(struct umad_sa *sa, const struct mad_path *path, const uint8_t mad[MAD_BYTES],
		 unsigned int wait_ms);

/**
 * umad_sa_receive() - receive one response; never blocks
 * @ret_mad:   valid until the next call; an assembled message if it came in segments
 * @ret_bytes: its length
 *
 * Return: 0; -EAGAIN when there is none; -ENOMSG if what came is no response; -ENODEV when
 * the device is gone; other -errno.
 */
int umad_sa_receive(struct umad_sa *sa, const uint8_t **ret_mad, size_t *ret_bytes);

#endif

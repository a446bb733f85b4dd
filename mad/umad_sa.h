/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A port's way to the subnet administrator, behind libibumad: a descriptor with an agent that owns
 * no method, which is always to be had.
 */
#ifndef MAD_UMAD_SA_H
#define MAD_UMAD_SA_H

#include <stddef.h>
#include <stdint.h>

#include "mad/port.h"

struct umad_sa {
	int fd; /* readable when umad_sa_receive() has something */
	uint32_t agent;
};

/**
 * umad_sa_open() - get a way to the subnet administrator
 * @device:   name of the RDMA device
 * @port_num: its port, from 1
 * @ret:      to be given back with umad_sa_close(), unless it fails
 *
 * Return: 0; -ENXIO without a umad node; -EACCES; other -errno.
 */
int umad_sa_open(const char *device, uint8_t port_num, struct umad_sa *ret);

/** umad_sa_close() - harmless if it is not open: fd is -1 then, and afterwards. */
void umad_sa_close(struct umad_sa *sa);

/**
 * umad_sa_send() - put a question on the wire; never blocks
 * @path:    to the administrator
 * @wait_ms: how long the kernel lets an answer through
 *
 * The high half of the transaction id belongs to the kernel, and is as good as random in answers.
 *
 * Return: 0 or -errno.
 */
int umad_sa_send(struct umad_sa *sa, const struct mad_path *path, const uint8_t mad[MAD_BYTES],
		 unsigned int wait_ms);

/**
 * umad_sa_receive() - take one answer that has arrived; never blocks
 *
 * Return: 0; -EAGAIN when there is none; -ENODEV when the device is gone; other -errno.
 */
int umad_sa_receive(struct umad_sa *sa, uint8_t mad[MAD_BYTES]);

#endif

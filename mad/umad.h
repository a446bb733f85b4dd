/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port behind libibumad: one receive descriptor that owns the CM class, and send-only
 * descriptors with method-less agents, so that a send never holds up reception.
 */
#ifndef MAD_UMAD_H
#define MAD_UMAD_H

#include <stddef.h>
#include <stdint.h>

#include "mad/port.h"

/* The owner of a port that keeps us from it, for the message to the user. */
struct umad_owner {
	char what[128];	  /* "kernel module ib_cm (loaded by rdma_cm)", "process 4711 (rping)" */
	char remedy[128]; /* the command that frees the port */
};

/**
 * umad_port_open() - open a port and register for the CM class
 * @device:   name of the RDMA device: "rxe0"
 * @port_num: its port, from 1
 * @ret:      the port, to be released with mad_port_close()
 * @ret_who:  filled in on failure: the obstacle and the remedy
 *
 * Return: 0, or
 *   -ENXIO      the port has no umad device node: the ib_umad module is not loaded
 *   -EACCES     no permission to open the node
 *   -EBUSY      the kernel's connection manager has the class: ib_cm is loaded
 *   -EADDRINUSE another process has the class
 *   -ENOMEM, -EMFILE, -ENFILE and so on.
 */
int umad_port_open(const char *device, uint8_t port_num, struct mad_port **ret,
		   struct umad_owner *ret_who);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The alternate path that a REQ may name, on InfiniBand: where a queue pair migrates to when the
 * primary path fails. Only a passive side has one, since no call of the API can name it. Called by
 * listen.c and qp_attr.c, with the engine's lock.
 */
#ifndef LIB_PATH_ALTERNATE_H
#define LIB_PATH_ALTERNATE_H

#include "lib/id/id.h"

/**
 * alternate_take() - find out what a request's alternate path means here, IBTA vol. 1, 12.7.20
 * @port: where the request came in
 * @req:  a REQ, in host byte order
 * @path: that of the request, its P_Key known; .alternate is filled if the REQ names one
 *
 * Return: 0, also if there is none; -EINVAL: no port of this device has that GID; -ENOENT: that
 * port is not in the partition.
 */
int alternate_take(const struct port *port, const struct cm_req *req, struct id_path *path);

/**
 * alternate_fill() - what a queue pair is to know of it, on its way to RTR
 * @mask: enum ibv_qp_attr_mask is added to; nothing without an alternate path
 */
void alternate_fill(const struct id_path *path, struct ibv_qp_attr *attr, int *mask);

/** alternate_arm() - the same on its way to RTS: it may migrate from then on. */
void alternate_arm(const struct id_path *path, struct ibv_qp_attr *attr, int *mask);

#endif

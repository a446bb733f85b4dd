/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The path record of a RoCE connection: made up from the route, since there is no subnet manager.
 */
#ifndef LIB_PATH_ROCE_H
#define LIB_PATH_ROCE_H

#include <infiniband/sa.h>

#include "lib/id/id.h"

/**
 * roce_make_path() - fill in the parts of an id's path that follow from route and options
 *
 * Return: 0, -ENODEV if the interface is gone, -EINVAL if its MTU is too small for RDMA.
 */
int roce_make_path(struct id *id);

/**
 * roce_take_path() - take an id's path from the program
 * @given: as an SA says it, network byte order
 *
 * Nobody can tell whether it leads to the peer; where the packets leave does not change.
 */
void roce_take_path(struct id *id, const struct ibv_path_record *given);

/** roce_path_record() - the path as the program sees it in id->route.path_rec. */
void roce_path_record(const struct id *id, struct ibv_sa_path_rec *ret);

#endif

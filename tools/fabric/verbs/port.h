/* SPDX-License-Identifier: BSD-2-Clause */
/* Queries of the device and its ports, behind the tables of verbs.h. */
#ifndef FABRIC_PORT_H
#define FABRIC_PORT_H

#include <infiniband/verbs.h>

/* Called by perftest, though no header declares it: the GID types of sysfs. */
enum fab_gid_type_sysfs {
	FAB_GID_TYPE_SYSFS_IB_ROCE_V1,
	FAB_GID_TYPE_SYSFS_ROCE_V2,
};

/** ibv_query_gid_type() - the type of a GID table entry. Return: 0, or -1 with errno. */
int ibv_query_gid_type(struct ibv_context *verbs, uint8_t port_num, unsigned int index,
		       enum fab_gid_type_sysfs *type);

/** port_query() - struct verbs_context.query_port: sets the members that the program knows */
int port_query(struct ibv_context *verbs, uint8_t port_num, struct ibv_port_attr *ret,
	       size_t bytes);

/** device_query_clock() - ibv_query_rt_values_ex(): the clock of completions' timestamps. */
int device_query_clock(struct ibv_context *verbs, struct ibv_values_ex *ret);

/** device_query_ex() - struct verbs_context.query_device_ex */
int device_query_ex(struct ibv_context *verbs, const struct ibv_query_device_ex_input *input,
		    struct ibv_device_attr_ex *ret, size_t bytes);

#endif

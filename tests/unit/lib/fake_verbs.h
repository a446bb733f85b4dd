/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device that exists in memory only, and the list of a host's devices: the verbs that the library
 * calls are defined here, in place of libibverbs'. The device counts what is alive, remembers what
 * it was asked for, and fails when it is told to. At first a host has no device.
 */
#ifndef TESTS_UNIT_LIB_FAKE_VERBS_H
#define TESTS_UNIT_LIB_FAKE_VERBS_H

#include <infiniband/verbs.h>

#include "lib/id/id.h"

#define FAKE_ERROR     ENOSPC /* of the verb that fails; nothing else gives it */
#define FAKE_MOVES_MAX 8
#define FAKE_PORTS     2
#define FAKE_PKEYS     3
#define FAKE_GIDS      2
#define FAKE_READS     16 /* RDMA READs at a time that a device can do */

struct fake_verbs {
	struct ibv_device *listed; /* what the kernel has: a row of devices */
	int n_listed;
	uint8_t n_ports; /* of each device; 0 stands for 1 */
	struct ibv_port_attr port[FAKE_PORTS];
	struct ibv_gid_entry gid[FAKE_GIDS]; /* of each device */
	int n_gids;
	uint16_t pkey[FAKE_PKEYS]; /* of each port, host byte order */

	struct ibv_device device_node; /* the device as it is listed, if .listed is its address */
	struct verbs_context verbs;
	struct device device;
	struct ibv_pd pd; /* the default one */

	int n_calls; /* of verbs that can fail */
	int fail_at; /* which of them fails, from 1; 0: none */

	/* alive */
	int n_channels;
	int n_cqs;
	int n_qps;
	int n_srqs;
	int n_xrcds;

	struct ibv_qp_init_attr_ex qp_asked;
	struct ibv_srq_init_attr_ex srq_asked;
	int n_moves;
	struct ibv_qp_attr move[FAKE_MOVES_MAX];
	int mask[FAKE_MOVES_MAX];

	bool knows_ece;
	struct ibv_ece offer; /* what the driver says of itself */
	struct ibv_ece told;  /* what it was told last */
	int n_told;
};

extern struct fake_verbs fake;

/** fake_begin() - a device with nothing made on it; fake_end() frees what it keeps. */
void fake_begin(void);
void fake_end(void);

/**
 * fake_id() - an id that was shown the fake device
 * @qp_type: as rdma_create_ep() would have set it
 *
 * Return: the id, for fake_id_free().
 */
struct id *fake_id(enum ibv_qp_type qp_type);
void fake_id_free(struct id *id);

/** fake_n_alive() - how many objects are there; the domains that a device keeps do not count. */
int fake_n_alive(void);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by tests of paths: a device with two ports of InfiniBand, of which the second has a GID
 * and four LIDs.
 */
#ifndef TESTS_UNIT_LIB_PATH_RIG_H
#define TESTS_UNIT_LIB_PATH_RIG_H

#include <string.h>

#include "lib/path/path.h"
#include "tests/unit/lib/fake_id.h"
#include "tests/unit/lib/fake_net.h"

#define PKEY	   0x8005
#define ALT_LMC	   2
#define ALT_GID_AT 3

static struct port port = { .port_num = 1, .is_infiniband = true };

static const struct mad_gid peer_gid = { { 0xfe, 0x80, [8] = 0x00, 0x02, 0xc9, 0x03, 0x00, 0x1a,
					   0x2b, 0x3d } };
static const struct mad_gid own_gid = { { 0xfe, 0x80, [15] = 2 } };

static void set_up(void)
{
	static const union addr own = { .in4.sin_family = AF_INET };

	fake_begin();
	fake_net_begin(&own);
	for (int i = 0; i < FAKE_PORTS; i++)
		fake.port[i] = (struct ibv_port_attr){ .link_layer = IBV_LINK_LAYER_INFINIBAND,
						       .state = IBV_PORT_ACTIVE,
						       .gid_tbl_len = 1,
						       .pkey_tbl_len = 2,
						       .lmc = i ? ALT_LMC : 0 };
	fake.pkey[0] = 0xffff;
	fake.pkey[1] = PKEY;
	fake.n_gids = 1;
	fake.gid[0] = (struct ibv_gid_entry){ .gid_index = ALT_GID_AT, .port_num = 2 };
	memcpy(&fake.gid[0].gid, &own_gid, sizeof(own_gid));
	fake.n_ports = FAKE_PORTS;
	port.device = fake_device_list();
}

static struct path path_of_type(enum ibv_gid_type type)
{
	struct path path = {
		.gid = { .verbs = &fake.verbs.context,
			 .port_num = 1,
			 .gid_index = 2,
			 .type = type },
		.port = &port,
		.route.hop_limit = 64,
		.dgid = peer_gid,
	};

	return path;
}

#endif

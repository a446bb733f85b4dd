/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Path operations that differ between RoCE and InfiniBand: a table of functions for each. The
 * functions of the same names in path.h state the contracts.
 */
#ifndef LIB_PATH_OPS_H
#define LIB_PATH_OPS_H

#include <string.h>

#include "lib/path/path.h"

struct path_ops {
	bool is_native;
	void (*prepare)(struct port *port);   /* as path_prepare(); NULL: only the GIDs */
	void (*ask)(const struct path *path); /* as path_ask_port(); NULL: nothing */
	int (*set_peer)(struct path *path, const union addr *peer);
	int (*complete)(struct path *path, const struct path_query *query,
			struct sa_msg *ret_question);
	/* LIDs of a record; NULL if there are none. */
	void (*take_lids)(struct path *path, uint16_t slid, uint16_t dlid);
	/*
	 * Called when path_of_request() has read the message; .gid and what depends on it is not
	 * set.
	 */
	int (*read)(struct path *path, const struct cm_conn *conn, const struct cm_msg *msg);
	int (*find_return_route)(struct path *path, union addr *us, union addr *peer);
	/* As read(); NULL if there are no alternate paths. */
	int (*read_alternate)(struct path *path, const struct path *primary,
			      const struct cm_req_path *req);
	int (*check_pkey)(const struct path *path);
	int (*follow)(struct gid_entry *gid); /* NULL: entries keep their index */
	void (*to_mad)(const struct path *path, struct mad_path *ret);
	void (*to_ah)(const struct path *path, struct ibv_ah_attr *ret);
	void (*fill_ib_addr)(const struct path *path, struct rdma_ib_addr *io);
	bool (*revalidate)(const struct path *path,
			   struct portd_record *ret); /* NULL: nothing to revalidate */
};

extern const struct path_ops path_roce;
extern const struct path_ops path_infiniband;

/** path_grh() - the global route header of an address vector */
static inline struct ibv_global_route path_grh(const struct path *path, uint8_t hop_limit)
{
	struct ibv_global_route grh = {
		.flow_label = path->flow_label,
		.sgid_index = (uint8_t)path->gid.gid_index,
		.hop_limit = hop_limit,
		.traffic_class = path->traffic_class,
	};

	memcpy(&grh.dgid, &path->dgid, sizeof(grh.dgid));
	return grh;
}

/** path_knows_peer() - true if the peer's GID is known */
static inline bool path_knows_peer(const struct path *path)
{
	static const struct mad_gid none;

	return memcmp(&path->dgid, &none, sizeof(none)) != 0;
}

#endif

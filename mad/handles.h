/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A cache of address handles by path. A posted send may still use a handle that was replaced, so
 * that handle is destroyed only when the owner reports that no send is outstanding.
 *
 * The caller serialises all calls.
 */
#ifndef MAD_HANDLES_H
#define MAD_HANDLES_H

#include <infiniband/verbs.h>

#include "base/hash.h"
#include "base/list.h"
#include "base/slab.h"
#include "mad/inbox.h"

#define HANDLES_MAX 16384 /* the least recently used one is evicted */
#define RETIRED_MAX 1024

struct handles {
	struct ibv_pd *pd;
	struct inbox *inbox;
	uint8_t port_num;
	unsigned int epoch; /* handles of an earlier epoch are replaced */
	struct hash by_path;
	struct slab slab;
	struct list used;    /* least recently used first */
	struct list retired; /* replaced, not yet destroyed */
	unsigned int n_used;
	unsigned int n_retired;
};

/** handles_init() - initialise an empty cache. Return: 0; -ENOMEM, handles_fini() is allowed. */
int handles_init(struct handles *handles, struct ibv_pd *pd, uint8_t port_num, struct inbox *inbox);

/** handles_fini() - destroy all; no send may be outstanding. A zeroed cache is allowed. */
void handles_fini(struct handles *handles);

/** handles_find() - use the cached handle for @path. Return: the handle, or NULL. */
struct ibv_ah *handles_find(struct handles *handles, const struct mad_path *path);

/**
 * handles_make() - get the handle for @path, creating it if needed
 *
 * Return: 0; -EAGAIN if answers could not reach @inbox, or too many handles are retired; other
 * -errno.
 */
int handles_make(struct handles *handles, const struct mad_path *path, struct ibv_ah **ret);

/** handles_forget() - link addresses or routes have changed: replace all handles on next use */
void handles_forget(struct handles *handles);

/** handles_drain() - no send is outstanding: destroy the replaced handles */
void handles_drain(struct handles *handles);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address handles, kept for the paths that messages take. One that is replaced may still be in use
 * by a posted send, so it is destroyed only when its owner says that nothing is under way any more.
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

#define HANDLES_MAX 16384 /* the one that was used least recently goes */
#define RETIRED_MAX 1024

struct handles {
	struct ibv_pd *pd;
	struct inbox *inbox;
	uint8_t port_num;
	unsigned int epoch; /* handles of an earlier one are made anew */
	struct hash by_path;
	struct slab slab;
	struct list used;    /* least recently first */
	struct list retired; /* replaced, and not yet destroyed */
	unsigned int n_used;
	unsigned int n_retired;
};

/** handles_init() - none. Return: 0 or -ENOMEM, and then handles_fini() is allowed. */
int handles_init(struct handles *handles, struct ibv_pd *pd, uint8_t port_num, struct inbox *inbox);

/** handles_fini() - destroy all; nothing is under way. Zeroed is allowed. */
void handles_fini(struct handles *handles);

/** handles_find() - Return: the handle for @path if it is there; else NULL. */
struct ibv_ah *handles_find(struct handles *handles, const struct mad_path *path);

/**
 * handles_make() - the handle for @path, made if it is not there
 *
 * Return: 0; -EAGAIN if answers could not come to @inbox, or too many are retired; -errno.
 */
int handles_make(struct handles *handles, const struct mad_path *path, struct ibv_ah **ret);

/** handles_forget() - link addresses or routes have changed: make all anew */
void handles_forget(struct handles *handles);

/** handles_drain() - nothing is under way: destroy those that were replaced */
void handles_drain(struct handles *handles);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which comm id comes next. A process that has the CM to itself goes through all 32 bits; one that
 * shares the host's CM with others is lent blocks of them, so that no two have the same. Either
 * way an id comes back as late as possible, and 0 is none: it stands for "not known yet".
 */
#ifndef CM_IDS_H
#define CM_IDS_H

#include <stdint.h>

#define CM_ID_BLOCK	 UINT32_C(65536) /* size of a lent block; it begins at a multiple of it */
#define CM_ID_BLOCKS_MAX 64

struct cm_id_block {
	uint32_t first;
	uint32_t start; /* where it begins to count, random */
	uint32_t step;	/* how far it has got since */
};

struct cm_ids {
	uint32_t next; /* while no block is lent: counts up from 0 */
	uint32_t mask; /* random: XORed in, so that a restart does not repeat ids */
	unsigned int n_blocks;
	unsigned int current;
	uint32_t fresh; /* ids of blocks that were never handed out; from current on */
	struct cm_id_block block[CM_ID_BLOCKS_MAX];
};

/** cm_ids_init() - the whole range; @mask is random. */
void cm_ids_init(struct cm_ids *ids, uint32_t mask);

/** cm_ids_lend() - as cm_core_lend_ids(), core.h */
int cm_ids_lend(struct cm_ids *ids, uint32_t first, uint32_t count);

/** cm_ids_left() - as cm_core_ids_left() */
unsigned int cm_ids_left(const struct cm_ids *ids);

/** cm_ids_count() - after how many calls of cm_ids_next() the same ids come again. */
uint64_t cm_ids_count(const struct cm_ids *ids);

/** cm_ids_next() - the next one; it may be 0 or in use: ask again. */
uint32_t cm_ids_next(struct cm_ids *ids);

#endif

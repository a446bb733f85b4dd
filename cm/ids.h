/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allocation of comm ids. A process that has the CM to itself uses all 32 bits; processes that
 * share the host's CM are lent disjoint blocks. Either way an id is reused as late as possible. 0
 * is not an id: it stands for "not known yet".
 */
#ifndef CM_IDS_H
#define CM_IDS_H

#include <stdint.h>

#define CM_ID_BLOCK	 UINT32_C(65536) /* size and alignment of a lent block */
#define CM_ID_BLOCKS_MAX 8		 /* an id is reused after 524,288 others */

struct cm_id_block {
	uint32_t first;
	uint32_t start; /* random offset of the first id */
	uint32_t step;	/* ids handed out in this pass */
};

struct cm_ids {
	uint32_t next; /* while no block is lent; counts up from 0 */
	uint32_t mask; /* random; XORed in, so that a restarted process does not reuse ids */
	unsigned int n_blocks;
	unsigned int current;
	uint32_t fresh; /* ids in the blocks from current on that were never handed out */
	struct cm_id_block block[CM_ID_BLOCKS_MAX];
};

/** cm_ids_init() - initialise with the whole range; @mask is random. */
void cm_ids_init(struct cm_ids *ids, uint32_t mask);

/** cm_ids_lend() - as cm_core_lend_ids(), core.h */
int cm_ids_lend(struct cm_ids *ids, uint32_t first, uint32_t count);

/** cm_ids_left() - as cm_core_ids_left() */
unsigned int cm_ids_left(const struct cm_ids *ids);

/** cm_ids_count() - the period of cm_ids_next(): number of calls after which ids recur. */
uint64_t cm_ids_count(const struct cm_ids *ids);

/** cm_ids_next() - the next candidate; it may be 0 or in use: call again then. */
uint32_t cm_ids_next(struct cm_ids *ids);

#endif

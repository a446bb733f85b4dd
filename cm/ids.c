/* SPDX-License-Identifier: BSD-2-Clause */
/* Allocation of comm ids: see ids.h. */
#include "cm/ids.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

void cm_ids_init(struct cm_ids *ids, uint32_t mask)
{
	*ids = (struct cm_ids){ .mask = mask };
}

static bool is_lent(const struct cm_ids *ids, uint32_t first)
{
	unsigned int i;

	for (i = 0; i < ids->n_blocks; i++)
		if (ids->block[i].first == first)
			return true;
	return false;
}

/* Index behind the blocks that have unused ids left, and before the used-up ones. */
static unsigned int index_for_unused_block(const struct cm_ids *ids)
{
	return ids->current + (ids->fresh + CM_ID_BLOCK - 1) / CM_ID_BLOCK;
}

int cm_ids_lend(struct cm_ids *ids, uint32_t first, uint32_t count)
{
	unsigned int at = index_for_unused_block(ids);

	if (count != CM_ID_BLOCK || first % CM_ID_BLOCK || is_lent(ids, first))
		return -EINVAL;
	if (ids->n_blocks >= CM_ID_BLOCKS_MAX)
		return -ENOSPC;
	memmove(&ids->block[at + 1], &ids->block[at],
		(ids->n_blocks - at) * sizeof(struct cm_id_block));
	/* The odd multiplier makes consecutive blocks start at different places. */
	ids->block[at] = (struct cm_id_block){
		.first = first,
		.start = ((first >> 16) * UINT32_C(0x9e3779b1) ^ ids->mask) >> 16,
	};
	ids->n_blocks++;
	ids->fresh += CM_ID_BLOCK;
	return 0;
}

unsigned int cm_ids_left(const struct cm_ids *ids)
{
	if (ids->n_blocks == CM_ID_BLOCKS_MAX)
		return UINT32_MAX;
	return ids->n_blocks ? ids->fresh : UINT32_MAX - ids->next;
}

uint64_t cm_ids_count(const struct cm_ids *ids)
{
	return ids->n_blocks ? (uint64_t)ids->n_blocks * CM_ID_BLOCK : UINT64_C(1) << 32;
}

static uint32_t next_id_of_blocks(struct cm_ids *ids)
{
	struct cm_id_block *block = &ids->block[ids->current];
	uint32_t id = block->first + (block->start + block->step) % CM_ID_BLOCK;

	if (ids->fresh)
		ids->fresh--;
	if (++block->step == CM_ID_BLOCK) {
		block->step = 0;
		ids->current = (ids->current + 1) % ids->n_blocks;
	}
	return id;
}

uint32_t cm_ids_next(struct cm_ids *ids)
{
	return ids->n_blocks ? next_id_of_blocks(ids) : ids->next++ ^ ids->mask;
}

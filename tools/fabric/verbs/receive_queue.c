/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queues of receives: see receive_queue.h.
 */
#include "tools/fabric/verbs/receive_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void receive_queue_init(struct fab_receive_queue *queue, uint32_t n_max, uint32_t max_sge)
{
	memset(queue, 0, sizeof(*queue));
	queue->n_max = n_max;
	queue->max_sge = max_sge;
	queue->stride = sizeof(struct fab_receive) + max_sge * sizeof(struct ibv_sge);
}

void receive_queue_reset(struct fab_receive_queue *queue)
{
	queue->head = 0;
	queue->count = 0;
}

void receive_queue_fini(struct fab_receive_queue *queue)
{
	free(queue->slot);
	queue->slot = NULL;
}

static struct fab_receive *slot_at(struct fab_receive_queue *queue, uint32_t i)
{
	return (struct fab_receive *)(queue->slot +
				      queue->stride * ((queue->head + i) % queue->n_max));
}

struct fab_receive *receive_queue_first(struct fab_receive_queue *queue)
{
	return queue->count ? slot_at(queue, 0) : NULL;
}

void receive_queue_drop(struct fab_receive_queue *queue)
{
	queue->head = (queue->head + 1) % queue->n_max;
	queue->count--;
}

int receive_queue_resize(struct fab_receive_queue *queue, uint32_t n_max)
{
	char *slot = NULL;
	uint32_t i;

	if (n_max < queue->count)
		return EINVAL;
	if (queue->slot) {
		slot = calloc(n_max, queue->stride);
		if (!slot)
			return ENOMEM;
	}
	for (i = 0; i < queue->count; i++)
		memcpy(slot + i * queue->stride, slot_at(queue, i), queue->stride);
	free(queue->slot);
	queue->slot = slot;
	queue->n_max = n_max;
	queue->head = 0;
	return 0;
}

int receive_queue_append(struct fab_receive_queue *queue, const struct ibv_recv_wr *wr)
{
	struct fab_receive *slot;
	int i;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > queue->max_sge)
		return EINVAL;
	if (queue->count >= queue->n_max)
		return ENOMEM;
	if (!queue->slot)
		queue->slot = calloc(queue->n_max, queue->stride);
	if (!queue->slot)
		return ENOMEM;
	slot = slot_at(queue, queue->count);
	slot->wr_id = wr->wr_id;
	slot->n_sge = (uint32_t)wr->num_sge;
	slot->bytes = 0;
	for (i = 0; i < wr->num_sge; i++) {
		slot->sge[i] = wr->sg_list[i];
		slot->bytes += wr->sg_list[i].length;
	}
	queue->count++;
	return 0;
}

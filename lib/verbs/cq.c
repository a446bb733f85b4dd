/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues, created and destroyed with an id's queue pair: see cq.h. */
#include "lib/verbs/cq.h"

#include <errno.h>
#include <stddef.h>

#include "base/command.h"

/* Inline functions of rdma_verbs.h rely on cq_context and on one channel per queue. */
static int make_cq(struct rdma_cm_id *id, uint32_t entries, struct ibv_comp_channel **channel,
		   struct ibv_cq **cq)
{
	if (*cq || !entries)
		return 0;
	command_check();
	errno = 0;
	*channel = ibv_create_comp_channel(id->verbs);
	if (*channel)
		*cq = ibv_create_cq(id->verbs, (int)entries, id, *channel, 0);
	if (*cq)
		return 0;
	return errno ? -errno : -ENOMEM;
}

int cq_make(struct rdma_cm_id *id, uint32_t send_entries, uint32_t recv_entries)
{
	int err = make_cq(id, recv_entries, &id->recv_cq_channel, &id->recv_cq);

	return err ? err : make_cq(id, send_entries, &id->send_cq_channel, &id->send_cq);
}

void cq_drop(struct rdma_cm_id *id)
{
	command_check();
	if (id->recv_cq)
		ibv_destroy_cq(id->recv_cq);
	if (id->send_cq && id->send_cq != id->recv_cq)
		ibv_destroy_cq(id->send_cq);
	if (id->recv_cq_channel)
		ibv_destroy_comp_channel(id->recv_cq_channel);
	if (id->send_cq_channel && id->send_cq_channel != id->recv_cq_channel)
		ibv_destroy_comp_channel(id->send_cq_channel);
	id->recv_cq = NULL;
	id->recv_cq_channel = NULL;
	id->send_cq = NULL;
	id->send_cq_channel = NULL;
}

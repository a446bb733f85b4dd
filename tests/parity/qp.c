/* SPDX-License-Identifier: BSD-2-Clause */
/* Parity: queue pairs, completion queues and receive queues made through an id. */
#include <rdma/rdma_verbs.h>

#include "steps.h"

static struct ibv_qp_init_attr small_attr(void)
{
	return (struct ibv_qp_init_attr){
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 3, .max_recv_wr = 5, .max_send_sge = 1, .max_recv_sge = 1},
	};
}

static struct rdma_cm_id *bound_id(struct scene *s)
{
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);

	if (rdma_bind_addr(id, at(&s->self, 0)))
		give_up("rdma_bind_addr: %s", strerror(errno));
	return id;
}

static void show_written_back(const struct rdma_cm_id *id, const struct ibv_qp_init_attr *attr)
{
	SAY("  send_cq is the id's: %d recv_cq is the id's: %d", attr->send_cq == id->send_cq,
	    attr->recv_cq == id->recv_cq);
	SAY("  cap send_wr>=3: %d recv_wr>=5: %d sge>=1: %d", attr->cap.max_send_wr >= 3,
	    attr->cap.max_recv_wr >= 5, attr->cap.max_send_sge >= 1);
}

static void library_makes_completion_queues(struct scene *s)
{
	struct ibv_qp_init_attr attr = small_attr();
	struct rdma_cm_id *id = bound_id(s);
	struct ibv_pd *pd = id->pd;

	DO(rdma_create_qp(id, NULL, &attr));
	show_id(id);
	show_written_back(id, &attr);
	show_qp_state(id);
	SAY("  pd unchanged: %d qp's pd is the id's: %d qp_context is NULL: %d", id->pd == pd,
	    id->qp->pd == id->pd, id->qp->qp_context == NULL);
	SAY("  cq_context is the id: %d %d", id->send_cq->cq_context == id,
	    id->recv_cq->cq_context == id);
	SAY("  channels differ: %d cq sizes enough: %d %d",
	    id->send_cq_channel != id->recv_cq_channel, id->send_cq->cqe >= 3,
	    id->recv_cq->cqe >= 5);
	DO(rdma_create_qp(id, NULL, &attr));
	rdma_destroy_qp(id);
	show_id(id);
	DO(rdma_destroy_id(id));
}

static void caller_brings_completion_queues(struct scene *s)
{
	struct ibv_qp_init_attr attr = small_attr();
	struct rdma_cm_id *id = bound_id(s);
	struct ibv_cq *cq = ibv_create_cq(id->verbs, 16, NULL, NULL, 0);
	struct ibv_pd *pd = ibv_alloc_pd(id->verbs);

	attr.send_cq = attr.recv_cq = cq;
	DO(rdma_create_qp(id, pd, &attr));
	show_id(id);
	SAY("  pd is the caller's: %d cq is the caller's: %d", id->pd == pd, attr.send_cq == cq);
	rdma_destroy_qp(id);
	SAY("  pd stays: %d", id->pd == pd);
	DO(rdma_destroy_id(id));
	DO(ibv_destroy_cq(cq));
	DO(ibv_dealloc_pd(pd));
}

static void impossible_capacities_leave_nothing(struct scene *s)
{
	struct ibv_qp_init_attr attr = small_attr();
	struct rdma_cm_id *id = bound_id(s);

	attr.cap.max_send_sge = 100000;
	DO(rdma_create_qp(id, NULL, &attr));
	show_id(id);
	attr = small_attr();
	DO(rdma_create_qp(id, NULL, &attr));
	show_id(id);
	close_id(id);
}

static void datagram_queue_pair_is_ready_at_once(struct scene *s)
{
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_UDP);
	struct ibv_qp_init_attr attr = small_attr(), init;
	struct ibv_qp_attr now;

	if (rdma_bind_addr(id, at(&s->self, 0)))
		give_up("rdma_bind_addr: %s", strerror(errno));
	attr.qp_type = IBV_QPT_UD;
	DO(rdma_create_qp(id, NULL, &attr));
	show_qp_state(id);
	DO(ibv_query_qp(id->qp, &now, IBV_QP_QKEY | IBV_QP_PKEY_INDEX | IBV_QP_PORT, &init));
	show_qp_attr(&now, IBV_QP_QKEY | IBV_QP_PKEY_INDEX | IBV_QP_PORT);
	close_id(id);
}

static void shared_receive_queue_belongs_to_the_id(struct scene *s)
{
	struct ibv_srq_init_attr srq = {
		.attr = {.max_wr = 4, .max_sge = 1}
	};
	struct ibv_qp_init_attr attr = small_attr();
	struct rdma_cm_id *id = bound_id(s);

	DO(rdma_create_srq(id, NULL, &srq));
	show_id(id);
	DO(rdma_create_srq(id, NULL, &srq));
	DO(rdma_create_qp(id, NULL, &attr));
	show_id(id);
	SAY("  attr.srq is the id's: %d qp's srq is the id's: %d", attr.srq == id->srq,
	    id->qp && id->qp->srq == id->srq);
	rdma_destroy_qp(id);
	show_id(id);
	rdma_destroy_srq(id);
	show_id(id);
	DO(rdma_destroy_id(id));
}

static void extended_form_wants_its_own_device(struct scene *s)
{
	struct rdma_cm_id *id = bound_id(s);
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};

	DO(rdma_create_qp_ex(id, &attr));
	SAY("  comp_mask has PD: %d pd is the id's: %d", !!(attr.comp_mask & IBV_QP_INIT_ATTR_PD),
	    attr.pd == id->pd);
	show_id(id);
	close_id(id);
}

const struct scenario qp_scenarios[] = {
	LOCAL("qp-library-queues", library_makes_completion_queues, 0,
	      "completion queues made by the library, a second queue pair, what destroy leaves"),
	LOCAL("qp-caller-queues", caller_brings_completion_queues, 0,
	      "protection domain and completion queues of the caller"),
	LOCAL("qp-impossible", impossible_capacities_leave_nothing, 0,
	      "capacities beyond the device"),
	LOCAL("qp-datagram", datagram_queue_pair_is_ready_at_once, 0,
	      "state and Q_Key of a datagram queue pair"),
	LOCAL("qp-srq", shared_receive_queue_belongs_to_the_id, 0,
	      "a shared receive queue made through the id"),
	LOCAL("qp-extended", extended_form_wants_its_own_device, 0, "rdma_create_qp_ex"),
	LAST_SCENARIO,
};

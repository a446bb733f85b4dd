/* SPDX-License-Identifier: BSD-2-Clause */
/* Parity: shared receive queues made through an id. */
#include <rdma/rdma_verbs.h>

#include "steps.h"

static struct ibv_qp_init_attr small_attr(void)
{
	return (struct ibv_qp_init_attr){
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 3, .max_recv_wr = 5, .max_send_sge = 1, .max_recv_sge = 1 },
	};
}

static struct rdma_cm_id *bound_id(struct scene *s)
{
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);

	if (rdma_bind_addr(id, at(&s->self, 0)))
		give_up("rdma_bind_addr: %s", strerror(errno));
	return id;
}

static void shared_receive_queue_belongs_to_the_id(struct scene *s)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 4, .max_sge = 1 } };
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

static void queue_is_destroyed_before_its_queue_pair(struct scene *s)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_qp_init_attr attr = small_attr();
	struct rdma_cm_id *id = bound_id(s);

	DO(rdma_create_srq(id, NULL, &srq));
	DO(rdma_create_qp(id, NULL, &attr));
	rdma_destroy_srq(id);
	show_id(id);
	rdma_destroy_qp(id);
	show_id(id);
	DO(rdma_destroy_id(id));
}

static void show_limits(const struct ibv_srq_attr *attr)
{
	SAY("  max_wr %u max_sge %u srq_limit %u", attr->max_wr, attr->max_sge, attr->srq_limit);
}

static void impossible_queue_leaves_no_object(struct scene *s)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 1u << 30, .max_sge = 1 } };
	struct ibv_qp_init_attr attr = small_attr();
	struct rdma_cm_id *id = bound_id(s);

	DO(rdma_create_srq(id, NULL, &srq));
	show_limits(&srq.attr);
	show_id(id);
	srq.attr.max_wr = 4;
	DO(rdma_create_srq(id, NULL, &srq));
	show_limits(&srq.attr);
	attr.cap.max_send_sge = 100000;
	DO(rdma_create_qp(id, NULL, &attr));
	show_id(id);
	SAY("  attr.srq is the id's: %d", attr.srq == id->srq);
	rdma_destroy_srq(id);
	DO(rdma_destroy_id(id));
}

static struct ibv_srq_init_attr_ex small_ex(uint32_t comp_mask, enum ibv_srq_type type,
					    struct ibv_pd *pd)
{
	return (struct ibv_srq_init_attr_ex){
		.attr = { .max_wr = 4, .max_sge = 1 },
		.comp_mask = comp_mask,
		.srq_type = type,
		.pd = pd,
	};
}

static void try_extended(struct scene *s, struct ibv_srq_init_attr_ex attr)
{
	struct rdma_cm_id *id = bound_id(s);
	struct ibv_pd *pd = id->pd;
	const struct ibv_pd *given = attr.pd;

	SAY("comp_mask %#x type %d", attr.comp_mask, attr.srq_type);
	DO(rdma_create_srq_ex(id, &attr));
	SAY("  after: comp_mask %#x pd is the id's: %d the caller's: %d; id's pd unchanged: %d",
	    attr.comp_mask, attr.pd == id->pd, attr.pd == given, id->pd == pd);
	show_limits(&attr.attr);
	show_id(id);
	if (id->srq)
		rdma_destroy_srq(id);
	show_id(id);
	DO(rdma_destroy_id(id));
}

static void extended_form_needs_a_type(struct scene *s)
{
	const uint32_t type = IBV_SRQ_INIT_ATTR_TYPE, with_pd = IBV_SRQ_INIT_ATTR_PD;
	struct rdma_cm_id *id = bound_id(s);
	struct ibv_pd *pd = ibv_alloc_pd(id->verbs);

	try_extended(s, small_ex(0, IBV_SRQT_BASIC, NULL));
	try_extended(s, small_ex(with_pd, IBV_SRQT_BASIC, pd));
	try_extended(s, small_ex(type, IBV_SRQT_BASIC, NULL));
	try_extended(s, small_ex(type | with_pd, IBV_SRQT_BASIC, NULL));
	try_extended(s, small_ex(type | with_pd, IBV_SRQT_BASIC, pd));
	try_extended(s, small_ex(type, IBV_SRQT_XRC, NULL));
	DO(ibv_dealloc_pd(pd));
	DO(rdma_destroy_id(id));
}

static void caller_brings_the_queue(struct scene *s)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_qp_init_attr attr = small_attr();
	struct rdma_cm_id *id = bound_id(s);
	struct ibv_srq *srq = ibv_create_srq(id->pd, &init);

	attr.srq = srq;
	DO(rdma_create_qp(id, NULL, &attr));
	show_id(id);
	SAY("  attr.srq is the caller's: %d the queue pair's: %d", attr.srq == srq,
	    id->qp && id->qp->srq == srq);
	close_id(id);
	DO(ibv_destroy_srq(srq));
}

/* The events of both sides have srq 1, although it was not set. */
static struct rdma_cm_id *with_queue(struct rdma_cm_id *id)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 4, .max_sge = 1 } };

	DO(rdma_create_srq(id, NULL, &srq));
	make_qp(id);
	return id;
}

static void close_with_queue(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	rdma_destroy_srq(id);
	DO(rdma_destroy_id(id));
}

static void connect_with_queue(struct scene *s)
{
	struct rdma_cm_id *id = with_queue(dial_ready(s, RDMA_PS_TCP));
	struct rdma_conn_param param = usual_param("shared");

	DO(rdma_connect(id, &param));
	take_event(s);
	show_qp_state(id);
	meet(s);
	close_with_queue(id);
}

static void accept_with_queue(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child;
	struct rdma_cm_event *event = wait_event(s->channel);
	struct rdma_conn_param param = usual_param("shared");

	child = with_queue(event->id);
	assign_id_name(child, "child");
	rdma_ack_cm_event(event);
	DO(rdma_accept(child, &param));
	take_event(s);
	meet(s);
	close_with_queue(child);
	close_id(listener);
}

const struct scenario srq_scenarios[] = {
	LOCAL("qp-srq", shared_receive_queue_belongs_to_the_id, 0,
	      "a shared receive queue made through the id"),
	LOCAL("srq-order", queue_is_destroyed_before_its_queue_pair, 0,
	      "the shared receive queue goes before its queue pair"),
	LOCAL("srq-impossible", impossible_queue_leaves_no_object, 0,
	      "capacities beyond the device; a queue pair that fails beside a queue"),
	LOCAL("srq-extended", extended_form_needs_a_type, 0, "rdma_create_srq_ex"),
	LOCAL("srq-caller", caller_brings_the_queue, 0, "a shared receive queue of the caller"),
	PAIR("srq-connect", connect_with_queue, accept_with_queue, 0,
	     "a connection between queue pairs with shared receive queues"),
	LAST_SCENARIO,
};

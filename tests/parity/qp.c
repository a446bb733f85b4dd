/* SPDX-License-Identifier: BSD-2-Clause */
/* Parity: queue pairs and completion queues made through an id. */
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

static void impossible_capacities_leave_no_objects(struct scene *s)
{
	struct ibv_qp_init_attr attr = small_attr();
	struct rdma_cm_id *id = bound_id(s);

	attr.cap.max_send_sge = 100000;
	DO(rdma_create_qp(id, NULL, &attr));
	SAY("  attr has a send_cq: %d recv_cq: %d", attr.send_cq != NULL, attr.recv_cq != NULL);
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

static void extended_form_requires_its_own_device(struct scene *s)
{
	struct rdma_cm_id *id = bound_id(s);
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	DO(rdma_create_qp_ex(id, &attr));
	SAY("  comp_mask has PD: %d pd is the id's: %d", !!(attr.comp_mask & IBV_QP_INIT_ATTR_PD),
	    attr.pd == id->pd);
	show_id(id);
	close_id(id);
}

static void show_capacities(const struct ibv_qp_cap *cap)
{
	SAY("  cap send_wr %u recv_wr %u send_sge %u recv_sge %u inline %u", cap->max_send_wr,
	    cap->max_recv_wr, cap->max_send_sge, cap->max_recv_sge, cap->max_inline_data);
}

static void capacities_are_written_back(struct scene *s)
{
	struct ibv_qp_init_attr attr = small_attr();
	struct ibv_qp_init_attr_ex ex = { .qp_type = IBV_QPT_RC, .cap = attr.cap };
	struct rdma_cm_id *id = bound_id(s);

	attr.cap.max_inline_data = 17;
	DO(rdma_create_qp(id, NULL, &attr));
	show_capacities(&attr.cap);
	rdma_destroy_qp(id);
	DO(rdma_create_qp_ex(id, &ex));
	show_capacities(&ex.cap);
	SAY("  attr.pd is the id's: %d send_cq: %d recv_cq: %d comp_mask %#x", ex.pd == id->pd,
	    ex.send_cq == id->send_cq, ex.recv_cq == id->recv_cq, ex.comp_mask);
	close_id(id);
}

static struct ibv_qp_init_attr_ex small_attr_ex(struct ibv_pd *pd)
{
	return (struct ibv_qp_init_attr_ex){
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
}

static void extended_form_takes_a_protection_domain(struct scene *s)
{
	struct rdma_cm_id *id = bound_id(s);
	struct ibv_pd *pd = ibv_alloc_pd(id->verbs);
	struct ibv_qp_init_attr_ex attr = small_attr_ex(pd);

	DO(rdma_create_qp_ex(id, &attr));
	SAY("  pd is the caller's: %d %d", id->pd == pd, id->qp->pd == pd);
	DO(rdma_create_qp_ex(id, &attr));
	rdma_destroy_qp(id);
	attr = small_attr_ex(NULL);
	DO(rdma_create_qp_ex(id, &attr));
	SAY("  pd is the one before: %d %d", id->pd == pd, attr.pd == pd);
	close_id(id);
	DO(ibv_dealloc_pd(pd));
}

static void protection_domain_of_another_context_is_refused(struct scene *s)
{
	struct rdma_cm_id *id = bound_id(s);
	struct ibv_context *verbs = ibv_open_device(id->verbs->device);
	struct ibv_pd *pd = ibv_alloc_pd(verbs), *mine = id->pd;
	struct ibv_qp_init_attr attr = small_attr();

	DO(rdma_create_qp(id, pd, &attr));
	SAY("  pd unchanged: %d attr has a send_cq: %d", id->pd == mine, attr.send_cq != NULL);
	show_id(id);
	close_id(id);
	DO(ibv_dealloc_pd(pd));
	DO(ibv_close_device(verbs));
}

static void show_queues(const struct rdma_cm_id *id, const struct ibv_cq *cq)
{
	SAY("  in the id: send_cq %d recv_cq %d channels %d %d", id->send_cq == cq,
	    id->recv_cq == cq, !!id->send_cq_channel, !!id->recv_cq_channel);
}

/* rsockets puts its own completion queue into the id. */
static void planted_queues_are_the_id_s(struct scene *s)
{
	struct ibv_qp_init_attr attr = small_attr();
	struct rdma_cm_id *id = bound_id(s);
	struct ibv_cq *cq = ibv_create_cq(id->verbs, 16, NULL, NULL, 0);
	struct ibv_cq *other = ibv_create_cq(id->verbs, 16, NULL, NULL, 0);

	id->send_cq = id->recv_cq = cq;
	attr.send_cq = other;
	DO(rdma_create_qp(id, NULL, &attr));
	show_queues(id, cq);
	attr = small_attr();
	attr.recv_cq = other;
	DO(rdma_create_qp(id, NULL, &attr));
	show_queues(id, cq);
	attr = small_attr();
	attr.recv_cq = cq;
	DO(rdma_create_qp(id, NULL, &attr));
	show_queues(id, cq);
	SAY("  attr: send_cq %d recv_cq %d", attr.send_cq == cq, attr.recv_cq == cq);
	rdma_destroy_qp(id);
	show_id(id);
	DO(rdma_destroy_id(id));
	DO(ibv_destroy_cq(other));
}

static void planted_queues_and_a_failure(struct scene *s)
{
	struct ibv_qp_init_attr attr = small_attr();
	struct rdma_cm_id *id = bound_id(s);
	struct ibv_cq *cq = ibv_create_cq(id->verbs, 16, NULL, NULL, 0);

	id->send_cq = id->recv_cq = cq;
	attr.cap.max_send_sge = 100000;
	DO(rdma_create_qp(id, NULL, &attr));
	show_queues(id, cq);
	DO(rdma_destroy_id(id));
}

static void try_type(struct scene *s, enum rdma_port_space ps, enum ibv_qp_type type)
{
	struct rdma_cm_id *id = open_id(s, "id", ps);
	struct ibv_qp_init_attr attr = small_attr();

	if (rdma_bind_addr(id, at(&s->self, 0)))
		give_up("rdma_bind_addr: %s", strerror(errno));
	attr.qp_type = type;
	SAY("port space %#x, type %d", ps, type);
	if (!DO(rdma_create_qp(id, NULL, &attr))) {
		show_qp_state(id);
		SAY("  type %d", id->qp->qp_type);
	}
	SAY("  attr has a send_cq: %d recv_cq: %d", attr.send_cq != NULL, attr.recv_cq != NULL);
	show_id(id);
	close_id(id);
}

static void types_do_not_fit_each_id(struct scene *s)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD,
						  IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV };
	size_t i;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		try_type(s, RDMA_PS_TCP, types[i]);
		try_type(s, RDMA_PS_UDP, types[i]);
	}
}

/* As rdma_create_ep() makes an XRC target; rxe has none. */
static void xrc_target(struct scene *s)
{
	struct rdma_cm_id *id = bound_id(s);
	struct ibv_qp_init_attr attr = small_attr();
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 4, .max_sge = 1 } };

	id->qp_type = attr.qp_type = IBV_QPT_XRC_RECV;
	DO(rdma_create_qp(id, NULL, &attr));
	SAY("  attr has a send_cq: %d recv_cq: %d", attr.send_cq != NULL, attr.recv_cq != NULL);
	show_id(id);
	DO(rdma_create_srq(id, NULL, &srq));
	show_id(id);
	close_id(id);
}

static void queue_pair_outlives_its_id(struct scene *s)
{
	struct ibv_qp_init_attr attr = small_attr();
	struct rdma_cm_id *id = bound_id(s);
	struct ibv_qp *qp;

	DO(rdma_create_qp(id, NULL, &attr));
	qp = id->qp;
	DO(rdma_destroy_id(id));
	DO(ibv_destroy_qp(qp));
	DO(ibv_destroy_cq(attr.send_cq));
	DO(ibv_destroy_cq(attr.recv_cq));
}

const struct scenario qp_scenarios[] = {
	LOCAL("qp-library-queues", library_makes_completion_queues, 0,
	      "completion queues made by the library, a second queue pair, what destroy leaves"),
	LOCAL("qp-caller-queues", caller_brings_completion_queues, 0,
	      "protection domain and completion queues of the caller"),
	LOCAL("qp-impossible", impossible_capacities_leave_no_objects, 0,
	      "capacities beyond the device"),
	LOCAL("qp-datagram", datagram_queue_pair_is_ready_at_once, 0,
	      "state and Q_Key of a datagram queue pair"),
	LOCAL("qp-extended", extended_form_requires_its_own_device, 0, "rdma_create_qp_ex"),
	LOCAL("qp-capacities", capacities_are_written_back, 0,
	      "what the caller's struct says after"),
	LOCAL("qp-extended-pd", extended_form_takes_a_protection_domain, 0,
	      "rdma_create_qp_ex with a protection domain of the caller, and then without"),
	LOCAL("qp-other-context", protection_domain_of_another_context_is_refused, 0,
	      "a protection domain of another context"),
	LOCAL("qp-planted-queues", planted_queues_are_the_id_s, 0,
	      "completion queues that the caller put into the id, and others"),
	LOCAL("qp-planted-failure", planted_queues_and_a_failure, 0,
	      "what becomes of the caller's completion queues in the id"),
	LOCAL("qp-types", types_do_not_fit_each_id, 0, "every type on ids of both kinds"),
	LOCAL("qp-xrc-target", xrc_target, 0,
	      "queue pair and shared receive queue of an XRC target"),
	LOCAL("qp-outlives", queue_pair_outlives_its_id, 0, "the id goes before its queue pair"),
	LAST_SCENARIO,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues made through an id: lib/verbs/srq.c, on a fake device. */
#include <errno.h>
#include <rdma/rdma_verbs.h>
#include <stdlib.h>

#include "tests/unit/lib/fake_id.h"
#include "tests/unit/test.h"

static struct id *id;
static struct rdma_cm_id *pub;

static void setup(void)
{
	fake_begin();
	id = fake_id(IBV_QPT_RC);
	pub = &id->pub;
}

static void teardown(void)
{
	fake_id_free(id);
	fake_end();
}

FIXTURE(setup, teardown);

static struct ibv_srq_init_attr small(void)
{
	return (struct ibv_srq_init_attr){ .attr = { .max_wr = 4, .max_sge = 1 } };
}

static struct ibv_srq_init_attr_ex small_ex(uint32_t comp_mask, enum ibv_srq_type type)
{
	return (struct ibv_srq_init_attr_ex){
		.attr = { .max_wr = 4, .max_sge = 1 },
		.comp_mask = comp_mask,
		.srq_type = type,
	};
}

static void create(struct ibv_srq_init_attr *attr)
{
	ck_assert_int_eq(rdma_create_srq(pub, NULL, attr), 0);
}

static void create_ex(struct ibv_srq_init_attr_ex *attr)
{
	ck_assert_int_eq(rdma_create_srq_ex(pub, attr), 0);
}

static void check_empty(void)
{
	ck_assert_int_eq(fake_n_alive(), 0);
	ck_assert_ptr_null(pub->srq);
	ck_assert_ptr_null(pub->recv_cq);
	ck_assert_ptr_null(pub->recv_cq_channel);
}

TEST(queue_is_the_id_s_and_needs_no_completion_queue)
{
	struct ibv_srq_init_attr attr = small();

	create(&attr);
	ck_assert_ptr_nonnull(pub->srq);
	ck_assert_ptr_eq(pub->srq->pd, &fake.pd);
	ck_assert_ptr_null(pub->recv_cq);
	rdma_destroy_srq(pub);
	check_empty();
}

TEST(limits_are_written_back)
{
	struct ibv_srq_init_attr attr = small();

	create(&attr);
	ck_assert_uint_gt(attr.attr.max_wr, 4);
	rdma_destroy_srq(pub);
}

TEST(extended_form_without_a_type_is_refused)
{
	struct ibv_srq_init_attr_ex attr = small_ex(IBV_SRQ_INIT_ATTR_PD, IBV_SRQT_BASIC);

	ck_assert_int_eq(rdma_create_srq_ex(pub, &attr), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(fake.n_calls, 0);
}

TEST(extended_form_returns_the_domain)
{
	struct ibv_srq_init_attr_ex attr = small_ex(IBV_SRQ_INIT_ATTR_TYPE, IBV_SRQT_BASIC);

	create_ex(&attr);
	ck_assert_ptr_eq(attr.pd, &fake.pd);
	ck_assert_uint_eq(attr.comp_mask, IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD);
	rdma_destroy_srq(pub);
}

TEST(domain_of_the_program_is_the_id_s_only_where_there_was_none)
{
	struct ibv_pd mine = { .context = pub->verbs };
	struct ibv_srq_init_attr attr = small();

	ck_assert_int_eq(rdma_create_srq(pub, &mine, &attr), 0);
	ck_assert_ptr_eq(pub->pd, &fake.pd);
	rdma_destroy_srq(pub);
	pub->pd = NULL;
	ck_assert_int_eq(rdma_create_srq(pub, &mine, &attr), 0);
	ck_assert_ptr_eq(pub->pd, &mine);
	rdma_destroy_srq(pub);
}

TEST(id_without_a_domain_is_refused)
{
	struct ibv_srq_init_attr attr = small();

	pub->pd = NULL;
	ck_assert_int_eq(rdma_create_srq(pub, NULL, &attr), -1);
	ck_assert_int_eq(errno, EINVAL);
}

/* A listening endpoint has a domain of the program before it has a device. */
TEST(domain_of_the_program_suffices_without_a_device)
{
	struct ibv_srq_init_attr attr = small();

	id->attached = NULL;
	pub->verbs = NULL;
	create(&attr);
	rdma_destroy_srq(pub);
}

TEST(xrc_queue_without_a_device_is_refused)
{
	struct ibv_srq_init_attr attr = small();

	id->attached = NULL;
	pub->verbs = NULL;
	pub->qp_type = IBV_QPT_XRC_RECV;
	ck_assert_int_eq(rdma_create_srq(pub, &fake.pd, &attr), -1);
	ck_assert_int_eq(errno, EINVAL);
}

TEST(xrc_queue_is_created_with_all_its_objects)
{
	struct ibv_srq_init_attr attr = small();

	pub->qp_type = IBV_QPT_XRC_RECV;
	create(&attr);
	ck_assert_int_eq(fake.srq_asked.srq_type, IBV_SRQT_XRC);
	ck_assert_ptr_eq(fake.srq_asked.xrcd, fake_device.xrcd);
	ck_assert_ptr_eq(fake.srq_asked.cq, pub->recv_cq);
	ck_assert_int_eq(pub->recv_cq->cqe, 4);
	ck_assert_ptr_eq(pub->recv_cq->cq_context, pub);
	ck_assert_ptr_null(pub->send_cq);
	rdma_destroy_srq(pub);
	check_empty();
}

TEST(xrc_queue_keeps_objects_of_the_program)
{
	struct ibv_xrcd xrcd;
	struct ibv_cq cq;
	struct ibv_srq_init_attr_ex attr =
		small_ex(IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
			 IBV_SRQT_XRC);

	attr.xrcd = &xrcd;
	attr.cq = &cq;
	create_ex(&attr);
	ck_assert_ptr_eq(fake.srq_asked.xrcd, &xrcd);
	ck_assert_ptr_eq(fake.srq_asked.cq, &cq);
	ck_assert_ptr_null(pub->recv_cq);
	rdma_destroy_srq(pub);
	check_empty();
}

static bool fail_verb(int number)
{
	struct ibv_srq_init_attr attr = small();
	int result;

	setup();
	pub->qp_type = IBV_QPT_XRC_RECV;
	fake.fail_at = number;
	result = rdma_create_srq(pub, NULL, &attr);
	if (result)
		ck_assert_int_eq(errno, FAKE_ERROR);
	else
		rdma_destroy_srq(pub);
	check_empty();
	teardown();
	return result != 0;
}

TEST(failed_verb_leaves_no_object)
{
	int number = 1;

	teardown();
	while (fail_verb(number))
		number++;
	ck_assert_int_eq(number, 5); /* XRC domain, channel, queue, shared receive queue */
	setup();
}

TEST(failure_beside_a_queue_pair_leaves_its_queues)
{
	struct ibv_qp_init_attr qp = { .qp_type = IBV_QPT_RC, .cap.max_recv_wr = 1 };
	struct ibv_srq_init_attr attr = small();

	ck_assert_int_eq(rdma_create_qp(pub, NULL, &qp), 0);
	fake.fail_at = fake.n_calls + 1;
	ck_assert_int_eq(rdma_create_srq(pub, NULL, &attr), -1);
	ck_assert_ptr_eq(pub->recv_cq, qp.recv_cq);
	rdma_destroy_qp(pub);
	check_empty();
}

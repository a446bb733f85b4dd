/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs made through an id, of every type: lib/verbs/qp.c, lib/verbs/cq.c, on a fake device.
 */
#include <errno.h>
#include <stdlib.h>

#include "lib/verbs/qp.h"
#include "tests/unit/lib/fake_id.h"
#include "tests/unit/test.h"

static struct id *id;
static struct rdma_cm_id *pub;

static void begin(enum ibv_qp_type type)
{
	fake_begin();
	fake_device.pd = &fake.pd;
	id = fake_id(type);
	pub = &id->pub;
}

static void setup(void)
{
	begin(IBV_QPT_RC);
}

static void teardown(void)
{
	fake_id_free(id);
	fake_end();
}

FIXTURE(setup, teardown);

static struct ibv_qp_init_attr small(enum ibv_qp_type type)
{
	return (struct ibv_qp_init_attr){
		.qp_type = type,
		.cap = { .max_send_wr = 3, .max_recv_wr = 5, .max_send_sge = 1, .max_recv_sge = 1 },
	};
}

static void create(struct ibv_qp_init_attr *attr)
{
	ck_assert_int_eq(rdma_create_qp(pub, NULL, attr), 0);
}

static void refuse(struct ibv_qp_init_attr *attr, struct ibv_pd *pd, int error)
{
	ck_assert_int_eq(rdma_create_qp(pub, pd, attr), -1);
	ck_assert_int_eq(errno, error);
}

/* --- a failing verb ------------------------------------------------------ */

static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND,
					  IBV_QPT_XRC_RECV };

static void check_empty(void)
{
	ck_assert_int_eq(fake_n_alive(), 0);
	ck_assert_ptr_null(pub->qp);
	ck_assert_ptr_null(pub->send_cq);
	ck_assert_ptr_null(pub->recv_cq);
	ck_assert_ptr_null(pub->send_cq_channel);
	ck_assert_ptr_null(pub->recv_cq_channel);
	ck_assert_ptr_eq(pub->pd, &fake.pd);
}

/* Return: whether a verb failed. */
static bool fail_verb(enum ibv_qp_type type, int number)
{
	struct ibv_qp_init_attr attr = small(type);
	int result;

	begin(type);
	fake.knows_ece = true;
	fake.offer = (struct ibv_ece){ .vendor_id = 7, .options = 1 };
	id->remote_ece = fake.offer;
	fake.fail_at = number;
	result = rdma_create_qp(pub, NULL, &attr);
	if (result)
		ck_assert_int_eq(errno, FAKE_ERROR);
	else
		rdma_destroy_qp(pub);
	check_empty();
	teardown();
	return result != 0;
}

TEST_LOOP(failed_verb_leaves_no_object, 0, sizeof(types) / sizeof(types[0]))
{
	int number = 1;

	teardown();
	while (fail_verb(types[_i], number))
		number++;
	ck_assert_int_ge(number, 8); /* two queues, two channels, queue pair, move, ECE */
	begin(types[_i]);
}

TEST(failure_leaves_the_queues_of_a_shared_receive_queue)
{
	struct ibv_qp_init_attr attr = small(IBV_QPT_XRC_RECV);
	struct ibv_srq srq = { 0 };
	struct ibv_cq *cq = ibv_create_cq(pub->verbs, 4, pub, NULL, 0);

	pub->qp_type = IBV_QPT_XRC_RECV;
	pub->srq = &srq;
	pub->recv_cq = cq;
	fake.fail_at = fake.n_calls + 4; /* XRC domain, channel, queue, and then the queue pair */
	refuse(&attr, NULL, FAKE_ERROR);
	ck_assert_ptr_eq(pub->recv_cq, cq);
	pub->srq = NULL;
	rdma_create_qp(pub, NULL, &attr);
	rdma_destroy_qp(pub);
	ck_assert_int_eq(fake_n_alive(), 0);
}

/* --- refused calls ------------------------------------------------------- */

TEST(second_queue_pair_is_refused)
{
	struct ibv_qp_init_attr attr = small(IBV_QPT_RC);
	struct ibv_qp *first;

	create(&attr);
	first = pub->qp;
	refuse(&attr, NULL, EINVAL);
	ck_assert_ptr_eq(pub->qp, first);
	rdma_destroy_qp(pub);
}

TEST(id_without_a_device_is_refused)
{
	struct ibv_qp_init_attr attr = small(IBV_QPT_RC);

	id->attached = NULL;
	pub->verbs = NULL;
	pub->pd = NULL;
	refuse(&attr, NULL, EINVAL);
	refuse(&attr, &fake.pd, EINVAL);
}

TEST(domain_of_another_context_is_refused)
{
	struct ibv_qp_init_attr attr = small(IBV_QPT_RC);
	struct ibv_context other = { 0 };
	struct ibv_pd pd = { .context = &other };

	refuse(&attr, &pd, EINVAL);
	ck_assert_int_eq(fake.n_calls, 0);
	ck_assert_ptr_null(attr.send_cq);
}

TEST(queue_beside_the_id_s_own_is_refused)
{
	struct ibv_cq *mine = ibv_create_cq(pub->verbs, 4, NULL, NULL, 0), other;
	struct ibv_qp_init_attr attr = small(IBV_QPT_RC);

	pub->send_cq = pub->recv_cq = mine;
	attr.recv_cq = &other;
	refuse(&attr, NULL, EINVAL);
	attr = small(IBV_QPT_RC);
	attr.send_cq = &other;
	refuse(&attr, NULL, EINVAL);
	ck_assert_ptr_eq(pub->send_cq, mine);
	attr = small(IBV_QPT_RC);
	create(&attr);
	ck_assert_ptr_eq(attr.send_cq, mine);
	ck_assert_ptr_eq(attr.recv_cq, mine);
	rdma_destroy_qp(pub);
	check_empty();
}

/* --- completion queues --------------------------------------------------- */

TEST(queues_are_made_for_both_directions)
{
	struct ibv_qp_init_attr attr = small(IBV_QPT_RC);

	create(&attr);
	ck_assert_int_eq(pub->send_cq->cqe, 3);
	ck_assert_int_eq(pub->recv_cq->cqe, 5);
	ck_assert_ptr_eq(pub->send_cq->cq_context, pub);
	ck_assert_ptr_eq(pub->recv_cq->cq_context, pub);
	ck_assert_ptr_eq(pub->send_cq->channel, pub->send_cq_channel);
	ck_assert_ptr_eq(pub->recv_cq->channel, pub->recv_cq_channel);
	ck_assert_ptr_ne(pub->send_cq_channel, pub->recv_cq_channel);
	rdma_destroy_qp(pub);
	check_empty();
}

TEST(direction_without_requests_needs_no_queue)
{
	struct ibv_qp_init_attr attr = small(IBV_QPT_RC);

	attr.cap.max_recv_wr = 0;
	create(&attr);
	ck_assert_ptr_nonnull(pub->send_cq);
	ck_assert_ptr_null(pub->recv_cq);
	ck_assert_ptr_null(attr.recv_cq);
	rdma_destroy_qp(pub);
	check_empty();
}

TEST(queues_of_the_program_stay_its_own)
{
	struct ibv_qp_init_attr attr = small(IBV_QPT_RC);
	struct ibv_cq mine;

	attr.send_cq = attr.recv_cq = &mine;
	create(&attr);
	ck_assert_ptr_null(pub->send_cq);
	ck_assert_ptr_null(pub->recv_cq);
	ck_assert_ptr_eq(fake.qp_asked.send_cq, &mine);
	rdma_destroy_qp(pub);
	check_empty();
}

TEST(queue_of_the_program_for_one_direction)
{
	struct ibv_qp_init_attr attr = small(IBV_QPT_RC);
	struct ibv_cq mine;

	attr.send_cq = &mine;
	create(&attr);
	ck_assert_ptr_null(pub->send_cq);
	ck_assert_ptr_eq(attr.recv_cq, pub->recv_cq);
	rdma_destroy_qp(pub);
	check_empty();
}

/* --- the program's struct afterwards ------------------------------------- */

TEST(capacities_and_queues_are_written_back)
{
	struct ibv_qp_init_attr attr = small(IBV_QPT_RC);
	struct ibv_srq srq;

	pub->srq = &srq;
	create(&attr);
	ck_assert_uint_gt(attr.cap.max_send_wr, 3);
	ck_assert_ptr_eq(attr.send_cq, pub->send_cq);
	ck_assert_ptr_eq(attr.recv_cq, pub->recv_cq);
	ck_assert_ptr_eq(attr.srq, &srq);
	rdma_destroy_qp(pub);
}

TEST(shared_receive_queue_of_the_program_comes_first)
{
	struct ibv_qp_init_attr attr = small(IBV_QPT_RC);
	struct ibv_srq mine, other;

	pub->srq = &mine;
	attr.srq = &other;
	create(&attr);
	ck_assert_ptr_eq(pub->qp->srq, &other);
	rdma_destroy_qp(pub);
}

TEST(extended_form_returns_the_domain)
{
	struct ibv_qp_init_attr_ex attr = { .qp_type = IBV_QPT_RC, .cap.max_send_wr = 1 };

	ck_assert_int_eq(rdma_create_qp_ex(pub, &attr), 0);
	ck_assert_ptr_eq(attr.pd, &fake.pd);
	ck_assert_uint_eq(attr.comp_mask, IBV_QP_INIT_ATTR_PD);
	rdma_destroy_qp(pub);
}

TEST(domain_of_the_program_becomes_the_id_s)
{
	struct ibv_qp_init_attr attr = small(IBV_QPT_RC);
	struct ibv_pd mine = { .context = pub->verbs };

	ck_assert_int_eq(rdma_create_qp(pub, &mine, &attr), 0);
	ck_assert_ptr_eq(pub->pd, &mine);
	rdma_destroy_qp(pub);
	ck_assert_ptr_eq(pub->pd, &mine);
}

/* --- XRC ----------------------------------------------------------------- */

TEST(xrc_target_gets_the_domain_of_its_device)
{
	struct ibv_qp_init_attr attr = small(IBV_QPT_XRC_RECV);

	pub->qp_type = IBV_QPT_XRC_RECV;
	create(&attr);
	ck_assert_ptr_eq(fake.qp_asked.xrcd, fake_device.xrcd);
	ck_assert_uint_eq(fake.qp_asked.comp_mask, IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD);
	rdma_destroy_qp(pub);
	create(&attr);
	ck_assert_int_eq(fake.n_xrcds, 1);
	rdma_destroy_qp(pub);
}

TEST(xrc_target_keeps_the_domain_of_the_program)
{
	struct ibv_xrcd mine;
	struct ibv_qp_init_attr_ex attr = { .qp_type = IBV_QPT_XRC_RECV,
					    .comp_mask = IBV_QP_INIT_ATTR_XRCD,
					    .xrcd = &mine };

	pub->qp_type = IBV_QPT_XRC_RECV;
	ck_assert_int_eq(rdma_create_qp_ex(pub, &attr), 0);
	ck_assert_ptr_eq(fake.qp_asked.xrcd, &mine);
	ck_assert_int_eq(fake.n_xrcds, 0);
	rdma_destroy_qp(pub);
}

TEST(xrc_target_leaves_its_queues_to_its_shared_receive_queue)
{
	struct ibv_qp_init_attr attr = small(IBV_QPT_XRC_RECV);
	struct ibv_srq srq;

	pub->qp_type = IBV_QPT_XRC_RECV;
	pub->srq = &srq;
	create(&attr);
	rdma_destroy_qp(pub);
	ck_assert_ptr_nonnull(pub->recv_cq);
	pub->srq = NULL;
	create(&attr);
	rdma_destroy_qp(pub);
	check_empty();
}

/* --- moves --------------------------------------------------------------- */

#define INIT_MASK (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT)
#define RTR_MASK                                                                        \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
	 IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX)
#define RESPONDS  (IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define INITIATES (IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_TIMEOUT)
#define RTS_MASK  (IBV_QP_STATE | IBV_QP_SQ_PSN)

static const struct {
	enum ibv_qp_type type;
	int rtr, rts;
} paths[] = {
	{ IBV_QPT_RC, RTR_MASK | RESPONDS, RTS_MASK | INITIATES },
	{ IBV_QPT_UC, RTR_MASK, RTS_MASK },
	{ IBV_QPT_XRC_SEND, RTR_MASK, RTS_MASK | INITIATES },
	{ IBV_QPT_XRC_RECV, RTR_MASK | RESPONDS, RTS_MASK | IBV_QP_TIMEOUT },
};

TEST_LOOP(each_type_is_moved_with_its_attributes, 0, sizeof(paths) / sizeof(paths[0]))
{
	struct cm_conn conn = { .state = CM_REP_RCVD, .retry_count = 5 };
	struct ibv_qp_init_attr attr = small(paths[_i].type);

	pub->qp_type = paths[_i].type;
	create(&attr);
	id->conn = &conn;
	id->path.pkey_index = 1; /* of a route that was resolved since */
	ck_assert_int_eq(qp_to_rts(id), 0);
	ck_assert_uint_eq(fake.move[1].pkey_index, 1);
	ck_assert_int_eq(fake.n_moves, 3);
	ck_assert_int_eq(fake.mask[0], INIT_MASK | IBV_QP_ACCESS_FLAGS);
	ck_assert_int_eq(fake.mask[1], paths[_i].rtr);
	ck_assert_int_eq(fake.mask[2], paths[_i].rts);
	id->conn = NULL;
	rdma_destroy_qp(pub);
}

#define REMOTE_ACCESS (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

TEST(peer_with_read_access_may_flush_on_a_device_with_flush)
{
	struct cm_conn conn = { .state = CM_REP_RCVD, .responder_resources = 1 };
	struct ibv_qp_init_attr attr = small(IBV_QPT_RC);

	fake_device.flush_access = 0x300;
	create(&attr);
	id->conn = &conn;
	ck_assert_int_eq(qp_to_rts(id), 0);
	ck_assert_uint_eq(fake.move[1].qp_access_flags, 0x300 | REMOTE_ACCESS);
	id->conn = NULL;
	rdma_destroy_qp(pub);
}

TEST(port_space_determines_the_type_of_a_connection)
{
	struct cm_conn conn = { .state = CM_REP_RCVD };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };
	int mask;

	pub->qp_type = IBV_QPT_UC;
	pub->ps = RDMA_PS_TCP;
	id->conn = &conn;
	ck_assert_int_eq(rdma_init_qp_attr(pub, &attr, &mask), 0);
	ck_assert_int_eq(mask & RESPONDS, RESPONDS);
	id->conn = NULL;
}

/* A peer's REQ may name an alternate path: the queue pair knows it in RTR, and migrates from RTS.
 */
TEST(alternate_path_is_armed_after_it_was_set)
{
	struct cm_conn conn = { .state = CM_REQ_RCVD };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };
	int mask;

	id->conn = &conn;
	id->alternate = calloc(1, sizeof(*id->alternate));
	*id->alternate = (struct path){
		.gid.port_num = 2, .pkey_index = 1, .dlid = 0x21, .packet_life_time = 17
	};
	ck_assert_int_eq(rdma_init_qp_attr(pub, &attr, &mask), 0);
	ck_assert_int_eq(mask & (RESPONDS | IBV_QP_ALT_PATH), RESPONDS | IBV_QP_ALT_PATH);
	ck_assert_uint_eq(attr.alt_ah_attr.dlid, 0x21);
	ck_assert_uint_eq(attr.alt_port_num, 2);
	ck_assert_uint_eq(attr.alt_pkey_index, 1);
	ck_assert_uint_eq(attr.alt_timeout, 18);
	attr.qp_state = IBV_QPS_RTS;
	ck_assert_int_eq(rdma_init_qp_attr(pub, &attr, &mask), 0);
	ck_assert(mask & IBV_QP_PATH_MIG_STATE);
	ck_assert_int_eq(attr.path_mig_state, IBV_MIG_REARM);
	id->conn = NULL;
}

TEST(datagram_queue_pair_is_ready_at_once)
{
	struct ibv_qp_init_attr attr = small(IBV_QPT_UD);

	pub->qp_type = IBV_QPT_UD;
	create(&attr);
	ck_assert_int_eq(fake.n_moves, 3);
	ck_assert_int_eq(fake.mask[0], INIT_MASK | IBV_QP_QKEY);
	ck_assert_int_eq(fake.mask[1], IBV_QP_STATE);
	ck_assert_int_eq(fake.mask[2], RTS_MASK);
	ck_assert_uint_eq(fake.move[2].sq_psn, 0);
	rdma_destroy_qp(pub);
}

TEST(ipoib_has_no_qkey_on_the_loopback)
{
	struct ibv_qp_init_attr attr = small(IBV_QPT_UD);

	pub->qp_type = IBV_QPT_UD;
	id->claim.ps = RDMA_PS_IPOIB;
	id->path.loopback = true;
	refuse(&attr, NULL, ENODEV);
}

/* --- running ------------------------------------------------------------- */

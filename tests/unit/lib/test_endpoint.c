/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_create_ep() and rdma_destroy_ep(): lib/conn/endpoint.c. */
#include <rdma/rdma_verbs.h>

#include "tests/unit/lib/fake_net.h"
#include "tests/unit/lib/rig.h"
#include "tests/unit/test.h"

static union addr own, peer;
static struct rdma_addrinfo info;
static struct ibv_qp_init_attr attr;
static struct rdma_cm_id *endpoint;

static void set_up(void)
{
	rig_begin_with(&rig_reporting);
	own = rig_own(RIG_PORT);
	peer = rig_peer(RIG_PORT);
	attr = (struct ibv_qp_init_attr){
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 }
	};
	info = (struct rdma_addrinfo){
		.ai_qp_type = IBV_QPT_RC,
		.ai_port_space = RDMA_PS_TCP,
		.ai_dst_addr = &peer.sa,
		.ai_dst_len = sizeof(peer.in4),
	};
}

FIXTURE(set_up, NULL);

static void be_passive(void)
{
	info.ai_flags = RAI_PASSIVE;
	info.ai_dst_addr = NULL;
	info.ai_src_addr = &own.sa;
	info.ai_src_len = sizeof(own.in4);
}

static struct id *create(struct ibv_qp_init_attr *with)
{
	ck_assert_int_eq(rdma_create_ep(&endpoint, &info, NULL, with), 0);
	return id_of(endpoint);
}

static void expect_refusal(int err)
{
	rig_expect_errno(rdma_create_ep(&endpoint, &info, NULL, &attr), err);
	ck_assert(list_is_empty(&engine_held()->ids));
	ck_assert_int_eq(fake_n_alive(), 0);
}

/* --- active -------------------------------------------------------------------- */

TEST(active_endpoint_has_its_route)
{
	rig_expect_state(create(NULL), ID_ROUTE_RESOLVED);
}

TEST(active_endpoint_is_synchronous)
{
	ck_assert(id_is_sync(create(NULL)));
}

TEST(active_endpoint_has_a_queue_pair_if_one_was_asked_for)
{
	create(&attr);
	ck_assert_ptr_nonnull(endpoint->qp);
	ck_assert_int_eq(endpoint->qp->qp_type, IBV_QPT_RC);
}

TEST(active_endpoint_has_no_queue_pair_otherwise)
{
	create(NULL);
	ck_assert_ptr_null(endpoint->qp);
}

TEST(private_data_of_the_address_is_copied)
{
	char data[] = "hello";
	struct id *id;

	info.ai_connect = data;
	info.ai_connect_len = sizeof(data);
	id = create(NULL);
	memset(data, 0, sizeof(data));
	ck_assert_uint_eq(id->prefix_bytes, sizeof(data));
	ck_assert_mem_eq(id->prefix, "hello", sizeof(data));
}

TEST(endpoint_of_an_unreachable_peer_is_not_made)
{
	fake_net.route_err = -ENETUNREACH;
	expect_refusal(ENETUNREACH);
}

TEST(endpoint_whose_queue_pair_cannot_be_made_is_not_made)
{
	fake.fail_at = fake.n_calls + 2; /* the first call is for the default protection domain */
	expect_refusal(FAKE_ERROR);
}

TEST(address_shorter_than_its_family_is_EINVAL)
{
	info.ai_dst_len--;
	expect_refusal(EINVAL);
}

/* --- passive ------------------------------------------------------------------- */

TEST(passive_endpoint_is_bound)
{
	be_passive();
	rig_expect_state(create(NULL), ID_ADDR_BOUND);
	ck_assert_uint_eq(ntohs(rdma_get_src_port(endpoint)), RIG_PORT);
}

TEST(queue_pair_of_a_passive_endpoint_is_for_its_requests)
{
	struct id *id;

	be_passive();
	id = create(&attr);
	ck_assert_ptr_null(endpoint->qp);
	ck_assert_int_eq(id->request_qp->qp_type, IBV_QPT_RC);
}

TEST(domain_of_a_passive_endpoint_is_the_programs)
{
	be_passive();
	ck_assert_int_eq(rdma_create_ep(&endpoint, &info, &fake.pd, &attr), 0);
	ck_assert_ptr_eq(endpoint->pd, &fake.pd);
}

TEST(endpoint_on_a_port_in_use_is_not_made)
{
	be_passive();
	cmportd.bind_err = -EADDRINUSE;
	expect_refusal(EADDRINUSE);
}

TEST(source_address_shorter_than_its_family_is_EINVAL)
{
	be_passive();
	info.ai_src_len--;
	expect_refusal(EINVAL);
}

/* --- both ---------------------------------------------------------------------- */

TEST(endpoint_without_an_address_is_EINVAL)
{
	rig_expect_errno(rdma_create_ep(&endpoint, NULL, NULL, NULL), EINVAL);
}

TEST(endpoint_of_no_port_space_is_not_made)
{
	info.ai_port_space = 0;
	expect_refusal(EINVAL);
}

TEST(destroyed_endpoint_leaves_nothing_on_the_device)
{
	create(&attr);
	rdma_destroy_ep(endpoint);
	ck_assert_int_eq(fake_n_alive(), 0);
	ck_assert(list_is_empty(&engine_held()->ids));
}

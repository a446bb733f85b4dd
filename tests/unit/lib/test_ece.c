/* SPDX-License-Identifier: BSD-2-Clause */
/* Enhanced connection establishment: lib/verbs/ece.c, on a fake device whose driver supports it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/conn/response.h"
#include "lib/engine/engine.h"
#include "lib/verbs/ece.h"
#include "tests/unit/lib/fake_id.h"
#include "tests/unit/test.h"

#define OURS   0x1405
#define OTHERS 0x8086

static struct id *id;
static struct rdma_cm_id *pub;

static void setup(void)
{
	fake_begin();
	fake.knows_ece = true;
	fake.offer = (struct ibv_ece){ .vendor_id = OURS, .options = 0xf0 };
	id = fake_id(IBV_QPT_RC);
	pub = &id->pub;
}

static void teardown(void)
{
	fake_id_free(id);
	fake_end();
}

FIXTURE(setup, teardown);

static void create_qp(void)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC };

	ck_assert_int_eq(rdma_create_qp(pub, NULL, &attr), 0);
}

static void set_remote_ece(uint32_t vendor_id, uint32_t options)
{
	id->remote_ece = (struct ibv_ece){ .vendor_id = vendor_id, .options = options };
}

static void check_event_ece(uint32_t options)
{
	ck_assert_int_eq(fake.n_told, 1);
	ck_assert_uint_eq(fake.told.vendor_id, OURS);
	ck_assert_uint_eq(fake.told.options, options);
}

/* --- options of the program ---------------------------------------------- */

TEST(vendor_and_options_go_into_the_request)
{
	struct ibv_ece ece = { .vendor_id = 0xff123456, .options = 9 };
	struct cm_msg msg;

	ck_assert_int_eq(rdma_set_local_ece(pub, &ece), 0);
	cm_msg_init(&msg, CM_ATTR_REQ, 0);
	ece_put_req(id, &msg);
	ck_assert_uint_eq(msg.req.vendor_id, 0x123456);
	ck_assert_uint_eq(msg.hdr.attr_mod, 9);
}

TEST(reply_names_the_peers_vendor_and_our_options)
{
	struct ibv_ece ece = { .vendor_id = 1, .options = 2 };
	struct cm_msg msg;

	set_remote_ece(3, 4);
	ck_assert_int_eq(rdma_set_local_ece(pub, &ece), 0);
	cm_msg_init(&msg, CM_ATTR_REP, 0);
	ece_put_rep(id, &msg);
	ck_assert_uint_eq(msg.rep.vendor_id, 3);
	ck_assert_uint_eq(msg.hdr.attr_mod, 2);
}

TEST(options_without_a_vendor_are_refused)
{
	struct ibv_ece nobody = { .options = 5 }, later = { .vendor_id = 1, .comp_mask = 1 };

	ck_assert_int_eq(rdma_set_local_ece(NULL, &later), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(rdma_set_local_ece(pub, NULL), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(rdma_set_local_ece(pub, &nobody), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(rdma_set_local_ece(pub, &later), -1);
	ck_assert_int_eq(errno, EINVAL);
}

TEST(options_for_a_queue_pair_of_the_library_are_refused)
{
	struct ibv_ece ece = { .vendor_id = 1 };

	create_qp();
	ck_assert_int_eq(rdma_set_local_ece(pub, &ece), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(rdma_get_remote_ece(pub, &ece), -1);
	ck_assert_int_eq(errno, EINVAL);
	rdma_destroy_qp(pub);
}

TEST(peers_options_are_read_without_a_mask)
{
	struct ibv_ece ece = { .comp_mask = 9 };

	set_remote_ece(3, 4);
	ck_assert_int_eq(rdma_get_remote_ece(pub, &ece), 0);
	ck_assert_uint_eq(ece.vendor_id, 3);
	ck_assert_uint_eq(ece.options, 4);
	ck_assert_uint_eq(ece.comp_mask, 0);
}

/* --- queue pairs of the library ------------------------------------------ */

TEST(driver_is_only_queried_without_a_request)
{
	struct ibv_ece before = { .vendor_id = 1, .options = 2 };

	ck_assert_int_eq(rdma_set_local_ece(pub, &before), 0);
	create_qp();
	ck_assert_uint_eq(id->local_ece.vendor_id, OURS);
	ck_assert_uint_eq(id->local_ece.options, 0xf0);
	ck_assert_int_eq(fake.n_told, 0);
	rdma_destroy_qp(pub);
}

TEST(request_of_the_same_vendor_narrows_the_options)
{
	set_remote_ece(OURS, 0x3f);
	create_qp();
	check_event_ece(0x3f);
	ck_assert_uint_eq(id->local_ece.options, 0x30);
	rdma_destroy_qp(pub);
}

TEST(request_of_another_vendor_turns_options_off)
{
	set_remote_ece(OTHERS, 0x3f);
	create_qp();
	check_event_ece(0);
	rdma_destroy_qp(pub);
}

TEST(driver_without_ece_is_no_error)
{
	struct ibv_ece before = { .vendor_id = 1, .options = 2 };

	fake.knows_ece = false;
	ck_assert_int_eq(rdma_set_local_ece(pub, &before), 0);
	set_remote_ece(OTHERS, 1);
	create_qp();
	ck_assert_uint_eq(id->local_ece.vendor_id, 0);
	ck_assert_uint_eq(id->local_ece.options, 0);
	rdma_destroy_qp(pub);
}

TEST(reply_of_our_vendor_is_passed_to_the_driver)
{
	create_qp();
	set_remote_ece(OURS, 0x10);
	ck_assert_int_eq(ece_agree(id), 0);
	check_event_ece(0x10);
	rdma_destroy_qp(pub);
}

TEST(reply_without_a_vendor_turns_options_off)
{
	create_qp();
	set_remote_ece(0, 0x10);
	ck_assert_int_eq(ece_agree(id), 0);
	check_event_ece(0);
	ck_assert_uint_eq(id->remote_ece.options, 0);
	rdma_destroy_qp(pub);
}

TEST(reply_for_a_driver_without_ece_is_no_error)
{
	fake.knows_ece = false;
	create_qp();
	set_remote_ece(0, 0x10);
	ck_assert_int_eq(ece_agree(id), 0);
	rdma_destroy_qp(pub);
}

/* --- the event of a reply ------------------------------------------------ */

/* Return: the event that the program gets for a reply, to be acknowledged. */
static struct rdma_cm_event *take_reply(uint32_t vendor_id, uint32_t options)
{
	struct event *event = id_event(id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);

	struct rdma_cm_event *taken;

	event->taken = response_taken;
	event->ece = (struct ibv_ece){ .vendor_id = vendor_id, .options = options };
	engine_lock();
	id_post(event);
	engine_unlock();
	ck_assert_int_eq(rdma_get_cm_event(pub->channel, &taken), 0);
	return taken;
}

TEST(reply_of_another_vendor_is_a_connect_error)
{
	struct rdma_cm_event *event;

	create_qp();
	event = take_reply(OTHERS, 1);
	ck_assert_int_eq(event->event, RDMA_CM_EVENT_CONNECT_ERROR);
	ck_assert_int_eq(event->status, -1);
	ck_assert_int_eq(fake.n_told, 0);
	ck_assert_int_eq(fake.move[fake.n_moves - 1].qp_state, IBV_QPS_ERR);
	rdma_ack_cm_event(event);
	rdma_destroy_qp(pub);
}

TEST(error_of_the_driver_is_the_status)
{
	struct rdma_cm_event *event;

	create_qp();
	fake.fail_at = fake.n_calls + 1;
	event = take_reply(OURS, 1);
	ck_assert_int_eq(event->event, RDMA_CM_EVENT_CONNECT_ERROR);
	ck_assert_int_eq(event->status, FAKE_ERROR);
	ck_assert_int_eq(fake.move[fake.n_moves - 1].qp_state, IBV_QPS_ERR);
	rdma_ack_cm_event(event);
	rdma_destroy_qp(pub);
}

TEST(reply_for_a_queue_pair_of_the_program_is_only_stored)
{
	struct rdma_cm_event *event = take_reply(OTHERS, 1);
	struct ibv_ece ece;

	ck_assert_int_eq(event->event, RDMA_CM_EVENT_CONNECT_RESPONSE);
	ck_assert_int_eq(rdma_get_remote_ece(pub, &ece), 0);
	ck_assert_uint_eq(ece.vendor_id, OTHERS);
	ck_assert_uint_eq(ece.options, 1);
	rdma_ack_cm_event(event);
}

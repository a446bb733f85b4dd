/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A quirk of the device has its effect and no other. Runs on a host of a soft fabric, once for each
 * quirk, whose name is in QUIRK, and once for "none".
 */
#include <errno.h>
#include <infiniband/umad.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "rig.h"
#include "tests/unit/test.h"

#define QP1		 1
#define QP1_QKEY	 0x80010000
#define CLASS_CM	 7
#define METHOD_SEND	 3
#define MAD_BYTES	 256
#define GRH_BYTES	 40
#define WAIT_MS		 20000
#define LOST_MS		 200
#define PACKET_TYPE_IPV4 10
#define SL		 3

static const struct rig_config ud = { .type = IBV_QPT_UD }, rc = { .type = IBV_QPT_RC };
static const char *quirk;

static struct ibv_ah *make_ah(struct rig *rig)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1, .sl = SL };

	attr.grh.sgid_index = 1;
	attr.grh.hop_limit = 64;
	ck_assert_int_eq(ibv_query_gid(rig->verbs, 1, 1, &attr.grh.dgid), 0);
	return ibv_create_ah(rig->pd, &attr);
}

static void post(struct rig *rig, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = rig_wr(rig, IBV_WR_SEND, &sge, MAD_BYTES);

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = qpn;
	wr.wr.ud.remote_qkey = qkey;
	rig_post(&rig->a, &wr);
	rig_wait(rig->a.cq, IBV_WC_SUCCESS);
}

/* Return: a descriptor that receives MADs of the CM class. */
static int own_class(void)
{
	struct umad_reg_attr attr = { .mgmt_class = CLASS_CM,
				      .mgmt_class_version = 2,
				      .method_mask = { 1 << METHOD_SEND } };
	int fd = umad_open_port("fab0", 1);
	uint32_t agent;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(umad_register2(fd, &attr, &agent), 0);
	return fd;
}

static void read_quirk(void)
{
	quirk = getenv("QUIRK");
	ck_assert_ptr_nonnull(quirk);
}

FIXTURE(read_quirk, NULL);
TEST(packet_from_another_queue_pair_to_qp1_is_lost_with_no_fast_path_only)
{
	bool is_lost = !strcmp(quirk, "no-fast-path");
	const uint8_t head[] = { 1, CLASS_CM, 2, METHOD_SEND };
	struct ibv_qp_attr attr = { .qkey = QP1_QKEY };
	int fd = own_class();
	struct ibv_ah *ah;
	struct rig rig;

	rig_open(&rig, &ud);
	ck_assert_int_eq(ibv_modify_qp(rig.a.qp, &attr, IBV_QP_QKEY), 0);
	memcpy(rig.a.memory, head, sizeof(head));
	ah = make_ah(&rig);
	post(&rig, ah, QP1, QP1_QKEY);
	ck_assert_int_eq(umad_poll(fd, is_lost ? LOST_MS : WAIT_MS), is_lost ? -ETIMEDOUT : 0);
	ck_assert_int_eq(ibv_destroy_ah(ah), 0);
	rig_close(&rig);
	close(fd);
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* As in meson.build: 50 ms each. */
TEST(commands_of_a_slow_device_take_the_configured_time)
{
	const unsigned int n = 4, least_ms = strcmp(quirk, "slow") ? 0 : 50 * n;
	struct ibv_qp_attr attr = { .qkey = QP1_QKEY };
	struct ibv_port_attr port;
	uint64_t begun_ms;
	struct ibv_ah *ah;
	struct rig rig;
	__be16 pkey;

	rig_open(&rig, &ud);
	begun_ms = now_ms();
	ck_assert_int_eq(ibv_query_port(rig.verbs, 1, &port), 0);
	ck_assert_int_eq(ibv_query_pkey(rig.verbs, 1, 0, &pkey), 0);
	ck_assert_int_eq(ibv_modify_qp(rig.a.qp, &attr, IBV_QP_QKEY), 0);
	ah = make_ah(&rig);
	ck_assert_uint_ge(now_ms() - begun_ms, least_ms);
	ck_assert_int_eq(ibv_destroy_ah(ah), 0);
	rig_close(&rig);
}

TEST(sl_of_a_completion_is_the_packet_type_unless_sent_sl)
{
	uint8_t sl = strcmp(quirk, "sent-sl") ? PACKET_TYPE_IPV4 : SL;
	struct ibv_ah *ah;
	struct ibv_wc wc;
	struct rig rig;

	rig_open(&rig, &ud);
	rig_receive(&rig.b, 1, GRH_BYTES + MAD_BYTES);
	ah = make_ah(&rig);
	post(&rig, ah, rig.b.qp->qp_num, RIG_QKEY);
	wc = rig_wait(rig.b.cq, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc.sl, sl);
	ck_assert_int_eq(ibv_destroy_ah(ah), 0);
	rig_close(&rig);
}

/* Return: whether b's channel had an event; it has none afterwards. */
static bool take_event(struct rig *rig)
{
	struct pollfd ready = { .fd = rig->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	if (poll(&ready, 1, 0) != 1)
		return false;
	ck_assert_int_eq(ibv_get_cq_event(rig->channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
	return true;
}

/* When a has the acknowledgement, b has completed it. */
static void send_to_b(struct rig *rig, unsigned int flags)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = rig_wr(rig, IBV_WR_SEND, &sge, 8);

	wr.send_flags |= flags;
	rig_receive(&rig->b, 1, 8);
	rig_post(&rig->a, &wr);
	rig_wait(rig->a.cq, IBV_WC_SUCCESS);
}

TEST(arming_a_nonempty_queue_makes_an_event_unless_strict_notify)
{
	bool is_strict = !strcmp(quirk, "strict-notify");
	struct rig rig;

	rig_open(&rig, &rc);
	send_to_b(&rig, 0);
	ck_assert_int_eq(ibv_req_notify_cq(rig.b.cq, 0), 0);
	ck_assert_int_eq(take_event(&rig), !is_strict);
	/* A completion that had an event causes no other. */
	ck_assert_int_eq(ibv_req_notify_cq(rig.b.cq, 0), 0);
	ck_assert(!take_event(&rig));
	rig_wait(rig.b.cq, IBV_WC_SUCCESS);
	send_to_b(&rig, 0);
	ck_assert(take_event(&rig));
	rig_close(&rig);
}

TEST(arming_for_solicited_makes_an_event_of_solicited_only)
{
	bool is_strict = !strcmp(quirk, "strict-notify");
	struct rig rig;

	rig_open(&rig, &rc);
	send_to_b(&rig, IBV_SEND_SOLICITED);
	ck_assert_int_eq(ibv_req_notify_cq(rig.b.cq, 1), 0);
	ck_assert_int_eq(take_event(&rig), !is_strict);
	rig_wait(rig.b.cq, IBV_WC_SUCCESS);
	send_to_b(&rig, 0);
	ck_assert_int_eq(ibv_req_notify_cq(rig.b.cq, 1), 0);
	ck_assert(!take_event(&rig));
	rig_close(&rig);
}

TEST(queue_pairs_agree_on_vendor_options_with_ece_only)
{
	bool has_ece = !strcmp(quirk, "ece");
	struct ibv_ece ece = { 0 }, none = { 0 };
	struct ibv_device_attr attr;
	uint32_t all;
	struct rig rig;

	rig_open(&rig, &rc);
	ck_assert_int_eq(ibv_query_device(rig.verbs, &attr), 0);
	ck_assert_int_eq(ibv_query_ece(rig.a.qp, &ece), has_ece ? 0 : EOPNOTSUPP);
	ck_assert_uint_eq(ece.vendor_id, has_ece ? attr.vendor_id : 0);
	ck_assert_int_eq(!ece.options, !has_ece);
	/* Options that the device does not support are removed; one remains. */
	all = ece.options;
	ece = (struct ibv_ece){ .vendor_id = attr.vendor_id, .options = 1u << 31 | 1 };
	ck_assert_int_eq(ibv_set_ece(rig.a.qp, &ece), has_ece ? 0 : EOPNOTSUPP);
	ck_assert_int_eq(ibv_query_ece(rig.a.qp, &ece), has_ece ? 0 : EOPNOTSUPP);
	ck_assert_uint_eq(ece.options, has_ece);
	ck_assert_int_eq(ibv_set_ece(rig.a.qp, &none), 0);
	ece.vendor_id = attr.vendor_id + 1;
	ck_assert_int_eq(ibv_set_ece(rig.a.qp, &ece), has_ece ? EINVAL : EOPNOTSUPP);
	/* The other end gets all of them. */
	if (has_ece)
		ck_assert_int_eq(ibv_query_ece(rig.b.qp, &ece), 0);
	ck_assert_uint_eq(ece.options, all);
	rig_close(&rig);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* A host of the network that sends requests as fast as possible, and its effect on others. */
#include <string.h>

#include "mad/talk.h"
#include "tests/unit/portd/scene.h"
#include "tests/unit/test.h"

#define alice	 (&scene_alice)
#define FLOOD	 1000
#define RATE	 100
#define STRANGER (SCENE_PEER + 1)

static struct cm_msg req_number(unsigned int n)
{
	struct cm_msg req = scene_peer_req(0x10000 + n, SCENE_ADDR);

	req.req.local_qpn = 0x1000 + n;
	return req;
}

static struct cm_msg lookup_number(unsigned int n)
{
	struct cm_msg msg = talk_msg_of(CM_ATTR_SIDR_REQ, 0x10000 + n, 0);

	msg.sidr_req.service_id = RIG_SERVICE;
	return msg;
}

static struct cm_msg dreq_number(unsigned int n)
{
	return talk_msg_of(CM_ATTR_DREQ, 0x10000 + n, ~alice->first);
}

static struct cm_msg (*const kinds[])(unsigned int n) = { req_number, lookup_number, dreq_number };

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static void flood(struct cm_msg (*number)(unsigned int n), unsigned int n)
{
	struct mad_path from = rig_peer(SCENE_PEER);
	uint8_t mad[MAD_BYTES];
	struct cm_msg msg;
	unsigned int i;

	for (i = 0; i < n; i++) {
		msg = number(i);
		cm_msg_encode(&msg, mad);
		rig_arrive_bytes(1, &from, mad);
		if (i % 32 == 0)
			rig_settle();
	}
	rig_settle();
}

static void set_up(void)
{
	scene_set_up();
	rig_server()->options.quotas.is[QUOTA_HOST_RATE] = RATE;
}

FIXTURE(set_up, scene_tear_down);
TEST_LOOP(answers_to_a_host_are_limited_by_its_rate, 0, N_KINDS)
{
	unsigned int before = rig_n_sent();

	flood(kinds[_i], FLOOD);
	ck_assert_uint_le(rig_n_sent() - before, RATE);
	ck_assert_uint_gt(rig_n_sent() - before, 0);
	ck_assert_uint_ge(rig_count(PORTD_COUNT_OVERFLOW), FLOOD - RATE);
}

/* A user of a host sends what belongs to no connection, and another one a request. */
TEST(requests_of_a_host_are_answered_during_a_flood_of_its_other_messages)
{
	flood(dreq_number, FLOOD);
	scene_wire();
	scene_receive(req_number(FLOOD));
	ck_assert_str_eq(scene_wire(), "REJ(REQ) 8");
}

/* --- forged addresses: another one for each message ------------------------ */

static void flood_from_everywhere(struct cm_msg (*number)(unsigned int n), unsigned int n)
{
	struct mad_path from = rig_peer(SCENE_PEER);
	struct cm_msg msg;
	unsigned int i;

	for (i = 0; i < n; i++) {
		from.dgid.raw[12] = 0x55;
		memcpy(from.dgid.raw + 13, &i, 2);
		msg = number(i);
		rig_arrive(&from, &msg);
	}
}

static void limit_strangers(void)
{
	rig_server()->options.quotas.is[QUOTA_HOST_RATE] = RATE / STRANGERS_TIMES;
}

TEST_LOOP(answers_to_unconnected_hosts_share_a_rate, 0, N_KINDS)
{
	unsigned int before = rig_n_sent();

	limit_strangers();
	flood_from_everywhere(kinds[_i], FLOOD);
	ck_assert_uint_le(rig_n_sent() - before, RATE);
	ck_assert_uint_gt(rig_n_sent() - before, 0);
	ck_assert_uint_ge(rig_count(PORTD_COUNT_OVERFLOW), FLOOD - RATE);
}

TEST(connected_host_is_answered_during_a_flood)
{
	limit_strangers();
	scene_connect(alice, 1);
	flood_from_everywhere(dreq_number, FLOOD);
	scene_wire();
	scene_receive(dreq_number(0));
	ck_assert_str_eq(scene_wire(), "DREP");
}

/* It may send any messages about its own connections. */
TEST(connection_continues_during_a_flood)
{
	limit_strangers();
	scene_connect(alice, 1);
	flood_from_everywhere(dreq_number, FLOOD);
	scene_delivered(alice);
	scene_receive(scene_peer_dreq(0x701, alice, 1));
	ck_assert_str_eq(scene_delivered(alice), "DREQ");
}

TEST(messages_for_unconnected_ids_share_a_rate)
{
	struct mad_path from = rig_peer(SCENE_PEER);
	struct cm_msg msg = talk_msg_of(CM_ATTR_DREQ, 0x10000, alice->first + 1);
	unsigned int i, before = (unsigned int)rig_count(PORTD_COUNT_OVERFLOW);

	limit_strangers();
	for (i = 0; i < FLOOD; i++) {
		from.dgid.raw[12] = 0x55;
		memcpy(from.dgid.raw + 13, &i, 2);
		rig_arrive(&from, &msg);
	}
	ck_assert_uint_ge(rig_count(PORTD_COUNT_OVERFLOW) - before, FLOOD - RATE);
}

/* --- forged addresses without link addresses -------------------------------- */

#define SOLICITED_MAX 100 /* the kernel has room for 1,024 neighbours by default */

static void flood_with_probes(unsigned int n)
{
	struct mad_path from = rig_peer(SCENE_PEER);
	uint8_t mad[MAD_BYTES];
	unsigned int i;

	for (i = 0; i < n; i++) {
		from.dgid.raw[12] = 0x55;
		memcpy(from.dgid.raw + 13, &i, 2);
		mad_probe_write(i + 1, mad);
		rig_arrive_bytes(1, &from, mad);
		rig_settle();
	}
}

TEST_LOOP(few_link_addresses_are_requested_for_forged_addresses, 0, N_KINDS)
{
	const uint64_t before = rig_hop_questions();

	rig_server()->options.quotas.is[QUOTA_HOST_RATE] = 0;
	rig_set_hops_ready(false);
	flood_from_everywhere(kinds[_i], FLOOD);
	ck_assert_uint_le(rig_hop_questions() - before, SOLICITED_MAX);
	ck_assert_uint_gt(rig_hop_questions() - before, 0);
}

TEST(few_link_addresses_are_requested_for_forged_probes)
{
	const uint64_t before = rig_hop_questions();

	rig_server()->options.quotas.is[QUOTA_HOST_RATE] = 0;
	rig_set_hops_ready(false);
	flood_with_probes(FLOOD);
	ck_assert_uint_le(rig_hop_questions() - before, SOLICITED_MAX);
}

/* Nor does a program that answers all messages. */
TEST(few_link_addresses_are_requested_when_a_client_answers_a_flood)
{
	struct mad_path from = rig_peer(SCENE_PEER);
	struct cm_msg msg;
	uint64_t before;
	unsigned int i;

	rig_server()->options.quotas.is[QUOTA_HOST_RATE] = 0;
	ck_assert_int_eq(rig_listen(alice, "0.0.0.0"), 0);
	rig_set_hops_ready(false);
	before = rig_hop_questions();
	for (i = 0; i < FLOOD; i++) {
		from.dgid.raw[12] = 0x55;
		memcpy(from.dgid.raw + 13, &i, 2);
		msg = req_number(i);
		rig_arrive(&from, &msg);
		scene_delivered(alice);
		msg = talk_msg_of(CM_ATTR_REJ, 0, 0x10000 + i);
		msg.rej.reason = CM_REJ_CONSUMER;
		rig_send(alice, &from, &msg);
	}
	ck_assert_uint_le(rig_hop_questions() - before, SOLICITED_MAX);
}

TEST(host_with_a_link_address_is_answered_during_a_flood)
{
	rig_server()->options.quotas.is[QUOTA_HOST_RATE] = 0;
	rig_set_hops_ready(false);
	flood_from_everywhere(req_number, FLOOD);
	rig_set_hops_ready(true);
	scene_wire();
	scene_receive(req_number(FLOOD));
	ck_assert_str_eq(scene_wire(), "REJ(REQ) 8");
}

TEST(link_address_of_a_connected_host_is_requested_during_a_flood)
{
	uint64_t before;

	rig_server()->options.quotas.is[QUOTA_HOST_RATE] = 0;
	scene_connect(alice, 1);
	rig_set_hops_ready(false);
	flood_from_everywhere(req_number, FLOOD);
	before = rig_hop_questions();
	scene_receive(req_number(FLOOD));
	ck_assert_uint_gt(rig_hop_questions(), before);
}

TEST(link_address_is_requested_again_after_a_flood)
{
	uint64_t before;

	rig_server()->options.quotas.is[QUOTA_HOST_RATE] = 0;
	rig_set_hops_ready(false);
	flood_from_everywhere(req_number, FLOOD);
	rig_pass(5000);
	before = rig_hop_questions();
	scene_receive(req_number(FLOOD));
	ck_assert_uint_gt(rig_hop_questions(), before);
}

/* --- probes ---------------------------------------------------------------- */

TEST(answers_to_probes_of_a_host_are_limited_by_its_rate)
{
	struct mad_path from = rig_peer(SCENE_PEER);
	unsigned int i, before = rig_n_sent();
	uint8_t mad[MAD_BYTES];

	for (i = 0; i < FLOOD; i++) {
		mad_probe_write(i + 1, mad);
		rig_arrive_bytes(1, &from, mad);
		if (i % 32 == 0)
			rig_settle();
	}
	rig_settle();
	ck_assert_uint_eq(rig_n_sent() - before, RATE);
}

TEST(answers_to_probes_of_unconnected_hosts_share_a_rate)
{
	const unsigned int before = rig_n_sent();

	limit_strangers();
	flood_with_probes(FLOOD);
	ck_assert_uint_eq(rig_n_sent() - before, RATE);
}

TEST_LOOP(answers_to_a_host_do_not_exceed_its_requests, 0, N_KINDS)
{
	unsigned int before = rig_n_sent();

	flood(kinds[_i], RATE / 2);
	ck_assert_uint_le(rig_n_sent() - before, RATE / 2);
	rig_pass(60000);
	ck_assert_uint_le(rig_n_sent() - before, RATE / 2);
}

TEST_LOOP(another_host_is_answered_during_a_flood, 0, N_KINDS)
{
	struct mad_path from = rig_peer(STRANGER);
	struct cm_msg msg = kinds[_i](0);

	flood(kinds[_i], FLOOD);
	scene_wire();
	rig_arrive(&from, &msg);
	ck_assert_str_ne(scene_wire(), "");
}

TEST(flooding_host_is_answered_again_later)
{
	flood(req_number, FLOOD);
	rig_pass(1000);
	scene_wire();
	scene_receive(req_number(FLOOD));
	ck_assert_str_eq(scene_wire(), "REJ(REQ) 8");
}

/* Answers to it name a connection: fast senders must not get them. */
TEST(connection_to_a_flooding_host_works)
{
	flood(req_number, FLOOD);
	scene_wire();
	scene_sends(alice, scene_req(alice, 1));
	scene_receive(scene_peer_rep(0x701, alice->first + 1));
	ck_assert_str_eq(scene_tracked(alice->first + 1), "REP_RCVD");
}

/*
 * cmportd remembers 65,536 requests of a listener. If it counted those that the listener did not
 * receive, a flood while the listener is stopped would end its service.
 */
TEST(unreceived_requests_of_a_stopped_listener_are_not_stored)
{
	rig_server()->options.quotas.is[QUOTA_HOST_RATE] = 20 * FLOOD;
	ck_assert_int_eq(rig_listen(alice, SCENE_ADDR), 0);
	flood(req_number, 20 * FLOOD);
	ck_assert_uint_gt(rig_count(PORTD_COUNT_OVERFLOW), 0);
	ck_assert_uint_le(tracker_count(rig_server()->tracker, 0),
			  20 * FLOOD - rig_count(PORTD_COUNT_OVERFLOW));
}

/* --- messages for ids of a client without a connection ---------------------- */

static struct cm_msg req_for_alice(unsigned int n)
{
	return talk_msg_of(CM_ATTR_DREQ, 0x10000 + n, alice->first + n % 1000);
}

static struct cm_msg answer_for_alice(unsigned int n)
{
	struct cm_msg msg = talk_msg_of(CM_ATTR_SIDR_REP, 0, 0);

	msg.sidr_rep.request_id = alice->first + n % 1000;
	return msg;
}

static struct cm_msg (*const strays[])(unsigned int n) = { req_for_alice, answer_for_alice };

#define N_STRAYS (sizeof(strays) / sizeof(strays[0]))

TEST_LOOP(unconnected_messages_to_a_client_are_limited, 0, N_STRAYS)
{
	flood(strays[_i], FLOOD);
	ck_assert_uint_ge(rig_count(PORTD_COUNT_OVERFLOW), FLOOD - RATE);
	ck_assert_uint_lt(rig_count(PORTD_COUNT_OVERFLOW), FLOOD);
}

TEST(a_client_that_does_not_read_loses_unconnected_messages_first)
{
	uint64_t lost;

	rig_server()->options.quotas.is[QUOTA_HOST_RATE] = 20 * FLOOD;
	scene_sends(alice, scene_req(alice, 1));
	flood(req_for_alice, 20 * FLOOD);
	lost = rig_count(PORTD_COUNT_OVERFLOW);
	ck_assert_uint_gt(lost, 0);
	scene_receive(scene_peer_rep(0x701, alice->first + 1));
	ck_assert_uint_eq(rig_count(PORTD_COUNT_OVERFLOW), lost);
}

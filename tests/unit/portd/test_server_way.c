/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way of cmportd's messages: messages that the sender refuses or fails to send are not lost,
 * and the sender gets the events that it needs. tests/unit/mad/test_sender.c tests their effects.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "mad/talk.h"
#include "tests/unit/portd/scene.h"
#include "tests/unit/test.h"

#define alice (&scene_alice)

static bool goes_by_umad(void)
{
	struct rig_sent sent;
	struct cm_msg msg;

	ck_assert_uint_eq(rig_n_sent(), 1);
	ck_assert(rig_sent(&sent, &msg));
	ck_assert_uint_eq(msg.hdr.attr_id, CM_ATTR_DREP);
	ck_assert_uint_eq(rig_count(PORTD_COUNT_UNSENT), 0);
	return sent.slowly;
}

static const int refusals[] = { -EAGAIN, -EINVAL, -ENOMEM, -EHOSTUNREACH };

FIXTURE(scene_set_up, scene_tear_down);

TEST_LOOP(messages_refused_by_the_sender_go_through_umad, 0, sizeof(refusals) / sizeof(refusals[0]))
{
	rig_set_sender_refusal(refusals[_i]);
	scene_receive(talk_msg_of(CM_ATTR_DREQ, 0x701, ~alice->first));
	ck_assert(goes_by_umad());
}

TEST(messages_that_the_device_fails_to_send_go_through_umad)
{
	rig_set_sends_fail(true);
	scene_receive(talk_msg_of(CM_ATTR_DREQ, 0x701, ~alice->first));
	ck_assert(goes_by_umad());
}

TEST(a_message_does_not_overtake_one_that_umad_has_not_written)
{
	rig_set_queued(true);
	scene_receive(talk_msg_of(CM_ATTR_DREQ, 0x701, ~alice->first));
	ck_assert(goes_by_umad());
}

TEST_LOOP(messages_for_umad_wait_for_their_hop, 0, 2)
{
	rig_set_sender_refusal(-EAGAIN);
	rig_set_hops_ready(false);
	rig_set_sender_ready(_i);
	scene_receive(talk_msg_of(CM_ATTR_DREQ, 0x701, ~alice->first));
	ck_assert_uint_eq(rig_n_sent(), 0);
	rig_set_hops_ready(true);
	rig_pass(100);
	ck_assert(goes_by_umad());
}

TEST(failed_messages_wait_for_their_hop)
{
	rig_set_hops_ready(false);
	rig_set_sender_ready(true);
	rig_set_sends_fail(true);
	scene_receive(talk_msg_of(CM_ATTR_DREQ, 0x701, ~alice->first));
	ck_assert_uint_eq(rig_n_sent(), 0);
	rig_set_hops_ready(true);
	rig_pass(100);
	ck_assert(goes_by_umad());
}

TEST(the_sender_is_notified_of_each_received_message)
{
	struct mad_path peer = rig_peer(SCENE_PEER);
	struct mad_gid gid;
	struct cm_msg msg;

	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	ck_assert(rig_last_arrival(&gid, &msg));
	ck_assert_mem_eq(&gid, &peer.dgid, sizeof(gid));
	ck_assert_uint_eq(msg.req.local_comm_id, 0x701);
}

/* --- probes of the fast path --------------------------------------------- */

TEST(a_due_probe_is_sent_at_the_end_of_the_turn)
{
	struct rig_sent sent;
	struct cm_msg msg;

	rig_probe(&(struct mad_sender_score){ .n_probed = 1 });
	rig_pass(1);
	ck_assert(rig_sent(&sent, &msg));
	ck_assert(!sent.slowly);
	ck_assert_uint_eq(msg.sidr_req.service_id, MAD_PROBE_SERVICE_ID);
	ck_assert_uint_eq(rig_n_sent(), 0);
}

static int wait_ms_before_probe(uint64_t due_ms)
{
	rig_probe(&(struct mad_sender_score){
		.n_probed = 1, .probe_due_ns = rig_server()->now.ns + due_ms * CM_NS_PER_MS });
	rig_settle();
	rig_pass(0);
	return rig_wait_ms();
}

TEST(cmportd_wakes_when_the_next_probe_is_due_and_not_before)
{
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	ck_assert_int_eq(wait_ms_before_probe(250), 250);
	ck_assert_int_eq(wait_ms_before_probe(7000), 7000);
}

/* As without random numbers, early after boot. */
TEST(a_due_probe_that_fails_is_tried_again)
{
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	ck_assert_int_eq(wait_ms_before_probe(0), 10);
}

/* Making its address handle would block. */
TEST(a_probe_to_an_unresolved_hop_is_skipped)
{
	rig_set_hops_ready(false);
	rig_probe(&(struct mad_sender_score){ .n_probed = 1 });
	rig_pass(1);
	ck_assert_uint_eq(rig_n_sent(), 0);
}

TEST(a_peers_probe_is_answered_through_umad_and_not_counted)
{
	struct rig_sent sent;
	struct cm_msg msg;

	cm_msg_init(&msg, CM_ATTR_SIDR_REQ, 1);
	msg.sidr_req.request_id = RIG_PROBE_ID;
	msg.sidr_req.service_id = MAD_PROBE_SERVICE_ID;
	scene_receive(msg);
	ck_assert_uint_eq(rig_n_sent(), 1);
	ck_assert(rig_sent(&sent, &msg));
	ck_assert(sent.slowly);
	ck_assert_uint_eq(msg.hdr.attr_id, CM_ATTR_SIDR_REP);
	ck_assert_uint_eq(msg.sidr_rep.request_id, RIG_PROBE_ID);
	ck_assert_uint_eq(rig_count(PORTD_COUNT_ANSWERED), 0);
}

TEST(the_answer_to_a_probe_goes_to_no_client)
{
	rig_set_probe_answers(true);
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	ck_assert_uint_eq(rig_n_sent(), 0);
	ck_assert_str_eq(scene_delivered(alice), "");
}

/* Return: the number of such lines in the log. */
static unsigned int count_warnings(FILE *log)
{
	char line[256];
	unsigned int n = 0;

	rewind(log);
	while (fgets(line, sizeof(line), log))
		n += strstr(line, "fast path does not reach") != NULL;
	return n;
}

TEST(a_dead_fast_path_is_logged_once)
{
	FILE *log = tmpfile();

	ck_assert(log && dup2(fileno(log), STDERR_FILENO) >= 0);
	log_set_verbose();
	rig_pass(1);
	ck_assert_uint_eq(count_warnings(log), 0);
	rig_probe(&(struct mad_sender_score){ .n_lost = 1 });
	rig_pass(1);
	rig_probe(&(struct mad_sender_score){ .n_lost = 2 });
	rig_pass(1);
	ck_assert_uint_eq(count_warnings(log), 1);
	fclose(log);
}

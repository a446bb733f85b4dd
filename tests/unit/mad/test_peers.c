/* SPDX-License-Identifier: BSD-2-Clause */
/* mad/peers.c: the way to a peer, and the destination queue pair. Time is an argument. */
#include "mad/peers.h"
#include "tests/unit/test.h"

#define NOW_NS UINT64_C(77000000000000)
#define MS_NS  UINT64_C(1000000)
#define QPN    0x4711
#define ID     0xfffffffe /* request id of a first probe: the next ones wrap around */

/* Figures, not the constants of peers.h: each test with one fails if that constant changes. */
#define N_PROBES    4
#define PROBE_MS    250
#define ROUND_MS    1000
#define AVOIDED_MS  UINT64_C(10000)
#define N_DOUBLINGS 6
#define N_LOST	    8 /* peers, after which new ones are probed rarely */

static const struct mad_gid bob = { { 0xfe, 0x80, [15] = 1 } };

static struct peers peers;

static void setup(void)
{
	ck_assert_int_eq(peers_init(&peers), 0);
}

static void teardown(void)
{
	peers_fini(&peers);
}

static struct mad_gid stranger(unsigned int number)
{
	return (struct mad_gid){ { 0xfd, [13] = (uint8_t)(number >> 16),
				   [14] = (uint8_t)(number >> 8), [15] = (uint8_t)number } };
}

static uint32_t qpn_after(const struct mad_gid *gid, uint64_t ms)
{
	return peers_qpn(&peers, gid, NOW_NS + ms * MS_NS);
}

static void receive_after(const struct mad_gid *gid, uint32_t qpn, uint64_t ms)
{
	peers_note_message(&peers, gid, qpn, NOW_NS + ms * MS_NS);
}

static void ask_after(const struct mad_gid *gid, uint64_t ms)
{
	const struct mad_path path = { .grh = true, .sgid_index = 3, .dgid = *gid };

	peers_asked(&peers, &path, NOW_NS + ms * MS_NS);
}

static void unanswered_after(const struct mad_gid *gid, uint64_t ms)
{
	const struct mad_path path = { .grh = true, .dgid = *gid };

	peers_unanswered(&peers, &path, NOW_NS + ms * MS_NS);
}

/* Return: number of probes; @ret_id of the last one. */
static unsigned int n_probes_after(uint64_t ms, uint32_t *ret_id)
{
	struct mad_path path;
	unsigned int n = 0;

	while (peers_probe(&peers, ID, NOW_NS + ms * MS_NS, &path, ret_id))
		n++;
	return n;
}

static bool probes_after(uint64_t ms)
{
	uint32_t id;

	return n_probes_after(ms, &id) > 0;
}

static bool answered(const struct mad_gid *gid, uint32_t id)
{
	return peers_answered(&peers, gid, id, NOW_NS);
}

static void prove(const struct mad_gid *gid, uint64_t ms)
{
	uint32_t id;

	ask_after(gid, ms);
	ck_assert_uint_eq(n_probes_after(ms, &id), 1);
	ck_assert(answered(gid, id));
}

/* A whole round without an answer, starting at @ms. */
static void probe_without_answer(uint64_t ms)
{
	for (unsigned int i = 0; i < N_PROBES; i++)
		ck_assert(probes_after(ms + i * PROBE_MS));
	ck_assert(!probes_after(ms + ROUND_MS));
}

static void lose(const struct mad_gid *gid, uint64_t ms)
{
	ask_after(gid, ms);
	peers_note_arrival(&peers, gid);
	probe_without_answer(ms);
}

/* --- probes -------------------------------------------------------------- */

FIXTURE(setup, teardown);

TEST(unknown_peer_is_reached_through_umad)
{
	ck_assert_uint_eq(qpn_after(&bob, 0), PEER_BY_UMAD);
	ck_assert(!probes_after(0));
}

TEST(request_begins_a_round_of_probes_on_its_path)
{
	struct mad_path path;
	uint32_t id;

	ask_after(&bob, 0);
	ck_assert(peers_probe(&peers, ID, NOW_NS, &path, &id));
	ck_assert_mem_eq(&path.dgid, &bob, sizeof(bob));
	ck_assert_uint_eq(path.sgid_index, 3);
	ck_assert_uint_eq(id, ID);
	ck_assert_uint_eq(qpn_after(&bob, 0), PEER_BY_UMAD);
}

TEST(unanswered_probe_is_repeated_with_another_id)
{
	uint32_t id;

	ask_after(&bob, 0);
	for (uint32_t i = 0; i < N_PROBES; i++) {
		ck_assert_uint_eq(n_probes_after(i * PROBE_MS, &id), 1);
		ck_assert_uint_eq(id, (uint32_t)(ID + i));
		ck_assert(!probes_after(i * PROBE_MS + PROBE_MS - 1));
	}
}

TEST(the_next_probe_is_due_a_quarter_of_a_second_after_the_last_one)
{
	struct mad_gid carol = stranger(1);

	ck_assert_uint_eq(peers_due_ns(&peers), 0);
	ask_after(&bob, 0);
	ck_assert_uint_eq(peers_due_ns(&peers), NOW_NS);
	ck_assert(probes_after(0));
	ck_assert_uint_eq(peers_due_ns(&peers), NOW_NS + PROBE_MS * MS_NS);
	ask_after(&carol, 10);
	ck_assert_uint_eq(peers_due_ns(&peers), NOW_NS + 10 * MS_NS);
	ck_assert(probes_after(10));
	ck_assert_uint_eq(peers_due_ns(&peers), NOW_NS + PROBE_MS * MS_NS);
}

TEST_LOOP(answer_to_any_probe_of_the_round_proves_the_fast_path, 0, N_PROBES)
{
	uint32_t id;

	ask_after(&bob, 0);
	for (unsigned int i = 0; i < N_PROBES; i++)
		n_probes_after(i * PROBE_MS, &id);
	ck_assert(answered(&bob, (uint32_t)(ID + _i)));
	ck_assert_uint_eq(qpn_after(&bob, 800), PEER_QP1);
	ck_assert(!probes_after(5000));
}

TEST(other_answers_do_not_prove_the_fast_path)
{
	struct mad_gid carol = stranger(1);
	uint32_t id;

	ck_assert(!answered(&bob, ID));
	ask_after(&bob, 0);
	ck_assert(!answered(&bob, ID));
	n_probes_after(0, &id);
	ck_assert(!answered(&bob, ID - 1));
	ck_assert(!answered(&bob, ID + 1));
	ck_assert(!answered(&carol, ID));
	ck_assert_uint_eq(qpn_after(&bob, 1), PEER_BY_UMAD);
}

TEST(further_requests_begin_no_second_round)
{
	ask_after(&bob, 0);
	ck_assert(probes_after(0));
	ask_after(&bob, 1);
	ck_assert(!probes_after(1));
	ck_assert_uint_eq(peers.n[WAY_PROBED], 1);
}

TEST(a_new_peer_does_not_wait_for_the_probes_of_another)
{
	struct mad_gid carol = stranger(1);

	ask_after(&bob, 0);
	ck_assert(probes_after(0));
	ask_after(&carol, 10);
	ck_assert(probes_after(10));
}

/* --- verdicts ------------------------------------------------------------ */

TEST(fast_path_fails_if_a_live_peer_answers_no_probe)
{
	lose(&bob, 0);
	ck_assert_uint_eq(peers.n[WAY_FAILS], 1);
	ck_assert_mem_eq(&peers.lost, &bob, sizeof(bob));
}

TEST(fast_path_to_a_peer_that_sends_nothing_is_not_judged)
{
	ask_after(&bob, 0);
	probe_without_answer(0);
	ck_assert_uint_eq(peers.n[WAY_FAILS], 0);
	ask_after(&bob, ROUND_MS + AVOIDED_MS);
	ck_assert(probes_after(ROUND_MS + AVOIDED_MS));
}

TEST(message_before_the_round_does_not_prove_that_the_peer_exists)
{
	ask_after(&bob, 0);
	peers_note_arrival(&peers, &bob);
	probe_without_answer(0);
	ask_after(&bob, ROUND_MS + AVOIDED_MS);
	probe_without_answer(ROUND_MS + AVOIDED_MS);
	ck_assert_uint_eq(peers.n[WAY_FAILS], 0);
}

TEST(failed_fast_path_is_probed_at_growing_intervals)
{
	uint64_t pause_ms = AVOIDED_MS, ms = 0;

	for (int i = 0; i < N_DOUBLINGS + 3; i++) {
		lose(&bob, ms);
		ms += ROUND_MS;
		ask_after(&bob, ms + pause_ms - 1);
		ck_assert(!probes_after(ms + pause_ms - 1));
		ms += pause_ms;
		if (i < N_DOUBLINGS)
			pause_ms *= 2;
	}
}

TEST(messages_use_umad_while_the_fast_path_is_probed_again)
{
	lose(&bob, 0);
	ask_after(&bob, ROUND_MS + AVOIDED_MS);
	ck_assert(probes_after(ROUND_MS + AVOIDED_MS));
	ck_assert_uint_eq(qpn_after(&bob, ROUND_MS + AVOIDED_MS), PEER_BY_UMAD);
}

TEST(late_answer_proves_the_fast_path)
{
	lose(&bob, 0);
	ck_assert(answered(&bob, ID));
	ck_assert_uint_eq(qpn_after(&bob, 2000), PEER_QP1);
	ck_assert_uint_eq(peers.n[WAY_FAILS], 0);
}

TEST(new_peers_are_probed_rarely_if_only_lost_peers_exist)
{
	struct mad_gid gid;

	for (unsigned int i = 0; i < N_LOST; i++) {
		gid = stranger(i);
		lose(&gid, 0);
	}
	ask_after(&bob, 1000);
	ck_assert(!probes_after(1000));
	ask_after(&bob, AVOIDED_MS);
	ck_assert(probes_after(AVOIDED_MS));
}

TEST(new_peer_is_probed_at_once_if_any_peer_is_reached)
{
	struct mad_gid gid = stranger(N_LOST);

	prove(&gid, 0);
	for (unsigned int i = 0; i < N_LOST; i++) {
		gid = stranger(i);
		lose(&gid, 0);
	}
	ask_after(&bob, 1000);
	ck_assert(probes_after(1000));
}

/* --- ways in doubt ------------------------------------------------------- */

TEST(unanswered_request_casts_doubt_on_the_fast_path)
{
	prove(&bob, 0);
	unanswered_after(&bob, 5000);
	ck_assert_uint_eq(qpn_after(&bob, 5000), PEER_BY_UMAD);
	ck_assert(probes_after(5000));
	ck_assert(answered(&bob, ID));
	ck_assert_uint_eq(qpn_after(&bob, 5001), PEER_QP1);
}

TEST(duplicate_request_of_the_peer_casts_doubt_on_the_fast_path)
{
	prove(&bob, 0);
	peers_missed(&peers, &bob, NOW_NS + 5000 * MS_NS);
	ck_assert_uint_eq(qpn_after(&bob, 5000), PEER_BY_UMAD);
	ck_assert(probes_after(5000));
}

TEST(a_peer_that_was_reached_a_moment_ago_may_have_lost_a_packet)
{
	prove(&bob, 0);
	unanswered_after(&bob, 1999);
	peers_missed(&peers, &bob, NOW_NS + 1999 * MS_NS);
	ck_assert_uint_eq(qpn_after(&bob, 1999), PEER_QP1);
	unanswered_after(&bob, 2000);
	ck_assert_uint_eq(qpn_after(&bob, 2000), PEER_BY_UMAD);
}

TEST(doubt_does_not_advance_the_probes_of_a_failed_path)
{
	lose(&bob, 0);
	unanswered_after(&bob, 2000);
	peers_missed(&peers, &bob, NOW_NS + 2000 * MS_NS);
	ck_assert(!probes_after(2000));
}

/* --- the peer's own queue pair ------------------------------------------- */

TEST(peer_is_answered_at_its_own_queue_pair)
{
	receive_after(&bob, QPN, 0);
	ck_assert_uint_eq(qpn_after(&bob, 0), QPN);
}

TEST(queue_pair_of_a_peer_is_used_for_a_second)
{
	receive_after(&bob, QPN, 0);
	ck_assert_uint_eq(qpn_after(&bob, 1000), QPN);
	ck_assert_uint_eq(qpn_after(&bob, 1001), PEER_BY_UMAD);
}

TEST(each_message_extends_the_use_of_the_queue_pair)
{
	receive_after(&bob, QPN, 0);
	receive_after(&bob, QPN, 900);
	ck_assert_uint_eq(qpn_after(&bob, 1800), QPN);
}

TEST(latest_queue_pair_of_a_peer_is_used)
{
	receive_after(&bob, QPN, 0);
	receive_after(&bob, QPN + 1, 1);
	ck_assert_uint_eq(qpn_after(&bob, 2), QPN + 1);
}

TEST_LOOP(queue_pairs_0_and_1_are_not_stored, 0, PEER_QP1 + 1)
{
	receive_after(&bob, (uint32_t)_i, 0);
	ck_assert_uint_eq(qpn_after(&bob, 0), PEER_BY_UMAD);
	receive_after(&bob, QPN, 1);
	receive_after(&bob, (uint32_t)_i, 2);
	ck_assert_uint_eq(qpn_after(&bob, 3), QPN);
}

/* Its cmportd was killed: that queue pair is gone, or another program has it. */
TEST_LOOP(replaced_peer_is_answered_at_its_next_queue_pair, 0, 2)
{
	receive_after(&bob, QPN, 0);
	peers_note_request(&peers, &bob, QPN);
	ck_assert_uint_eq(qpn_after(&bob, 1), QPN);
	peers_note_request(&peers, &bob, _i ? PEER_QP1 : QPN + 1);
	ck_assert_uint_eq(qpn_after(&bob, 1), PEER_BY_UMAD);
	receive_after(&bob, QPN + 1, 2);
	ck_assert_uint_eq(qpn_after(&bob, 3), QPN + 1);
}

TEST(own_queue_pair_is_avoided_for_ten_seconds_after_a_loss)
{
	receive_after(&bob, QPN, 0);
	unanswered_after(&bob, 0);
	receive_after(&bob, QPN + 1, 9999);
	ck_assert_uint_eq(qpn_after(&bob, 9999), PEER_BY_UMAD);
	receive_after(&bob, QPN, 10000);
	ck_assert_uint_eq(qpn_after(&bob, 10000), QPN);
}

/* A second retransmission must not count as a new one. */
TEST(a_second_unanswered_message_changes_nothing)
{
	receive_after(&bob, QPN, 0);
	unanswered_after(&bob, 0);
	unanswered_after(&bob, 5000);
	receive_after(&bob, QPN, 10000);
	ck_assert_uint_eq(qpn_after(&bob, 10000), QPN);
}

TEST(only_the_peer_that_did_not_answer_is_avoided)
{
	struct mad_gid carol = stranger(1);

	receive_after(&bob, QPN, 0);
	receive_after(&carol, QPN, 0);
	unanswered_after(&carol, 1);
	ck_assert_uint_eq(qpn_after(&bob, 2), QPN);
}

/* --- many peers ---------------------------------------------------------- */

TEST(ten_thousand_peers_are_stored)
{
	struct mad_gid gid;

	for (unsigned int i = 0; i < 10000; i++) {
		gid = stranger(i);
		receive_after(&gid, QPN + i, 0);
	}
	for (unsigned int i = 0; i < 10000; i++) {
		gid = stranger(i);
		ck_assert_uint_eq(qpn_after(&gid, 0), QPN + i);
	}
}

TEST(least_recently_used_peer_is_evicted_first)
{
	struct mad_gid gid = stranger(0);

	prove(&bob, 0);
	prove(&gid, 0);
	for (unsigned int i = 1; i < PEERS_MAX; i++) {
		ask_after(&bob, 0);
		gid = stranger(i);
		receive_after(&gid, QPN, 0);
	}
	gid = stranger(0);
	ck_assert_uint_eq(qpn_after(&bob, 0), PEER_QP1);
	ck_assert_uint_eq(qpn_after(&gid, 0), PEER_BY_UMAD);
	ck_assert_uint_eq(peers.n_peers, PEERS_MAX);
	ck_assert_uint_eq(peers.n[WAY_WORKS], 1);
}

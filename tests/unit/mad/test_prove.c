/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mad/sender.c: a port proves that its own queue pair reaches QP1, before there is a peer.
 * test_peers.c tests the consequences.
 */
#include "mad/sender.h"
#include "mad/talk.h"
#include "tests/unit/fake_verbs.h"
#include "tests/unit/test.h"

#define OWN_V4	 "10.77.0.1"
#define OWN_V6	 "fd00:77::1"
#define V4_INDEX 2

static struct mad_sender *sender;

static void setup(void)
{
	struct ibv_context *context = fake_roce_begin();

	fake_add_gid("fe80::1", 0, IBV_GID_TYPE_ROCE_V2);
	fake_add_gid(OWN_V6, 1, IBV_GID_TYPE_ROCE_V2);
	fake_add_gid(OWN_V4, V4_INDEX, IBV_GID_TYPE_ROCE_V2);
	ck_assert_int_eq(mad_sender_open(context, 1, &sender), 0);
}

static void teardown(void)
{
	mad_sender_close(sender);
}

FIXTURE(setup, teardown);

TEST(a_port_proves_itself_by_an_ipv4_address_and_is_no_peer_in_the_score)
{
	struct mad_gid own = fake_gid_of(OWN_V4);
	uint8_t probe[MAD_BYTES], answer[MAD_BYTES];
	struct mad_sender_score score;
	struct mad_path path;

	ck_assert(mad_sender_prove(sender, &path, probe));
	ck_assert_mem_eq(&path.dgid, &own, sizeof(own));
	ck_assert_uint_eq(path.sgid_index, V4_INDEX);
	ck_assert(mad_sender_probe(sender, &path, probe));
	ck_assert(mad_probe_answer(probe, answer));
	ck_assert(mad_sender_note_arrival(sender, &path.dgid, answer));
	ck_assert(!mad_sender_prove(sender, &path, probe));
	mad_sender_score(sender, &score);
	ck_assert_uint_eq(score.n_reached, 0);
	ck_assert_uint_eq(score.n_probed, 0);
}

TEST(message_that_arrives_through_umad_has_its_gid)
{
	struct mad_gid other = fake_gid_of("10.77.0.2");
	uint8_t sign[MAD_BYTES];
	struct mad_path path;

	ck_assert(mad_sender_prove(sender, &path, sign));
	ck_assert(!mad_sender_note_arrival(sender, &other, sign));
	ck_assert(mad_sender_note_arrival(sender, &path.dgid, sign));
}

TEST(a_port_without_a_gid_of_its_own_proves_nothing)
{
	uint8_t sign[MAD_BYTES];
	struct mad_path path;

	fake.n_gids = 0;
	mad_sender_forget(sender);
	ck_assert(!mad_sender_prove(sender, &path, sign));
}

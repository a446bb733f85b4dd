/* SPDX-License-Identifier: BSD-2-Clause */
/* Port numbers of ids, claimed at cmportd or taken from the lease: lib/id/claims.c. */
#include "lib/id/claims.h"

#include "tests/unit/lib/rig.h"
#include "tests/unit/test.h"

static struct id *id;

static void set_up(void)
{
	rig_begin();
	id = rig_id(RDMA_PS_TCP, ID_IDLE);
	id->claim.local = rig_own(0);
}

FIXTURE(set_up, NULL);

static void bind_to(uint16_t port)
{
	addr_set_port(&id->claim.local, port);
	ck_assert_int_eq(claims_bind(id), 0);
}

TEST(ephemeral_port_comes_from_the_lease)
{
	bind_to(0);
	ck_assert_uint_eq(addr_port(&id->claim.local), FAKE_FIRST_PORT);
	ck_assert_uint_eq(cmportd.n_said, 0);
	ck_assert_uint_eq(id->claim_id, 0);
}

TEST(without_a_lease_cmportd_chooses_the_port)
{
	cmportd.has_no_ports = true;
	bind_to(0);
	ck_assert_uint_eq(addr_port(&id->claim.local), FAKE_FIRST_PORT);
	ck_assert_uint_eq(fake_cmportd_last(PORTD_BIND)->claim.local_port, 0);
}

TEST(port_of_the_program_is_claimed_at_cmportd_with_its_address)
{
	const struct portd_claim *claim;

	bind_to(RIG_PORT);
	claim = &fake_cmportd_last(PORTD_BIND)->claim;
	ck_assert_uint_eq(claim->claim_id, id->claim_id);
	ck_assert_uint_eq(claim->local_port, RIG_PORT);
	ck_assert_uint_eq(claim->local_family, 4);
	ck_assert_mem_eq(claim->local_addr + 12, &id->claim.local.in4.sin_addr, 4);
	ck_assert_uint_eq(claim->peer_family, 0);
}

TEST(refused_port_has_no_claim)
{
	cmportd.bind_err = -EADDRINUSE;
	addr_set_port(&id->claim.local, RIG_PORT);
	ck_assert_int_eq(claims_bind(id), -EADDRINUSE);
	ck_assert_uint_eq(id->claim_id, 0);
	fake_cmportd_last(PORTD_RELEASE); /* the next cmportd may have it */
}

TEST(released_claim_is_released_at_cmportd)
{
	uint32_t claim_id;

	bind_to(RIG_PORT);
	claim_id = id->claim_id;
	claims_release(id);
	ck_assert_uint_eq(fake_cmportd_last(PORTD_RELEASE)->claim.claim_id, claim_id);
}

TEST(released_ephemeral_port_goes_back_to_the_lease)
{
	bind_to(0);
	claims_release(id);
	ck_assert_uint_eq(fake_cmportd_last(PORTD_RELEASE)->claim.local_port, FAKE_FIRST_PORT);
	ck_assert_uint_eq(fake_cmportd_last(PORTD_RELEASE)->claim.claim_id, 0);
}

TEST(releasing_without_a_claim_sends_nothing)
{
	claims_release(id);
	ck_assert_uint_eq(cmportd.n_said, 0);
}

TEST(leased_port_becomes_a_claim_when_it_is_listened_on)
{
	bind_to(0);
	ck_assert_int_eq(claims_listen(id), 0);
	ck_assert_uint_ne(id->claim_id, 0);
	ck_assert_uint_eq(fake_cmportd_last(PORTD_BIND)->claim.local_port, FAKE_FIRST_PORT);
	ck_assert_uint_eq(fake_cmportd_last(PORTD_LISTEN)->claim.claim_id, id->claim_id);
}

static struct id *leased;

/* Another id of this process is bound to the port of a leased one. */
static int bind_to_leased_port(void)
{
	leased = id;
	bind_to(0);
	id = rig_id(RDMA_PS_TCP, ID_IDLE);
	id->claim.local = rig_peer(FAKE_FIRST_PORT);
	return claims_bind(id);
}

TEST(leased_port_becomes_a_claim_before_another_id_is_bound_to_it)
{
	ck_assert_int_eq(bind_to_leased_port(), 0);
	ck_assert_uint_eq(fake_cmportd_count(PORTD_BIND), 2);
	ck_assert_uint_eq(cmportd.said[0].claim.claim_id, leased->claim_id);
	ck_assert_mem_eq(cmportd.said[0].claim.local_addr + 12, &leased->claim.local.in4.sin_addr,
			 4);
	ck_assert_uint_eq(cmportd.said[1].claim.claim_id, id->claim_id);
	ck_assert_uint_ne(id->claim_id, leased->claim_id);
}

TEST(refused_claim_of_a_leased_port_leaves_it_leased)
{
	cmportd.bind_err = -ENOSPC;
	ck_assert_int_eq(bind_to_leased_port(), -ENOSPC);
	ck_assert_uint_eq(leased->claim_id, 0);
	ck_assert_uint_eq(fake_cmportd_count(PORTD_BIND), 1);
	fake_cmportd_last(PORTD_RELEASE);
}

static void destroy_leased(const struct portd_record *record)
{
	if (record->type != PORTD_BIND || !leased)
		return;
	rdma_destroy_id(&leased->pub);
	leased = NULL;
}

TEST(claim_of_a_leased_port_whose_id_is_destroyed_meanwhile_is_released)
{
	cmportd.meanwhile = destroy_leased;
	ck_assert_int_eq(bind_to_leased_port(), 0);
	ck_assert_uint_eq(fake_cmportd_count(PORTD_RELEASE), 2); /* before and after the claim */
	ck_assert_uint_ne(fake_cmportd_last(PORTD_RELEASE)->claim.claim_id, id->claim_id);
}

TEST(listening_ends_the_reuse_of_the_address)
{
	id->claim.reuseaddr = true;
	bind_to(RIG_PORT);
	ck_assert_int_eq(claims_listen(id), 0);
	ck_assert(!id->claim.reuseaddr);
}

TEST(refused_listener_may_still_reuse_the_address)
{
	id->claim.reuseaddr = true;
	cmportd.listen_err = -EADDRINUSE;
	bind_to(RIG_PORT);
	ck_assert_int_eq(claims_listen(id), -EADDRINUSE);
	ck_assert(id->claim.reuseaddr);
}

TEST(next_cmportd_gets_claims_and_listeners)
{
	bind_to(RIG_PORT);
	claims_resend(NULL);
	ck_assert_uint_eq(fake_cmportd_count(PORTD_BIND), 2);
	id->serving = true;
	claims_resend(NULL);
	ck_assert_uint_eq(fake_cmportd_last(PORTD_LISTEN)->claim.claim_id, id->claim_id);
}

TEST(next_cmportd_does_not_get_leased_ports)
{
	bind_to(0);
	claims_resend(NULL);
	ck_assert_uint_eq(cmportd.n_said, 0);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A request that takes long ends the turn of its user, so that the next user is served after one of
 * these, not after a turn's number of them.
 */
#include <errno.h>
#include <rdma/rdma_cma.h>

#include "lib/portd/server/files/state_file.h"
#include "tests/unit/portd/scene.h"
#include "tests/unit/steps.h"
#include "tests/unit/test.h"

#define MALLORY	    61001
#define MALLORYS    2 /* mallory among the clients: after Alice and Bob */
#define OTHER_USERS 500
#define SHARED	    7175
#define N_SHARERS   640

static struct rig_client mallory;

static void set_up(void)
{
	scene_set_up();
	rig_client_as_user(MALLORY);
	rig_join(&mallory);
	rig_pass(1000);
}

static bool turn_is_over(void)
{
	return rig_server()->client[MALLORYS]->user->turn >= USER_TURN;
}

FIXTURE(set_up, scene_tear_down);

/* --- requests -------------------------------------------------------------- */

static const struct {
	struct portd_record record;
	int error;
} requests[] = {
	/* The kernel is queried for all of its devices. */
	{ { .type = PORTD_OPEN_PORT, .open_port = { .port_num = 1, .device = "none" } }, ENODEV },
	{ { .type = PORTD_OPEN_PORT, .open_port = { .port_num = 1, .device = RIG_DEVICE } }, 0 },
	{ { .type = PORTD_LEASE_PORTS, .lease_ports = { .ps = RDMA_PS_TCP, .count = 1024 } }, 0 },
	{ { .type = PORTD_LEASE_PORTS, .lease_ports = { .ps = 1, .count = 1 } }, EPROTONOSUPPORT },
	{ { .type = PORTD_LEASE_IDS }, 0 },
	{ { .type = PORTD_STAT }, 0 },
	{ { .type = PORTD_LISTEN, .claim = { .claim_id = 77 } }, ENOENT },
};

TEST_LOOP(a_request_that_takes_long_ends_the_turn, 0, sizeof(requests) / sizeof(requests[0]))
{
	ck_assert_int_eq(rig_ask(&mallory, &requests[_i].record), requests[_i].error);
	ck_assert(turn_is_over());
}

TEST(bind_and_release_do_not_end_the_turn)
{
	struct portd_record record = { .type = PORTD_BIND, .claim = rig_claim(1, "0.0.0.0") };

	ck_assert_int_eq(rig_ask(&mallory, &record), 0);
	ck_assert(!turn_is_over());
	record.type = PORTD_RELEASE;
	ck_assert_int_eq(rig_ask(&mallory, &record), 0);
	ck_assert(!turn_is_over());
}

TEST(failed_search_for_ids_ends_the_turn)
{
	struct portd_record lease = { .type = PORTD_LEASE_IDS };
	unsigned int i;

	for (i = 0; i < ID_BLOCKS; i++)
		rig_server()->block_owner[i] = 0;
	ck_assert_int_eq(rig_ask(&mallory, &lease), ENOSPC);
	ck_assert(turn_is_over());
}

TEST(disconnect_ends_the_turn)
{
	const struct user *user = rig_server()->client[MALLORYS]->user;

	rig_leave(&mallory);
	ck_assert_uint_ge(user->turn, USER_TURN);
}

/* --- messages --------------------------------------------------------------- */

static void send_req(void)
{
	scene_sends(&mallory, scene_req(&mallory, 1));
}

/* The GID table is read again. */
static void send_with_unknown_gid(void)
{
	const struct cm_msg req = scene_req(&mallory, 1);
	struct mad_path path = rig_peer(SCENE_PEER);

	path.sgid_index = RIG_NO_GID;
	rig_move_gid(1);
	rig_send(&mallory, &path, &req);
}

static void send_with_foreign_ids(void)
{
	struct cm_msg req = scene_req(&mallory, 1);

	req.req.local_comm_id = scene_alice.first + 1;
	scene_sends(&mallory, req);
}

static void send_without_connection(void)
{
	scene_sends(&mallory, talk_msg_of(CM_ATTR_DREP, mallory.first + 1, 0x701));
}

/* The kernel is queried for the link address. */
static void send_to_unknown_host(void)
{
	rig_set_hops_ready(false);
	send_req();
}

/* Making one may be a firmware command. */
static void send_to_new_host(void)
{
	scene_connect(&mallory, 1);
	rig_set_sender_ready(false);
	scene_sends(&mallory, talk_msg_of(CM_ATTR_DREQ, mallory.first + 1, 0x701));
}

static const struct {
	void (*say)(void);
	bool is_long;
} messages[] = {
	{ send_req, false },
	{ send_with_unknown_gid, true },
	{ send_with_foreign_ids, true },
	{ send_without_connection, true },
	{ send_to_unknown_host, true },
	{ send_to_new_host, true },
};

TEST_LOOP(a_message_that_takes_long_ends_the_turn, 0, sizeof(messages) / sizeof(messages[0]))
{
	messages[_i].say();
	ck_assert(turn_is_over() == messages[_i].is_long);
}

/* --- fast requests ---------------------------------------------------------- */

static void ask_for_quotas(void)
{
	struct portd_record stat = { .type = PORTD_STAT, .stat = { .pid = PORTD_STAT_QUOTAS } };

	rig_ask(&mallory, &stat);
}

/* Each instruction costs a system call. */
TEST(query_of_own_quotas_takes_no_longer_beside_other_users)
{
	static struct user others[OTHER_USERS];
	unsigned long few, many;
	unsigned int i;

	ask_for_quotas();
	rig_pass(1000);
	few = steps_of(ask_for_quotas);
	for (i = 0; i < OTHER_USERS; i++) {
		user_init(&others[i], 5000 + i);
		list_append(&rig_server()->users.all, &others[i].link);
	}
	many = steps_of(ask_for_quotas);
	for (i = 0; i < OTHER_USERS; i++)
		list_remove(&others[i].link);
	ck_assert_uint_le(many, few + few / 10);
}

static int share_port(uint32_t n, enum portd_type type)
{
	struct portd_record record = { .type = type, .claim = rig_claim(100 + n, SCENE_ADDR) };

	record.claim.local_addr[14] = (uint8_t)(n >> 8);
	record.claim.local_addr[15] = (uint8_t)n;
	record.claim.local_port = SHARED;
	record.claim.reuseaddr = 1;
	return rig_ask(&mallory, &record);
}

/* A request is compared with each of them. */
TEST(listeners_of_a_port_are_limited)
{
	uint32_t n;

	for (n = 1; n <= N_SHARERS; n++) {
		ck_assert_int_eq(share_port(n, PORTD_BIND), 0);
		ck_assert_int_eq(share_port(n, PORTD_LISTEN), n <= PORTS_LISTEN_MAX ? 0 : ENOSPC);
	}
}

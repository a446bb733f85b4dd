/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What requests cost the one who sends them, so that he cannot take more of cmportd's time by those
 * that take long than by messages. Mallory is a user.
 */
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "mad/cma_hdr.h"
#include "lib/portd/proto/lease.h"
#include "lib/portd/server/ports.h"
#include "lib/portd/server/state_file.h"
#include "tests/unit/portd/scene.h"
#include "tests/unit/steps.h"
#include "tests/unit/test.h"

#define MALLORY		       1001
#define N_CLIENTS	       8
#define OTHER_USERS	       500
#define MALLORYS	       2 /* mallory[0] among the clients: after Alice and Bob */
#define ID_PRICE_LEAST	       100
#define NAME_PRICE_LEAST       4
#define FALSE_PAGE_PRICE_LEAST 100

static struct rig_client mallory[N_CLIENTS];

static void set_up(void)
{
	unsigned int i;

	scene_set_up();
	rig_come_as_user(MALLORY);
	for (i = 0; i < N_CLIENTS; i++)
		rig_join(&mallory[i]);
}

static const struct portd_record cheap = { .type = PORTD_RELEASE };

static double cost_of(struct rig_client *client, const struct portd_record *record, int error)
{
	double before;

	rig_pass(1000);
	rig_ask(client, &cheap); /* has its tokens counted */
	before = rig_server()->client[MALLORYS]->rate.tokens;
	ck_assert_int_eq(rig_ask(client, record), error);
	return before - rig_server()->client[MALLORYS]->rate.tokens;
}

FIXTURE(set_up, scene_tear_down);

/* The GID table is read again. */
TEST(to_name_a_gid_index_that_is_not_in_use_is_dear)
{
	struct cm_msg req = scene_req(&mallory[0], 1);
	struct mad_path path = rig_peer(SCENE_PEER);
	double before;

	path.sgid_index = RIG_NO_GID;
	rig_gid_moves(1);
	rig_pass(1000);
	rig_ask(&mallory[0], &cheap);
	before = rig_server()->client[MALLORYS]->rate.tokens;
	rig_send(&mallory[0], &path, &req);
	ck_assert_str_eq(scene_wire(), "");
	ck_assert(before - rig_server()->client[MALLORYS]->rate.tokens >= WRONG_PRICE);
}

/* It makes the kernel tell all of its devices. */
TEST(to_ask_for_a_device_that_is_not_there_is_dear)
{
	struct portd_record open = { .type = PORTD_OPEN_PORT,
				     .open_port = { .port_num = 1, .device = "none" } };

	ck_assert(cost_of(&mallory[0], &open, ENODEV) > 1000);
}

TEST(to_ask_for_many_ports_is_dear)
{
	struct portd_record lease = { .type = PORTD_LEASE_PORTS,
				      .lease_ports = { .ps = 0x106, .count = 1024 } };

	ck_assert(cost_of(&mallory[0], &lease, 0) > 50);
}

TEST(to_ask_all_clients_how_things_stand_is_as_dear_as_to_ask_each)
{
	struct portd_record stat = { .type = PORTD_STAT };

	ck_assert(cost_of(&mallory[0], &stat, 0) >= N_CLIENTS);
}

/* --- names of devices ----------------------------------------------------- */

static const struct portd_record open_again = {
	.type = PORTD_OPEN_PORT, .open_port = { .port_num = 1, .device = RIG_DEVICE }
};

TEST(to_open_a_port_again_costs_as_much_as_to_read_its_name)
{
	uint64_t before = rig_server()->n_names_read;
	double cost = cost_of(&mallory[0], &open_again, 0);

	ck_assert_uint_eq(rig_server()->n_names_read - before, 1);
	ck_assert(cost >= 1 + NAME_PRICE_LEAST);
}

TEST(a_turn_reads_few_names_for_a_user)
{
	struct portd_datagram out;
	uint64_t before;
	unsigned int i, n = 0;

	rig_pass(1000);
	for (i = 0; i < N_CLIENTS; i++) {
		out.bytes = 0;
		portd_put(&out, &open_again);
		while (rig_put(mallory[i].control, out.data, out.bytes, NULL, 0))
			n++;
	}
	before = rig_server()->n_names_read;
	rig_turn();
	printf("%u requests: a turn reads %u names\n", n,
	       (unsigned int)(rig_server()->n_names_read - before));
	ck_assert_uint_gt(n, 2 * USER_TURN);
	ck_assert_uint_le(rig_server()->n_names_read - before,
			  USER_TURN / NAME_PRICE_LEAST + N_CLIENTS);
}

/* --- rows ----------------------------------------------------------------- */

TEST(to_ask_how_things_stand_costs_more_if_there_is_more_to_tell)
{
	struct portd_record stat = { .type = PORTD_STAT, .stat = { .pid = 1 } };
	double before = cost_of(&mallory[0], &stat, 0);
	unsigned int i;

	for (i = 0; i < PORTD_N_COUNTERS * CM_TALLY_KINDS; i++)
		rig_server()->host_port[0]->passed[i / CM_TALLY_KINDS][i % CM_TALLY_KINDS] = 1;
	ck_assert(cost_of(&mallory[0], &stat, 0) >= before + i / 8);
}

/* Return: what it costs to tell so many rows, with so many in a datagram. */
static double cost_of_rows(unsigned int n, unsigned int each)
{
	const struct portd_record row = { .type = PORTD_STAT_ID };
	struct portd_datagram out;
	double before;
	unsigned int i;

	rig_pass(1000);
	rig_ask(&mallory[0], &cheap);
	before = rig_server()->client[MALLORYS]->rate.tokens;
	for (; n; n -= each) {
		out.bytes = 0;
		for (i = 0; i < each; i++)
			portd_put(&out, &row);
		ck_assert(rig_put(mallory[0].data, out.data, out.bytes, NULL, 0));
	}
	rig_settle();
	return before - rig_server()->client[MALLORYS]->rate.tokens;
}

TEST(a_datagram_of_one_row_costs_as_much_as_one_of_a_message)
{
	double one_by_one = cost_of_rows(64, 1), at_once = cost_of_rows(64, 64);

	printf("64 rows one by one cost %.0f, at once %.0f\n", one_by_one, at_once);
	ck_assert(one_by_one >= 64);
	ck_assert(at_once < 8);
}

static void ask_for_quotas(void)
{
	struct portd_record stat = { .type = PORTD_STAT, .stat = { .pid = PORTD_STAT_QUOTAS } };

	rig_ask(&mallory[0], &stat);
}

/* Each instruction is a system call. */
TIME_LIMIT_S(60);

TEST(to_ask_for_ones_own_quotas_takes_no_longer_beside_other_users)
{
	static struct user others[OTHER_USERS];
	unsigned long few, many;
	unsigned int i;

	rig_pass(1000);
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
	printf("%lu instructions, beside %u users %lu\n", few, OTHER_USERS, many);
	ck_assert_uint_le(many, few + few / 10);
}

TIME_LIMIT_S(-1);

TEST(to_ask_how_things_stand_costs_more_if_there_are_more_clients_to_look_through)
{
	struct portd_record stat = { .type = PORTD_STAT, .stat = { .pid = 1 } };
	double few = cost_of(&mallory[0], &stat, 0), many;

	rig_server()->n_clients += 3000;
	many = cost_of(&mallory[0], &stat, 0);
	rig_server()->n_clients -= 3000;
	ck_assert(many >= few + 3000 / 64.0);
}

/* --- leases of ports ------------------------------------------------------- */

static const struct portd_record lease_one = { .type = PORTD_LEASE_PORTS,
					       .lease_ports = { .ps = 0x106, .count = 1 } };

static struct lease_page *page_of(const struct rig_client *client)
{
	void *page = mmap(NULL, LEASE_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			  client->page_fd, 0);

	ck_assert(page != MAP_FAILED);
	return page;
}

/* All marks of ports are looked through for it. */
TEST(to_leave_with_a_false_page_is_dear)
{
	const struct user *user;
	double before;

	ck_assert_int_eq(rig_ask(&mallory[1], &lease_one), 0);
	memset(page_of(&mallory[1])->word, 0, LEASE_WORDS * sizeof(uint32_t));
	rig_pass(1000);
	rig_ask(&mallory[0], &cheap);
	user = rig_server()->client[MALLORYS]->user;
	before = user->rate.tokens;
	rig_leave(&mallory[1]);
	ck_assert(before - user->rate.tokens >= FALSE_PAGE_PRICE_LEAST);
}

/* Each lease is looked at: its client may not need it. These say that they need all. */
TEST(to_ask_for_a_port_where_all_are_leased_is_dear)
{
	struct portd_record lease = { .type = PORTD_LEASE_PORTS,
				      .lease_ports = { .ps = 0x106, .count = 1024 } };
	uint32_t *rates = rig_server()->options.quotas.is;
	struct lease_page *page;
	unsigned int i, n = 0;

	rates[QUOTA_USER_PORTS] = rates[QUOTA_CLIENT_RATE] = rates[QUOTA_USER_RATE] = 1000000;
	rig_pass(1000);
	for (i = 1; i < N_CLIENTS; i++) {
		page = page_of(&mallory[i]);
		while (rig_ask(&mallory[i], &lease) == 0 && mallory[i].reply.count) {
			n += mallory[i].reply.count;
			memset(page->word, 0xff, sizeof(page->word));
		}
	}
	ck_assert_uint_gt(n, 20000);
	ck_assert(cost_of(&mallory[0], &lease_one, EDQUOT) >= n / 64);
	ck_assert_uint_eq(mallory[0].reply.count, 0);
}

/* --- claims of one port ---------------------------------------------------- */

#define SHARED	  7175
#define N_SHARERS 640

static struct portd_record sharer(uint32_t n, bool listens)
{
	struct portd_record claim = { .type = listens ? PORTD_LISTEN : PORTD_BIND,
				      .claim = rig_claim(100 + n, SCENE_ADDR) };

	claim.claim.local_addr[14] = (uint8_t)(n >> 8);
	claim.claim.local_addr[15] = (uint8_t)n;
	claim.claim.local_port = SHARED;
	claim.claim.reuseaddr = 1;
	return claim;
}

static void share_port(struct rig_client *client, uint32_t n)
{
	struct portd_record bind;

	for (; n; n--) {
		bind = sharer(n, false);
		if (n % 100 == 0)
			rig_pass(1000);
		ck_assert_int_eq(rig_ask(client, &bind), 0);
	}
}

TEST(to_share_a_port_is_dear_if_many_do)
{
	struct portd_record bind = sharer(0, false);

	share_port(&mallory[1], N_SHARERS);
	ck_assert(cost_of(&mallory[0], &bind, 0) >= N_SHARERS / 64);
	bind.type = PORTD_LISTEN;
	ck_assert(cost_of(&mallory[0], &bind, 0) >= N_SHARERS / 64);
}

static struct cm_msg req_from_shared(struct rig_client *client)
{
	struct cma_hdr hdr = { .ip_version = 6, .src_port = SHARED };
	const struct mad_gid gid = rig_gid();
	struct cm_msg req = scene_req(client, 1);

	memcpy(hdr.src_addr, gid.raw, sizeof(gid.raw));
	wire_encode(&cma_hdr_layout, &hdr, req.req.private_data);
	return req;
}

/* Its own claim is the oldest. */
TEST(to_send_from_a_port_is_dear_if_many_share_it)
{
	struct cm_msg req = req_from_shared(&mallory[0]);
	double before;

	share_port(&mallory[0], 1);
	share_port(&mallory[1], N_SHARERS);
	rig_pass(1000);
	rig_ask(&mallory[0], &cheap);
	before = rig_server()->client[MALLORYS]->rate.tokens;
	scene_sends(&mallory[0], req);
	ck_assert_str_eq(scene_wire(), "REQ");
	ck_assert(before - rig_server()->client[MALLORYS]->rate.tokens >= N_SHARERS / 64);
}

/* --- of requests of other hosts -------------------------------------------- */

static uint64_t looks_for_requests(unsigned int n)
{
	struct ports *ports = rig_server()->home->ports;
	const uint64_t before = ports_n_looked_at(ports);
	struct cm_msg req = scene_peer_req(0x701, "10.1.0.1");

	req.req.service_id = cma_service_id(RDMA_PS_TCP, SHARED);
	for (; n; n--) {
		req.req.local_comm_id++;
		scene_said(req);
	}
	return ports_n_looked_at(ports) - before;
}

TEST(a_request_is_compared_with_listeners_only)
{
	const struct portd_record listen = sharer(1, true);

	share_port(&mallory[0], N_SHARERS);
	ck_assert_uint_eq(looks_for_requests(1), 0);
	ck_assert_int_eq(rig_ask(&mallory[0], &listen), 0);
	ck_assert_uint_eq(looks_for_requests(1), 1);
}

TEST(a_port_has_so_many_listeners)
{
	struct portd_record listen;
	uint32_t n;

	share_port(&mallory[0], N_SHARERS);
	for (n = 1; n <= N_SHARERS; n++) {
		listen = sharer(n, true);
		if (n % 100 == 0)
			rig_pass(1000);
		ck_assert_int_eq(rig_ask(&mallory[0], &listen), n <= PORTS_LISTEN_MAX ? 0 : ENOSPC);
	}
	ck_assert_uint_eq(looks_for_requests(1), PORTS_LISTEN_MAX);
	rig_leave(&mallory[0]);
	ck_assert_uint_eq(looks_for_requests(1), 0);
}

TEST(requests_beyond_the_rate_of_their_host_cost_no_search)
{
	const struct portd_record listen = sharer(1, true);

	rig_server()->options.quotas.is[QUOTA_PEER_RATE] = 10;
	share_port(&mallory[0], 1);
	ck_assert_int_eq(rig_ask(&mallory[0], &listen), 0);
	ck_assert_uint_eq(looks_for_requests(100), 10);
}

/* --- searches for ids ------------------------------------------------------ */

static void use_up_ids(unsigned int n)
{
	const struct server *server = rig_server();
	uint16_t next = state_file_next_block(server->state_file);
	unsigned int i;

	for (i = 0; i < n; i++)
		rig_server()->block_owner[(uint16_t)(next + i)] = 0;
}

TEST(to_search_for_ids_is_dear_if_there_are_none)
{
	struct portd_record lease = { .type = PORTD_LEASE_IDS };

	use_up_ids(ID_BLOCKS);
	ck_assert(cost_of(&mallory[0], &lease, ENOSPC) >= ID_PRICE_LEAST);
}

TEST(to_search_for_ids_is_dear_if_there_are_few)
{
	struct portd_record lease = { .type = PORTD_LEASE_IDS };

	use_up_ids(ID_BLOCKS - 20); /* the last of these are held by clients already */
	ck_assert(cost_of(&mallory[0], &lease, 0) >= ID_PRICE_LEAST);
	ck_assert(cost_of(&mallory[0], &lease, 0) < ID_PRICE_LEAST);
}

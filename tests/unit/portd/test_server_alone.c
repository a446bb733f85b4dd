/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A cmportd for one client: it accepts no other, leaves no file, and ends when the peers have the
 * messages that end the client's connections.
 */
#include <errno.h>

#include "lib/net/netlink.h"
#include "lib/net/port_space.h"
#include "tests/unit/portd/lives.h"
#include "tests/unit/test.h"
#include "lib/portd/server/server.h"

#define bob	    (&scene_bob)

#define GIVES_UP_MS 2000 /* for peers that do not answer */

static unsigned int n_fds;

static void setup(void)
{
	struct port_limits limits;

	port_limits_reread(&limits); /* it keeps two descriptors open */
	n_fds = rig_n_fds();
	rig_set_up_alone();
	rig_join(bob);
}

FIXTURE(setup, NULL);

TEST_LOOP(server_ends_after_its_last_messages, 0, LIFE_N)
{
	life[_i].come_so_far();
	ck_assert(!server_is_over(rig_server()));
	scene_wire();
	rig_leave(bob);
	ck_assert_str_eq(scene_wire(), life[_i].end);
	rig_pass(GIVES_UP_MS);
	ck_assert(server_is_over(rig_server()));
	rig_tear_down();
	net_after_fork(); /* of the process */
	ck_assert_uint_eq(rig_n_fds(), n_fds);
}

TEST(server_of_one_client_has_no_listening_socket)
{
	ck_assert_int_eq(rig_server()->listening.fd, -1);
	ck_assert(rig_server()->has_one_client);
	rig_leave(bob);
	ck_assert(server_is_over(rig_server()));
	rig_tear_down();
}

TEST(server_of_one_client_ends_all_its_connections)
{
	uint32_t n;

	for (n = 1; n <= 2 * SEND_BATCH; n++)
		scene_connect(bob, n);
	scene_wire();
	rig_leave(bob);
	for (n = 0; n < 2 * SEND_BATCH; n++)
		ck_assert(rig_sent(&(struct rig_sent){ 0 }, &(struct cm_msg){ 0 }));
	ck_assert(!server_is_over(rig_server()));
	rig_pass(GIVES_UP_MS);
	ck_assert(server_is_over(rig_server()));
	rig_tear_down();
}

TEST(server_of_one_client_lends_consecutive_blocks)
{
	struct portd_record record = { .type = PORTD_LEASE_IDS };

	ck_assert_int_eq(rig_ask(bob, &record), 0);
	ck_assert_uint_eq(bob->reply.first, (bob->first + (1u << ID_BLOCK_SHIFT)));
	rig_leave(bob);
	rig_tear_down();
}

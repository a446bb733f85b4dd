/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ports while the clients of a previous cmportd may resume: each is reserved for its holder. Bob,
 * Carol and the scene's Alice are clients of the same process; Carol resumes first.
 */
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/portd/server/files/state_file.h"
#include "tests/unit/portd/folder.h"
#include "tests/unit/portd/scene.h"
#include "tests/unit/test.h"

#define bob	      (&scene_bob)
#define GRACE_MS      3000
#define GRACE_MOST_MS 10000
#define N_LATE	      4
#define PAGE_WORD     7 /* index of an entry of a page */

static struct rig_client carol, late[N_LATE];

static void set_up(void)
{
	folder_make();
	rig_set_up(socket_path);
	rig_join(bob);
	rig_join(&carol);
}

FIXTURE(set_up, rig_tear_down);

static void restart(void)
{
	rig_tear_down();
	rig_set_up(socket_path);
	rig_settle();
}

static void show_page(struct rig_client *client)
{
	const int page_fd = client->page_fd;

	client->control = rig_dial();
	ck_assert_int_eq(rig_resume(client, page_fd), 0);
	client->page_fd = page_fd;
}

static void resume_client(struct rig_client *client)
{
	show_page(client);
	ck_assert_int_eq(rig_hold(client), 0);
}

static void send_resumed(struct rig_client *client)
{
	struct portd_record record = { .type = PORTD_RESUMED };

	ck_assert_int_eq(rig_ask(client, &record), 0);
}

/* Return: as rig_ask(): -1 without a reply. */
static int bind_port(struct rig_client *client, const char *addr)
{
	struct portd_record record = { .type = PORTD_BIND, .claim = rig_claim(1, addr) };

	record.claim.reuseaddr = 1;
	return rig_ask(client, &record);
}

static void release_port(struct rig_client *client)
{
	struct portd_record record = { .type = PORTD_RELEASE, .claim = { .claim_id = 1 } };

	rig_ask(client, &record);
}

TEST(a_port_is_reserved_for_its_holder)
{
	ck_assert_int_eq(rig_listen(bob, SCENE_ADDR), 0);
	restart();
	resume_client(&carol);
	ck_assert_int_eq(bind_port(&carol, SCENE_ADDR), -1);
	resume_client(bob);
	ck_assert_int_eq(rig_listen(bob, SCENE_ADDR), 0);
	rig_pass(GRACE_MS);
	ck_assert_int_eq(rig_answer(&carol), EADDRINUSE);
}

TEST(a_port_is_reserved_for_a_holder_that_might_have_got_the_last_block)
{
	struct state_file *file = rig_server()->state_file;

	state_file_id_block(file, (uint16_t)(UINT16_MAX - 1 - state_file_next_block(file)));
	rig_join(&late[0]);
	ck_assert_int_eq(rig_listen(&late[0], SCENE_ADDR), 0);
	restart();
	resume_client(&carol);
	ck_assert_int_eq(bind_port(&carol, SCENE_ADDR), -1);
}

TEST(reservation_survives_a_second_restart)
{
	ck_assert_int_eq(rig_listen(bob, SCENE_ADDR), 0);
	restart();
	restart();
	resume_client(&carol);
	ck_assert_int_eq(bind_port(&carol, SCENE_ADDR), -1);
}

TEST(port_of_a_holder_that_does_not_resume_is_freed)
{
	ck_assert_int_eq(rig_listen(bob, SCENE_ADDR), 0);
	restart();
	resume_client(&carol);
	ck_assert_int_eq(bind_port(&carol, SCENE_ADDR), -1);
	rig_pass(GRACE_MS);
	ck_assert_int_eq(rig_answer(&carol), 0);
}

TEST(holder_may_resume_as_long_after_another_one)
{
	ck_assert_int_eq(rig_listen(bob, SCENE_ADDR), 0);
	rig_join(&late[0]);
	restart();
	resume_client(&carol);
	ck_assert_int_eq(bind_port(&carol, SCENE_ADDR), -1);
	rig_pass(GRACE_MS - 1);
	resume_client(&late[0]);
	send_resumed(&late[0]);
	rig_pass(GRACE_MS - 1);
	resume_client(bob);
	ck_assert_int_eq(rig_listen(bob, SCENE_ADDR), 0);
}

TEST(others_wait_for_holders_for_ten_seconds_at_most)
{
	unsigned int i;

	ck_assert_int_eq(rig_listen(bob, SCENE_ADDR), 0);
	for (i = 0; i < N_LATE; i++)
		rig_join(&late[i]);
	restart();
	resume_client(&carol);
	ck_assert_int_eq(bind_port(&carol, SCENE_ADDR), -1);
	for (i = 0; i < N_LATE; i++) {
		rig_pass(GRACE_MOST_MS / (N_LATE + 1));
		resume_client(&late[i]);
		send_resumed(&late[i]);
	}
	rig_pass(GRACE_MOST_MS / (N_LATE + 1) - 1);
	ck_assert_int_eq(rig_answer(&carol), -1);
	rig_pass(1);
	ck_assert_int_eq(rig_answer(&carol), 0);
}

TEST(time_that_cmportd_takes_to_begin_is_not_the_holders)
{
	ck_assert_int_eq(rig_listen(bob, SCENE_ADDR), 0);
	rig_start_takes(GRACE_MS);
	restart();
	resume_client(&carol);
	ck_assert_int_eq(bind_port(&carol, SCENE_ADDR), -1);
}

TEST(released_port_is_not_reserved)
{
	ck_assert_int_eq(bind_port(bob, SCENE_ADDR), 0);
	release_port(bob);
	restart();
	resume_client(&carol);
	ck_assert_int_eq(bind_port(&carol, SCENE_ADDR), 0);
}

TEST(unresumed_port_is_free_after_the_next_restart)
{
	ck_assert_int_eq(bind_port(bob, SCENE_ADDR), 0);
	restart();
	resume_client(bob);
	send_resumed(bob);
	resume_client(&carol);
	send_resumed(&carol);
	rig_pass(GRACE_MS);
	restart();
	resume_client(&carol);
	ck_assert_int_eq(bind_port(&carol, SCENE_ADDR), 0);
}

TEST(port_of_several_holders_is_not_reserved)
{
	ck_assert_int_eq(bind_port(bob, SCENE_ADDR), 0);
	ck_assert_int_eq(bind_port(&carol, SCENE_ADDR), 0);
	restart();
	resume_client(&carol);
	ck_assert_int_eq(bind_port(&carol, SCENE_ADDR), 0);
	resume_client(bob);
	ck_assert_int_eq(bind_port(bob, SCENE_ADDR), 0);
}

/* Return: the port. */
static uint16_t lease(struct rig_client *client)
{
	struct portd_record record = { .type = PORTD_LEASE_PORTS,
				       .lease_ports = { .ps = RDMA_PS_TCP, .count = 1 } };

	ck_assert_int_eq(rig_ask(client, &record), 0);
	return client->reply.port;
}

static bool has(const struct rig_client *client, uint16_t port)
{
	unsigned int i;

	for (i = 0; i < rig_server()->n_clients; i++)
		if (rig_server()->client[i] &&
		    rig_server()->block_owner[client->first >> ID_BLOCK_SHIFT] == i)
			return ports_has(rig_server()->home->ports, (uint16_t)i, RDMA_PS_TCP, port);
	return false;
}

TEST(a_leased_port_is_reserved_too)
{
	const uint16_t port = lease(bob);
	const uint32_t word = lease_word(RDMA_PS_TCP, port, LEASE_USED);
	const off_t at = PAGE_WORD * sizeof(word);

	ck_assert_int_eq(pwrite(carol.page_fd, &word, sizeof(word), at), sizeof(word));
	restart();
	resume_client(&carol);
	ck_assert(!has(&carol, port));
	resume_client(bob);
	ck_assert(has(bob, port));
}

/* A client without comm ids resumes the leases of its page last. */
TEST(leased_port_is_reserved_for_a_client_without_ids)
{
	const uint16_t port = lease(bob);
	const uint32_t word = lease_word(RDMA_PS_TCP, port, LEASE_USED);
	const off_t at = PAGE_WORD * sizeof(word);

	ck_assert_int_eq(pwrite(carol.page_fd, &word, sizeof(word), at), sizeof(word));
	restart();
	show_page(&carol);
	send_resumed(&carol);
	resume_client(bob);
	ck_assert(has(bob, port));
}

TEST(no_reserved_port_is_leased_to_others)
{
	uint16_t port = lease(bob);
	unsigned int i;

	restart();
	resume_client(&carol);
	for (i = 0; i < 64; i++)
		ck_assert_uint_ne(lease(&carol), port);
	resume_client(bob);
	ck_assert(has(bob, port));
}

static unsigned int n_looks;

unsigned int __real_state_file_pending(struct state_file *file);
unsigned int __wrap_state_file_pending(struct state_file *file);

unsigned int __wrap_state_file_pending(struct state_file *file)
{
	n_looks++;
	return __real_state_file_pending(file);
}

/* Each check may pass all connections of the previous cmportd. */
TEST(expected_client_is_looked_up_once_per_turn)
{
	const struct portd_record open = { .type = PORTD_OPEN_PORT,
					   .open_port = { .port_num = 1, .device = RIG_DEVICE } };
	const struct mad_path stranger = rig_peer(1);
	struct cm_msg msg;
	uint8_t mad[MAD_BYTES];
	uint64_t turn;
	unsigned int i;

	restart();
	resume_client(bob);
	ck_assert_int_eq(rig_ask(bob, &open), 0);
	cm_msg_init(&msg, CM_ATTR_DREQ, 1);
	msg.dreq.local_comm_id = msg.dreq.remote_comm_id = 1;
	cm_msg_encode(&msg, mad);
	for (i = 0; i < 100; i++)
		rig_arrive_bytes(1, &stranger, mad);
	turn = rig_server()->turn_no;
	n_looks = 0;
	rig_settle();
	ck_assert_uint_gt(n_looks, 0);
	ck_assert_uint_le(n_looks, rig_server()->turn_no - turn);
}

static void spoil(void)
{
	char path[256];
	FILE *file;
	int i;

	snprintf(path, sizeof(path), "%s.ports", socket_path);
	file = fopen(path, "r+");
	ck_assert_ptr_nonnull(file);
	for (i = 0; i < 4 * 65536 * 2; i++)
		fputc(i * 7, file);
	fclose(file);
}

/* It delays others, but has no other effect. */
TEST(any_content_of_the_file_is_harmless)
{
	ck_assert_int_eq(bind_port(bob, SCENE_ADDR), 0);
	rig_tear_down();
	spoil();
	rig_set_up(socket_path);
	rig_settle();
	resume_client(bob);
	ck_assert_int_eq(bind_port(bob, SCENE_ADDR), -1);
	rig_pass(GRACE_MS);
	ck_assert_int_eq(rig_answer(bob), 0);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cost of a client: memory, and time of others. The results are printed; the limits are wide
 * enough for a slow machine.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/portd/scene.h"
#include "tests/unit/test.h"

#define alice		  (&scene_alice)
#define bob		  (&scene_bob)

#define N_CLIENTS	  1000
#define CLIENT_BYTES_MAX  4096 /* of heap, without connections */
#define N_TRACKED	  10000
#define TRACKED_BYTES_MAX 256
#define N_ROUNDS	  40
#define N_MESSAGES	  64
#define SLOWER_MAX	  3

static struct rig_client crowd[N_CLIENTS];

static size_t heap_bytes(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

static void gather(void)
{
	unsigned int i;

	for (i = 0; i < N_CLIENTS; i++)
		rig_join(&crowd[i]);
	ck_assert_uint_eq(rig_server()->n_clients, N_CLIENTS + 2);
}

static size_t page_bytes(void)
{
	struct stat stat;
	size_t bytes = 0;
	unsigned int i;

	for (i = 0; i < N_CLIENTS; i++) {
		ck_assert_int_eq(fstat(crowd[i].page_fd, &stat), 0);
		bytes += (size_t)stat.st_blocks * 512;
	}
	return bytes;
}

/* Not with the allocator of a sanitizer, which is not measured. */
static bool can_count(void)
{
	size_t before = heap_bytes();
	void *piece = malloc(100000);
	bool counts = piece && heap_bytes() > before;

	free(piece);
	if (!counts)
		printf("skipped: this allocator does not count\n");
	return counts;
}

FIXTURE(scene_set_up, scene_tear_down);
TEST(a_thousand_clients_take_little_memory)
{
	size_t before = heap_bytes(), bytes;

	if (!can_count())
		return;
	gather();
	bytes = heap_bytes() - before;
	printf("%u clients: %zu bytes each, and %zu of their page\n", N_CLIENTS, bytes / N_CLIENTS,
	       page_bytes() / N_CLIENTS);
	ck_assert_uint_le(bytes, (size_t)N_CLIENTS * CLIENT_BYTES_MAX);
	ck_assert_uint_le(page_bytes(), (size_t)N_CLIENTS * LEASE_PAGE_BYTES);
}

TEST(memory_of_ended_clients_is_freed)
{
	size_t before;
	unsigned int i, n;

	if (!can_count())
		return;
	for (n = 0; n < 2; n++) {
		before = heap_bytes();
		gather();
		for (i = 0; i < N_CLIENTS; i++)
			rig_leave(&crowd[i]);
	}
	ck_assert_uint_le(heap_bytes(), before + CLIENT_BYTES_MAX);
}

TEST(ten_thousand_connections_take_little_memory)
{
	size_t before = heap_bytes(), bytes;
	struct rig_sent sent;
	struct cm_msg msg;
	uint32_t n;

	if (!can_count())
		return;
	for (n = 1; n <= N_TRACKED; n++) {
		scene_sends(alice, scene_req(alice, n));
		rig_sent(&sent, &msg);
		if (n % UNANSWERED_MAX == 0)
			rig_pass(1000);
	}
	bytes = heap_bytes() - before;
	printf("%u connections: %zu bytes each\n", N_TRACKED, bytes / N_TRACKED);
	ck_assert_uint_le(bytes / N_TRACKED, TRACKED_BYTES_MAX);
}

/* --- time ---------------------------------------------------------------- */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* From the wire to a client, and from it to the wire: the best of many rounds, per message. */
static uint64_t round_ns(void)
{
	struct cm_msg drep = talk_msg_of(CM_ATTR_DREP, alice->first + 1, 0x701);
	uint64_t best = UINT64_MAX, begin;
	unsigned int round, i;

	for (round = 0; round < N_ROUNDS; round++) {
		rig_pass(100);
		begin = now_ns();
		for (i = 0; i < N_MESSAGES; i++) {
			scene_receive(scene_peer_dreq(0x701, alice, 1));
			scene_sends(alice, drep);
		}
		if (now_ns() - begin < best)
			best = now_ns() - begin;
		scene_delivered(alice);
		scene_wire();
	}
	return best / (2 * N_MESSAGES);
}

TEST(a_message_takes_no_longer_with_a_thousand_clients)
{
	uint64_t alone, among;

	scene_connect(alice, 1);
	alone = round_ns();
	gather();
	among = round_ns();
	printf("a message takes %u.%u us with 2 clients, %u.%u us with %u\n",
	       (unsigned int)alone / 1000, (unsigned int)alone / 100 % 10,
	       (unsigned int)among / 1000, (unsigned int)among / 100 % 10, N_CLIENTS + 2);
	ck_assert_uint_le(among, SLOWER_MAX * alone);
}

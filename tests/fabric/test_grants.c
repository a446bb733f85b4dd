/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file of grants (tools/fabric/wire/grants.h) is accepted only from a process of this user; the
 * rings in it (tools/fabric/wire/ring.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/test.h"
#include "tools/fabric/wire/grants.h"

#define OTHER_UID 65533

static char forged[TEMPORARY_BYTES];

static void make_forged(void)
{
	struct fab_grants *grants;
	int fd = mkstemp(name_temporary(forged));

	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_int_eq(fab_grants_create(forged, &grants), 0);
	fab_grants_close(grants);
}

static void remove_forged(void)
{
	unlink(forged);
}

static int open_forged(void)
{
	struct fab_grants *grants = NULL;
	int32_t pid;
	int err = fab_grants_open(forged, &grants, &pid);

	ck_assert_int_eq(err == 0, grants != NULL);
	fab_grants_close(grants);
	return err;
}

/* Return: the error of opening a file with these contents. */
static int open_with(size_t offset, const void *value, size_t bytes)
{
	int fd = open(forged, O_WRONLY);

	ck_assert_int_eq(pwrite(fd, value, bytes, (off_t)offset), (ssize_t)bytes);
	close(fd);
	return open_forged();
}

static int open_with_pid(int32_t pid)
{
	return open_with(offsetof(struct fab_grants, pid), &pid, sizeof(pid));
}

FIXTURE(make_forged, remove_forged);

TEST(file_of_a_process_of_the_user_is_opened)
{
	ck_assert_int_eq(open_forged(), 0);
	ck_assert_int_eq(open_with_pid(getpid()), 0);
}

TEST(file_with_impossible_process_ids_is_refused)
{
	static const int32_t pids[] = { 0, -1, INT32_MIN, INT32_MAX };
	unsigned int i;

	for (i = 0; i < 4; i++)
		ck_assert_int_eq(open_with_pid(pids[i]), -ESRCH);
}

TEST(file_of_other_process_ids_is_refused)
{
	uint64_t none = 0, other = 12345;
	uint32_t magic = 7;
	size_t offset = offsetof(struct fab_grants, pid_namespace);

	ck_assert_int_eq(open_with(offset, &none, sizeof(none)), -ESRCH);
	ck_assert_int_eq(open_with(offset, &other, sizeof(other)), -ESRCH);
	ck_assert_int_eq(open_with(offsetof(struct fab_grants, magic), &magic, 4), -ESRCH);
}

TEST(file_of_another_size_or_kind_is_refused)
{
	ck_assert_int_eq(truncate(forged, sizeof(struct fab_grants) - 1), 0);
	ck_assert_int_eq(open_forged(), -EPROTO);
	ck_assert_int_eq(unlink(forged), 0);
	ck_assert_int_eq(mkfifo(forged, 0600), 0);
	ck_assert_int_eq(open_forged(), -EPROTO);
	ck_assert_int_eq(unlink(forged), 0);
	ck_assert_int_eq(symlink("/proc/self/environ", forged), 0);
	ck_assert_int_eq(open_forged(), -ELOOP);
}

static bool is_root(void)
{
	if (geteuid() == 0)
		return true;
	puts("root alone can make files and processes of other users");
	return false;
}

NEEDS(is_root);

TEST(root_does_not_open_a_file_of_another_user)
{
	ck_assert_int_eq(chown(forged, OTHER_UID, OTHER_UID), 0);
	ck_assert_int_eq(open_forged(), -EPROTO);
}

TEST(root_does_not_write_to_a_process_of_another_user)
{
	int ready[2];
	pid_t child;
	char byte;

	ck_assert_int_eq(pipe(ready), 0);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		if (setuid(OTHER_UID) || write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	ck_assert_int_eq(read(ready[0], &byte, 1), 1);
	ck_assert_int_eq(open_with_pid(child), -ESRCH);
	ck_assert_int_eq(kill(child, SIGKILL), 0);
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
}

/* --- rings ------------------------------------------------------------------ */

static struct fab_rings rings;
static unsigned int n_taken;
static uint32_t last_psn;

static void note_taken(void *arg, const struct fab_packet *packet, const void *payload)
{
	(void)arg;
	(void)payload;
	n_taken++;
	last_psn = packet->psn;
}

static enum fab_put put_packet(uint8_t claimed, uint32_t psn, uint32_t bytes)
{
	static const char payload[4096];
	struct fab_packet packet = { .magic = FAB_MAGIC, .psn = psn, .bytes = bytes };

	return fab_rings_put(&rings, claimed, &packet, payload);
}

TEST(each_sender_claims_a_ring_of_its_own)
{
	uint8_t i;

	for (i = 0; i < FAB_RINGS; i++)
		ck_assert_uint_eq(fab_rings_claim(&rings), i + 1);
	ck_assert_uint_eq(fab_rings_claim(&rings), 0);
	fab_ring_release(&rings.ring[5]);
	ck_assert_uint_eq(fab_rings_claim(&rings), 6);
}

TEST(ring_of_an_ended_sender_can_be_claimed)
{
	pid_t child = fork();

	ck_assert_int_ge(child, 0);
	if (child == 0)
		_exit(0);
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
	rings.ring[0].owner = (uint32_t)child;
	rings.ring[1].owner = UINT32_MAX;
	ck_assert_uint_eq(fab_rings_claim(&rings), 1);
	ck_assert_uint_eq(fab_rings_claim(&rings), 2);
}

TEST(forked_child_does_not_release_its_parents_ring)
{
	struct fab_rings *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
					MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child;

	ck_assert_ptr_ne(shared, MAP_FAILED);
	ck_assert_uint_eq(fab_rings_claim(shared), 1);
	child = fork();
	if (child == 0) {
		fab_ring_release(&shared->ring[0]);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
	ck_assert_uint_eq(fab_rings_claim(shared), 2);
}

TEST(packet_is_put_only_where_a_poller_has_taken_all_before)
{
	uint8_t claimed = fab_rings_claim(&rings);
	uint32_t i;

	ck_assert_int_eq(put_packet(claimed, 0, 8), FAB_PUT_NOT);
	fab_rings_set_polled(&rings, true);
	ck_assert_int_eq(put_packet(claimed, 0, FAB_PLACE_PAYLOAD + 1), FAB_PUT_NOT);
	rings.ring[claimed - 1].n_datagrams++;
	ck_assert_int_eq(put_packet(claimed, 0, 8), FAB_PUT_NOT);
	fab_rings_took_datagram(&rings, claimed);
	for (i = 0; i < FAB_RING_PLACES; i++)
		ck_assert_int_eq(put_packet(claimed, i, FAB_PLACE_PAYLOAD), FAB_PUT_DONE);
	ck_assert_int_eq(put_packet(claimed, i, 8), FAB_PUT_NOT);
	ck_assert(fab_rings_set_polled(&rings, false));
	ck_assert(fab_rings_take(&rings, note_taken, NULL));
	ck_assert_uint_eq(n_taken, FAB_RING_PLACES);
	ck_assert_uint_eq(last_psn, FAB_RING_PLACES - 1);
	ck_assert(!fab_rings_take(&rings, note_taken, NULL));
}

static char *reached;
static bool has_found;

/* The receiver polls no more, and looks for packets, while one is put into the ring. */
static void stop_polling(int number)
{
	(void)number;
	has_found = fab_rings_set_polled(&rings, false);
	mprotect(reached, 4096, PROT_READ);
}

TEST(packet_that_the_receiver_cannot_have_seen_wakes_it)
{
	struct sigaction action = { .sa_handler = stop_polling };
	struct fab_packet packet = { .magic = FAB_MAGIC, .bytes = 8 };
	uint8_t claimed = fab_rings_claim(&rings);

	reached = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(reached, MAP_FAILED);
	ck_assert_int_eq(sigaction(SIGSEGV, &action, NULL), 0);
	fab_rings_set_polled(&rings, true);
	ck_assert_int_eq(fab_rings_put(&rings, claimed, &packet, reached), FAB_PUT_WAKE);
	ck_assert(!has_found);
}

/* A sender may write anything, at any time. */
TEST(contents_of_a_forged_ring_are_bounded)
{
	uint32_t i;

	for (i = 0; i < FAB_RING_PLACES; i++) {
		rings.ring[3].place[i].packet.magic = FAB_MAGIC;
		rings.ring[3].place[i].packet.bytes = i % 2 ? UINT32_MAX : FAB_PLACE_PAYLOAD;
	}
	rings.ring[3].tail = UINT32_MAX;
	rings.rung = UINT32_MAX;
	fab_rings_take(&rings, note_taken, NULL);
	ck_assert_uint_eq(n_taken, FAB_RING_PLACES / 2);
	fab_rings_took_datagram(&rings, UINT8_MAX);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tracked connections that outlive their cmportd: the state that the next one finds, whenever the
 * first was killed, and a full store.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/portd/folder.h"
#include "tests/unit/portd/kept.h"
#include "tests/unit/portd/tracked_put.h"
#include "tests/unit/steps.h"
#include "tests/unit/test.h"
#include "lib/portd/server/ledger/tracked_adopt.h"

#define STEPS_MAX 200000

/* --- kept connections ---------------------------------------------------- */

FIXTURE(kept_set_up, kept_tear_down);

TEST(tracked_connection_is_an_orphan_of_the_next_cmportd)
{
	const struct tracked *tracked;

	kept_set(1, 1);
	kept_begin_again();
	tracked = tracker_orphan(kept_tracker, NULL);
	ck_assert_ptr_nonnull(tracked);
	ck_assert(kept_is_version(tracked, 1));
	ck_assert_uint_eq(kept_orphans(kept_tracker), 1);
}

/* The next cmportd may be another version, and finds each member at its place. */
TEST(record_has_the_place_of_the_first_version)
{
	static const struct {
		size_t at, bytes;
		uint64_t value;
	} members[] = {
		{ 0, 1, CM_ESTABLISHED },
		{ 1, 1, 1 },
		{ 2, 1, KEPT_PORT },
		{ 4, 4, 7 },
		{ 8, 4, 0x11111111 ^ 7 },
		{ 12, 4, 0x111111 },
		{ 16, 4, 0x111111 ^ 7 },
		{ 24, 8, UINT64_C(0x1111111111111111) },
		{ 32, 8, UINT64_C(0x1111111111111111) },
		{ 40, 1, 1 },
		{ 41, 1, 1 },
		{ 44, 2, 1 },
		{ 50, 1, true },
		{ 56, 4, 1 },
		{ 60, 8, UINT64_C(0x0101010101010101) },
		{ 68, 8, UINT64_C(0x0101010101010101) },
	};
	const size_t records_at = 8192 + 8;
	uint64_t value;
	size_t i;

	kept_set(7, 1);
	for (i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		value = 0;
		kept_read(records_at + members[i].at, &value, members[i].bytes);
		ck_assert_msg(value == members[i].value, "at %zu: 0x%" PRIx64, members[i].at,
			      value);
	}
}

TEST(orphan_has_its_owner)
{
	kept_set(1, 1);
	kept_begin_again();
	ck_assert_uint_eq(tracker_orphan(kept_tracker, NULL)->owner.pid, kept_owner.pid);
	ck_assert_uint_eq(tracker_orphan(kept_tracker, NULL)->owner.start, kept_owner.start);
	ck_assert_uint_eq(tracker_orphan(kept_tracker, NULL)->owner.block, kept_owner.block);
}

TEST(queue_pair_of_an_orphan_is_reserved)
{
	const struct cm_record is = kept_version(1, 1);
	struct tracked_naming naming = { .client = KEPT_CLIENT,
					 .peer = mad_path_peer(&is.path),
					 .of_device = 1u << KEPT_PORT,
					 .qpn = is.local_qpn };

	kept_set(1, 1);
	ck_assert(tracker_may_name(kept_tracker, &naming));
	kept_begin_again();
	ck_assert(!tracker_may_name(kept_tracker, &naming));
	ck_assert(tracker_return(kept_tracker, tracker_orphan(kept_tracker, NULL), KEPT_CLIENT));
	ck_assert(tracker_may_name(kept_tracker, &naming));
}

static unsigned int orphans_of(uint16_t block)
{
	const struct tracked *tracked = NULL;
	unsigned int n = 0;

	for (; (tracked = tracker_orphan_of(kept_tracker, block, tracked)); n++)
		ck_assert_uint_eq(tracked->owner.block, block);
	return n;
}

/* A resuming client must not have to pass those of all others, which resume too. */
TEST(orphans_of_a_block_are_found_without_the_others)
{
	struct tracked_owner owner = kept_owner;
	const struct tracked *second;
	unsigned int n;

	for (n = 0; n < 30; n++) {
		owner.block = (uint16_t)(1 + n % 3);
		ck_assert_int_eq(tracker_own(kept_tracker, KEPT_CLIENT, &owner), 0);
		kept_set(1 + n, 1);
	}
	kept_begin_again();
	ck_assert_uint_eq(kept_orphans(kept_tracker), 30);
	for (n = 10; n > 1; n--) {
		ck_assert_uint_eq(orphans_of(2), n);
		second = tracker_orphan_of(kept_tracker, 2,
					   tracker_orphan_of(kept_tracker, 2, NULL));
		if (n % 2)
			second = tracker_orphan_of(kept_tracker, 2, NULL);
		ck_assert(tracker_return(kept_tracker, second, KEPT_CLIENT));
	}
	ck_assert(tracker_return(kept_tracker, tracker_orphan_of(kept_tracker, 2, NULL),
				 KEPT_CLIENT));
	ck_assert_uint_eq(orphans_of(1), 10);
	ck_assert_uint_eq(orphans_of(2), 0);
	ck_assert_uint_eq(orphans_of(3), 10);
	ck_assert_uint_eq(kept_orphans(kept_tracker), 20);
}

static struct cm_record unnamed(void)
{
	struct cm_record is = kept_version(1, 1);

	is.local_comm_id = 0;
	is.active = 0;
	is.state = CM_REQ_RCVD;
	return is;
}

/* Otherwise each resuming client would pass all of those. */
TEST(request_to_a_client_without_comm_ids_is_not_kept)
{
	const struct tracked_owner owner = { .pid = 1234, .start = 99 };
	const struct cm_record is = unnamed();

	ck_assert_int_eq(tracker_own(kept_tracker, KEPT_CLIENT, &owner), 0);
	ck_assert_int_eq(tracked_put(kept_tracker, KEPT_CLIENT, &is), 0);
	kept_begin_again();
	ck_assert_uint_eq(kept_orphans(kept_tracker), 0);
}

TEST(request_to_a_client_with_later_comm_ids_is_kept)
{
	const struct tracked_owner owner = { .pid = 1234, .start = 99 };
	const struct cm_record is = unnamed();
	struct cm_msg mra;

	ck_assert_int_eq(tracker_own(kept_tracker, KEPT_CLIENT, &owner), 0);
	ck_assert_int_eq(tracked_put(kept_tracker, KEPT_CLIENT, &is), 0);
	ck_assert_int_eq(tracker_own(kept_tracker, KEPT_CLIENT, &kept_owner), 0);
	cm_msg_init(&mra, CM_ATTR_MRA, is.tid);
	mra.mra.local_comm_id = 1;
	mra.mra.remote_comm_id = is.remote_comm_id;
	ck_assert_int_eq(
		tracked_put_sent(kept_tracker, KEPT_CLIENT, KEPT_PORT, &is.path, &mra, true), 0);
	kept_begin_again();
	ck_assert_uint_eq(orphans_of(kept_owner.block), 1);
}

TEST(orphans_of_unknown_processes_wait_until_the_last)
{
	struct tracked_owner owner = kept_owner;

	kept_set(1, 1);
	kept_begin_again();
	ck_assert(!tracker_awaits_unknown(kept_tracker));
	owner.pid = 0;
	ck_assert_int_eq(tracker_own(kept_tracker, KEPT_CLIENT, &owner), 0);
	kept_set(2, 1);
	kept_begin_again();
	ck_assert(tracker_awaits_unknown(kept_tracker));
	ck_assert(tracker_return(kept_tracker, tracker_orphan(kept_tracker, NULL), KEPT_CLIENT));
	ck_assert(tracker_return(kept_tracker, tracker_orphan(kept_tracker, NULL), KEPT_CLIENT));
	ck_assert(!tracker_awaits_unknown(kept_tracker));
}

TEST(an_orphan_is_not_found_before_its_report)
{
	kept_set(1, 1);
	kept_begin_again();
	ck_assert_ptr_null(tracker_of_local(kept_tracker, 1));
}

static void give_back(void)
{
	ck_assert(tracker_return(kept_tracker, tracker_orphan(kept_tracker, NULL), KEPT_CLIENT));
}

TEST(an_orphan_of_a_resumed_client_is_found)
{
	kept_set(1, 1);
	kept_begin_again();
	give_back();
	ck_assert_ptr_nonnull(tracker_of_local(kept_tracker, 1));
	ck_assert_uint_eq(kept_orphans(kept_tracker), 0);
	ck_assert_uint_eq(tracker_count(kept_tracker, KEPT_CLIENT), 1);
}

TEST(unreported_orphan_of_a_resumed_client_ends)
{
	struct cm_record told = kept_version(2, 1);

	kept_set(1, 1);
	kept_set(2, 1);
	kept_begin_again();
	give_back();
	give_back();
	ck_assert_int_eq(tracker_set(kept_tracker, KEPT_CLIENT, &told, false), 0);
	tracker_confirm(kept_tracker, KEPT_CLIENT);
	ck_assert_uint_eq(tracker_count(kept_tracker, KEPT_CLIENT), 1);
	ck_assert_ptr_nonnull(tracker_of_local(kept_tracker, 2));
}

TEST(closed_connection_is_not_kept)
{
	struct portd_close close = { .local_comm_id = 1 };

	kept_set(1, 1);
	kept_set(2, 1);
	tracker_close(kept_tracker, KEPT_CLIENT, &close);
	kept_begin_again();
	ck_assert_uint_eq(kept_orphans(kept_tracker), 1);
	ck_assert_uint_eq(tracker_orphan(kept_tracker, NULL)->is.local_comm_id, 2);
}

TEST(taken_orphan_is_kept_until_it_is_reaped)
{
	struct cm_record tracked;

	kept_set(1, 1);
	ck_assert(tracker_take(kept_tracker, KEPT_CLIENT, &tracked));
	kept_begin_again();
	ck_assert(tracker_orphan(kept_tracker, NULL)->is_dead);
	tracker_adopt(kept_tracker, tracker_orphan(kept_tracker, NULL), &tracked);
	ck_assert_uint_eq(tracked.local_comm_id, 1);
	ck_assert(!tracker_is_empty(kept_tracker));
	tracker_reaped(kept_tracker, 1);
	ck_assert(tracker_is_empty(kept_tracker));
	kept_begin_again();
	ck_assert_uint_eq(kept_orphans(kept_tracker), 0);
}

TEST(orphan_that_ends_with_one_message_is_not_kept)
{
	struct cm_record tracked;

	kept_set(1, 2);
	ck_assert(tracker_take(kept_tracker, KEPT_CLIENT, &tracked));
	ck_assert(tracker_is_empty(kept_tracker));
}

TEST(many_connections_are_kept)
{
	uint32_t n;

	for (n = 1; n <= 10000; n++)
		kept_set(n, 1);
	ck_assert_uint_le(tracker_bytes(kept_tracker) / 10000, 256);
	kept_begin_again();
	ck_assert_uint_eq(kept_orphans(kept_tracker), 10000);
}

TEST(memory_of_orphans_is_reused)
{
	uint32_t n;
	off_t bytes;

	for (n = 1; n <= 10000; n++)
		kept_set(n, 1);
	bytes = kept_bytes();
	kept_begin_again();
	while (tracker_orphan(kept_tracker, NULL))
		give_back();
	tracker_confirm(kept_tracker, KEPT_CLIENT);
	for (n = 1; n <= 10000; n++)
		kept_set(n, 1);
	ck_assert_int_eq(kept_bytes(), bytes);
}

TEST(file_without_connections_is_small_again)
{
	struct portd_close close;
	uint32_t n;

	for (n = 1; n <= 10000; n++)
		kept_set(n, 1);
	for (n = 1; n <= 10000; n++) {
		close = (struct portd_close){ .local_comm_id = n };
		tracker_close(kept_tracker, KEPT_CLIENT, &close);
	}
	kept_begin_again();
	ck_assert_int_eq(kept_bytes(), KEPT_HEAD_BYTES);
	kept_set(1, 1);
	kept_begin_again();
	ck_assert_uint_eq(kept_orphans(kept_tracker), 1);
}

/* --- killed at any moment ------------------------------------------------ */

static void replace(void)
{
	struct cm_record tracked = kept_version(1, 2);

	tracked_put(kept_tracker, KEPT_CLIENT, &tracked);
}

static void make(void)
{
	struct cm_record tracked = kept_version(2, 2);

	tracked_put(kept_tracker, KEPT_CLIENT, &tracked);
}

static void close_it(void)
{
	struct portd_close close = { .local_comm_id = 1 };

	tracker_close(kept_tracker, KEPT_CLIENT, &close);
}

static void take(void)
{
	struct cm_record tracked;

	tracker_take(kept_tracker, KEPT_CLIENT, &tracked);
}

/* The possible state between a first and a second version of a tracked connection. */
static const struct update {
	void (*run)(void);
	unsigned int n_min, n_max;
} updates[] = {
	{ replace, 0, 1 },
	{ make, 1, 2 },
	{ close_it, 0, 1 },
	{ take, 1, 1 },
};

#define N_UPDATES (int)(sizeof(updates) / sizeof(updates[0]))

static void look_at_copy(const void *file, size_t bytes, const struct update *update)
{
	struct tracker *next = tracker_new(1);
	struct tracked_store copy = { .fd = -1 };
	const struct tracked *tracked = NULL;
	int fd = memfd_create("killed", MFD_CLOEXEC);

	ck_assert_int_eq(pwrite(fd, file, bytes, STATE_FILE_TRACKED_AT), (ssize_t)bytes);
	ck_assert_int_eq(tracked_file_open(&copy, fd, state_path, false), 0);
	ck_assert_int_eq(tracker_keep(next, &copy), 0);
	ck_assert_uint_ge(kept_orphans(next), update->n_min);
	ck_assert_uint_le(kept_orphans(next), update->n_max);
	while ((tracked = tracker_orphan(next, tracked)))
		ck_assert(kept_is_version(tracked, 1) || kept_is_version(tracked, 2));
	tracker_free(next);
	tracked_file_close(&copy);
	close(fd);
}

/*
 * A process is killed between two instructions. Tries each of them: it executes one more, and
 * checks the file as the next cmportd would find it.
 */
TEST_LOOP(interrupted_update_leaves_no_mixture, 0, N_UPDATES)
{
	size_t bytes = KEPT_HEAD_BYTES + KEPT_CHUNK_BYTES;
	unsigned int n_steps = 0;
	int status, fd;
	void *file, *before = malloc(bytes);
	pid_t pid;

	kept_set(1, 1);
	fd = open(state_path, O_RDONLY | O_CLOEXEC);
	file = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, STATE_FILE_TRACKED_AT);
	close(fd);
	memcpy(before, file, bytes);
	pid = steps_begin(updates[_i].run);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	while (WIFSTOPPED(status) && n_steps++ < STEPS_MAX) {
		if (memcmp(before, file, bytes) != 0) {
			memcpy(before, file, bytes);
			look_at_copy(file, bytes, &updates[_i]);
		}
		ck_assert_int_eq(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		printf("skipped: a process cannot be traced here\n");
	} else {
		ck_assert(WIFEXITED(status));
		ck_assert_uint_gt(n_steps, 50);
	}
	munmap(file, bytes);
	free(before);
}

/* --- no room ------------------------------------------------------------- */

static const char *state(uint32_t n)
{
	const struct tracked *tracked = tracker_of_local(kept_tracker, n);

	return tracked ? cm_state_str((enum cm_state)tracked->is.state) : "none";
}

static void fill_beyond(uint32_t n_kept)
{
	struct cm_record tracked;
	uint32_t n;

	for (n = 1; n <= n_kept + 1000; n++) {
		tracked = kept_version(n, 1);
		tracked_put(kept_tracker, KEPT_CLIENT, &tracked);
	}
}

static void expect_kept(uint32_t n_kept)
{
	ck_assert_str_eq(state(n_kept + 1000), "ESTABLISHED");
	kept_begin_again();
	ck_assert_uint_eq(kept_orphans(kept_tracker), n_kept);
}

TEST(file_is_limited_and_the_table_is_not)
{
	fill_beyond(TRACKED_CHUNKS_MAX * TRACKED_CHUNK);
	expect_kept(TRACKED_CHUNKS_MAX * TRACKED_CHUNK);
}

TEST(full_file_keeps_its_contents)
{
	limit_files(STATE_FILE_TRACKED_AT + KEPT_HEAD_BYTES + KEPT_CHUNK_BYTES);
	fill_beyond(TRACKED_CHUNK);
	limit_files(RLIM_INFINITY);
	expect_kept(TRACKED_CHUNK);
}

TEST(store_is_disabled_without_room)
{
	struct tracked_store file = { .fd = -1 };
	int fd = memfd_create("full", MFD_CLOEXEC);
	int err;

	limit_files(STATE_FILE_TRACKED_AT + KEPT_HEAD_BYTES - 1);
	err = tracked_file_open(&file, fd, state_path, false);
	limit_files(RLIM_INFINITY);
	ck_assert_int_eq(err, -EFBIG);
	ck_assert_ptr_null(file.head);
}

TEST(store_is_disabled_without_a_mapping)
{
	struct tracked_store file = { .fd = -1 };
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	ck_assert_int_lt(tracked_file_open(&file, fd, state_path, false), 0);
}

/* Pages have 64 KiB with some kernels of arm64, and mmap() takes only multiples of them. */
TEST(mapping_begins_at_a_page_of_any_size)
{
	struct tracked_store file = { .fd = -1 };
	int fd = memfd_create("pages", MFD_CLOEXEC);
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long offset = 1;
	char line[512];

	ck_assert_int_eq(tracked_file_open(&file, fd, state_path, false), 0);
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, "/memfd:pages"))
			ck_assert_int_eq(sscanf(line, "%*s %*s %lx", &offset), 1);
	ck_assert_uint_eq(offset % 65536, 0);
	tracked_file_close(&file);
	fclose(maps);
	close(fd);
}

/* --- handles ------------------------------------------------------------- */

static int handle_of_guid(uint64_t guid, const char *name, uint8_t port_num, uint64_t in_use)
{
	struct tracked_port port = { .guid = guid, .port_num = port_num };

	strncpy(port.device, name, sizeof(port.device) - 1);
	return tracker_handle(kept_tracker, &port, in_use);
}

static int handle_of(const char *name, uint8_t port_num, uint64_t in_use)
{
	return handle_of_guid(0xb, name, port_num, in_use);
}

TEST(port_keeps_its_handle)
{
	ck_assert_int_eq(handle_of("b", 1, 1), 1);
	ck_assert_int_eq(handle_of("c", 1, 3), 2);
	kept_begin_again();
	ck_assert_int_eq(handle_of("c", 1, 0), 2);
	ck_assert_int_eq(handle_of("b", 1, 0), 1);
	ck_assert_int_eq(handle_of("b", 2, 0), 3);
}

TEST(port_of_another_device_with_the_name_has_another_handle)
{
	ck_assert_int_eq(handle_of_guid(0xb, "b", 1, 1), 1);
	kept_begin_again();
	ck_assert_int_eq(handle_of_guid(0xc, "b", 1, 1), 2);
	ck_assert_int_eq(handle_of_guid(0xb, "b", 1, 1), 1);
}

static void rename_port(uint8_t handle, const char *name)
{
	struct tracked_port port;

	ck_assert(tracker_port(kept_tracker, handle, &port));
	strncpy(port.device, name, sizeof(port.device) - 1);
	tracker_rename(kept_tracker, handle, &port);
}

TEST(renamed_port_keeps_its_handle_and_connections)
{
	kept_set(1, 1);
	kept_begin_again();
	rename_port(0, "roce0");
	ck_assert_int_eq(handle_of_guid(0xa, "roce0", 1, 0), 0);
	ck_assert_uint_eq(kept_orphans(kept_tracker), 1);
}

TEST(needed_handle_is_reused_without_its_orphans)
{
	char name[8];
	uint64_t in_use = 1;
	int i;

	kept_set(1, 1);
	for (i = 1; i < TRACKED_PORTS; i++) {
		snprintf(name, sizeof(name), "d%d", i);
		ck_assert_int_eq(handle_of(name, 1, in_use), i);
		in_use |= UINT64_C(1) << i;
	}
	kept_begin_again();
	ck_assert_uint_eq(kept_orphans(kept_tracker), 1);
	ck_assert_int_eq(handle_of("other", 1, in_use & ~UINT64_C(1)), 0);
	ck_assert_uint_eq(kept_orphans(kept_tracker), 0);
	ck_assert_int_eq(handle_of("more", 1, in_use), -ENOSPC);
}

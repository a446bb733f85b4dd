/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wills that outlive their cmportd: the file that they lie in, killed at any moment, cut off, full
 * of anything.
 */
#include <errno.h>
#include <fcntl.h>
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

#include "portd/will_store.h"
#include "tests/unit/cm/run.h"
#include "tests/unit/portd/folder.h"

#define ME	    1
#define HEAD_BYTES  8192
#define CHUNK_BYTES (WILL_CHUNK * sizeof(struct will))
#define PORT	    0
#define STEPS_MAX   200000

static struct wills *wills;
static char path[160];
static const char device[PORTD_DEVICE_BYTES] = "rdma0";
static const struct will_owner me = { .pid = 1234, .start = 99, .block = 7 };

/* --- the file ------------------------------------------------------------ */

static struct will_store *open_store(void)
{
	struct will_store *store = NULL;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(will_store_open(fd, &store), 0);
	return store;
}

static void begin(void)
{
	wills = wills_new(0x5eed);
	ck_assert_int_eq(wills_keep(wills, open_store()), 0);
	ck_assert_int_eq(wills_own(wills, ME, &me), 0);
	ck_assert_int_eq(wills_handle(wills, device, 1, 0), PORT);
}

static void set_up(void)
{
	snprintf(path, sizeof(path), "%s.wills", socket_path);
	begin();
}

static void tear_down(void)
{
	wills_free(wills);
}

static void begin_again(void)
{
	wills_free(wills);
	begin();
}

static void write_at(off_t at, const void *bytes, size_t n)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	ck_assert_int_eq(pwrite(fd, bytes, n, at), (ssize_t)n);
	close(fd);
}

static off_t file_bytes(void)
{
	struct stat stat_of;

	ck_assert_int_eq(stat(path, &stat_of), 0);
	return stat_of.st_size;
}

/* --- wills --------------------------------------------------------------- */

/* All that can be mixed up differs between two of them, but for the comm id. */
static struct portd_will version(uint32_t n, uint8_t v)
{
	struct portd_will will = {
		.state = v == 1 ? CM_ESTABLISHED : CM_REP_SENT,
		.active = v == 1,
		.port = PORT,
		.local_comm_id = n,
		.remote_comm_id = v * UINT32_C(0x11111111) ^ n,
		.local_qpn = v * UINT32_C(0x111111),
		.remote_qpn = v * UINT32_C(0x111111) ^ n,
		.remote_ca_guid = v * UINT64_C(0x1111111111111111),
		.tid = v * UINT64_C(0x1111111111111111),
		.packet_life_time = v,
		.local_ack_timeout = v,
		.path = {.grh = true, .pkey_index = v, .flow_label = v}
	};

	memset(will.path.dgid.raw, v, sizeof(will.path.dgid.raw));
	return will;
}

static void set(uint32_t n, uint8_t v)
{
	struct portd_will will = version(n, v);

	ck_assert_int_eq(wills_set(wills, ME, &will), 0);
}

static unsigned int n_orphans(const struct wills *of)
{
	const struct will *will = NULL;
	unsigned int n = 0;

	while ((will = wills_orphan(of, will)))
		n++;
	return n;
}

static bool is_version(const struct will *will, uint8_t v)
{
	struct portd_will is = version(will->is.local_comm_id, v);

	return will->is.state == is.state && will->is.active == is.active &&
	       will->is.port == is.port && will->is.remote_comm_id == is.remote_comm_id &&
	       will->is.local_qpn == is.local_qpn && will->is.remote_qpn == is.remote_qpn &&
	       will->is.remote_ca_guid == is.remote_ca_guid && will->is.tid == is.tid &&
	       will->is.packet_life_time == is.packet_life_time &&
	       will->is.path.flow_label == is.path.flow_label &&
	       will->is.path.pkey_index == is.path.pkey_index &&
	       memcmp(&will->is.path.dgid, &is.path.dgid, sizeof(is.path.dgid)) == 0;
}

/* --- kept ---------------------------------------------------------------- */

START_TEST(will_is_an_orphan_of_the_next)
{
	const struct will *will;

	set(1, 1);
	begin_again();
	will = wills_orphan(wills, NULL);
	ck_assert_ptr_nonnull(will);
	ck_assert(is_version(will, 1));
	ck_assert_uint_eq(n_orphans(wills), 1);
}
END_TEST

START_TEST(orphan_has_its_owner)
{
	set(1, 1);
	begin_again();
	ck_assert_uint_eq(wills_orphan(wills, NULL)->owner.pid, me.pid);
	ck_assert_uint_eq(wills_orphan(wills, NULL)->owner.start, me.start);
	ck_assert_uint_eq(wills_orphan(wills, NULL)->owner.block, me.block);
}
END_TEST

START_TEST(nobody_finds_an_orphan_before_it_is_told_of)
{
	set(1, 1);
	begin_again();
	ck_assert_ptr_null(wills_of_local(wills, 1));
	set(1, 2);
	ck_assert_ptr_nonnull(wills_of_local(wills, 1));
	ck_assert_uint_eq(n_orphans(wills), 0);
	ck_assert_uint_eq(wills_count(wills, ME), 1);
}
END_TEST

START_TEST(what_was_closed_is_not_kept)
{
	struct portd_close close = { .local_comm_id = 1 };

	set(1, 1);
	set(2, 1);
	wills_close(wills, ME, &close);
	begin_again();
	ck_assert_uint_eq(n_orphans(wills), 1);
	ck_assert_uint_eq(wills_orphan(wills, NULL)->is.local_comm_id, 2);
}
END_TEST

START_TEST(what_was_taken_is_kept_until_it_is_buried)
{
	struct portd_will will;

	set(1, 1);
	ck_assert(wills_take(wills, ME, &will));
	begin_again();
	ck_assert(wills_orphan(wills, NULL)->is_dead);
	wills_inherit(wills, wills_orphan(wills, NULL), &will);
	ck_assert_uint_eq(will.local_comm_id, 1);
	ck_assert(!wills_are_none(wills));
	wills_buried(wills, 1);
	ck_assert(wills_are_none(wills));
	begin_again();
	ck_assert_uint_eq(n_orphans(wills), 0);
}
END_TEST

START_TEST(what_ends_with_one_message_is_not_kept_when_it_is_taken)
{
	struct portd_will will;

	set(1, 2);
	ck_assert(wills_take(wills, ME, &will));
	ck_assert(wills_are_none(wills));
}
END_TEST

START_TEST(many_are_kept)
{
	uint32_t n;

	for (n = 1; n <= 10000; n++)
		set(n, 1);
	ck_assert_uint_le(wills_bytes(wills) / 10000, 256);
	begin_again();
	ck_assert_uint_eq(n_orphans(wills), 10000);
}
END_TEST

START_TEST(room_of_orphans_is_used_again)
{
	uint32_t n;
	off_t bytes;

	for (n = 1; n <= 10000; n++)
		set(n, 1);
	bytes = file_bytes();
	begin_again();
	while (wills_orphan(wills, NULL))
		wills_drop(wills, wills_orphan(wills, NULL));
	for (n = 1; n <= 10000; n++)
		set(n, 1);
	ck_assert_int_eq(file_bytes(), bytes);
}
END_TEST

START_TEST(file_of_nothing_is_small_again)
{
	struct portd_close close;
	uint32_t n;

	for (n = 1; n <= 10000; n++)
		set(n, 1);
	for (n = 1; n <= 10000; n++) {
		close = (struct portd_close){ .local_comm_id = n };
		wills_close(wills, ME, &close);
	}
	begin_again();
	ck_assert_int_eq(file_bytes(), HEAD_BYTES);
	set(1, 1);
	begin_again();
	ck_assert_uint_eq(n_orphans(wills), 1);
}
END_TEST

/* --- killed at any moment ------------------------------------------------ */

static void replace(void)
{
	struct portd_will will = version(1, 2);

	wills_set(wills, ME, &will);
}

static void make(void)
{
	struct portd_will will = version(2, 2);

	wills_set(wills, ME, &will);
}

static void close_it(void)
{
	struct portd_close close = { .local_comm_id = 1 };

	wills_close(wills, ME, &close);
}

static void take(void)
{
	struct portd_will will;

	wills_take(wills, ME, &will);
}

/* Of which one will is the first version and another the second, what may be found. */
static const struct update {
	void (*run)(void);
	unsigned int n_min, n_max;
} updates[] = {
	{replace,   0, 1},
	{ make,	1, 2},
	{ close_it, 0, 1},
	{ take,	1, 1},
};

#define N_UPDATES (int)(sizeof(updates) / sizeof(updates[0]))

static void look_at_copy(const void *file, size_t bytes, const struct update *update)
{
	struct wills *next = wills_new(1);
	struct will_store *store = NULL;
	const struct will *will = NULL;
	int fd = memfd_create("killed", MFD_CLOEXEC);

	ck_assert_int_eq(write(fd, file, bytes), (ssize_t)bytes);
	ck_assert_int_eq(will_store_open(fd, &store), 0);
	ck_assert_int_eq(wills_keep(next, store), 0);
	ck_assert_uint_ge(n_orphans(next), update->n_min);
	ck_assert_uint_le(n_orphans(next), update->n_max);
	while ((will = wills_orphan(next, will)))
		ck_assert(is_version(will, 1) || is_version(will, 2));
	wills_free(next);
}

static pid_t begin_steps(void (*run)(void))
{
	pid_t pid = fork();

	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			_exit(77);
		raise(SIGSTOP);
		run();
		_exit(0);
	}
	return pid;
}

/* A process is killed between two instructions. Each of them is tried: it makes one, and what is
 * in the file then is what the next cmportd would find. */
START_TEST(update_that_is_cut_off_anywhere_leaves_no_mixture)
{
	size_t bytes = HEAD_BYTES + CHUNK_BYTES;
	unsigned int n_steps = 0;
	int status, fd;
	void *file, *before = malloc(bytes);
	pid_t pid;

	set(1, 1);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	file = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	memcpy(before, file, bytes);
	pid = begin_steps(updates[_i].run);
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
END_TEST

/* --- not ours ------------------------------------------------------------ */

/* Where the head has: magic, layout, boot. */
static const off_t head_at[] = { 0, 4, 16 };

START_TEST(file_of_another_version_or_boot_counts_as_nothing)
{
	set(1, 1);
	write_at(head_at[_i], "?", 1);
	begin_again();
	ck_assert_uint_eq(n_orphans(wills), 0);
	set(1, 1);
	begin_again();
	ck_assert_uint_eq(n_orphans(wills), 1);
}
END_TEST

START_TEST(process_ids_of_another_namespace_are_not_known)
{
	set(1, 1);
	write_at(8, "????", 4);
	begin_again();
	ck_assert_uint_eq(wills_orphan(wills, NULL)->owner.pid, 0);
}
END_TEST

START_TEST(will_without_seal_is_nothing)
{
	const uint32_t nothing = 0;

	set(1, 1);
	write_at(HEAD_BYTES + (off_t)offsetof(struct will, seal), &nothing, sizeof(nothing));
	begin_again();
	ck_assert_uint_eq(n_orphans(wills), 0);
}
END_TEST

/* Sealed, and yet: a state, a flag, a port that do not exist. */
static const struct {
	size_t at;
	uint8_t value;
} wrong[] = {
	{offsetof(struct will,	is.state),	   CM_N_STATES},
	  { offsetof(struct will, is.state),    255	 },
	{ offsetof(struct will, is.path.grh), 2		},
	  { offsetof(struct will, is.port),	    1	      },
	{ offsetof(struct will, is.port),	  255	      },
};

START_TEST(will_that_cannot_be_is_nothing)
{
	set(1, 1);
	write_at(HEAD_BYTES + (off_t)wrong[_i].at, &wrong[_i].value, 1);
	begin_again();
	ck_assert_uint_eq(n_orphans(wills), 0);
}
END_TEST

START_TEST(of_two_wills_of_a_connection_one_counts)
{
	const uint32_t one = 1;

	set(1, 1);
	set(2, 1);
	write_at(HEAD_BYTES +
			 (off_t)(sizeof(struct will) + offsetof(struct will, is.local_comm_id)),
		 &one, sizeof(one));
	begin_again();
	ck_assert_uint_eq(n_orphans(wills), 1);
}
END_TEST

START_TEST(wills_of_a_port_without_seal_are_nothing)
{
	const uint32_t nothing = 0;

	set(1, 1);
	write_at(56, &nothing, sizeof(nothing));
	begin_again();
	ck_assert_uint_eq(n_orphans(wills), 0);
}
END_TEST

/* --- cut off, with holes, garbage ---------------------------------------- */

static const struct {
	off_t bytes;
	unsigned int n;
} cuts[] = {
	{0,					0  },
	{ 1,				       0  },
	{ 100,				     0	 },
	{ HEAD_BYTES - 1,			  0  },
	{ HEAD_BYTES,			      0	},
	{ HEAD_BYTES + 1,			  0  },
	{ HEAD_BYTES + (off_t)CHUNK_BYTES - 1,     0	 },
	{ HEAD_BYTES + (off_t)CHUNK_BYTES,	   256},
	{ HEAD_BYTES + 2 * (off_t)CHUNK_BYTES - 1, 256},
};

START_TEST(of_a_file_cut_off_what_is_whole_counts)
{
	uint32_t n;

	for (n = 1; n <= 512; n++)
		set(n, 1);
	wills_free(wills);
	ck_assert_int_eq(truncate(path, cuts[_i].bytes), 0);
	begin();
	ck_assert_uint_eq(n_orphans(wills), cuts[_i].n);
	set(1000, 1);
	begin_again();
	ck_assert_uint_eq(n_orphans(wills), cuts[_i].n + 1);
}
END_TEST

START_TEST(holes_are_nothing)
{
	set(1, 1);
	wills_free(wills);
	ck_assert_int_eq(truncate(path, HEAD_BYTES + 1000 * (off_t)CHUNK_BYTES), 0);
	begin();
	ck_assert_uint_eq(n_orphans(wills), 1);
}
END_TEST

static void spoil(unsigned int n_bytes)
{
	uint8_t byte;

	while (n_bytes--) {
		byte = (uint8_t)rand();
		write_at(48 + rand() % (HEAD_BYTES + 2 * (int)CHUNK_BYTES - 48), &byte, 1);
	}
}

START_TEST(garbage_does_no_harm)
{
	const struct will *will = NULL;
	struct portd_will ret;
	const char *name;
	uint8_t port_num;
	uint32_t n;

	srand((unsigned int)_i);
	for (n = 1; n <= 512; n++)
		set(n, 1);
	spoil(1u << _i);
	wills_free(wills);
	wills = wills_new(0x5eed);
	ck_assert_int_eq(wills_keep(wills, open_store()), 0);
	ck_assert_uint_le(n_orphans(wills), 512);
	while ((will = wills_orphan(wills, NULL))) {
		ck_assert_uint_lt(will->is.state, CM_N_STATES);
		ck_assert(wills_port(wills, will->is.port, &name, &port_num));
		ck_assert_uint_lt(strlen(name), PORTD_DEVICE_BYTES);
		wills_inherit(wills, will, &ret);
		wills_buried(wills, ret.local_comm_id);
	}
	ck_assert(wills_are_none(wills));
}
END_TEST

/* --- no room ------------------------------------------------------------- */

static const char *state(uint32_t n)
{
	const struct will *will = wills_of_local(wills, n);

	return will ? cm_state_str((enum cm_state)will->is.state) : "none";
}

/* Check writes files, too: while there is no room for those, nothing is to be said to it. */
static void limit_files(rlim_t bytes)
{
	struct rlimit limit;

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = bytes;
	setrlimit(RLIMIT_FSIZE, &limit);
}

static void fill_beyond(uint32_t n_kept)
{
	struct portd_will will;
	uint32_t n;

	for (n = 1; n <= n_kept + 1000; n++) {
		will = version(n, 1);
		wills_set(wills, ME, &will);
	}
}

static void expect_kept(uint32_t n_kept)
{
	ck_assert_str_eq(state(n_kept + 1000), "ESTABLISHED");
	begin_again();
	ck_assert_uint_eq(n_orphans(wills), n_kept);
}

START_TEST(file_has_a_bound_and_the_table_has_none)
{
	fill_beyond(WILL_CHUNKS_MAX * WILL_CHUNK);
	expect_kept(WILL_CHUNKS_MAX * WILL_CHUNK);
}
END_TEST

START_TEST(without_room_for_more_the_file_keeps_what_it_has)
{
	limit_files(HEAD_BYTES + CHUNK_BYTES);
	fill_beyond(WILL_CHUNK);
	limit_files(RLIM_INFINITY);
	expect_kept(WILL_CHUNK);
}
END_TEST

START_TEST(without_room_for_anything_there_is_no_store)
{
	struct will_store *store = NULL;
	int fd = memfd_create("full", MFD_CLOEXEC);
	int err;

	limit_files(HEAD_BYTES - 1);
	err = will_store_open(fd, &store);
	limit_files(RLIM_INFINITY);
	ck_assert_int_eq(err, -EFBIG);
	ck_assert_ptr_null(store);
}
END_TEST

START_TEST(file_that_cannot_be_mapped_is_no_store)
{
	struct will_store *store = NULL;

	ck_assert_int_lt(will_store_open(open("/dev/null", O_RDWR | O_CLOEXEC), &store), 0);
}
END_TEST

/* --- handles ------------------------------------------------------------- */

static int handle_of(const char *name, uint8_t port_num, uint64_t in_use)
{
	char padded[PORTD_DEVICE_BYTES] = "";

	strncpy(padded, name, sizeof(padded) - 1);
	return wills_handle(wills, padded, port_num, in_use);
}

START_TEST(port_has_the_handle_that_it_had)
{
	ck_assert_int_eq(handle_of("b", 1, 1), 1);
	ck_assert_int_eq(handle_of("c", 1, 3), 2);
	begin_again();
	ck_assert_int_eq(handle_of("c", 1, 0), 2);
	ck_assert_int_eq(handle_of("b", 1, 0), 1);
	ck_assert_int_eq(handle_of("b", 2, 0), 3);
}
END_TEST

START_TEST(handle_that_is_needed_is_taken_with_its_orphans)
{
	char name[8];
	uint64_t in_use = 1;
	int i;

	set(1, 1);
	for (i = 1; i < WILL_PORTS; i++) {
		snprintf(name, sizeof(name), "d%d", i);
		ck_assert_int_eq(handle_of(name, 1, in_use), i);
		in_use |= UINT64_C(1) << i;
	}
	begin_again();
	ck_assert_uint_eq(n_orphans(wills), 1);
	ck_assert_int_eq(handle_of("other", 1, in_use & ~UINT64_C(1)), 0);
	ck_assert_uint_eq(n_orphans(wills), 0);
	ck_assert_int_eq(handle_of("more", 1, in_use), -ENOSPC);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_add_test(tcase, will_is_an_orphan_of_the_next);
	tcase_add_test(tcase, orphan_has_its_owner);
	tcase_add_test(tcase, nobody_finds_an_orphan_before_it_is_told_of);
	tcase_add_test(tcase, what_was_closed_is_not_kept);
	tcase_add_test(tcase, what_was_taken_is_kept_until_it_is_buried);
	tcase_add_test(tcase, what_ends_with_one_message_is_not_kept_when_it_is_taken);
	tcase_add_test(tcase, many_are_kept);
	tcase_add_test(tcase, room_of_orphans_is_used_again);
	tcase_add_test(tcase, file_of_nothing_is_small_again);
	tcase_add_loop_test(tcase, update_that_is_cut_off_anywhere_leaves_no_mixture, 0, N_UPDATES);
	tcase_add_loop_test(tcase, file_of_another_version_or_boot_counts_as_nothing, 0, 3);
	tcase_add_test(tcase, process_ids_of_another_namespace_are_not_known);
	tcase_add_test(tcase, will_without_seal_is_nothing);
	tcase_add_loop_test(tcase, will_that_cannot_be_is_nothing, 0,
			    (int)(sizeof(wrong) / sizeof(wrong[0])));
	tcase_add_test(tcase, of_two_wills_of_a_connection_one_counts);
	tcase_add_test(tcase, wills_of_a_port_without_seal_are_nothing);
	tcase_add_loop_test(tcase, of_a_file_cut_off_what_is_whole_counts, 0,
			    (int)(sizeof(cuts) / sizeof(cuts[0])));
	tcase_add_test(tcase, holes_are_nothing);
	tcase_add_loop_test(tcase, garbage_does_no_harm, 0, 18);
	tcase_add_test(tcase, file_has_a_bound_and_the_table_has_none);
	tcase_add_test(tcase, without_room_for_more_the_file_keeps_what_it_has);
	tcase_add_test(tcase, without_room_for_anything_there_is_no_store);
	tcase_add_test(tcase, file_that_cannot_be_mapped_is_no_store);
	tcase_add_test(tcase, port_has_the_handle_that_it_had);
	tcase_add_test(tcase, handle_that_is_needed_is_taken_with_its_orphans);
}

int main(void)
{
	Suite *suite = suite_create("will_store");
	TCase *tcase = folder_tcase("will_store", set_up, tear_down);

	tcase_set_timeout(tcase, 120);
	add_tests(tcase);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}

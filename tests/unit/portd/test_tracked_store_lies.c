/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file of the tracked connections in an unexpected state: of another version, truncated, with
 * holes, with arbitrary contents.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cm/fsm.h"
#include "tests/unit/portd/kept.h"
#include "tests/unit/portd/tracked_put.h"
#include "tests/unit/test.h"
#include "lib/portd/server/ledger/tracked_adopt.h"

/* --- foreign files ------------------------------------------------------- */

/* A value of the head, its place, and whether the log reports another version. */
static const struct {
	off_t at;
	bool has_message;
} head[] = {
	{ 0, true },   /* the version of the layout */
	{ 3, false },  /* the rest of the magic number */
	{ 4, true },   /* the layout */
	{ 16, false }, /* the boot */
};

FIXTURE(kept_set_up, kept_tear_down);

static bool has_message(FILE *log, const char *what)
{
	char line[512];
	bool is = false;

	rewind(log);
	while (fgets(line, sizeof(line), log))
		is |= strstr(line, what) != NULL;
	return is;
}

static FILE *record_log(void)
{
	FILE *log = tmpfile();

	ck_assert(log && dup2(fileno(log), STDERR_FILENO) >= 0);
	log_set_verbose();
	return log;
}

TEST_LOOP(file_of_another_version_or_boot_is_ignored, 0, (int)(sizeof(head) / sizeof(head[0])))
{
	FILE *log = record_log();

	kept_set(1, 1);
	kept_write(head[_i].at, "?", 1);
	kept_begin_again();
	ck_assert_uint_eq(kept_orphans(kept_tracker), 0);
	ck_assert(has_message(log, "stored by another version") == head[_i].has_message);
	fclose(log);
	kept_set(1, 1);
	kept_begin_again();
	ck_assert_uint_eq(kept_orphans(kept_tracker), 1);
}

/* Another version may store connections at another place, where nothing is recognized. */
TEST(file_of_another_version_is_named_by_its_head)
{
	FILE *log = record_log();

	kept_set(1, 1);
	kept_write(0, "\0\0\0", 4);
	kept_write((size_t)-STATE_FILE_TRACKED_AT, "1", 1);
	kept_begin_again();
	ck_assert_uint_eq(kept_orphans(kept_tracker), 0);
	ck_assert(has_message(log, "stored by another version"));
	fclose(log);
}

TEST(process_ids_of_another_namespace_are_ignored)
{
	kept_set(1, 1);
	kept_write(8, "????", 4);
	kept_begin_again();
	ck_assert_uint_eq(tracker_orphan(kept_tracker, NULL)->owner.pid, 0);
}

TEST(orphan_of_a_dead_process_does_not_wait)
{
	struct cm_record tracked;

	kept_set(1, 1);
	ck_assert(tracker_take(kept_tracker, KEPT_CLIENT, &tracked));
	kept_write(8, "????", 4);
	kept_begin_again();
	ck_assert(tracker_orphan(kept_tracker, NULL)->is_dead);
	ck_assert(!tracker_awaits_unknown(kept_tracker));
}

TEST(connection_without_seal_is_ignored)
{
	const uint32_t nothing = 0;

	kept_set(1, 1);
	kept_write(KEPT_HEAD_BYTES + offsetof(struct tracked, seal), &nothing, sizeof(nothing));
	kept_begin_again();
	ck_assert_uint_eq(kept_orphans(kept_tracker), 0);
}

/* Sealed but invalid: a side, a flag and a port that do not exist. */
static const struct {
	size_t at;
	uint8_t value;
} wrong[] = {
	{ offsetof(struct tracked, is.active), 2 },
	{ offsetof(struct tracked, is.path.grh), 2 },
	{ offsetof(struct tracked, is.handle), 1 },
	{ offsetof(struct tracked, is.handle), 255 },
};

TEST_LOOP(invalid_connection_is_ignored, 0, (int)(sizeof(wrong) / sizeof(wrong[0])))
{
	kept_set(1, 1);
	kept_write(KEPT_HEAD_BYTES + wrong[_i].at, &wrong[_i].value, 1);
	kept_begin_again();
	ck_assert_uint_eq(kept_orphans(kept_tracker), 0);
}

TEST(one_of_two_records_of_a_connection_is_used)
{
	const uint32_t one = 1;

	kept_set(1, 1);
	kept_set(2, 1);
	kept_write(KEPT_HEAD_BYTES + (off_t)(sizeof(struct tracked) +
					     offsetof(struct tracked, is.local_comm_id)),
		   &one, sizeof(one));
	kept_begin_again();
	ck_assert_uint_eq(kept_orphans(kept_tracker), 1);
}

TEST(connections_of_a_port_without_seal_are_ignored)
{
	const uint32_t nothing = 0;

	kept_set(1, 1);
	kept_write(56, &nothing, sizeof(nothing));
	kept_begin_again();
	ck_assert_uint_eq(kept_orphans(kept_tracker), 0);
}

/* --- truncated, with holes, arbitrary contents --------------------------- */

static const struct {
	off_t bytes;
	unsigned int n;
} cuts[] = {
	{ 0, 0 },
	{ 1, 0 },
	{ 100, 0 },
	{ KEPT_HEAD_BYTES - 1, 0 },
	{ KEPT_HEAD_BYTES, 0 },
	{ KEPT_HEAD_BYTES + 1, 0 },
	{ KEPT_HEAD_BYTES + KEPT_CHUNK_BYTES - 1, 0 },
	{ KEPT_HEAD_BYTES + KEPT_CHUNK_BYTES, 256 },
	{ KEPT_HEAD_BYTES + 2 * (off_t)KEPT_CHUNK_BYTES - 1, 256 },
};

TEST_LOOP(complete_records_of_a_truncated_file_are_used, 0, (int)(sizeof(cuts) / sizeof(cuts[0])))
{
	uint32_t n;

	for (n = 1; n <= 512; n++)
		kept_set(n, 1);
	tracker_free(kept_tracker);
	ck_assert_int_eq(truncate(state_path, STATE_FILE_TRACKED_AT + cuts[_i].bytes), 0);
	kept_begin();
	ck_assert_uint_eq(kept_orphans(kept_tracker), cuts[_i].n);
	kept_set(1000, 1);
	kept_begin_again();
	ck_assert_uint_eq(kept_orphans(kept_tracker), cuts[_i].n + 1);
}

TEST(holes_of_the_file_are_ignored)
{
	kept_set(1, 1);
	tracker_free(kept_tracker);
	ck_assert_int_eq(truncate(state_path, STATE_FILE_TRACKED_AT + KEPT_HEAD_BYTES +
						      1000 * (off_t)KEPT_CHUNK_BYTES),
			 0);
	kept_begin();
	ck_assert_uint_eq(kept_orphans(kept_tracker), 1);
}

static void spoil(unsigned int n_bytes)
{
	uint8_t byte;

	while (n_bytes--) {
		byte = (uint8_t)rand();
		kept_write(48 + rand() % (KEPT_HEAD_BYTES + 2 * (int)KEPT_CHUNK_BYTES - 48), &byte,
			   1);
	}
}

TEST_LOOP(arbitrary_contents_are_harmless, 0, 18)
{
	const struct tracked *tracked = NULL;
	struct cm_record ret;
	struct tracked_port port;
	uint32_t n;

	srand((unsigned int)_i);
	for (n = 1; n <= 512; n++)
		kept_set(n, 1);
	spoil(1u << _i);
	tracker_free(kept_tracker);
	kept_tracker = tracker_new(0x5eed);
	ck_assert_int_eq(tracker_keep(kept_tracker, kept_open()), 0);
	ck_assert_uint_le(kept_orphans(kept_tracker), 512);
	while ((tracked = tracker_orphan(kept_tracker, NULL))) {
		ck_assert_uint_lt(tracked->is.state, CM_N_STATES);
		ck_assert(tracker_port(kept_tracker, tracked->is.handle, &port));
		ck_assert_uint_lt(strlen(port.device), PORTD_DEVICE_BYTES);
		tracker_adopt(kept_tracker, tracked, &ret);
		tracker_reaped(kept_tracker, ret.local_comm_id);
	}
	ck_assert(tracker_is_empty(kept_tracker));
}

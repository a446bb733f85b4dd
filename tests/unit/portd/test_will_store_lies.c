/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file of the wills when it is not as a cmportd leaves it: of another version, cut off, with
 * holes, full of anything.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cm/fsm.h"
#include "tests/unit/cm/run.h"
#include "tests/unit/portd/kept.h"

/* --- not ours ------------------------------------------------------------ */

/* Where the head has: magic, layout, boot. */
static const off_t head_at[] = { 0, 4, 16 };

START_TEST(file_of_another_version_or_boot_counts_as_nothing)
{
	kept_set(1, 1);
	kept_write(head_at[_i], "?", 1);
	kept_begin_again();
	ck_assert_uint_eq(kept_orphans(kept_wills), 0);
	kept_set(1, 1);
	kept_begin_again();
	ck_assert_uint_eq(kept_orphans(kept_wills), 1);
}
END_TEST

START_TEST(process_ids_of_another_namespace_are_not_known)
{
	kept_set(1, 1);
	kept_write(8, "????", 4);
	kept_begin_again();
	ck_assert_uint_eq(wills_orphan(kept_wills, NULL)->owner.pid, 0);
}
END_TEST

START_TEST(will_without_seal_is_nothing)
{
	const uint32_t nothing = 0;

	kept_set(1, 1);
	kept_write(KEPT_HEAD_BYTES + offsetof(struct will, seal), &nothing, sizeof(nothing));
	kept_begin_again();
	ck_assert_uint_eq(kept_orphans(kept_wills), 0);
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
	  { offsetof(struct will, is.handle),   1		},
	{ offsetof(struct will, is.handle),   255	},
};

START_TEST(will_that_cannot_be_is_nothing)
{
	kept_set(1, 1);
	kept_write(KEPT_HEAD_BYTES + wrong[_i].at, &wrong[_i].value, 1);
	kept_begin_again();
	ck_assert_uint_eq(kept_orphans(kept_wills), 0);
}
END_TEST

START_TEST(of_two_wills_of_a_connection_one_counts)
{
	const uint32_t one = 1;

	kept_set(1, 1);
	kept_set(2, 1);
	kept_write(KEPT_HEAD_BYTES +
			   (off_t)(sizeof(struct will) + offsetof(struct will, is.local_comm_id)),
		   &one, sizeof(one));
	kept_begin_again();
	ck_assert_uint_eq(kept_orphans(kept_wills), 1);
}
END_TEST

START_TEST(wills_of_a_port_without_seal_are_nothing)
{
	const uint32_t nothing = 0;

	kept_set(1, 1);
	kept_write(56, &nothing, sizeof(nothing));
	kept_begin_again();
	ck_assert_uint_eq(kept_orphans(kept_wills), 0);
}
END_TEST

/* --- cut off, with holes, garbage ---------------------------------------- */

static const struct {
	off_t bytes;
	unsigned int n;
} cuts[] = {
	{0,						  0  },
	{ 1,						 0  },
	{ 100,					       0	 },
	{ KEPT_HEAD_BYTES - 1,			       0	 },
	{ KEPT_HEAD_BYTES,				   0  },
	{ KEPT_HEAD_BYTES + 1,			       0	 },
	{ KEPT_HEAD_BYTES + KEPT_CHUNK_BYTES - 1,		  0  },
	{ KEPT_HEAD_BYTES + KEPT_CHUNK_BYTES,		      256},
	{ KEPT_HEAD_BYTES + 2 * (off_t)KEPT_CHUNK_BYTES - 1, 256},
};

START_TEST(of_a_file_cut_off_what_is_whole_counts)
{
	uint32_t n;

	for (n = 1; n <= 512; n++)
		kept_set(n, 1);
	wills_free(kept_wills);
	ck_assert_int_eq(truncate(kept_path, cuts[_i].bytes), 0);
	kept_begin();
	ck_assert_uint_eq(kept_orphans(kept_wills), cuts[_i].n);
	kept_set(1000, 1);
	kept_begin_again();
	ck_assert_uint_eq(kept_orphans(kept_wills), cuts[_i].n + 1);
}
END_TEST

START_TEST(holes_are_nothing)
{
	kept_set(1, 1);
	wills_free(kept_wills);
	ck_assert_int_eq(truncate(kept_path, KEPT_HEAD_BYTES + 1000 * (off_t)KEPT_CHUNK_BYTES), 0);
	kept_begin();
	ck_assert_uint_eq(kept_orphans(kept_wills), 1);
}
END_TEST

static void spoil(unsigned int n_bytes)
{
	uint8_t byte;

	while (n_bytes--) {
		byte = (uint8_t)rand();
		kept_write(48 + rand() % (KEPT_HEAD_BYTES + 2 * (int)KEPT_CHUNK_BYTES - 48), &byte,
			   1);
	}
}

START_TEST(garbage_does_no_harm)
{
	const struct will *will = NULL;
	struct cm_record ret;
	const char *name;
	uint8_t port_num;
	uint32_t n;

	srand((unsigned int)_i);
	for (n = 1; n <= 512; n++)
		kept_set(n, 1);
	spoil(1u << _i);
	wills_free(kept_wills);
	kept_wills = wills_new(0x5eed);
	ck_assert_int_eq(wills_keep(kept_wills, kept_open()), 0);
	ck_assert_uint_le(kept_orphans(kept_wills), 512);
	while ((will = wills_orphan(kept_wills, NULL))) {
		ck_assert_uint_lt(will->is.state, CM_N_STATES);
		ck_assert(wills_port(kept_wills, will->is.handle, &name, &port_num));
		ck_assert_uint_lt(strlen(name), PORTD_DEVICE_BYTES);
		wills_inherit(kept_wills, will, &ret);
		wills_buried(kept_wills, ret.local_comm_id);
	}
	ck_assert(wills_are_none(kept_wills));
}
END_TEST

static void add_tests(TCase *tcase)
{
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
}

int main(void)
{
	Suite *suite = suite_create("will_store_lies");
	TCase *tcase = kept_tcase("will_store_lies");

	add_tests(tcase);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of connections when it is full: who loses a row. */
#include "lib/rsocket/roster.h"
#include "tests/unit/test.h"

TEST(connections_over_tcp_take_no_row_of_rdma)
{
	const struct roster_row row = { .credits = 7 }, tcp = { .inode = 1 };
	struct roster_row *first = roster_add(ROSTER_RDMA, &row);

	for (int i = 0; i < 2 * ROSTER_ROWS; i++)
		ck_assert_ptr_nonnull(roster_add(ROSTER_TCP, &tcp));
	ck_assert_uint_eq(first->kind, ROSTER_RDMA);
	ck_assert_uint_eq(first->credits, 7);
	ck_assert_ptr_null(roster_add(ROSTER_RDMA, &row));
	roster_remove(first);
	ck_assert_ptr_eq(roster_add(ROSTER_RDMA, &row), first);
}
END_TEST

TEST(without_a_row_of_tcp_a_connection_has_none)
{
	const struct roster_row row = { .credits = 7 };

	for (int i = 0; i < ROSTER_ROWS; i++)
		ck_assert_ptr_nonnull(roster_add(ROSTER_RDMA, &row));
	ck_assert_ptr_null(roster_add(ROSTER_TCP, &row));
}
END_TEST

/* SPDX-License-Identifier: BSD-2-Clause */
/* The last entries of the table of a preloaded program's descriptors, which few programs reach. */
#include <errno.h>
#include <stdlib.h>

#include "lib/rsocket/preload/preload.h"
#include "tests/unit/test.h"

/* fcntl(F_DUPFD) makes any number below the limit of the process. */
TEST(a_duplicate_beyond_the_table_is_refused)
{
	struct sock sock = { .refs = 1 };

	ck_assert_int_eq(map_alias(MAP_FD_MAX + 1, &sock), -1);
	ck_assert_int_eq(errno, EMFILE);
	ck_assert_int_eq(sock.refs, 1);
	ck_assert_ptr_null(map_get(MAP_FD_MAX + 1));
	ck_assert_int_eq(map_alias(MAP_FD_MAX, &sock), 0);
	ck_assert_ptr_eq(map_get(MAP_FD_MAX), &sock);
}
END_TEST

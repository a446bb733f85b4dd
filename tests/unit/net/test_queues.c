/* SPDX-License-Identifier: BSD-2-Clause */
/* Classes of queues (lib/net/queues.c), with a folder as sysfs. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/net/internal.h"
#include "tests/unit/test.h"

#define QUEUES 3

static char folder[TEMPORARY_BYTES];

static const char *queue_path(const char *kind, int i, const char *file)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s-%d%s", folder, kind, i, file);
	return path;
}

static void make_queue(const char *kind, int i, const char *class)
{
	FILE *file;

	ck_assert_int_eq(mkdir(queue_path(kind, i, ""), 0700), 0);
	if (!class)
		return;
	file = fopen(queue_path(kind, i, "/traffic_class"), "w");
	ck_assert_ptr_nonnull(file);
	fprintf(file, "%s\n", class);
	fclose(file);
}

static void set_up(void)
{
	ck_assert_ptr_nonnull(mkdtemp(name_temporary(folder)));
}

static void tear_down(void)
{
	for (int i = 0; i < QUEUES; i++) {
		unlink(queue_path("tx", i, "/traffic_class"));
		rmdir(queue_path("tx", i, ""));
		unlink(queue_path("rx", i, "/traffic_class"));
		rmdir(queue_path("rx", i, ""));
	}
	rmdir(folder);
}

FIXTURE(set_up, tear_down);

TEST(queue_of_a_class_other_than_0_is_found)
{
	make_queue("tx", 0, "0");
	make_queue("tx", 1, "0");
	make_queue("tx", 2, "3");
	ck_assert(net_queues_have_classes(folder));
}

TEST(class_0_is_no_class)
{
	make_queue("tx", 0, "0");
	make_queue("tx", 1, "0");
	ck_assert(!net_queues_have_classes(folder));
}

TEST(queues_that_receive_do_not_count)
{
	make_queue("rx", 0, "1");
	ck_assert(!net_queues_have_classes(folder));
}

/* An interface with one queue has the file, but reading it fails; a kernel before 4.10 has none. */
TEST(unreadable_queue_has_no_class)
{
	make_queue("tx", 0, NULL);
	make_queue("tx", 1, NULL);
	ck_assert_int_eq(mkdir(queue_path("tx", 1, "/traffic_class"), 0700), 0);
	ck_assert(!net_queues_have_classes(folder));
	rmdir(queue_path("tx", 1, "/traffic_class"));
}

TEST(missing_folder_has_no_classes)
{
	ck_assert(!net_queues_have_classes("/nowhere/queues"));
}

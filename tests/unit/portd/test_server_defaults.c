/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Settings of root for ports: the file (lib/portd/proto/port_file.h), and the clients that get
 * them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/portd/proto/port_file.h"
#include "mad/umad_owner.h"
#include "tests/unit/portd/folder.h"
#include "tests/unit/portd/scene.h"
#include "tests/unit/test.h"

#define alice (&scene_alice)
#define bob   (&scene_bob)

static char path[TEMPORARY_BYTES];

static void write_file(const char *text)
{
	FILE *file = fopen(path, "w");

	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	fclose(file);
}

static void set_up(void)
{
	close(mkstemp(name_temporary(path)));
	rig_port_file(path);
	write_file(RIG_DEVICE " 1 default_roce_tos=106\n");
	scene_set_up();
}

static void tear_down(void)
{
	scene_tear_down();
	unlink(path);
	rig_port_file(NULL);
}

FIXTURE(set_up, tear_down);

/* --- the file ------------------------------------------------------------ */

static struct port_file file_of(const char *text)
{
	struct port_file file = { .n = 0 };
	unsigned int number;

	write_file(text);
	ck_assert_int_eq(port_file_read(path, &file, &number), 0);
	return file;
}

TEST(last_line_about_a_port_counts)
{
	struct port_file file = file_of("* * default_roce_tos=8 # all\n\n"
					"mlx5_0 2 default_roce_tos=0x10\n"
					"  # none\n"
					"mlx5_1 * default_roce_tos=24");

	ck_assert_uint_eq(port_file_tos(&file, "mlx5_0", 1), 8);
	ck_assert_uint_eq(port_file_tos(&file, "mlx5_0", 2), 16);
	ck_assert_uint_eq(port_file_tos(&file, "mlx5_1", 2), 24);
	ck_assert_uint_eq(port_file_tos(&file, "mlx5_10", 1), 8);
}

TEST(defaults_are_unset_without_a_file)
{
	struct port_file file = file_of("* * default_roce_tos=8\n");
	unsigned int number;

	unlink(path);
	ck_assert_int_eq(port_file_read(path, &file, &number), 0);
	ck_assert_uint_eq(port_file_tos(&file, "mlx5_0", 1), 0);
}

static const char *const wrong[] = {
	"mlx5_0 1\n",
	"mlx5_0 1 default_roce_tos=256\n",
	"mlx5_0 1 default_roce_tos=\n",
	"mlx5_0 1 default_roce_tos=-1\n",
	"mlx5_0 1 default_roce_tos=8 more\n",
	"mlx5_0 0 default_roce_tos=8\n",
	"mlx5_0 one default_roce_tos=8\n",
	"mlx5_0 1 default_roce_mode=v1\n",
	"mlx5_0 1 default_roce_mode=RoCE v3\n",
	"mlx5_0 0 default_roce_mode=RoCE v2\n",
	"mlx5_0 1 default_roce_mode=RoCE v2 more\n",
	"a2345678901234567890123456789012345678901234567890123456789012345 1 default_roce_tos=8\n",
};

TEST_LOOP(invalid_line_is_reported, 0, sizeof(wrong) / sizeof(wrong[0]))
{
	struct port_file file = { .n = 7 };
	unsigned int number = 0;
	char text[256];

	snprintf(text, sizeof(text), "* * default_roce_tos=8\n%s", wrong[_i]);
	write_file(text);
	ck_assert_int_eq(port_file_read(path, &file, &number), -EINVAL);
	ck_assert_uint_eq(number, 2);
	ck_assert_uint_eq(file.n, 7);
}

TEST(other_modes_are_refused)
{
	struct port_file file = file_of("mlx5_0 1 default_roce_mode=RoCE v2 # as ever\n"
					"* * default_roce_tos=8\n");
	unsigned int number = 0;

	ck_assert_uint_eq(file.n, 1);
	write_file("* * default_roce_tos=9\n* * default_roce_mode=IB/RoCE v1\n");
	ck_assert_int_eq(port_file_read(path, &file, &number), -EPROTONOSUPPORT);
	ck_assert_uint_eq(number, 2);
	ck_assert_uint_eq(port_file_tos(&file, "mlx5_0", 1), 8);
}

/* --- the clients that get them ------------------------------------------- */

/* Return: the latest value of port 1 that a client got; -1: none. */
static int reported_default(struct rig_client *client)
{
	struct portd_record record;
	int tos = -1;

	while (rig_next(client, &record)) {
		ck_assert_int_eq(record.type, PORTD_PORT_TOS);
		ck_assert_uint_eq(record.port_tos.port, client->handle);
		tos = record.port_tos.tos;
	}
	return tos;
}

TEST(client_gets_the_defaults_when_it_opens_a_port)
{
	ck_assert_uint_eq(alice->reply.tos, 106);
	ck_assert_int_eq(reported_default(alice), -1);
}

TEST(client_with_a_port_gets_changed_defaults)
{
	write_file("* * default_roce_tos=32\n");
	rig_reload();
	ck_assert_int_eq(reported_default(alice), 32);
	ck_assert_int_eq(reported_default(bob), 32);
	rig_reload();
	ck_assert_int_eq(reported_default(alice), -1);
}

TEST(client_without_the_port_gets_no_defaults)
{
	struct rig_client carol;

	rig_meet(&carol);
	write_file("");
	rig_reload();
	ck_assert_int_eq(reported_default(&carol), -1);
	ck_assert_int_eq(reported_default(alice), 0);
}

TEST(invalid_file_changes_nothing)
{
	write_file("* * default_roce_tos=32\nnonsense\n");
	rig_reload();
	ck_assert_int_eq(reported_default(alice), -1);
}

TEST(resuming_client_gets_the_defaults_again)
{
	struct portd_record open = { .type = PORTD_OPEN_PORT,
				     .open_port = { .port_num = 1, .device = RIG_DEVICE } };
	struct rig_client carol = { .control = rig_dial(), .data = -1 };

	ck_assert_int_eq(rig_resume(&carol, bob->page_fd), 0);
	ck_assert_int_eq(rig_ask(&carol, &open), 0);
	carol.handle = carol.reply.handle;
	ck_assert_int_eq(reported_default(&carol), 106);
}

/* --- devices that are renamed -------------------------------------------- */

/* The kernel's state of the rig's device, which has no node. */
static void rename_device(const char *name)
{
	char command[256];

	folder_make();
	umad_dirs.sys = folder;
	snprintf(command, sizeof(command),
		 "d=%s/class/infiniband_verbs; mkdir -p $d && echo %s >$d/ibdev", folder, name);
	ck_assert_int_eq(system(command), 0);
}

TEST(renamed_device_is_the_same_device)
{
	struct portd_record open = { .type = PORTD_OPEN_PORT,
				     .open_port = { .port_num = 1, .device = "roceo1" } };

	write_file("roceo1 1 default_roce_tos=48\n");
	rig_reload();
	rename_device("roceo1");
	ck_assert_int_eq(rig_ask(bob, &open), 0);
	ck_assert_uint_eq(bob->reply.handle, alice->handle);
	ck_assert_uint_eq(bob->reply.tos, 48);
}

TEST(device_that_got_the_old_name_of_another_is_not_that_one)
{
	struct portd_record open = { .type = PORTD_OPEN_PORT,
				     .open_port = { .port_num = 1, .device = RIG_DEVICE } };

	rename_device("roceo1");
	ck_assert_int_eq(rig_ask(bob, &open), 0);
	ck_assert_uint_ne(bob->reply.handle, alice->handle);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The path of cmportd's socket, from the environment or by default, and the process that serves it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/portd/proto/socket_path.h"
#include "tests/unit/portd/folder.h"
#include "tests/unit/test.h"

#define NOBODY 65534

static void setup(void)
{
	folder_make();
	unsetenv("PURECM_SOCKET");
}

FIXTURE(setup, NULL);

TEST(the_path_is_the_default_without_an_environment)
{
	char path[SOCKET_PATH_BYTES];

	ck_assert_int_eq(socket_path_find(path), 0);
	ck_assert_str_eq(path, SOCKET_PATH_DEFAULT);
}

TEST(the_path_is_taken_from_the_environment)
{
	char path[SOCKET_PATH_BYTES];

	setenv("PURECM_SOCKET", "/a/b", 1);
	ck_assert_int_eq(socket_path_find(path), 0);
	ck_assert_str_eq(path, "/a/b");
}

TEST(a_path_is_made_absolute)
{
	char path[SOCKET_PATH_BYTES];

	ck_assert_int_eq(chdir(folder), 0);
	ck_assert_int_eq(socket_path_absolute("s", path), 0);
	ck_assert_str_eq(path, socket_path);
}

TEST(a_path_that_no_socket_can_have_is_refused)
{
	char wanted[SOCKET_PATH_BYTES + 1], path[SOCKET_PATH_BYTES];

	memset(wanted, 'x', sizeof(wanted));
	wanted[0] = '/';
	wanted[SOCKET_PATH_BYTES] = '\0';
	ck_assert_int_eq(socket_path_absolute(wanted, path), -ENAMETOOLONG);
}

TEST(a_path_is_served_while_it_has_a_listener)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	strcpy(addr.sun_path, socket_path);
	ck_assert(!socket_path_is_served(socket_path));
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	ck_assert(!socket_path_is_served(socket_path));
	ck_assert_int_eq(listen(fd, 1), 0);
	ck_assert(socket_path_is_served(socket_path));
	close(fd);
	ck_assert(!socket_path_is_served(socket_path));
	unlink(socket_path);
}

static int try_in(const char *name)
{
	char path[SOCKET_PATH_BYTES];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return socket_path_try(path);
}

TEST(a_socket_can_be_where_one_folder_is_missing)
{
	ck_assert_int_eq(try_in("s"), 0);
	ck_assert_int_eq(try_in("a/s"), 0);
	ck_assert_int_eq(try_in("a/b/s"), -ENOENT);
}

TEST(a_socket_cannot_be_in_a_folder_of_another_user)
{
	if (!is_root())
		return;
	ck_assert_int_eq(seteuid(NOBODY), 0);
	ck_assert_int_eq(socket_path_try("/etc/s"), -EACCES);
	ck_assert_int_eq(socket_path_try("/etc/purecm.none/s"), -EACCES);
	ck_assert_int_eq(seteuid(0), 0);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program of root does not use the cmportd of another user at the path of the socket, which would
 * observe and choose the program's peers.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/portd/client/portd_client.h"
#include "tests/unit/portd/folder.h"

#define NOBODY_ID   65534
#define NOBODY_TEXT "uid 65534"

static pid_t impostor;
static struct portd_client *client;
static struct portd_ids ids;
static struct portd_why why;

/*
 * Accepts connections and closes them. The listener has the identity of the process that called
 * listen().
 */
static void serve_as(uid_t uid, int ready)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	strcpy(addr.sun_path, socket_path);
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || (uid && setuid(uid)) ||
	    listen(fd, 8) || write(ready, "", 1) != 1)
		_exit(1);
	for (;;)
		close(accept(fd, NULL, NULL));
}

static void begin_as(uid_t uid)
{
	int ready[2];
	char byte;

	folder_make();
	ck_assert(!pipe(ready));
	impostor = fork();
	if (impostor == 0)
		serve_as(uid, ready[1]);
	close(ready[1]);
	ck_assert_int_eq(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	setenv("PURECM_SOCKET", socket_path, 1);
	client = NULL;
}

static void end(void)
{
	kill(impostor, SIGKILL);
	waitpid(impostor, NULL, 0);
}

FIXTURE(NULL, NULL);

TEST(root_does_not_use_the_cmportd_of_another_user)
{
	if (!is_root())
		return;
	begin_as(NOBODY_ID);
	ck_assert_int_eq(portd_client_open(&client, &ids, &why), -EPERM);
	ck_assert_ptr_nonnull(strstr(why.text, NOBODY_TEXT));
	end();
}

/* The tools show the data of its owner. */
TEST(root_may_visit_the_cmportd_of_another_user)
{
	if (!is_root())
		return;
	begin_as(NOBODY_ID);
	ck_assert_int_eq(portd_client_visit(&client, &why), -ECONNREFUSED);
	end();
}

TEST(root_uses_its_own_cmportd)
{
	if (!is_root())
		return;
	begin_as(0);
	ck_assert_int_eq(portd_client_open(&client, &ids, &why), -ECONNREFUSED);
	end();
}

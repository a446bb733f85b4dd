/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A cmportd in a thread of the process: one client at a time, nothing of it in a forked child, and
 * no signal of the program's in its thread.
 */
#include <dirent.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/net/netlink.h"
#include "lib/net/port_space.h"
#include "lib/portd/inline.h"
#include "tests/unit/test.h"

static struct portd_client *client;
static unsigned int n_fds; /* before there was a server */

static unsigned int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	ck_assert_ptr_nonnull(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static int open_client(struct portd_client **ret)
{
	struct portd_ids ids;
	struct portd_why why;

	return portd_client_open_by(ret, inline_connect, &ids, &why);
}

/* What the process keeps for all users of the net, the children of a test have of their own. */
static void setup(void)
{
	struct port_limits limits;

	port_limits_reread(&limits);
	n_fds = count_fds();
	ck_assert_int_eq(open_client(&client), 0);
}

FIXTURE(setup, NULL);
TIME_LIMIT_S(60);

static bool answers(struct portd_client *of)
{
	struct portd_ids ids;

	return portd_lease_ids(of, &ids) == 0 && ids.count != 0;
}

TEST(it_serves_its_client)
{
	ck_assert(answers(client));
	ck_assert_uint_ne(portd_take_port(client, RDMA_PS_TCP), 0);
}

TEST(a_second_client_is_refused)
{
	struct portd_client *second;

	ck_assert_int_eq(open_client(&second), -EBUSY);
	ck_assert(answers(client));
}

TEST(another_is_started_when_its_client_has_gone)
{
	portd_client_close(client);
	ck_assert_int_eq(open_client(&client), 0);
	ck_assert(answers(client));
}

TEST(it_is_gone_when_its_client_was_waited_for)
{
	portd_client_hang_up(client);
	inline_end(20000);
	portd_client_close(client);
	net_after_fork();
	ck_assert_uint_eq(count_fds(), n_fds);
	ck_assert_int_eq(open_client(&client), -ESHUTDOWN);
}

static int status_of(pid_t child)
{
	int status = -1;

	ck_assert_int_eq(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(a_child_has_none_of_its_descriptors)
{
	pid_t child = fork();

	if (child == 0) {
		portd_client_after_fork(client);
		net_after_fork();
		_exit(count_fds() == n_fds ? 0 : 1);
	}
	ck_assert_int_eq(status_of(child), 0);
	ck_assert(answers(client));
}

TEST(a_child_may_have_one_of_its_own)
{
	pid_t child = fork();

	if (child == 0) {
		portd_client_after_fork(client);
		net_after_fork();
		_exit(open_client(&client) == 0 && answers(client) ? 0 : 1);
	}
	ck_assert_int_eq(status_of(child), 0);
	ck_assert(answers(client));
}

/* The line of a file of /proc that begins like that. */
static bool line_of(const char *path, const char *begin, char *ret, int bytes)
{
	FILE *file = fopen(path, "re");
	bool found = false;

	while (file && !found && fgets(ret, bytes, file))
		found = strncmp(ret, begin, strlen(begin)) == 0;
	if (file)
		fclose(file);
	return found;
}

TEST(no_signal_is_delivered_to_its_thread)
{
	DIR *dir = opendir("/proc/self/task");
	unsigned long long blocked = 0;
	char path[300], line[256];
	struct dirent *entry;

	while ((entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/status", entry->d_name);
		if (!line_of(path, "Name:", line, sizeof(line)) || !strstr(line, "purecm-cmportd"))
			continue;
		ck_assert(line_of(path, "SigBlk:", line, sizeof(line)));
		ck_assert_int_eq(sscanf(line, "SigBlk: %llx", &blocked), 1);
	}
	closedir(dir);
	ck_assert(blocked >> (SIGTERM - 1) & 1 && blocked >> (SIGUSR1 - 1) & 1 &&
		  blocked >> (SIGALRM - 1) & 1);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * server_run() of a cmportd for tests: it takes its directory, writes its initial state to
 * SOCKET.seen, and accepts no client; with a file SOCKET.slow, it starts after the timeout of
 * clients; with SOCKET.mortal it removes that, and ends by a signal. Linked with main.c to a
 * program that test_spawn.c starts as the library starts the real one.
 */
#include "lib/portd/server/server.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "lib/portd/server/files/socket_dir.h"
#include "lib/portd/server/server_state.h"

#define SLOW_S 6

extern char **environ;

static void write_fds(FILE *to)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	char link[256];
	ssize_t n;

	while ((entry = readdir(dir))) {
		n = readlinkat(dirfd(dir), entry->d_name, link, sizeof(link) - 1);
		if (n > 0 && atoi(entry->d_name) != dirfd(dir))
			fprintf(to, "fd %s %.*s\n", entry->d_name, (int)n, link);
	}
	closedir(dir);
}

static void write_status(FILE *to)
{
	FILE *status = fopen("/proc/self/status", "re");
	char line[256];

	while (fgets(line, sizeof(line), status))
		if (strncmp(line, "Sig", 3) == 0 || strncmp(line, "Cpus_allowed_list", 17) == 0 ||
		    strncmp(line, "Cap", 3) == 0 || strncmp(line, "NoNewPrivs", 10) == 0 ||
		    strncmp(line, "Seccomp:", 8) == 0)
			fputs(line, to);
	fclose(status);
}

/* A confined process cannot get all of it by system calls. */
static void write_standing(FILE *to)
{
	FILE *oom = fopen("/proc/self/oom_score_adj", "re"), *stat = fopen("/proc/self/stat", "re");
	struct rlimit size = { .rlim_cur = 0 };
	int adj = 0, sid = 0, nice = 0, policy = 0;

	getrlimit(RLIMIT_FSIZE, &size);
	if (fscanf(oom, "%d", &adj) != 1 ||
	    fscanf(stat,
		   "%*d (%*[^)]) %*c %*d %*d %d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %d "
		   "%*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d "
		   "%*d %*d %d",
		   &sid, &nice, &policy) != 3)
		abort();
	fclose(oom);
	fclose(stat);
	fprintf(to, "sid %d\npolicy %d\nnice %d\noom %d\nfsize %llu\n", sid, policy, nice, adj,
		(unsigned long long)size.rlim_cur);
}

static int write_all(const char *path)
{
	char *cwd = getcwd(NULL, 0);
	char **env, seen[256];
	FILE *to;
	int fd;

	snprintf(seen, sizeof(seen), "%s.seen", path);
	/* Writing to a pipe without a reader fails; without O_NONBLOCK it might block. */
	fd = open(seen, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	to = fd < 0 ? NULL : fdopen(fd, "a");
	if (!to)
		return -errno;
	fprintf(to, "pid %d\ncwd %s\n", (int)getpid(), cwd);
	write_status(to);
	write_standing(to);
	write_fds(to);
	for (env = environ; *env; env++)
		fprintf(to, "env %s\n", *env);
	fputs("end\n", to);
	fclose(to);
	free(cwd);
	return 0;
}

/* After a failed test, its folder is removed and its processes may still run. */
static void accept_nobody(int listening, const struct server_options *options)
{
	struct pollfd poll_fd[2] = { { .fd = listening, .events = POLLIN },
				     { .fd = options->stop_fd, .events = POLLIN } };
	time_t until = time(NULL) + (time_t)options->idle_s;
	int fd;

	while (!poll_fd[1].revents && time(NULL) < until && access(options->path, F_OK) == 0) {
		poll(poll_fd, 2, 100);
		fd = accept(listening, NULL, NULL);
		if (fd >= 0)
			close(fd);
	}
}

static void be_slow(const char *path)
{
	const struct timespec wait = { .tv_sec = SLOW_S };
	char slow[256];

	snprintf(slow, sizeof(slow), "%s.slow", path);
	if (!access(slow, F_OK))
		nanosleep(&wait, NULL);
}

static void be_mortal(const char *path)
{
	char mortal[256];

	snprintf(mortal, sizeof(mortal), "%s.mortal", path);
	if (!unlink(mortal))
		__builtin_trap(); /* a confined process may not kill itself */
}

int server_run(const struct server_options *options)
{
	struct socket_dir *dir;
	int err;

	be_slow(options->path);
	be_mortal(options->path);
	err = socket_dir_take(options->path, &dir);
	if (err)
		return err;
	if (options->serves)
		options->serves();
	log_debug("idle after %u s", options->idle_s);
	err = write_all(options->path);
	if (!err)
		accept_nobody(socket_dir_listen_fd(dir), options);
	socket_dir_leave(dir);
	return err;
}

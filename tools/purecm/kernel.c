/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the kernel's connection manager does on this host, as a source: its tracepoints, by an
 * instance of tracefs of our own, which is removed in the end, so nobody else's tracing changes.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "tools/purecm/command.h"
#include "tools/purecm/kernel_line.h"

#define TEXT_BYTES 65536

struct kernel {
	struct source source; /* first */
	struct kernel_lines *lines;
	int fd;
	bool is_live;
	char text[TEXT_BYTES]; /* that was read: lines, and the beginning of one */
	size_t n_text, n_taken;
	char instance[128]; /* empty: there is none */
	uint64_t offset_ns; /* from the clock of the trace to CLOCK_REALTIME */
	struct observation ready[KERNEL_LINE_MESSAGES];
	int n_ready, at;
};

static volatile sig_atomic_t is_over;

static void end(int signal_number)
{
	(void)signal_number;
	is_over = 1;
}

/* Return: false at the end. */
static bool await(const struct kernel *kernel)
{
	struct pollfd poll_fd = { .fd = kernel->fd, .events = POLLIN };

	if (!kernel->is_live)
		return true;
	if (is_over)
		return false;
	fflush(stdout); /* what was there is to be seen before we sleep */
	return poll(&poll_fd, 1, -1) > 0 && !is_over;
}

/* What is no line in so many bytes is none that we know. Return: false at the end. */
static bool read_more(struct kernel *kernel)
{
	ssize_t n;

	kernel->n_text -= kernel->n_taken;
	memmove(kernel->text, kernel->text + kernel->n_taken, kernel->n_text);
	kernel->n_taken = 0;
	if (kernel->n_text == TEXT_BYTES)
		kernel->n_text = 0;
	if (!await(kernel))
		return false;
	n = read(kernel->fd, kernel->text + kernel->n_text, TEXT_BYTES - kernel->n_text);
	kernel->n_text += n > 0 ? (size_t)n : 0;
	return n > 0;
}

/* Return: a line without its end; NULL when there are no more. */
static const char *next_line(struct kernel *kernel)
{
	char *line, *newline;

	do {
		line = kernel->text + kernel->n_taken;
		newline = memchr(line, '\n', kernel->n_text - kernel->n_taken);
	} while (!newline && read_more(kernel));
	if (!newline)
		return NULL;
	*newline = '\0';
	kernel->n_taken = (size_t)(newline + 1 - kernel->text);
	return line;
}

static int next(struct source *source, struct observation *ret)
{
	struct kernel *kernel = (struct kernel *)source;
	char note[KERNEL_LINE_NOTE];
	const char *line;

	while (kernel->at == kernel->n_ready) {
		line = next_line(kernel);
		if (!line)
			return 0;
		source->counts.packets++;
		kernel->at = 0;
		kernel->n_ready = kernel_line_take(kernel->lines, line, kernel->ready, note);
		if (*note)
			complain("%s", note);
	}
	*ret = kernel->ready[kernel->at++];
	ret->time_ns += kernel->offset_ns;
	ret->number = ++source->counts.mads;
	return 1;
}

static void finish(struct source *source)
{
	struct kernel *kernel = (struct kernel *)source;

	if (source->counts.mads)
		complain("the kernel tells of a message who sent it and why it refuses; of private "
			 "data, timeouts, the path and packet numbers it tells nothing, and comm "
			 "ids are numbers of this trace");
	if (kernel->fd > STDIN_FILENO)
		close(kernel->fd);
	if (*kernel->instance && rmdir(kernel->instance))
		complain("%s cannot be removed: %s", kernel->instance, strerror(errno));
	kernel_lines_free(kernel->lines);
	free(kernel);
}

/* --- tracefs -------------------------------------------------------------- */

static const char *find_tracefs(void)
{
	static const char *const places[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
	char path[64];
	size_t i;

	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%s/instances", places[i]);
		if (access(path, F_OK) == 0)
			return places[i];
	}
	return NULL;
}

static int write_file(const struct kernel *kernel, const char *name, const char *text)
{
	char path[256];
	int fd, err = 0;

	snprintf(path, sizeof(path), "%s/%s", kernel->instance, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

static int complain_of_tracefs(const char *tracefs, int err)
{
	if (err == -EACCES || err == -EPERM)
		complain("the kernel lets only root trace it, and not where it is locked down: %s",
			 strerror(-err));
	else
		complain("%s/instances: %s", tracefs, strerror(-err));
	return err;
}

static int make_instance(struct kernel *kernel)
{
	const char *tracefs = find_tracefs();
	int err;

	if (!tracefs) {
		complain(geteuid() == 0 ? "there is no tracefs: mount -t tracefs tracefs "
					  "/sys/kernel/tracing; some kernels are built without it"
					: "the kernel lets only root trace it");
		return -ENOENT;
	}
	snprintf(kernel->instance, sizeof(kernel->instance), "%s/instances/purecm-%d", tracefs,
		 (int)getpid());
	if (mkdir(kernel->instance, 0700)) {
		err = -errno;
		kernel->instance[0] = '\0';
		return complain_of_tracefs(tracefs, err);
	}
	/* CLOCK_MONOTONIC, which tells the time of the day. */
	err = write_file(kernel, "trace_clock", "mono");
	if (!err)
		err = write_file(kernel, "events/rdma_cma/enable", "1");
	if (err == -ENOENT)
		complain("the kernel's connection manager is not there, or tells nothing: "
			 "modprobe rdma_cm (Linux 5.10 and later have its events)");
	else if (err)
		complain_of_tracefs(tracefs, err);
	kernel->offset_ns = clock_ns_of(CLOCK_REALTIME) - clock_ns_of(CLOCK_MONOTONIC);
	return err;
}

static int open_lines(struct kernel *kernel, const char *path)
{
	const struct sigaction action = { .sa_handler = end };
	char pipe[256];
	int err;

	if (!path) {
		err = make_instance(kernel);
		if (err)
			return err;
		kernel->is_live = true;
		snprintf(pipe, sizeof(pipe), "%s/trace_pipe", kernel->instance);
		path = pipe;
	}
	kernel->fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	if (kernel->fd < 0) {
		err = -errno;
		complain("%s: %s", path, strerror(errno));
		return err;
	}
	if (!kernel->is_live)
		return 0;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	return 0;
}

int kernel_open(const char *path, struct source **ret)
{
	struct kernel *kernel = calloc(1, sizeof(*kernel));
	int err = -ENOMEM;

	if (!kernel)
		return err;
	kernel->source = (struct source){ .name = path ? path : "the kernel's connection manager",
					  .next = next,
					  .close = finish };
	kernel->lines = kernel_lines_new();
	if (kernel->lines)
		err = open_lines(kernel, path);
	if (err) {
		finish(&kernel->source);
		return err;
	}
	*ret = &kernel->source;
	return 0;
}

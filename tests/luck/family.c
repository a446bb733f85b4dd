/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes that fork: before and after first use, exec, and a library that is closed while its
 * thread runs. Each command is one scenario; it prints what is wrong, or nothing.
 *
 * family PLAY ADDR
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "talk.h"

#define PORT	"7301"
#define WAIT_MS 8000
#define ALARM_S 600

static int converse(const char *who, const char *addr)
{
	struct outcome outcome = talk(addr, PORT, WAIT_MS);

	if (outcome.what)
		printf("%s: %s: %s\n", who, outcome.what, strerror(outcome.err));
	return outcome.what ? 1 : 0;
}

static pid_t begin_child(void)
{
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child < 0) {
		perror("family: fork");
		exit(2);
	}
	if (child == 0)
		alarm(ALARM_S);
	return child;
}

static int await_child(pid_t child)
{
	int status;

	if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) {
		printf("child: ended by signal %d\n", WTERMSIG(status));
		return 1;
	}
	return WEXITSTATUS(status);
}

static int fork_before_first_use(const char *addr)
{
	pid_t child = begin_child();

	if (child == 0)
		exit(converse("child", addr));
	return await_child(child);
}

/*
 * The port belongs to the parent: the child gets an error, and its end does not affect the parent.
 */
static int fork_after_use(const char *addr)
{
	struct outcome outcome;
	pid_t child;

	if (converse("parent before", addr))
		return 1;
	child = begin_child();
	if (child == 0) {
		outcome = talk(addr, PORT, WAIT_MS);
		if (outcome.what && outcome.err == EADDRINUSE)
			exit(0);
		printf("child: %s: %s\n", outcome.what ? outcome.what : "nothing",
		       strerror(outcome.err));
		exit(1);
	}
	return await_child(child) | converse("parent after", addr);
}

/* cmportd serves both. */
static int fork_after_use_served(const char *addr)
{
	pid_t child;

	if (converse("parent before", addr))
		return 1;
	child = begin_child();
	if (child == 0)
		exit(converse("child", addr));
	return await_child(child) | converse("parent after", addr);
}

/* After the parent's end the child can bind the port. */
static int fork_and_inherit(const char *addr)
{
	int ends[2];
	char nothing;
	pid_t child;

	if (converse("parent", addr) || pipe(ends))
		return 1;
	child = begin_child();
	if (child)
		_exit(0);
	close(ends[1]);
	if (read(ends[0], &nothing, 1) != 0)
		return 1;
	while (getppid() != 1)
		usleep(10000);
	return converse("orphan", addr);
}

static int fork_with_open_connections(const char *addr)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	pid_t child;

	if (converse("parent before", addr))
		return 1;
	channel = rdma_create_event_channel();
	if (!channel || rdma_create_id(channel, &id, NULL, RDMA_PS_TCP))
		return 1;
	child = begin_child();
	if (child == 0)
		exit(0); /* with the parent's id in its memory */
	if (await_child(child) || rdma_destroy_id(id))
		return 1;
	rdma_destroy_event_channel(channel);
	return converse("parent after", addr);
}

static int exec_inherits_nothing(const char *addr)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;

	if (converse("before", addr))
		return 1;
	channel = rdma_create_event_channel();
	if (!channel || rdma_create_id(channel, &id, NULL, RDMA_PS_TCP))
		return 1;
	/* ls complains about the shell's own pipe, which may be closed meanwhile. */
	execlp("sh", "sh", "-c",
	       "! ls -l /proc/$$/fd 2>/dev/null | grep -e infiniband -e socket -e event", NULL);
	return 1;
}

/* The library was opened, used and closed; its thread, and messages from the kernel, remain. */
static int close_the_library(const char *addr)
{
	struct rdma_event_channel *(*create_channel)(void);
	int (*create_id)(struct rdma_event_channel *, struct rdma_cm_id **, void *,
			 enum rdma_port_space);
	void *library = dlopen("librdmacm.so.1", RTLD_NOW);
	struct rdma_cm_id *id;

	(void)addr;
	if (!library) {
		puts(dlerror());
		return 1;
	}
	*(void **)&create_channel = dlsym(library, "rdma_create_event_channel");
	*(void **)&create_id = dlsym(library, "rdma_create_id");
	if (create_id(create_channel(), &id, NULL, RDMA_PS_TCP))
		return 1;
	dlclose(library);
	sleep(1);
	return 0;
}

static const struct {
	const char *name;
	int (*act)(const char *addr);
} plays[] = {
	{ "fork-before-first-use", fork_before_first_use },
	{ "fork-after-use", fork_after_use },
	{ "fork-after-use-served", fork_after_use_served },
	{ "fork-and-inherit", fork_and_inherit },
	{ "fork-with-open-ids", fork_with_open_connections },
	{ "exec", exec_inherits_nothing },
	{ "dlclose", close_the_library },
};

int main(int argc, char **argv)
{
	size_t i;

	for (i = 0; argc > 2 && i < sizeof(plays) / sizeof(plays[0]); i++)
		if (strcmp(argv[1], plays[i].name) == 0)
			return plays[i].act(argv[2]);
	fputs("usage: family PLAY ADDR\n", stderr);
	return 2;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The other end of a script: a process that executes the lines that the player sends. */
#include <netdb.h>
#include <signal.h>
#include <sys/prctl.h>

#include "player.h"

static struct play end = { .control = -1 };

/* The first line of a player: pause, limit, its base port, and both hosts' addresses. */
static bool open_with(FILE *from)
{
	char line[LINE_BYTES], *texts[4], *at;
	unsigned pause_us;
	int i;

	if (!fgets(line, sizeof(line), from))
		return false;
	pause_us = atoi(strtok_r(line, " \n", &at));
	end.limit_ms = atoi(strtok_r(NULL, " \n", &at));
	base_port = atoi(strtok_r(NULL, " \n", &at));
	for (i = 0; i < 4; i++)
		if (!(texts[i] = strtok_r(NULL, " \n", &at)))
			return false;
	parse_hosts(texts);
	open_end(&end, pause_us);
	return true;
}

static void play_end(int control)
{
	FILE *from = fdopen(control, "r");
	char line[LINE_BYTES];

	dup2(control, STDOUT_FILENO);
	if (!open_with(from))
		return;
	while (fgets(line, sizeof(line), from)) {
		line[strcspn(line, "\n")] = '\0';
		if (strcmp(line, "ping"))
			play_line(&end, line);
		let_thread_go_on(&end);
		printf(".\n");
		fflush(stdout);
	}
}

int serve(const char *port)
{
	struct addrinfo hints = { .ai_family = AF_INET6, .ai_flags = AI_PASSIVE | AI_NUMERICHOST };
	struct addrinfo *found;
	int listener, control, on = 1;

	if (getaddrinfo("::", port, &hints, &found))
		return 2;
	listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, found->ai_addr, found->ai_addrlen) || listen(listener, 64)) {
		perror("player: the peer's port");
		return 2;
	}
	freeaddrinfo(found);
	signal(SIGCHLD, SIG_IGN);
	ibv_free_device_list(ibv_get_device_list(NULL)); /* loads drivers, for all ends */
	printf("ready\n");
	fflush(stdout);
	for (;;) {
		control = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (control < 0)
			continue;
		if (!fork()) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			play_end(control);
			_exit(0);
		}
		close(control);
	}
}

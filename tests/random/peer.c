/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The other end of scripts: a process for each, which plays the lines that the player sends. After
 * "auto MODE" it also takes events as they come, and answers them by MODE, for calls of the player
 * that wait for an answer.
 */
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>

#include "player.h"

static struct play end = { .control = -1 };
static char mode; /* a: accepts, r: rejects, c: accepts and disconnects, h: only takes events */

static void react(struct rdma_cm_event *event)
{
	const enum rdma_cm_event_type type = event->event;
	struct rdma_cm_id *id = event->id;
	struct slot *slot;

	release_event(&end, event);
	slot = slot_of(&end, id);
	if (!slot)
		return;
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST && mode == 'r')
		play_text(&end, "reject %s 7", slot->label);
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST && (mode == 'a' || mode == 'c')) {
		play_text(&end, "qp %s %s", slot->label, id->ps == RDMA_PS_UDP ? "ud" : "rc");
		play_text(&end, "recv %s", slot->label);
		play_text(&end, "accept %s d", slot->label);
	}
	if (type == RDMA_CM_EVENT_DISCONNECTED ||
	    (type == RDMA_CM_EVENT_ESTABLISHED && mode == 'c'))
		play_text(&end, "disconnect %s", slot->label);
}

static void react_to_all(void)
{
	struct rdma_cm_event *event;
	int i;

	for (i = 0; i < N_CHANNELS && mode; i++)
		while (!rdma_get_cm_event(end.channels[i], &event))
			react(event);
}

static void play(char *line)
{
	line[strcspn(line, "\n")] = '\0';
	if (!strncmp(line, "auto ", 5))
		mode = line[5];
	else if (strcmp(line, "ping"))
		play_line(&end, line);
	react_to_all();
	let_thread_go_on(&end);
	printf(".\n");
	fflush(stdout);
}

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
	struct pollfd ready[1 + N_CHANNELS] = { { .fd = control, .events = POLLIN } };
	FILE *from = fdopen(control, "r");
	char line[LINE_BYTES];
	int i;

	setvbuf(from, NULL, _IONBF, 0); /* poll() knows only what is not read */
	dup2(control, STDOUT_FILENO);
	if (!open_with(from))
		return;
	for (;;) {
		for (i = 0; i < N_CHANNELS; i++)
			ready[1 + i] =
				(struct pollfd){ mode ? end.channels[i]->fd : -1, POLLIN, 0 };
		poll(ready, 1 + N_CHANNELS, -1);
		react_to_all();
		if (!ready[0].revents)
			continue;
		if (!fgets(line, sizeof(line), from))
			return;
		play(line);
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

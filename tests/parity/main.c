/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parity program's command line:
 *
 *   parity list                                     every scenario with its properties
 *   parity library                                  the file librdmacm was loaded from
 *   parity local SELF PEER SCENARIO...              scenarios that need no server
 *   parity server [PORT]                            serve clients until killed
 *   parity client CONTROL SELF PEER SCENARIO...     run scenarios against a server
 *
 * SELF and PEER are numeric addresses of the two hosts, of one family; CONTROL is an address of
 * the server, with %interface where it is link-local. "all" names every scenario that fits.
 */
#include <dlfcn.h>
#include <netdb.h>
#include <signal.h>
#include <sys/prctl.h>

#include "conduct.h"
#include "show.h"

#define CONTROL_PORT "7999"
#define FIRST_PORT   7100

static const struct scenario *const themes[] = {
	args_scenarios,		  bind_scenarios,
	conflict_scenarios,	  option_scenarios,
	resolve_scenarios,	  qp_scenarios,
	identity_scenarios,	  event_scenarios,
	account_scenarios,	  migrate_scenarios,
	state_scenarios,	  refuse_scenarios,
	connect_scenarios,	  param_scenarios,
	external_scenarios,	  disconnect_scenarios,
	destroy_scenarios,	  datagram_scenarios,
	datagram_odd_scenarios,	  datagram_state_scenarios,
	sync_scenarios,		  exit_scenarios,
	backlog_scenarios,	  gone_scenarios,
	endpoint_scenarios,	  srq_scenarios,
	move_scenarios,		  ece_scenarios,
	type_scenarios,		  multicast_scenarios,
	multicast_data_scenarios, bad_scenarios,
	verbs_scenarios,	  killed_scenarios,
	signal_scenarios,	  remain_scenarios,
	forked_scenarios,	  resolve_odd_scenarios,
};

void each_scenario(void (*visit)(const struct scenario *, void *), void *arg)
{
	const struct scenario *scenario;
	size_t i;

	for (i = 0; i < sizeof(themes) / sizeof(themes[0]); i++)
		for (scenario = themes[i]; scenario->name; scenario++)
			visit(scenario, arg);
}

const struct scenario *find_scenario(const char *name, uint16_t *port)
{
	const struct scenario *scenario;
	uint16_t next = FIRST_PORT;
	size_t i;

	for (i = 0; i < sizeof(themes) / sizeof(themes[0]); i++) {
		for (scenario = themes[i]; scenario->name; scenario++, next++) {
			if (strcmp(scenario->name, name))
				continue;
			if (port)
				*port = next;
			return scenario;
		}
	}
	return NULL;
}

static void list_one(const struct scenario *scenario, void *arg)
{
	const unsigned flags = scenario->flags;

	(void)arg;
	SAY("%s %s %s %s %s # %s", scenario->name, scenario->server ? "pair" : "local",
	    flags & LONG   ? "long"
	    : flags & SLOW ? "slow"
			   : "quick",
	    flags & V4_ONLY   ? "v4"
	    : flags & V6_ONLY ? "v6"
			      : "any",
	    flags & ALONE ? "alone" : "shared", scenario->what);
}

static void parse_address(const char *text, const char *port, struct sockaddr_storage *addr)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM };
	struct addrinfo *found;

	if (getaddrinfo(text, port, &hints, &found)) {
		fprintf(stderr, "parity: %s is not a numeric address of a known interface\n", text);
		exit(2);
	}
	memset(addr, 0, sizeof(*addr));
	memcpy(addr, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
}

/* What a run of several scenarios needs. */
struct run {
	struct sockaddr_storage self, peer;
	int control; /* -1: only local scenarios */
	int failures;
};

static void run_one(const struct scenario *scenario, void *arg)
{
	struct run *run = arg;
	int failed = 0;

	if (!scenario->server && run->control < 0)
		failed = run_local(scenario, &run->self, &run->peer);
	else if (scenario->server && run->control >= 0)
		failed = run_pair(scenario, &run->self, &run->peer, run->control);
	if (failed < 0) {
		fprintf(stderr, "parity: the server is gone\n");
		exit(2);
	}
	run->failures += failed;
}

static int run_named(struct run *run, char **names)
{
	const struct scenario *scenario;

	for (; *names; names++) {
		if (!strcmp(*names, "all")) {
			each_scenario(run_one, run);
			continue;
		}
		scenario = find_scenario(*names, NULL);
		if (!scenario) {
			fprintf(stderr, "parity: no scenario %s; see parity list\n", *names);
			return 2;
		}
		run_one(scenario, run);
	}
	return run->failures ? 1 : 0;
}

static int connect_control(const char *server)
{
	struct sockaddr_storage addr;
	int fd, i;

	parse_address(server, CONTROL_PORT, &addr);
	for (i = 0; i < 50; i++) {
		fd = socket(addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd >= 0 && !connect(fd, (void *)&addr, sizeof(addr)))
			return fd;
		close(fd);
		usleep(100000);
	}
	fprintf(stderr, "parity: no parity server at %s: %s\n", server, strerror(errno));
	exit(2);
}

/* Each client gets a process, so that slow scenarios can run beside the others. */
static int serve(const char *port)
{
	struct sockaddr_storage addr;
	int listener, control, on = 1;
	pid_t parent = getpid();

	parse_address("::", port, &addr);
	listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, (void *)&addr, sizeof(addr)) || listen(listener, 16)) {
		fprintf(stderr, "parity: TCP port %s: %s\n", port, strerror(errno));
		return 2;
	}
	SAY("ready");
	fflush(stdout);
	for (;;) {
		control = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (control < 0)
			continue;
		if (!fork()) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			signal(SIGCHLD, SIG_DFL);
			_exit(getppid() == parent && !serve_control(control) ? 0 : 2);
		}
		close(control);
	}
}

static int show_library(void)
{
	Dl_info info;

	if (!dladdr((void *)(uintptr_t)rdma_create_id, &info))
		return 1;
	SAY("%s", info.dli_fname);
	return 0;
}

static int usage(void)
{
	fprintf(stderr, "usage: parity list\n"
			"       parity library\n"
			"       parity local SELF PEER SCENARIO...\n"
			"       parity server [PORT]\n"
			"       parity client CONTROL SELF PEER SCENARIO...\n");
	return 2;
}

int main(int argc, char **argv)
{
	struct run run = { .control = -1 };

	/* Output must survive a crash of the scenario. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 2 && !strcmp(argv[1], "list")) {
		each_scenario(list_one, NULL);
		return 0;
	}
	if (argc == 2 && !strcmp(argv[1], "library"))
		return show_library();
	if (argc >= 2 && !strcmp(argv[1], "server")) {
		signal(SIGCHLD, SIG_IGN);
		return serve(argc > 2 ? argv[2] : CONTROL_PORT);
	}
	if (argc >= 5 && !strcmp(argv[1], "local")) {
		parse_address(argv[2], NULL, &run.self);
		parse_address(argv[3], NULL, &run.peer);
		return run_named(&run, argv + 4);
	}
	if (argc >= 6 && !strcmp(argv[1], "client")) {
		run.control = connect_control(argv[2]);
		parse_address(argv[3], NULL, &run.self);
		parse_address(argv[4], NULL, &run.peer);
		return run_named(&run, argv + 5);
	}
	return usage();
}

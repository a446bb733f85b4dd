/* SPDX-License-Identifier: BSD-2-Clause */
/* The program cmportd: arguments, environment, and then server_run(). cmportd(8) is its manual. */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "lib/portd/proto/port_file.h"
#include "lib/portd/proto/socket_path.h"
#include "lib/portd/proto/trace_ring.h"
#include "lib/portd/server/files/socket_dir.h"
#include "lib/portd/server/server.h"
#include "tools/cmportd/confine.h"

#define STATUS_USAGE   2
#define IDLE_DEFAULT_S 10
#define IDLE_MAX_S     (INT_MAX / 1000)
#define READY_MS       60000 /* as long as clients wait */

struct arguments {
	const char *socket;
	const char *idle_s;
	const char *log;
	uint32_t n_recorded;
	const char *port_file;
	struct quotas quotas;
	enum confine_how confine;
	bool detach;
	bool opens_ports;
	bool qp1_alone;
	bool started;
	bool has_one_client;
};

enum key {
	KEY_SOCKET = 's',
	KEY_DETACH = 'd',
	KEY_IDLE = 'i',
	KEY_OPEN = 'o',
	KEY_LOG = 'l',
	KEY_VERBOSE = 'v',
	KEY_QP1 = '1',
	KEY_QUOTA = 'Q',
	KEY_RECORD = 'r',
	KEY_PORTS = 'p',
	KEY_CONFINE = 'c',
	KEY_STARTED = 256, /* by a program, which reads standard error until it serves: spawn.c */
	KEY_CLIENT,	   /* serve PORTD_CLIENT_FD instead of a socket: spawn.c */
};

/* Read by argp in the C library, so it must not be hidden, as everything else is. */
__attribute__((visibility("default")))
const char *argp_program_version = "cmportd (purecm) " PURECM_VERSION;

/* clang-format off */
static const struct argp_option option_table[] = {
	{ "socket", KEY_SOCKET, "PATH", 0,
	  "the socket to serve (else $PURECM_SOCKET, else " SOCKET_PATH_DEFAULT ")", 0 },
	{ "idle", KEY_IDLE, "SECONDS", 0,
	  "leave after so long without clients, 0 for never (else $PURECM_IDLE_S, else 10, or 0 "
	  "under systemd)", 0 },
	{ "open", KEY_OPEN, NULL, 0,
	  "take the ports of all devices at once, not each when a program asks for it", 0 },
	{ "detach", KEY_DETACH, NULL, 0,
	  "return when it serves, and run on in the background", 0 },
	{ "qp1", KEY_QP1, NULL, 0,
	  "send and receive at QP1 alone, as the kernel does: for captures that are read by a "
	  "program that looks nowhere else",
	  0 },
	{ "quota", KEY_QUOTA, "NAME=NUMBER", 0,
	  "what one user or one client may have; cmportd(8) has the names", 0 },
	{ "record", KEY_RECORD, "MESSAGES", 0,
	  "how many of the latest messages are kept for `purecm trace', 0 for none "
	  "(else 16384, 6.5 MB)", 0 },
	{ "ports", KEY_PORTS, "FILE", 0,
	  "what is set for ports of devices; read again at SIGHUP; see cmportd(8)", 0 },
	{ "confine", KEY_CONFINE, "HOW", 0,
	  "what becomes of a system call that cmportd does not need: refuse (the default), kill, or "
	  "no, which also keeps capabilities",
	  0 },
	{ "log", KEY_LOG, "FILE", 0,
	  "write there instead of to standard error (else $PURECM_PORTD_LOG)", 0 },
	{ "verbose", KEY_VERBOSE, NULL, 0, "log every message and every change of state", 0 },
	{ "started", KEY_STARTED, NULL, OPTION_HIDDEN, NULL, 0 },
	{ "client", KEY_CLIENT, NULL, OPTION_HIDDEN, NULL, 0 },
	{ 0 },
};
/* clang-format on */

static uint32_t parse_record(const char *value, struct argp_state *state)
{
	char *end;
	unsigned long n = strtoul(value, &end, 10);

	if (*end || *value < '0' || *value > '9' || n > RECORDING_ENTRIES_MAX)
		argp_error(state, "--record: %s is no number of messages, 0 to %d", value,
			   RECORDING_ENTRIES_MAX);
	return (uint32_t)n;
}

static enum confine_how parse_confine(const char *value, struct argp_state *state)
{
	static const char *const names[] = {
		[CONFINE_REFUSE] = "refuse", [CONFINE_KILL] = "kill", [CONFINE_NOT] = "no"
	};
	enum confine_how how;

	for (how = 0; how < sizeof(names) / sizeof(names[0]); how++)
		if (!strcmp(value, names[how]))
			return how;
	argp_error(state, "--confine: %s is none of refuse, kill, no", value);
	return CONFINE_REFUSE;
}

static error_t parse_option(int key, char *value, struct argp_state *state)
{
	struct arguments *arguments = state->input;

	switch (key) {
	case KEY_SOCKET:
		arguments->socket = value;
		return 0;
	case KEY_DETACH:
		arguments->detach = true;
		return 0;
	case KEY_IDLE:
		arguments->idle_s = value;
		return 0;
	case KEY_OPEN:
		arguments->opens_ports = true;
		return 0;
	case KEY_QP1:
		arguments->qp1_alone = true;
		return 0;
	case KEY_QUOTA:
		if (!quota_set(&arguments->quotas, value))
			argp_error(state, "%s is no quota: see cmportd(8)", value);
		return 0;
	case KEY_RECORD:
		arguments->n_recorded = parse_record(value, state);
		return 0;
	case KEY_PORTS:
		arguments->port_file = value;
		return 0;
	case KEY_CONFINE:
		arguments->confine = parse_confine(value, state);
		return 0;
	case KEY_LOG:
		arguments->log = value;
		return 0;
	case KEY_STARTED:
		arguments->started = true;
		return 0;
	case KEY_CLIENT:
		arguments->has_one_client = true;
		return 0;
	case KEY_VERBOSE:
		log_set_verbose();
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
	.options = option_table,
	.parser = parse_option,
	.doc = "Keeps the InfiniBand connection management ports of this host for all processes "
	       "that use purecm. They start it by themselves.",
};

/* --- arguments ------------------------------------------------------------ */

static int find_idle(const struct arguments *arguments, unsigned int *ret)
{
	const char *value = arguments->idle_s;
	char *end;
	long idle_s;

	if (!value)
		value = secure_getenv("PURECM_IDLE_S");
	if (!value || !*value) {
		*ret = socket_dir_is_handed_over() && !arguments->detach ? 0 : IDLE_DEFAULT_S;
		return 0;
	}
	errno = 0;
	idle_s = strtol(value, &end, 10);
	if (errno || *end || idle_s < 0 || idle_s > IDLE_MAX_S) {
		log_warn("--idle or PURECM_IDLE_S: %s is no number of seconds, 0 to %d", value,
			 IDLE_MAX_S);
		return -EINVAL;
	}
	*ret = (unsigned int)idle_s;
	return 0;
}

static int find_path(const char *value, char ret[SOCKET_PATH_BYTES])
{
	int err = value ? socket_path_absolute(value, ret) : socket_path_find(ret);

	if (err)
		log_warn("--socket or PURECM_SOCKET: %s", strerror(-err));
	return err;
}

/* A wrong log file in a program's environment must not cost that program its connections. */
static int open_log(const char *file)
{
	const char *value = file ? file : secure_getenv("PURECM_PORTD_LOG");
	int err = value && *value ? log_to_file(value) : 0;

	if (err)
		log_warn("cannot log to %s: %s", value, strerror(-err));
	return file ? err : 0;
}

/* --- environment ---------------------------------------------------------- */

/* Otherwise the next opened descriptor would become standard error, and receive the log. */
static void fill_standard_streams(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

static void set_surroundings(void)
{
	const struct rlimit unlimited = { .rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY };
	struct rlimit limit;

	/* For root it is unlimited only through a capability that is dropped. */
	setrlimit(RLIMIT_MEMLOCK, &unlimited);
	/* A client takes two descriptors. */
	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	signal(SIGPIPE, SIG_IGN); /* the log's reader may end */
	umask(022);
	if (chdir("/"))
		log_warn("/ cannot be entered: %s", strerror(errno));
}

/*
 * The starting program may prefer to be killed first, or last, when memory is short; that must not
 * apply to all connections of its host.
 */
static void be_killed_as_others(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, "0", 1) < 0)
		log_debug("oom_score_adj stays as it is: %s", strerror(errno));
	close(fd);
}

/* Return: a descriptor that is readable when one of the signals is pending, or -errno. */
static int watch_signals(int one, int other)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, one);
	sigaddset(&set, other);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static int watch_orders(struct server_options *options)
{
	options->stop_fd = watch_signals(SIGTERM, SIGINT);
	options->reload_fd = watch_signals(SIGHUP, SIGHUP);
	return options->stop_fd < 0	? options->stop_fd
	       : options->reload_fd < 0 ? options->reload_fd
					: 0;
}

/* --- in the background --------------------------------------------------- */

static int ready_fd; /* for the notice of the background process that it serves */

static void say_ready_to(int fd)
{
	if (write(fd, "", 1) < 0)
		log_debug("whoever started this has gone");
}

static void say_ready(void)
{
	say_ready_to(ready_fd);
	close(ready_fd);
}

/* If two are started at once, one finds the socket directory taken. */
static int await_service(pid_t pid, const char *path, int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	char byte;

	if (poll(&pfd, 1, READY_MS) <= 0) {
		log_warn("process %d does not serve %s yet", (int)pid, path);
		return EXIT_FAILURE;
	}
	if (read(fd, &byte, 1) == 1 || socket_path_is_served(path))
		return EXIT_SUCCESS;
	log_warn("it has ended; without --detach it prints why");
	return EXIT_FAILURE;
}

/* Redirects the streams from @first on to /dev/null. */
static void leave_streams(int first)
{
	int fd = open("/dev/null", O_RDWR);
	int to;

	for (to = first; fd >= 0 && to <= STDERR_FILENO; to++)
		dup2(fd, to);
	if (fd > STDERR_FILENO)
		close(fd);
}

static void leave_starter(void)
{
	say_ready_to(STDERR_FILENO);
	leave_streams(STDERR_FILENO);
}

/* --- start ---------------------------------------------------------------- */

/*
 * If programs start several at once, all except one find the socket directory taken; that is not
 * logged.
 */
static int run_confined(struct server_options *options, enum confine_how how)
{
	int err = watch_orders(options);

	if (!err)
		err = confine(how);
	if (!err)
		err = server_run(options);
	if (err && (err != -EADDRINUSE || !options->serves))
		log_warn("%s cannot be served: %s", options->path ? options->path : "the client",
			 strerror(-err));
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int serve_in_background(struct server_options *options, enum confine_how how)
{
	int ready[2] = { -1, -1 };
	pid_t pid = -1;

	if (socket_path_is_served(options->path))
		return EXIT_SUCCESS;
	if (!pipe2(ready, O_CLOEXEC))
		pid = fork();
	if (pid < 0) {
		log_warn("no second process: %s", strerror(errno));
		return EXIT_FAILURE;
	}
	if (pid) {
		close(ready[1]);
		return await_service(pid, options->path, ready[0]);
	}
	close(ready[0]);
	ready_fd = ready[1];
	options->serves = say_ready;
	setsid();
	leave_streams(STDIN_FILENO);
	return run_confined(options, how);
}

int main(int argc, char **argv)
{
	struct arguments arguments = { .n_recorded = RECORDING_ENTRIES };
	struct server_options options = {
		.client_fd = -1,
	};
	char path[SOCKET_PATH_BYTES];

	log_as_daemon("cmportd");
	argp_err_exit_status = STATUS_USAGE;
	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	fill_standard_streams();
	if (find_path(arguments.socket, path) || find_idle(&arguments, &options.idle_s))
		return STATUS_USAGE;
	if (open_log(arguments.log))
		return EXIT_FAILURE;
	if (arguments.has_one_client)
		options.client_fd = PORTD_CLIENT_FD;
	else
		options.path = path;
	options.port_file = arguments.port_file ? arguments.port_file : port_file_path;
	options.opens_ports = arguments.opens_ports;
	options.quotas = arguments.quotas;
	options.n_recorded = arguments.n_recorded;
	options.qp1_alone = arguments.qp1_alone;
	options.serves = arguments.started ? leave_starter : NULL;
	set_surroundings();
	if (arguments.started)
		be_killed_as_others();
	return arguments.detach ? serve_in_background(&options, arguments.confine)
				: run_confined(&options, arguments.confine);
}

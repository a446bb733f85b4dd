/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's connection manager as a source: its tracepoints, in a tracefs instance of our own,
 * which is removed at the end, so that other tracing is not affected.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "cm/tally.h"
#include "tools/purecm/subcommand.h"
#include "tools/purecm/kernel_line.h"

#define TEXT_BYTES  65536
#define PAUSE_NS    50000000
#define BUFFERS_KIB 65536 /* total of all CPUs, but for each ... */
#define BUFFER_MIN  512
#define BUFFER_MAX  4096
#define READS_AFTER 256 /* limit after the end, which is not delayed by a storm */

struct kernel {
	struct source source; /* first */
	struct kernel_lines *lines;
	int fd;
	bool is_live;
	bool is_cut;		/* by a read error */
	sigset_t usual_signals; /* ending signals, delivered at defined places only */
	unsigned int n_after;	/* reads since the end */
	char text[TEXT_BYTES];	/* data read: lines, and the beginning of one */
	size_t n_text, n_taken;
	char instance[128]; /* empty: none */
	uint64_t offset_ns; /* from the trace's clock to CLOCK_REALTIME */
	struct observation ready[KERNEL_LINE_MESSAGES];
	int n_ready, at;
};

/* Lines traced before the signal are still read. Return: false at the end. */
static bool await_lines(const struct kernel *kernel)
{
	struct pollfd poll_fd = { .fd = kernel->fd, .events = POLLIN };

	/* Output is shown before sleeping. */
	if (!kernel->is_live || command_is_over || fflush(stdout))
		return false;
	if (ppoll(&poll_fd, 1, NULL, &kernel->usual_signals) <= 0)
		return command_is_over;
	/* Not for each line: the traced programs have priority, also in scheduling. */
	ppoll(NULL, 0, &(struct timespec){ .tv_nsec = PAUSE_NS }, &kernel->usual_signals);
	return true;
}

/* A line that exceeds the buffer is unknown. Return: false at the end. */
static bool read_more(struct kernel *kernel)
{
	ssize_t n;

	kernel->n_text -= kernel->n_taken;
	memmove(kernel->text, kernel->text + kernel->n_taken, kernel->n_text);
	kernel->n_taken = 0;
	if (kernel->n_text == TEXT_BYTES)
		kernel->n_text = 0;
	if (ferror(stdout) || (command_is_over && kernel->n_after++ == READS_AFTER))
		return false;
	do
		n = read(kernel->fd, kernel->text + kernel->n_text, TEXT_BYTES - kernel->n_text);
	while (n < 0 && errno == EAGAIN && await_lines(kernel));
	if (n < 0 && !(kernel->is_live && errno == EAGAIN)) {
		complain("%s: %s", kernel->source.name, strerror(errno));
		kernel->is_cut = true;
	}
	kernel->n_text += n > 0 ? (size_t)n : 0;
	if (kernel->is_live)
		ppoll(NULL, 0, &(struct timespec){ .tv_sec = 0 }, &kernel->usual_signals);
	return n > 0;
}

/* Return: a line without newline; NULL when there are no more. */
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

static int next_event(struct source *source, struct observation *ret)
{
	struct kernel *kernel = (struct kernel *)source;
	char note[KERNEL_LINE_NOTE];
	const char *line;

	while (kernel->at == kernel->n_ready) {
		line = next_line(kernel);
		if (!line)
			return kernel->is_cut ? SOURCE_CUT : 0;
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

static void finish_kernel(struct source *source)
{
	struct kernel *kernel = (struct kernel *)source;
	sigset_t held;

	if (source->counts.mads)
		complain("the kernel records who sent a message and why it refuses, but no private "
			 "data, timeouts, paths and packet numbers; comm ids are numbers of this "
			 "trace");
	if (kernel->fd > STDIN_FILENO)
		close(kernel->fd);
	if (*kernel->instance && rmdir(kernel->instance))
		complain("%s cannot be removed: %s", kernel->instance, strerror(errno));
	sigemptyset(&held);
	sigaddset(&held, SIGPIPE);
	sigprocmask(SIG_UNBLOCK, &held, NULL);
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

/* clang-format off */
#define WITHOUT_REASON "why this host refuses by itself is not seen"

/* The events to trace, and what is missed if the kernel lacks one. */
static const struct {
	const char *event;
	const char *filter;  /* NULL: all */
	const char *without; /* NULL: not significant */
} events[] = {
	{ "rdma_cma/cm_event_handler", NULL, NULL },
	{ "rdma_cma/cm_send_req", NULL, NULL },
	{ "rdma_cma/cm_send_rep", NULL, "REPs that this host sends are not seen" },
	{ "rdma_cma/cm_send_rtu", NULL, "RTUs that this host sends are not seen" },
	{ "rdma_cma/cm_send_rej", NULL, "refusals by programs of this host are not seen" },
	{ "rdma_cma/cm_send_sidr_req", NULL, "lookups of datagram services are not seen" },
	{ "rdma_cma/cm_send_sidr_rep", NULL, "answers of datagram services are not seen" },
	{ "rdma_cma/cm_sent_dreq", NULL, "DREQs that this host sends are not seen" },
	{ "rdma_cma/cm_sent_drep", NULL, "DREPs that this host sends are not seen" },
	{ "rdma_cma/cm_disconnect", NULL, "who disconnects may not be seen" },
	{ "rdma_cma/cm_id_destroy", NULL,
	  "what ids send when they are destroyed is not seen, nor what a full backlog drops" },
	{ "ib_mad/ib_mad_ib_send_mad", "mgmt_class == 7", "repetitions are not seen" },
	{ "ib_mad/ib_mad_recv_done_handler", "mgmt_class == 7",
	  "repetitions by peers and their MRAs are not seen, and lookups of datagram services look "
	  "like requests for a connection" },
	{ "ib_cma/icm_send_rej", NULL, WITHOUT_REASON },
	{ "ib_cma/icm_issue_rej", NULL, WITHOUT_REASON },
	{ "ib_cma/icm_no_listener_err", NULL, WITHOUT_REASON },
	{ "ib_cma/icm_staleconn_err", NULL, WITHOUT_REASON },
};
/* clang-format on */

static int write_path(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

static int write_file(const struct kernel *kernel, const char *name, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", kernel->instance, name);
	return write_path(path, text);
}

/* A kernel that refuses has larger buffers. */
static void set_buffers(const struct kernel *kernel)
{
	long kib = BUFFERS_KIB / sysconf(_SC_NPROCESSORS_CONF);
	char text[32];

	kib = kib < BUFFER_MIN ? BUFFER_MIN : kib > BUFFER_MAX ? BUFFER_MAX : kib;
	snprintf(text, sizeof(text), "%ld", kib);
	write_file(kernel, "buffer_size_kb", text);
}

static int enable_event(const struct kernel *kernel, size_t i)
{
	char file[96];
	int err = 0;

	if (events[i].filter) {
		snprintf(file, sizeof(file), "events/%s/filter", events[i].event);
		err = write_file(kernel, file, events[i].filter);
	}
	snprintf(file, sizeof(file), "events/%s/enable", events[i].event);
	return err ? err : write_file(kernel, file, "1");
}

static int enable_events(const struct kernel *kernel)
{
	const char *said = "";
	size_t i;
	int err;

	for (i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		err = enable_event(kernel, i);
		if (err == -EACCES || err == -EPERM || (err && !events[i].without))
			return err;
		if (!err || strcmp(events[i].without, said) == 0)
			continue;
		said = events[i].without;
		complain("%s cannot be traced (%s): %s", events[i].event, strerror(-err), said);
	}
	return 0;
}

/* Under lockdown, tracefs does not always return EPERM. */
static bool is_locked_down(void)
{
	char text[64];

	fd_read_file("/sys/kernel/security/lockdown", text, sizeof(text));
	return strstr(text, "[confidentiality]");
}

static int complain_of_tracefs(const char *tracefs, int err)
{
	if (err == -EACCES || err == -EPERM || is_locked_down())
		complain("the kernel lets only root trace it, and nobody where it is locked down "
			 "(/sys/kernel/security/lockdown): %s",
			 strerror(-err));
	else if (err == -ENOENT)
		complain("the kernel's connection manager is not there, or records nothing: "
			 "modprobe rdma_cm (Linux 5.10 and later have its events)");
	else
		complain("%s/instances: %s", tracefs, strerror(-err));
	return err;
}

static bool is_set(const char *path)
{
	char text[4];

	fd_read_file(path, text, sizeof(text));
	return text[0] == '1';
}

static int mkdir_without_names(const char *tracefs, const char *instance)
{
	char option[64];
	bool had_names;
	int err;

	snprintf(option, sizeof(option), "%s/options/record-cmd", tracefs);
	had_names = is_set(option) && write_path(option, "0") == 0;
	err = mkdir(instance, 0700) ? errno : 0;
	if (had_names)
		write_path(option, "1");
	return err;
}

/*
 * If the kernel records the names of tasks, it does so at each context switch, and connecting takes
 * 1.5% longer. A new instance inherits the option from the top level, and cannot change it later. A
 * process of its own restores the option, even if we are killed meanwhile.
 */
static int make_without_names(const char *tracefs, const char *instance)
{
	const pid_t child = fork();
	int status;

	if (child == 0) {
		setsid();
		_exit(mkdir_without_names(tracefs, instance));
	}
	if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return -EIO;
	return -WEXITSTATUS(status);
}

/* Instances of ours whose process was killed. */
static void remove_leftovers(const char *tracefs)
{
	char path[sizeof(((struct kernel *)NULL)->instance) + NAME_MAX];
	const struct dirent *entry;
	DIR *folder;
	int pid;

	snprintf(path, sizeof(path), "%s/instances", tracefs);
	folder = opendir(path);
	while (folder && (entry = readdir(folder))) {
		if (sscanf(entry->d_name, "purecm-%d", &pid) != 1 || kill(pid, 0) == 0 ||
		    errno != ESRCH)
			continue;
		snprintf(path, sizeof(path), "%s/instances/%s", tracefs, entry->d_name);
		rmdir(path);
	}
	if (folder)
		closedir(folder);
}

/* Return: 0, or -errno after an error message. */
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
	remove_leftovers(tracefs);
	snprintf(kernel->instance, sizeof(kernel->instance), "%s/instances/purecm-%d", tracefs,
		 (int)getpid());
	err = make_without_names(tracefs, kernel->instance);
	if (err) {
		kernel->instance[0] = '\0';
		return complain_of_tracefs(tracefs, err == -ENOENT ? -EINVAL : err);
	}
	write_file(kernel, "buffer_percent", "0"); /* wake up for each line */
	set_buffers(kernel);
	/* CLOCK_MONOTONIC, from which the time of day is derived. */
	err = write_file(kernel, "trace_clock", "mono");
	if (!err)
		err = enable_events(kernel);
	if (err)
		complain_of_tracefs(tracefs, err);
	kernel->offset_ns = clock_ns_of(CLOCK_REALTIME) - clock_ns_of(CLOCK_MONOTONIC);
	return err;
}

static void hold_signals(struct kernel *kernel)
{
	sigset_t ours;

	sigemptyset(&ours);
	sigaddset(&ours, SIGINT);
	sigaddset(&ours, SIGTERM);
	sigaddset(&ours, SIGHUP);
	sigaddset(&ours, SIGPIPE);
	sigprocmask(SIG_BLOCK, &ours, &kernel->usual_signals);
	sigaddset(&kernel->usual_signals, SIGPIPE); /* until the instance is removed */
	command_catch_end();
}

static int open_lines(struct kernel *kernel, const char *path)
{
	char pipe[256];
	int err;

	if (!path) {
		hold_signals(kernel); /* a temporary change is always reverted */
		err = make_instance(kernel);
		if (err)
			return err;
		kernel->is_live = true;
		snprintf(pipe, sizeof(pipe), "%s/trace_pipe", kernel->instance);
		path = pipe;
	}
	kernel->fd =
		strcmp(path, "-") == 0
			? STDIN_FILENO
			: open(path, O_RDONLY | O_CLOEXEC | (kernel->is_live ? O_NONBLOCK : 0));
	if (kernel->fd < 0) {
		err = -errno;
		complain("%s: %s", path, strerror(errno));
		return err;
	}
	if (kernel->is_live)
		sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){ 0 });
	return 0;
}

int kernel_open(const char *path, struct source **ret)
{
	struct kernel *kernel = calloc(1, sizeof(*kernel));
	int err = -ENOMEM;

	if (!kernel)
		return err;
	kernel->source = (struct source){ .name = path ? path : "the kernel's connection manager",
					  .next = next_event,
					  .close = finish_kernel };
	kernel->lines = kernel_lines_new();
	if (kernel->lines)
		err = open_lines(kernel, path);
	if (err) {
		finish_kernel(&kernel->source);
		return err;
	}
	*ret = &kernel->source;
	return 0;
}

/* --- lines of the tracer -------------------------------------------------- */

/* Parses "10.77.0.2:59173", "[fd77::2]:59173"; "(einval)" while the id has no address. */
static bool parse_end(const char *text, struct kernel_end *ret)
{
	char addr[INET6_ADDRSTRLEN];
	uint8_t ip4[4];
	unsigned int port = 0;

	*ret = (struct kernel_end){ .port = 0 };
	if (sscanf(text, "[%45[^]]]:%u", addr, &port) >= 1) {
		addr[strcspn(addr, "%")] = '\0'; /* the interface of a link-local address */
		ret->port = (uint16_t)port;
		return inet_pton(AF_INET6, addr, ret->gid.raw) == 1;
	}
	if (sscanf(text, "%45[0-9.]:%u", addr, &port) < 1 || inet_pton(AF_INET, addr, ip4) != 1)
		return false;
	ret->gid = observation_gid_of_ip4(ip4);
	ret->port = (uint16_t)port;
	return true;
}

/*
 * Parses " rping-281 [000] ..... 73.228609: NAME: ". Return: the rest; NULL if it does not match.
 */
static const char *parse_head(const char *line, struct kernel_event *ret)
{
	const char *cpu = strstr(line, " ["), *name, *time, *pid;
	uint64_t s, us;

	*ret = (struct kernel_event){ .status = 0 };
	name = cpu ? strstr(cpu, ": ") : NULL;
	if (!name)
		return NULL;
	for (time = name; time > line && strchr("0123456789.", time[-1]); time--)
		;
	for (pid = cpu; pid > line && *pid == ' '; pid--)
		;
	while (pid > line && pid[-1] >= '0' && pid[-1] <= '9')
		pid--;
	if (sscanf(time, "%" SCNu64 ".%" SCNu64, &s, &us) != 2 ||
	    sscanf(name, ": %31[a-z_]:", ret->name) != 1)
		return NULL;
	ret->time_ns = s * CLOCK_NS_PER_S + us * 1000;
	ret->pid = (uint32_t)strtoul(pid, NULL, 10);
	return name + strlen(": ") + strlen(ret->name);
}

/* Return: false for a MAD of another class. */
static bool parse_mad(const char *text, struct kernel_event *ret)
{
	const char *class = strstr(text, " class "), *tid = strstr(text, " tid "), *lid;

	ret->way = strcmp(ret->name, "ib_mad_ib_send_mad") == 0 ? WAY_OUT : WAY_IN;
	lid = strstr(text, ret->way == WAY_OUT ? " dlid " : " slid ");
	if (lid)
		ret->lid = (unsigned int)strtoul(lid + strlen(" dlid "), NULL, 16);
	return class && tid && strtoul(class + strlen(" class "), NULL, 16) == MAD_CLASS_CM &&
	       sscanf(tid, " tid %" SCNx64 " attr_id %x", &ret->tid, &ret->attr) == 2 &&
	       cm_tally_kind((uint16_t)ret->attr) != CM_TALLY_NONE;
}

static void parse_icm(const char *text, struct kernel_event *ret)
{
	const char *reason = strstr(text, " reason=");

	ret->is_icm = true;
	ret->is_of_request = strstr(text, " state=REQ_RCVD");
	if (reason)
		sscanf(reason, " reason=%31[A-Z_]", ret->word);
}

bool kernel_event_parse(const char *line, struct kernel_event *ret)
{
	const char *text = parse_head(line, ret), *at;
	char ends[2][64];

	if (!text)
		return false;
	if (strcmp(ret->name, "ib_mad_ib_send_mad") == 0 ||
	    strcmp(ret->name, "ib_mad_recv_done_handler") == 0)
		return parse_mad(text, ret);
	if (strncmp(ret->name, "icm_", 4) == 0) {
		parse_icm(text, ret);
		return true;
	}
	text = strncmp(ret->name, "cm_", 3) == 0 ? strstr(text, " cm.id=") : NULL;
	if (!text || sscanf(text, " cm.id=%*u src=%63s dst=%63s", ends[0], ends[1]) != 2)
		return false;
	ret->has_ends = parse_end(ends[0], &ret->ends[0]) && parse_end(ends[1], &ret->ends[1]) &&
			ret->ends[1].port;
	at = strstr(text, " qp_num=");
	if (at)
		sscanf(at, " qp_num=%u", &ret->qpn);
	at = strstr(text, " tos=");
	if (at)
		sscanf(at, " tos=%*u %31[A-Z_] (%*u/%d)", ret->word, &ret->status);
	return true;
}

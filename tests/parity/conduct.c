/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The processes of a scenario and the control connection between its two sides, for main.c.
 * Frames: one byte kind, four bytes length in network order, then the payload.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "conduct.h"
#include "show.h"

#define USUAL_LIMIT_S 300
#define OUTPUT_MAX    (256 * 1024)

enum frame_kind {
	FRAME_RUN = 'R',  /* to the server: run this scenario */
	FRAME_MEET = 'M', /* between the scenario's processes */
	FRAME_END = 'E',  /* this side's process has ended; its output */
};

/* The payload of FRAME_RUN. */
struct run_order {
	char name[64];
	struct sockaddr_storage self, peer; /* as the server sees the addresses */
};

void give_up(const char *format, ...)
{
	va_list args;

	printf("GAVE UP: ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
	_exit(3);
}

static bool write_all(int fd, const void *data, size_t size)
{
	const char *next = data;
	ssize_t written;

	for (; size; next += written, size -= (size_t)written) {
		written = send(fd, next, size, MSG_NOSIGNAL);
		if (written <= 0)
			return false;
	}
	return true;
}

static bool read_all(int fd, void *data, size_t size)
{
	return !size || recv(fd, data, size, MSG_WAITALL) == (ssize_t)size;
}

static bool send_frame(int fd, enum frame_kind kind, const void *payload, size_t size)
{
	uint8_t header[5] = { (uint8_t)kind };
	uint32_t length = htonl((uint32_t)size);

	memcpy(header + 1, &length, sizeof(length));
	return write_all(fd, header, sizeof(header)) && write_all(fd, payload, size);
}

/*
 * The payload is truncated to size bytes; returns its full length, or -1 if the connection is
 * closed.
 */
static ssize_t receive_frame(int fd, char *kind, void *payload, size_t size)
{
	uint8_t header[5];
	uint32_t length;
	size_t taken;
	char spare;

	if (!read_all(fd, header, sizeof(header)))
		return -1;
	*kind = (char)header[0];
	memcpy(&length, header + 1, sizeof(length));
	length = ntohl(length);
	taken = length < size ? length : size;
	if (!read_all(fd, payload, taken))
		return -1;
	for (; taken < length; taken++)
		if (!read_all(fd, &spare, 1))
			return -1;
	return (ssize_t)length;
}

void swap(struct scene *s, const void *mine, void *theirs, size_t size)
{
	struct pollfd pfd = { .fd = s->control, .events = POLLIN };
	char kind = 0;

	fflush(stdout);
	if (s->control < 0)
		give_up("a local scenario has nobody to meet");
	if (!send_frame(s->control, FRAME_MEET, mine, size))
		give_up("control connection lost");
	/* If it never arrives, the time limit ends this process. */
	if (poll(&pfd, 1, -1) != 1)
		give_up("control connection: %s", strerror(errno));
	/* Leaves the end of the other side's process for the parent to read. */
	if (recv(s->control, &kind, 1, MSG_PEEK) == 1 && kind != FRAME_MEET)
		give_up("the other side ended before the meeting point");
	if (receive_frame(s->control, &kind, theirs, size) != (ssize_t)size)
		give_up("the other side met with something else");
}

void meet(struct scene *s)
{
	uint8_t mine = 0, theirs;

	swap(s, &mine, &theirs, sizeof(mine));
}

void open_channel(struct scene *s)
{
	s->channel = rdma_create_event_channel();
	if (!s->channel)
		give_up("rdma_create_event_channel: %s", strerror(errno));
}

/* The same scenario can run with both families and link-local addresses at once. */
static uint16_t port_offset(const struct sockaddr_storage *self)
{
	const struct sockaddr_in6 *v6 = (const void *)self;

	if (self->ss_family == AF_INET)
		return 0;
	return IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr) ? 2000 : 1000;
}

static void act(const struct scenario *scenario, void (*side)(struct scene *), struct scene *s)
{
	find_scenario(scenario->name, &s->port);
	s->family = s->self.ss_family;
	s->port += port_offset(&s->self);
	if (!(scenario->flags & BARE))
		open_channel(s);
	side(s);
	if (s->channel)
		rdma_destroy_event_channel(s->channel);
}

static pid_t start(const struct scenario *scenario, void (*side)(struct scene *), struct scene *s,
		   int output)
{
	pid_t parent = getpid(), child;

	fflush(stdout);
	child = fork();
	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(4);
	dup2(output, STDOUT_FILENO);
	alarm(scenario->limit_s ? scenario->limit_s : USUAL_LIMIT_S);
	act(scenario, side, s);
	fflush(stdout);
	_exit(0);
}

/* Waits for the scenario's process; appends one line to its output if it failed. */
static int finish(pid_t child, int output)
{
	int status;

	if (child < 0 || waitpid(child, &status, 0) != child)
		return 1;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		dprintf(output, "GAVE UP: time limit\n");
	else if (WIFSIGNALED(status))
		dprintf(output, "GAVE UP: killed by SIG%s\n", sigabbrev_np(WTERMSIG(status)));
	return status ? 1 : 0;
}

static size_t read_output(int output, char *text)
{
	ssize_t size = pread(output, text, OUTPUT_MAX, 0);

	close(output);
	return size > 0 ? (size_t)size : 0;
}

int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Runs one side in its own process; returns 0 or 1, with its output in text. */
static int perform(const struct scenario *scenario, void (*side)(struct scene *), struct scene *s,
		   char *text, size_t *size)
{
	int output = memfd_create("output", MFD_CLOEXEC), failed;
	const int64_t begin = now_ms();

	failed = finish(start(scenario, side, s, output), output);
	fprintf(stderr, "%s %.3f s\n", scenario->name, (double)(now_ms() - begin) / 1000);
	*size = read_output(output, text);
	return failed;
}

static void print_side(const char *name, const char *side, const char *text, size_t size)
{
	printf("== %s %s\n", name, side);
	fwrite(text, 1, size, stdout);
	fflush(stdout);
}

int run_local(const struct scenario *scenario, const struct sockaddr_storage *self,
	      const struct sockaddr_storage *peer)
{
	static char text[OUTPUT_MAX];
	struct scene s = { .self = *self, .peer = *peer, .control = -1 };
	size_t size;
	int failed = perform(scenario, scenario->client, &s, text, &size);

	print_side(scenario->name, "local", text, size);
	return failed;
}

/* Reports to the other side that this one has ended, and waits for its report. */
static ssize_t exchange_ends(int control, const char *mine, size_t size, char *theirs)
{
	ssize_t length;
	char kind;

	if (!send_frame(control, FRAME_END, mine, size))
		return -1;
	do {
		length = receive_frame(control, &kind, theirs, OUTPUT_MAX);
	} while (length >= 0 && kind != FRAME_END);
	return length;
}

int run_pair(const struct scenario *scenario, const struct sockaddr_storage *self,
	     const struct sockaddr_storage *peer, int control)
{
	static char mine[OUTPUT_MAX], theirs[OUTPUT_MAX];
	struct scene s = { .self = *self, .peer = *peer, .control = control };
	struct run_order order = { .self = *peer, .peer = *self };
	ssize_t their_size;
	size_t size;
	int failed;

	strncpy(order.name, scenario->name, sizeof(order.name) - 1);
	if (!send_frame(control, FRAME_RUN, &order, sizeof(order)))
		return -1;
	failed = perform(scenario, scenario->client, &s, mine, &size);
	their_size = exchange_ends(control, mine, 0, theirs);
	print_side(scenario->name, "client", mine, size);
	if (their_size < 0)
		return -1;
	print_side(scenario->name, "server", theirs, (size_t)their_size);
	return failed || memmem(theirs, (size_t)their_size, "GAVE UP", 7);
}

static bool serve_order(const struct run_order *order, int control)
{
	static char mine[OUTPUT_MAX], theirs[OUTPUT_MAX];
	const struct scenario *scenario = find_scenario(order->name, NULL);
	struct scene s = { .self = order->self, .peer = order->peer, .control = control };
	size_t size;

	if (!scenario || !scenario->server) {
		size = (size_t)snprintf(mine, sizeof(mine), "GAVE UP: no such scenario here\n");
		return exchange_ends(control, mine, size, theirs) >= 0;
	}
	perform(scenario, scenario->server, &s, mine, &size);
	return exchange_ends(control, mine, size, theirs) >= 0;
}

int serve_control(int control)
{
	struct run_order order;
	ssize_t length;
	char kind;

	for (;;) {
		length = receive_frame(control, &kind, &order, sizeof(order));
		if (length < 0)
			return 0;
		if (kind != FRAME_RUN || length != (ssize_t)sizeof(order))
			return -1;
		order.name[sizeof(order.name) - 1] = '\0';
		if (!serve_order(&order, control))
			return 0;
	}
}

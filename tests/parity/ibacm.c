/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requests of rdma_getaddrinfo() to ibacm, and its results. A program of its own, as
 * addrinfo.c: the parent is the ibacm of the host, and a child sends each request, because a
 * process connects to ibacm once. Needs an RDMA device and a host without another ibacm.
 *
 * Left out: answers with a path and no source. Stock crashes, this library has no entry for
 * InfiniBand then.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef AF_IB
#define AF_IB 27
#endif

#define N(array)     (sizeof(array) / sizeof((array)[0]))

#define SOCKET	     "/run/ibacm.sock"
#define HEADER_BYTES 16
#define ENTRY_BYTES  72
#define ROUTE_ONLY   0x01000000 /* a flag of stock's own */
#define PATIENCE_MS  20000

#define SOURCE	     1
#define DESTINATION  2
#define IPV4	     2
#define IPV6	     3
#define PATH	     0x10

struct entry {
	uint32_t flags;
	uint16_t type;
	uint16_t reserved;
	uint8_t data[64];
};

static struct entry path(uint32_t flags, uint8_t fill)
{
	struct entry entry = { .flags = flags, .type = PATH };

	for (size_t i = 0; i < sizeof(entry.data); i++)
		entry.data[i] = (uint8_t)(fill + i);
	return entry;
}

static struct entry address(uint32_t flags, uint16_t type, uint8_t fill)
{
	struct entry entry = { .flags = flags, .type = type };

	memset(entry.data, fill, type == IPV4 ? 4 : 16);
	return entry;
}

/* --- answers -------------------------------------------------------------- */

static pid_t asker; /* the child; SIGUSR1 announces that it will get no answer */

struct answer {
	bool is_silent;
	uint8_t status;
	unsigned int n;
	struct entry entry[4];
};

static struct answer nothing(void)
{
	return (struct answer){ .n = 0 };
}

static struct answer silence(void)
{
	return (struct answer){ .is_silent = true };
}

static struct answer failure(void)
{
	return (struct answer){ .status = 2, .n = 1, .entry = { path(0x2b, 0x11) } };
}

static struct answer one_path(void)
{
	return (struct answer){ .n = 1, .entry = { path(0x2b, 0x11) } };
}

static struct answer two_paths_and_source(void)
{
	return (struct answer){
		.n = 3, .entry = { address(SOURCE, IPV4, 10), path(0x2b, 0x11), path(0x2c, 0x22) }
	};
}

static struct answer source_of_ipv4(void)
{
	return (struct answer){ .n = 1, .entry = { address(SOURCE, IPV4, 10) } };
}

static struct answer source_of_ipv6(void)
{
	return (struct answer){ .n = 1, .entry = { address(SOURCE, IPV6, 0x20) } };
}

static struct answer ends_of_ipv6(void)
{
	return (struct answer){ .n = 3,
				.entry = { address(SOURCE, IPV6, 0x20),
					   address(DESTINATION, IPV6, 0x21), path(0x2b, 0x11) } };
}

static struct answer ends_of_ipv4(void)
{
	return (struct answer){ .n = 3,
				.entry = { address(SOURCE, IPV4, 10),
					   address(DESTINATION, IPV4, 11), path(0x2b, 0x11) } };
}

/* --- the host's ibacm ------------------------------------------------------ */

static void print_hex(const char *what, const void *from, size_t n)
{
	const uint8_t *bytes = from;
	size_t i;

	printf("  %s:", what);
	for (i = 0; i < n; i++)
		printf("%s%02x", i % 8 ? "" : " ", bytes[i]);
	printf("\n");
}

static bool read_all(int fd, void *to, size_t bytes)
{
	return recv(fd, to, bytes, MSG_WAITALL) == (ssize_t)bytes;
}

static void answer_one(int fd, const struct answer *answer)
{
	uint8_t wire[HEADER_BYTES + 4 * ENTRY_BYTES];
	uint16_t length;

	if (!read_all(fd, wire, HEADER_BYTES))
		return;
	print_hex("asked", wire, 8); /* followed by a number that the client chose */
	memcpy(&length, wire + 6, sizeof(length));
	if (length > sizeof(wire) || !read_all(fd, wire + HEADER_BYTES, length - HEADER_BYTES))
		return;
	for (unsigned int i = HEADER_BYTES; i < length; i += ENTRY_BYTES)
		print_hex("entry", wire + i, ENTRY_BYTES);
	if (answer->is_silent) {
		kill(asker, SIGUSR1);
		return;
	}
	length = HEADER_BYTES + answer->n * ENTRY_BYTES;
	wire[1] |= 0x80;
	wire[2] = answer->status;
	memcpy(wire + 6, &length, sizeof(length));
	memcpy(wire + HEADER_BYTES, answer->entry, answer->n * ENTRY_BYTES);
	if (write(fd, wire, length) != length)
		printf("  asker is gone\n");
}

static int open_socket(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX, .sun_path = SOCKET };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	unlink(SOCKET);
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(fd, 8)) {
		perror(SOCKET);
		exit(1);
	}
	return fd;
}

/* Runs until the child, who holds the other end of @alive, has ended. */
static void serve(int listener, int alive, const struct answer *answer)
{
	struct pollfd fds[] = { { .fd = alive, .events = POLLIN },
				{ .fd = listener, .events = POLLIN } };

	while (poll(fds, 2, PATIENCE_MS) > 0 && !fds[0].revents) {
		if (fds[1].fd == listener) {
			fds[1].fd = accept(listener, NULL, NULL);
			printf("  connected\n");
			continue;
		}
		if (recv(fds[1].fd, &(char){ 0 }, 1, MSG_PEEK) == 1)
			answer_one(fds[1].fd, answer);
		else
			fds[1].fd = -1;
	}
	if (fds[1].fd != listener && fds[1].fd >= 0)
		close(fds[1].fd);
}

/* --- questions ------------------------------------------------------------- */

static void print_addr(const char *what, const struct sockaddr *sa, socklen_t bytes)
{
	if (sa)
		print_hex(what, sa, bytes);
	else
		printf("  %s: none\n", what);
}

static void print_result(const struct rdma_addrinfo *rai)
{
	printf("  flags %#x family %d qp_type %d port_space %#x\n", rai->ai_flags, rai->ai_family,
	       rai->ai_qp_type, rai->ai_port_space);
	print_addr("src", rai->ai_src_addr, rai->ai_src_len);
	print_addr("dst", rai->ai_dst_addr, rai->ai_dst_len);
	print_hex("route", rai->ai_route, rai->ai_route_len);
	print_hex("connect", rai->ai_connect, rai->ai_connect_len);
}

struct question {
	const char *node;
	int flags;
	int qp_type;
	int port_space;
	const char *src; /* in the hints */
	const char *dst;
	struct answer (*answer)(void);
	const char *what;
};

static socklen_t parse(const char *text, struct sockaddr_in6 *ret)
{
	struct sockaddr_in *in4 = (void *)ret;

	if (!text)
		return 0;
	if (inet_pton(AF_INET6, text, &ret->sin6_addr) == 1) {
		ret->sin6_family = AF_INET6;
		return sizeof(*ret);
	}
	inet_pton(AF_INET, text, &in4->sin_addr);
	in4->sin_family = AF_INET;
	return sizeof(*in4);
}

static void ask(const struct question *q)
{
	struct sockaddr_in6 src = { 0 }, dst = { 0 };
	struct rdma_addrinfo hints = { .ai_flags = q->flags, .ai_port_space = q->port_space };
	struct rdma_addrinfo *list = NULL;
	int rc;

	hints.ai_qp_type = q->qp_type;
	hints.ai_src_len = parse(q->src, &src);
	hints.ai_src_addr = q->src ? (struct sockaddr *)&src : NULL;
	hints.ai_dst_len = parse(q->dst, &dst);
	hints.ai_dst_addr = q->dst ? (struct sockaddr *)&dst : NULL;
	if (q->flags & RAI_FAMILY)
		hints.ai_family = AF_IB;
	else if (!q->node)
		hints.ai_family = q->dst ? dst.sin6_family : src.sin6_family;
	errno = 0;
	rc = rdma_getaddrinfo(q->node, q->node ? "7471" : NULL, &hints, &list);
	printf("  returned %d errno %d\n", rc, rc == -1 ? errno : 0);
	for (const struct rdma_addrinfo *rai = list; rai; rai = rai->ai_next)
		print_result(rai);
	rdma_freeaddrinfo(list);
	fflush(stdout);
}

static void *ask_in_thread(void *q)
{
	ask(q);
	return NULL;
}

/* Cancels a thread while it waits for the response. */
static void ask_and_cancel(const struct question *q, const sigset_t *signals)
{
	struct question copy = *q;
	pthread_t thread;
	void *result;
	int signal;

	pthread_create(&thread, NULL, ask_in_thread, &copy);
	sigwait(signals, &signal);
	pthread_cancel(thread);
	pthread_join(thread, &result);
	printf("  %s\n", result == PTHREAD_CANCELED ? "cancelled" : "not cancelled");
	fflush(stdout);
}

/* clang-format off */
static const struct question questions[] = {
	{ "192.0.2.1", 0, 0, 0, NULL, NULL, nothing, "an empty answer" },
	{ "192.0.2.1", 0, 0, 0, NULL, NULL, failure, "a failure" },
	{ "192.0.2.1", 0, 0, 0, NULL, NULL, silence, "silence, in which the thread is cancelled" },
	{ "192.0.2.1", 0, 0, 0, "192.0.2.9", NULL, one_path, "a path, and a source was given" },
	{ "192.0.2.1", 0, 0, 0, NULL, NULL, two_paths_and_source, "source and two paths" },
	{ "192.0.2.1", 0, 0, 0, "192.0.2.9", NULL, two_paths_and_source, "a source, and one given" },
	{ "192.0.2.1", 0, 0, 0, NULL, NULL, source_of_ipv4, "a source alone" },
	{ "192.0.2.1", 0, 0, 0, NULL, NULL, source_of_ipv6, "a source of another family" },
	{ "192.0.2.1", 0, 0, 0, NULL, NULL, ends_of_ipv4, "both ends and a path" },
	{ "2001:db8::1", 0, 0, 0, NULL, NULL, ends_of_ipv6, "both ends of IPv6 and a path" },
	{ "2001:db8::1", 0, 0, 0, "2001:db8::9", NULL, ends_of_ipv6, "IPv6, with a source" },
	{ "192.0.2.1", 0, 0, 0, "2001:db8::9", NULL, ends_of_ipv4, "a source of IPv6" },
	{ "192.0.2.1", RAI_NUMERICHOST, 0, 0, NULL, NULL, ends_of_ipv4, "a number" },
	{ "192.0.2.1", RAI_NOROUTE, 0, 0, NULL, NULL, ends_of_ipv4, "no route wanted" },
	{ "192.0.2.1", RAI_NOROUTE | RAI_NUMERICHOST, 0, 0, "192.0.2.9", NULL, one_path, "both" },
	{ "192.0.2.1", RAI_PASSIVE, 0, 0, NULL, NULL, one_path, "passive" },
	{ "192.0.2.1", 0, IBV_QPT_UD, RDMA_PS_UDP, NULL, NULL, ends_of_ipv4, "datagrams" },
	{ "192.0.2.1", 0, IBV_QPT_RC, RDMA_PS_IB, NULL, NULL, ends_of_ipv4, "the IB port space" },
	{ "192.0.2.1", 0, IBV_QPT_UD, RDMA_PS_IPOIB, NULL, NULL, ends_of_ipv4, "IPoIB" },
	{ "192.0.2.1", ROUTE_ONLY, 0, 0, NULL, NULL, ends_of_ipv4, "the route alone" },
	{ NULL, 0, IBV_QPT_RC, RDMA_PS_TCP, "192.0.2.9", "192.0.2.1", ends_of_ipv4, "both in hints" },
	{ NULL, 0, IBV_QPT_RC, RDMA_PS_TCP, NULL, "192.0.2.1", ends_of_ipv4, "destination in hints" },
	{ NULL, 0, IBV_QPT_RC, RDMA_PS_TCP, "192.0.2.9", NULL, nothing, "source in hints" },
	{ NULL, ROUTE_ONLY, IBV_QPT_RC, RDMA_PS_TCP, "192.0.2.9", "192.0.2.1", ends_of_ipv4,
	  "hints for a route" },
	{ "fe80::2", RAI_FAMILY | RAI_NUMERICHOST, 0, 0, NULL, NULL, one_path, "a GID" },
};
/* clang-format on */

static void play(int listener, const struct question *q)
{
	struct answer answer = q->answer();
	sigset_t signals;
	int alive[2];

	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	printf("%s\n", q->what);
	fflush(stdout);
	if (pipe(alive))
		exit(1);
	asker = fork();
	if (asker == 0) {
		close(alive[0]);
		if (answer.is_silent)
			ask_and_cancel(q, &signals);
		else
			ask(q);
		_exit(0);
	}
	close(alive[1]);
	serve(listener, alive[0], &answer);
	fflush(stdout);
	close(alive[0]);
	waitpid(asker, NULL, 0);
}

int main(void)
{
	int listener = open_socket();

	for (size_t i = 0; i < N(questions); i++)
		play(listener, &questions[i]);
	close(listener);
	unlink(SOCKET);
	return 0;
}

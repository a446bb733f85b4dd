/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The socket benchmark's two ends, started by rsocket.py with one library or the other:
 *
 *     rsocket server ADDRESS
 *     rsocket client ADDRESS SIZE MESSAGES ... [idle SOCKETS]
 *     rsocket turns ADDRESS MINE OTHERS ROUNDS SIZE MESSAGES ...
 *
 * The client prints "latency SIZE us", half of a round trip, "send SIZE MB/s" and "receive SIZE
 * MB/s" for each size, each the median of many, then "memory user KiB" and "memory host KiB", of
 * one idle socket. In turns with another client it prints each of them ROUNDS times, the median of
 * one round's round trips or one round's throughput: it has the turn while it measures, which is a
 * byte that it reads from the FIFO MINE and then writes to the FIFO OTHERS. Before that it prints
 * "connected".
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <rdma/rsocket.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PORT	   7473
#define BYTES_MAX  65536
#define WARM_UP	   20
#define ECHOES_MAX 10000
#define STREAMS	   5 /* the throughput is their median */
#define IDLE_MAX   1000
#define SETTLE_US  500000
#define BACKLOG	   128
#define MANY_BYTES 4194304 /* minimum per throughput, so that it exceeds one buffer */

enum kind {
	ECHO,
	SINK,
	SOURCE
};

/* A request of the client to the server, on a connection of its own. */
struct order {
	uint32_t kind;
	uint32_t bytes;
	uint32_t n;
};

static uint8_t buf[BYTES_MAX];

__attribute__((noreturn)) static void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static struct sockaddr_in address(const char *text)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(PORT) };

	if (inet_pton(AF_INET, text, &addr.sin_addr) != 1)
		die(text);
	return addr;
}

static void send_all(int fd, const void *from, size_t bytes)
{
	while (bytes) {
		ssize_t n = rsend(fd, from, bytes, 0);

		if (n <= 0)
			die("rsend");
		from = (const uint8_t *)from + n;
		bytes -= (size_t)n;
	}
}

/* Return: false if the peer has closed the connection. */
static int recv_all(int fd, void *to, size_t bytes)
{
	ssize_t n = rrecv(fd, to, bytes, MSG_WAITALL);

	if (n < 0)
		die("rrecv");
	return (size_t)n == bytes;
}

/* --- server -------------------------------------------------------------- */

static void serve(int fd)
{
	struct order order;

	while (recv_all(fd, &order, sizeof(order)) && order.bytes <= BYTES_MAX) {
		for (uint32_t i = 0; i < order.n; i++) {
			if (order.kind != SOURCE && !recv_all(fd, buf, order.bytes))
				return;
			if (order.kind != SINK)
				send_all(fd, buf, order.bytes);
		}
		if (order.kind == SINK)
			send_all(fd, buf, 1);
	}
}

/* Serves the first connection; those that arrive meanwhile are idle, and closed after it. */
static void serve_one_client(int listener)
{
	static int idle[IDLE_MAX];
	int fd = raccept(listener, NULL, NULL);
	uint32_t n;

	if (fd < 0)
		die("raccept");
	serve(fd);
	rclose(fd);
	fd = raccept(listener, NULL, NULL);
	if (fd < 0 || !recv_all(fd, &n, sizeof(n)) || n > IDLE_MAX)
		die("how many idle ones");
	for (uint32_t i = 0; i < n; i++)
		idle[i] = raccept(listener, NULL, NULL);
	recv_all(fd, &n, sizeof(n));
	for (uint32_t i = 0; i < n; i++)
		rclose(idle[i]);
	rclose(fd);
}

static int server(const char *text)
{
	struct sockaddr_in addr = address(text);
	int listener = rsocket(AF_INET, SOCK_STREAM, 0);

	if (rbind(listener, (struct sockaddr *)&addr, sizeof(addr)) || rlisten(listener, BACKLOG))
		die("rlisten");
	printf("ready\n");
	fflush(stdout);
	serve_one_client(listener);
	rclose(listener);
	return 0;
}

/* --- client -------------------------------------------------------------- */

static int connect_to(const char *text)
{
	struct sockaddr_in addr = address(text);
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || rconnect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		die("rconnect");
	return fd;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *figures, uint32_t n)
{
	qsort(figures, n, sizeof(*figures), compare_doubles);
	return figures[n / 2];
}

/* Return: microseconds of a round trip, the median of all. */
static double echo(int fd, uint32_t bytes, uint32_t n)
{
	static double took[ECHOES_MAX];
	struct order order = { ECHO, bytes, n };

	send_all(fd, &order, sizeof(order));
	for (uint32_t i = 0; i < n; i++) {
		double begin = now_us();

		send_all(fd, buf, bytes);
		recv_all(fd, buf, bytes);
		took[i] = now_us() - begin;
	}
	return median(took, n);
}

/* Return: microseconds until the peer has acknowledged all. */
static double sink(int fd, uint32_t bytes, uint32_t n)
{
	struct order order = { SINK, bytes, n };
	double begin = now_us();

	send_all(fd, &order, sizeof(order));
	for (uint32_t i = 0; i < n; i++)
		send_all(fd, buf, bytes);
	recv_all(fd, buf, 1);
	return now_us() - begin;
}

static double source(int fd, uint32_t bytes, uint32_t n)
{
	struct order order = { SOURCE, bytes, n };
	double begin = now_us();

	send_all(fd, &order, sizeof(order));
	for (uint32_t i = 0; i < n; i++)
		recv_all(fd, buf, bytes);
	return now_us() - begin;
}

static void stream(const char *what, double (*one)(int fd, uint32_t bytes, uint32_t n), int fd,
		   uint32_t bytes, uint32_t n)
{
	double took[STREAMS];

	one(fd, bytes, WARM_UP);
	for (int i = 0; i < STREAMS; i++)
		took[i] = one(fd, bytes, n);
	printf("%s %u %.3f\n", what, bytes, (double)n * bytes / median(took, STREAMS));
}

static void check_order(uint32_t bytes, uint32_t n)
{
	errno = EINVAL;
	if (bytes > BYTES_MAX || n < 1 || n > ECHOES_MAX)
		die("1 to 10000 messages of at most 65536 bytes");
}

static void measure(int fd, uint32_t bytes, uint32_t n)
{
	uint32_t many = n;

	check_order(bytes, n);
	if ((uint64_t)n * bytes > MANY_BYTES)
		many = MANY_BYTES / bytes;
	echo(fd, bytes, WARM_UP);
	printf("latency %u %.2f\n", bytes, echo(fd, bytes, n) / 2);
	stream("send", sink, fd, bytes, many);
	stream("receive", source, fd, bytes, many);
	fflush(stdout);
}

/* --- in turns with another client ---------------------------------------- */

struct turns {
	int mine;
	int others;
	uint32_t rounds;
};

static int open_fifo(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		die(path);
	return fd;
}

static void wait_for_turn(const struct turns *turns)
{
	char token;

	if (read(turns->mine, &token, 1) != 1)
		die("my turn");
}

static void pass_turn(const struct turns *turns)
{
	if (write(turns->others, "", 1) != 1)
		die("the other's turn");
}

static void run_in_turns(const struct turns *turns, int fd, uint32_t bytes, uint32_t n)
{
	static const struct {
		const char *name;
		double (*one)(int fd, uint32_t bytes, uint32_t n);
	} whats[] = { { "latency", echo }, { "send", sink }, { "receive", source } };

	check_order(bytes, n);
	for (size_t i = 0; i < sizeof(whats) / sizeof(whats[0]); i++) {
		wait_for_turn(turns);
		whats[i].one(fd, bytes, WARM_UP);
		pass_turn(turns);
		for (uint32_t r = 0; r < turns->rounds; r++) {
			double took;

			wait_for_turn(turns);
			took = whats[i].one(fd, bytes, n);
			printf("%s %u %.3f\n", whats[i].name, bytes,
			       whats[i].one == echo ? took / 2 : (double)n * bytes / took);
			pass_turn(turns);
		}
	}
	fflush(stdout);
}

static int turn_taker(int n_words, char **words)
{
	struct turns turns = { open_fifo(words[1]), open_fifo(words[2]), (uint32_t)atoi(words[3]) };
	int fd = connect_to(words[0]);

	printf("connected\n");
	fflush(stdout);
	for (int i = 4; i + 1 < n_words; i += 2)
		run_in_turns(&turns, fd, (uint32_t)atoi(words[i]), (uint32_t)atoi(words[i + 1]));
	rclose(fd);
	return 0;
}

/* --- memory -------------------------------------------------------------- */

/* Return: the value of a name in a file of /proc, in KiB. */
static double proc_kib(const char *path, const char *name)
{
	FILE *in = fopen(path, "re");
	char line[256];
	double kib = -1;

	if (!in)
		die(path);
	while (kib < 0 && fgets(line, sizeof(line), in))
		if (strncmp(line, name, strlen(name)) == 0)
			kib = strtod(line + strlen(name), NULL);
	fclose(in);
	return kib;
}

/* The first socket is not counted: it creates the threads. */
static void measure_idle(const char *text, uint32_t n)
{
	int control = connect_to(text);
	double user_kib, host_kib;
	int fd[IDLE_MAX];

	send_all(control, &n, sizeof(n));
	usleep(SETTLE_US);
	user_kib = proc_kib("/proc/self/status", "VmRSS:");
	host_kib = proc_kib("/proc/meminfo", "MemAvailable:");
	for (uint32_t i = 0; i < n; i++)
		fd[i] = connect_to(text);
	usleep(SETTLE_US);
	user_kib = proc_kib("/proc/self/status", "VmRSS:") - user_kib;
	host_kib -= proc_kib("/proc/meminfo", "MemAvailable:");
	printf("memory user %.1f\nmemory host %.1f\n", user_kib / n, host_kib / n);
	send_all(control, &n, sizeof(n));
	for (uint32_t i = 0; i < n; i++)
		rclose(fd[i]);
	rclose(control);
}

static int client(int n_words, char **words)
{
	int fd = connect_to(words[0]);
	uint32_t n_idle = 0;

	for (int i = 1; i + 1 < n_words; i += 2) {
		if (strcmp(words[i], "idle") == 0)
			n_idle = (uint32_t)atoi(words[i + 1]);
		else
			measure(fd, (uint32_t)atoi(words[i]), (uint32_t)atoi(words[i + 1]));
	}
	rclose(fd);
	if (n_idle)
		measure_idle(words[0], n_idle < IDLE_MAX ? n_idle : IDLE_MAX);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "server") == 0)
		return server(argv[2]);
	if (argc > 3 && strcmp(argv[1], "client") == 0)
		return client(argc - 2, argv + 2);
	if (argc > 6 && strcmp(argv[1], "turns") == 0)
		return turn_taker(argc - 2, argv + 2);
	fprintf(stderr, "usage: rsocket server|client ADDRESS [SIZE MESSAGES]... [idle SOCKETS]\n"
			"       rsocket turns ADDRESS MINE OTHERS ROUNDS [SIZE MESSAGES]...\n");
	return 2;
}

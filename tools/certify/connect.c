/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connect benchmark: measures each step of many connections. Compiled once and run with either
 * library by connect.py.
 *
 *   connect server [-f] [ADDRESS]
 *   connect client [-f] [-n COUNT,...] ADDRESS
 *
 * -f: fake queue pair numbers instead of queue pairs.
 */
#include <errno.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "tools/certify/bench.h"

void bench_die(const char *format, ...)
{
	int cause = errno;
	va_list args;

	fprintf(stderr, "connect: ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, cause ? ": %s\n" : "\n", strerror(cause));
	exit(1);
}

double bench_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

void bench_address(const char *text, struct sockaddr_storage *address)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM };
	struct addrinfo *found;

	errno = 0;
	if (getaddrinfo(text ? text : "::", BENCH_PORT, &hints, &found))
		bench_die("%s is not a numeric address", text);
	memset(address, 0, sizeof(*address));
	memcpy(address, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
}

/* No data is sent, so one completion queue suffices for any number of queue pairs. */
void bench_create_qp(struct rdma_cm_id *id)
{
	static struct ibv_cq *cq;
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	if (!cq)
		cq = ibv_create_cq(id->verbs, 16, NULL, NULL, 0);
	if (!cq)
		bench_die("ibv_create_cq");
	attr.send_cq = attr.recv_cq = cq;
	if (rdma_create_qp(id, NULL, &attr))
		bench_die("rdma_create_qp");
}

/*
 * The process id distinguishes the numbers from those of a previous run that are still in TIMEWAIT.
 */
uint32_t bench_fake_qpn(void)
{
	static uint32_t count;

	return (0x800000 | (uint32_t)getpid() << 14 | count++ % 16384) & 0xffffff;
}

/* Every connection may take one or two descriptors. */
static void allow_many_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int usage(void)
{
	fprintf(stderr, "usage: connect server [-f] [ADDRESS]\n"
			"       connect client [-f] [-n COUNT,...] ADDRESS\n");
	return 2;
}

int main(int argc, char **argv)
{
	struct bench_options options = { .counts = "1,100,1000" };
	const char *role = argc > 1 ? argv[1] : "";
	int option;

	optind = 2;
	while ((option = getopt(argc, argv, "fn:")) != -1) {
		if (option == 'f')
			options.fake_qpn = true;
		else if (option == 'n')
			options.counts = optarg;
		else
			return usage();
	}
	options.address = optind < argc ? argv[optind] : NULL;
	setvbuf(stdout, NULL, _IOLBF, 0);
	allow_many_files();
	if (!strcmp(role, "server"))
		return bench_server(&options);
	if (!strcmp(role, "client") && options.address)
		return bench_client(&options);
	return usage();
}

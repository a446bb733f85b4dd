/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Speed and memory of the protocol: two cores in one thread, without network, applications or queue
 * pairs. A handshake is REQ, REP, RTU with both ends' steps, messages made and read. Run by hand on
 * a quiet machine, and by the long suite, which checks the memory.
 *
 * First a number of connections is made and stays; then handshakes are measured with that many
 * standing: again and again the thousand oldest are ended and as many new ones made, and only the
 * making is timed.
 */
#include <argp.h>
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cm/core.h"

#define SERVICE	     UINT64_C(0x01061b58)
#define BYTES_MAX    1024
#define NS_PER_S     1e9
#define STEP_NS	     1000
#define SHARE	     1000 /* connections that are ended and made again */
#define ROUNDS_MIN   5
#define MEASURED_MIN 200000 /* minimum of handshakes per round */

struct end {
	struct cm_core core;
	struct cm_port port;
	struct cm_service service;
	struct mad_path to_peer;
	struct cm_msg request, reply;
};

struct bench {
	struct end end[2]; /* 0 connects, 1 accepts */
	struct cm_conn **conn[2];
	unsigned int n;
	struct cm_time now;
	struct cm_effects fx;
	unsigned int next_qpn;
};

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / NS_PER_S;
}

static void must(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "bench core: %s\n", what);
	exit(EXIT_FAILURE);
}

static void end_init(struct end *end, int number)
{
	static const struct mad_gid gids[] = {
		{ .raw = { [10] = 0xff, 0xff, 10, 0, 0, 1 } },
		{ .raw = { [10] = 0xff, 0xff, 10, 0, 0, 2 } },
	};

	must(cm_core_init(&end->core, 0x1234567 + number) == 0, "out of memory");
	cm_port_init(&end->port, 0xa + number, &gids[number]);
	must(cm_core_serve(&end->core, &end->service, SERVICE) == 0, "out of memory");
	end->to_peer = (struct mad_path){ .grh = true, .dgid = gids[!number] };
	cm_msg_init(&end->request, CM_ATTR_REQ, 0);
	end->request.req.service_id = SERVICE;
	end->request.req.local_cm_response_timeout = 20;
	end->request.req.max_cm_retries = 15;
	end->request.req.primary.local_ack_timeout = 19;
	end->request.req.primary.local_gid = gids[number];
	end->request.req.primary.remote_gid = gids[!number];
	cm_msg_init(&end->reply, CM_ATTR_REP, 0);
}

/* Delivers the messages of one end to the other. */
static void deliver(struct bench *bench, int to)
{
	struct end *end = &bench->end[to];
	uint8_t mad[MAD_BYTES];

	must(bench->fx.n_sends == 1, "a step did not send one message");
	memcpy(mad, bench->fx.send[0].mad, sizeof(mad));
	cm_core_reserve(&end->core);
	cm_core_input(&end->core, &end->port, &end->to_peer, mad, sizeof(mad), bench->now,
		      &bench->fx);
}

static void call(struct bench *bench, int who, struct cm_conn *conn, enum cm_event verb,
		 struct cm_msg *msg)
{
	struct end *end = &bench->end[who];
	struct cm_args args = {
		.port = &end->port, .path = &end->to_peer, .packet_life_time = 18, .msg = msg
	};

	must(cm_core_call(&end->core, conn, verb, &args, bench->now, &bench->fx) == 0,
	     "a call was refused");
}

static void connect_pair(struct bench *bench, unsigned int i)
{
	struct cm_conn *active = cm_core_conn_new(&bench->end[0].core, bench), *passive;

	must(active, "out of memory");
	bench->now.ns += STEP_NS;
	bench->end[0].request.req.local_qpn = bench->next_qpn++ & 0xffffff;
	call(bench, 0, active, CM_CALL_REQ, &bench->end[0].request);
	deliver(bench, 1);
	must(bench->fx.n_reports == 1, "no request came");
	passive = bench->fx.report[0].conn;
	passive->owner = bench;
	bench->end[1].reply.rep.local_qpn = bench->next_qpn++ & 0xffffff;
	call(bench, 1, passive, CM_CALL_REP, &bench->end[1].reply);
	deliver(bench, 0);
	call(bench, 0, active, CM_CALL_RTU, NULL);
	deliver(bench, 1);
	must(bench->fx.n_reports == 1, "not established");
	bench->conn[0][i] = active;
	bench->conn[1][i] = passive;
}

static void disconnect_pair(struct bench *bench, unsigned int i)
{
	bench->now.ns += STEP_NS;
	call(bench, 0, bench->conn[0][i], CM_CALL_DREQ, NULL);
	deliver(bench, 1);
	call(bench, 1, bench->conn[1][i], CM_CALL_DESTROY, NULL);
	deliver(bench, 0);
	call(bench, 0, bench->conn[0][i], CM_CALL_DESTROY, NULL);
}

static size_t heap_bytes(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

static void fill(struct bench *bench, unsigned int n)
{
	bench->conn[0] = calloc(n, sizeof(bench->conn[0][0]));
	bench->conn[1] = calloc(n, sizeof(bench->conn[1][0]));
	must(bench->conn[0] && bench->conn[1], "out of memory");
	bench->n = n;
	for (unsigned int i = 0; i < n; i++)
		connect_pair(bench, i);
}

/* Return: CPU time of connecting in seconds, without disconnecting. */
static double renew(struct bench *bench, unsigned int first, unsigned int n)
{
	double start;

	for (unsigned int i = 0; i < n; i++)
		disconnect_pair(bench, (first + i) % bench->n);
	start = now_s();
	for (unsigned int i = 0; i < n; i++)
		connect_pair(bench, (first + i) % bench->n);
	return now_s() - start;
}

/*
 * The best of several rounds, each with so many connections that the clock's resolution does not
 * matter.
 */
static double best_rate(struct bench *bench, unsigned int n_rounds)
{
	unsigned int share = bench->n < SHARE ? bench->n : SHARE;
	double best = 0;

	for (unsigned int round = 0; round < n_rounds; round++) {
		unsigned int done = 0;
		double spent = 0;

		for (; done < MEASURED_MIN; done += share)
			spent += renew(bench, done, share);
		if (done / spent > best)
			best = done / spent;
	}
	return best;
}

static void bench_fini(struct bench *bench)
{
	for (int i = 0; i < 2; i++) {
		cm_core_fini(&bench->end[i].core);
		free(bench->conn[i]);
	}
	free(bench);
}

/* Return: bytes per connection. */
static double measure(unsigned int n, unsigned int n_rounds)
{
	struct bench *bench = calloc(1, sizeof(*bench));
	double start, fill_s, bytes, rate;
	size_t before;

	must(bench, "out of memory");
	end_init(&bench->end[0], 0);
	end_init(&bench->end[1], 1);
	before = heap_bytes();
	start = now_s();
	fill(bench, n);
	fill_s = now_s() - start;
	/* Two ends per handshake; memory of the test itself is subtracted. */
	bytes = ((double)(heap_bytes() - before) - 2.0 * n * sizeof(void *)) / (2.0 * n);
	rate = best_rate(bench, n_rounds);
	printf("%8u connections: %6.0f bytes each; first %8.0f handshakes/s, then %8.0f\n", n,
	       bytes, n / fill_s, rate);
	bench_fini(bench);
	return bytes;
}

static const struct argp_option option_table[] = {
	{ "count", 'n', "N", 0, "Connections that stand; may be repeated (1000 and 1000000)", 0 },
	{ "rounds", 'r', "N", 0, "Take the best of so many (5)", 0 },
	{ 0 },
};

struct options {
	unsigned int count[8], n_counts, n_rounds;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case 'n':
		if (options->n_counts == 8 || atoi(arg) < 1)
			argp_error(state, "1 to 8 counts, 1 at least");
		options->count[options->n_counts++] = (unsigned int)atoi(arg);
		return 0;
	case 'r':
		options->n_rounds = (unsigned int)atoi(arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	static const struct argp argp = { option_table,
					  parse,
					  NULL,
					  "How fast the protocol core is, and what it keeps.",
					  0,
					  0,
					  0 };
	struct options options = { .n_rounds = ROUNDS_MIN };
	double bytes = 0, most = 0;

	argp_parse(&argp, argc, argv, 0, NULL, &options);
	if (!options.n_counts) {
		options.count[options.n_counts++] = 1000;
		options.count[options.n_counts++] = 1000000;
	}
	for (unsigned int i = 0; i < options.n_counts; i++) {
		bytes = measure(options.count[i], options.n_rounds);
		/* The hash table of a few connections would distort the result. */
		if (options.count[i] >= 10000 && bytes > most)
			most = bytes;
	}
	return most > BYTES_MAX ? EXIT_FAILURE : EXIT_SUCCESS;
}

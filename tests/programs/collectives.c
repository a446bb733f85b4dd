/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What benchmarks of MPI play, with all data compared: messages between neighbours, collectives and
 * one-sided transfers, of 8 bytes to a megabyte. A row of table.py.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define WORDS_MAX (1 << 17)
#define ROUNDS	  20

static int rank, n_ranks, n_wrong;
static long *out, *in;

/* Word @i of what a rank sends to another. */
static long word(int from, int to, int i)
{
	return from * 1000003L + to * 1009L + i;
}

static void fill(int to, int at, int n)
{
	for (int i = 0; i < n; i++)
		out[at + i] = word(rank, to, i);
}

static void compare(int from, int to, int at, int n)
{
	for (int i = 0; i < n; i++)
		n_wrong += in[at + i] != word(from, to, i);
}

static void neighbours(int n)
{
	int next = (rank + 1) % n_ranks, previous = (rank + n_ranks - 1) % n_ranks;

	fill(next, 0, n);
	MPI_Sendrecv(out, n, MPI_LONG, next, 1, in, n, MPI_LONG, previous, 1, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	compare(previous, rank, 0, n);
}

static void broadcast(int n)
{
	for (int root = 0; root < n_ranks; root++) {
		for (int i = 0; i < n; i++)
			in[i] = rank == root ? word(root, root, i) : 0;
		MPI_Bcast(in, n, MPI_LONG, root, MPI_COMM_WORLD);
		compare(root, root, 0, n);
	}
}

static void reduce_to_all(int n)
{
	fill(0, 0, n);
	MPI_Allreduce(out, in, n, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < n; i++)
		n_wrong += in[i] != n_ranks * (n_ranks - 1) / 2 * 1000003L + (long)n_ranks * i;
}

static void all_to_all(int n)
{
	n /= n_ranks;
	for (int to = 0; to < n_ranks; to++)
		fill(to, to * n, n);
	MPI_Alltoall(out, n, MPI_LONG, in, n, MPI_LONG, MPI_COMM_WORLD);
	for (int from = 0; from < n_ranks; from++)
		compare(from, rank, from * n, n);
}

static void one_sided(int n)
{
	int next = (rank + 1) % n_ranks, previous = (rank + n_ranks - 1) % n_ranks;
	MPI_Win window;

	MPI_Win_create(in, n * sizeof(*in), sizeof(*in), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
	fill(next, 0, n);
	MPI_Win_fence(0, window);
	MPI_Put(out, n, MPI_LONG, next, 0, n, MPI_LONG, window);
	MPI_Win_fence(0, window);
	compare(previous, rank, 0, n);
	MPI_Get(out, n, MPI_LONG, next, 0, n, MPI_LONG, window);
	MPI_Win_fence(0, window);
	for (int i = 0; i < n; i++)
		n_wrong += out[i] != word(rank, next, i);
	MPI_Win_free(&window);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*play)(int n);
	} plays[] = {
		{ "neighbours", neighbours },	{ "broadcast", broadcast },
		{ "allreduce", reduce_to_all }, { "alltoall", all_to_all },
		{ "one-sided", one_sided },
	};
	int all_wrong;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
	out = malloc(WORDS_MAX * sizeof(*out));
	in = malloc(WORDS_MAX * sizeof(*in));
	for (unsigned int p = 0; p < sizeof(plays) / sizeof(plays[0]); p++) {
		double began = MPI_Wtime();

		for (int i = 0; i < ROUNDS; i++)
			for (int n = 1; n <= WORDS_MAX; n *= 16)
				plays[p].play(n);
		MPI_Allreduce(&n_wrong, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		if (rank == 0)
			printf("%s: %d wrong words, %.0f us\n", plays[p].name, all_wrong,
			       (MPI_Wtime() - began) / ROUNDS * 1e6);
	}
	MPI_Finalize();
	return 0;
}

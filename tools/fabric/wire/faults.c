/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults from a seed: see faults.h.
 */
#include "tools/fabric/wire/faults.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/fabric/wire/place.h"

#define REORDER_US 2000

const struct fab_faults *fab_faults_open(const char *dir)
{
	char path[FAB_PATH_BYTES];
	struct fab_faults *faults;
	int fd;

	snprintf(path, sizeof(path), "%s/faults", dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	faults = mmap(NULL, sizeof(*faults), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (faults == MAP_FAILED)
		return NULL;
	if (faults->magic == FAB_FAULTS_MAGIC)
		return faults;
	munmap(faults, sizeof(*faults));
	return NULL;
}

void fab_faults_close(const struct fab_faults *faults)
{
	if (faults)
		munmap((void *)(uintptr_t)faults, sizeof(*faults));
}

/* splitmix64: any state will do to begin with. */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static bool fault_happens(uint64_t *state, uint32_t of_a_million)
{
	return of_a_million && next_random(state) % FAB_MILLION < of_a_million;
}

/* The connection manager also speaks beside QP1, with its Q_Key. */
static bool is_mad(const struct fab_packet *packet)
{
	return packet->dest_qpn == FAB_QP1 ||
	       (packet->op == FAB_OP_DATAGRAM && packet->qkey == FAB_QP1_QKEY);
}

struct fab_fate fab_faults_decide(const struct fab_faults *faults, uint64_t *state,
				  const struct fab_packet *packet)
{
	struct fab_fate fate = { .copies = 1, .corrupt_bit = -1 };
	const struct fab_fault *fault;

	if (!faults || packet->op == FAB_OP_EVENT)
		return fate;
	fault = is_mad(packet) ? &faults->mads : &faults->data;
	if (fault_happens(state, fault->loss))
		fate.copies = 0;
	else if (fault_happens(state, fault->duplicate))
		fate.copies = 2;
	fate.delay_us = fault->delay_us;
	if (fault_happens(state, fault->reorder))
		fate.delay_us += REORDER_US;
	if (packet->bytes && fault_happens(state, fault->corrupt))
		fate.corrupt_bit = (int32_t)(next_random(state) % (8ull * packet->bytes));
	return fate;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults from a seed: see faults.h.
 */
#include "tools/fabric/wire/faults.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "tools/fabric/wire/counters.h"
#include "tools/fabric/wire/folder.h"

#define REORDER_US 2000

/* The faults of one packet. */
struct fate {
	unsigned int copies; /* 0: lost */
	uint32_t delay_us;
	int32_t corrupt_bit;
};

/* A delayed packet. */
struct delayed {
	struct list link;
	uint64_t due_ns;
	struct fab_packet packet;
	int32_t corrupt_bit;
	size_t way_bytes;
	char bytes[]; /* @way, followed by the payload */
};

static const struct fab_faults *open_faults(const char *dir)
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

/* --- chance -------------------------------------------------------------- */

/* splitmix64: any initial state is suitable. */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static bool fault_is_due(uint64_t *state, uint32_t of_a_million)
{
	return of_a_million && next_random(state) % FAB_MILLION < of_a_million;
}

/* The connection manager also uses other queue pairs, with QP1's Q_Key. */
static bool is_mad(const struct fab_packet *packet)
{
	return packet->dest_qpn == FAB_QP1 ||
	       (packet->op == FAB_OP_DATAGRAM && packet->qkey == FAB_QP1_QKEY);
}

static struct fate decide_fate(const struct fab_faults *faults, uint64_t *state,
			       const struct fab_packet *packet)
{
	struct fate fate = { .copies = 1, .corrupt_bit = -1 };
	const struct fab_fault *fault;

	if (!faults || packet->op == FAB_OP_EVENT)
		return fate;
	fault = is_mad(packet) ? &faults->mads : &faults->data;
	if (fault_is_due(state, fault->loss))
		fate.copies = 0;
	else if (fault_is_due(state, fault->duplicate))
		fate.copies = 2;
	fate.delay_us = fault->delay_us;
	if (fault_is_due(state, fault->reorder))
		fate.delay_us += REORDER_US;
	if (fault_is_due(state, fault->corrupt))
		fate.corrupt_bit = (int32_t)(next_random(state) % INT32_MAX);
	return fate;
}

/* --- delay --------------------------------------------------------------- */

static void set_timer(struct fab_faulty *faulty)
{
	struct itimerspec at = { .it_value = { .tv_sec = 0 } };

	if (!list_is_empty(&faulty->delayed))
		at.it_value = clock_timespec(
			container_of(faulty->delayed.next, struct delayed, link)->due_ns);
	timerfd_settime(faulty->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

static int delay_packet(struct fab_faulty *faulty, const void *way, size_t way_bytes,
			const struct fab_packet *packet, const void *payload,
			const struct fate *fate)
{
	struct delayed *delayed = malloc(sizeof(*delayed) + way_bytes + packet->bytes);
	struct list *node;

	if (!delayed)
		return -ENOMEM;
	delayed->due_ns = clock_ns() + fate->delay_us * UINT64_C(1000);
	delayed->packet = *packet;
	delayed->corrupt_bit = fate->corrupt_bit;
	delayed->way_bytes = way_bytes;
	memcpy(delayed->bytes, way, way_bytes);
	if (packet->bytes)
		memcpy(delayed->bytes + way_bytes, payload, packet->bytes);
	node = faulty->delayed.prev;
	while (node != &faulty->delayed &&
	       container_of(node, struct delayed, link)->due_ns > delayed->due_ns)
		node = node->prev;
	list_prepend(node, &delayed->link);
	if (faulty->delayed.next == &delayed->link)
		set_timer(faulty);
	return 0;
}

static void put_due(struct watch *watch)
{
	struct fab_faulty *faulty = container_of(watch, struct fab_faulty, timer);
	uint64_t count, now = clock_ns();
	struct delayed *delayed;

	if (read(faulty->timer_fd, &count, sizeof(count)) < 0)
		return;
	while (!list_is_empty(&faulty->delayed)) {
		delayed = container_of(faulty->delayed.next, struct delayed, link);
		if (delayed->due_ns > now)
			break;
		list_remove(&delayed->link);
		faulty->put(faulty, delayed->bytes, &delayed->packet,
			    delayed->bytes + delayed->way_bytes, delayed->corrupt_bit);
		free(delayed);
	}
	set_timer(faulty);
}

/* --- a sender ------------------------------------------------------------ */

bool fab_faulty_has_faults(const struct fab_faulty *faulty)
{
	const struct fab_fault *data;

	if (!faulty->faults)
		return false;
	data = &faulty->faults->data;
	return data->loss || data->duplicate || data->reorder || data->corrupt || data->delay_us;
}

int fab_faulty_send(struct fab_faulty *faulty, const void *way, size_t way_bytes,
		    const struct fab_packet *packet, const void *payload)
{
	struct fate fate = decide_fate(faulty->faults, &faulty->random, packet);
	int err = 0;

	if (!fate.copies)
		fab_count(faulty->counters, packet->from_port, FAB_XMIT_LOST, 1);
	while (!err && fate.copies--) {
		if (fate.delay_us)
			err = delay_packet(faulty, way, way_bytes, packet, payload, &fate);
		else
			err = faulty->put(faulty, way, packet, payload, fate.corrupt_bit);
	}
	return err;
}

void fab_faulty_clear(struct fab_faulty *faulty)
{
	*faulty = (struct fab_faulty){ .timer_fd = -1 };
	list_init(&faulty->delayed);
}

int fab_faulty_init(struct fab_faulty *faulty, const char *dir, uint32_t sender, struct loop *loop,
		    fab_put_fn *put)
{
	fab_faulty_clear(faulty);
	faulty->put = put;
	faulty->faults = open_faults(dir);
	faulty->random = sender;
	if (faulty->faults)
		faulty->random |= (uint64_t)faulty->faults->seed << 32;
	faulty->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (faulty->timer_fd < 0)
		return -errno;
	return loop_watch(loop, &faulty->timer, faulty->timer_fd, EPOLLIN, put_due);
}

void fab_faulty_fini(struct fab_faulty *faulty)
{
	struct delayed *delayed;

	list_for_each_entry_safe (delayed, &faulty->delayed, link)
		free(delayed);
	list_init(&faulty->delayed);
	if (faulty->faults)
		munmap((void *)(uintptr_t)faulty->faults, sizeof(*faulty->faults));
	faulty->faults = NULL;
	fd_close(&faulty->timer_fd);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Rings of short packets: see ring.h. */
#include "tools/fabric/wire/ring.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static bool has_ended(uint32_t pid)
{
	return pid > INT32_MAX || (kill((pid_t)pid, 0) && errno == ESRCH);
}

uint8_t fab_rings_claim(struct fab_rings *rings)
{
	uint32_t owner, self = (uint32_t)getpid();
	uint8_t i;

	for (i = 0; i < FAB_RINGS; i++) {
		owner = __atomic_load_n(&rings->ring[i].owner, __ATOMIC_RELAXED);
		if ((!owner || has_ended(owner)) &&
		    __atomic_compare_exchange_n(&rings->ring[i].owner, &owner, self, false,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return (uint8_t)(i + 1);
	}
	return 0;
}

void fab_ring_release(struct fab_ring *ring)
{
	uint32_t self = (uint32_t)getpid();

	__atomic_compare_exchange_n(&ring->owner, &self, 0, false, __ATOMIC_RELEASE,
				    __ATOMIC_RELAXED);
}

enum fab_put fab_rings_put(struct fab_rings *rings, uint8_t claimed,
			   const struct fab_packet *packet, const void *payload)
{
	struct fab_ring *ring = &rings->ring[claimed - 1];
	struct fab_place *place = &ring->place[ring->tail % FAB_RING_PLACES];

	if (packet->bytes > FAB_PLACE_PAYLOAD ||
	    !__atomic_load_n(&rings->is_polled, __ATOMIC_RELAXED) ||
	    __atomic_load_n(&ring->n_taken, __ATOMIC_ACQUIRE) != ring->n_datagrams ||
	    ring->tail - __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE) >= FAB_RING_PLACES)
		return FAB_PUT_NOT;
	place->packet = *packet;
	if (packet->bytes)
		memcpy(place->payload, payload, packet->bytes);
	__atomic_store_n(&ring->tail, ring->tail + 1, __ATOMIC_RELEASE);
	__atomic_fetch_or(&rings->rung, 1u << (claimed - 1), __ATOMIC_SEQ_CST);
	return __atomic_load_n(&rings->is_polled, __ATOMIC_SEQ_CST) ? FAB_PUT_DONE : FAB_PUT_WAKE;
}

static void take_ring(struct fab_ring *ring, fab_taken_fn *taken, void *arg)
{
	uint32_t i, n = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) - ring->head;

	for (i = 0; i < n && i < FAB_RING_PLACES; i++) {
		const struct fab_place *place = &ring->place[ring->head % FAB_RING_PLACES];
		struct fab_packet packet = place->packet; /* the sender may change it */

		if (packet.magic == FAB_MAGIC && packet.bytes <= FAB_PLACE_PAYLOAD)
			taken(arg, &packet, place->payload);
		__atomic_store_n(&ring->head, ring->head + 1, __ATOMIC_RELEASE);
	}
}

bool fab_rings_take(struct fab_rings *rings, fab_taken_fn *taken, void *arg)
{
	uint32_t i, rung;

	if (!__atomic_load_n(&rings->rung, __ATOMIC_RELAXED))
		return false;
	rung = __atomic_exchange_n(&rings->rung, 0, __ATOMIC_SEQ_CST);
	for (i = 0; i < FAB_RINGS; i++)
		if (rung & 1u << i)
			take_ring(&rings->ring[i], taken, arg);
	return rung;
}

void fab_rings_took_datagram(struct fab_rings *rings, uint8_t claimed)
{
	if (claimed && claimed <= FAB_RINGS)
		__atomic_fetch_add(&rings->ring[claimed - 1].n_taken, 1, __ATOMIC_RELEASE);
}

bool fab_rings_set_polled(struct fab_rings *rings, bool is_polled)
{
	__atomic_store_n(&rings->is_polled, is_polled, __ATOMIC_SEQ_CST);
	return __atomic_load_n(&rings->rung, __ATOMIC_SEQ_CST);
}

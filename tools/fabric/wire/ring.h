/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rings of short packets, in the file of a process's grants: what a program that polls receives
 * without system calls. A sender claims a ring, and puts packets there while the receiver polls, or
 * else sends datagrams to its socket, which wake it.
 *
 * Packets of a sender keep their order: it puts one into the ring only when the receiver has taken
 * all its datagrams, and the receiver takes what is in the rings before each datagram. One that
 * polls no more shows that first, then looks into the rings; a sender puts a packet there first,
 * then looks whether the receiver still polls, and if not, wakes it.
 *
 * The receiver checks packets as if they had come by its socket.
 */
#ifndef FABRIC_RING_H
#define FABRIC_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/fabric/wire/packet.h"

#define FAB_RINGS	  16 /* per process; other senders send datagrams */
#define FAB_RING_PLACES	  64 /* as many as a queue pair may have unacknowledged */
#define FAB_PLACE_BYTES	  2048
#define FAB_PLACE_PAYLOAD (FAB_PLACE_BYTES - sizeof(struct fab_packet))

struct fab_place {
	struct fab_packet packet;
	char payload[FAB_PLACE_PAYLOAD];
};

struct fab_ring {
	uint32_t owner;	      /* process id of the sender; 0: free */
	uint32_t tail;	      /* count of packets, by the sender */
	uint32_t n_datagrams; /* to the socket, since it is claimed, by the sender */
	uint32_t head;	      /* count of packets taken, by the receiver */
	uint32_t n_taken;     /* of the datagrams, by the receiver */
	struct fab_place place[FAB_RING_PLACES];
};

struct fab_rings {
	uint32_t is_polled;
	uint32_t rung; /* a bit for each ring that has packets */
	struct fab_ring ring[FAB_RINGS];
};

/** fab_rings_claim() - claim a ring. Return: its index plus 1, or 0. */
uint8_t fab_rings_claim(struct fab_rings *rings);

/** fab_ring_release() - what is in the ring will still be taken; a forked child releases nothing */
void fab_ring_release(struct fab_ring *ring);

enum fab_put {
	FAB_PUT_NOT,  /* a datagram is needed */
	FAB_PUT_DONE, /* the receiver will see it */
	FAB_PUT_WAKE, /* a datagram, of any contents, must wake the receiver */
};

/** fab_rings_put() - put a packet into a claimed ring */
enum fab_put fab_rings_put(struct fab_rings *rings, uint8_t claimed,
			   const struct fab_packet *packet, const void *payload);

typedef void fab_taken_fn(void *arg, const struct fab_packet *packet, const void *payload);

/** fab_rings_take() - handle what is in the rings now. Return: whether there was anything. */
bool fab_rings_take(struct fab_rings *rings, fab_taken_fn *taken, void *arg);

/** fab_rings_took_datagram() - count a datagram of a sender that has claimed a ring */
void fab_rings_took_datagram(struct fab_rings *rings, uint8_t claimed);

/** fab_rings_set_polled() - Return: whether there are packets in rings that a sender left there. */
bool fab_rings_set_polled(struct fab_rings *rings, bool is_polled);

#endif

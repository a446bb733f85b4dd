/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What goes wrong on the wire, on demand: a file of the fabric's folder that tools/fabric/fabric
 * writes, at any time, and that every sender has mapped.
 */
#ifndef FABRIC_FAULTS_H
#define FABRIC_FAULTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/loop.h"
#include "tools/fabric/wire/packet.h"

#define FAB_FAULTS_MAGIC 0x6661756cu
#define FAB_MILLION	 1000000u

/* Numbers of 32 bits, each read by itself; fabric.py packs them in this order. */
struct fab_fault {
	uint32_t loss, duplicate, reorder, corrupt; /* of a million packets */
	uint32_t delay_us;			    /* of each */
};

struct fab_faults {
	uint32_t magic;
	uint32_t seed;
	struct fab_fault mads, data;
};

struct fab_faulty;

/**
 * fab_put_fn() - a packet goes on its way, now
 * @way:         as fab_faulty_send() had it
 * @corrupt_bit: which bit of it is inverted, in any number of bits; -1: none
 *
 * Return: 0 or -errno.
 */
typedef int fab_put_fn(struct fab_faulty *faulty, const void *way, const struct fab_packet *packet,
		       const void *payload, int32_t corrupt_bit);

/* A sender's side of a wire on which things go wrong. */
struct fab_faulty {
	const struct fab_faults *faults; /* NULL: the fabric has none */
	uint64_t random;		 /* the state of what faults happen */
	struct list delayed;		 /* the one that is due first comes first */
	struct watch timer;
	int timer_fd;
	fab_put_fn *put;
};

/** fab_faulty_none() - nothing is open: fab_faulty_fini() is allowed. */
void fab_faulty_none(struct fab_faulty *faulty);

/**
 * fab_faulty_init() - no packet yet
 * @dir:    the fabric's folder
 * @sender: a number of this sender; with it, the seed and the same packets, the same goes wrong
 * @loop:   in whose turns packets that were delayed go on
 *
 * Return: 0 or -errno; fab_faulty_fini() is called in any case.
 */
int fab_faulty_init(struct fab_faulty *faulty, const char *dir, uint32_t sender, struct loop *loop,
		    fab_put_fn *put);

/** fab_faulty_fini() - what is delayed is lost; after the loop's end. Allowed twice. */
void fab_faulty_fini(struct fab_faulty *faulty);

/**
 * fab_faulty_send() - put a packet on its way as often, as late and as wrong as the faults say
 * @way:     arguments of put() besides the packet; way_bytes are copied if the packet is delayed
 * @payload: packet->bytes of it
 *
 * Return: 0 if it was put, is delayed or lost; else what put() has returned, or -ENOMEM.
 */
int fab_faulty_send(struct fab_faulty *faulty, const void *way, size_t way_bytes,
		    const struct fab_packet *packet, const void *payload);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults of the wire: a file in the fabric's folder that tools/fabric/fabric may write at any time,
 * and that every sender has mapped.
 */
#ifndef FABRIC_FAULTS_H
#define FABRIC_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/loop.h"
#include "tools/fabric/wire/packet.h"

#define FAB_FAULTS_MAGIC 0x6661756cu
#define FAB_MILLION	 1000000u

/* 32-bit values, read one by one; fabric.py packs them in this order. */
struct fab_fault {
	uint32_t loss, duplicate, reorder, corrupt; /* per million packets */
	uint32_t delay_us;			    /* of each packet */
};

struct fab_faults {
	uint32_t magic;
	uint32_t seed;
	struct fab_fault mads, data;
};

struct fab_counters;
struct fab_faulty;

/**
 * fab_put_fn() - send a packet now
 * @way:         from fab_faulty_send()
 * @corrupt_bit: bit to invert, modulo the number of bits; -1: none
 */
typedef int fab_put_fn(struct fab_faulty *faulty, const void *way, const struct fab_packet *packet,
		       const void *payload, int32_t corrupt_bit);

/* A sender's faults. */
struct fab_faulty {
	const struct fab_faults *faults; /* NULL: no faults file */
	uint64_t random;		 /* state of the random number generator */
	struct list delayed;		 /* by due time, earliest first */
	struct watch timer;
	int timer_fd;
	fab_put_fn *put;
	struct fab_counters *counters; /* of the sender; NULL after fab_faulty_init() */
};

/** fab_faulty_clear() - initialize without opening; fab_faulty_fini() is allowed */
void fab_faulty_clear(struct fab_faulty *faulty);

/**
 * fab_faulty_init() - open the faults for a sender
 * @dir:    the fabric's folder
 * @sender: a number of this sender; with the same seed and packets, the same faults occur
 * @loop:   sends delayed packets
 *
 * Return: 0 or -errno; fab_faulty_fini() must be called in any case.
 */
int fab_faulty_init(struct fab_faulty *faulty, const char *dir, uint32_t sender, struct loop *loop,
		    fab_put_fn *put);

/**
 * fab_faulty_fini() - close; delayed packets are lost; after the loop's end. May be called
 * repeatedly.
 */
void fab_faulty_fini(struct fab_faulty *faulty);

/** fab_faulty_has_faults() - return whether packets with data have faults now */
bool fab_faulty_has_faults(const struct fab_faulty *faulty);

/**
 * fab_faulty_send() - send a packet, subject to the faults
 * @way:     arguments of put() besides the packet; way_bytes are copied for a delayed packet
 * @payload: packet->bytes bytes
 *
 * Return: 0 if it was sent, delayed or dropped; else the result of put(), or -ENOMEM.
 */
int fab_faulty_send(struct fab_faulty *faulty, const void *way, size_t way_bytes,
		    const struct fab_packet *packet, const void *payload);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes and reads that need no packet (tools/fabric/verbs/direct.h), by two queue pairs of one
 * process or of two, and the number of packets that they took.
 */
#ifndef TESTS_FABRIC_DIRECT_RIG_H
#define TESTS_FABRIC_DIRECT_RIG_H

#include <stdatomic.h>
#include <sys/types.h>

#include "tests/fabric/rig.h"
#include "tools/fabric/wire/grants.h"

#define BYTES	     8	   /* of a text */
#define ATTEMPTS_MAX 20000 /* at writes that should need no packet: at least 20 s */

extern atomic_uint n_packets; /* sent by this process */

/** is_permitted() - return whether this host's device permits such writes: not with PACKETS=1 */
bool is_permitted(void);

/** kernel_permits_writes() - for NEEDS() */
bool kernel_permits_writes(void);

/* --- within a process ----------------------------------------------------- */

struct ibv_send_wr write_at(struct rig *rig, struct ibv_sge *sge, uint64_t offset, uint32_t bytes);

/** write_text() - write from a to b. Return: number of packets that it took. */
unsigned int write_text(struct rig *rig, const char *text, uint64_t offset);

/**
 * write_until_permitted() - write "elephant" until that needs no packet
 *
 * Permission requires that the device's thread runs and that the host's page does not change.
 *
 * Return: false if all attempts were in packets.
 */
bool write_until_permitted(struct rig *rig);

/** read_text() - read a text from b to a. Return: number of packets that it took. */
unsigned int read_text(struct rig *rig, const char *text, uint64_t offset);

/** read_until_permitted() - likewise for reads */
bool read_until_permitted(struct rig *rig);

/** open_permitted() - rig_open(), and write "elephant" to b's memory. */
void open_permitted(struct rig *rig);

/** grants_of() - map the file of an end's process; to be released with fab_grants_close(). */
struct fab_grants *grants_of(const struct end *end);

/* --- between two processes ------------------------------------------------- */

/* Both processes map it; it includes the child's memory. */
struct shared {
	atomic_uint qpn[2], rkey[2]; /* of the parent, of the child */
	atomic_uint is_ready;	     /* number of ends in RTS */
	atomic_uint n_packets;	     /* of the child's answers */
	uint64_t addr[2];
	char memory[2][4096];
};

void shared_open(struct shared **ret);

/** write_to_peer() - write a part of the own memory to the same part of the peer's. */
void write_to_peer(struct rig *rig, struct shared *shared, unsigned int me, uint32_t offset,
		   uint32_t bytes);

/** start_child() - run() in a child, whose a is connected to that of this process's rig. */
pid_t start_child(struct rig *rig, struct shared *shared,
		  void (*run)(struct rig *rig, struct shared *shared));

/** sleep_for_ever() - for start_child() */
void sleep_for_ever(struct rig *rig, struct shared *shared);

/** write_once() - write a byte to the child; it must arrive before the completion. */
void write_once(struct rig *rig, struct shared *shared, char value);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending packets to sockets, or into rings (ring.h). A send never blocks: data that a full socket
 * does not accept is queued in memory, so two processes that send to each other cannot block each
 * other. The caller holds a lock, or has a single thread.
 */
#ifndef FABRIC_PEER_H
#define FABRIC_PEER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/hash.h"
#include "base/list.h"
#include "base/loop.h"
#include "tools/fabric/wire/faults.h"
#include "tools/fabric/wire/packet.h"

#define FAB_PEERS_MAX 128 /* limit of open sockets; the least recently used is closed */

struct fab_peers {
	struct loop loop;   /* loop.fd is readable when fab_peers_flush() has work */
	struct list recent; /* most recently used first */
	struct hash by_path;
	bool use_rings;
	struct fab_faulty faulty;
};

/** fab_peers_clear() - initialize without opening; fab_peers_fini() is allowed */
void fab_peers_clear(struct fab_peers *peers);

/**
 * fab_peers_init() - initialize without peers
 * @dir:    the fabric's folder, for its faults
 * @sender: a number of this sender, for its random numbers
 *
 * Return: 0 or -errno; fab_peers_fini() must be called in any case.
 */
int fab_peers_init(struct fab_peers *peers, const char *dir, uint32_t sender);

/** fab_peers_fini() - close; queued packets are lost. May be called repeatedly. */
void fab_peers_fini(struct fab_peers *peers);

/**
 * fab_peers_send() - send a packet
 * @path:    of the receiver's socket
 * @payload: packet->bytes bytes
 *
 * Return: 0 if it was sent or queued; -ECONNREFUSED if the process does not exist or has ended,
 * -errno: the packet is lost.
 */
int fab_peers_send(struct fab_peers *peers, const char *path, const struct fab_packet *packet,
		   const void *payload);

/** fab_peers_flush() - send queued packets, as far as possible */
void fab_peers_flush(struct fab_peers *peers);

#endif

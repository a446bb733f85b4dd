/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sockets that packets are sent to. A send never blocks: what a full socket does not take waits
 * in memory, so two processes that send to each other cannot stall each other. The caller has a
 * lock around all of it, or one thread.
 */
#ifndef FABRIC_PEER_H
#define FABRIC_PEER_H

#include <stddef.h>

#include "base/hash.h"
#include "base/list.h"
#include "base/loop.h"
#include "tools/fabric/wire/faults.h"
#include "tools/fabric/wire/packet.h"

#define FAB_PEERS_MAX 128 /* open at once; the one that was used longest ago makes room */

struct fab_peers {
	struct loop loop;   /* loop.fd is readable when fab_peers_flush() has work */
	struct list recent; /* first the one used last */
	struct hash by_path;
	struct fab_faulty faulty;
};

/** fab_peers_none() - nobody, and nothing is open: fab_peers_fini() is allowed. */
void fab_peers_none(struct fab_peers *peers);

/**
 * fab_peers_init() - nobody yet
 * @dir:    the fabric's folder, for its faults
 * @sender: a number of this sender, for its random numbers
 *
 * Return: 0 or -errno; fab_peers_fini() is called in any case.
 */
int fab_peers_init(struct fab_peers *peers, const char *dir, uint32_t sender);

/** fab_peers_fini() - what still waits is lost. Allowed twice. */
void fab_peers_fini(struct fab_peers *peers);

/**
 * fab_peers_send() - send a packet
 * @path:    of the receiver's socket
 * @payload: packet->bytes of it
 *
 * Return: 0 if it was sent or waits; -ECONNREFUSED if there is no such process (any more), -errno:
 * the packet is lost.
 */
int fab_peers_send(struct fab_peers *peers, const char *path, const struct fab_packet *packet,
		   const void *payload);

/** fab_peers_flush() - send what waits, as far as it goes now. */
void fab_peers_flush(struct fab_peers *peers);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The grants of a process, and its rings (ring.h): a file that its peers on the machine have
 * mapped. A grant is the permission to write to one region of the process's memory without a
 * packet, by process_vm_writev(2), and to read one, for one queue pair at the other end of a
 * connection. It is given after a packet that was allowed to do so, and ends when the region or the
 * queue pair changes.
 *
 * A peer does so while it holds the grant's lock, so nothing comes after the end of a grant.
 *
 * A peer trusts nothing in the file: it touches only the process that the file named when it was
 * opened, and only if that process and the file are of its own user. It follows no pointers in it.
 */
#ifndef FABRIC_GRANTS_H
#define FABRIC_GRANTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "tools/fabric/wire/packet.h"
#include "tools/fabric/wire/ring.h"

#define FAB_GRANTS 64 /* per process; further queue pairs use packets */

enum fab_right {
	FAB_RIGHT_WRITE,
	FAB_RIGHT_READ,
	FAB_RIGHTS,
};

struct fab_granted {
	uint32_t rkey;	      /* of the region; 0: none */
	uint64_t iova, bytes; /* of the region, */
	uint64_t at;	      /* and its address in the process */
};

struct fab_grant {
	uint32_t holder;	  /* of the lock: a thread id; 0 if nobody has it */
	uint32_t turn;		  /* of the host's page when the rights were checked */
	struct fab_packet header; /* of the packet, as fab_grant_header() makes it */
	uint32_t psn;		  /* of UC: all packets before this one have been handled */
	struct fab_granted region[FAB_RIGHTS];
};

struct fab_grants {
	uint32_t magic;
	int32_t pid;
	uint64_t pid_namespace;
	pthread_mutex_t alive; /* held by a thread of the process until the process ends */
	struct fab_grant grant[FAB_GRANTS];
	struct fab_rings rings;
};

/**
 * fab_grants_create() - create a file without grants, replacing that of an ended process
 *
 * Return: 0 or -errno; *ret is to be released with fab_grants_close().
 */
int fab_grants_create(const char *path, struct fab_grants **ret);

/**
 * fab_grants_open() - map the grants of a peer
 * @ret_pid: its process; the file may name another one later
 *
 * Return: 0; -EPROTO if it is no such file of this user; -ESRCH if this process has other process
 * ids, or the peer's process is not of this user; -errno. *ret is to be released with
 * fab_grants_close().
 */
int fab_grants_open(const char *path, struct fab_grants **ret, int32_t *ret_pid);

/**
 * fab_grants_claim_ring() - map the grants of a process, and claim one of its rings
 *
 * Return: the ring's index plus 1; 0 if no ring is free: nothing is mapped then.
 */
uint8_t fab_grants_claim_ring(const char *path, struct fab_grants **ret);

/** fab_grants_close() - unmap; NULL is allowed */
void fab_grants_close(struct fab_grants *grants);

/**
 * fab_grants_declare_alive() - declare the process alive until the calling thread ends; NULL is
 * allowed
 */
void fab_grants_declare_alive(struct fab_grants *grants);

/** fab_grants_is_alive() - return whether the process that made the grants is alive */
bool fab_grants_is_alive(const struct fab_grants *grants);

/**
 * fab_grant_lock() - lock, for the process that gave the grant
 *
 * Waits for a peer that writes, for 1 s at most: a peer that is stopped may hold the lock for ever.
 *
 * Return: whether it is locked.
 */
bool fab_grant_lock(struct fab_grant *grant);

/** fab_grant_trylock() - lock, for a peer. Return: false if another has it. */
bool fab_grant_trylock(struct fab_grant *grant);

void fab_grant_unlock(struct fab_grant *grant);

/** fab_grant_free_lock() - release a lock whose thread has ended */
void fab_grant_free_lock(struct fab_grant *grant);

/** fab_grant_header() - reduce a packet's header to what all packets of its connection share */
void fab_grant_header(const struct fab_packet *packet, struct fab_packet *ret);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of a process's connections, for `purecm stat --sockets`: a memfd, which other
 * processes find by its name in /proc. The preload library adds the connections over TCP. Readers
 * copy rows while they change.
 */
#ifndef LIB_RSOCKET_ROSTER_H
#define LIB_RSOCKET_ROSTER_H

#include <netinet/in.h>
#include <stdint.h>

#define ROSTER_NAME    "purecm-sockets"
#define ROSTER_VERSION 1
#define ROSTER_ROWS    1024

union roster_name {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

enum roster_kind {
	ROSTER_FREE,
	ROSTER_RDMA,
	ROSTER_TCP,
};

struct roster_row {
	uint32_t kind;	/* enum roster_kind, atomic; set last */
	uint32_t error; /* of TCP's: positive errno, 0: the peer's choice */
	uint64_t inode; /* of TCP's, for which the kernel knows the rest, as long as it has it */
	uint64_t sent;	/* RDMA: bytes */
	uint64_t received;
	uint32_t credits; /* messages that may be sent */
	union roster_name local, peer;
};

struct roster {
	uint32_t version;
	uint32_t n_rows;
	uint64_t n_made[ROSTER_TCP + 1]; /* by kind, since the process began; atomic */
	struct roster_row rows[ROSTER_ROWS];
};

/**
 * roster_add() - enter a connection
 * @row: without its kind; copied
 *
 * Without a free row TCP's take the place of the oldest.
 *
 * Return: the row, until roster_remove(); NULL: it is counted, but has none.
 */
struct roster_row *roster_add(enum roster_kind kind, const struct roster_row *row);

/** roster_remove() - allowed for NULL */
void roster_remove(struct roster_row *row);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a client and ibacm, the path cache of InfiniBand hosts, say to each other: a header and some
 * entries, an address or a path each. Integers of the protocol itself are in the host's byte order,
 * as both ends are on one host; addresses and path records are as on the wire. Pure.
 */
#ifndef LIB_PATH_IBACM_MSG_H
#define LIB_PATH_IBACM_MSG_H

#include <infiniband/verbs.h>
#include <infiniband/sa.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "lib/net/addr.h"
#include "mad/wire.h"

#define IBACM_HEADER_BYTES  16
#define IBACM_ENTRY_BYTES   72
#define IBACM_DATA_BYTES    64
#define IBACM_ENTRIES_MAX   13
#define IBACM_MESSAGE_BYTES (IBACM_HEADER_BYTES + IBACM_ENTRIES_MAX * IBACM_ENTRY_BYTES)

/* Integers of more than a byte are big-endian here: ibacm_msg.c swaps them. */
struct ibacm_header {
	uint8_t version;
	uint8_t opcode;
	uint8_t status; /* 0 if resolved */
	uint16_t length;
	uint64_t tid;
};

struct ibacm_entry {
	uint32_t flags;
	uint16_t type;
	uint8_t data[IBACM_DATA_BYTES];
};

extern const struct wire_layout ibacm_header_layout;
extern const struct wire_layout ibacm_entry_layout;

/**
 * struct ibacm_question - between which ends?
 * @src:      AF_INET, AF_INET6, AF_IB, or NULL
 * @dst:      as @src
 * @no_delay: what ibacm does not know already is not wanted
 */
struct ibacm_question {
	const struct sockaddr *src;
	const struct sockaddr *dst;
	bool no_delay;
};

/**
 * struct ibacm_answer - what ibacm knows
 * @src:     own address, port 0; family AF_UNSPEC if it names none
 * @n_paths: how many of
 * @path:    ready for RDMA_OPTION_IB_PATH
 */
struct ibacm_answer {
	union addr src;
	unsigned int n_paths;
	struct ibv_path_data path[IBACM_ENTRIES_MAX];
};

/**
 * ibacm_encode() - write a question
 * @tid: comes back with the answer
 *
 * Return: its bytes, 0 if it names no end.
 */
size_t ibacm_encode(const struct ibacm_question *question, uint64_t tid,
		    uint8_t wire[IBACM_MESSAGE_BYTES]);

/**
 * ibacm_check() - look at the header of an answer
 * @wire:      IBACM_HEADER_BYTES
 * @tid:       of the question
 * @ret_bytes: how many bytes of entries follow
 *
 * Return: whether the entries are an answer, 0; -ENOENT if ibacm knows none; -EBADMSG if this is
 * no answer to the question, and nobody can tell what follows.
 */
int ibacm_check(const uint8_t wire[IBACM_HEADER_BYTES], uint64_t tid, size_t *ret_bytes);

/**
 * ibacm_decode() - read the entries of an answer
 * @bytes: as ibacm_check() said
 * @ret:   filled; entries of kinds that were not asked for are passed over
 */
void ibacm_decode(const uint8_t *wire, size_t bytes, struct ibacm_answer *ret);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The protocol between a client and ibacm, the path cache of InfiniBand hosts: a header and
 * entries, each an address or a path. Integers of the protocol itself are in host byte order, as
 * both ends are on one host; addresses and path records are in wire format. Pure.
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

/* ibacm_msg.c swaps the multi-byte integers, as the layout is big-endian. */
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
 * struct ibacm_question - a path request
 * @src:        AF_INET, AF_INET6, AF_IB, or NULL
 * @dst:        as @src
 * @no_delay:   cached paths only
 * @may_cancel: the thread may be cancelled while it waits for the response
 */
struct ibacm_question {
	const struct sockaddr *src;
	const struct sockaddr *dst;
	bool no_delay;
	bool may_cancel;
};

/**
 * struct ibacm_answer - a response
 * @src:     own address, port 0; family AF_UNSPEC if there is none
 * @n_paths: number of paths
 * @path:    paths, suitable for RDMA_OPTION_IB_PATH
 */
struct ibacm_answer {
	union addr src;
	unsigned int n_paths;
	struct ibv_path_data path[IBACM_ENTRIES_MAX];
};

/**
 * ibacm_encode() - encode a request
 * @tid: transaction id, copied to the response
 *
 * Return: its size in bytes, 0 if it has no address.
 */
size_t ibacm_encode(const struct ibacm_question *question, uint64_t tid,
		    uint8_t wire[IBACM_MESSAGE_BYTES]);

/**
 * ibacm_check() - check the header of a response
 * @wire:      IBACM_HEADER_BYTES
 * @tid:       of the request
 * @ret_bytes: size of the entries that follow, in bytes
 *
 * Return: 0 if the entries are the response; -ENOENT if ibacm knows none; -EBADMSG if this does not
 * answer the request, and the size is unknown.
 */
int ibacm_check(const uint8_t wire[IBACM_HEADER_BYTES], uint64_t tid, size_t *ret_bytes);

/**
 * ibacm_decode() - decode the entries of a response
 * @bytes: from ibacm_check()
 * @ret:   filled in; ignores entries of other kinds
 */
void ibacm_decode(const uint8_t *wire, size_t bytes, struct ibacm_answer *ret);

#endif

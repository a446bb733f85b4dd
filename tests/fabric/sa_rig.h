/* SPDX-License-Identifier: BSD-2-Clause */
/* An agent of umad that queries the subnet administrator of a soft fabric. */
#ifndef TESTS_FABRIC_SA_RIG_H
#define TESTS_FABRIC_SA_RIG_H

#include <infiniband/umad.h>
#include <infiniband/umad_sa.h>

#define MAD_BYTES   256
#define TABLE_BYTES 200000
#define WAIT_MS	    20000

/* fd: the descriptor of umad; @table: a response with umad's header. */
struct sa_rig {
	int fd;
	uint32_t agent, tid;
	uint8_t *table;
};

/**
 * sa_rig_open() - open the agent; @rmpp_version: 1: messages are assembled for it; 0: it assembles
 * them
 */
void sa_rig_open(struct sa_rig *rig, uint8_t rmpp_version);

/** sa_rig_close() - close the agent. */
void sa_rig_close(struct sa_rig *rig);

/** sa_rig_send() - send a request, repeatedly until it is answered. */
void sa_rig_send(struct sa_rig *rig, uint8_t method, uint16_t attr, uint64_t mask,
		 const void *record, size_t bytes);

/** sa_rig_status() - Return: the status of a response that is no table. */
unsigned int sa_rig_status(struct sa_rig *rig);

/** sa_rig_table() - Return: the number of records in a response. */
unsigned int sa_rig_table(struct sa_rig *rig, unsigned int record_bytes);

/** sa_rig_record() - Return: a record of a table. */
const uint8_t *sa_rig_record(const struct sa_rig *rig, unsigned int i, unsigned int record_bytes);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages on a umad descriptor, which is a connection (SOCK_SEQPACKET) of a process to its host.
 * As in the kernel, a message is a struct ib_user_mad and a MAD, so that programs may use read()
 * and write() on the descriptor. An ioctl() becomes a message with agent FAB_UMAD_CONTROL and a
 * pipe (SCM_RIGHTS) for the response.
 */
#ifndef FABRIC_UMAD_WIRE_H
#define FABRIC_UMAD_WIRE_H

#include <infiniband/umad.h>
#include <stdint.h>

#define FAB_UMAD_CONTROL    0xffffffffu
#define FAB_UMAD_AGENTS_MAX 32 /* for each descriptor */
#define FAB_MAD_BYTES	    256

enum fab_umad_op {
	FAB_UMAD_REGISTER,
	FAB_UMAD_UNREGISTER,
};

struct fab_umad_request {
	uint32_t op;
	uint32_t agent_id; /* to unregister */
	uint8_t mgmt_class;
	uint8_t class_version;
	uint8_t rmpp_version;
	uint64_t method_mask[2];
};

struct fab_umad_reply {
	int32_t error; /* positive errno, or 0 */
	uint32_t agent_id;
};

#endif

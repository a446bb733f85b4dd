/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages on a descriptor of umad, which is a connection (SOCK_SEQPACKET) of a process to its
 * host. They are as the kernel's, a struct ib_user_mad and the MAD, so that a program may use
 * read() and write() on the descriptor. What would be an ioctl() is a message whose agent is
 * FAB_UMAD_CONTROL, with a pipe (SCM_RIGHTS) that the answer is written to.
 */
#ifndef FABRIC_UMAD_WIRE_H
#define FABRIC_UMAD_WIRE_H

#include <infiniband/umad.h>
#include <stdint.h>

#define FAB_UMAD_CONTROL    0xffffffffu
#define FAB_UMAD_AGENTS_MAX 32 /* of a descriptor */
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
	int32_t error; /* an errno, positive, or 0 */
	uint32_t agent_id;
};

#endif

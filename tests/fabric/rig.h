/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two queue pairs on the soft fabric's device that are connected with each other, and what a test
 * wants to do with them. They are in one process, but their packets take the way of any others.
 */
#ifndef TESTS_FABRIC_RIG_H
#define TESTS_FABRIC_RIG_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#define RIG_BYTES (5 << 20)
#define RIG_ALL_ACCESS                                                               \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)
#define RIG_QKEY 0x1234

struct end {
	struct ibv_qp *qp; /* NULL if a test has destroyed it */
	struct ibv_cq *cq;
	char *memory; /* RIG_BYTES */
	struct ibv_mr *mr;
};

struct rig {
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel; /* of b's queue */
	struct ibv_srq *srq;		  /* of b, if wanted */
	struct end a, b;
};

struct rig_config {
	enum ibv_qp_type type; /* RC if 0 */
	unsigned int access;   /* of b's queue pair and memory; RIG_ALL_ACCESS if 0 */
	int cqe;	       /* 64 if 0 */
	uint8_t rnr_retry;     /* 7, for ever, if 0 */
	bool no_rnr_retry;
	uint8_t timeout; /* 9, 2 ms, if 0 */
	bool srq;
	bool unconnected;  /* the queue pairs stay in RESET */
	uint64_t send_ops; /* enum ibv_qp_create_send_ops_flags: for ibv_wr_start() and the like */
};

/** rig_open() - both ends in RTS; aborts the test if it fails. */
void rig_open(struct rig *rig, const struct rig_config *config);

/** rig_close() - everything goes, and each call must succeed. */
void rig_close(struct rig *rig);

/** rig_modify() - to a state, with all that it requires. Return: of ibv_modify_qp(). */
int rig_modify(struct rig *rig, struct end *end, const struct end *peer, enum ibv_qp_state state,
	       const struct rig_config *config);

/** rig_receive() - post a receive of so many bytes of an end's memory. */
void rig_receive(struct end *end, uint64_t wr_id, uint32_t bytes);

/** rig_post() - post a send; the test fails if it is refused. */
void rig_post(struct end *end, struct ibv_send_wr *wr);

/** rig_wr() - a signaled request about the first bytes of both ends' memory. */
struct ibv_send_wr rig_wr(struct rig *rig, enum ibv_wr_opcode opcode, struct ibv_sge *sge,
			  uint32_t bytes);

/** rig_wait() - the next completion, for 30 s at most; the test fails if its status is another. */
struct ibv_wc rig_wait(struct ibv_cq *cq, enum ibv_wc_status status);

/** rig_none() - nothing completes, for 20 ms. */
void rig_none(struct ibv_cq *cq);

/** rig_event() - the next asynchronous event, acknowledged; the test fails if it is another. */
void rig_event(struct rig *rig, enum ibv_event_type type);

/** rig_ah() - an address handle for the device's own address. */
struct ibv_ah *rig_ah(struct rig *rig);

#endif

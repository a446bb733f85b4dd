/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two queue pairs on the soft fabric's device that are connected to each other, and operations on
 * them. They are in one process, but their packets take the usual path.
 */
#ifndef TESTS_FABRIC_RIG_H
#define TESTS_FABRIC_RIG_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <sys/types.h>

#define RIG_BYTES (5 << 20)
#define RIG_DEPTH 64 /* of the queues */
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
	struct ibv_srq *srq;		  /* of b, if requested */
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
	uint8_t port_num;  /* 1 if 0 */
	bool unconnected;  /* the queue pairs stay in RESET */
	uint64_t send_ops; /* enum ibv_qp_create_send_ops_flags: for ibv_wr_start() and the like */
};

/** rig_open() - both ends in RTS; aborts the test if it fails. */
void rig_open(struct rig *rig, const struct rig_config *config);

/** rig_open_on() - likewise, on an open device */
void rig_open_on(struct rig *rig, struct ibv_context *verbs, const struct rig_config *config);

/** rig_close() - release everything; each call must succeed. */
void rig_close(struct rig *rig);

/** rig_modify() - change the state, with all required attributes. Return: as ibv_modify_qp(). */
int rig_modify(struct rig *rig, struct end *end, const struct end *peer, enum ibv_qp_state state,
	       const struct rig_config *config);

/** rig_receive() - post a receive into an end's memory. */
void rig_receive(struct end *end, uint64_t wr_id, uint32_t bytes);

/** rig_post() - post a send; the test fails if it is refused. */
void rig_post(struct end *end, struct ibv_send_wr *wr);

/** rig_wr() - fill in a signaled request for the first bytes of both ends' memory. */
struct ibv_send_wr rig_wr(struct rig *rig, enum ibv_wr_opcode opcode, struct ibv_sge *sge,
			  uint32_t bytes);

/** rig_wait() - wait for the next completion, 30 s at most; its status must be as given. */
struct ibv_wc rig_wait(struct ibv_cq *cq, enum ibv_wc_status status);

/** rig_none() - check that nothing completes for 20 ms. */
void rig_none(struct ibv_cq *cq);

/** rig_event() - take and acknowledge the next asynchronous event, which must be as given. */
void rig_event(struct rig *rig, enum ibv_event_type type);

/** rig_ah() - an address handle for the device's own address. */
struct ibv_ah *rig_ah(struct rig *rig);

/** rig_is_asleep() - return whether a thread of this process sleeps */
bool rig_is_asleep(pid_t thread);

#endif

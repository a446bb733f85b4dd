/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two devices with the fabric's transport and a wire in memory between them: no socket, no thread,
 * and a clock that jumps to what happens next. Packets travel as RoCE v2 bytes with their ICRC.
 * What becomes of each is up to the test.
 */
#ifndef TESTS_ROCE_WORLD_H
#define TESTS_ROCE_WORLD_H

#include "tools/fabric/verbs/objects.h"

#define WORLD_BYTES  (1 << 16) /* of an end's memory, at address 0 of its region */
#define WORLD_PAIRS  8	       /* of queue pairs, at most */
#define WORLD_GAP_NS 100       /* between packets on the wire */
#define WORLD_ACCESS                                                                 \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

enum fate {
	FATE_ARRIVES,
	FATE_LOST,
	FATE_REPEATED,
	FATE_OVERTAKEN, /* by the next few packets */
	FATE_DELAYED,	/* until it has been sent again */
	FATE_CORRUPTED, /* a bit of it is flipped */
	N_FATES,
};

struct world_end {
	struct fab_context context;
	struct fab_device device;
	struct fab_page page;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *pair[WORLD_PAIRS], *qp; /* the one that is chosen */
	struct ibv_mr *mr;
	uint8_t memory[WORLD_BYTES];
};

struct world_packet;

struct world {
	struct world_end end[2];
	unsigned int n_pairs;
	uint64_t now_ns;
	struct list flying; /* of struct world_packet, the first to arrive comes first */
	unsigned int n_sent;
	unsigned int n_cnps;	 /* of them */
	bool is_congested;	 /* a router marks all packets */
	struct fab_packet last;	 /* that was sent */
	uint64_t last_due_ns[2]; /* of what flies to each end: others come later */
	/** saw() - if not NULL: an end sends a packet */
	void (*saw)(unsigned int from, const struct fab_packet *packet);
	/** fate_of() - of the packet with this number, from 0 */
	enum fate (*fate_of)(unsigned int number, void *arg);
	void *arg;
};

struct world_config {
	enum ibv_qp_type type;
	enum ibv_mtu mtu;
	uint32_t psn; /* the first of both ends */
	uint8_t max_rd_atomic;
	uint8_t rnr_retry;
	uint64_t retry_ns_min;
	size_t guard_bytes; /* at both ends of the memory, which are not in the region */
};

/** world_open() - both queue pairs in RTS; aborts the test if it fails. */
struct world *world_open(const struct world_config *config);

/** world_add_pair() - one more pair of queue pairs, in RTS; it is chosen, as the first one was. */
void world_add_pair(struct world *world, const struct world_config *config);

/** world_choose() - have the functions below, and end[].qp, mean another pair; the first is 0. */
void world_choose(struct world *world, unsigned int pair);

/** world_close() - give all back. */
void world_close(struct world *world);

/** world_run() - until nothing happens any more; a test fails that does not come to rest. */
void world_run(struct world *world);

/** world_run_for() - until nothing happens, or a time has passed. */
void world_run_for(struct world *world, uint64_t ns);

/** world_inject() - bytes arrive at an end now, as a UDP payload of its peer; ICRC included. */
void world_inject(struct world *world, unsigned int to, const uint8_t *bytes, size_t n);

/** world_inject_packet() - as it, of what is to be written; P_Key, queue pair and key are the
 * end's. Nothing arrives if RoCE has no such packet. */
void world_inject_packet(struct world *world, unsigned int to, struct fab_packet packet);

/** world_receive() - post a receive of an end's memory. */
void world_receive(struct world *world, unsigned int end, uint64_t wr_id, size_t offset,
		   uint32_t bytes);

/** world_post() - post a send about these parts of memory; signaled. Return: as ibv_post_send(). */
int world_post(struct world *world, unsigned int end, struct ibv_send_wr *wr, size_t offset,
	       size_t remote_offset, uint32_t bytes);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two devices with the fabric's transport and a wire in memory between them: no socket, no thread,
 * and a clock that jumps to the next event. Packets travel as RoCE v2 bytes with their ICRC. The
 * test decides the fate of each.
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
	FATE_DELAYED,	/* until it has been retransmitted */
	FATE_CORRUPTED, /* one bit is inverted */
	N_FATES,
};

struct world_end {
	struct fab_context context;
	struct fab_device device;
	struct fab_page page;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *pair[WORLD_PAIRS], *qp; /* the chosen one */
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
	struct fab_packet last;	 /* the latest packet that was sent */
	uint64_t last_due_ns[2]; /* due time of the last packet to each end: others arrive later */
	/** saw() - called for each packet that an end sends, unless NULL */
	void (*saw)(unsigned int from, const struct fab_packet *packet);
	/** fate_of() - the fate of the packet with this number, from 0 */
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
	size_t guard_bytes; /* at both ends of the memory, outside of the region */
};

/** world_open() - both queue pairs in RTS; aborts the test if it fails. */
struct world *world_open(const struct world_config *config);

/** world_add_pair() - add a pair of queue pairs in RTS, and choose it. */
void world_add_pair(struct world *world, const struct world_config *config);

/** world_choose() - use another pair in the functions below and end[].qp; the first is 0. */
void world_choose(struct world *world, unsigned int pair);

/** world_close() - release everything. */
void world_close(struct world *world);

/** world_run() - run until nothing more happens; the test fails if that takes too long. */
void world_run(struct world *world);

/** world_run_for() - run until nothing more happens, or a time has passed. */
void world_run_for(struct world *world, uint64_t ns);

/**
 * world_inject() - deliver bytes to an end now, as a UDP payload of its peer, including the ICRC.
 */
void world_inject(struct world *world, unsigned int to, const uint8_t *bytes, size_t n);

/**
 * world_inject_packet() - as world_inject(), for a packet to be encoded; P_Key, queue pair and key
 * are the end's. Nothing arrives if RoCE has no such packet.
 */
void world_inject_packet(struct world *world, unsigned int to, struct fab_packet packet);

/** world_receive() - post a receive into an end's memory. */
void world_receive(struct world *world, unsigned int end, uint64_t wr_id, size_t offset,
		   uint32_t bytes);

/**
 * world_post() - post a signaled send between these parts of memory. Return: as ibv_post_send().
 */
int world_post(struct world *world, unsigned int end, struct ibv_send_wr *wr, size_t offset,
	       size_t remote_offset, uint32_t bytes);

#endif

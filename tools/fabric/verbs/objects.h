/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libibverbs for programs on a fabric, in place of the distribution's. It may call udp/, roce/,
 * wire/ and base/ only. A file calls only files to the right of it or on lines below:
 *
 *   device.c ops.c                        opening a device; the tables behind verbs.h
 *   qp.c modify.c batch.c cq_poll.c       queue pairs and their states; reading completions
 *   post.c post_recv.c engine.c           posting; the thread, which handles packets
 *   requester.c responder.c datagram.c    the transport: transport.h
 *   direct.c                              writes and reads without packets
 *   completion.c                          completion of work, and queue pairs in error
 *   cq.c ack.c                            filling completion queues; a responder's output
 *   channel.c srq.c transfer.c            events; shared receive queues; gather and scatter
 *   carrier_unix.c carrier_roce.c         the two wires below one transport: carrier.h
 *   import.c ece.c                        another way to an object of this process; options
 *   poller.c event_queue.c receive_queue.c tick.c congestion.c window.c memory.c domain.c
 *   device_memory.c address.c group.c port.c xrc.c qp_state.c grant.c response.c
 *
 * No other file calls names.c (printing) and driver_names.c (unsupported functions, and symbols
 * that drivers link with).
 *
 * Below: the objects behind libibverbs' public structs. One lock protects a device context,
 * context->lock; no thread blocks while holding it, except until a peer has written
 * (../wire/grants.h). Functions documented as "locked" require it.
 */
#ifndef FABRIC_OBJECTS_H
#define FABRIC_OBJECTS_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/loop.h"
#include "tools/fabric/udp/capture.h"
#include "tools/fabric/udp/out.h"
#include "tools/fabric/verbs/event_queue.h"
#include "tools/fabric/wire/counters.h"
#include "tools/fabric/wire/frames.h"
#include "tools/fabric/wire/grants.h"
#include "tools/fabric/wire/packet.h"
#include "tools/fabric/wire/page.h"
#include "tools/fabric/wire/peer.h"
#include "tools/fabric/wire/folder.h"

struct carrier;
struct fab_direct;

#define FAB_SGE_MAX	 32
#define FAB_WR_MAX	 16384
#define FAB_INLINE_MAX	 1024
#define FAB_CQE_MAX	 (1 << 20)
#define FAB_RD_MAX	 128
#define FAB_MRS_MAX	 (1 << 20)
#define FAB_MSG_MAX	 (1u << 31)
#define FAB_MCAST_ATTACH 64
#define FAB_DM_MAX	 (256u << 10)
/* Of annex A19; Debian 12's verbs.h has none of them. */
#define FAB_ACCESS_FLUSH_GLOBAL	    (1u << 8)
#define FAB_ACCESS_FLUSH_PERSISTENT (1u << 9)
#define FAB_WR_FLUSH		    14
#define FAB_WC_FLUSH		    8
#define FAB_QP_EX_WITH_FLUSH	    (1u << 11)

#define FAB_BUFFER_BYTES	    (sizeof(struct fab_frames) + FAB_FRAMES_BYTES_MAX)

struct fab_device {
	struct ibv_device ibv; /* first */
	struct fab_folder folder;
	const struct fab_page *page;
	int page_fd;				/* of the page's file, to hold GIDs */
	uint32_t held[FAB_PORTS + 1][FAB_GIDS]; /* count of this process's queue pairs per GID */
	unsigned int refs;			/* by lists and contexts */
};

/* The GID table entry of a queue pair's address. */
struct fab_held {
	uint8_t port_num; /* 0: none */
	uint8_t index;
};

struct fab_mr {
	struct ibv_mr ibv; /* first */
	uint64_t iova;
	unsigned int access;
	unsigned int *users;	/* of memory that is an object itself, or NULL */
	unsigned int n_windows; /* bound to it */
	bool is_window;		/* part of struct fab_window */
	bool is_import;		/* has the keys of another one, and is in no table */
	uint32_t qpn;		/* of a window: the only queue pair allowed, or 0 */
	uint64_t n_pinned;	/* pages */
};

/* A memory window: a key for a range of a region, which changes without the kernel. */
struct fab_window {
	struct ibv_mw ibv;     /* first */
	struct fab_mr range;   /* grants no access unless bound */
	struct fab_mr *region; /* the bound region, or NULL */
	struct fab_qp *qp;     /* of type 2: the only one allowed, while it is bound */
};

/* Keys are an index into a growing table, and eight bits that change with each use of the index. */
struct fab_keys {
	struct fab_mr **mr;
	uint32_t n, last;
	uint8_t *tag;
};

struct fab_poller {
	bool has_packets; /* the thread leaves them to the program */
	uint8_t n_looks;  /* into memory, of which some are followed by one at the socket */
	uint8_t n_failed; /* how often the program then polled no more */
	uint8_t n_idle_ticks;
	uint8_t n_found;     /* completions since the thread has handled a packet */
	uint8_t n_by_thread; /* completions while the thread has the packets */
	uint32_t n_polls;    /* in vain, since since_ns */
	uint32_t n_at_tick;  /* of them, until ticked_ns */
	uint64_t since_ns, ticked_ns;
};

struct fab_context {
	pthread_mutex_t lock;
	struct fab_device *device;
	const struct carrier *carrier;
	unsigned int slot; /* 0: no queue pair created yet */
	int fd;		   /* the socket of the slot */
	int wake_fd, timer_fd;
	struct loop loop; /* of the thread */
	struct watch packets, slot_packets, timer, waiting, wake;
	bool is_ticking;
	struct fab_poller poller;
	bool is_removed;
	bool is_ending;
	bool has_thread; /* a forked child has none */
	pthread_t thread;
	char *buffer;		   /* FAB_BUFFER_BYTES for received data */
	char *scratch;		   /* FAB_FRAGMENT_BYTES for a gathered payload */
	struct fab_peers peers;	   /* for carrier_unix, like the next two */
	struct fab_grants *grants; /* NULL: peers use packets only */
	struct fab_qp **granted;   /* FAB_GRANTS: for which queue pair; NULL: free */
	struct udp_out out;	   /* for carrier_roce, like the members below */
	int udp_fd, udp_conn;	   /* ../udp/share.h */
	struct udp_capture capture;
	struct fab_counters *of_slots; /* of the host; NULL with slot 0 */
	struct fab_counters *counters; /* those of the slot */
	struct fab_qp **qp; /* FAB_SLOT_QPS, by the low bits of the number; NULL with slot 0 */
	uint32_t last_qp;
	struct list active;   /* queue pairs with unacknowledged sends */
	struct list unacked;  /* queue pairs with output at the end of a turn */
	bool has_answer;      /* a response is due at the end of the turn: the peer waits for it */
	struct list deferred; /* queue pairs with FAB_OWED_DEFERRED_ACK */
	uint8_t deferred_polls, deferred_ticks; /* since the first of them */
	struct fab_qp *held;			/* whose completion is held back: held.h */
	uint8_t held_polls, held_ticks;		/* since then */
	struct list attached;			/* queue pairs joined to groups by the carrier */
	struct list xrcds, xrc_srqs;
	struct list pds, dms; /* to be found by import */
	uint32_t last_srq;
	struct fab_keys keys;
	size_t dm_bytes;	/* allocated device memory */
	unsigned int n_objects; /* which prevent closing the context */
	struct list open;	/* in the process's list of open contexts */
	unsigned int users;	/* who have opened or imported it */
	uint32_t next_handle;
	struct event_queue async;
	struct verbs_context verbs; /* last */
};

struct fab_td;

struct fab_pd {
	struct ibv_pd ibv;   /* first */
	struct fab_pd *root; /* a parent or imported domain's protection domain, else itself */
	struct fab_td *td;   /* of a parent domain, or NULL */
	struct list known;   /* in context->pds */
	unsigned int refs;
};

struct fab_ah {
	struct ibv_ah ibv; /* first */
	struct ibv_ah_attr attr;
	union ibv_gid sgid;
	struct fab_owner to; /* no name: multicast */
};

struct fab_channel {
	struct ibv_comp_channel ibv; /* first */
	struct event_queue events;
};

enum fab_arm {
	FAB_ARM_NONE,
	FAB_ARM_SOLICITED,
	FAB_ARM_ANY,
};

struct fab_completion {
	struct ibv_wc wc;
	bool is_solicited;	/* or an error */
	bool is_reported;	/* in an event */
	uint64_t clock_ns;	/* of the device, which is CLOCK_MONOTONIC */
	uint64_t wall_clock_ns; /* both are 0 if not requested */
};

struct fab_cq {
	struct ibv_cq_ex ex; /* first; begins with struct ibv_cq */
	struct fab_completion *ring;
	uint32_t n, head, count;
	enum fab_arm arm;
	bool has_overrun;
	bool is_last_held; /* the program does not see its last completion yet: held.h */
	unsigned int refs;
	unsigned int n_comp_events; /* read with ibv_get_cq_event() */
	unsigned int n_async_events;
	uint64_t wc_flags;
	struct fab_completion current; /* for ibv_start_poll() */
	pthread_mutex_t poll_lock;     /* from there to ibv_end_poll(); before the context's */
};

/* A posted receive. */
struct fab_receive {
	uint64_t wr_id;
	uint32_t n_sge;
	uint64_t bytes;
	struct ibv_sge sge[];
};

struct fab_receive_queue {
	char *slot; /* n_max of struct fab_receive, of stride bytes each */
	size_t stride;
	uint32_t n_max, max_sge, head, count;
};

/*
 * An XRC domain. A message to a target queue pair names a shared receive queue of the domain, which
 * provides the receive.
 */
struct fab_xrcd {
	struct ibv_xrcd ibv; /* first */
	struct list node;    /* in context->xrcds */
	bool has_file;	     /* domains opened with the same file are shared */
	dev_t dev;
	ino_t ino;
	unsigned int refs;
};

struct fab_srq {
	struct ibv_srq ibv; /* first */
	struct fab_receive_queue queue;
	struct list xrc;       /* in context->xrc_srqs; in no list unless for XRC */
	struct fab_xrcd *xrcd; /* for XRC, as are the next two */
	struct fab_cq *cq;
	uint32_t number;
	uint32_t limit; /* 0: not armed */
	unsigned int refs;
	unsigned int n_async_events;
};

/* A posted send. */
struct fab_send {
	uint64_t wr_id;
	enum ibv_wr_opcode opcode;
	unsigned int flags;
	uint64_t bytes;
	uint64_t first_psn; /* see struct fab_send_queue */
	uint32_t n_psn;
	uint32_t part_psns; /* of a read that was requested; 0 before */
	uint32_t imm;
	uint32_t rkey; /* also the key to invalidate, or a window's new key */
	uint64_t remote_addr, compare_add, swap;
	uint64_t bind_bytes; /* at remote_addr: the range to bind a window to, or to flush */
	uint8_t flush;	     /* enum fab_flush */
	uint32_t bind_lkey;
	unsigned int bind_access;
	struct fab_ah *ah;
	uint32_t remote_qpn, remote_qkey, remote_srqn;
	char *inline_data; /* or NULL */
	uint32_t n_sge;
	struct ibv_sge sge[FAB_SGE_MAX];
};

struct fab_send_queue {
	struct fab_send **slot; /* allocated on first use */
	uint32_t n_max, max_sge, max_inline, head, count;
	uint32_t at; /* offset from head of the next to send */
	/* PSNs extended to 64 bits; a packet has the lower 24 bits. */
	uint64_t una;		  /* oldest unacknowledged */
	uint64_t send_psn;	  /* next to be sent */
	uint64_t post_psn;	  /* next to be assigned to a posted send */
	uint64_t begun_psn;	  /* next never sent; send_psn may go back */
	uint64_t rest_psn;	  /* first of the part of a read that was requested again */
	uint64_t recover_psn;	  /* the window shrinks once until this is acknowledged */
	uint32_t window;	  /* limit of unacknowledged PSNs */
	uint32_t window_slow;	  /* above, the window grows by one per round trip */
	uint32_t window_progress; /* since the window grew by one */
	uint8_t retries_left, rnr_left;
	uint64_t deadline_ns; /* 0: none */
	uint64_t retry_ns;    /* retransmissions after this count as retries */
	uint8_t n_early;      /* earlier retransmissions since the last progress or retry */
	uint64_t measured_ns; /* when the measured packet was sent; 0: none */
	uint64_t measured_psn;
	uint64_t rtt_ns, rtt_deviation_ns; /* 0: unknown */
	bool waits_for_rnr;
	bool misses_response; /* requested again since the last progress */
};

/* The result of an atomic, for duplicates of its request. */
struct fab_replay {
	uint32_t psn;
	uint64_t value;
};

/* The response of an executed read or atomic, to be sent. */
struct fab_response {
	uint8_t op; /* FAB_OP_READ_RESPONSE or FAB_OP_ATOMIC_RESPONSE */
	bool has_begun;
	bool is_again; /* to a duplicate */
	uint32_t psn;  /* of the next packet */
	uint32_t n_psn;
	uint32_t msn;
	uint32_t srqn; /* of XRC */
	uint32_t rkey;
	uint64_t addr;
	uint32_t left;
	uint64_t value; /* of an atomic */
};

enum fab_owed {
	FAB_OWED_NONE,
	FAB_OWED_ACK,
	FAB_OWED_DEFERRED_ACK,
	FAB_OWED_NAK,
};

struct fab_responder {
	uint32_t psn; /* expected */
	uint32_t msn; /* number of completed messages */
	bool in_message, nak_sent;
	uint8_t owed;		       /* enum fab_owed: sent after all responses */
	uint8_t owed_nak;	       /* enum fab_nak */
	bool is_refused;	       /* the queue pair enters the error state after the NAK */
	int refused_event;	       /* reported then, unless it is -1 */
	struct fab_response *response; /* FAB_RD_MAX, from the first on: to be sent, in order */
	unsigned int first_response, n_responses;
	uint8_t message_op;	     /* enum fab_op, while in_message */
	uint32_t srqn;		     /* of XRC: of the latest message */
	uint64_t offset;	     /* of the next fragment in the message */
	struct fab_receive *receive; /* copy of the message's receive, or NULL */
	uint64_t write_addr, write_bytes;
	uint32_t write_rkey;
	struct fab_replay *replay; /* FAB_RD_MAX, allocated with the first atomic */
	unsigned int next_replay;
	uint64_t cnp_ns;    /* time of the latest congestion notification */
	bool is_unanswered; /* the program has sent nothing since the latest message */
	uint8_t turns;	    /* messages in a row that the program answered; see ack.h */
	bool answers_by_write;
};

struct fab_qp {
	struct ibv_qp_ex ex; /* first; begins with struct ibv_qp */
	struct list active;
	struct list unacked;	 /* in context->unacked or context->deferred */
	struct ibv_qp_attr attr; /* attr.qp_state is the state */
	struct ibv_qp_init_attr init;
	struct fab_send_queue sq;
	struct fab_receive_queue rq;
	struct fab_responder responder;
	char *receive_buffer;	/* of responder.receive */
	uint32_t payload_bytes; /* of each packet except a message's last */
	union ibv_gid sgid;
	struct fab_held held;
	struct fab_owner peer;
	char path[FAB_PATH_BYTES]; /* of the peer's socket */
	unsigned int grant;	   /* index, if context->granted there is this queue pair */
	struct fab_direct *direct; /* for sends without packets, or NULL */
	uint32_t n_by_packets;	   /* of UC: short writes that found no grant */
	union ibv_gid mgid[FAB_MCAST_ATTACH];
	int mgid_fd[FAB_MCAST_ATTACH]; /* from the carrier */
	unsigned int n_mgids;
	struct list attached;  /* in context->attached, while attached to any group */
	struct fab_xrcd *xrcd; /* of an XRC target */
	unsigned int n_async_events;
	bool has_reported_established;
	unsigned int n_windows; /* of type 2, bound through it */
	bool has_ece;		/* the program has set options */
	uint32_t ece_options;
	struct fab_batch *batch; /* for ibv_wr_start() and others; NULL if not requested */
	pthread_mutex_t
		batch_lock; /* from ibv_wr_start() to ibv_wr_complete(); before the context's */
};

/* A failed command also sets errno. */
static inline int command_return(int err)
{
	if (err)
		errno = err;
	return err;
}

static inline struct fab_context *to_context(struct ibv_context *context)
{
	return container_of(context, struct fab_context, verbs.context);
}

static inline struct fab_device *to_device(struct ibv_device *device)
{
	return container_of(device, struct fab_device, ibv);
}

static inline struct fab_cq *to_cq(struct ibv_cq *cq)
{
	return (struct fab_cq *)cq;
}

static inline struct ibv_cq *from_cq(struct fab_cq *cq)
{
	return (struct ibv_cq *)&cq->ex;
}

static inline struct fab_qp *to_qp(struct ibv_qp *qp)
{
	return container_of(qp, struct fab_qp, ex.qp_base);
}

static inline struct ibv_qp *from_qp(struct fab_qp *qp)
{
	return &qp->ex.qp_base;
}

static inline struct fab_context *context_of(const struct fab_qp *qp)
{
	return to_context(qp->ex.qp_base.context);
}

static inline enum fab_service service_of(const struct fab_qp *qp)
{
	switch (qp->init.qp_type) {
	case IBV_QPT_UD:
		return FAB_SERVICE_UD;
	case IBV_QPT_UC:
		return FAB_SERVICE_UC;
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return FAB_SERVICE_XRC;
	case IBV_QPT_RC:
	case IBV_QPT_RAW_PACKET:
	case IBV_QPT_DRIVER:
		break;
	}
	return FAB_SERVICE_RC;
}

static inline bool is_reliable(const struct fab_qp *qp)
{
	return service_of(qp) == FAB_SERVICE_RC || service_of(qp) == FAB_SERVICE_XRC;
}

static inline bool is_atomic_send(const struct fab_send *send)
{
	return send->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       send->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static inline bool is_flush(const struct fab_send *send)
{
	return (int)send->opcode == FAB_WR_FLUSH;
}

static inline bool has_response(const struct fab_send *send)
{
	return send->opcode == IBV_WR_RDMA_READ || send->opcode == IBV_WR_ATOMIC_WRITE ||
	       is_flush(send) || is_atomic_send(send);
}

/* Executed here, without a packet: IBTA vol. 1, 10.6.6.3. */
static inline bool is_local(const struct fab_send *send)
{
	return send->opcode == IBV_WR_LOCAL_INV || send->opcode == IBV_WR_BIND_MW;
}

static inline bool has_imm(const struct fab_send *send)
{
	return send->opcode == IBV_WR_SEND_WITH_IMM || send->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static inline struct fab_srq *to_srq(struct ibv_srq *srq)
{
	return container_of(srq, struct fab_srq, ibv);
}

static inline struct fab_ah *to_ah(struct ibv_ah *ah)
{
	return container_of(ah, struct fab_ah, ibv);
}

static inline struct fab_pd *to_pd(struct ibv_pd *pd)
{
	return container_of(pd, struct fab_pd, ibv);
}

/* The kernel looks the number of an object up among those of the context: ENOENT if it is not. */
#define IS_FOREIGN(object, verbs) ((object) && (object)->context != (verbs))

/* Return: false for a queue pair of a forked child's parent. */
static inline bool has_number(const struct fab_qp *qp)
{
	struct fab_qp *const *of_number = context_of(qp)->qp;

	return of_number && of_number[qp->ex.qp_base.qp_num % FAB_SLOT_QPS] == qp;
}

static inline bool is_same_domain(struct ibv_pd *a, struct ibv_pd *b)
{
	return to_pd(a)->root == to_pd(b)->root;
}

#endif

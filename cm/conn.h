/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One connection as the CM protocol sees it (IBTA vol. 1, chapter 12): its state, what can happen
 * to it, and what it has to remember. Start reading here; then cm/fsm.c, mad/cm_msg.c, cm/core.h.
 *
 * A lookup of a datagram service (SIDR, 12.11) is a connection, too: a short one, of one question
 * and one answer, whose request ids are comm ids.
 *
 * A connection is owned by a core (core.h) and is touched under the core's lock only. The state
 * is assigned in fsm.c and nowhere else: moved by cm_step(), or taken over by cm_core_adopt().
 */
#ifndef CM_CONN_H
#define CM_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/time.h"
#include "base/timer.h"
#include "cm/index.h"
#include "cm/record.h"
#include "cm/retry.h"
#include "cm/tally.h"
#include "mad/cm_msg.h"
#include "mad/port.h"

/* States of a connection, IBTA vol. 1, 12.9.7; named from the side that is in it. */
#define CM_STATES(X)                                                               \
	X(IDLE)		/* no connection yet, or none any more */                  \
	X(REQ_SENT)	/* active: waiting for REP */                              \
	X(MRA_REQ_RCVD) /* active: MRA: the peer takes time for our REQ */         \
	X(REP_RCVD)	/* active: REP is here, RTU is the caller's to send */     \
	X(MRA_REP_SENT) /* active: as REP_RCVD; a repeated REP is met with MRA */  \
	X(REQ_RCVD)	/* passive: REQ is here, the caller has to decide */       \
	X(MRA_REQ_SENT) /* passive: as REQ_RCVD; a repeated REQ is met with MRA */ \
	X(REP_SENT)	/* passive: waiting for RTU */                             \
	X(MRA_REP_RCVD) /* passive: MRA: the peer takes time for our REP */        \
	X(ESTABLISHED)                                                             \
	X(DREQ_SENT)	 /* we disconnect: waiting for DREP */                     \
	X(DREQ_RCVD)	 /* the peer disconnects: DREP is the caller's to send */  \
	X(TIMEWAIT)	 /* over; waits until no packet of it can be on its way */ \
	X(SIDR_REQ_SENT) /* we look a service up: waiting for SIDR_REP */          \
	X(SIDR_REQ_RCVD) /* a lookup is here, the caller has to answer it */       \
	X(SIDR_REP_SENT) /* answered; a repeated lookup is answered the same */

/*
 * What can happen to a connection. Who says RX_* has looked at the ids and the addresses, and at
 * what the connection remembers of the peer: each guard is an event of its own.
 */
#define CM_EVENTS(X)                                                              \
	X(CALL_REQ)	  /* rdma_connect */                                      \
	X(CALL_REP)	  /* rdma_accept */                                       \
	X(CALL_RTU)	  /* the queue pair is ready: answer the REP */           \
	X(CALL_REJ)	  /* rdma_reject, or the queue pair could not be moved */ \
	X(CALL_MRA)	  /* from now on meet repetitions with MRA */             \
	X(CALL_DREQ)	  /* rdma_disconnect */                                   \
	X(CALL_DREP)	  /* rdma_disconnect after the peer's DREQ */             \
	X(CALL_ESTABLISH) /* rdma_notify: the peer's data came before its RTU */  \
	X(CALL_SIDR_REQ)  /* rdma_connect for datagrams */                        \
	X(CALL_SIDR_REP)  /* rdma_accept or rdma_reject for datagrams */          \
	X(CALL_DESTROY)	  /* rdma_destroy_id: nobody will ask for it again */     \
	X(CALL_FORGET)	  /* drop a request unanswered: the peer may try again */ \
	X(RX_REQ)	  /* a new request */                                     \
	X(RX_REQ_DUP)	  /* the same request again */                            \
	X(RX_MRA_REQ)                                                             \
	X(RX_MRA_REP)                                                             \
	X(RX_REP)                                                                 \
	X(RX_REP_DUP)	/* the same reply again */                                \
	X(RX_REP_STALE) /* a reply with a queue pair of a living connection */    \
	X(RX_RTU)                                                                 \
	X(RX_REJ)                                                                 \
	X(RX_REJ_STALE) /* reason 10: the peer still holds an older connection */ \
	X(RX_DREQ)                                                                \
	X(RX_DREP)                                                                \
	X(RX_SIDR_REQ)	   /* a new lookup */                                     \
	X(RX_SIDR_REQ_DUP) /* the same lookup again */                            \
	X(RX_SIDR_REP)                                                            \
	X(PEER_RESTARTED) /* a REQ or REP shows that the peer forgot this one */  \
	X(T_RESPONSE)	  /* no answer in time: say it again */                   \
	X(T_SPENT)	  /* no answer at all */                                  \
	X(T_TIMEWAIT)

enum cm_state {
#define X(name) CM_##name,
	CM_STATES(X)
#undef X
	CM_N_STATES,
};

enum cm_event {
#define X(name) CM_##name,
	CM_EVENTS(X)
#undef X
	CM_N_EVENTS,
};

/*
 * Messages of a kind that are sent a few at a time: a port's receive queue is finite, and so is the
 * peer's. What was answered or repeated makes room for the next. Answers never wait. Without this
 * a process that disconnected 1000 connections at once lost half of its DREQs in the peer's full
 * queue.
 */
struct cm_pace {
	unsigned int out;    /* sent, and neither answered nor repeated yet */
	struct list waiting; /* connections whose message waits for its turn */
};

/*
 * A local port as the core knows it. Made and owned by whoever delivers MADs; it must outlive the
 * connections that use it, see cm_core_port_gone().
 */
struct cm_port {
	uint64_t ca_guid;	    /* node GUID, host byte order: the same for all ports of a CA */
	struct mad_gid gid0;	    /* GID index 0, named in REJ 12 */
	struct cm_pace requests;    /* REQ, SIDR_REQ */
	struct cm_pace disconnects; /* DREQ */
	struct cm_pace to_silent;   /* any of them, to peers that answer nothing: peer.h */
	struct cm_tally tally; /* of the connections of one core, and of what none of them gets */
};

/* What the answers of a peer tell of what it has not answered: peer.h. */
struct cm_said {
	unsigned int n_waiting;	 /* for its answers */
	unsigned int n_asked;	 /* repetitions since it was heard */
	struct cm_time heard;	 /* when the peer last answered one of them, or said to wait */
	struct cm_time answered; /* when the latest of those that it answered was sent first */
	struct cm_time next;	 /* repetition may leave, at the earliest */
	uint64_t round_trip_ns;	 /* of the last that was answered, and sent once */
};

struct cm_peer {
	struct cm_node node; /* of the connection that stands for all that wait for this peer */
	struct list others;  /* that do */
	struct cm_said said; /* in that one */
};

struct cm_conn {
	CM_RECORD_AS(record);
	bool orphan;	     /* destroyed by its owner; goes when the protocol is done with it */
	uint16_t n_repeated; /* how often anything of it was sent again; stops at the last number */
	void *owner;	     /* the caller's; handed back in reports; NULL for an orphan */
	struct cm_port *port;
	uint64_t service_id;

	/* What was agreed on, as the queue pair needs it; its path is its owner's to know. */
	uint32_t starting_psn;	      /* ours: the peer's first PSN to us */
	uint32_t remote_starting_psn; /* the peer's: our first PSN to it */
	uint8_t responder_resources;  /* RDMA READs the peer may have outstanding at us */
	uint8_t initiator_depth;      /* RDMA READs we may have outstanding at the peer */
	uint8_t retry_count;
	uint8_t rnr_retry_count;

	uint64_t peer_waits_ms; /* passive: how long the peer waits for our REP, from its REQ */
	struct cm_retry retry;
	struct cm_timer timer;
	struct cm_pace *pace;	 /* in whose .out it counts, or NULL */
	struct list waiting;	 /* in a cm_pace, or in the core's spare list */
	struct cm_peer peer;	 /* while a message waits for its answer */
	struct cm_node by_local; /* (0, 0, local_comm_id) */
	struct cm_node
		by_remote; /* (peer GID, peer CA, remote_comm_id): repeated REQ, REP, SIDR_REQ */
	struct cm_node by_qpn; /* (peer GID, peer CA, remote_qpn): stale connections */

	uint8_t mad[MAD_BYTES]; /* what is repeated until it is answered; the answer to a lookup */
};

/** cm_state_str() - "REQ_SENT" */
const char *cm_state_str(enum cm_state state);

/** cm_event_str() - "RX_REP" */
const char *cm_event_str(enum cm_event event);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One connection as the CM protocol sees it (IBTA vol. 1, chapter 12): its state, the events that
 * can happen to it, and the data that it keeps. Start reading here; then cm/fsm.c, mad/cm_msg.c,
 * cm/core.h.
 *
 * A lookup for a datagram service (SIDR, 12.11) is also a connection: a short one of one request
 * and one response, whose comm id is the request id.
 *
 * A core (core.h) owns the connection; access it only under the core's lock. Only fsm.c assigns the
 * state: cm_step() moves it, cm_core_adopt() takes it over from a record.
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

/* States of a connection, IBTA vol. 1, 12.9.7, named from the local side. */
#define CM_STATES(X)                                                                     \
	X(IDLE)		/* no connection yet, or no longer */                            \
	X(REQ_SENT)	/* active: waiting for REP */                                    \
	X(MRA_REQ_RCVD) /* active: received MRA for our REQ; waiting longer for REP */   \
	X(REP_RCVD)	/* active: received REP; the caller is to send RTU */            \
	X(MRA_REP_SENT) /* active: as REP_RCVD, but answers a duplicate REP with MRA */  \
	X(REQ_RCVD)	/* passive: received REQ; the caller is to accept or reject */   \
	X(MRA_REQ_SENT) /* passive: as REQ_RCVD, but answers a duplicate REQ with MRA */ \
	X(REP_SENT)	/* passive: waiting for RTU */                                   \
	X(MRA_REP_RCVD) /* passive: received MRA for our REP; waiting longer for RTU */  \
	X(ESTABLISHED)                                                                   \
	X(DREQ_SENT)	 /* sent DREQ, waiting for DREP */                               \
	X(DREQ_RCVD)	 /* received DREQ; the caller is to send DREP */                 \
	X(TIMEWAIT)	 /* closed; waiting until stray packets have died out */         \
	X(SIDR_REQ_SENT) /* sent SIDR_REQ, waiting for SIDR_REP */                       \
	X(SIDR_REQ_RCVD) /* received SIDR_REQ; the caller is to send SIDR_REP */         \
	X(SIDR_REP_SENT) /* sent SIDR_REP; kept to answer duplicates of the SIDR_REQ */

/*
 * Events of a connection. The caller that reports RX_* has already checked the ids, the addresses
 * and what the connection knows of its peer (guard.h): each outcome of a guard is an event of its
 * own.
 */
#define CM_EVENTS(X)                                                                  \
	X(CALL_REQ)	  /* rdma_connect */                                          \
	X(CALL_REP)	  /* rdma_accept */                                           \
	X(CALL_RTU)	  /* the queue pair is ready: answer the REP */               \
	X(CALL_REJ)	  /* rdma_reject, or the queue pair could not be moved */     \
	X(CALL_MRA)	  /* answer duplicates with MRA from now on */                \
	X(CALL_DREQ)	  /* rdma_disconnect */                                       \
	X(CALL_DREP)	  /* rdma_disconnect after the peer's DREQ */                 \
	X(CALL_ESTABLISH) /* rdma_notify: data arrived before the RTU */              \
	X(CALL_SIDR_REQ)  /* rdma_connect for datagrams */                            \
	X(CALL_SIDR_REP)  /* rdma_accept or rdma_reject for datagrams */              \
	X(CALL_DESTROY)	  /* rdma_destroy_id: the connection loses its owner */       \
	X(CALL_FORGET)	  /* drop a request without an answer; the peer may retry */  \
	X(RX_REQ)	  /* a new request */                                         \
	X(RX_REQ_DUP)	  /* a duplicate of the REQ */                                \
	X(RX_MRA_REQ)                                                                 \
	X(RX_MRA_REP)                                                                 \
	X(RX_REP)                                                                     \
	X(RX_REP_DUP)	/* a duplicate of the REP */                                  \
	X(RX_REP_STALE) /* a REP that names the queue pair of another connection */   \
	X(RX_RTU)                                                                     \
	X(RX_REJ)                                                                     \
	X(RX_REJ_STALE) /* reason 10: the peer still holds an older connection */     \
	X(RX_DREQ)                                                                    \
	X(RX_DREP)                                                                    \
	X(RX_SIDR_REQ)	   /* a new lookup */                                         \
	X(RX_SIDR_REQ_DUP) /* a duplicate of the SIDR_REQ */                          \
	X(RX_SIDR_REP)                                                                \
	X(PEER_RESTARTED) /* a REQ or REP shows that the peer lost this connection */ \
	X(T_RESPONSE)	  /* no answer in time: retransmit */                         \
	X(T_SPENT)	  /* no answer, and no retransmission left */                 \
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

#define CM_LANES 64

/*
 * Send slots for one kind of message. The receive queues of a port and of its peer are finite, so
 * only a few such messages may be outstanding; an answer or a retransmission frees one. Answers
 * need no slot. Without this limit, a process that disconnected 1000 connections at once lost half
 * of its DREQs in the peer's full queue.
 *
 * Connections that wait for a slot are in lanes, by cm_conn.lane, which take turns: cmportd ends
 * those of many users.
 */
struct cm_lane {
	struct list waiting;
	struct list link; /* in cm_pace.lanes, unless it has been empty for a while */
};

struct cm_pace {
	unsigned int out; /* slots in use: sent, neither answered nor retransmitted yet */
	struct list lanes;
	struct cm_lane lane[CM_LANES];
};

/*
 * A local port as the core knows it. The caller that delivers MADs creates and owns it; it must
 * outlive the connections that use it, see cm_core_port_gone().
 */
struct cm_port {
	uint64_t ca_guid;	    /* node GUID, host byte order: the same for all ports of a CA */
	struct mad_gid gid0;	    /* GID index 0, named in REJ 12 */
	struct cm_pace requests;    /* REQ, SIDR_REQ */
	struct cm_pace disconnects; /* DREQ */
	struct cm_pace to_unresponsive; /* any of them, to unresponsive and slow peers: peer.h */
	struct cm_tally tally; /* of the connections of one core, and of messages that match none */
};

/* What can be inferred from a peer's answers about its unanswered messages: peer.h. */
struct cm_peer_stats {
	unsigned int n_waiting;	 /* messages that wait for an answer */
	unsigned int n_asked;	 /* retransmissions since .heard */
	struct cm_time heard;	 /* when the peer last answered a first transmission, or sent MRA */
	struct cm_time answered; /* latest first transmission among the answered messages */
	struct cm_time next;	 /* earliest time of the next retransmission */
	struct cm_time slow;	 /* since when the peer is slow; 0: it is not */
	uint64_t round_trip_ns;	 /* of the last message answered without retransmission */
};

struct cm_peer {
	struct cm_node node;	    /* of the connection that represents all in .others */
	struct list others;	    /* all connections that wait for the peer */
	struct cm_peer_stats stats; /* valid in the representative */
};

struct cm_conn {
	CM_RECORD_AS(record);
	bool orphan;	     /* destroyed by its owner; freed when the protocol is done with it */
	uint16_t n_repeated; /* retransmissions of all its messages; saturates */
	uint16_t lane;	     /* in which it waits for a slot, modulo CM_LANES */
	void *owner;	     /* passed back in reports; NULL for an orphan */
	struct cm_port *port;
	uint64_t service_id;

	/* Negotiated parameters for the queue pair; the owner keeps its path. */
	uint32_t starting_psn;	      /* ours: the peer's first PSN to us */
	uint32_t remote_starting_psn; /* the peer's: our first PSN to it */
	uint8_t responder_resources;  /* RDMA READs that the peer may have outstanding here */
	uint8_t initiator_depth;      /* RDMA READs that we may have outstanding at the peer */
	uint8_t retry_count;
	uint8_t rnr_retry_count;

	uint64_t peer_waits_ms; /* passive: how long the peer waits for our REP, from its REQ */
	struct cm_retry retry;
	struct cm_timer timer;
	struct cm_pace *pace;	 /* holds a slot of it, or NULL */
	struct list waiting;	 /* in a cm_lane, or in the core's spare list */
	struct cm_peer peer;	 /* while a message waits for its answer */
	struct cm_node by_local; /* (0, 0, local_comm_id) */
	struct cm_node
		by_remote; /* (peer GID, peer CA, remote_comm_id): duplicate REQ, REP, SIDR_REQ */
	struct cm_node by_qpn; /* (peer GID, peer CA, remote_qpn): stale connections */

	uint8_t mad[MAD_BYTES]; /* the message to retransmit, or the SIDR_REP */
};

/** cm_state_str() - name of a state, such as "REQ_SENT" */
const char *cm_state_str(enum cm_state state);

/** cm_event_str() - name of an event, such as "RX_REP" */
const char *cm_event_str(enum cm_event event);

#endif

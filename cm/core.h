/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The core of the connection manager: all connections of a process, and the four ways to drive
 * them. Pure: messages, calls and time go in, messages and reports come out in a struct of
 * effects. It knows no clock, thread, socket or lock, and allocates nothing while it steps.
 *
 * The engine in lib/ drives it under one lock, sends what comes out after it has let go of that
 * lock, and turns reports into rdma_cm events. The simulator in tests/ drives it in virtual time.
 */
#ifndef CM_CORE_H
#define CM_CORE_H

#include "base/slab.h"
#include "cm/conn.h"
#include "cm/ids.h"

/* Reasons in REJ that this side gives, IBTA vol. 1, table 109. */
enum cm_rej_reason {
	CM_REJ_TIMEOUT = 4,
	CM_REJ_INVALID_SERVICE_ID = 8,
	CM_REJ_STALE_CONNECTION = 10,
	CM_REJ_INVALID_GID = 12,
	CM_REJ_INVALID_ALT_GID = 18,
	CM_REJ_CONSUMER = 28,
	CM_REJ_VENDOR_OPTION = 35,
};

/* What SIDR_REP says, IBTA vol. 1, table 121; the first three are what this side gives. */
enum cm_sidr_status {
	CM_SIDR_OK = 0,
	CM_SIDR_UNSUPPORTED = 1, /* no such service id */
	CM_SIDR_REJECT = 2,
	CM_SIDR_NO_QP = 3,
	CM_SIDR_REDIRECT = 4,
	CM_SIDR_UNSUPPORTED_VERSION = 5,
};

/* What the core tells its caller. The message, if any, is cm_effects.msg. */
enum cm_report_kind {
	CM_REPORT_REQUEST,	/* for a service of ours, REQ or SIDR_REQ: a new connection, without
				   owner */
	CM_REPORT_RESPONSE,	/* REP: to be answered with CALL_RTU or CALL_REJ */
	CM_REPORT_ESTABLISHED,	/* passive side: RTU, or CALL_ESTABLISH */
	CM_REPORT_REJECTED,	/* REJ */
	CM_REPORT_UNREACHABLE,	/* REQ, REP or SIDR_REQ was never answered */
	CM_REPORT_DISCONNECTED, /* DREQ or DREP; status -ETIMEDOUT if our DREQ was never answered */
	CM_REPORT_TIMEWAIT_EXIT,
	CM_REPORT_ANSWERED, /* SIDR_REP, whatever it says */
};

struct cm_report {
	enum cm_report_kind kind;
	struct cm_conn *conn;
	int status; /* 0 or -errno */
};

struct cm_send {
	struct cm_port *port;
	struct mad_path path;
	uint8_t mad[MAD_BYTES];
};

#define CM_SENDS_MAX   4
#define CM_REPORTS_MAX 2

/*
 * What a step wants done: send the MADs in order, deal with the reports in order. Connections in
 * reports stay valid until the caller destroys them or lets the core step again.
 */
struct cm_effects {
	bool is_known; /* what came in is a connection's: sender and ids are those agreed on */
	unsigned int n_sends;
	unsigned int n_reports;
	struct cm_report report[CM_REPORTS_MAX];
	struct cm_msg msg; /* what came in */
	struct cm_send send[CM_SENDS_MAX];
};

struct cm_core {
	struct cm_index by_local;
	struct cm_index by_remote;
	struct cm_index by_qpn;
	struct cm_index peers; /* that have something to answer: struct cm_peer */
	struct cm_index services;
	struct cm_timers timers;
	struct slab conns;
	struct list spare; /* connections ready for use */
	unsigned int n_spare;
	size_t n_conns; /* in use */
	struct cm_ids ids;
	unsigned int out_max; /* unanswered requests, and DREQs, a port may have */
	uint64_t count[CM_N_COUNTERS];
	uint64_t sent[CM_ATTR_APR + 1]; /* by attribute, without repetitions */
	uint64_t received[CM_ATTR_APR + 1];

	/* Called for each step, if set: for the log, not for decisions. */
	void (*trace)(const struct cm_conn *conn, enum cm_state from, enum cm_event why);

	/*
	 * Called, if set, when a connection is given back: its comm id is free, and nothing of it
	 * will be sent any more. Not called by cm_core_fini(). It may read the connection, and
	 * must not call the core.
	 */
	void (*released)(struct cm_core *core, const struct cm_conn *conn);
};

/* A service id on which requests are welcome; embedded in whoever listens. */
struct cm_service {
	struct cm_node node;
};

/**
 * cm_core_init() - an empty core
 * @secret: 64 random bits: where the comm ids start, and the key of the tables
 *
 * Return: 0 or -ENOMEM.
 */
int cm_core_init(struct cm_core *core, uint64_t secret);

/** cm_core_fini() - free everything, send nothing. */
void cm_core_fini(struct cm_core *core);

/** cm_port_init() - a port without connections; @ca_guid in host byte order. */
void cm_port_init(struct cm_port *port, uint64_t ca_guid, const struct mad_gid *gid0);

/**
 * cm_core_reserve() - have a connection to spare for the next REQ
 *
 * To be called before cm_core_input(); this is where memory is allocated.
 *
 * Return: 0, or -ENOMEM: input still works, but new requests are dropped and counted.
 */
int cm_core_reserve(struct cm_core *core);

/**
 * cm_core_conn_new() - a connection in IDLE, with a comm id of its own
 * @owner: handed back in reports
 *
 * Return: the connection, to be given back with CM_CALL_DESTROY; NULL when out of memory, or when
 * all comm ids of the lent blocks are in use.
 */
struct cm_conn *cm_core_conn_new(struct cm_core *core, void *owner);

/**
 * cm_core_lend_ids() - have a block of comm ids more
 * @first: the first of it, a multiple of CM_ID_BLOCK
 * @count: CM_ID_BLOCK
 *
 * From the first call on comm ids come from lent blocks only. Connections that have another one
 * keep it.
 *
 * Return: 0; -EINVAL for what is not a block, or is lent already; -ENOSPC beyond
 * CM_ID_BLOCKS_MAX blocks.
 */
int cm_core_lend_ids(struct cm_core *core, uint32_t first, uint32_t count);

/** cm_core_ids_left() - how many comm ids remain before one comes back for the first time. */
unsigned int cm_core_ids_left(const struct cm_core *core);

/** cm_core_walk() - visit all connections in use. @visit may give back that one, and no other. */
void cm_core_walk(struct cm_core *core, void (*visit)(struct cm_conn *conn, void *arg), void *arg);

/**
 * cm_core_serve() - welcome requests for a service id
 *
 * Others are refused: REQ with reason 8, SIDR_REQ with status 1.
 */
int cm_core_serve(struct cm_core *core, struct cm_service *service, uint64_t service_id);

/** cm_core_unserve() - stop. Requests already reported are not touched. */
void cm_core_unserve(struct cm_core *core, struct cm_service *service);

/**
 * cm_core_input() - a MAD has arrived
 * @port:  where
 * @path:  the way back to the sender
 * @mad:   @bytes of it
 * @now:   when
 * @out:   what to do about it; written from scratch
 *
 * A MAD that is not a CM message, or means nothing to us, is counted and dropped.
 */
void cm_core_input(struct cm_core *core, struct cm_port *port, const struct mad_path *path,
		   const uint8_t *mad, size_t bytes, struct cm_time now, struct cm_effects *out);

/* What goes with a call. Members that a verb does not use are ignored. */
struct cm_args {
	struct cm_port *port;	     /* CALL_REQ, CALL_SIDR_REQ */
	const struct mad_path *path; /* CALL_REQ, CALL_SIDR_REQ */
	uint8_t packet_life_time;    /* CALL_REQ: of the path, encoded */
	uint64_t give_up_ns;	     /* CALL_REQ, _REP, _DREQ, _SIDR_REQ: 0 for the default */
	struct cm_waits waits;	     /* as give_up_ns */
	/*
	 * CALL_REQ, CALL_REP, CALL_REJ, CALL_SIDR_REQ, CALL_SIDR_REP: the message. Comm ids, CA
	 * GUID, the service id of a SIDR_REP and which message a REJ answers are filled in by the
	 * core; all else is the caller's. NULL in CALL_REJ means reason 28, in CALL_SIDR_REP
	 * status 2, both without private data.
	 */
	struct cm_msg *msg;
};

/**
 * cm_core_call() - the owner of a connection wants something
 * @conn: the connection; gone after CM_CALL_DESTROY and CM_CALL_FORGET
 * @verb: one of CM_CALL_*
 * @args: what goes with it, or NULL
 * @now:  when
 * @out:  what to do about it; written from scratch
 *
 * Return: 0, or -EINVAL if the verb is not legal in the connection's state, or asks for a second
 * connection with what had one (there is cm_core_conn_new() for that): nothing happened.
 */
int cm_core_call(struct cm_core *core, struct cm_conn *conn, enum cm_event verb,
		 const struct cm_args *args, struct cm_time now, struct cm_effects *out);

/**
 * cm_core_expire() - deal with one deadline that has passed
 *
 * Return: true if there was one: call again until it returns false.
 */
bool cm_core_expire(struct cm_core *core, struct cm_time now, struct cm_effects *out);

/** cm_core_deadline() - when cm_core_expire() is next needed; CM_TIME_NEVER if not at all. */
struct cm_time cm_core_deadline(const struct cm_core *core);

/**
 * cm_core_port_gone() - a port was removed: forget its connections without a word
 * @gone: called for each connection that has an owner, which must forget it; the connection is
 *        freed when it returns
 */
void cm_core_port_gone(struct cm_core *core, struct cm_port *port,
		       void (*gone)(struct cm_conn *conn, void *arg), void *arg);

/**
 * cm_conn_record() - what another core needs to end a connection
 *
 * Whose REQ still waits for its turn is IDLE in it: the peer never heard of that connection. The
 * caller sets the handle of the port.
 */
struct cm_record cm_conn_record(const struct cm_conn *conn);

/**
 * cm_core_adopt() - take over a connection whose own core is gone
 * @record: of it. Local comm id 0: one of this core's is chosen. From DREQ_SENT it is adopted as
 *          ESTABLISHED, so that CM_CALL_DESTROY sends DREQ again, until it is answered.
 * @port:   where its peer is reached
 * @owner:  handed back in reports
 *
 * No timer runs for it: it is to be ended with CM_CALL_DESTROY at once, which says to the peer
 * what its own core would have said.
 *
 * Return: the connection; NULL if there is nothing to end (IDLE, TIMEWAIT, and lookups but those
 * that wait for our answer), if the local comm id is in use here, or when out of memory.
 */
struct cm_conn *cm_core_adopt(struct cm_core *core, const struct cm_record *record,
			      struct cm_port *port, void *owner);

#endif

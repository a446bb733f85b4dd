/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The core of the connection manager: all connections of a process, and the functions that drive
 * them: cm_core_input(), cm_core_call(), cm_core_expire(), cm_core_deadline(). It is pure:
 * messages, calls and time go in; messages and reports come out in struct cm_effects. It uses no
 * clock, thread, socket or lock, and does not allocate while it steps.
 *
 * The engine in lib/ drives it under one lock, sends the messages after releasing that lock, and
 * turns reports into rdma_cm events. The simulator in tests/ drives it in virtual time.
 */
#ifndef CM_CORE_H
#define CM_CORE_H

#include "base/slab.h"
#include "cm/conn.h"
#include "cm/ids.h"

/* REJ reasons that this side sends, IBTA vol. 1, table 109. */
enum cm_rej_reason {
	CM_REJ_TIMEOUT = 4,
	CM_REJ_INVALID_SERVICE_ID = 8,
	CM_REJ_STALE_CONNECTION = 10,
	CM_REJ_INVALID_GID = 12,
	CM_REJ_INVALID_ALT_GID = 18,
	CM_REJ_CONSUMER = 28,
	CM_REJ_VENDOR_OPTION = 35,
};

/* Status of a SIDR_REP, IBTA vol. 1, table 121; this side sends the first three. */
enum cm_sidr_status {
	CM_SIDR_OK = 0,
	CM_SIDR_UNSUPPORTED = 1, /* no such service id */
	CM_SIDR_REJECT = 2,
	CM_SIDR_NO_QP = 3,
	CM_SIDR_REDIRECT = 4,
	CM_SIDR_UNSUPPORTED_VERSION = 5,
};

/* Reports from the core to its caller. The message, if any, is cm_effects.msg. */
enum cm_report_kind {
	CM_REPORT_REQUEST, /* REQ or SIDR_REQ for a local service: a new connection without owner */
	CM_REPORT_RESPONSE,	/* REP; the caller answers with CALL_RTU or CALL_REJ */
	CM_REPORT_ESTABLISHED,	/* passive side: RTU, or CALL_ESTABLISH */
	CM_REPORT_REJECTED,	/* REJ */
	CM_REPORT_UNREACHABLE,	/* no answer to REQ, REP or SIDR_REQ */
	CM_REPORT_DISCONNECTED, /* DREQ or DREP; status -ETIMEDOUT: no answer to our DREQ */
	CM_REPORT_TIMEWAIT_EXIT,
	CM_REPORT_ANSWERED, /* SIDR_REP of any status */
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
 * Effects of a step: send the MADs in order, handle the reports in order. Connections in reports
 * remain valid until the caller destroys them or lets the core step again.
 */
struct cm_effects {
	bool is_known; /* the input came from the peer of a connection: address and ids match */
	unsigned int n_sends;
	unsigned int n_reports;
	struct cm_report report[CM_REPORTS_MAX];
	struct cm_msg msg; /* the input */
	struct cm_send send[CM_SENDS_MAX];
};

struct cm_core {
	struct cm_index by_local;
	struct cm_index by_remote;
	struct cm_index by_qpn;
	struct cm_index peers; /* struct cm_peer of peers with unanswered messages */
	struct cm_index services;
	struct cm_timers timers;
	struct slab conns;
	struct list spare; /* connections ready for use */
	unsigned int n_spare;
	size_t n_conns; /* in use */
	struct cm_ids ids;
	unsigned int out_max; /* unanswered requests, and unanswered DREQs, that a port may have */
	uint64_t count[CM_N_COUNTERS];
	uint64_t sent[CM_ATTR_APR + 1]; /* by attribute, without retransmissions */
	uint64_t received[CM_ATTR_APR + 1];

	/* Called for each step, if set; for logging only. */
	void (*trace)(const struct cm_conn *conn, enum cm_state from, enum cm_event why);

	/*
	 * Called, if set, when a connection is released: its comm id is free, and it sends nothing
	 * more. Not called by cm_core_fini(). It may read the connection but must not call the
	 * core.
	 */
	void (*released)(struct cm_core *core, const struct cm_conn *conn);
};

/* A service id that accepts requests; embedded in a listener. */
struct cm_service {
	struct cm_node node;
};

/**
 * cm_core_init() - initialise an empty core
 * @secret: 64 random bits: the start of the comm ids, and the key of the tables
 *
 * Return: 0 or -ENOMEM.
 */
int cm_core_init(struct cm_core *core, uint64_t secret);

/** cm_core_fini() - free all connections; sends nothing. */
void cm_core_fini(struct cm_core *core);

/** cm_port_init() - initialise a port without connections; @ca_guid in host byte order. */
void cm_port_init(struct cm_port *port, uint64_t ca_guid, const struct mad_gid *gid0);

/**
 * cm_core_reserve() - allocate a spare connection for the next REQ
 *
 * Call it before cm_core_input(), which does not allocate.
 *
 * Return: 0, or -ENOMEM: input still works, but new requests are dropped and counted.
 */
int cm_core_reserve(struct cm_core *core);

/**
 * cm_core_conn_new() - create a connection in IDLE, with a comm id of its own
 * @owner: passed back in reports
 *
 * Return: the connection, to be released with CM_CALL_DESTROY; NULL when out of memory, or when all
 * comm ids of the lent blocks are in use.
 */
struct cm_conn *cm_core_conn_new(struct cm_core *core, void *owner);

/**
 * cm_core_lend_ids() - add a block of comm ids
 * @first: the first id of the block, a multiple of CM_ID_BLOCK
 * @count: CM_ID_BLOCK
 *
 * After the first call, new comm ids come from lent blocks only. Existing connections keep their
 * ids.
 *
 * Return: 0; -EINVAL if this is not a block, or is already lent; -ENOSPC beyond CM_ID_BLOCKS_MAX
 * blocks.
 */
int cm_core_lend_ids(struct cm_core *core, uint32_t first, uint32_t count);

/**
 * cm_core_ids_left() - number of comm ids left before the first one is reused; UINT32_MAX if no
 * more can be lent
 */
unsigned int cm_core_ids_left(const struct cm_core *core);

/** cm_core_walk() - visit all connections in use. @visit may release only the one it visits. */
void cm_core_walk(struct cm_core *core, void (*visit)(struct cm_conn *conn, void *arg), void *arg);

/**
 * cm_core_serve() - accept requests for a service id
 *
 * Requests for other service ids are rejected: REQ with reason 8, SIDR_REQ with status 1.
 *
 * Return: 0 or -ENOMEM.
 */
int cm_core_serve(struct cm_core *core, struct cm_service *service, uint64_t service_id);

/** cm_core_service() - Return: the service of an id that was added last, or NULL. */
struct cm_service *cm_core_service(const struct cm_core *core, uint64_t service_id);

/** cm_core_next_service() - Return: the one of the same id that was added before, or NULL. */
struct cm_service *cm_core_next_service(const struct cm_service *service);

/** cm_core_unserve() - stop accepting. Requests that were already reported stay. */
void cm_core_unserve(struct cm_core *core, struct cm_service *service);

/**
 * cm_core_input() - process a received MAD
 * @port:  port that received it
 * @path:  path back to the sender
 * @mad:   the MAD, @bytes long
 * @now:   time of arrival
 * @out:   effects; overwritten
 *
 * MADs that are not CM messages, or match nothing here, are counted and dropped.
 */
void cm_core_input(struct cm_core *core, struct cm_port *port, const struct mad_path *path,
		   const uint8_t *mad, size_t bytes, struct cm_time now, struct cm_effects *out);

/* Arguments of a call. A verb ignores members that it does not use. */
struct cm_args {
	struct cm_port *port;	     /* CALL_REQ, CALL_SIDR_REQ */
	const struct mad_path *path; /* CALL_REQ, CALL_SIDR_REQ */
	uint8_t packet_life_time;    /* CALL_REQ: of the path, encoded */
	uint64_t give_up_ns;	     /* CALL_REQ, _REP, _DREQ, _SIDR_REQ: timeout; 0: default */
	struct cm_waits waits;	     /* as give_up_ns */
	/*
	 * CALL_REQ, CALL_REP, CALL_REJ, CALL_SIDR_REQ, CALL_SIDR_REP: the message. The core fills
	 * in the comm ids, the CA GUID, the service id of a SIDR_REP, and which message a REJ
	 * answers; the caller fills in all else. NULL means reason 28 in CALL_REJ and status 2 in
	 * CALL_SIDR_REP, both without private data.
	 */
	struct cm_msg *msg;
};

/**
 * cm_core_call() - carry out a request of a connection's owner
 * @conn: the connection; invalid after CM_CALL_DESTROY and CM_CALL_FORGET
 * @verb: one of CM_CALL_*
 * @args: arguments, or NULL
 * @now:  current time
 * @out:  effects; overwritten
 *
 * CM_CALL_FORGET, and CM_CALL_DESTROY of an idle connection, send nothing: no message had waited
 * for them. A caller may end any number within one step of its own.
 *
 * Return: 0; -EINVAL, with nothing changed, if the verb is not legal in the connection's state, or
 * starts a second connection on @conn (use cm_core_conn_new() for that).
 */
int cm_core_call(struct cm_core *core, struct cm_conn *conn, enum cm_event verb,
		 const struct cm_args *args, struct cm_time now, struct cm_effects *out);

/**
 * cm_core_expire() - process one deadline that has passed
 *
 * Return: true if there was one (call again until it returns false).
 */
bool cm_core_expire(struct cm_core *core, struct cm_time now, struct cm_effects *out);

/** cm_core_deadline() - when to call cm_core_expire() next, or CM_TIME_NEVER. */
struct cm_time cm_core_deadline(const struct cm_core *core);

/**
 * cm_core_port_gone() - drop all connections of a removed port; sends nothing
 * @gone: called for each connection that has an owner, which must drop its pointer; the connection
 *        is freed when @gone returns
 */
void cm_core_port_gone(struct cm_core *core, struct cm_port *port,
		       void (*gone)(struct cm_conn *conn, void *arg), void *arg);

/**
 * cm_conn_record() - export what another core needs to end a connection
 *
 * If the REQ is still waiting for a send slot, the record is IDLE: the peer does not know the
 * connection. The caller sets the handle of the port.
 */
struct cm_record cm_conn_record(const struct cm_conn *conn);

/**
 * cm_core_adopt() - take over a connection whose own core is gone
 * @record: its record. Local comm id 0 assigns one of this core's ids. DREQ_SENT is adopted as
 *          ESTABLISHED, so that CM_CALL_DESTROY sends DREQ again, until it is answered.
 * @port:   port that reaches the peer
 * @owner:  passed back in reports
 *
 * No timer runs for the connection: end it with CM_CALL_DESTROY at once, which sends the peer what
 * its own core would have sent.
 *
 * Return: the connection; NULL if there is nothing to end (IDLE, TIMEWAIT, SIDR_REQ_SENT,
 * SIDR_REP_SENT), if the local comm id is in use here, or when out of memory.
 */
struct cm_conn *cm_core_adopt(struct cm_core *core, const struct cm_record *record,
			      struct cm_port *port, void *owner);

#endif

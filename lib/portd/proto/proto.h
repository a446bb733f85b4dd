/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The records exchanged between library and cmportd: encoded by rows like MADs, several to a
 * datagram of a SOCK_SEQPACKET unix socket. docs/portd-protocol.md describes the protocol.
 *
 * A client has two sockets. On its control socket it sends requests; each record except the one-way
 * ones is answered by one REPLY, in order. The data socket is passed with the response to HELLO,
 * and carries messages in both directions, without responses.
 */
#ifndef LIB_PORTD_PROTO_PROTO_H
#define LIB_PORTD_PROTO_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cm/record.h"
#include "mad/port.h"
#include "mad/wire.h"

#define PORTD_VERSION	     11
#define PORTD_DATAGRAM_BYTES 16384 /* maximum size of a datagram */
#define PORTD_HEAD_BYTES     4
#define PORTD_DEVICE_BYTES   64
#define PORTD_PORTS_MAX	     64 /* limit of handles */
#define PORTD_TEXT_BYTES     256
#define PORTD_SA_BYTES	     176 /* size of the largest record of subnet administration */

/*
 * The records. ASKED: sent by the client on its control socket, answered by one REPLY. ONE_WAY:
 * sent there too, not answered. DATA: sent by the client on the data socket. TOLD: sent there by
 * cmportd, or by both. New records are added last. HELLO and REPLY keep their numbers, so that each
 * version can decode the refusal of another.
 */
#define PORTD_RECORDS(X)                                                                     \
	X(HELLO, ASKED)		/* comes first: version, new or resuming */                  \
	X(OPEN_PORT, ASKED)	/* receive CM messages on a port */                          \
	X(BIND, ASKED)		/* claim a port of a port space */                           \
	X(LISTEN, ASKED)	/* accept requests for a claimed port */                     \
	X(UPDATE, ONE_WAY)	/* the addresses of a claim have changed */                  \
	X(RELEASE, ONE_WAY)	/* release a claim */                                        \
	X(LEASE_PORTS, ASKED)	/* lease more ephemeral ports, see lease.h */                \
	X(LEASE_AHEAD, ONE_WAY) /* likewise, before they are needed */                       \
	X(LEASE_IDS, ASKED)	/* lease one more block of comm ids */                       \
	X(HOLD_IDS, ASKED)	/* resuming: a block that a previous cmportd lent */         \
	X(TRACK, ONE_WAY)	/* a connection: when resuming, or established by data */    \
	X(RESUMED, ASKED)	/* resuming: everything has been reported */                 \
	X(STAT, ASKED)		/* connections and counters; rows of STAT_* follow */        \
	X(REPLY, ANSWER)                                                                     \
	X(MAD, TOLD)	       /* a message to send, or a received one */                    \
	X(CLOSE, DATA)	       /* from the client: a comm id is free again */                \
	X(GONE, TOLD)	       /* from cmportd: a port was removed */                        \
	X(SA_ASK, DATA)	       /* from the client: a query to the subnet administrator */    \
	X(SA_DROP, DATA)       /* from the client: cancel a query, or leave a group */       \
	X(SA_REVALIDATE, DATA) /* from the client: a path that fails */                      \
	X(SA_TOLD, TOLD)       /* from cmportd: the response */                              \
	X(STAT_ASK, TOLD)      /* from cmportd: report your ids and counters */              \
	X(STAT_PORT, TOLD)     /* from cmportd, to the requester: a port used in rows */     \
	X(STAT_PROCESS, TOLD)  /* from cmportd, to the requester: a client that was asked */ \
	X(STAT_ID, TOLD)       /* from a client, forwarded: an id or a connection */         \
	X(STAT_COUNT, TOLD)    /* likewise: a counter that is not zero */                    \
	X(STAT_END, TOLD)      /* likewise: the end of the rows */                           \
	X(PORT_TOS, TOLD)      /* from cmportd: the port has a new default */                \
	X(STAT_QUOTA, TOLD)    /* from cmportd, to the requester: the use of a quota */

enum portd_type {
	PORTD_NONE,
#define X(name, manner) PORTD_##name,
	PORTD_RECORDS(X)
#undef X
	PORTD_N_TYPES,
};

/*
 * The response to HELLO carries the first block of comm ids and two file descriptors: the data
 * socket and the page of lease.h, in this order. A client that resumes passes its old page, and
 * gets no new one.
 */
struct portd_hello {
	uint16_t version;
	uint8_t resumes; /* HOLD_IDS, BIND, LISTEN, TRACK and RESUMED follow */
	uint8_t visits;	 /* makes no connections: gets no comm ids and is not waited for */
};

/*
 * The response has handle, CA GUID and GID 0 of the port, or the cause of the error and its remedy.
 */
struct portd_open_port {
	uint8_t port_num; /* from 1 */
	char device[PORTD_DEVICE_BYTES];
};

/* BIND, LISTEN, UPDATE, RELEASE. Claim ids are chosen by the client. */
struct portd_claim {
	uint32_t claim_id;
	uint16_t ps; /* RDMA_PS_* */
	uint8_t reuseaddr;
	uint8_t afonly;
	uint8_t local_family; /* 4, 6, AF_IB for a GID; 0 for none */
	uint8_t peer_family;
	uint16_t local_port; /* 0: any; returned in the reply */
	uint16_t peer_port;
	uint8_t heard_at;	/* LISTEN: 1 + handle of a port of the device; 0: all devices */
	uint8_t local_addr[16]; /* IPv4 in the last four bytes */
	uint8_t peer_addr[16];
	uint32_t local_scope;
	uint32_t peer_scope;
};

struct portd_lease_ports {
	uint16_t ps;
	uint16_t count; /* requested; fewer may be leased */
};

/* HOLD_IDS; LEASE_IDS ignores all fields. */
struct portd_ids {
	uint32_t first;
	uint32_t count;
	uint64_t secret; /* of the block, from the reply */
};

struct portd_reply {
	uint16_t error; /* an errno, 0 for success */
	uint8_t handle; /* OPEN_PORT */
	uint8_t tos;	/* OPEN_PORT: for ids that set none */
	uint16_t port;	/* BIND: the port; LEASE_PORTS: the first, the others are on the page */
	uint32_t first; /* HELLO, LEASE_IDS: the block */
	uint32_t count;
	union {			  /* REPLY keeps its length */
		uint64_t ca_guid; /* OPEN_PORT */
		uint64_t secret;  /* HELLO, LEASE_IDS: of the block, for HOLD_IDS */
	};
	struct mad_gid gid0;
	char text[PORTD_TEXT_BYTES]; /* on error, the cause and its remedy; "" if unknown */
};

struct portd_mad {
	uint8_t port;  /* handle */
	uint8_t again; /* a retransmission: check the link address */
	struct mad_path path;
	uint8_t mad[MAD_BYTES];
};

/* cmportd knows no local comm id of a dropped request, so the peer's identifies it. */
struct portd_close {
	uint32_t local_comm_id;
	uint32_t remote_comm_id;
	struct mad_gid peer_gid; /* mad_path_peer() */
	uint64_t remote_ca_guid; /* the service id for a lookup, see cm/conn.h; 0: any */
	uint32_t n_heard;	 /* MADs read by the client so far, modulo 2^32 */
};

struct portd_gone {
	uint8_t port; /* handle; may be reused */
};

struct portd_port_tos {
	uint8_t port; /* handle */
	uint8_t tos;  /* new default */
};

/* Query ids are chosen by the client. docs/portd-protocol.md lists the allowed queries. */
struct portd_sa_ask {
	uint8_t port; /* handle */
	uint8_t method;
	uint16_t attr;
	uint32_t ask_id;
	uint32_t timeout_ms;
	uint64_t comp_mask;
	uint8_t record[PORTD_SA_BYTES]; /* as on the wire */
};

struct portd_sa_drop {
	uint32_t ask_id;
};

struct portd_sa_revalidate {
	uint8_t port; /* handle */
	struct mad_gid dgid;
};

struct portd_sa_told {
	uint32_t ask_id;
	uint16_t error; /* an errno, 0 for success; ENETRESET: no longer a member */
	uint16_t left;	/* of a table: so many records follow */
	uint8_t record[PORTD_SA_BYTES];
};

/* The direction of a message. */
enum portd_way {
	PORTD_RECEIVED,
	PORTD_SENT,
	PORTD_REPEATED, /* retransmitted */
};

/* --- statistics for purecm stat, by lib/conn/stat_rows.c and server/asks/stat_query.c --- */

/* STAT. The REPLY has the ask_id of the rows (first) and the number of clients asked (count). */
struct portd_stat {
	uint32_t pid; /* of the process to ask; 0: all that the requester may see */
};

#define PORTD_STAT_QUOTAS UINT32_MAX /* instead of a pid: quotas only */
#define PORTD_QUOTA_BYTES 16
#define PORTD_QUOTA_EACH  UINT32_MAX /* instead of a user and its use: the limit of each */

struct portd_stat_ask {
	uint32_t ask_id; /* copied to each row */
};

/* Origins of rows other than clients. */
#define PORTD_STAT_ITSELF  0xffff /* cmportd: connections of ended processes, stray messages */
#define PORTD_STAT_PASSING 0xfffe /* all messages at a port, of any process */
#define PORTD_STAT_NO_PORT 0xff	  /* instead of a handle */

/* The head of all rows; cmportd overwrites what a client puts there. */
struct portd_stat_row {
	uint32_t ask_id;
	uint16_t client; /* cmportd's index of the client while it is connected */
};

struct portd_stat_port {
	struct portd_stat_row row;
	uint8_t port; /* handle */
	uint8_t port_num;
	char device[PORTD_DEVICE_BYTES];
	struct mad_gid gid0;
};

struct portd_stat_process {
	struct portd_stat_row row;
	uint32_t pid; /* 0: in a pid namespace that cmportd cannot see */
	uint32_t uid;
	uint32_t n_conns; /* number of connections tracked by cmportd */
};

struct portd_stat_quota {
	struct portd_stat_row row;
	uint8_t was_reached;
	uint32_t uid;
	uint32_t has;
	uint32_t limit;
	char name[PORTD_QUOTA_BYTES]; /* as in cmportd --quota */
};

#define PORTD_STAT_NONE UINT8_MAX /* instead of a state: no id, or no connection */

struct portd_stat_id {
	struct portd_stat_row row;
	uint8_t id_state;   /* enum id_state */
	uint8_t conn_state; /* enum cm_state */
	uint8_t active;	    /* active side of the connection */
	uint8_t port;	    /* handle */
	uint8_t family;	    /* of both addresses: 4, 6, AF_IB; 0: not bound yet */
	uint8_t qp_type;    /* enum ibv_qp_type */
	uint16_t ps;	    /* RDMA_PS_* */
	uint16_t local_port;
	uint16_t peer_port;
	uint8_t local_addr[16]; /* IPv4 in the last four bytes */
	uint8_t peer_addr[16];	/* also set for an accepted connection */
	struct mad_gid peer_gid;
	uint32_t local_comm_id; /* 0: none */
	uint32_t remote_comm_id;
	uint32_t local_qpn;
	uint32_t remote_qpn;
	uint32_t n_requests; /* of a listener, not yet accepted by the program */
	uint32_t retries;    /* number of retransmissions */
	uint64_t age_ms;     /* since the id was created; UINT64_MAX: unknown */
};

/* The states of an id, in the order of an active connection's life: enum id_state. */
#define PORTD_ID_STATES(X) \
	X(IDLE)            \
	X(ADDR_BOUND)      \
	X(LISTEN)          \
	X(ADDR_QUERY)      \
	X(ADDR_RESOLVED)   \
	X(ROUTE_QUERY)     \
	X(ROUTE_RESOLVED)  \
	X(CONNECT)         \
	X(DISCONNECT)      \
	X(DEVICE_REMOVAL)  \
	X(DESTROYING)

/*
 * Counters: those of a core (in the library, and in cmportd for ended processes), X(name, text) ...
 */
#define PORTD_STAT_COUNTERS(X)                                                       \
	X(SENT, "sent for the first time")                                           \
	X(RECEIVED, "received, dropped ones included")                               \
	X(REPEATED, "sent again, for want of an answer")                             \
	X(DUPLICATE, "received again")                                               \
	X(MALFORMED, "dropped: no message of the CM class")                          \
	X(UNKNOWN, "dropped: its ids name no connection")                            \
	X(ALIEN, "dropped: not from the connection's peer")                          \
	X(UNEXPECTED, "dropped: means nothing in the connection's state")            \
	X(NO_MEMORY, "dropped: a request, for want of memory")                       \
	X(UNSUPPORTED, "dropped: of a kind that is not served")                      \
	/* ... and at a port, by cmportd. */                                         \
	X(ANSWERED, "for nobody here: answered by cmportd")                          \
	X(FORBIDDEN, "dropped: its sender may not send it")                          \
	X(HELD_BACK, "dropped: for nobody, as clients may still come back")          \
	X(OVERFLOW, "dropped: its receiver does not read, or too many wait")         \
	X(UNSENT, "dropped: the device refused it, or its peer has no link address") \
	X(BY_UMAD, "sent through umad, which is slower than the fast path")          \
	X(FAST_PEERS, "peers that the fast path reaches now")                        \
	X(LOST_PEERS, "peers that only umad reaches: something drops the fast path")

enum portd_stat_counter {
#define X(name, text) PORTD_COUNT_##name,
	PORTD_STAT_COUNTERS(X)
#undef X
	PORTD_N_COUNTERS,
};

struct portd_stat_count {
	struct portd_stat_row row;
	uint8_t port;	 /* handle */
	uint8_t message; /* from CM_ATTR_REQ; CM_TALLY_NONE for others */
	uint8_t what;	 /* enum portd_stat_counter */
	uint64_t value;
};

struct portd_stat_end {
	struct portd_stat_row row;
	uint32_t n_rows;    /* sent before; if fewer arrived, the requester was too slow */
	uint8_t is_partial; /* the client had no memory for more rows */
};

struct portd_record {
	enum portd_type type;
	union {
		struct portd_hello hello;
		struct portd_open_port open_port;
		struct portd_claim claim;
		struct portd_lease_ports lease_ports;
		struct portd_ids ids;
		struct cm_record tracked;
		struct portd_reply reply;
		struct portd_mad mad;
		struct portd_close close;
		struct portd_gone gone;
		struct portd_port_tos port_tos;
		struct portd_sa_ask sa_ask;
		struct portd_sa_drop sa_drop;
		struct portd_sa_revalidate sa_revalidate;
		struct portd_sa_told sa_told;
		struct portd_stat stat;
		struct portd_stat_ask stat_ask;
		struct portd_stat_row stat_row; /* the head of all rows */
		struct portd_stat_port stat_port;
		struct portd_stat_process stat_process;
		struct portd_stat_id stat_id;
		struct portd_stat_count stat_count;
		struct portd_stat_end stat_end;
		struct portd_stat_quota stat_quota;
	};
};

/* A datagram being filled or read. */
struct portd_datagram {
	size_t bytes; /* filled so far */
	size_t at;    /* read so far */
	uint8_t data[PORTD_DATAGRAM_BYTES];
};

/** portd_put() - append a record. Return: false, without a change, if there is no room. */
bool portd_put(struct portd_datagram *datagram, const struct portd_record *record);

/**
 * portd_get() - read the next record
 *
 * Return: 0; -ENODATA at the end; -EPROTO for an invalid record: an unknown type, a length that the
 * type cannot have, or a truncated record. The rest must not be read then.
 */
int portd_get(struct portd_datagram *datagram, struct portd_record *ret);

/** portd_type_str() - "OPEN_PORT" */
const char *portd_type_str(enum portd_type type);

/** portd_is_asked() - return whether a client sends this type on its control socket */
bool portd_is_asked(enum portd_type type);

/** portd_is_told() - return whether cmportd sends this type on a data socket */
bool portd_is_told(enum portd_type type);

/** portd_is_one_way() - return whether this type gets no REPLY */
bool portd_is_one_way(enum portd_type type);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a library and cmportd say to each other: records, encoded by rows like MADs, several to a
 * datagram of a SOCK_SEQPACKET unix socket. docs/portd-protocol.md tells the story around them.
 *
 * A client has two sockets. On the one it connected, it asks, and every record but the one-way
 * ones is answered by one REPLY, in order. The other came with the answer to HELLO, as a file
 * descriptor, and carries messages in both directions; nothing on it is answered.
 *
 */
#ifndef LIB_PORTD_PROTO_PROTO_H
#define LIB_PORTD_PROTO_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cm/record.h"
#include "mad/port.h"
#include "mad/wire.h"

#define PORTD_VERSION	     8
#define PORTD_DATAGRAM_BYTES 16384 /* no datagram is larger */
#define PORTD_HEAD_BYTES     4
#define PORTD_DEVICE_BYTES   64
#define PORTD_PORTS_MAX	     64 /* handles are below */
#define PORTD_TEXT_BYTES     256
#define PORTD_SA_BYTES	     176 /* of the largest record of subnet administration */

/*
 * The records. ASKED: by the client on its control socket, answered by one REPLY. ONE_WAY: there
 * too, without an answer. DATA: on the data socket. New ones come last: HELLO and REPLY keep their
 * numbers, so that those of two versions understand each other's refusal.
 */
#define PORTD_RECORDS(X)                                                                         \
	X(HELLO, ASKED)		/* first of all: who comes, what of an earlier life it has */    \
	X(OPEN_PORT, ASKED)	/* receive CM messages on a port from now on */                  \
	X(BIND, ASKED)		/* claim a port of a port space */                               \
	X(LISTEN, ASKED)	/* requests for a claimed port are welcome */                    \
	X(UPDATE, ONE_WAY)	/* a claim's addresses have changed */                           \
	X(RELEASE, ONE_WAY)	/* a claim is given back */                                      \
	X(LEASE_PORTS, ASKED)	/* more ephemeral ports, see lease.h */                          \
	X(LEASE_AHEAD, ONE_WAY) /* the same, before they are needed */                           \
	X(LEASE_IDS, ASKED)	/* a block of comm ids more */                                   \
	X(HOLD_IDS, ASKED)	/* resuming: a block that an earlier cmportd leased */           \
	X(TRACK, ONE_WAY)	/* what has to be known to end a connection; resuming, and where \
				   the client's state changed without a message */               \
	X(RESUMED, ASKED)	/* all that an earlier cmportd knew has been told */             \
	X(TRACE, ASKED)		/* trace all messages of the host, see trace_ring.h */           \
	X(REPLY, ANSWER)                                                                         \
	X(MAD, DATA)	       /* a message to send, or that has arrived */                      \
	X(CLOSE, DATA)	       /* from the client: a comm id is free again */                    \
	X(GONE, DATA)	       /* from cmportd: a port is no more */                             \
	X(SA_ASK, DATA)	       /* from the client: a question to the subnet administrator */     \
	X(SA_DROP, DATA)       /* from the client: never mind, or leave the group */             \
	X(SA_REVALIDATE, DATA) /* from the client: a path that leads nowhere */                  \
	X(SA_TOLD, DATA)       /* from cmportd: the answer */                                    \
	X(SEEN, DATA)	       /* from cmportd, to who awaits it: a message has passed */        \
	X(STAT_ASK, DATA)      /* from cmportd: how do your ids and counters stand? */           \
	X(STAT_PORT, DATA)     /* from cmportd, to who asked: a port that others speak of */     \
	X(STAT_PROCESS, DATA)  /* from cmportd, to who asked: a client that is asked for him */  \
	X(STAT_ID, DATA)       /* from a client, and passed on: an id or a connection */         \
	X(STAT_COUNT, DATA)    /* likewise: a counter that is not zero */                        \
	X(STAT_END, DATA)      /* likewise: that was all */                                      \
	X(STAT, ASKED)	       /* how connections and counters stand: rows of STAT_* follow */   \
	X(AWAIT, DATA)	       /* from a tracer: report the next message */                      \
	X(PORT_TOS, DATA)      /* from cmportd: a port has another default */                    \
	X(STAT_QUOTA, DATA)    /* from cmportd, to who asked: how much of a quota is used */

enum portd_type {
	PORTD_NONE,
#define X(name, manner) PORTD_##name,
	PORTD_RECORDS(X)
#undef X
	PORTD_N_TYPES,
};

/*
 * HELLO is answered with the first block of comm ids, and the data socket and the page of port
 * leases as file descriptors, in this order. A client that resumes sends its old page along, and
 * gets no new one.
 */
struct portd_hello {
	uint16_t version;
	uint8_t resumes; /* HOLD_IDS, BIND, LISTEN, TRACK and RESUMED follow */
	uint8_t visits;	 /* will connect nothing: needs no comm ids, and nobody waits for it */
};

/* Answered with handle, CA GUID and GID 0 of the port, or with why not and what to do. */
struct portd_open_port {
	uint8_t port_num; /* from 1 */
	char device[PORTD_DEVICE_BYTES];
};

/* BIND, LISTEN, UPDATE, RELEASE. The client names its claims. */
struct portd_claim {
	uint32_t claim_id;
	uint16_t ps; /* RDMA_PS_* */
	uint8_t reuseaddr;
	uint8_t afonly;
	uint8_t local_family; /* 4, 6, AF_IB for a GID; 0 for none */
	uint8_t peer_family;
	uint16_t local_port; /* 0: any; the reply says which */
	uint16_t peer_port;
	uint8_t heard_at; /* LISTEN: 1 + handle of a port of the only device it is for; 0: all */
	uint8_t local_addr[16]; /* IPv4 in the last four bytes */
	uint8_t peer_addr[16];
	uint32_t local_scope;
	uint32_t peer_scope;
};

struct portd_lease_ports {
	uint16_t ps;
	uint16_t count; /* wanted; fewer may come */
};

/* HOLD_IDS; LEASE_IDS has no fields that count. */
struct portd_ids {
	uint32_t first;
	uint32_t count;
	uint64_t secret; /* that came with the block */
};

struct portd_reply {
	uint16_t error; /* an errno, 0 for success */
	uint8_t handle; /* OPEN_PORT */
	uint8_t tos;	/* OPEN_PORT: of ids that ask for none */
	uint16_t port;	/* BIND: which; LEASE_PORTS: the first, for the others see the page */
	uint32_t first; /* HELLO, LEASE_IDS: the block */
	uint32_t count;
	union {			  /* REPLY keeps its length, as its number */
		uint64_t ca_guid; /* OPEN_PORT */
		uint64_t secret;  /* HELLO, LEASE_IDS: of the block, for HOLD_IDS */
	};
	struct mad_gid gid0;
	char text[PORTD_TEXT_BYTES]; /* on an error, what is wrong and what to do; "" if unknown */
};

struct portd_mad {
	uint8_t port;  /* handle */
	uint8_t again; /* sent before and not answered: see that the link address is still true */
	struct mad_path path;
	uint8_t mad[MAD_BYTES];
};

/* A request that was dropped has no local comm id that cmportd knows: the peer's names it. */
struct portd_close {
	uint32_t local_comm_id;
	uint32_t remote_comm_id;
	struct mad_gid peer_gid; /* mad_path_peer() */
	uint64_t remote_ca_guid; /* of a lookup the service id, see cm/conn.h; 0: of any */
	uint32_t n_heard;	 /* MADs that cmportd had sent to the client by then, modulo 2^32 */
};

struct portd_gone {
	uint8_t port; /* handle, which may stand for another port from now on */
};

struct portd_port_tos {
	uint8_t port; /* handle */
	uint8_t tos;  /* from now on */
};

/* The client names its questions. What may be asked: docs/portd-protocol.md. */
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
	uint8_t record[PORTD_SA_BYTES];
};

/* Which way a message went. */
enum portd_way {
	PORTD_RECEIVED,
	PORTD_SENT,
	PORTD_REPEATED, /* sent, and not for the first time */
};

/* AWAIT: a message after this one, once. SEEN: that is the latest. What it says is in the ring,
 * whose descriptor came with the answer to TRACE. */
struct portd_seen {
	uint64_t number;
};

/* --- how things stand: lib/conn/stat.c and lib/portd/server/stat.c answer, purecm stat asks --- */

/* STAT. The REPLY says under which ask_id (first) how many clients are asked (count). */
struct portd_stat {
	uint32_t pid; /* of this process only; 0: of all that the asker may see */
};

#define PORTD_STAT_QUOTAS UINT32_MAX /* in place of a process: the quotas, and nothing else */
#define PORTD_QUOTA_BYTES 16
#define PORTD_QUOTA_EACH  UINT32_MAX /* in place of a user and what he has: of each */

struct portd_stat_ask {
	uint32_t ask_id; /* to be repeated in each row */
};

/* Of whom a row is, instead of a client. */
#define PORTD_STAT_ITSELF  0xffff /* cmportd: connections of the dead, answers for nobody */
#define PORTD_STAT_PASSING 0xfffe /* all that passes a port, whoever it is of or for */
#define PORTD_STAT_NO_PORT 0xff	  /* instead of a handle */

/* What all rows begin with. A client's own word for itself does not count. */
struct portd_stat_row {
	uint32_t ask_id;
	uint16_t client; /* cmportd's number for it, as long as it is there */
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
	uint32_t n_conns; /* as cmportd knows, whatever the client will say */
};

struct portd_stat_quota {
	struct portd_stat_row row;
	uint8_t was_reached;
	uint32_t uid;
	uint32_t has;
	uint32_t limit;
	char name[PORTD_QUOTA_BYTES]; /* as cmportd --quota has it */
};

#define PORTD_STAT_NONE UINT8_MAX /* in place of a state: there is no id, or no connection */

struct portd_stat_id {
	struct portd_stat_row row;
	uint8_t id_state;   /* PORTD_ID_STATES */
	uint8_t conn_state; /* enum cm_state */
	uint8_t active;	    /* it asked */
	uint8_t port;	    /* handle */
	uint8_t family;	    /* of both addresses: 4, 6, AF_IB; 0: not bound yet */
	uint8_t qp_type;    /* enum ibv_qp_type */
	uint16_t ps;	    /* RDMA_PS_* */
	uint16_t local_port;
	uint16_t peer_port;
	uint8_t local_addr[16]; /* IPv4 in the last four bytes */
	uint8_t peer_addr[16];	/* of a connection that was accepted, too */
	struct mad_gid peer_gid;
	uint32_t local_comm_id; /* 0: none */
	uint32_t remote_comm_id;
	uint32_t local_qpn;
	uint32_t remote_qpn;
	uint32_t n_requests; /* a listener's that the program has not taken yet */
	uint32_t retries;    /* how often messages of this connection were sent again */
	uint64_t age_ms;     /* since the id was made; UINT64_MAX: not known */
};

/* As enum id_state of lib/id/id.h, which is held to it. */
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

/* What is counted: by who speaks the protocol (lib, and cmportd for the dead), X(name, text) ... */
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
	uint8_t message; /* from CM_ATTR_REQ; CM_TALLY_NONE if it is none */
	uint8_t what;	 /* enum portd_stat_counter */
	uint64_t value;
};

struct portd_stat_end {
	struct portd_stat_row row;
	uint32_t n_rows;    /* before this one: fewer mean that the asker was too slow */
	uint8_t is_partial; /* it had no memory for more */
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
		struct portd_seen seen; /* and AWAIT */
		struct portd_stat stat;
		struct portd_stat_ask stat_ask;
		struct portd_stat_row stat_row; /* how those that follow begin */
		struct portd_stat_port stat_port;
		struct portd_stat_process stat_process;
		struct portd_stat_id stat_id;
		struct portd_stat_count stat_count;
		struct portd_stat_end stat_end;
		struct portd_stat_quota stat_quota;
	};
};

/* A datagram that is being filled or read. */
struct portd_datagram {
	size_t bytes; /* filled so far */
	size_t at;    /* read so far */
	uint8_t data[PORTD_DATAGRAM_BYTES];
};

/** portd_put() - append a record. Return: false, and nothing changed, if there is no room. */
bool portd_put(struct portd_datagram *datagram, const struct portd_record *record);

/**
 * portd_get() - take the next record
 *
 * Return: 0; -ENODATA at the end; -EPROTO for anything that is not a record: a type that does not
 * exist, a length that its type cannot have, a record cut short. The rest is not to be read then.
 */
int portd_get(struct portd_datagram *datagram, struct portd_record *ret);

/** portd_type_str() - "OPEN_PORT" */
const char *portd_type_str(enum portd_type type);

/** portd_is_asked() - does a client send this on its control socket? */
bool portd_is_asked(enum portd_type type);

/** portd_is_told() - does cmportd send this on a data socket? */
bool portd_is_told(enum portd_type type);

/** portd_is_one_way() - does it get no REPLY? */
bool portd_is_one_way(enum portd_type type);

#endif

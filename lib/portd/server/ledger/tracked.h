/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tracked connections: for each connection of each client, the data needed to route its messages,
 * and to end it when its process has ended: both ends' ids, and which messages have passed. The
 * connection itself, with its state, is in the client's core (cm/).
 *
 * Pure: no clock, no locks, and no system calls except for memory.
 */
#ifndef LIB_PORTD_SERVER_LEDGER_TRACKED_H
#define LIB_PORTD_SERVER_LEDGER_TRACKED_H

#include <stdbool.h>
#include <stdint.h>

#include "cm/core.h"
#include "lib/portd/proto/proto.h"
#include "lib/portd/server/limits.h"

#define TRACKED_NONE  UINT32_MAX
#define TRACKED_PORTS 64 /* number of handles */

enum tracked_table {
	TRACKED_BY_LOCAL,   /* by local comm id */
	TRACKED_BY_REMOTE,  /* by peer and its comm id */
	TRACKED_BY_QPN,	    /* by peer and its queue pair */
	TRACKED_BY_OWN_QPN, /* by peer and the client's queue pair */
	TRACKED_N_TABLES,
};

/* The owner of a client's tracked connections, for a cmportd that does not know the client. */
struct tracked_owner {
	uint32_t pid;	/* 0: unknown */
	uint32_t start; /* process_start() of pid */
	uint16_t block; /* number of its first block of comm ids; 0: none */
	uint16_t user;	/* server's number of the user to charge; while the client lives */
};

/*
 * At most 128 bytes, so that a connection takes less than 256 with the tables. In the file that
 * survives a restart only passed, is, owner, is_dead, is_told and seal have a meaning.
 */
struct tracked {
	uint16_t client;	 /* server's index; while the client lives */
	uint8_t passed;		 /* bitmap of tracked_passed.h; is.state follows from it */
	uint8_t in : 4;		 /* bitmap of enum tracked_table */
	bool is_orphan : 1;	 /* left by a previous cmportd; its client has not resumed */
	bool is_dead : 1;	 /* its client has ended */
	bool is_unconfirmed : 1; /* its client has resumed, but not reported it yet */
	bool is_told : 1;	 /* known from its client only: no message has passed */
	uint32_t client_next;	 /* doubly linked, so that a client's list is removed in one walk */
	struct cm_record is;
	uint32_t client_prev;
	uint32_t index; /* of this entry */
	union {
		uint32_t starting_psn; /* of the client's own REQ; same in a retransmission */
		uint32_t handed; /* sequence number of the REQ's last delivery to the client */
	};
	uint32_t next[TRACKED_BY_OWN_QPN]; /* next in the same bucket, or TRACKED_NONE */
	struct tracked_owner owner;
	uint32_t seal; /* set last, when the entry is complete */
};

/*
 * The port that a handle means. Devices are renamed, also while no cmportd runs, so a port is known
 * by the node GUID and the port number.
 */
struct tracked_port {
	uint64_t guid; /* of the node, host byte order; 0: unknown */
	uint8_t port_num;
	char device[PORTD_DEVICE_BYTES]; /* its last known name, ended by '\0' */
};

struct tracker;
struct tracked_store;

/**
 * tracker_new() - create an empty tracker
 * @secret: random, because peers choose most of the keys
 *
 * Return: NULL on ENOMEM.
 */
struct tracker *tracker_new(uint64_t secret);

/** tracker_free() - free the tracker and its entries; NULL is allowed */
void tracker_free(struct tracker *tracker);

/**
 * tracker_of_sent() - look up the connection of a message that a client sends
 *
 * Finds the connection by the local comm id, which may be another client's; or, for the first
 * response to a request, that request, if it was delivered to the client. Changes nothing.
 *
 * Return: the tracked connection, valid until the next change; NULL if there is none.
 */
const struct tracked *tracker_of_sent(struct tracker *tracker, uint16_t client,
				      const struct mad_path *path, const struct cm_msg *msg);

/** tracked_is_again() - return whether a REQ is that of the connection, sent once more */
bool tracked_is_again(const struct tracked *tracked, const struct cm_req *req);

/**
 * tracker_sent() - track a message that a client sends and the server has checked
 * @of:     tracker_of_sent() of it
 * @client: its sender
 * @port:   handle of the port
 * @path:   path of the message
 * @msg:    the decoded message
 * @may_add: may the client have one more tracked connection?
 *
 * A REQ adds a tracked connection. The first response to a REQ gives the tracked connection the
 * client's comm id; after a REJ without one, another response adds a tracked connection. A SIDR
 * lookup is tracked on the responding side only: the requester has nothing to end.
 *
 * tracker_close() comes after the last message of a connection.
 *
 * Return: 0; -EPERM if the connection is not the client's, has another peer or port, or is another
 * one of a REQ that may not have more; -EDQUOT if a REQ may not add one; -ENOMEM.
 */
int tracker_sent(struct tracker *tracker, const struct tracked *of, uint16_t client, uint8_t port,
		 const struct mad_path *path, const struct cm_msg *msg, bool may_add);

/**
 * tracker_received() - track a message that is delivered to a client
 * @ret_is_known: set to whether the message belongs to a connection of the client. Both comm ids
 *                and the peer's address must match; for a response to a REQ only one id, as the
 *                other is new. False for requests and for responses to lookups, which are not
 *                tracked.
 *
 * The other arguments and the effects are those of tracker_sent(). A REQ or SIDR_REQ adds a tracked
 * connection without a local comm id. A message that the client's core will drop (cm/guard.c) has
 * no effect.
 *
 * Return: 0; -ENOMEM, or -ENOSPC if the peer has TRACKED_ALIKE_MAX connections with the same keys.
 * A request should be dropped then.
 */
int tracker_received(struct tracker *tracker, uint16_t client, uint8_t port,
		     const struct mad_path *path, const struct cm_msg *msg, bool *ret_is_known);

/** tracker_handed() - note that the message of the last tracker_received() was delivered */
void tracker_handed(struct tracker *tracker, uint16_t client);

/**
 * tracker_set() - record a connection that a client reports
 * @may_add: add a tracked connection even if no message of it has passed
 *
 * A client reports its connections when it resumes, since messages may have been lost with the
 * previous cmportd, and a connection that data instead of an RTU has established.
 *
 * @may_add is for a client that resumes with a cmportd whose file was lost, and for the process
 * that the server runs in. An entry added like this lets the client send messages of the
 * connection, and nothing else: it does not make a peer's request a duplicate, and is dropped when
 * the client ends. Without @may_add the connection must be tracked for this client with the same
 * port and peer.
 *
 * Return: 0, also if no entry is needed, because the connection is over or the peer's comm id is
 * not known yet; -EPERM if no such connection is tracked for this client, or if the report
 * contradicts the peer's half; -ENOMEM.
 */
int tracker_set(struct tracker *tracker, uint16_t client, const struct cm_record *tracked,
		bool may_add);

/**
 * tracker_close() - remove the connection whose comm id a client has freed
 *
 * Ignored if the comm id is not the client's. The client must report every delivered REQ that
 * became a connection of its core, also after the core rejected or dropped it. A REQ that was
 * delivered again after the last delivery that the client had read by then is new for its core, and
 * stays tracked.
 */
void tracker_close(struct tracker *tracker, uint16_t client, const struct portd_close *close);

/**
 * tracker_of_local() - look up by local comm id
 *
 * Return: the tracked connection, valid until the next change; NULL if there is none.
 */
const struct tracked *tracker_of_local(const struct tracker *tracker, uint32_t local_comm_id);

/**
 * tracker_is_outdated() - return whether a REQ of a client has been answered, or its connection is
 * over
 *
 * If a repetition were still sent then, a peer that has forgotten the connection would take it for
 * the request of a new one, and nobody would answer its REPs.
 */
bool tracker_is_outdated(const struct tracker *tracker, const uint8_t mad[MAD_BYTES]);

/**
 * tracker_of_remote() - look up by the peer and its comm id, and by @ca_guid unless it is 0
 *
 * Finds connections that recognize a duplicate REQ, that is not those in IDLE.
 */
const struct tracked *tracker_of_remote(const struct tracker *tracker, const struct mad_gid *peer,
					uint64_t ca_guid, uint32_t remote_comm_id);

/**
 * tracker_of_qpn() - look up a live connection by the peer's queue pair
 *
 * Finds none in TIMEWAIT, and none in DREQ_SENT, where a client's core may have released the queue
 * pair already (cm/core.c, abandon()), so that the peer may reuse it.
 */
const struct tracked *tracker_of_qpn(const struct tracker *tracker, const struct mad_gid *peer,
				     uint64_t ca_guid, uint32_t remote_qpn);

/* A queue pair that a client names as its own. */
struct tracked_naming {
	uint16_t client;
	struct mad_gid peer;
	uint64_t
		of_device; /* bitmap of the handles of its device's ports, which share its number */
	uint32_t qpn;
};

/**
 * tracker_may_name() - return whether a client may name a queue pair in a REQ or REP
 *
 * A peer takes a second connection with the same queue pair for a sign that the first one is stale,
 * and ends it (IBTA vol. 1, 12.9.8.3.1). So false if another user has a connection with that peer
 * and queue pair that the peer has accepted.
 */
bool tracker_may_name(const struct tracker *tracker, const struct tracked_naming *naming);

/**
 * tracker_share() - add the connection count of a client without connections to a shared counter
 * @count: must outlive the client, or be replaced with NULL before
 *
 * Return: false when out of memory.
 */
bool tracker_share(struct tracker *tracker, uint16_t client, uint32_t *count);

/** tracker_count() - the number of tracked connections of a client */
uint32_t tracker_count(const struct tracker *tracker, uint16_t client);

/**
 * tracker_take() - remove one tracked connection of an ended client
 *
 * A connection that takes more than one message to end is kept until tracker_reaped(), for the next
 * cmportd. One that only the client has reported is returned in IDLE: there is nothing to end.
 *
 * Return: false when there are no more.
 */
bool tracker_take(struct tracker *tracker, uint16_t client, struct cm_record *ret);

/** tracker_dead_of() - the number of a user's connections that were taken but not reaped */
uint32_t tracker_dead_of(const struct tracker *tracker, uint16_t user);

/** tracker_reaped() - free a taken connection that has ended; other comm ids are ignored */
void tracker_reaped(struct tracker *tracker, uint32_t local_comm_id);

/** tracker_port_gone() - remove the tracked connections of a port that was removed */
void tracker_port_gone(struct tracker *tracker, uint8_t port);

#endif

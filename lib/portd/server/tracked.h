/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tracked connections: for each connection of each client, what has to be known to find it when
 * a message comes, and to end it when its process is gone. Kept by looking at the messages that
 * pass; the client's own core (cm/) is what the connection really lives in.
 *
 * Pure: no clock or lock, and no system call but for memory.
 */
#ifndef LIB_PORTD_SERVER_TRACKED_H
#define LIB_PORTD_SERVER_TRACKED_H

#include <stdbool.h>
#include <stdint.h>

#include "cm/core.h"
#include "lib/portd/proto/proto.h"

#define TRACKED_NONE	  UINT32_MAX
#define TRACKED_PORTS	  64 /* handles */
#define TRACKED_ALIKE_MAX 16 /* of a peer, with one comm id or queue pair */

enum tracked_table {
	TRACKED_BY_LOCAL,  /* local comm id */
	TRACKED_BY_REMOTE, /* the peer and its comm id */
	TRACKED_BY_QPN,	   /* the peer and its queue pair */
	TRACKED_N_TABLES,
};

/* Whose a client's tracked connections are, for a cmportd that does not know the client. */
struct tracked_owner {
	uint32_t pid;	/* 0: unknown */
	uint32_t start; /* process_start() of it */
	uint16_t block; /* the number of its first block of comm ids; 0: it has none */
	uint16_t user;	/* who is charged for it, by the server's number; of those alive */
};

/*
 * 128 bytes at most, so that with the tables a connection costs less than 256. It lies in a file
 * that outlives us, tracked_file.h. What of it has a meaning there: is, owner, is_dead, is_told,
 * seal.
 */
struct tracked {
	uint16_t client;	 /* an index, the server's; of those alive */
	uint8_t in;		 /* a bit for each table it is in */
	bool is_refused : 1;	 /* by the peer, REJ 10: its REQ may come again, and is a new one */
	bool is_rejected : 1;	 /* by the client: likewise */
	bool is_orphan : 1;	 /* a cmportd before us had it, and its client has not come back */
	bool is_dead : 1;	 /* its client is gone for sure */
	bool is_unconfirmed : 1; /* its client has come back, and has not told of it yet */
	bool is_told : 1;	 /* only its client says that it exists: no message has passed */
	uint32_t client_next;	 /* a list with two ends, so that a client's go in one walk */
	struct cm_record is;
	uint32_t client_prev;
	uint32_t index; /* its own */
	union {
		uint32_t starting_psn; /* of its REQ that the client sent: a repetition has it */
		uint32_t handed; /* of its REQ that the client got last: the number of that MAD */
	};
	uint32_t next[TRACKED_N_TABLES]; /* in the same bucket, or TRACKED_NONE */
	struct tracked_owner owner;
	uint32_t seal; /* of one that is whole; written last */
};

struct tracker;
struct tracked_store;

/** tracker_new() - an empty table; @secret is random: peers choose most of the keys. NULL: ENOMEM.
 */
struct tracker *tracker_new(uint64_t secret);

/** tracker_free() - forget all of them; NULL is allowed. */
void tracker_free(struct tracker *tracker);

/**
 * tracker_sent() - a client sends a message that the server has checked
 * @client: whose
 * @port:   handle of the port
 * @path:   its way
 * @msg:    decoded
 *
 * A REQ makes a tracked connection; the first answer to a REQ gives its tracked connection the
 * client's comm id; the others change the state of theirs, as the client's core has changed its
 * own. Messages in the two sockets of a client may cross: a tracked connection can be behind or
 * ahead for as long as they are on their way, and not for good as long as the connection lives. A
 * lookup has a tracked connection on the side that is asked: who asks has nothing to end.
 *
 * To be called in the order in which the client's core has spoken; tracker_close() after the last
 * message of a connection.
 *
 * Return: 0; -EPERM for a message about a connection that is not the client's, or to another peer
 * or through another port than the connection's; -ENOMEM.
 */
int tracker_sent(struct tracker *tracker, uint16_t client, uint8_t port,
		 const struct mad_path *path, const struct cm_msg *msg);

/**
 * tracker_received() - a message is handed to a client
 *
 * Arguments and what is done: as tracker_sent(). A REQ or SIDR_REQ makes a tracked connection
 * without a local comm id. What the client's core will drop, by the guards of cm/guard.c, changes
 * nothing.
 *
 * @ret_is_known: is it a message of a connection of the client's? By both comm ids and the peer's
 *                address; of an answer to a REQ by one id, as the other is news. Not a request, nor
 *                an answer to a lookup, which has no tracked connection.
 *
 * Return: 0; -ENOMEM, or -ENOSPC if the peer has TRACKED_ALIKE_MAX that are hard to tell from it: a
 * request should be dropped then.
 */
int tracker_received(struct tracker *tracker, uint16_t client, uint8_t port,
		     const struct mad_path *path, const struct cm_msg *msg, bool *ret_is_known);

/** tracker_handed() - the message of the last tracker_received() is on its way to the client. */
void tracker_handed(struct tracker *tracker, uint16_t client);

/**
 * tracker_set() - record a connection state that a client reports
 * @may_add: track also a connection of which no message has passed
 *
 * @may_add is for a client that comes back to a cmportd which has lost its file, and for the
 * process that the server runs in. What is added by it lets the client send messages of that
 * connection, and nothing else: no request of a peer is taken for a repetition because of it, and
 * when the client is gone it is forgotten. Otherwise the connection must be tracked for this client
 * already, with the same port and the same peer. The client may set its state, and what is its own:
 * comm id, queue pair, and the transaction id of its message.
 *
 * What its core is known to have left behind is not believed: this comes on another socket than
 * the messages. A client has to tell where its core goes without a message: CALL_ESTABLISH, a DREQ
 * that is never answered, IDLE after that or after TIMEWAIT, unless the connection is closed then.
 *
 * Return: 0, also for what needs no record: it is over, or the peer has told no comm id yet; -EPERM
 * if no such connection is tracked for this client, or it says another thing of the peer; -ENOMEM.
 */
int tracker_set(struct tracker *tracker, uint16_t client, const struct cm_record *tracked,
		bool may_add);

/**
 * tracker_close() - a comm id of a client is free again
 *
 * Nothing happens if it is not the client's. To be told of every REQ that was handed out and became
 * a connection of the client's core, also if it was rejected or dropped. A REQ that was handed out
 * again after what the client had heard by then is a new one for its core, and stays tracked.
 */
void tracker_close(struct tracker *tracker, uint16_t client, const struct portd_close *close);

/** tracker_of_local() - by local comm id. Return: the tracked connection, until the next change; or
 * NULL. */
const struct tracked *tracker_of_local(const struct tracker *tracker, uint32_t local_comm_id);

/**
 * tracker_of_remote() - by the peer and its comm id, of the peer's CA unless @ca_guid is 0
 *
 * As long as a repeated REQ is known for what it is: not in IDLE.
 */
const struct tracked *tracker_of_remote(const struct tracker *tracker, const struct mad_gid *peer,
					uint64_t ca_guid, uint32_t remote_comm_id);

/**
 * tracker_of_qpn() - by the peer's queue pair, while the connection lives
 *
 * Not in TIMEWAIT; nor in DREQ_SENT, where a client's core may have let go of the queue pair
 * already (cm/core.c, abandon()), so that the peer may use it again.
 */
const struct tracked *tracker_of_qpn(const struct tracker *tracker, const struct mad_gid *peer,
				     uint64_t ca_guid, uint32_t remote_qpn);

/**
 * tracker_share() - count the connections of a client, who has none yet, together with others'
 * @count: of all of them; must live as long as the client, or until it is called with NULL
 *
 * Return: false when out of memory.
 */
bool tracker_share(struct tracker *tracker, uint16_t client, uint32_t *count);

/** tracker_count() - how many a client has. */
uint32_t tracker_count(const struct tracker *tracker, uint16_t client);

/**
 * tracker_take() - a client is gone: take its tracked connections out, one a call
 *
 * What it takes longer than a message to end is kept until tracker_reaped(), for the next cmportd.
 *
 * Return: false when there is none left.
 */
bool tracker_take(struct tracker *tracker, uint16_t client, struct cm_record *ret);

/** tracker_dead_of() - how many of a user, by its number, were taken and are not reaped. */
uint32_t tracker_dead_of(const struct tracker *tracker, uint16_t user);

/** tracker_reaped() - a connection that was taken is at its end. Any other comm id is ignored. */
void tracker_reaped(struct tracker *tracker, uint32_t local_comm_id);

/** tracker_port_gone() - forget the tracked connections of a port that was removed. */
void tracker_port_gone(struct tracker *tracker, uint8_t port);

/** tracker_is_empty() - neither of clients, nor of any dead. */
bool tracker_is_empty(const struct tracker *tracker);

/* --- what outlives us, tracked_adopt.c ----------------------------------- */

/**
 * tracker_keep() - have them lie in a file, as far as it has room
 * @store: outlives the tracker
 *
 * To be called before there is any. What is in the file is left by a cmportd before us: orphans,
 * until they are dropped or inherited.
 *
 * Return: 0 or -ENOMEM.
 */
int tracker_keep(struct tracker *tracker, struct tracked_store *store);

/**
 * tracker_own() - who a client is: is written into the tracked connections that it makes from now
 * on
 *
 * Return: 0 or -ENOMEM.
 */
int tracker_own(struct tracker *tracker, uint16_t client, const struct tracked_owner *owner);

/** tracker_rename() - the device of a handle has another name; @device: PORTD_DEVICE_BYTES */
void tracker_rename(struct tracker *tracker, uint8_t handle, const char *device, uint8_t port_num);

/**
 * tracker_handle() - which handle shall a port have?
 * @device: PORTD_DEVICE_BYTES, ended by '\0'
 * @in_use: a bit for each handle that another port has
 *
 * The one that it had before us, lest a tracked connection mean another port.
 *
 * Return: the handle, or -ENOSPC.
 */
int tracker_handle(struct tracker *tracker, const char *device, uint8_t port_num, uint64_t in_use);

/** tracker_port() - the port that orphans mean by a handle. Return: false if it means none. */
bool tracker_port(const struct tracker *tracker, uint8_t handle, const char **ret_device,
		  uint8_t *ret_port_num);

/** tracker_orphan() - go through the orphans. @after: the one found before, or NULL for the first.
 */
const struct tracked *tracker_orphan(const struct tracker *tracker, const struct tracked *after);

/** tracker_hold_block() - has a connection of the dead, or an orphan, a comm id of a block? */
bool tracker_hold_block(const struct tracker *tracker, uint16_t block);

/**
 * tracker_return() - the client of an orphan, not dead, has come back
 *
 * It is tracked as before, and goes with tracker_confirm() if tracker_set() did not tell of it.
 *
 * Return: false when out of memory.
 */
bool tracker_return(struct tracker *tracker, const struct tracked *orphan, uint16_t client);

/** tracker_confirm() - a client that came back has told all: what it did not tell of is over. */
void tracker_confirm(struct tracker *tracker, uint16_t client);

/** tracker_adopt() - an orphan is to be ended: as tracker_take() */
void tracker_adopt(struct tracker *tracker, const struct tracked *orphan, struct cm_record *ret);

/** tracker_bytes() - Return: the current memory use of the table, in bytes. */
size_t tracker_bytes(const struct tracker *tracker);

#endif

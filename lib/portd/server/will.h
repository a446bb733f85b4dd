/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wills: for each connection of each client, what has to be known to find it when a message
 * comes, and to end it when its process is gone. Kept by looking at the messages that pass; the
 * client's own core (cm/) is what the connection really lives in.
 *
 * Pure: no clock or lock, and no system call but for memory. Called by the server's router, and
 * by estate.c.
 */
#ifndef LIB_PORTD_SERVER_WILL_H
#define LIB_PORTD_SERVER_WILL_H

#include <stdbool.h>
#include <stdint.h>

#include "cm/core.h"
#include "lib/portd/proto/proto.h"

#define WILL_NONE  UINT32_MAX
#define WILL_PORTS 64 /* handles */

enum will_table {
	WILL_BY_LOCAL,	/* local comm id */
	WILL_BY_REMOTE, /* the peer and its comm id */
	WILL_BY_QPN,	/* the peer and its queue pair */
	WILL_N_TABLES,
};

/* Whose a client's wills are, for a cmportd that does not know the client. */
struct will_owner {
	uint32_t pid;	/* 0: unknown */
	uint32_t start; /* process_start() of it */
	uint16_t block; /* the number of its first block of comm ids; 0: it has none */
};

/*
 * 128 bytes at most, so that with the tables a connection costs less than 256. It lies in a file
 * that outlives us, will_store.h. What of it has a meaning there: is, owner, is_dead, seal.
 */
struct will {
	uint16_t client;      /* an index, the server's; of those alive */
	uint8_t in;	      /* a bit for each table it is in */
	bool is_refused : 1;  /* by the peer, REJ 10: its REQ may come again, and is a new one */
	bool is_rejected : 1; /* by the client: likewise */
	bool is_orphan : 1;   /* a cmportd before us had it, and its client has not come back */
	bool is_dead : 1;     /* its client is gone for sure */
	uint32_t client_next; /* a list with two ends, so that a client's go in one walk */
	struct cm_record is;
	uint32_t client_prev;
	uint32_t index;		      /* its own */
	uint32_t starting_psn;	      /* of its REQ, if that was seen: a repetition has the same */
	uint32_t next[WILL_N_TABLES]; /* in the same bucket, or WILL_NONE */
	struct will_owner owner;
	uint32_t seal; /* of one that is whole; written last */
};

struct wills;
struct will_store;

/** wills_new() - an empty table; @secret is random: peers choose most of the keys. NULL: ENOMEM. */
struct wills *wills_new(uint64_t secret);

/** wills_free() - forget all of them; NULL is allowed. */
void wills_free(struct wills *wills);

/**
 * wills_sent() - a client sends a message that the server has checked
 * @client: whose
 * @port:   handle of the port
 * @path:   its way
 * @msg:    decoded
 *
 * A REQ makes a will; the first answer to a REQ gives its will the client's comm id; the others
 * change the state of theirs, as the client's core has changed its own. Messages in the two
 * sockets of a client may cross: a will can be behind or ahead for as long as they are on their
 * way, and not for good as long as the connection lives. A lookup has a will on the side that is
 * asked: who asks has nothing to end.
 *
 * To be called in the order in which the client's core has spoken; wills_close() after the last
 * message of a connection.
 *
 * Return: 0; -EPERM for a message about a connection that is not the client's, or to another peer
 * or through another port than the connection's; -ENOMEM.
 */
int wills_sent(struct wills *wills, uint16_t client, uint8_t port, const struct mad_path *path,
	       const struct cm_msg *msg);

/**
 * wills_received() - a message is handed to a client
 *
 * Arguments and what is done: as wills_sent(). A REQ or SIDR_REQ makes a will without a local comm
 * id. What
 * the client's core will drop, by the guards of cm/guard.c, changes nothing.
 *
 * Return: 0, or -ENOMEM: a request should be dropped then.
 */
int wills_received(struct wills *wills, uint16_t client, uint8_t port, const struct mad_path *path,
		   const struct cm_msg *msg);

/**
 * wills_know() - is a message that has arrived of a connection of the client's?
 *
 * By both comm ids and the peer's address; of an answer to a REQ by one of them, as the other is
 * news. Not a request, nor an answer to a lookup, which has no will. To be asked before
 * wills_received().
 */
bool wills_know(struct wills *wills, uint16_t client, const struct mad_path *path,
		const struct cm_msg *msg);

/**
 * wills_set() - a client tells the will of a connection itself
 *
 * What its core is known to have left behind is not believed: this comes on another socket than
 * the messages. A client has to tell where its core goes without a message: CALL_ESTABLISH, a DREQ
 * that is never answered, IDLE after that or after TIMEWAIT, unless the connection is closed then.
 *
 * Return: 0; -EPERM if the connection, or the peer's half of it, is another client's, or without
 * comm id, or in no state; -ENOMEM.
 */
int wills_set(struct wills *wills, uint16_t client, const struct cm_record *will);

/**
 * wills_close() - a comm id of a client is free again
 *
 * Nothing happens if it is not the client's. To be told of every REQ that was handed out and became
 * a connection of the client's core, also if it was rejected or dropped.
 */
void wills_close(struct wills *wills, uint16_t client, const struct portd_close *close);

/** wills_of_local() - by local comm id. Return: the will, until the next change; or NULL. */
const struct will *wills_of_local(const struct wills *wills, uint32_t local_comm_id);

/**
 * wills_of_remote() - by the peer and its comm id, of the peer's CA unless @ca_guid is 0
 *
 * As long as a repeated REQ is known for what it is: not in IDLE.
 */
const struct will *wills_of_remote(const struct wills *wills, const struct mad_gid *peer,
				   uint64_t ca_guid, uint32_t remote_comm_id);

/**
 * wills_of_qpn() - by the peer's queue pair, while the connection lives
 *
 * Not in TIMEWAIT; nor in DREQ_SENT, where a client's core may have let go of the queue pair
 * already (cm/core.c, abandon()), so that the peer may use it again.
 */
const struct will *wills_of_qpn(const struct wills *wills, const struct mad_gid *peer,
				uint64_t ca_guid, uint32_t remote_qpn);

/** wills_count() - how many a client has. */
uint32_t wills_count(const struct wills *wills, uint16_t client);

/**
 * wills_take() - a client is gone: take its wills out, one a call
 *
 * What it takes longer than a message to end is kept until wills_buried(), for the next cmportd.
 *
 * Return: false when there is none left.
 */
bool wills_take(struct wills *wills, uint16_t client, struct cm_record *ret);

/** wills_buried() - a connection that was taken is at its end. Any other comm id is ignored. */
void wills_buried(struct wills *wills, uint32_t local_comm_id);

/** wills_port_gone() - forget the wills of a port that was removed. */
void wills_port_gone(struct wills *wills, uint8_t port);

/** wills_are_none() - neither of clients, nor of any dead. */
bool wills_are_none(const struct wills *wills);

/* --- what outlives us, will_heir.c --------------------------------------- */

/**
 * wills_keep() - have them lie in a file, as far as it has room
 * @store: owned by the wills from now on, also on an error
 *
 * To be called before there is any. What is in the file is left by a cmportd before us: orphans,
 * until they are dropped or inherited.
 *
 * Return: 0 or -ENOMEM.
 */
int wills_keep(struct wills *wills, struct will_store *store);

/**
 * wills_own() - who a client is: is written into the wills that it makes from now on
 *
 * Return: 0 or -ENOMEM.
 */
int wills_own(struct wills *wills, uint16_t client, const struct will_owner *owner);

/**
 * wills_handle() - which handle shall a port have?
 * @device: PORTD_DEVICE_BYTES, ended by '\0'
 * @in_use: a bit for each handle that another port has
 *
 * The one that it had before us, lest a will mean another port.
 *
 * Return: the handle, or -ENOSPC.
 */
int wills_handle(struct wills *wills, const char *device, uint8_t port_num, uint64_t in_use);

/** wills_port() - the port that orphans mean by a handle. Return: false if it means none. */
bool wills_port(const struct wills *wills, uint8_t handle, const char **ret_device,
		uint8_t *ret_port_num);

/** wills_orphan() - go through the orphans. @after: the one found before, or NULL for the first. */
const struct will *wills_orphan(const struct wills *wills, const struct will *after);

/** wills_hold_block() - has a connection of the dead, or an orphan, a comm id of a block? */
bool wills_hold_block(const struct wills *wills, uint16_t block);

/** wills_drop() - an orphan's client has come back, or there is no way to end it. */
void wills_drop(struct wills *wills, const struct will *orphan);

/** wills_inherit() - an orphan is to be ended: as wills_take() */
void wills_inherit(struct wills *wills, const struct will *orphan, struct cm_record *ret);

/** wills_bytes() - the memory that the table takes at present. */
size_t wills_bytes(const struct wills *wills);

#endif

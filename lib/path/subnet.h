/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library's requests to subnet administrators: paths, group records, memberships. cmportd sends
 * them (lib/portd/server/sa/subnet_queries.c), and the responses arrive in the engine's thread.
 */
#ifndef LIB_PATH_SUBNET_H
#define LIB_PATH_SUBNET_H

#include "base/hash.h"
#include "lib/portd/client/portd_client.h"
#include "mad/sa_msg.h"

struct engine;
struct port;

/* A pending request, or a membership; embedded by its owner. Under the engine's lock. */
struct subnet_ask {
	struct hash_node link; /* in engine.subnet_asks; zeros before the first use */
	struct port *port;     /* the owner's reference */
	uint32_t ask_id;
	unsigned int timeout_ms;
	unsigned int left; /* records of a table that are left: done() is called for each */
	bool is_first; /* the first record of a table, also of the one that the next cmportd queries
			*/
	struct sa_msg msg; /* from sa_msg_init() */
	/*
	 * As in struct sa_ask, called with the engine's lock held, by any thread; must not block.
	 * With nothing left, a request may be freed. Return: whether msg and done are those of a
	 * new request.
	 */
	bool (*done)(struct subnet_ask *ask, int err, const struct sa_msg *answer);
};

/**
 * subnet_ask() - start a request; the engine's lock is held
 * @ask:        msg, timeout_ms and done are set
 * @ret_record: to be sent with subnet_send() after releasing the lock
 */
void subnet_ask(struct engine *engine, struct subnet_ask *ask, struct port *port,
		struct portd_record *ret_record);

/**
 * subnet_drop() - cancel a request or end a membership; the engine's lock is held
 *
 * Return: true if there is a record to send.
 */
bool subnet_drop(struct subnet_ask *ask, struct portd_record *ret_record);

/** subnet_revalidate() - report that the path to a port does not work; needs no lock. */
struct portd_record subnet_revalidate(const struct port *port, const struct mad_gid *dgid);

/**
 * subnet_send() - send a record to cmportd; no lock is held
 *
 * A request ends with -ETIMEDOUT if it cannot be sent because cmportd does not read.
 */
void subnet_send(const struct portd_record *record);

/** subnet_answered() - handle a response; no lock is held. */
void subnet_answered(const struct portd_sa_told *told);

/** subnet_resend() - send all pending requests to the next cmportd; no lock is held. */
void subnet_resend(struct portd_client *client);

#endif

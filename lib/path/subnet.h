/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the library asks of subnet administrators: paths, records of groups, memberships. cmportd
 * asks for it (lib/portd/server/subnet.c), and the answers come to the engine's thread.
 */
#ifndef LIB_PATH_SUBNET_H
#define LIB_PATH_SUBNET_H

#include "base/list.h"
#include "lib/portd/client/client.h"
#include "mad/sa_msg.h"

struct engine;
struct port;

/* A question under way, or a membership; embedded in who asks. Under the engine's lock. */
struct subnet_ask {
	struct list link;  /* in engine.subnet_asks; NULLs before the first use */
	struct port *port; /* the asker's reference */
	uint32_t ask_id;
	unsigned int timeout_ms;
	bool asks_again;   /* set by done(): msg and done are another question's */
	struct sa_msg msg; /* begun by sa_msg_init() */
	/* As that of struct sa_ask, with the engine's lock held; it must not block. */
	void (*done)(struct subnet_ask *ask, int err, const struct sa_msg *answer);
};

/**
 * subnet_ask() - begin to ask; the engine's lock is held
 * @ask:        msg, timeout_ms and done are set
 * @ret_record: to be sent with subnet_send(), when the lock was given up
 */
void subnet_ask(struct engine *engine, struct subnet_ask *ask, struct port *port,
		struct portd_record *ret_record);

/**
 * subnet_drop() - no longer interested, or no longer a member; the engine's lock is held
 *
 * Return: whether there is something to send.
 */
bool subnet_drop(struct subnet_ask *ask, struct portd_record *ret_record);

/** subnet_revalidate() - the way to a port leads nowhere; no lock is needed. */
struct portd_record subnet_revalidate(const struct port *port, const struct mad_gid *dgid);

/** subnet_send() - no lock is held. */
void subnet_send(const struct portd_record *record);

/** subnet_told() - an answer; the engine's thread, no lock is held. */
void subnet_told(const struct portd_sa_told *told);

/** subnet_resend() - all that is under way, to the next cmportd; no lock is held. */
void subnet_resend(struct portd_client *client);

#endif

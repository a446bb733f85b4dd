/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client and its peer with random behaviour, on a wire that loses, duplicates, reorders and
 * corrupts messages; and cmportd's tracked connections, which get each message of the client, and
 * each freed comm id. A test compares the tracked connections with the client's core.
 *
 * Everything follows from a seed, in virtual time.
 */
#ifndef TESTS_UNIT_PORTD_MODEL_H
#define TESTS_UNIT_PORTD_MODEL_H

#include "cm/core.h"
#include "lib/portd/server/ledger/tracked.h"
#include "tests/unit/test.h"

#define MODEL_CLIENT	3 /* the client's index, and its port's handle */
#define MODEL_HANDLE	5
#define MODEL_OUR_GUID	0xa
#define MODEL_PEER_GUID 0xb
#define MODEL_CONNS	12
#define MODEL_PACKETS	64

enum who {
	OURS,
	PEER,
};

struct side {
	struct cm_core core;
	struct cm_port port;
	struct cm_service service;
	struct mad_path path; /* to the other end */
	struct cm_conn *conn[MODEL_CONNS];
};

/* A record in a socket between client and cmportd, or a MAD on the wire. */
struct packet {
	enum {
		NONE,
		MAD,
		CLOSE,
		TRACK,
	} kind;
	enum who to;
	uint8_t mad[MAD_BYTES];
	struct portd_close close;
	struct cm_record tracked;
};

struct queue {
	struct packet packet[MODEL_PACKETS];
	unsigned int n;
};

struct model {
	unsigned int seed;
	struct cm_time now;
	struct side side[2];
	struct tracker *tracker;
	uint32_t n_heard; /* MADs that the client has received */
	struct packet wire[MODEL_PACKETS];
	bool has_given_up[CM_ID_BLOCK]; /* our unanswered connections, by comm id */

	/*
	 * With crossing messages, they stay in the sockets between client and cmportd for a while.
	 */
	bool crosses;
	struct queue to_client;
	struct queue to_portd;
	struct queue closes; /* of the current step: sent after its messages */

	/* Called, if set, when cmportd refuses a message of the client. */
	void (*refused)(const struct cm_msg *msg);
};

extern struct model model; /* the only one */

/** model_begin() - start with both sides empty. */
void model_begin(unsigned int seed, bool crosses);

/** model_end() - free all. */
void model_end(void);

/** model_step() - one random event: a message, a call, time, rarely a restart of the peer. */
void model_step(void);

/** model_settle() - run both ends on a perfect wire until nothing is left to do. */
void model_settle(void);

/** model_conn() - the connection with a local comm id, or NULL. */
struct cm_conn *model_conn(enum who who, uint32_t local_comm_id);

#endif

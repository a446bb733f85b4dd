/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Single messages of a client and its peer, and an empty tracker that gets them. For the tests of
 * tracked connections.
 */
#ifndef TESTS_UNIT_PORTD_TALK_H
#define TESTS_UNIT_PORTD_TALK_H

#include "lib/portd/server/ledger/tracked.h"
#include "tests/unit/test.h"

#define ME	  1
#define OTHER	  2
#define PORT	  7
#define LOCAL	  UINT32_C(0x00110001)
#define REMOTE	  UINT32_C(0x70000001)
#define OUR_QPN	  0x111
#define PEER_QPN  0x222
#define PEER_GUID UINT64_C(0x0b0b)

extern struct tracker *talk_tracker;
extern uint32_t talk_n_heard; /* in CLOSEs: all, unless a test sets less */
extern const struct mad_path talk_to_peer;
extern const struct mad_path talk_to_stranger;

/** talk_set_up() - create a tracker: the fixture of each test. */
void talk_set_up(void);

/** talk_tear_down() - free it. */
void talk_tear_down(void);

/** talk_msg_of() - make any message, with the comm ids of its sender and its receiver. */
struct cm_msg talk_msg_of(enum cm_attr attr, uint32_t local, uint32_t remote);

/** talk_rej_of() - make a REJ. */
struct cm_msg talk_rej_of(uint32_t local, uint32_t remote, enum cm_msg_answered what,
			  uint16_t reason);

/* Messages with the usual ids. */
struct cm_msg talk_our_req(void);
struct cm_msg talk_peer_req(void);
struct cm_msg talk_our_rep(void);
struct cm_msg talk_peer_rep(void);
struct cm_msg talk_peer_dreq(void);

/** talk_sent_by() - send a message of a client to the peer. Return: as tracker_sent(). */
int talk_sent_by(uint16_t client, struct cm_msg msg);

/** talk_sent() - send a permitted message of ME. */
void talk_sent(struct cm_msg msg);

/** talk_received() - deliver a message of the peer to ME. */
void talk_received(struct cm_msg msg);

/** talk_received_from_stranger() - deliver the same message from another address. */
void talk_received_from_stranger(struct cm_msg msg);

/** talk_establish() - an active connection: REQ sent, REP received, RTU sent. */
void talk_establish(void);

/** talk_accept() - a passive connection, up to the REP. */
void talk_accept(void);

/** talk_by_peer() - the tracked connection with the peer's comm id, or NULL. */
const struct tracked *talk_by_peer(void);

/** talk_by_qpn() - the tracked connection with the peer's queue pair, or NULL. */
const struct tracked *talk_by_qpn(void);

/** talk_state() - state of LOCAL: "ESTABLISHED", "none" */
const char *talk_state(void);

/** talk_ended_by() - a client reports a freed comm id. */
void talk_ended_by(uint16_t client, uint32_t local, uint32_t remote);

#endif

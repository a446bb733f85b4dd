/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One core on a rig: a test acts as the caller, the peer and the clock, and checks the effects. For
 * tests of single steps; pair.h has two cores.
 */
#ifndef TESTS_UNIT_CM_RIG_H
#define TESTS_UNIT_CM_RIG_H

#include "cm/core.h"

#define RIG_SERVICE   UINT64_C(0x01061b58)
#define RIG_OUR_GUID  UINT64_C(0x0a0a0a0a0a0a0a0a)
#define RIG_PEER_GUID UINT64_C(0x0b0b0b0b0b0b0b0b)
#define RIG_OUR_QPN   0x000111
#define RIG_OUR_PSN   0x00aaaa
#define RIG_PEER_PSN  0x00bbbb
#define RIG_QKEY      0x01234567

/* The state of a connection that its core has freed. */
#define RIG_GONE CM_N_STATES

struct rig {
	struct cm_core core;
	struct cm_port port;
	struct cm_service service;
	struct mad_path path; /* to and from the peer */
	struct cm_time now;
	uint32_t our_qpn;
	uint32_t peer_comm_id; /* the peer's comm id ... */
	uint32_t peer_qpn;     /* ... and its queue pair */

	/* Called around each step if set, to check what a step must not do. */
	void (*in_step)(bool begins);

	struct cm_conn *conn;  /* under test; NULL once destroyed */
	uint32_t comm_id;      /* its comm id, also after it was destroyed */
	struct cm_effects out; /* of the latest step */
	char sent[CM_SENDS_MAX * 32];
	char reported[CM_REPORTS_MAX * 32];
};

/** rig_init() - a core with one port and one service, and no connection. */
void rig_init(struct rig *rig);

/** rig_fini() - free the core, with its connections. */
void rig_fini(struct rig *rig);

/**
 * rig_reach() - bring a new connection into a state, by legal steps only
 * @state:   the state
 * @passive: as the accepting side, where IDLE is the state after TIMEWAIT
 */
void rig_reach(struct rig *rig, enum cm_state state, bool passive);

/** rig_can_reach() - return whether a state exists on the active or the passive side. */
bool rig_can_reach(enum cm_state state, bool passive);

/** rig_state() - the state of the connection under test, RIG_GONE if it was freed. */
enum cm_state rig_state(const struct rig *rig);

/** rig_call() - make a call with usual arguments. Return: as cm_core_call(). */
int rig_call(struct rig *rig, enum cm_event verb);

/** rig_msg() - a message as the peer of the connection under test would send it. */
struct cm_msg rig_msg(const struct rig *rig, enum cm_attr attr);

/** rig_deliver() - deliver a message of the peer. */
void rig_deliver(struct rig *rig, const struct cm_msg *msg);

/** rig_timer() - wait for the next deadline. Return: false if there is none. */
bool rig_timer(struct rig *rig);

/**
 * rig_establish_other() - establish a second connection to the same peer, with the given ids.
 *
 * Return: that connection; it is ESTABLISHED, and not the one under test.
 */
struct cm_conn *rig_establish_other(struct rig *rig, uint32_t peer_comm_id, uint32_t peer_qpn);

/** rig_sent_msg() - the @i-th message of the latest step, decoded. */
struct cm_msg rig_sent_msg(const struct rig *rig, unsigned int i);

/** rig_sent() - the messages of the last step as text: "REJ(REP) 10, DREQ". */
const char *rig_sent(struct rig *rig);

/** rig_reported() - the reports of the last step as text: "DISCONNECTED -110". */
const char *rig_reported(struct rig *rig);

#endif

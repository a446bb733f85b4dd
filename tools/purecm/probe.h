/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A CM round trip without a program's connection: a REQ, and what comes back.
 *
 * It goes through cmportd, as a program's own would. The queue pair that the REQ names exists, so
 * that no peer takes it for one of a living connection, and is never moved.
 */
#ifndef TOOLS_PURECM_PROBE_H
#define TOOLS_PURECM_PROBE_H

#include "mad/cm_msg.h"
#include "tools/purecm/checkup.h"

enum probe_result {
	PROBE_REP,     /* somebody listens, and accepted; turned down at once */
	PROBE_REJ,     /* a connection manager is there */
	PROBE_PATIENT, /* MRA, and then nothing: a program has the request */
	PROBE_SILENCE,
	PROBE_STOPPED, /* by a signal */
};

struct probe_answer {
	enum probe_result result;
	uint16_t reason; /* of a REJ */
	double ms;	 /* until the first answer */
};

struct probe;

/**
 * probe_open() - be able to send requests towards an address
 * @checkup: its way is known: has_gid, has_route, has_iface; outlives the probe
 * @port:    of the TCP port space; 0 is one where nobody listens
 * @ret:     to be given back with probe_close()
 *
 * Return: 0; -errno, after a complaint.
 */
int probe_open(struct checkup *checkup, uint16_t port, struct probe **ret);

/**
 * probe_shoot() - send one request and wait
 * @timeout_ms: how long for an answer
 *
 * Return: 0; -errno, after a complaint, if cmportd is gone or cannot send.
 */
int probe_shoot(struct probe *probe, unsigned int timeout_ms, struct probe_answer *ret);

/** probe_close() - NULL is allowed. */
void probe_close(struct probe *probe);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A CM round trip without a connection: a REQ and its response.
 *
 * The REQ is sent through cmportd, like a program's. Its queue pair exists, so that no peer takes
 * the number for that of a live connection, and stays in RESET.
 */
#ifndef TOOLS_PURECM_PROBE_H
#define TOOLS_PURECM_PROBE_H

#include "mad/cm_msg.h"
#include "tools/purecm/checkup.h"

enum probe_result {
	PROBE_REP,     /* a listener has accepted; rejected at once */
	PROBE_REJ,     /* there is a connection manager */
	PROBE_PATIENT, /* MRA and no more: a program has the request */
	PROBE_SILENCE,
	PROBE_STOPPED, /* by a signal */
};

struct probe_answer {
	enum probe_result result;
	uint16_t reason; /* of a REJ */
	double ms;	 /* until the first response */
};

struct probe;

/**
 * probe_open() - prepare to send requests to an address
 * @checkup: with has_gid, has_route, has_iface; must outlive the probe
 * @port:    of the TCP port space; 0 for one without listener
 * @ret:     to be released with probe_close()
 *
 * Return: 0; -errno, after an error message.
 */
int probe_open(struct checkup *checkup, uint16_t port, struct probe **ret);

/**
 * probe_shoot() - send one request and wait for the response
 * @timeout_ms: timeout in milliseconds
 *
 * Return: 0; -errno, after an error message, if cmportd has ended or cannot send.
 */
int probe_shoot(struct probe *probe, unsigned int timeout_ms, struct probe_answer *ret);

/** probe_close() - free a probe; NULL is allowed */
void probe_close(struct probe *probe);

#endif

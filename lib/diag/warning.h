/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the library warns of with PURECM_LOG=warn: a function for each, and all their texts in
 * warning.c. docs/errors.md shows them, printed by tests/docs/errors.c. What was wrong with an
 * address or a route is failure.h's.
 *
 * None of them changes errno. May be called with any lock held. An @err is a negative errno.
 */
#ifndef LIB_DIAG_WARNING_H
#define LIB_DIAG_WARNING_H

#include <rdma/rdma_cma.h>
#include <stdint.h>

/* What a peer of a socket said that it may not say. */
enum socket_lie {
	SOCKET_LIE_DATA,
	SOCKET_LIE_CREDIT,
	SOCKET_LIE_HALF,
	SOCKET_LIE_INDEX,
	SOCKET_LIE_CONTROL,
	SOCKET_LIE_OPERATION,
	SOCKET_N_LIES,
};

/** warning_of_device() - a device cannot be opened. */
void warning_of_device(const char *device, int err);

/**
 * warning_of_port() - the CM class of a port is not to be had
 * @what:   who has it, or empty
 * @remedy: what helps, or empty
 */
void warning_of_port(const char *device, uint8_t port_num, int err, const char *what,
		     const char *remedy);

/** warning_of_port_lost() - cmportd has lost a port that it had. */
void warning_of_port_lost(const char *device, uint8_t port_num, int err);

/** warning_of_removal() - a device is gone. */
void warning_of_removal(const char *device);

/** warning_of_cmportd() - cmportd cannot be reached or started. @why: in words, or empty */
void warning_of_cmportd(const char *why, int err);

/** warning_of_cmportd_lost() - cmportd has ended and there is no other. */
void warning_of_cmportd_lost(int err);

/** warning_of_claim() - another process has taken a port number. @port: host byte order */
void warning_of_claim(uint16_t port, int err);

/** warning_of_untracked() - without memory cmportd does not know what to do when this process ends.
 */
void warning_of_untracked(void);

/** warning_of_requests() - without memory requests of peers are dropped. */
void warning_of_requests(void);

/** warning_of_event() - without memory an event is lost. */
void warning_of_event(enum rdma_cm_event_type type);

/** warning_of_new_id() - the id of a request has neither device nor path. */
void warning_of_new_id(int err);

/** warning_of_queue_pair() - a device refuses to move a queue pair to @state. */
void warning_of_queue_pair(uint32_t qp_num, enum ibv_qp_state state, int err);

/** warning_of_ibacm() - ibacm answers with what is none. */
void warning_of_ibacm(int err);

/** warning_of_peer() - a socket's peer does not keep to the rules. @message: what came */
void warning_of_peer(int fd, enum socket_lie lie, uint32_t message);

/** warning_of_variable() - an environment variable has a value that nobody understands. */
void warning_of_variable(const char *name, const char *text);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Extensions of purecm over stock librdmacm. Include this in addition to <rdma/rdma_cma.h>.
 *
 * The options below need no symbol, so a program that sets them also runs with the stock library,
 * where rdma_set_option() fails with ENOSYS. The functions are exported under the version
 * PURECM_1.0; a program that is to run with both libraries looks them up with dlsym().
 *
 * Environment variables, read once when a program first uses the library
 * - PURECM_LOG: what to log to standard error. Unset or "off": nothing. "warn": problems that were
 *   tolerated. "debug": also every message and every change of state.
 * - PURECM_CONNECT_TIMEOUT_MS, PURECM_RETRIES: defaults for the options of these names.
 *   PURECM_RETRY_WAITS_MS likewise: "FIRST,LAST". `purecm run` sets them. Invalid values are
 *   ignored, and logged with PURECM_LOG=warn. Ignored in set-user-ID programs
 */
#ifndef PURECM_PURECM_H
#define PURECM_PURECM_H

#include <stddef.h>
#include <stdint.h>
#include <rdma/rdma_cma.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The library is built with -fvisibility=hidden; it exports what is declared here. */
#pragma GCC visibility push(default)

/* Level for rdma_set_option(): the letters p, c, m, far from any stock level. */
#define PURECM_OPTION 0x70636d

/**
 * enum purecm_option - options of level PURECM_OPTION
 * @PURECM_OPTION_CONNECT_TIMEOUT_MS: uint32_t, above 0. Timeout in milliseconds after which an
 *                                    unanswered request (rdma_connect()) or response
 *                                    (rdma_accept()) ends with RDMA_CM_EVENT_UNREACHABLE. A peer
 *                                    can extend it with MRA. Must be set before that call,
 *                                    otherwise rdma_set_option() fails with EINVAL
 * @PURECM_OPTION_RETRY_WAITS: struct purecm_retry_waits. Intervals between retransmissions of a
 *                             request, a response or a disconnect request. Must be set before the
 *                             call that sends it, otherwise EINVAL
 * @PURECM_OPTION_RETRIES: uint32_t, at most 254. Maximum number of retransmissions of each of
 *                         these, 15 by default; with PURECM_OPTION_CONNECT_TIMEOUT_MS, whichever
 *                         ends first. Must be set before the call that sends it, otherwise EINVAL
 */
enum purecm_option {
	PURECM_OPTION_CONNECT_TIMEOUT_MS = 1,
	PURECM_OPTION_RETRY_WAITS = 2,
	PURECM_OPTION_RETRIES = 3,
};

/**
 * struct purecm_retry_waits - retransmission intervals
 * @first_ms: interval after the first transmission, in milliseconds; doubled after each further one
 * @last_ms:  maximum interval, in milliseconds; at least @first_ms
 *
 * Both zero for the default: 1 s four times, then 2 s, then 4 s each. Without
 * PURECM_OPTION_CONNECT_TIMEOUT_MS there are 16 transmissions. A peer can extend the interval with
 * MRA.
 */
struct purecm_retry_waits {
	uint32_t first_ms;
	uint32_t last_ms;
};

/**
 * purecm_reject_str() - describe the reason of a rejection
 * @reason: status of RDMA_CM_EVENT_REJECTED: REJ reason, IBTA vol. 1, table 109
 *
 * Return: a static string; never NULL.
 */
const char *purecm_reject_str(int reason);

/**
 * purecm_sidr_str() - describe the status of the response to a datagram request
 * @status: positive status of RDMA_CM_EVENT_UNREACHABLE: SIDR_REP status, IBTA vol. 1, 12.11
 *
 * Return: a static string; never NULL.
 */
const char *purecm_sidr_str(int status);

/**
 * purecm_last_failure() - explain the last failure to bind or resolve
 * @id:    id of the failed rdma_bind_addr(), rdma_resolve_addr() or rdma_resolve_route(), whether
 *         it failed with errno or with an event
 * @text:  filled in with a sentence, NUL-terminated, truncated if necessary
 * @bytes: size of @text, above 0; 256 is enough
 *
 * The sentence is about the last failure on this host and stays until the next one; calls that
 * succeed do not clear it. Errors from a peer are in its event: see purecm_reject_str().
 *
 * Return: 0, or -1 with errno set: ENOENT if nothing has failed, EINVAL.
 */
int purecm_last_failure(struct rdma_cm_id *id, char *text, size_t bytes);

/* The messages of the CM class, in the order of their attribute ids. */
enum purecm_message {
	PURECM_REQ,
	PURECM_MRA,
	PURECM_REJ,
	PURECM_REP,
	PURECM_RTU,
	PURECM_DREQ,
	PURECM_DREP,
	PURECM_SIDR_REQ,
	PURECM_SIDR_REP,
	PURECM_LAP,
	PURECM_APR,
	PURECM_N_MESSAGES,
};

/**
 * struct purecm_counters - messages of this process since its first id
 * @sent:        by kind, without retransmissions
 * @received:    by kind, including dropped ones
 * @repeated:    retransmissions
 * @duplicate:   received duplicates; each is answered again if there was an answer
 * @malformed:   dropped: not a message of the CM class
 * @unknown:     dropped: its ids name no connection
 * @alien:       dropped: not from the connection's peer
 * @unexpected:  dropped: not legal in the connection's state
 * @no_memory:   dropped: a request, out of memory; the peer retransmits it
 * @unsupported: dropped: a kind that is not supported
 */
struct purecm_counters {
	uint64_t sent[PURECM_N_MESSAGES];
	uint64_t received[PURECM_N_MESSAGES];
	uint64_t repeated;
	uint64_t duplicate;
	uint64_t malformed;
	uint64_t unknown;
	uint64_t alien;
	uint64_t unexpected;
	uint64_t no_memory;
	uint64_t unsupported;
};

/**
 * purecm_get_counters() - read the counters
 * @counters: filled in
 * @bytes:    sizeof(*counters) as the program was compiled; members that the library does not know
 *            become zero
 *
 * Return: 0, or -1 with errno set: EINVAL if @counters is NULL.
 */
int purecm_get_counters(struct purecm_counters *counters, size_t bytes);

/* What purecm_set_trace() reports. */
enum purecm_trace_kind {
	PURECM_TRACE_SENT,
	PURECM_TRACE_RECEIVED,
	PURECM_TRACE_STATE,
};

/**
 * struct purecm_trace - one message, or one change of a connection's state
 * @kind:          which of them; the members of the other are zero
 * @time_ns:       CLOCK_MONOTONIC, in nanoseconds
 * @device:        messages: name of the RDMA device
 * @port_num:      messages: port of the device
 * @peer:          messages: GID of the peer
 * @mad:           messages: the whole MAD, in wire format
 * @mad_bytes:     messages: 256
 * @local_comm_id: states: comm id of the connection in host byte order, as in its messages
 * @from:          states: previous state, as named in docs/state-machine.md
 * @to:            states: current state, which may be the same
 * @why:           states: the event that caused the change
 */
struct purecm_trace {
	enum purecm_trace_kind kind;
	uint8_t port_num;
	uint32_t local_comm_id;
	uint64_t time_ns;
	const char *device;
	union ibv_gid peer;
	const void *mad;
	size_t mad_bytes;
	const char *from;
	const char *to;
	const char *why;
};

/* @trace and what it points to are valid only until the function returns. */
typedef void (*purecm_trace_fn)(const struct purecm_trace *trace, void *arg);

/**
 * purecm_set_trace() - report each message and each change of state
 * @fn:  called from any thread, possibly from several at once, and possibly with locks of the
 *       library held: it must return soon, and must not call the library. NULL for none
 * @arg: passed to @fn
 *
 * Replaces the previous function, which is not called any more after this returns.
 */
void purecm_set_trace(purecm_trace_fn fn, void *arg);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* PURECM_PURECM_H */

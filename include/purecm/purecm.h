/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What purecm can do and stock librdmacm cannot. Programs that want it include this beside
 * <rdma/rdma_cma.h>.
 *
 * The options below need no symbol, so a program that sets them runs over the stock library too:
 * there rdma_set_option() answers ENOSYS. The functions are exported under the version PURECM_1.0;
 * a program that is to run over both looks them up with dlsym().
 *
 * Environment, read once when a program first uses the library
 * - PURECM_LOG: what goes to standard error. Unset or empty: nothing. "warn": what was tolerated
 *   but is not as it should be. "debug": also every message and every change of state.
 * - PURECM_CONNECT_TIMEOUT_MS, PURECM_RETRIES: what ids have unless the program sets the option of
 *   that name. PURECM_RETRY_WAITS_MS likewise: "FIRST,LAST". `purecm run` sets them. Values that
 *   make no sense are as none, and PURECM_LOG=warn tells of them. Not for set-user-ID programs
 */
#ifndef PURECM_PURECM_H
#define PURECM_PURECM_H

#include <stddef.h>
#include <stdint.h>
#include <rdma/rdma_cma.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The library is built with -fvisibility=hidden: what is declared here is what it exports. */
#pragma GCC visibility push(default)

/* Level for rdma_set_option(); the letters p, c, m, so that no stock level comes near. */
#define PURECM_OPTION 0x70636d

/**
 * enum purecm_option - options of level PURECM_OPTION
 * @PURECM_OPTION_CONNECT_TIMEOUT_MS: uint32_t, above 0. How long a request (rdma_connect()) or
 *      an answer (rdma_accept()) is repeated to a peer that stays silent, before
 *      RDMA_CM_EVENT_UNREACHABLE. A peer that asks for more time gets it. To be set before the
 *      call it is for, else rdma_set_option() fails with EINVAL
 * @PURECM_OPTION_RETRY_WAITS: struct purecm_retry_waits. How long the library waits for an answer
 *      before it repeats a request, an answer or a disconnect request. To be set before the call it
 *      is for, else EINVAL
 * @PURECM_OPTION_RETRIES: uint32_t, at most 254. How often each of these is repeated before the
 *      peer counts as silent, 15 times by default; with PURECM_OPTION_CONNECT_TIMEOUT_MS whichever
 *      ends first. To be set before the call it is for, else EINVAL
 */
enum purecm_option {
	PURECM_OPTION_CONNECT_TIMEOUT_MS = 1,
	PURECM_OPTION_RETRY_WAITS = 2,
	PURECM_OPTION_RETRIES = 3,
};

/**
 * struct purecm_retry_waits - when to say it again
 * @first_ms: wait after the first transmission; after each further one it is twice as long
 * @last_ms:  and at most so long; not less than @first_ms
 *
 * Both zero for the default: 1 s four times, then 2 s, then 4 s each. Without
 * PURECM_OPTION_CONNECT_TIMEOUT_MS 16 transmissions are made. A peer that asks for more time gets
 * it.
 */
struct purecm_retry_waits {
	uint32_t first_ms;
	uint32_t last_ms;
};

/**
 * purecm_reject_str() - what the reason of a rejection means
 * @reason: status of RDMA_CM_EVENT_REJECTED: REJ reason, IBTA vol. 1, table 109
 *
 * Return: a phrase that is never freed; never NULL.
 */
const char *purecm_reject_str(int reason);

/**
 * purecm_sidr_str() - what the status of an answer to a datagram request means
 * @status: positive status of RDMA_CM_EVENT_UNREACHABLE: SIDR_REP status, IBTA vol. 1, 12.11
 *
 * Return: a phrase that is never freed; never NULL.
 */
const char *purecm_sidr_str(int status);

/**
 * purecm_last_failure() - what was wrong with which address or route, in words
 * @id:    whose rdma_bind_addr(), rdma_resolve_addr() or rdma_resolve_route() failed, by errno or
 * by an event
 * @text:  filled with a sentence, ended by a zero, cut if need be
 * @bytes: room in @text, above 0; 256 are enough
 *
 * The sentence is of the last failure on this host and stays until the next; a call that succeeds
 * does not take it away. What a peer says is in its event: see purecm_reject_str().
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
 * @sent:        by kind, without repetitions
 * @received:    by kind, dropped ones included
 * @repeated:    sent again, for want of an answer
 * @duplicate:   received again; the answer was repeated if there was one
 * @malformed:   dropped: no message of the CM class
 * @unknown:     dropped: its ids name no connection
 * @alien:       dropped: not from the connection's peer
 * @unexpected:  dropped: means nothing in the connection's state
 * @no_memory:   dropped: a request, for want of memory; the peer repeats it
 * @unsupported: dropped: of a kind that is not served
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
 * @counters: filled
 * @bytes:    sizeof(*counters) as the program knows it; members that the library does not know are
 *            zero
 *
 * Return: 0, or -1 with errno set: EINVAL for no @counters.
 */
int purecm_get_counters(struct purecm_counters *counters, size_t bytes);

/* What purecm_set_trace() tells of. */
enum purecm_trace_kind {
	PURECM_TRACE_SENT,
	PURECM_TRACE_RECEIVED,
	PURECM_TRACE_STATE,
};

/**
 * struct purecm_trace - one message, or one change of a connection's state
 * @kind:          which; the other one's members are zero
 * @time_ns:       CLOCK_MONOTONIC
 * @device:        messages: name of the RDMA device
 * @port_num:      messages: its port
 * @peer:          messages: GID of the other end
 * @mad:           messages: the whole MAD, as on the wire
 * @mad_bytes:     messages: 256
 * @local_comm_id: states: of the connection, host byte order; it is in its messages, too
 * @from:          states: the state it was in, as in the table of docs/state-machine.md
 * @to:            states: the state it is in now, which may be the same
 * @why:           states: what happened to it
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

/* @trace and what it points to are the library's, and gone when the function returns. */
typedef void (*purecm_trace_fn)(const struct purecm_trace *trace, void *arg);

/**
 * purecm_set_trace() - have each message and each change of state told
 * @fn:  called from any thread, in several at once, also with locks of the library held: it must
 *       return soon, and call no function of the library. NULL for none
 * @arg: handed to it
 *
 * Takes the place of the function given before, which is not called any more when this returns.
 */
void purecm_set_trace(purecm_trace_fn fn, void *arg);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* PURECM_PURECM_H */

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The debug log, and calls of the program's trace function: see trace.h. Costs a test of two flags
 * when neither is enabled.
 */
#include "lib/engine/trace.h"

#include <arpa/inet.h>
#include <purecm/purecm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "lib/api.h"
#include "lib/engine/engine.h"

/* --- the program's function ------------------------------------------------ */

/* Read-locked while the function runs. */
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static purecm_trace_fn function;
static void *function_arg;
static bool is_wanted; /* atomic; avoids the lock if there is no function */

void purecm_set_trace(purecm_trace_fn fn, void *arg)
{
	int cancel_state = api_enter();

	pthread_rwlock_wrlock(&lock);
	function = fn;
	function_arg = arg;
	__atomic_store_n(&is_wanted, fn != NULL, __ATOMIC_RELAXED);
	pthread_rwlock_unlock(&lock);
	api_leave(cancel_state);
}

void trace_after_fork(void)
{
	pthread_rwlock_init(&lock, NULL);
}

static bool has_function(void)
{
	return __atomic_load_n(&is_wanted, __ATOMIC_RELAXED);
}

static void call_function(struct purecm_trace *trace)
{
	trace->time_ns = clock_now().ns;
	pthread_rwlock_rdlock(&lock);
	if (function)
		function(trace, function_arg);
	pthread_rwlock_unlock(&lock);
}

static void call_for_message(char way, const struct port *port, const struct mad_path *path,
			     const uint8_t mad[MAD_BYTES])
{
	struct purecm_trace trace = {
		.kind = way == '<' ? PURECM_TRACE_RECEIVED : PURECM_TRACE_SENT,
		.device = ibv_get_device_name(port->device->verbs->device),
		.port_num = port->port_num,
		.mad = mad,
		.mad_bytes = MAD_BYTES,
	};

	memcpy(&trace.peer, &path->dgid, sizeof(trace.peer));
	call_function(&trace);
}

static void call_for_step(const struct cm_conn *conn, enum cm_state from, enum cm_event why)
{
	struct purecm_trace trace = {
		.kind = PURECM_TRACE_STATE,
		.local_comm_id = conn->local_comm_id,
		.from = cm_state_str(from),
		.to = cm_state_str(conn->state),
		.why = cm_event_str(why),
	};

	call_function(&trace);
}

/* --- the log ----------------------------------------------------------------- */

static void log_message(char way, const struct port *port, const struct mad_path *path,
			const uint8_t mad[MAD_BYTES])
{
	char peer[INET6_ADDRSTRLEN] = "?";
	struct cm_msg msg;
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	if (!out)
		return;
	if (cm_msg_decode(mad, MAD_BYTES, &msg))
		fputs("not a CM message", out);
	else
		cm_msg_print(&msg, out);
	fclose(out);
	inet_ntop(AF_INET6, path->dgid.raw, peer, sizeof(peer));
	log_debug("%s/%u %c %s: %s", ibv_get_device_name(port->device->verbs->device),
		  port->port_num, way, peer, text);
	free(text);
}

void trace_message(char way, const struct port *port, const struct mad_path *path,
		   const uint8_t mad[MAD_BYTES])
{
	if (has_function())
		call_for_message(way, port, path, mad);
	if (log_is_debug())
		log_message(way, port, path, mad);
}

void trace_step(const struct cm_conn *conn, enum cm_state from, enum cm_event why)
{
	if (has_function())
		call_for_step(conn, from, why);
	if (log_is_debug())
		log_debug("conn 0x%08x %s -> %s, %s", conn->local_comm_id, cm_state_str(from),
			  cm_state_str(conn->state), cm_event_str(why));
}

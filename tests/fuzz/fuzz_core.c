/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any sequence of calls, messages and waits into the core. A message may name the ids of live
 * connections, so that it passes the lookup. In the end everything is destroyed, and after the
 * longest wait nothing may be left: no connection, no timer, no index entry.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cm/core.h"

#define CONNS_MAX   8
#define SERVICE_ID  UINT64_C(0x1061c06)
#define LONG_NS	    (UINT64_C(2000) * 1000 * CM_NS_PER_MS)
#define WAIT_MS_MAX 100000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

struct world {
	struct cm_core core;
	struct cm_port port;
	struct cm_service service;
	struct cm_conn *conn[CONNS_MAX];
	struct cm_time now;
	struct cm_effects fx;
	const uint8_t *data;
	size_t left;
};

static uint8_t next_input_byte(struct world *w)
{
	if (w->left == 0)
		return 0;
	w->left--;
	return *w->data++;
}

static struct cm_conn **slot(struct world *w)
{
	return &w->conn[next_input_byte(w) % CONNS_MAX];
}

static void adopt(struct world *w, struct cm_conn *conn)
{
	int i;

	for (i = 0; i < CONNS_MAX; i++) {
		if (w->conn[i])
			continue;
		w->conn[i] = conn;
		conn->owner = w;
		return;
	}
	cm_core_call(&w->core, conn, CM_CALL_DESTROY, NULL, w->now, &w->fx);
}

static void handle(struct world *w)
{
	struct cm_effects fx = w->fx;
	unsigned int i;

	for (i = 0; i < fx.n_reports; i++)
		if (fx.report[i].kind == CM_REPORT_REQUEST)
			adopt(w, fx.report[i].conn);
}

static void forge_path(struct world *w, struct mad_path *path)
{
	*path = (struct mad_path){ .grh = true };
	path->dgid.raw[15] = next_input_byte(w) & 3;
}

/* A message from a short description: its kind, whose ids it names, and some raw bytes. */
static void do_message(struct world *w)
{
	struct cm_conn *conn = *slot(w);
	uint8_t mad[MAD_BYTES] = { 1, MAD_CLASS_CM, MAD_CM_VERSION, MAD_METHOD_SEND };
	struct mad_path path;
	unsigned int i, n, at;
	struct cm_msg msg;

	mad[17] = next_input_byte(w);
	n = next_input_byte(w) % 32;
	for (i = 0; i < n; i++) {
		at = MAD_HDR_BYTES + next_input_byte(w) % (MAD_BYTES - MAD_HDR_BYTES);
		mad[at] = next_input_byte(w);
	}
	forge_path(w, &path);
	if (conn && !cm_msg_decode(mad, MAD_BYTES, &msg)) {
		if (msg.hdr.attr_id == CM_ATTR_REQ) {
			msg.req.service_id = SERVICE_ID;
		} else if (msg.hdr.attr_id == CM_ATTR_SIDR_REQ) {
			msg.sidr_req.service_id = SERVICE_ID;
		} else if (msg.hdr.attr_id == CM_ATTR_SIDR_REP) {
			msg.sidr_rep.request_id = conn->local_comm_id;
			path = conn->path;
		} else {
			msg.rtu.local_comm_id = conn->remote_comm_id ? conn->remote_comm_id : 7;
			msg.rtu.remote_comm_id = conn->local_comm_id;
			path = conn->path;
		}
		if (msg.hdr.attr_id == CM_ATTR_DREQ)
			msg.dreq.remote_qpn = conn->local_qpn;
		cm_msg_encode(&msg, mad);
	}
	cm_core_reserve(&w->core);
	cm_core_input(&w->core, &w->port, &path, mad,
		      next_input_byte(w) ? MAD_BYTES : next_input_byte(w), w->now, &w->fx);
	handle(w);
}

static void do_new(struct world *w)
{
	struct cm_conn **to = slot(w);

	if (!*to)
		*to = cm_core_conn_new(&w->core, w);
}

static enum cm_attr attr_of(enum cm_event call)
{
	if (call == CM_CALL_REQ)
		return CM_ATTR_REQ;
	if (call == CM_CALL_REP)
		return CM_ATTR_REP;
	if (call == CM_CALL_SIDR_REQ)
		return CM_ATTR_SIDR_REQ;
	return call == CM_CALL_SIDR_REP ? CM_ATTR_SIDR_REP : CM_ATTR_REJ;
}

static void do_call(struct world *w)
{
	struct cm_conn **which = slot(w);
	enum cm_event verb = (enum cm_event)(next_input_byte(w) % (CM_CALL_FORGET + 1));
	struct cm_msg msg;
	struct mad_path path;
	struct cm_args args = { .port = &w->port, .path = &path, .msg = &msg };

	forge_path(w, &path);
	cm_msg_init(&msg, attr_of(verb), 1);
	if (verb == CM_CALL_REQ)
		msg.req.local_qpn = next_input_byte(w);
	if (!*which)
		return;
	if (cm_core_call(&w->core, *which, verb, &args, w->now, &w->fx))
		return;
	if (verb == CM_CALL_DESTROY || verb == CM_CALL_FORGET)
		*which = NULL;
}

/* As cmportd handles connections of ended clients: any state, ended at once. */
static void do_adopt(struct world *w)
{
	struct cm_record of = {
		.state = (enum cm_state)(next_input_byte(w) % CM_N_STATES),
		.active = next_input_byte(w) & 1,
		.local_comm_id = next_input_byte(w) & 1 ? next_input_byte(w) : 0,
		.remote_comm_id = next_input_byte(w),
		.remote_ca_guid = next_input_byte(w) & 1 ? SERVICE_ID : 0,
		.local_qpn = next_input_byte(w),
		.remote_qpn = next_input_byte(w),
		.packet_life_time = next_input_byte(w) & 0x1f,
		.local_ack_timeout = next_input_byte(w) & 0x1f,
	};
	struct cm_conn *conn;

	forge_path(w, &of.path);
	conn = cm_core_adopt(&w->core, &of, &w->port, NULL);
	if (conn)
		assert(!cm_core_call(&w->core, conn, CM_CALL_DESTROY, NULL, w->now, &w->fx));
}

static void expire_all(struct world *w)
{
	while (cm_core_expire(&w->core, w->now, &w->fx))
		handle(w);
}

static void do_wait(struct world *w)
{
	uint64_t ms = (uint64_t)next_input_byte(w) * next_input_byte(w) % WAIT_MS_MAX;

	w->now = cm_time_after(w->now, ms * CM_NS_PER_MS);
	expire_all(w);
}

static void end(struct world *w)
{
	int i;

	for (i = 0; i < CONNS_MAX; i++)
		if (w->conn[i])
			assert(!cm_core_call(&w->core, w->conn[i], CM_CALL_DESTROY, NULL, w->now,
					     &w->fx));
	for (i = 0; i < 100; i++) {
		w->now = cm_time_after(w->now, LONG_NS);
		while (cm_core_expire(&w->core, w->now, &w->fx))
			;
	}
	assert(w->core.n_conns == 0);
	assert(w->core.by_remote.table.n_nodes == 0 && w->core.by_qpn.table.n_nodes == 0);
	assert(cm_core_deadline(&w->core).ns == UINT64_MAX);
	assert(w->port.requests.out == 0);
	assert(w->port.to_unresponsive.out == 0);
	cm_core_unserve(&w->core, &w->service);
	cm_core_fini(&w->core);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static void (*const does[])(struct world *) = { do_message, do_new, do_call, do_wait,
							do_adopt };
	struct mad_gid gid = { 0 };
	struct world w = { .data = data, .left = bytes };

	if (cm_core_init(&w.core, 42))
		return 0;
	cm_port_init(&w.port, 1, &gid);
	cm_core_serve(&w.core, &w.service, SERVICE_ID);
	while (w.left)
		does[next_input_byte(&w) % (sizeof(does) / sizeof(does[0]))](&w);
	end(&w);
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* All connections of a process, and the functions that drive them: see core.h. */
#include "cm/core.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "cm/action.h"
#include "cm/demux.h"
#include "cm/peer.h"

/* A quarter of the 512 receives that a kernel posts on QP1, so that four peers may send at once. */
#define OUT_MAX	  128

#define SPARE_MIN 1
#define SPARE_MAX 64

static const struct cm_args no_args;

static uint64_t hash_split(uint64_t secret, uint64_t what)
{
	return (secret ^ what) * UINT64_C(0x9e3779b97f4a7c15);
}

int cm_core_init(struct cm_core *core, uint64_t secret)
{
	*core = (struct cm_core){
		.out_max = OUT_MAX,
	};
	cm_ids_init(&core->ids, (uint32_t)(hash_split(secret, 0) >> 32));
	list_init(&core->spare);
	slab_init(&core->conns, sizeof(struct cm_conn));
	if (cm_index_init(&core->by_local, hash_split(secret, 1)) ||
	    cm_index_init(&core->by_remote, hash_split(secret, 2)) ||
	    cm_index_init(&core->by_qpn, hash_split(secret, 3)) ||
	    cm_index_init(&core->peers, hash_split(secret, 4)) ||
	    cm_index_init(&core->services, hash_split(secret, 5))) {
		cm_core_fini(core);
		return -ENOMEM;
	}
	return 0;
}

void cm_core_fini(struct cm_core *core)
{
	slab_fini(&core->conns);
	cm_index_fini(&core->by_local);
	cm_index_fini(&core->by_remote);
	cm_index_fini(&core->by_qpn);
	cm_index_fini(&core->peers);
	cm_index_fini(&core->services);
}

void cm_port_init(struct cm_port *port, uint64_t ca_guid, const struct mad_gid *gid0)
{
	*port = (struct cm_port){ .ca_guid = ca_guid, .gid0 = *gid0 };
	cm_pace_init(&port->requests);
	cm_pace_init(&port->disconnects);
	cm_pace_init(&port->to_unresponsive);
}

/* --- connections --------------------------------------------------------- */

int cm_core_reserve(struct cm_core *core)
{
	size_t n_conns = core->n_conns + SPARE_MIN;
	struct cm_conn *conn;

	if (core->n_spare >= SPARE_MIN)
		return 0;
	if (cm_index_reserve(&core->by_local, n_conns) ||
	    cm_index_reserve(&core->by_remote, n_conns) ||
	    cm_index_reserve(&core->by_qpn, n_conns) || cm_index_reserve(&core->peers, n_conns))
		return -ENOMEM;
	conn = slab_take(&core->conns);
	if (!conn)
		return -ENOMEM;
	list_append(&core->spare, &conn->waiting);
	core->n_spare++;
	return 0;
}

static bool is_free(const struct cm_core *core, uint32_t local_comm_id)
{
	struct cm_key key = { .id = local_comm_id };

	return local_comm_id && !cm_index_find(&core->by_local, &key);
}

/* Return: a free comm id, or 0 if all are in use. */
static uint32_t next_comm_id(struct cm_core *core)
{
	uint64_t left;
	uint32_t id;

	for (left = cm_ids_count(&core->ids); left; left--) {
		id = cm_ids_next(&core->ids);
		if (is_free(core, id))
			return id;
	}
	return 0;
}

struct cm_conn *cm_conn_take_as(struct cm_core *core, uint32_t local_comm_id)
{
	struct cm_key key = { .id = local_comm_id };
	struct cm_conn *conn;

	if (list_is_empty(&core->spare) || !is_free(core, local_comm_id))
		return NULL;
	conn = container_of(core->spare.next, struct cm_conn, waiting);
	list_remove(&conn->waiting);
	core->n_spare--;
	core->n_conns++;
	memset(conn, 0, sizeof(*conn));
	list_init(&conn->waiting);
	list_init(&conn->peer.others);
	conn->local_comm_id = local_comm_id;
	cm_index_insert(&core->by_local, &conn->by_local, &key);
	return conn;
}

struct cm_conn *cm_conn_take(struct cm_core *core)
{
	return list_is_empty(&core->spare) ? NULL : cm_conn_take_as(core, next_comm_id(core));
}

static void give_back(struct cm_core *core, struct cm_conn *conn)
{
	cm_settle(conn, core);
	cm_peer_forget(conn, core);
	cm_unindex_peer(conn, core);
	if (core->released)
		core->released(core, conn);
	cm_index_remove(&core->by_local, &conn->by_local);
	core->n_conns--;
	if (core->n_spare >= SPARE_MAX) {
		slab_give(&core->conns, conn);
		return;
	}
	list_append(&core->spare, &conn->waiting);
	core->n_spare++;
}

struct cm_conn *cm_core_conn_new(struct cm_core *core, void *owner)
{
	struct cm_conn *conn;

	if (cm_core_reserve(core))
		return NULL;
	conn = cm_conn_take(core);
	if (conn)
		conn->owner = owner;
	return conn;
}

int cm_core_lend_ids(struct cm_core *core, uint32_t first, uint32_t count)
{
	return cm_ids_lend(&core->ids, first, count);
}

unsigned int cm_core_ids_left(const struct cm_core *core)
{
	return cm_ids_left(&core->ids);
}

/* --- services ------------------------------------------------------------ */

int cm_core_serve(struct cm_core *core, struct cm_service *service, uint64_t service_id)
{
	struct cm_key key = { .guid = service_id };

	if (cm_index_reserve(&core->services, core->services.table.n_nodes + 1))
		return -ENOMEM;
	cm_index_insert(&core->services, &service->node, &key);
	return 0;
}

static struct cm_service *service_of(struct cm_node *node)
{
	return node ? container_of(node, struct cm_service, node) : NULL;
}

struct cm_service *cm_core_service(const struct cm_core *core, uint64_t service_id)
{
	struct cm_key key = { .guid = service_id };

	return service_of(cm_index_find(&core->services, &key));
}

struct cm_service *cm_core_next_service(const struct cm_service *service)
{
	return service_of(cm_index_next(&service->node));
}

void cm_core_unserve(struct cm_core *core, struct cm_service *service)
{
	cm_index_remove(&core->services, &service->node);
}

/* --- driving the core ----------------------------------------------------- */

static void begin_step(struct cm_context *ctx, struct cm_core *core, struct cm_time now,
		       struct cm_effects *out)
{
	*ctx = (struct cm_context){ .core = core, .now = now, .args = &no_args, .out = out };
	out->is_known = false;
	out->n_sends = 0;
	out->n_reports = 0;
}

/* An orphan has no owner to answer a DREQ, so answer here; free it when the protocol is done. */
static void tend_orphan(struct cm_context *ctx, struct cm_conn *conn)
{
	if (conn->orphan && conn->state == CM_DREQ_RCVD)
		cm_step(conn, CM_CALL_DREP, ctx);
	if (conn->orphan && (conn->state == CM_IDLE || conn->state == CM_TIMEWAIT))
		give_back(ctx->core, conn);
}

static void finish_step(struct cm_context *ctx, struct cm_conn *conn)
{
	struct cm_port *port = conn->port;

	tend_orphan(ctx, conn);
	if (port)
		cm_admit(port, ctx);
}

void cm_core_input(struct cm_core *core, struct cm_port *port, const struct mad_path *path,
		   const uint8_t *mad, size_t bytes, struct cm_time now, struct cm_effects *out)
{
	struct cm_context ctx;
	struct cm_conn *conn;

	begin_step(&ctx, core, now, out);
	if (cm_msg_decode(mad, bytes, &out->msg)) {
		cm_count(core, port, CM_COUNT_MALFORMED, 0);
		return;
	}
	ctx.msg = &out->msg;
	conn = cm_demux(port, path, &ctx);
	if (conn)
		finish_step(&ctx, conn);
}

int cm_core_call(struct cm_core *core, struct cm_conn *conn, enum cm_event verb,
		 const struct cm_args *args, struct cm_time now, struct cm_effects *out)
{
	bool asks = verb == CM_CALL_REQ || verb == CM_CALL_SIDR_REQ;
	bool ends = verb == CM_CALL_DESTROY || verb == CM_CALL_FORGET;
	bool only_ends = verb == CM_CALL_FORGET || (ends && conn->state == CM_IDLE);
	struct cm_context ctx;
	int err;

	assert(verb <= CM_CALL_FORGET);

	begin_step(&ctx, core, now, out);
	if (args)
		ctx.args = args;
	/*
	 * To a peer that still holds the first request, a second one with the same comm id looks
	 * like a retransmission, and it would pair the new queue pair with the old connection.
	 */
	err = asks && conn->port ? -EINVAL : cm_step(conn, verb, &ctx);
	if (err)
		return err;
	if (ends) {
		conn->orphan = true;
		conn->owner = NULL;
		/*
		 * Only our DREQ still awaits an answer. The peer may reuse its comm id and queue
		 * pair.
		 */
		cm_unindex_peer(conn, core);
	}
	if (only_ends)
		tend_orphan(&ctx, conn);
	else
		finish_step(&ctx, conn);
	return 0;
}

static enum cm_event due_event(const struct cm_conn *conn, struct cm_time now)
{
	if (conn->state == CM_TIMEWAIT)
		return CM_T_TIMEWAIT;
	return cm_retry_is_spent(&conn->retry, now) ? CM_T_SPENT : CM_T_RESPONSE;
}

/* Return: true if a retransmission is postponed because the peer answers other messages. */
static bool wait_longer(struct cm_conn *conn, struct cm_context *ctx)
{
	struct cm_time deadline;

	if (cm_retry_is_spent(&conn->retry, ctx->now))
		return false;
	deadline = cm_peer_overdue(conn, ctx->core);
	if (cm_time_reached(deadline, ctx->now))
		return false;
	if (conn->pace)
		deadline = cm_time_earlier(deadline, cm_peer_slot_until(conn, ctx->core, ctx->now));
	cm_timer_arm(&ctx->core->timers, &conn->timer, deadline);
	cm_admit(conn->port, ctx);
	return true;
}

bool cm_core_expire(struct cm_core *core, struct cm_time now, struct cm_effects *out)
{
	struct cm_timer *timer = cm_timers_pop(&core->timers, now);
	struct cm_context ctx;
	struct cm_conn *conn;
	int err;

	begin_step(&ctx, core, now, out);
	if (!timer)
		return false;
	conn = container_of(timer, struct cm_conn, timer);
	if (wait_longer(conn, &ctx))
		return true;
	err = cm_step(conn, due_event(conn, now), &ctx);
	assert(!err); /* timers run only in states that handle these events */
	(void)err;
	finish_step(&ctx, conn);
	return true;
}

struct cm_time cm_core_deadline(const struct cm_core *core)
{
	return cm_timers_deadline(&core->timers);
}

void cm_core_walk(struct cm_core *core, void (*visit)(struct cm_conn *conn, void *arg), void *arg)
{
	struct cm_conn *conn;

	hash_for_each_entry_safe (conn, &core->by_local.table, by_local.link)
		visit(conn, arg);
}

void cm_core_port_gone(struct cm_core *core, struct cm_port *port,
		       void (*gone)(struct cm_conn *conn, void *arg), void *arg)
{
	struct cm_conn *conn;

	hash_for_each_entry_safe (conn, &core->by_local.table, by_local.link) {
		if (conn->port != port)
			continue;
		if (conn->owner)
			gone(conn, arg);
		give_back(core, conn);
	}
}

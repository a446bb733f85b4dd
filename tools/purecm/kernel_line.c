/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Conversion of lines of the kernel's tracer to messages: see kernel_line.h.
 *
 * src is this host's end. A connection is identified by its two ends; a new one between the same
 * ends is another. A received request is reported for the listener, which has no peer, and then, as
 * CONNECT_REQUEST, for the new connection. cm_send_mra sends nothing unless a request is
 * retransmitted (cm_tx_msgs shows none), so it implies no message.
 *
 * MADs have a transaction id instead of ends. It is learnt when the task that was traced for a
 * connection sends. So retransmissions are seen, and messages without an event of the connection:
 * the DREQ of an id that is destroyed.
 */

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "cm/core.h"
#include "cm/tally.h"
#include "mad/cm_msg.h"
#include "mad/cma_hdr.h"
#include "tools/purecm/kernel_line.h"

#define TASKS	     256
#define CONNS_MAX    4096 /* the latest; messages of older ones are fragments */
#define PKEY_DEFAULT 0xffff
#define CM_TID	     1
#define MRA_OF_REQ   0
#define MRA_OF_REP   1
#define MRA_TIMEOUT  24 /* of every kernel; that of other peers is unknown */
#define REJ_OF_REQ   0
#define REJ_OF_REP   1
#define REJ_OF_OTHER 2

#define BIT_OF(attr) (UINT32_C(1) << ((attr)-CM_ATTR_REQ))

struct conn {
	struct hash_node by_ends;
	struct kernel_end ends[2]; /* ours, the peer's */
	uint32_t number;
	bool is_ours; /* we are the active side */
	bool is_sidr;
	bool has_rep;
	bool has_dreq;	 /* sent by us */
	bool is_dropped; /* a request that was dropped; a retransmission may be accepted */
	bool is_infiniband;
	uint32_t qpn[2];
	struct hash_node by_tid;
	uint64_t tid;
	uint32_t told[2];   /* bitmap of reported kinds of messages: received [0], sent [1] */
	uint32_t traced[2]; /* those of which a MAD was traced */
};

/* The connection that a task was last traced for. */
struct task {
	uint32_t pid;
	uint32_t number; /* of the connection */
	uint32_t kinds;	 /* bitmap of messages that it may send for it */
	bool brings;	 /* it has delivered the request */
	struct conn *conn;
};

struct kernel_lines {
	struct hash table;
	struct hash tids;
	struct task task[TASKS];
	struct conn conn[CONNS_MAX]; /* ring */
	uint32_t n_conns;
	bool is_asked_for_sidr; /* the latest received request was a SIDR_REQ */
	bool has_icm;		/* this kernel reports why it rejects by itself */
	bool has_told_of_af_ib;
};

enum of {
	OF_NONE,
	OF_RC,
	OF_SIDR,
};

/* clang-format off */
/* The meaning of events. The first matching row applies. */
static const struct row {
	const char *event;
	const char *word; /* NULL: any */
	enum cm_attr attr;
	enum observation_way way;
	enum of begins; /* a connection */
	enum of of;	/* of a known connection: OF_NONE is any */
} rows[] = {
	{ "cm_send_req", NULL, CM_ATTR_REQ, WAY_OUT, OF_RC, OF_NONE },
	{ "cm_send_sidr_req", NULL, CM_ATTR_SIDR_REQ, WAY_OUT, OF_SIDR, OF_NONE },
	{ "cm_event_handler", "CONNECT_REQUEST", CM_ATTR_REQ, WAY_IN, OF_RC, OF_NONE },
	{ "cm_event_handler", "CONNECT_REQUEST", CM_ATTR_SIDR_REQ, WAY_IN, OF_SIDR, OF_NONE },
	{ "cm_send_rep", NULL, CM_ATTR_REP, WAY_OUT, OF_NONE, OF_RC },
	{ "cm_send_sidr_rep", NULL, CM_ATTR_SIDR_REP, WAY_OUT, OF_NONE, OF_SIDR },
	{ "cm_send_rtu", NULL, CM_ATTR_RTU, WAY_OUT, OF_NONE, OF_RC },
	{ "cm_send_rej", NULL, CM_ATTR_REJ, WAY_OUT, OF_NONE, OF_RC },
	{ "cm_sent_dreq", NULL, CM_ATTR_DREQ, WAY_OUT, OF_NONE, OF_RC },
	{ "cm_sent_drep", NULL, CM_ATTR_DREP, WAY_OUT, OF_NONE, OF_RC },
	{ "cm_event_handler", "CONNECT_RESPONSE", CM_ATTR_REP, WAY_IN, OF_NONE, OF_RC },
	{ "cm_event_handler", "ESTABLISHED", CM_ATTR_SIDR_REP, WAY_IN, OF_NONE, OF_SIDR },
	{ "cm_event_handler", "ESTABLISHED", CM_ATTR_RTU, WAY_IN, OF_NONE, OF_RC },
	{ "cm_event_handler", "REJECTED", CM_ATTR_REJ, WAY_IN, OF_NONE, OF_RC },
	{ "cm_event_handler", "UNREACHABLE", CM_ATTR_SIDR_REP, WAY_IN, OF_NONE, OF_SIDR },
	{ "cm_event_handler", "UNREACHABLE", CM_ATTR_REJ, WAY_OUT, OF_NONE, OF_RC },
	{ "cm_event_handler", "DISCONNECTED", CM_ATTR_DREQ, WAY_IN, OF_NONE, OF_RC },
};

/* Events after or before which a task sends, and which messages. */
static const struct {
	const char *event;
	uint32_t kinds;
} senders[] = {
	{ "cm_send_req", BIT_OF(CM_ATTR_REQ) },
	{ "cm_send_rep", BIT_OF(CM_ATTR_REP) },
	{ "cm_send_rtu", BIT_OF(CM_ATTR_RTU) },
	{ "cm_send_rej", BIT_OF(CM_ATTR_REJ) },
	{ "cm_send_sidr_req", BIT_OF(CM_ATTR_SIDR_REQ) },
	{ "cm_send_sidr_rep", BIT_OF(CM_ATTR_SIDR_REP) },
	{ "cm_disconnect", BIT_OF(CM_ATTR_DREQ) | BIT_OF(CM_ATTR_DREP) },
	{ "cm_id_destroy", BIT_OF(CM_ATTR_REJ) | BIT_OF(CM_ATTR_DREQ) | BIT_OF(CM_ATTR_DREP) },
};

/* Events that report no message, but why there is none. */
static const struct {
	const char *word;
	const char *text;
} notes[] = {
	{ "ADDR_ERROR", "the address could not be resolved" },
	{ "ROUTE_ERROR", "the route could not be resolved" },
	{ "CONNECT_ERROR", "the connection could not be made" },
	{ "DEVICE_REMOVAL", "the device was removed" },
	{ "ADDR_CHANGE", "the address has moved to another device" },
};

#define REFUSED "a request was refused that no program here has seen: "
#define WHOSE	"; the kernel does not record whose it is"

/* Why the kernel rejects a request by itself. The first matching row applies. */
static const struct {
	const char *event;
	const char *word; /* NULL: any */
	const char *text;
} refusals[] = {
	{ "icm_send_rej", "REJ_INVALID_GID",
	  REFUSED "it names a GID or a partition (P_Key) that this port does not have, or there "
		  "is no way back to its sender (REJ 12)" WHOSE },
	{ "icm_send_rej", NULL, REFUSED "its path is not one of this port" WHOSE },
	{ "icm_no_listener_err", NULL, REFUSED "nobody listens at its port" WHOSE },
	{ "icm_staleconn_err", NULL,
	  REFUSED "this host still has a connection of the same queue pair (REJ 10)" WHOSE },
};
/* clang-format on */

struct kernel_lines *kernel_lines_new(void)
{
	struct kernel_lines *lines = calloc(1, sizeof(*lines));

	if (lines && (hash_init(&lines->table, CONNS_MAX) || hash_init(&lines->tids, CONNS_MAX))) {
		kernel_lines_free(lines);
		return NULL;
	}
	return lines;
}

void kernel_lines_free(struct kernel_lines *lines)
{
	if (lines) {
		hash_fini(&lines->table);
		hash_fini(&lines->tids);
	}
	free(lines);
}

/* --- connections ---------------------------------------------------------- */

static uint64_t hash_of_ends(const struct kernel_end ends[2])
{
	return hash_bytes(ends, 2 * sizeof(*ends));
}

static struct conn *find_conn(struct kernel_lines *lines, const struct kernel_end ends[2])
{
	struct hash_node *node;
	struct conn *conn;

	hash_for_each_match (node, &lines->table, hash_of_ends(ends)) {
		conn = (struct conn *)node;
		if (memcmp(conn->ends, ends, sizeof(conn->ends)) == 0)
			return conn;
	}
	return NULL;
}

static struct conn *begin_conn(struct kernel_lines *lines, const struct kernel_event *event,
			       const struct row *row)
{
	struct conn *conn = &lines->conn[lines->n_conns % CONNS_MAX];

	hash_remove(&lines->table, &conn->by_ends);
	hash_remove(&lines->tids, &conn->by_tid);
	*conn = (struct conn){ .number = ++lines->n_conns,
			       .is_ours = row->way == WAY_OUT,
			       .is_sidr = row->begins == OF_SIDR };
	memcpy(conn->ends, event->ends, sizeof(conn->ends));
	hash_insert(&lines->table, &conn->by_ends, hash_of_ends(conn->ends));
	return conn;
}

static bool row_fits(const struct kernel_lines *lines, const struct row *row,
		     const struct kernel_event *event, const struct conn *conn)
{
	if (strcmp(row->event, event->name) != 0 ||
	    (row->word && strcmp(row->word, event->word) != 0))
		return false;
	if (row->begins)
		return row->way == WAY_OUT || lines->is_asked_for_sidr == (row->begins == OF_SIDR);
	return conn && (row->of == OF_NONE || conn->is_sidr == (row->of == OF_SIDR));
}

static const struct row *find_row(const struct kernel_lines *lines,
				  const struct kernel_event *event, const struct conn *conn)
{
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (row_fits(lines, &rows[i], event, conn))
			return &rows[i];
	}
	return NULL;
}

/* For events other than the sending ones, a worker handles any connection. */
static void remember_task(struct kernel_lines *lines, const struct kernel_event *event,
			  struct conn *conn)
{
	struct task *task = &lines->task[event->pid % TASKS];
	size_t i;

	*task = (struct task){ .pid = event->pid,
			       .brings = strcmp(event->word, "CONNECT_REQUEST") == 0,
			       .conn = conn,
			       .number = conn ? conn->number : 0 };
	for (i = 0; conn && !conn->is_dropped && i < sizeof(senders) / sizeof(senders[0]); i++) {
		if (strcmp(senders[i].event, event->name) == 0)
			task->kinds = senders[i].kinds;
	}
}

/* Only once: the next message of the task may be of another connection. */
static struct conn *take_conn_of_task(struct kernel_lines *lines, const struct kernel_event *event)
{
	struct task *task = &lines->task[event->pid % TASKS];
	struct conn *conn = NULL;

	if (task->pid == event->pid && task->kinds & BIT_OF(event->attr) &&
	    task->conn->number == task->number)
		conn = task->conn;
	if (task->pid == event->pid)
		task->kinds = 0;
	return conn;
}

static struct conn *find_conn_by_tid(struct kernel_lines *lines, uint64_t tid)
{
	struct hash_node *node;
	struct conn *conn;

	hash_for_each_match (node, &lines->tids, hash_bytes(&tid, sizeof(tid))) {
		conn = (struct conn *)((char *)node - offsetof(struct conn, by_tid));
		if (conn->tid == tid)
			return conn;
	}
	return NULL;
}

static void name_conn(struct kernel_lines *lines, struct conn *conn, uint64_t tid)
{
	hash_remove(&lines->tids, &conn->by_tid);
	conn->tid = tid;
	hash_insert(&lines->tids, &conn->by_tid, hash_bytes(&tid, sizeof(tid)));
}

/* --- messages ------------------------------------------------------------- */

static void fill_addr(uint8_t ret[16], const struct mad_gid *gid)
{
	memcpy(ret, gid->raw, 16);
	if (observation_is_ip4(gid))
		memset(ret, 0, 12);
}

static void fill_header(const struct conn *conn, uint8_t *private_data)
{
	const struct kernel_end *from = &conn->ends[!conn->is_ours],
				*to = &conn->ends[conn->is_ours];
	struct cma_hdr cma = { .ip_version = observation_is_ip4(&from->gid) ? 4 : 6,
			       .src_port = from->port };

	fill_addr(cma.src_addr, &from->gid);
	fill_addr(cma.dst_addr, &to->gid);
	wire_encode(&cma_hdr_layout, &cma, private_data);
}

static void fill_req(const struct conn *conn, struct cm_req *req, uint32_t from_id)
{
	const struct kernel_end *from = &conn->ends[!conn->is_ours],
				*to = &conn->ends[conn->is_ours];

	req->local_comm_id = from_id;
	req->service_id = cma_service_id(RDMA_PS_TCP, to->port);
	req->local_qpn = conn->qpn[!conn->is_ours];
	req->pkey = PKEY_DEFAULT;
	req->primary.local_gid = from->gid;
	req->primary.remote_gid = to->gid;
	fill_header(conn, req->private_data);
}

static void fill_rej(const struct conn *conn, const struct kernel_event *event,
		     enum observation_way way, struct cm_rej *rej)
{
	rej->message = conn->has_rep			   ? REJ_OF_REP
		       : conn->is_ours == (way == WAY_OUT) ? REJ_OF_OTHER
							   : REJ_OF_REQ;
	if (way == WAY_IN)
		rej->reason = (uint16_t)event->status;
	else if (conn->is_ours && !conn->has_rep)
		rej->reason = CM_REJ_TIMEOUT; /* withdrawn by the kernel or its program */
	else
		rej->reason = CM_REJ_CONSUMER;
}

/* Numbered ids: even for the active side, odd for the passive side. */
static void fill_msg(const struct conn *conn, const struct kernel_event *event, enum cm_attr attr,
		     enum observation_way way, struct cm_msg *msg)
{
	const bool by_active = conn->is_ours == (way == WAY_OUT);
	const uint32_t from = conn->number << 1 | !by_active, to = from ^ 1;

	cm_msg_init(msg, attr, CM_TID);
	switch (attr) {
	case CM_ATTR_REQ:
		fill_req(conn, &msg->req, from);
		return;
	case CM_ATTR_SIDR_REQ:
		msg->sidr_req = (struct cm_sidr_req){
			.request_id = conn->number,
			.pkey = PKEY_DEFAULT,
			.service_id = cma_service_id(RDMA_PS_UDP, conn->ends[conn->is_ours].port),
		};
		fill_header(conn, msg->sidr_req.private_data);
		return;
	case CM_ATTR_SIDR_REP:
		msg->sidr_rep.request_id = conn->number;
		msg->sidr_rep.status = way == WAY_IN && event->status > 0 ? (uint8_t)event->status
									  : 0;
		return;
	case CM_ATTR_REP:
		msg->rep = (struct cm_rep){ .local_comm_id = from,
					    .remote_comm_id = to,
					    .local_qpn = conn->qpn[conn->is_ours] };
		return;
	case CM_ATTR_REJ:
		msg->rej = (struct cm_rej){ .local_comm_id = from, .remote_comm_id = to };
		fill_rej(conn, event, way, &msg->rej);
		return;
	case CM_ATTR_DREQ:
		msg->dreq = (struct cm_dreq){ .local_comm_id = from,
					      .remote_comm_id = to,
					      .remote_qpn = conn->qpn[way == WAY_OUT] };
		return;
	case CM_ATTR_RTU:
		msg->rtu = (struct cm_rtu){ .local_comm_id = from, .remote_comm_id = to };
		return;
	case CM_ATTR_DREP:
		msg->drep = (struct cm_drep){ .local_comm_id = from, .remote_comm_id = to };
		return;
	case CM_ATTR_MRA:
		msg->mra = (struct cm_mra){ .local_comm_id = from,
					    .remote_comm_id = to,
					    .message = conn->has_rep ? MRA_OF_REP : MRA_OF_REQ,
					    .service_timeout = MRA_TIMEOUT };
		return;
	case CM_ATTR_LAP:
	case CM_ATTR_APR:
		return;
	}
}

static void make_observation(struct conn *conn, const struct kernel_event *event, enum cm_attr attr,
			     enum observation_way way, struct observation *ret)
{
	struct cm_msg msg;

	*ret = (struct observation){ .time_ns = event->time_ns,
				     .way = way,
				     .network = conn->is_infiniband ? NETWORK_INFINIBAND
								    : NETWORK_UNKNOWN,
				     .src = conn->ends[way == WAY_IN].gid,
				     .dst = conn->ends[way == WAY_OUT].gid,
				     .src_qpn = 1,
				     .pkey = PKEY_DEFAULT };
	conn->told[way == WAY_OUT] |= BIT_OF(attr);
	conn->has_rep |= attr == CM_ATTR_REP;
	conn->has_dreq |= attr == CM_ATTR_DREQ && way == WAY_OUT;
	fill_msg(conn, event, attr, way, &msg);
	cm_msg_encode(&msg, ret->mad);
}

static int tell_all(struct conn *conn, const struct kernel_event *event, const struct row *row,
		    struct observation ret[KERNEL_LINE_MESSAGES])
{
	enum cm_attr attr = row->attr;
	int n = 0;

	/* The response to our DREQ is reported by the same event as the peer's DREQ. */
	if (attr == CM_ATTR_DREQ && row->way == WAY_IN && conn->has_dreq)
		attr = CM_ATTR_DREP;
	if (row->begins)
		conn->is_dropped = false; /* unless reported again */
	if (row->begins && row->way == WAY_IN)
		conn->traced[0] |= BIT_OF(attr); /* traced before the connection was known */
	/* With a kernel queue pair, the REP is only implied by its RTU ... */
	if (attr == CM_ATTR_RTU && row->way == WAY_OUT && conn->is_ours && !conn->has_rep)
		make_observation(conn, event, CM_ATTR_REP, WAY_IN, &ret[n++]);
	/* ... and the peer that has sent it is established. */
	if (attr == CM_ATTR_RTU && row->way == WAY_IN && conn->is_ours)
		return n;
	if (!row->begins && conn->traced[row->way == WAY_OUT] & BIT_OF(attr) &&
	    conn->told[row->way == WAY_OUT] & BIT_OF(attr))
		return n; /* reported by its MAD */
	make_observation(conn, event, attr, row->way, &ret[n++]);
	return n;
}

/*
 * Return: whether only the MAD reports the message; otherwise an event of the connection does, with
 * more data.
 */
static bool tells_alone(const struct conn *conn, const struct kernel_event *event, bool is_again)
{
	if (is_again || event->attr == CM_ATTR_MRA)
		return true;
	if (conn->told[event->way == WAY_OUT] & BIT_OF(event->attr))
		return false;
	return event->way == WAY_OUT || event->attr == CM_ATTR_DREP;
}

static int take_mad(struct kernel_lines *lines, const struct kernel_event *event,
		    struct observation ret[KERNEL_LINE_MESSAGES], char note[KERNEL_LINE_NOTE])
{
	struct conn *conn = find_conn_by_tid(lines, event->tid);
	bool is_again;

	if (event->way == WAY_IN && event->attr == CM_ATTR_SIDR_REQ)
		lines->is_asked_for_sidr = true;
	else if (event->way == WAY_IN && event->attr == CM_ATTR_REQ)
		lines->is_asked_for_sidr = false;
	if (!conn && event->way == WAY_OUT)
		conn = take_conn_of_task(lines, event);
	if (!conn && event->way == WAY_OUT && event->attr == CM_ATTR_REJ && !lines->has_icm)
		snprintf(note, KERNEL_LINE_NOTE, REFUSED "nobody listens at its port" WHOSE);
	if (!conn)
		return 0;
	name_conn(lines, conn, event->tid);
	conn->is_infiniband |= event->lid != 0;
	is_again = conn->traced[event->way == WAY_OUT] & BIT_OF(event->attr);
	conn->traced[event->way == WAY_OUT] |= BIT_OF(event->attr);
	if (!tells_alone(conn, event, is_again))
		return 0;
	make_observation(conn, event, event->attr, event->way, &ret[0]);
	return 1;
}

/* A rejection that a kernel task sends for a program is shown as a message of that program. */
static void take_refusal(struct kernel_lines *lines, const struct kernel_event *event,
			 char note[KERNEL_LINE_NOTE])
{
	const struct task *task = &lines->task[event->pid % TASKS];
	size_t i;

	lines->has_icm = true;
	if (!event->is_of_request || (task->pid == event->pid && task->kinds & BIT_OF(CM_ATTR_REJ)))
		return;
	for (i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		if (strcmp(refusals[i].event, event->name) == 0 &&
		    (!refusals[i].word || strcmp(refusals[i].word, event->word) == 0)) {
			snprintf(note, KERNEL_LINE_NOTE, "%s", refusals[i].text);
			return;
		}
	}
}

/* The kernel does not print AF_IB addresses. */
static void tell_of_af_ib(struct kernel_lines *lines, const struct kernel_event *event,
			  char note[KERNEL_LINE_NOTE])
{
	const struct row *row = find_row(lines, event, NULL);

	if (!row || !row->begins || lines->has_told_of_af_ib)
		return;
	lines->has_told_of_af_ib = true;
	snprintf(note, KERNEL_LINE_NOTE,
		 "there are requests by addresses of AF_IB: the kernel "
		 "does not record whose, and they are left out");
}

static void write_note(const struct kernel_event *event, char note[KERNEL_LINE_NOTE])
{
	char from[WHO_BYTES], to[WHO_BYTES];
	size_t i;

	if (strcmp(event->name, "cm_event_handler") != 0)
		return;
	for (i = 0; i < sizeof(notes) / sizeof(notes[0]); i++) {
		if (strcmp(notes[i].word, event->word) == 0)
			snprintf(note, KERNEL_LINE_NOTE, "%s to %s, port %u: %s: %s",
				 who_str(&event->ends[0].gid, from),
				 who_str(&event->ends[1].gid, to), event->ends[1].port,
				 notes[i].text, strerror(abs(event->status)));
	}
}

/*
 * A worker destroys the id of a request that it has just delivered, because it was not accepted.
 * The kernel sends no response, and takes a retransmission as another request.
 */
static void drop_request(struct kernel_lines *lines, const struct kernel_event *event,
			 struct conn *conn, char note[KERNEL_LINE_NOTE])
{
	const struct task *task = &lines->task[event->pid % TASKS];
	char from[WHO_BYTES];

	if (strcmp(event->name, "cm_id_destroy") != 0 || task->pid != event->pid ||
	    task->conn != conn || !task->brings)
		return;
	conn->is_dropped = true;
	snprintf(
		note, KERNEL_LINE_NOTE,
		"a request of %s, port %u, for port %u was dropped: its listener's backlog is full",
		who_str(&conn->ends[1].gid, from), conn->ends[1].port, conn->ends[0].port);
}

int kernel_line_take(struct kernel_lines *lines, const char *line,
		     struct observation ret[KERNEL_LINE_MESSAGES], char note[KERNEL_LINE_NOTE])
{
	const struct row *row;
	struct kernel_event event;
	struct conn *conn;

	note[0] = '\0';
	if (strstr(line, " EVENTS]"))
		snprintf(note, KERNEL_LINE_NOTE, "more was traced than was read: %s", line);
	if (!kernel_event_parse(line, &event))
		return 0;
	if (event.is_icm) {
		take_refusal(lines, &event, note);
		return 0;
	}
	if (event.attr)
		return take_mad(lines, &event, ret, note);
	if (strcmp(event.name, "cm_req_handler") == 0)
		lines->is_asked_for_sidr = strcmp(event.word, "SIDR_REQ_RECEIVED") == 0;
	conn = event.has_ends ? find_conn(lines, event.ends) : NULL;
	row = event.has_ends ? find_row(lines, &event, conn) : NULL;
	if (row && row->begins && !(conn && conn->is_dropped))
		conn = begin_conn(lines, &event, row);
	if (conn)
		drop_request(lines, &event, conn, note);
	remember_task(lines, &event, conn);
	if (!row) {
		if (event.has_ends)
			write_note(&event, note);
		else
			tell_of_af_ib(lines, &event, note);
		return 0;
	}
	if (event.qpn)
		conn->qpn[0] = event.qpn;
	return tell_all(conn, &event, row, ret);
}

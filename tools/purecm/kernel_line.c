/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines of the kernel's tracer: see kernel_line.h. Seen on Linux 6.1:
 *
 *   rping-281 [000] .....  73.228509: cm_send_req: cm.id=0 src=IP:PORT dst=IP:PORT tos=0 qp_num=17
 *   kworker.. [000] .....  74.655941: cm_event_handler: cm.id=1 src=.. dst=.. tos=0 REJECTED (8/8)
 *
 * src is this host's end. A connection is known by its two ends; one that begins anew between the
 * same ends is another. That a request was received is told of the listener, which has no peer, and
 * then, as CONNECT_REQUEST, of the new connection. cm_send_mra sends nothing unless a request is
 * repeated (cm_tx_msgs shows none), so it tells of no message.
 */
#include "tools/purecm/kernel_line.h"

#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "cm/core.h"
#include "mad/cm_msg.h"
#include "mad/cma_hdr.h"

#define CONNS_MAX    4096 /* the latest: of older ones a message is a fragment */
#define NS_PER_S     1000000000u
#define PKEY_DEFAULT 0xffff
#define CM_TID	     1
#define REJ_OF_REQ   0
#define REJ_OF_REP   1
#define REJ_OF_OTHER 2

/* One end, with its port in host byte order. */
struct place {
	struct mad_gid gid;
	uint16_t port;
};

struct conn {
	struct hash_node by_ends;
	struct place ends[2]; /* ours, the peer's */
	uint32_t number;
	bool is_ours; /* we asked */
	bool is_sidr;
	bool has_rep;
	bool has_dreq; /* ours */
	uint32_t qpn[2];
};

struct kernel_lines {
	struct hash table;
	struct conn conn[CONNS_MAX]; /* a ring */
	uint32_t n_conns;
	bool is_asked_for_sidr; /* by the request that was received last */
};

struct event {
	uint64_t time_ns;
	char name[32];
	struct place ends[2];
	bool has_ends;
	uint32_t qpn;
	char word[32]; /* REJECTED */
	int status;
};

enum of {
	OF_NONE,
	OF_RC,
	OF_SIDR,
};

/* clang-format off */
/* What an event means. The first row that fits counts. */
static const struct row {
	const char *event;
	const char *word; /* NULL: any */
	enum cm_attr attr;
	enum observation_way way;
	enum of begins; /* a connection */
	enum of of;	/* of one that has begun: OF_NONE is any */
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

/* Events that tell of no message, but why there is none. */
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
/* clang-format on */

struct kernel_lines *kernel_lines_new(void)
{
	struct kernel_lines *lines = calloc(1, sizeof(*lines));

	if (lines && hash_init(&lines->table, CONNS_MAX)) {
		free(lines);
		return NULL;
	}
	return lines;
}

void kernel_lines_free(struct kernel_lines *lines)
{
	if (lines)
		hash_fini(&lines->table);
	free(lines);
}

/* --- a line --------------------------------------------------------------- */

/* "10.77.0.2:59173", "[fd77::2]:59173"; "(einval)" while the id has no address. */
static bool parse_place(const char *text, struct place *ret)
{
	char addr[INET6_ADDRSTRLEN];
	uint8_t ip4[4];
	unsigned int port = 0;

	*ret = (struct place){ .port = 0 };
	if (sscanf(text, "[%45[^]]]:%u", addr, &port) >= 1) {
		addr[strcspn(addr, "%")] = '\0'; /* the interface of a link-local one */
		ret->port = (uint16_t)port;
		return inet_pton(AF_INET6, addr, ret->gid.raw) == 1;
	}
	if (sscanf(text, "%45[0-9.]:%u", addr, &port) < 1 || inet_pton(AF_INET, addr, ip4) != 1)
		return false;
	ret->gid = observation_gid_of_ip4(ip4);
	ret->port = (uint16_t)port;
	return true;
}

/* Return: false for a line of another kind. */
static bool parse_line(const char *line, struct event *ret)
{
	const char *at = strstr(line, ": cm_"), *time, *text;
	char ends[2][64];
	unsigned long s, us;

	*ret = (struct event){ .status = 0 };
	text = at ? strstr(at, " cm.id=") : NULL;
	if (!text)
		return false;
	for (time = at; time > line && strchr("0123456789.", time[-1]); time--)
		;
	if (sscanf(time, "%lu.%lu", &s, &us) != 2 || sscanf(at, ": %31[a-z_]:", ret->name) != 1 ||
	    sscanf(text, " cm.id=%*u src=%63s dst=%63s", ends[0], ends[1]) != 2)
		return false;
	ret->time_ns = s * NS_PER_S + us * 1000;
	ret->has_ends = parse_place(ends[0], &ret->ends[0]) &&
			parse_place(ends[1], &ret->ends[1]) && ret->ends[1].port;
	at = strstr(text, " qp_num=");
	if (at)
		sscanf(at, " qp_num=%u", &ret->qpn);
	at = strstr(text, " tos=");
	if (at)
		sscanf(at, " tos=%*u %31[A-Z_] (%*u/%d)", ret->word, &ret->status);
	return true;
}

/* --- connections ---------------------------------------------------------- */

static uint64_t hash_of_ends(const struct place ends[2])
{
	const uint8_t *bytes = (const uint8_t *)ends;
	uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
	size_t i;

	for (i = 0; i < 2 * sizeof(*ends); i++)
		hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static struct conn *find_conn(struct kernel_lines *lines, const struct place ends[2])
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

static struct conn *begin_conn(struct kernel_lines *lines, const struct event *event,
			       const struct row *row)
{
	struct conn *conn = &lines->conn[lines->n_conns % CONNS_MAX];

	hash_remove(&lines->table, &conn->by_ends);
	*conn = (struct conn){ .number = ++lines->n_conns,
			       .is_ours = row->way == WAY_OUT,
			       .is_sidr = row->begins == OF_SIDR };
	memcpy(conn->ends, event->ends, sizeof(conn->ends));
	hash_insert(&lines->table, &conn->by_ends, hash_of_ends(conn->ends));
	return conn;
}

static bool fits(const struct kernel_lines *lines, const struct row *row, const struct event *event,
		 const struct conn *conn)
{
	if (strcmp(row->event, event->name) != 0 ||
	    (row->word && strcmp(row->word, event->word) != 0))
		return false;
	if (row->begins)
		return row->way == WAY_OUT || lines->is_asked_for_sidr == (row->begins == OF_SIDR);
	return conn && (row->of == OF_NONE || conn->is_sidr == (row->of == OF_SIDR));
}

static const struct row *find_row(const struct kernel_lines *lines, const struct event *event,
				  const struct conn *conn)
{
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (fits(lines, &rows[i], event, conn))
			return &rows[i];
	}
	return NULL;
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
	const struct place *from = &conn->ends[!conn->is_ours], *to = &conn->ends[conn->is_ours];
	struct cma_hdr cma = { .ip_version = observation_is_ip4(&from->gid) ? 4 : 6,
			       .src_port = from->port };

	fill_addr(cma.src_addr, &from->gid);
	fill_addr(cma.dst_addr, &to->gid);
	wire_encode(&cma_hdr_layout, &cma, private_data);
}

static void fill_req(const struct conn *conn, struct cm_req *req, uint32_t from_id)
{
	const struct place *from = &conn->ends[!conn->is_ours], *to = &conn->ends[conn->is_ours];

	req->local_comm_id = from_id;
	req->service_id = cma_service_id(RDMA_PS_TCP, to->port);
	req->local_qpn = conn->qpn[!conn->is_ours];
	req->pkey = PKEY_DEFAULT;
	req->primary.local_gid = from->gid;
	req->primary.remote_gid = to->gid;
	fill_header(conn, req->private_data);
}

static void fill_rej(const struct conn *conn, const struct event *event, enum observation_way way,
		     struct cm_rej *rej)
{
	rej->message = conn->has_rep			   ? REJ_OF_REP
		       : conn->is_ours == (way == WAY_OUT) ? REJ_OF_OTHER
							   : REJ_OF_REQ;
	if (way == WAY_IN)
		rej->reason = (uint16_t)event->status;
	else if (strcmp(event->word, "UNREACHABLE") == 0)
		rej->reason = CM_REJ_TIMEOUT;
	else
		rej->reason = CM_REJ_CONSUMER;
}

/* Ids by number: the active side's are even, the passive's odd. */
static void fill_msg(const struct conn *conn, const struct event *event, enum cm_attr attr,
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
	case CM_ATTR_LAP:
	case CM_ATTR_APR:
		return;
	}
}

static void tell(struct conn *conn, const struct event *event, enum cm_attr attr,
		 enum observation_way way, struct observation *ret)
{
	struct cm_msg msg;

	*ret = (struct observation){ .time_ns = event->time_ns,
				     .way = way,
				     .src = conn->ends[way == WAY_IN].gid,
				     .dst = conn->ends[way == WAY_OUT].gid,
				     .src_qpn = 1,
				     .pkey = PKEY_DEFAULT };
	conn->has_rep |= attr == CM_ATTR_REP;
	conn->has_dreq |= attr == CM_ATTR_DREQ && way == WAY_OUT;
	fill_msg(conn, event, attr, way, &msg);
	cm_msg_encode(&msg, ret->mad);
}

static int tell_all(struct conn *conn, const struct event *event, const struct row *row,
		    struct observation ret[KERNEL_LINE_MESSAGES])
{
	enum cm_attr attr = row->attr;
	int n = 0;

	/* The answer to our DREQ is told by the same event as the peer's DREQ. */
	if (attr == CM_ATTR_DREQ && row->way == WAY_IN && conn->has_dreq)
		attr = CM_ATTR_DREP;
	/* A queue pair of the kernel: the REP is told of by nothing but its RTU ... */
	if (attr == CM_ATTR_RTU && row->way == WAY_OUT && conn->is_ours && !conn->has_rep)
		tell(conn, event, CM_ATTR_REP, WAY_IN, &ret[n++]);
	/* ... and who has sent that is established. */
	if (attr == CM_ATTR_RTU && row->way == WAY_IN && conn->is_ours)
		return n;
	tell(conn, event, attr, row->way, &ret[n++]);
	return n;
}

static void write_note(const struct event *event, char note[KERNEL_LINE_NOTE])
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

int kernel_line_take(struct kernel_lines *lines, const char *line,
		     struct observation ret[KERNEL_LINE_MESSAGES], char note[KERNEL_LINE_NOTE])
{
	const struct row *row;
	struct event event;
	struct conn *conn;

	note[0] = '\0';
	if (!parse_line(line, &event))
		return 0;
	if (strcmp(event.name, "cm_req_handler") == 0)
		lines->is_asked_for_sidr = strcmp(event.word, "SIDR_REQ_RECEIVED") == 0;
	if (!event.has_ends)
		return 0;
	conn = find_conn(lines, event.ends);
	row = find_row(lines, &event, conn);
	if (!row) {
		write_note(&event, note);
		return 0;
	}
	if (row->begins)
		conn = begin_conn(lines, &event, row);
	if (event.qpn)
		conn->qpn[0] = event.qpn;
	return tell_all(conn, &event, row, ret);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The values that a client may put into a message: see fields.h. A row for each field that is
 * limited here: of a message, of the header of the IP CM service ("CMA."), and of the path on which
 * the message is sent ("path.").
 */
#include "lib/portd/server/routing/fields.h"
#include "lib/portd/server/ledger/tracked.h"
#include "lib/portd/server/wire/host_port.h"

#include <rdma/rdma_cma.h>
#include <string.h>

#include "cm/action.h"
#include "cm/guard.h"
#include "lib/net/hop.h"
#include "mad/cma_hdr.h"

#define ROCE_SL_MAX    7 /* priorities of Ethernet */
#define IB_SL_MAX      15
#define FLOW_LABEL_MAX 0xfffff

#define IN(attr)       (1u << (CM_ATTR_##attr - CM_ATTR_REQ))
#define REQUESTS       (IN(REQ) | IN(SIDR_REQ))
#define ALL	       UINT32_MAX

struct said {
	const struct server *server;
	const struct client *client;
	struct host_port *host_port;
	const struct mad_path *path;
	const struct cm_msg *msg;
	const struct gid_entry *gid; /* of the path's index, after has_gid() */
};

/* --- identity ------------------------------------------------------------- */

/* A REJ may have no comm id of its sender, and a SIDR_REP has its receiver's id. */
static bool has_own_comm_id(struct said *said)
{
	const struct cm_msg *msg = said->msg;
	uint32_t comm_id = msg->rtu.local_comm_id; /* the first field of most messages */

	if (msg->hdr.attr_id == CM_ATTR_SIDR_REP)
		return true;
	if (msg->hdr.attr_id == CM_ATTR_REJ && comm_id == 0)
		return true;
	if (msg->hdr.attr_id == CM_ATTR_REQ)
		comm_id = msg->req.local_comm_id;
	else if (msg->hdr.attr_id == CM_ATTR_SIDR_REQ)
		comm_id = msg->sidr_req.request_id;
	return said->server->block_owner[comm_id >> ID_BLOCK_SHIFT] == said->client->index;
}

static bool has_our_guid(struct said *said)
{
	const struct cm_msg *msg = said->msg;

	return said->host_port->cm.ca_guid ==
	       (msg->hdr.attr_id == CM_ATTR_REQ ? msg->req.local_ca_guid : msg->rep.local_ca_guid);
}

/* A REJ after a timeout is found by the GUID in it: it must not be another host's. */
static bool has_our_guid_after_timeout(struct said *said)
{
	const struct cm_rej *rej = &said->msg->rej;

	return rej->reason != CM_REJ_TIMEOUT || cm_rej_guid(rej) == said->host_port->cm.ca_guid;
}

/* Otherwise the peer would take the connection of another user for stale, and end it. */
static bool names_own_qpn(struct said *said)
{
	const struct cm_msg *msg = said->msg;
	const bool is_req = msg->hdr.attr_id == CM_ATTR_REQ;
	const struct tracked_naming naming = {
		.client = said->client->index,
		.peer = mad_path_peer(said->path),
		.of_device = said->host_port->of_device,
		.qpn = is_req ? msg->req.local_qpn : cm_rep_qpn(&msg->rep),
	};

	return tracker_may_name(said->server->tracker, &naming);
}

/* An XRC target's queue pair is in that field. */
static bool names_own_eecn(struct said *said)
{
	const struct cm_rep *rep = &said->msg->rep;

	return cm_rep_qpn(rep) == rep->local_qpn || names_own_qpn(said);
}

/* --- path ----------------------------------------------------------------- */

static bool has_grh(struct said *said)
{
	return said->path->grh;
}

static bool has_roce_sl(struct said *said)
{
	return said->path->sl <= ROCE_SL_MAX;
}

static bool has_ib_sl(struct said *said)
{
	return said->path->sl <= IB_SL_MAX;
}

/* On RoCE, everything is in one partition. */
static bool has_first_pkey(struct said *said)
{
	return said->path->pkey_index == 0;
}

static bool has_pkey(struct said *said)
{
	return said->path->pkey_index < said->host_port->n_pkeys;
}

/* Drivers put it into a word whose upper bits are the GID index. */
static bool has_flow_label(struct said *said)
{
	return said->path->flow_label <= FLOW_LABEL_MAX;
}

static bool has_gid(struct said *said)
{
	said->gid = host_port_gid(said->host_port, said->path->sgid_index);
	return said->gid;
}

/*
 * A GID that no namespace has shown counts as one of home. A client of another namespace may use
 * it, unless an interface of home has its address.
 */
static bool has_gid_of_its_namespace(struct said *said)
{
	const struct server *server = said->server;
	const struct net_ns *of_gid;

	of_gid = net_ns_of_gid(server->home, said->gid, server->now);
	return of_gid == said->client->net_ns ||
	       (of_gid == server->home && !hop_is_here(said->gid));
}

/* --- path in a REQ -------------------------------------------------------- */

/* The peer's queue pair sends its data to that GID. */
static bool names_own_gid(struct said *said)
{
	return memcmp(&said->msg->req.primary.local_gid, &said->gid->gid, sizeof(said->gid->gid)) ==
	       0;
}

static bool names_peers_gid(struct said *said)
{
	return memcmp(&said->msg->req.primary.remote_gid, &said->path->dgid,
		      sizeof(said->path->dgid)) == 0;
}

static bool names_no_alternate_lid(struct said *said)
{
	return !said->msg->req.alternate.local_lid;
}

static bool names_no_alternate_gid(struct said *said)
{
	static const struct mad_gid nothing;

	return memcmp(&said->msg->req.alternate.local_gid, &nothing, sizeof(nothing)) == 0;
}

/* No program may change the path of a connection: stock has no call for it. */
static bool is_never_sent(struct said *said)
{
	(void)said;
	return false;
}

/* --- the header of the IP CM service -------------------------------------- */

/* For services of the IB port space, only the listener knows whether there is a header. */
static bool read_header(const struct said *said, struct cma_hdr *ret, uint16_t *ret_ps)
{
	const struct cm_msg *msg = said->msg;
	const bool is_req = msg->hdr.attr_id == CM_ATTR_REQ;
	uint64_t service_id = is_req ? msg->req.service_id : msg->sidr_req.service_id;

	*ret_ps = (uint16_t)(service_id >> 16);
	if (service_id != cma_service_id(*ret_ps, (uint16_t)service_id) || *ret_ps == RDMA_PS_IB)
		return false;
	return cma_hdr_read(is_req ? msg->req.private_data : msg->sidr_req.private_data, ret);
}

static bool has_own_port(struct said *said)
{
	struct cma_hdr hdr;
	uint16_t ps;

	return !read_header(said, &hdr, &ps) ||
	       ports_has(said->client->net_ns->ports, said->client->index, ps, hdr.src_port);
}

/* A RoCE GID is an IP address. On a path to the same GID, a loopback address is valid too. */
static bool has_own_address(struct said *said)
{
	struct cma_hdr hdr;
	struct mad_gid gid;
	union addr src;
	uint16_t ps;

	if (!read_header(said, &hdr, &ps))
		return true;
	addr_unpack(hdr.ip_version, hdr.src_addr, 0, 0, &src);
	if (memcmp(&said->path->dgid, &said->gid->gid, sizeof(said->gid->gid)) == 0 &&
	    addr_is_loopback(&src))
		return true;
	gid = addr_to_gid(&src);
	return memcmp(&gid, &said->gid->gid, sizeof(gid)) == 0;
}

/* --- table ---------------------------------------------------------------- */

#define OF_CONNECTIONS (ALL & ~IN(SIDR_REQ) & ~IN(SIDR_REP) & ~IN(LAP))

const char fields_own_qpn[] = "local_qpn";

/* clang-format off */

static const struct row {
	const char *field; /* as its layout names it; those of other headers have a prefix */
	uint32_t in;	   /* messages */
	bool (*on_roce)(struct said *said);
	bool (*on_ib)(struct said *said);
} rows[] = { /* at most 32: see rows_of() */
	{ "*", IN(LAP), is_never_sent, is_never_sent },
	{ "local_comm_id", OF_CONNECTIONS, has_own_comm_id, has_own_comm_id },
	{ "request_id", IN(SIDR_REQ), has_own_comm_id, has_own_comm_id },
	{ "local_ca_guid", IN(REQ) | IN(REP), has_our_guid, has_our_guid },
	{ "ari", IN(REJ), has_our_guid_after_timeout, has_our_guid_after_timeout },
	{ fields_own_qpn, IN(REQ) | IN(REP), names_own_qpn, names_own_qpn },
	{ "local_eecn", IN(REP), names_own_eecn, names_own_eecn },
	{ "path.grh", ALL, has_grh, NULL },
	{ "path.sl", ALL, has_roce_sl, has_ib_sl },
	{ "path.pkey_index", ALL, has_first_pkey, has_pkey },
	{ "path.flow_label", ALL, has_flow_label, has_flow_label },
	{ "path.sgid_index", ALL, has_gid, NULL },
	{ "path.sgid_index", ALL, has_gid_of_its_namespace, NULL },
	{ "primary.local_gid", IN(REQ), names_own_gid, NULL },
	{ "primary.remote_gid", IN(REQ), names_peers_gid, NULL },
	{ "alternate.local_lid", IN(REQ), names_no_alternate_lid, NULL },
	{ "alternate.local_gid", IN(REQ), names_no_alternate_gid, NULL },
	{ "CMA.src_port", REQUESTS, has_own_port, has_own_port },
	{ "CMA.src_addr", REQUESTS, has_own_address, NULL },
};

/* clang-format on */

#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

/* The rows of a message, as a bitmap. Collected once: each message needs it. */
static uint32_t rows_of(uint16_t attr_id, bool on_ib)
{
	static uint32_t collected[2][32];
	uint32_t *ret = &collected[on_ib][attr_id - CM_ATTR_REQ];
	const uint32_t in = 1u << (attr_id - CM_ATTR_REQ);
	size_t i;

	if (*ret)
		return *ret;
	for (i = 0; i < N_ROWS; i++)
		if (rows[i].in & in && (on_ib ? rows[i].on_ib : rows[i].on_roce))
			*ret |= 1u << i;
	return *ret;
}

const char *fields_wrong(const struct server *server, const struct client *client,
			 struct host_port *host_port, const struct mad_path *path,
			 const struct cm_msg *msg)
{
	struct said said = {
		.server = server, .client = client, .host_port = host_port, .path = path, .msg = msg
	};
	const struct row *row;
	uint32_t left;

	for (left = rows_of(msg->hdr.attr_id, host_port->subnet); left; left &= left - 1) {
		row = &rows[__builtin_ctz(left)];
		if (!(host_port->subnet ? row->on_ib : row->on_roce)(&said))
			return row->field;
	}
	return NULL;
}

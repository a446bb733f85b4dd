/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Listening: see listen.h. rdma_listen().
 */
#include "lib/listen.h"

#include <endian.h>
#include <errno.h>
#include <net/if_arp.h>
#include <stdlib.h>
#include <string.h>

#include "lib/alternate.h"
#include "lib/api.h"
#include "lib/claims.h"
#include "lib/infiniband.h"
#include "lib/log.h"
#include "lib/resolve.h"
#include "lib/waiting.h"
#include "mad/cma_hdr.h"

/* --- whose request is it? ------------------------------------------------ */

/* A request, as the IP CM service (annex A11) sees it. */
struct request {
	struct cm_conn *conn;
	const struct cm_msg *msg; /* REQ or SIDR_REQ */
	const uint8_t *data;	  /* its private data, the CMA header first */
	enum ibv_qp_type qp_type;
	union addr src; /* the peer */
	union addr dst; /* us */
	struct id_path path;
	uint8_t header_bytes; /* of the CMA header: 0 where there is none */
};

static void set_addr(union addr *addr, uint8_t ip_version, const uint8_t bytes[16], uint16_t port,
		     unsigned int ifindex)
{
	memset(addr, 0, sizeof(*addr));
	if (ip_version == 4) {
		addr->in4.sin_family = AF_INET;
		memcpy(&addr->in4.sin_addr, bytes + 12, 4);
	} else {
		addr->in6.sin6_family = AF_INET6;
		memcpy(&addr->in6.sin6_addr, bytes, 16);
		if (addr_is_link_local(addr))
			addr->in6.sin6_scope_id = ifindex;
	}
	addr_set_port(addr, port);
}

static int parse_addrs(struct request *request, unsigned int ifindex)
{
	struct cma_hdr hdr;

	wire_decode(&cma_hdr_layout, request->data, &hdr);
	if (hdr.cma_version != 0 || (hdr.ip_version != 4 && hdr.ip_version != 6))
		return -EINVAL;
	set_addr(&request->src, hdr.ip_version, hdr.src_addr, hdr.src_port, ifindex);
	set_addr(&request->dst, hdr.ip_version, hdr.dst_addr, (uint16_t)request->conn->service_id,
		 ifindex);
	if (addr_is_any(&request->src) || addr_is_multicast(&request->src) ||
	    addr_is_any(&request->dst) || addr_is_multicast(&request->dst))
		return -EINVAL;
	return 0;
}

static bool is_on_infiniband(const struct port *port)
{
	struct gid_entry gid;

	return gid_by_index(port->device->verbs, port->port_num, 0, &gid) == 0 &&
	       gid.type == IBV_GID_TYPE_IB;
}

/* Of a request without the header of the IP CM service: who it is for and from are in the path. */
static void set_ib_addrs(struct request *request)
{
	union addr *src = &request->src, *dst = &request->dst;
	uint16_t pkey = htobe16(request->path.pkey);

	memset(src, 0, sizeof(*src));
	src->ib.sib_family = AF_IB;
	src->ib.sib_pkey = pkey;
	*dst = *src;
	memcpy(&src->ib.sib_addr, &request->path.peer_gid, sizeof(src->ib.sib_addr));
	memcpy(&dst->ib.sib_addr, &request->path.gid.gid, sizeof(dst->ib.sib_addr));
	dst->ib.sib_sid = htobe64(request->conn->service_id);
	dst->ib.sib_sid_mask = ~UINT64_C(0);
}

static bool has_cma_hdr(const struct request *request)
{
	struct cma_hdr hdr;

	wire_decode(&cma_hdr_layout, request->data, &hdr);
	return hdr.cma_version == 0 && (hdr.ip_version == 4 || hdr.ip_version == 6);
}

/* Devices are not searched: their lock comes before the engine's. */
static bool is_ipoib_of(const struct net_iface *iface, const struct gid_entry *gid)
{
	return iface->arp_type == ARPHRD_INFINIBAND && iface->hw_bytes == NET_IPOIB_HW_BYTES &&
	       memcmp(iface->hw_addr + NET_IPOIB_GID_AT, &gid->gid, sizeof(gid->gid)) == 0;
}

/* The interface that has our address must be that of the port and the partition. */
static int check_ipoib(struct request *request)
{
	struct id_path *path = &request->path;
	struct net_iface iface;
	int err = parse_addrs(request, 0);

	if (!err)
		err = net_iface_of_addr(&request->dst, &iface);
	if (!err && !is_ipoib_of(&iface, &path->gid))
		err = -EINVAL;
	if (!err)
		err = net_route_lookup(&request->src, &request->dst, iface.ifindex, &path->route);
	if (!err && path->route.ifindex != iface.ifindex)
		err = -EINVAL;
	path->gid.ifindex = iface.ifindex;
	return err;
}

static int locate_ib(struct request *request, struct port *port)
{
	int err = infiniband_locate(port, request->conn, request->msg, &request->path);

	request->path.port = port;
	if (err)
		return err;
	if (has_cma_hdr(request)) {
		request->header_bytes = CMA_HDR_BYTES;
		return check_ipoib(request);
	}
	set_ib_addrs(request);
	return 0;
}

/* The header's addresses must be true: ours one of the interface that the request came to, and
 * the way back to the peer must leave through it. */
static int locate(struct request *request)
{
	struct port *port = port_of(request->conn->port);
	struct id_path *path = &request->path;
	struct gid_entry arrived;
	int err;

	if (is_on_infiniband(port))
		return locate_ib(request, port);
	request->header_bytes = CMA_HDR_BYTES;
	err = gid_by_index(port->device->verbs, port->port_num, request->conn->path.sgid_index,
			   &arrived);
	if (!err)
		err = parse_addrs(request, arrived.ifindex);
	if (!err)
		err = gid_find(&port->device->verbs, 1, &request->dst, arrived.ifindex, &path->gid);
	if (!err)
		err = net_route_lookup(&request->src, &request->dst, arrived.ifindex, &path->route);
	if (!err && path->route.ifindex != arrived.ifindex)
		err = -EINVAL;
	path->port = port;
	return err;
}

static enum ibv_qp_type qp_type_of(const struct cm_req *req)
{
	if (req->transport_service_type == CM_TRANSPORT_UC)
		return IBV_QPT_UC;
	if (req->transport_service_type == CM_TRANSPORT_EXTENDED &&
	    req->extended_transport_type == CM_EXTENDED_XRC)
		return IBV_QPT_XRC_RECV;
	return IBV_QPT_RC;
}

/* An endpoint that was made for no type takes them all. */
static bool is_of_type(const struct id *id, enum ibv_qp_type type)
{
	enum ibv_qp_type wanted = id_transport(id);

	return !(int)wanted || wanted == type;
}

static bool is_lookup(const struct cm_msg *msg)
{
	return msg->hdr.attr_id == CM_ATTR_SIDR_REQ;
}

static struct request request_of(struct cm_conn *conn, const struct cm_msg *msg)
{
	if (is_lookup(msg))
		return (struct request){ .conn = conn,
					 .msg = msg,
					 .data = msg->sidr_req.private_data,
					 .qp_type = IBV_QPT_UD };
	return (struct request){ .conn = conn,
				 .msg = msg,
				 .data = msg->req.private_data,
				 .qp_type = qp_type_of(&msg->req) };
}

static bool listens_to(const struct id *id, const struct request *request)
{
	return id->state == ID_LISTEN && is_of_type(id, request->qp_type) &&
	       port_claim_accepts(&id->claim, &request->dst);
}

static struct id *find_listener(struct engine *engine, const struct request *request)
{
	uint64_t service_id = request->conn->service_id;
	struct port_claim *claim;
	struct id *id;

	claim = port_space_first(&engine->ports, (uint16_t)(service_id >> 16),
				 (uint16_t)service_id);
	for (; claim; claim = claim->next) {
		id = container_of(claim, struct id, claim);
		if (listens_to(id, request))
			return id;
	}
	return NULL;
}

/* --- the new id ---------------------------------------------------------- */

static void set_req(struct event *event, const struct cm_msg *msg, uint8_t header_bytes)
{
	const struct cm_req *req = &msg->req;
	struct rdma_conn_param *param = &event->pub.param.conn;
	uint8_t bytes = CM_REQ_PRIVATE_BYTES - header_bytes;

	memcpy(event->private_data, req->private_data + header_bytes, bytes);
	param->private_data = event->private_data;
	param->private_data_len = bytes;
	param->responder_resources = req->initiator_depth;
	param->initiator_depth = req->responder_resources;
	param->flow_control = req->flow_control;
	param->retry_count = req->retry_count;
	param->rnr_retry_count = req->rnr_retry_count;
	param->srq = req->srq;
	param->qp_num = req->local_qpn;
	event->ece.vendor_id = req->vendor_id;
	event->ece.options = msg->hdr.attr_mod;
}

static void set_sidr_req(struct event *event, const struct cm_sidr_req *req, uint8_t header_bytes)
{
	struct rdma_ud_param *param = &event->pub.param.ud;
	uint8_t bytes = CM_SIDR_REQ_PRIVATE_BYTES - header_bytes;

	memcpy(event->private_data, req->private_data + header_bytes, bytes);
	param->private_data = event->private_data;
	param->private_data_len = bytes;
}

/* A lookup says nothing of the path, so a child of it has none to show. */
static void set_path(struct id *id, const struct request *request)
{
	const struct cm_conn *conn = request->conn;

	id->path = request->path;
	port_get(id->path.port);
	if (is_lookup(request->msg)) {
		id->path.pkey = request->msg->sidr_req.pkey;
		return;
	}
	id->path.mtu = conn->path_mtu;
	id->path.packet_life_time = conn->packet_life_time;
	id->path.flow_label = conn->flow_label;
	id->path.sl = conn->sl;
	id->path.pkey = request->msg->req.pkey;
	id->path.rate = request->msg->req.primary.packet_rate;
	id->path.traffic_class = conn->traffic_class;
}

static struct id *child_new(const struct id *listener, const struct request *request)
{
	struct id *id;

	if (id_new(listener->channel, listener->pub.ps, &id))
		return NULL;
	id->destroy = listener->destroy;
	id->pub.context = listener->pub.context;
	id->pub.qp_type = listener->pub.qp_type;
	if (!(int)id->pub.qp_type)
		id->pub.qp_type = request->qp_type;
	id->option.give_up_ns = listener->option.give_up_ns;
	id->claim.local = request->dst;
	id->claim.peer = request->src;
	set_path(id, request);
	addr_store(&request->src, &id->pub.route.addr.dst_storage);
	id->hides_scope = true;
	if (request->src.sa.sa_family == AF_INET6)
		id->pub.route.addr.dst_sin6.sin6_scope_id = 0;
	id->state = ID_CONNECT;
	id->conn = request->conn;
	return id;
}

/* Unanswered, a REQ comes again; by then there may be memory, or room in the queue. The kernel
 * answers a SIDR_REQ all the same. */
static void turn_away(struct engine *engine, struct outbox *box, const struct request *request)
{
	engine_step(engine, box, request->conn,
		    is_lookup(request->msg) ? CM_CALL_DESTROY : CM_CALL_FORGET, NULL);
}

/* Return: CONNECT_REQUEST, of a new id; NULL when out of memory. */
static struct event *make_event(struct engine *engine, struct id *listener,
				const struct request *request)
{
	struct event *event = id_event(listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	struct id *child = event ? child_new(listener, request) : NULL;

	if (!child) {
		id_event_free(event);
		return NULL;
	}
	request->conn->owner = child;
	list_append(&engine->ids, &child->link);
	event->subject = child;
	event->pub.id = &child->pub;
	event->pub.listen_id = &listener->pub;
	if (is_lookup(request->msg))
		set_sidr_req(event, &request->msg->sidr_req, request->header_bytes);
	else
		set_req(event, request->msg, request->header_bytes);
	return event;
}

/* A repeated REQ is met with MRA from now on. */
static void show(struct engine *engine, struct outbox *box, struct event *event)
{
	struct cm_conn *conn = event->subject->conn;

	event->owner->n_requests++;
	id_post(event);
	if (conn->state == CM_REQ_RCVD)
		engine_step(engine, box, conn, CM_CALL_MRA, NULL);
}

static void deliver(struct engine *engine, struct outbox *box, struct id *listener,
		    const struct request *request)
{
	bool has_room = listener->n_requests < listener->backlog;
	struct event *event = NULL;

	if (has_room || (!is_lookup(request->msg) && waiting_has_room(listener)))
		event = make_event(engine, listener, request);
	if (!event)
		turn_away(engine, box, request);
	else if (has_room)
		show(engine, box, event);
	else
		waiting_add(event);
}

void listen_request_taken(struct id *listener)
{
	struct event *event;
	struct engine *engine;
	struct outbox box;
	struct list dropped;

	list_init(&dropped);
	outbox_init(&box);
	engine = engine_lock();
	listener->n_requests--;
	event = waiting_next(engine, &box, listener, &dropped);
	if (event)
		show(engine, &box, event);
	engine_unlock();
	outbox_flush(&box);
	waiting_free(&dropped);
}

/* With REJ 28, or SIDR_REP 2. */
static void refuse(struct engine *engine, struct outbox *box, struct cm_conn *conn)
{
	engine_step(engine, box, conn, CM_CALL_DESTROY, NULL);
}

/* Our own GID in the REQ's path is where the peer's packets will go to: it must be ours. */
static bool path_is_ours(const struct request *request)
{
	return is_lookup(request->msg) ||
	       memcmp(&request->path.gid.gid, &request->msg->req.primary.remote_gid,
		      sizeof(request->path.gid.gid)) == 0;
}

static bool has_wrong_alternate(struct request *request)
{
	struct id_path *path = &request->path;

	return infiniband_is(path) && !is_lookup(request->msg) &&
	       alternate_take(path->port, &request->msg->req, path) != 0;
}

/* With a GID that would do. */
static void refuse_gid(struct engine *engine, struct outbox *box, struct cm_conn *conn,
		       uint16_t reason, const void *gid)
{
	struct cm_msg msg = { .rej.reason = reason, .rej.ari_bytes = sizeof(struct mad_gid) };
	struct cm_args args = { .msg = &msg };

	memcpy(msg.rej.ari, gid, sizeof(struct mad_gid));
	engine_step(engine, box, conn, CM_CALL_REJ, &args);
	engine_step(engine, box, conn, CM_CALL_DESTROY, NULL);
}

void listen_request(struct engine *engine, struct outbox *box, struct cm_conn *conn,
		    const struct cm_msg *msg)
{
	struct request request = request_of(conn, msg);
	struct id *listener;

	if (locate(&request)) {
		refuse(engine, box, conn);
		return;
	}
	if (!path_is_ours(&request)) {
		refuse_gid(engine, box, conn, CM_REJ_INVALID_GID, &conn->port->gid0);
		return;
	}
	if (has_wrong_alternate(&request)) {
		refuse_gid(engine, box, conn, CM_REJ_INVALID_ALT_GID, &msg->req.primary.remote_gid);
		return;
	}
	listener = find_listener(engine, &request);
	if (listener)
		deliver(engine, box, listener, &request);
	else
		refuse(engine, box, conn);
}

/* --- rdma_listen --------------------------------------------------------- */

void listen_stop(struct engine *engine, struct id *id)
{
	if (!id->serving)
		return;
	cm_core_unserve(&engine->core, &id->service);
	id->serving = false;
	if (addr_is_any(&id->claim.local))
		engine->n_wildcards--;
}

/* Every port that can be had; only if none can is it an error. */
static int open_all_ports(void)
{
	const struct device_list *list = device_list();
	int i, err, first = list->n ? 0 : -ENODEV;
	struct port *port;
	bool any = false;
	uint8_t num;

	for (i = 0; i < list->n; i++) {
		for (num = 1; num <= list->device[i]->n_ports; num++) {
			err = device_port_open(list->device[i], num, &port);
			if (!err)
				port_put(port);
			any = any || !err;
			first = first ? first : err;
		}
	}
	return any ? 0 : first;
}

void listen_extend(void)
{
	bool wanted;

	wanted = engine_lock()->n_wildcards > 0;
	engine_unlock();
	if (wanted && device_list_refresh() == 0)
		open_all_ports();
}

static int open_ports(struct id *id)
{
	struct port *port;
	int err;

	if (addr_is_any(&id->claim.local))
		return open_all_ports();
	if (id->path.port)
		return 0;
	err = device_port_open(device_of(id->path.gid.verbs), id->path.gid.port_num, &port);
	if (!err)
		id->path.port = port;
	return err;
}

static int begin(struct engine *engine, struct id *id, unsigned int backlog)
{
	uint64_t service_id = cma_service_id(id->claim.ps, addr_port(&id->claim.local));
	int err;

	if (id->state != ID_ADDR_BOUND)
		return -EINVAL;
	err = cm_core_serve(&engine->core, &id->service, service_id);
	if (err)
		return err;
	id->serving = true;
	id->backlog = backlog;
	id->state = ID_LISTEN;
	if (addr_is_any(&id->claim.local))
		engine->n_wildcards++;
	return 0;
}

static int bind_if_idle(struct id *id)
{
	union addr any;

	if (!engine_id_is(id, ID_IDLE))
		return 0;
	addr_set_any(&any, AF_INET);
	return bind_local(id, &any);
}

/* Whoever starts a server and then a client waits for this line. */
static void trace_listening(const struct id *id)
{
	char text[ADDR_STR_BYTES];

	if (log_is_debug())
		log_debug("listening on %s", addr_str(&id->claim.local, text));
}

static int start_listening(struct id *id, int backlog)
{
	struct engine *engine;
	unsigned int max;
	int err = bind_if_idle(id);

	if (!err && !engine_id_is(id, ID_ADDR_BOUND))
		err = -EINVAL;
	if (!err)
		err = open_ports(id);
	if (!err)
		err = claims_listen(id);
	if (err)
		return err;
	engine = engine_lock();
	max = engine->ports.limits.max_backlog;
	err = begin(engine, id,
		    backlog <= 0 || (unsigned int)backlog > max ? max : (unsigned int)backlog);
	engine_unlock();
	if (err)
		return err;
	id_show_addrs(id);
	trace_listening(id);
	return 0;
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	if (!id)
		return api_return(-EINVAL);
	return api_return(start_listening(id_of(id), backlog));
}

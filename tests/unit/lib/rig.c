/* SPDX-License-Identifier: BSD-2-Clause */
/* A folder of lib/ alone: see rig.h. */
#include "tests/unit/lib/rig.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/clock.h"
#include "base/pool.h"
#include "lib/conn/hotplug.h"
#include "lib/conn/removal.h"
#include "lib/conn/core_report.h"
#include "lib/conn/resolve.h"
#include "lib/conn/upcalls.h"
#include "lib/diag/lock_order.h"
#include "lib/engine/cmportd.h"
#include "lib/path/path.h"
#include "mad/cma_hdr.h"
#include "tests/unit/lib/fake_net.h"
#include "tests/unit/test.h"

#define PEER_GUID 0xb0b
#define PEER_PSN  0x4711
#define GID_INDEX 1

struct rig rig;

/* --- time ------------------------------------------------------------------ */

int __real_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
	if (!rig.now_ns || clock != CLOCK_MONOTONIC)
		return __real_clock_gettime(clock, ret);
	ret->tv_sec = (time_t)(rig.now_ns / UINT64_C(1000000000));
	ret->tv_nsec = (long)(rig.now_ns % UINT64_C(1000000000));
	return 0;
}

/* --- memory ---------------------------------------------------------------- */

void *__real_pool_take(struct pool *pool);
void *__wrap_pool_take(struct pool *pool);

void *__wrap_pool_take(struct pool *pool)
{
	return rig.has_no_memory ? NULL : __real_pool_take(pool);
}

/* --- the upcalls ----------------------------------------------------------- */

static int start(void)
{
	return 0;
}

static void do_nothing(void)
{
}

static void keep_report(struct engine *engine, struct outbox *box, const struct cm_report *report,
			const struct cm_msg *msg)
{
	(void)engine, (void)box, (void)msg;
	ck_assert_uint_lt(rig.n_reports, RIG_REPORTS_MAX);
	rig.report[rig.n_reports++] = *report;
}

static void count_neighbour(const struct net_event *event)
{
	(void)event;
	rig.n_neighbours++;
}

static void count_interfaces(void)
{
	rig.n_interfaces++;
}

static void count_expired(struct cm_time now)
{
	(void)now;
	rig.n_expired++;
}

static void count_looked(void)
{
	rig.n_looked++;
}

static struct cm_time never(void)
{
	return CM_TIME_NEVER;
}

static const struct engine_upcalls counting = {
	.start = start,
	.stop = do_nothing,
	.report = keep_report,
	.prepare = path_prepare,
	.neighbour_changed = count_neighbour,
	.interfaces_changed = count_interfaces,
	.expire = count_expired,
	.before_sleep = count_looked,
	.deadline = never,
	.after_fork = do_nothing,
};

const struct engine_upcalls rig_reporting = {
	.start = start,
	.stop = do_nothing,
	.report = report_dispatch,
	.prepare = path_prepare,
	.neighbour_changed = resolve_neigh_changed,
	.interfaces_changed = hotplug_extend,
	.expire = resolve_expire,
	.before_sleep = do_nothing,
	.deadline = never,
	.after_fork = do_nothing,
};

/* --- cmportd and its device ------------------------------------------------ */

static union addr ip(uint32_t ip4, uint16_t port)
{
	union addr addr;

	addr_set_any(&addr, AF_INET);
	addr.in4.sin_addr.s_addr = htonl(ip4);
	addr_set_port(&addr, port);
	return addr;
}

union addr rig_own(uint16_t port)
{
	return ip(RIG_OWN_IP, port);
}

union addr rig_peer(uint16_t port)
{
	return ip(RIG_PEER_IP, port);
}

static struct mad_gid gid_of(union addr addr)
{
	return addr_to_gid(&addr);
}

static void plug_device(void)
{
	struct mad_gid own = gid_of(rig_own(0));

	fake.listed = &fake.device_node;
	fake.n_listed = 1;
	fake.port[0] = (struct ibv_port_attr){
		.state = IBV_PORT_ACTIVE,
		.link_layer = IBV_LINK_LAYER_ETHERNET,
		.gid_tbl_len = 2,
	};
	fake.n_gids = 2;
	for (int i = 0; i < 2; i++)
		fake.gid[i] = (struct ibv_gid_entry){ .gid_index = (uint32_t)i,
						      .port_num = 1,
						      .gid_type = IBV_GID_TYPE_ROCE_V2,
						      .ndev_ifindex = FAKE_IFINDEX };
	memcpy(&fake.gid[GID_INDEX].gid, &own, sizeof(own));
	ck_assert_int_eq(device_list_load(), 0);
	rig.device = device_of(&fake.verbs.context);
	ck_assert_int_eq(device_port_open(rig.device, 1, &rig.port), 0);
}

/* Aborts if the engine's lock is held, which comes after cmportd's in the lock order. */
static void queried(void)
{
	static pthread_mutex_t any = PTHREAD_MUTEX_INITIALIZER;

	lock_take(&any, LOCK_HOST);
	lock_give(&any, LOCK_HOST);
}

int __real_upcalls_start(void);
int __wrap_upcalls_start(void);
static bool is_begun;

/* The engine is the rig's, and has no thread. */
int __wrap_upcalls_start(void)
{
	return is_begun ? 0 : __real_upcalls_start();
}

void rig_begin_with(const struct engine_upcalls *upcalls)
{
	union addr own = rig_own(0);

	rig.now_ns = 0;
	rig = (struct rig){ .now_ns = clock_ns() }; /* Check reads this clock, too */
	fake_begin();
	fake.queried = queried;
	fake_cmportd_begin();
	fake_net_begin(&own);
	ck_assert_int_eq(engine_init(upcalls), 0);
	is_begun = true;
	device_set_gone(removal_of_device);
	ck_assert_int_eq(cmportd_start(), 0);
	plug_device();
	ck_assert_int_eq(channel_new(&rig.channel), 0);
	fcntl(rig.channel->pub.fd, F_SETFL, O_NONBLOCK);
}

void rig_begin(void)
{
	rig_begin_with(&counting);
}

/* --- ids ------------------------------------------------------------------- */

static void destroy(struct id *id)
{
	rdma_destroy_id(&id->pub);
}

struct id *rig_id(enum rdma_port_space ps, enum id_state state)
{
	struct engine *engine;
	struct id *id;

	ck_assert_int_eq(id_new(rig.channel, ps, &id), 0);
	engine = engine_lock();
	list_append(&engine->ids, &id->link);
	id->state = state;
	id->destroy = destroy;
	engine_unlock();
	return id;
}

struct id *rig_on_device(enum rdma_port_space ps, enum id_state state)
{
	struct id *id = rig_id(ps, state);

	ck_assert_int_eq(gid_by_index(&fake.verbs.context, 1, GID_INDEX, &id->path.gid), 0);
	id->path.port = port_get(rig.port);
	id->claim.local = rig_own(FAKE_FIRST_PORT);
	ck_assert_int_eq(id_attach(id), 0);
	return id;
}

struct id *rig_routed(enum rdma_port_space ps)
{
	struct id *id = rig_on_device(ps, ID_ROUTE_RESOLVED);

	id->claim.peer = rig_peer(RIG_PORT);
	id->path.dgid = gid_of(rig_peer(0));
	id->path.sgid = id->path.gid.gid;
	id->path.hop_limit = 64;
	id->path.route.hop_limit = 64;
	id->path.pkey = 0xffff;
	id->path.mtu = IBV_MTU_1024;
	return id;
}

struct id *rig_listener(int backlog)
{
	union addr own = rig_own(RIG_PORT);
	struct id *id = rig_id(RDMA_PS_TCP, ID_IDLE);

	ck_assert_int_eq(rdma_bind_addr(&id->pub, &own.sa), 0);
	ck_assert_int_eq(rdma_listen(&id->pub, backlog), 0);
	return id;
}

/* --- the peer -------------------------------------------------------------- */

void rig_receive(const struct cm_msg *msg)
{
	struct mad_path path = {
		.grh = true,
		.sgid_index = GID_INDEX,
		.hop_limit = 64,
		.dgid = gid_of(rig_peer(0)),
	};
	uint8_t mad[MAD_BYTES];

	cm_msg_encode(msg, mad);
	engine_receive(rig.port, &path, mad);
	engine_received_all();
}

struct cm_msg rig_rep(void)
{
	struct cm_msg req = fake_cmportd_message(CM_ATTR_REQ), rep;

	cm_msg_init(&rep, CM_ATTR_REP, req.hdr.tid);
	rep.rep.local_comm_id = RIG_PEER_ID + rig.n_reps;
	rep.rep.remote_comm_id = req.req.local_comm_id;
	rep.rep.local_qpn = RIG_PEER_QPN + rig.n_reps++;
	rep.rep.local_ca_guid = PEER_GUID;
	rep.rep.starting_psn = PEER_PSN;
	return rep;
}

struct cm_msg rig_dreq(const struct id *id)
{
	struct cm_msg dreq;

	cm_msg_init(&dreq, CM_ATTR_DREQ, 0x1234);
	dreq.dreq.local_comm_id = id->conn->remote_comm_id;
	dreq.dreq.remote_comm_id = id->conn->local_comm_id;
	dreq.dreq.remote_qpn = id->conn->local_qpn;
	return dreq;
}

struct cm_msg rig_req(uint32_t comm_id)
{
	struct cma_hdr hdr = { .ip_version = 4, .src_port = RIG_PORT };
	struct cm_msg msg;

	cm_msg_init(&msg, CM_ATTR_REQ, comm_id);
	msg.req.service_id = cma_service_id(RDMA_PS_TCP, RIG_PORT);
	msg.req.local_comm_id = comm_id;
	msg.req.local_ca_guid = PEER_GUID;
	msg.req.local_qpn = RIG_PEER_QPN + comm_id;
	msg.req.starting_psn = PEER_PSN;
	msg.req.pkey = 0xffff;
	msg.req.path_mtu = IBV_MTU_1024;
	msg.req.max_cm_retries = 15;
	msg.req.remote_cm_response_timeout = 20;
	msg.req.local_cm_response_timeout = 20;
	msg.req.primary.local_gid = gid_of(rig_peer(0));
	msg.req.primary.remote_gid = gid_of(rig_own(0));
	msg.req.primary.hop_limit = 64;
	msg.req.primary.local_ack_timeout = 17;
	memcpy(hdr.src_addr + 12, &(uint32_t){ htonl(RIG_PEER_IP) }, 4);
	memcpy(hdr.dst_addr + 12, &(uint32_t){ htonl(RIG_OWN_IP) }, 4);
	wire_encode(&cma_hdr_layout, &hdr, msg.req.private_data);
	return msg;
}

void rig_request(uint32_t comm_id)
{
	struct cm_msg req = rig_req(comm_id);

	rig_receive(&req);
}

struct cm_msg rig_lookup(uint32_t request_id)
{
	struct cm_msg req = rig_req(request_id), lookup;

	cm_msg_init(&lookup, CM_ATTR_SIDR_REQ, request_id);
	lookup.sidr_req.request_id = request_id;
	lookup.sidr_req.pkey = req.req.pkey;
	lookup.sidr_req.service_id = cma_service_id(RDMA_PS_UDP, RIG_PORT);
	memcpy(lookup.sidr_req.private_data, req.req.private_data, CMA_HDR_BYTES);
	return lookup;
}

struct id *rig_requested(uint32_t comm_id)
{
	struct rdma_cm_event *event;
	struct id *child;

	rig_request(comm_id);
	event = rig_next();
	ck_assert_ptr_nonnull(event);
	ck_assert_str_eq(rdma_event_str(event->event), "RDMA_CM_EVENT_CONNECT_REQUEST");
	child = id_of(event->id);
	rdma_ack_cm_event(event);
	return child;
}

struct cm_msg rig_rtu(const struct id *id)
{
	struct cm_msg rtu;

	cm_msg_init(&rtu, CM_ATTR_RTU, id->conn->remote_comm_id);
	rtu.rtu.local_comm_id = id->conn->remote_comm_id;
	rtu.rtu.remote_comm_id = id->conn->local_comm_id;
	return rtu;
}

/* The queue pair is the program's own, so no verbs are called. */
struct id *rig_connected(void)
{
	struct rdma_conn_param param = { .qp_num = 0x42 };
	struct id *id = rig_routed(RDMA_PS_TCP);
	struct rdma_cm_event *event;
	struct cm_msg rep;
	struct outbox box;

	ck_assert_int_eq(rdma_connect(&id->pub, &param), 0);
	rep = rig_rep();
	rig_receive(&rep);
	event = rig_next();
	if (event)
		rdma_ack_cm_event(event);
	outbox_init(&box);
	ck_assert_int_eq(engine_step(engine_lock(), &box, id->conn, CM_CALL_RTU, NULL), 0);
	engine_unlock();
	outbox_flush(&box);
	rig_expect_conn(id, CM_ESTABLISHED);
	return id;
}

/* --- results --------------------------------------------------------------- */

struct rdma_cm_event *rig_next(void)
{
	struct rdma_cm_event *event;

	return rdma_get_cm_event(&rig.channel->pub, &event) ? NULL : event;
}

void rig_expect(enum rdma_cm_event_type type, int status)
{
	struct rdma_cm_event *event = rig_next();

	ck_assert_msg(event, "no event; %s was expected", rdma_event_str(type));
	ck_assert_str_eq(rdma_event_str(event->event), rdma_event_str(type));
	ck_assert_int_eq(event->status, status);
	rdma_ack_cm_event(event);
}

void rig_expect_nothing(void)
{
	struct rdma_cm_event *event = rig_next();

	ck_assert_msg(!event, "an event: %s", event ? rdma_event_str(event->event) : "");
}

void rig_expect_state(const struct id *id, enum id_state state)
{
	static const char *const names[] = {
#define X(name) #name,
		PORTD_ID_STATES(X)
#undef X
	};

	ck_assert_str_eq(names[id->state], names[state]);
}

void rig_expect_conn(const struct id *id, enum cm_state state)
{
	ck_assert_msg(id->conn, "no connection; %s was expected", cm_state_str(state));
	ck_assert_str_eq(cm_state_str(id->conn->state), cm_state_str(state));
}

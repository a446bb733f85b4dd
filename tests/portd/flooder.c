/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A malicious client of cmportd: it sends all that it can, as fast as it can, and never reads. Or a
 * malicious host of the network, without a cmportd of its own. Run by tests/siege/siege.py and
 * many_lab.py.
 *
 *   flooder [wire:]KIND DEVICE OWN-ADDRESS PEER-ADDRESS SECONDS
 *
 * Prints "floods" when it has begun, the number of messages at the end, and ends without
 * disconnecting.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mad/cm_msg.h"
#include "mad/cma_hdr.h"
#include "mad/umad.h"
#include "lib/portd/proto/datagram.h"
#include "lib/portd/client/portd_client.h"
#include "tests/portd/flooder.h"

#define ON_WIRE	     "wire:"
#define CLAIM	     7
#define OWN_CLAIM    8
#define DEAF_PORT    7999 /* a port without a listener */
#define SLOW_PORT    7998 /* the port of a listener that does not read */
#define GIDS_MAX     64
#define RESPONSE_EXP 20
#define NAMESAKES    200
#define PORT_WAIT_S  2 /* for the ports of flooders that have just ended */

static struct portd_client *client;
static struct mad_port *wire; /* instead of cmportd */
static const char *device;
static struct portd_ids ids;
static uint32_t next_id; /* of its own block */
static uint64_t ca_guid;
static uint8_t handle;
static struct mad_path to_peer;
static struct mad_gid own, peer;
static uint16_t own_port;

void die(const char *what, int err)
{
	printf("flooder: %s: %s\n", what, strerror(-err));
	exit(1);
}

static struct mad_gid gid_of(const char *address)
{
	struct mad_gid gid = { .raw[10] = 0xff, .raw[11] = 0xff };

	if (inet_pton(AF_INET, address, gid.raw + 12) != 1)
		die(address, -EINVAL);
	return gid;
}

/* --- messages ------------------------------------------------------------ */

void flooder_put(struct portd_mad *mad, const struct cm_msg *msg)
{
	*mad = (struct portd_mad){ .port = handle, .path = to_peer };
	cm_msg_encode(msg, mad->mad);
}

uint32_t flooder_id(void)
{
	return ids.first + next_id++ % ids.count;
}

void flooder_request(struct portd_mad *mad, uint16_t port, uint32_t qpn)
{
	struct cma_hdr hdr = { .ip_version = 4, .src_port = own_port };
	struct cm_msg msg;
	struct cm_req *req = &msg.req;

	cm_msg_init(&msg, CM_ATTR_REQ, next_id);
	req->local_comm_id = flooder_id();
	req->service_id = cma_service_id(RDMA_PS_TCP, port);
	req->local_ca_guid = ca_guid;
	req->local_qpn = qpn ? qpn : 0x800000 | req->local_comm_id;
	req->local_cm_response_timeout = RESPONSE_EXP;
	req->remote_cm_response_timeout = RESPONSE_EXP;
	req->pkey = 0xffff;
	req->max_cm_retries = 15;
	req->primary.hop_limit = 64;
	req->primary.local_gid = own;
	req->primary.remote_gid = peer;
	memcpy(hdr.src_addr, own.raw, sizeof(own.raw));
	memcpy(hdr.dst_addr, peer.raw, sizeof(peer.raw));
	wire_encode(&cma_hdr_layout, &hdr, req->private_data);
	flooder_put(mad, &msg);
}

void flooder_reply(struct portd_mad *mad, uint32_t remote_comm_id, uint32_t qpn)
{
	struct cm_msg msg;

	cm_msg_init(&msg, CM_ATTR_REP, next_id);
	msg.rep.local_comm_id = flooder_id();
	msg.rep.remote_comm_id = remote_comm_id;
	msg.rep.local_ca_guid = ca_guid;
	msg.rep.local_qpn = qpn;
	flooder_put(mad, &msg);
}

void flooder_send_to_itself(void)
{
	peer = to_peer.dgid = own;
}

/* Permitted: one connection each, which the peer rejects. */
static void request(struct portd_mad *mad)
{
	flooder_request(mad, DEAF_PORT, 0);
}

static void slow_request(struct portd_mad *mad)
{
	flooder_request(mad, SLOW_PORT, 0);
}

/* A REQ with the queue pair of another user's connection, which the peer would consider stale. */
static void namesake(struct portd_mad *mad)
{
	const char *first = getenv("HOLD_QPN"); /* see tools/certify/hold.c */

	flooder_request(mad, DEAF_PORT, (first ? (uint32_t)atoi(first) : 1) + next_id % NAMESAKES);
}

/* Permitted too: it may belong to a connection that is forgotten. */
static void answer(struct portd_mad *mad)
{
	struct cm_msg msg;

	cm_msg_init(&msg, CM_ATTR_DREP, next_id);
	msg.drep.local_comm_id = flooder_id();
	msg.drep.remote_comm_id = next_id;
	flooder_put(mad, &msg);
}

/* For the comm id of another user; on the wire, for no connection. */
static void make_false_claim(struct portd_mad *mad)
{
	struct cm_msg msg;

	cm_msg_init(&msg, CM_ATTR_DREQ, next_id);
	msg.dreq.local_comm_id = flooder_id() ^ 0x80000000;
	msg.dreq.remote_comm_id = next_id;
	flooder_put(mad, &msg);
}

/* Makes MADs of another class, or of none. */
static void noise(struct portd_mad *mad)
{
	make_false_claim(mad);
	memset(mad->mad, (int)next_id++, MAD_BYTES);
}

static void lookup(struct portd_mad *mad)
{
	struct cma_hdr hdr = { .ip_version = 4, .src_port = own_port };
	struct cm_msg msg;

	cm_msg_init(&msg, CM_ATTR_SIDR_REQ, next_id);
	msg.sidr_req.request_id = flooder_id();
	msg.sidr_req.pkey = 0xffff;
	msg.sidr_req.service_id = cma_service_id(RDMA_PS_UDP, DEAF_PORT);
	memcpy(hdr.src_addr, own.raw, sizeof(own.raw));
	memcpy(hdr.dst_addr, peer.raw, sizeof(peer.raw));
	wire_encode(&cma_hdr_layout, &hdr, msg.sidr_req.private_data);
	flooder_put(mad, &msg);
}

/* For a connection of another user. */
static void forgery(struct portd_mad *mad)
{
	*mad = (struct portd_mad){ .port = handle, .path = to_peer };
	forge(&own, &peer, &mad->path.dgid, mad->mad);
}

int flooder_send(const struct portd_mad *mads, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		portd_hold(client, &(struct portd_record){ .type = PORTD_MAD, .mad = mads[i] });
	return portd_send_held(client);
}

static bool send_batch(void (*make)(struct portd_mad *mad))
{
	struct portd_mad mads[BATCH];
	unsigned int i;
	int err = 0;

	for (i = 0; i < BATCH; i++)
		make(&mads[i]);
	for (i = 0; wire && i < BATCH && !err; i++)
		err = mad_port_send(wire, &mads[i].path, mads[i].mad);
	return (wire ? err : flooder_send(mads, BATCH)) == 0;
}

/* Requests, lookups and invalid messages in turn, each from another address. */
static bool send_as_strangers(void)
{
	static void (*const makes[])(struct portd_mad * mad) = { request, lookup,
								 make_false_claim };
	struct portd_mad mad;
	unsigned int i;

	for (i = 0; i < BATCH; i++) {
		makes[i % (sizeof(makes) / sizeof(makes[0]))](&mad);
		if (!send_as_stranger(&own, &mad))
			return false;
	}
	return true;
}

static bool send_requests(void)
{
	return send_batch(request);
}

static bool send_slow_requests(void)
{
	return send_batch(slow_request);
}

static bool send_namesakes(void)
{
	return send_batch(namesake);
}

static bool send_answers(void)
{
	return send_batch(answer);
}

static bool send_lookups(void)
{
	return send_batch(lookup);
}

static bool send_false_claims(void)
{
	return send_batch(make_false_claim);
}

static bool send_noise(void)
{
	return send_batch(noise);
}

static bool send_forgeries(void)
{
	return send_batch(forgery);
}

/* --- requests to cmportd ------------------------------------------------- */

static bool ask(void)
{
	struct portd_claim claim = { .claim_id = CLAIM, .ps = RDMA_PS_TCP };
	unsigned int i;

	for (i = 0; i < BATCH; i++) {
		claim.local_port = 0;
		if (portd_bind(client, &claim))
			return false;
		portd_release(client, CLAIM);
	}
	return true;
}

static bool connect_and_leave(void)
{
	struct portd_client *guest;
	struct portd_ids its;
	struct portd_why why;

	if (portd_client_open(&guest, &its, &why))
		return false;
	portd_client_close(guest);
	return true;
}

/* Ends with connections that it has just requested. */
static bool connect_ask_and_leave(void)
{
	struct portd_client *first = client;
	struct portd_reply reply;
	struct portd_why why;
	bool done = false;

	if (portd_client_open(&client, &ids, &why) == 0) {
		done = portd_open_port(client, device, 1, portd_keep_reply, &reply, &why) == 0 &&
		       send_requests();
		portd_client_close(client);
	}
	client = first;
	return done;
}

static bool ask_for_devices(void)
{
	struct portd_reply reply;
	struct portd_why why;

	return portd_open_port(client, "none", 1, portd_keep_reply, &reply, &why) == -ENODEV;
}

/* Reopens an open port: its name may have changed. */
static bool open_again(void)
{
	struct portd_reply reply;
	struct portd_why why;

	return portd_open_port(client, device, 1, portd_keep_reply, &reply, &why) == 0;
}

/* Reports a connection that no message has created. */
static bool report(void)
{
	struct cm_record tracked = { .handle = handle,
				     .path = to_peer,
				     .local_comm_id = flooder_id(),
				     .remote_comm_id = 1 };

	portd_track(client, &tracked);
	return true;
}

static bool ask_for_ids(void)
{
	struct portd_ids its;

	return portd_lease_ids(client, &its) == 0;
}

static bool keep_ports(void)
{
	static uint32_t n = OWN_CLAIM;
	struct portd_claim claim = { .claim_id = ++n, .ps = RDMA_PS_TCP, .local_family = 4 };

	return portd_bind(client, &claim) == 0;
}

static bool ask_for_stat(void)
{
	struct portd_reply reply;

	return portd_stat(client, 0, &reply) == 0;
}

/* Holds as many idle clients as are permitted. */
static bool connect_and_stay(void)
{
	struct portd_client *guest;
	struct portd_ids its;
	struct portd_why why;

	return portd_client_open(&guest, &its, &why) == 0;
}

static const struct kind {
	const char *name;
	bool (*once)(void);
	unsigned int worth;
} kinds[] = {
	{ "knocks", connect_repeatedly, 1 },
	{ "rattles", connect_and_close, 1 },
	{ "requests", send_requests, BATCH },
	{ "silence", hold_idle_sockets, 1 },
	{ "slow-requests", send_slow_requests, BATCH },
	{ "namesakes", send_namesakes, BATCH },
	{ "answers", send_answers, BATCH },
	{ "lies", send_false_claims, BATCH },
	{ "forgeries", send_forgeries, BATCH },
	{ "noise", send_noise, BATCH },
	{ "questions", ask, BATCH },
	{ "visits", connect_and_leave, 1 },
	{ "lookups", send_lookups, BATCH },
	{ "deaths", connect_ask_and_leave, BATCH },
	{ "devices", ask_for_devices, 1 },
	{ "ids", ask_for_ids, 1 },
	{ "ports", keep_ports, 1 },
	{ "stats", ask_for_stat, 1 },
	{ "crowd", connect_and_stay, 1 },
	{ "descriptors", send_lingering_sockets, 1 },
	{ "stowaways", leave_lingering_sockets, 1 },
	{ "opens", open_again, 1 },
	{ "namespaces", fill_a_namespace, 1 },
	{ "reports", report, 1 },
	{ "renamings", rename_connection, BATCH },
	{ "lookalikes", replace_lookalikes, BATCH },
	{ "strangers", send_as_strangers, BATCH },
};

/* Ports without messages to a peer. */
static const struct kind kinds_of_subnet[] = {
	{ "paths", ask_for_paths, 1 },	 { "withdrawals", ask_for_paths_in_vain, 1 },
	{ "groups", join_groups, 1 },	 { "new-groups", make_groups, 1 },
	{ "tables", ask_for_tables, 1 }, { "doubts", doubt_paths, 1 },
};

/* --- start --------------------------------------------------------------- */

static uint8_t gid_index(void)
{
	int i, n, n_gids = GIDS_MAX;
	struct ibv_device **list = ibv_get_device_list(&n);
	struct ibv_context *verbs = NULL;
	union ibv_gid gid;

	for (i = 0; list && i < n; i++)
		if (!strcmp(ibv_get_device_name(list[i]), device))
			verbs = ibv_open_device(list[i]);
	for (i = 0; verbs && i < n_gids; i++)
		if (!ibv_query_gid(verbs, 1, i, &gid) && !memcmp(gid.raw, own.raw, sizeof(own)))
			return (uint8_t)i;
	die(device, -ENODEV);
	return 0;
}

/* Another flooder of kind "ports" may have the user's whole quota: then this one has none. */
static void take_own_port(void)
{
	struct portd_claim claim = { .claim_id = OWN_CLAIM, .ps = RDMA_PS_TCP, .local_family = 4 };
	const time_t end = time(NULL) + PORT_WAIT_S;
	int err;

	do
		err = portd_bind(client, &claim);
	while (err == -EDQUOT && time(NULL) < end);
	if (err && err != -EDQUOT)
		die("a port", err);
	own_port = claim.local_port;
}

static void begin_as_client(void)
{
	struct portd_reply reply;
	struct portd_why why;
	int err;

	do /* others of its user may connect all the time */
		err = portd_client_open(&client, &ids, &why);
	while (err == -ECONNREFUSED || err == -ETIMEDOUT ||
	       (err == -EDQUOT && strstr(why.text, "too often")));
	if (!err)
		err = portd_open_port(client, device, 1, portd_keep_reply, &reply, &why);
	if (err)
		die(why.text, err);
	take_own_port();
	handle = reply.handle;
	ca_guid = reply.ca_guid;
}

struct portd_client *flooder_client(void)
{
	return client;
}

uint8_t flooder_port(void)
{
	return handle;
}

void flooder_reconnect(void)
{
	portd_client_close(client);
	begin_as_client();
}

static void begin_on_the_wire(void)
{
	struct umad_owner who = { .what = "" };
	int err = umad_port_open(device, 1, &wire, &who);

	if (err)
		die(who.what, err);
	ids = (struct portd_ids){ .first = (uint32_t)getpid() << 16, .count = 65536 };
}

static void find_path(char **words)
{
	device = words[0];
	own = gid_of(words[1]);
	peer = gid_of(words[2]);
	to_peer = (struct mad_path){
		.grh = true, .hop_limit = 64, .sgid_index = gid_index(), .dgid = peer
	};
}

static const struct kind *find_kind_in(const struct kind *in, size_t n, const char *name)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!strcmp(in[i].name, name))
			return &in[i];
	return NULL;
}

static const struct kind *find_kind(const char *name, bool *ret_is_of_subnet)
{
	const struct kind *kind = find_kind_in(kinds, sizeof(kinds) / sizeof(kinds[0]), name);

	*ret_is_of_subnet = !kind;
	if (!kind)
		kind = find_kind_in(kinds_of_subnet,
				    sizeof(kinds_of_subnet) / sizeof(kinds_of_subnet[0]), name);
	if (!kind)
		die(name, -EINVAL);
	return kind;
}

int main(int argc, char **argv)
{
	const struct kind *kind;
	unsigned long said = 0, refused = 0;
	bool on_wire, is_of_subnet;
	time_t end;

	if (argc != 6)
		return 2;
	on_wire = !strncmp(argv[1], ON_WIRE, strlen(ON_WIRE));
	kind = find_kind(argv[1] + (on_wire ? strlen(ON_WIRE) : 0), &is_of_subnet);
	device = argv[2];
	if (!is_of_subnet)
		find_path(argv + 2);
	if (on_wire)
		begin_on_the_wire();
	else
		begin_as_client();
	flooder_prepare(kind->name);
	printf("floods\n");
	fflush(stdout);
	for (end = time(NULL) + atoi(argv[5]); time(NULL) < end;) {
		if (kind->once())
			said += kind->worth;
		else
			refused++;
	}
	printf("said %lu, in vain %lu\n", said, refused);
	return 0;
}

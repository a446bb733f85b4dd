/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any sequence of requests of clients of several users and network namespaces to cmportd, of
 * received messages, and of restarts. Alice follows the rules: that client has a connection and a
 * listener, which nothing may change. In the end all clients leave, and after the longest timeout
 * nothing may be left: no client, tracked connection, connection or descriptor.
 *
 * An input is a sequence of actions, a byte each, followed by its arguments.
 */
#include <assert.h>
#include <fcntl.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "mad/cma_hdr.h"
#include "lib/portd/server/ledger/tracked_table.h"
#include "tests/fuzz/directory.h"
#include "tests/unit/portd/rig.h"

#define FUZZ_CLIENTS_MAX 4
#define N_HOSTS		 3
#define USERS		 4
#define ALICE_UID	 1000
#define GONE_PID	 0x7ffffff0 /* of all others, when the next cmportd assigns theirs */
#define ALICE_PEER	 9
#define ALICE_ID	 (alice.first + 1)
#define PEER_ID		 0x701
#define QPN		 0x101
#define ADDR		 "10.0.0.1"
#define AGES		 16
#define AGES_MS		 (600 * 1000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static struct rig_client alice;
static struct rig_client client[FUZZ_CLIENTS_MAX];
static const uint8_t *input;
static size_t left;

static uint8_t next_byte(void)
{
	if (left == 0)
		return 0;
	left--;
	return *input++;
}

static void next_bytes(uint8_t *to, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		to[i] = next_byte();
}

static struct rig_client *next_client(void)
{
	return &client[next_byte() % FUZZ_CLIENTS_MAX];
}

/* --- sockets ------------------------------------------------------------- */

static void close_client(struct rig_client *who)
{
	fd_close(&who->control);
	fd_close(&who->data);
	fd_close(&who->page_fd);
}

/* Disconnects a client and lets another take its slot, as any user in any network namespace. */
static struct rig_client *next_newcomer(void)
{
	uint8_t which = next_byte();
	struct rig_client *who = &client[which % FUZZ_CLIENTS_MAX];
	uid_t n = which / FUZZ_CLIENTS_MAX % USERS;

	close_client(who);
	rig_client_from(RIG_HOME + (which >> 6));
	rig_client_as_user(n ? ALICE_UID + n : 0);
	rig_client_as(GONE_PID);
	return who;
}

static void do_connect(void)
{
	next_newcomer()->control = rig_dial();
}

static int open_port_1(struct rig_client *who)
{
	struct portd_record open = { .type = PORTD_OPEN_PORT,
				     .open_port = { .port_num = 1, .device = RIG_DEVICE } };
	int err = rig_ask(who, &open);

	who->handle = who->reply.handle;
	return err;
}

/* The client's user may no longer be permitted to, or not yet. */
static void do_join(void)
{
	struct portd_record hello = { .type = PORTD_HELLO, .hello = { .version = PORTD_VERSION } };
	struct rig_client *who = next_newcomer();

	*who = (struct rig_client){ .control = rig_dial(), .data = -1, .page_fd = -1 };
	if (rig_ask(who, &hello))
		return;
	who->first = who->reply.first;
	who->secret = who->reply.secret;
	open_port_1(who);
}

static void do_close(void)
{
	struct rig_client *who = next_client();
	uint8_t what = next_byte();

	if (what & 1)
		fd_close(&who->control);
	if (what & 2)
		fd_close(&who->data);
}

static int some_fd(const struct rig_client *who)
{
	switch (next_byte() % 5) {
	case 0:
		return open("/dev/null", O_RDONLY | O_CLOEXEC);
	case 1:
		return memfd_create("forged", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	case 2:
		return who->page_fd < 0 ? -1 : dup(who->page_fd);
	case 3:
		return who->control < 0 ? -1 : dup(who->control);
	case 4:
		return dup(alice.page_fd);
	}
	return -1;
}

static void put(const struct rig_client *who, const void *bytes, size_t n)
{
	uint8_t how = next_byte();
	int to = how & 1 ? who->data : who->control;
	int fds[3], fd;
	unsigned int i, n_fds = 0;

	for (i = 0; i < (unsigned int)(how >> 1) % 4; i++) {
		fd = some_fd(who);
		if (fd >= 0)
			fds[n_fds++] = fd;
	}
	if (to >= 0)
		rig_put(to, bytes, n, fds, n_fds);
	while (n_fds)
		close(fds[--n_fds]);
}

static void do_bytes(void)
{
	struct rig_client *who = next_client();
	uint8_t bytes[256];
	size_t n = next_byte();

	next_bytes(bytes, n);
	put(who, bytes, n);
}

/* --- records ------------------------------------------------------------- */

static uint32_t next_id(void)
{
	uint8_t kind = next_byte();

	switch (kind % 4) {
	case 0:
		return ALICE_ID;
	case 1:
		return PEER_ID + (kind >> 2);
	case 2:
		return client[kind >> 2 & (FUZZ_CLIENTS_MAX - 1)].first + 1 + (kind >> 4);
	}
	return (uint32_t)kind >> 2;
}

static struct mad_path next_path(void)
{
	uint8_t host = next_byte();

	return rig_peer(1 + host % N_HOSTS);
}

/* @to: the destination of a client's message; NULL for a message of a peer */
static void next_fields(struct cm_msg *msg, uint64_t guid, const struct mad_path *to)
{
	struct cma_hdr hdr = { .ip_version = 4, .dst_addr = { [12] = 10, [15] = 1 } };

	if (msg->hdr.attr_id == CM_ATTR_REQ) {
		msg->req.local_ca_guid = guid;
		msg->req.local_qpn = QPN + next_byte() % 4;
		msg->req.service_id = cma_service_id(RDMA_PS_TCP, RIG_SERVICE);
		if (to) {
			msg->req.primary.local_gid = rig_gid();
			msg->req.primary.remote_gid = to->dgid;
		} else {
			wire_encode(&cma_hdr_layout, &hdr, msg->req.private_data);
		}
		return;
	}
	msg->rtu.remote_comm_id = next_id();
	if (msg->hdr.attr_id == CM_ATTR_REP) {
		msg->rep.local_ca_guid = guid;
		msg->rep.local_qpn = QPN + next_byte() % 4;
	} else if (msg->hdr.attr_id == CM_ATTR_DREQ) {
		msg->dreq.remote_qpn = QPN + next_byte() % 4;
	} else if (msg->hdr.attr_id == CM_ATTR_MRA) {
		msg->mra.message = next_byte() % 3;
	} else if (msg->hdr.attr_id == CM_ATTR_REJ) {
		msg->rej.message = next_byte() % 3;
		msg->rej.reason = next_byte() % 40;
	}
}

static void next_message(uint8_t mad[MAD_BYTES], uint64_t guid, const struct mad_path *to)
{
	struct cm_msg msg;
	uint8_t at;

	cm_msg_init(&msg, (enum cm_attr)(CM_ATTR_REQ + next_byte() % 11), 1);
	msg.rtu.local_comm_id = next_id();
	next_fields(&msg, guid, to);
	cm_msg_encode(&msg, mad);
	for (at = next_byte(); at; at = next_byte())
		mad[at] = next_byte();
}

/* Values of the input, adjusted to be more often valid. */
static void improve(struct portd_record *record, uint32_t claim_id)
{
	if (record->type == PORTD_HELLO) {
		record->hello.version = PORTD_VERSION;
	} else if (record->type == PORTD_OPEN_PORT) {
		strcpy(record->open_port.device, RIG_DEVICE);
	} else if (record->type == PORTD_TRACK) {
		record->tracked.handle = 0;
		record->tracked.local_comm_id = next_id();
		record->tracked.remote_comm_id = next_id();
	} else if (record->type == PORTD_CLOSE) {
		record->close.local_comm_id = next_id();
		record->close.remote_comm_id = next_id();
		record->close.peer_gid = next_path().dgid;
	} else if (record->type == PORTD_HOLD_IDS) {
		record->ids.first = next_id();
		record->ids.secret = RIG_SECRET;
	} else if (record->type >= PORTD_BIND && record->type <= PORTD_RELEASE) {
		record->claim = rig_claim(claim_id, ADDR);
	}
}

static struct portd_record next_record(void)
{
	uint8_t type = next_byte();
	struct portd_record record = { .type = (enum portd_type)(1 + type % (PORTD_N_TYPES - 1)) };
	uint8_t n;

	if (record.type == PORTD_MAD) {
		record.mad.port = next_byte() % 3;
		record.mad.again = type >> 7;
		record.mad.path = next_path();
		next_message(record.mad.mad, RIG_GUID, &record.mad.path);
		return record;
	}
	n = next_byte() % 64;
	next_bytes((uint8_t *)&record.hello, n);
	if (record.type == PORTD_TRACK)
		record.tracked.path = next_path();
	if (type >> 7)
		improve(&record, n);
	return record;
}

static void do_records(void)
{
	struct portd_datagram out = { .bytes = 0 };
	struct rig_client *who = next_client();
	uint8_t n = next_byte() % 4;
	struct portd_record record;

	do {
		record = next_record();
		portd_put(&out, &record);
	} while (n--);
	put(who, out.data, out.bytes);
}

static void do_flood(void)
{
	struct rig_client *who = next_client();
	struct portd_record record = next_record();
	struct portd_datagram out = { .bytes = 0 };
	uint8_t n = next_byte();

	while (portd_put(&out, &record))
		;
	while (n-- && who->data >= 0 && rig_put(who->data, out.data, out.bytes, NULL, 0))
		;
}

/* --- network and device -------------------------------------------------- */

static void do_arrive(void)
{
	struct mad_path from = next_path();
	uint8_t mad[MAD_BYTES];
	uint8_t many = next_byte();

	next_message(mad, from.dgid.raw[15], NULL);
	do
		rig_arrive_bytes(1 + (many >> 7), &from, mad);
	while (many-- & 0x7f);
}

static void do_read(void)
{
	struct rig_client *who = next_client();
	struct portd_record record;

	while (who->data >= 0 && rig_next(who, &record))
		;
	if (who->control >= 0 && who->data < 0 && rig_answer(who) == 0)
		who->first = who->reply.first;
}

static void do_pass(void)
{
	uint64_t ms = (uint64_t)next_byte() * next_byte();

	rig_pass(ms);
}

static void do_turn(void)
{
	rig_turn();
}

static void do_settle(void)
{
	rig_settle();
}

static void do_hops(void)
{
	const struct mad_path to = next_path();
	union addr addr = { .in6.sin6_family = AF_INET6 };

	memcpy(&addr.in6.sin6_addr, &to.dgid, sizeof(to.dgid));
	rig_set_hops_ready(next_byte() & 1);
	waiting_neighbour(rig_server(), &addr);
}

/*
 * Messages of peers are for an interface of another namespace, which some clients may have
 * announced.
 */
static void do_elsewhere(void)
{
	uint8_t where = next_byte();

	rig_move_gid_elsewhere(where & 1);
	rig_foreign_add(where >> 1 & 1);
}

/* For ports that Alice has not opened. */
static void do_unplug(void)
{
	unsigned int i;

	for (i = 0; i < HOST_PORTS_MAX; i++)
		if (i != alice.handle && rig_server()->host_port[i])
			host_port_close(rig_server(), rig_server()->host_port[i]);
}

/* --- invariants ---------------------------------------------------------- */

/* Only Alice's client may send messages with its comm id to its peer, and it sends none. */
static void look_at_wire(void)
{
	struct rig_sent sent;
	struct cm_msg msg;

	while (rig_sent(&sent, &msg))
		assert(sent.port_num != 1 || msg.hdr.attr_id >= CM_ATTR_SIDR_REQ ||
		       msg.rtu.local_comm_id >> ID_BLOCK_SHIFT != ALICE_ID >> ID_BLOCK_SHIFT);
}

static void check_page_of_alice(void)
{
	const struct tracked *tracked = tracker_of_local(rig_server()->tracker, ALICE_ID);
	struct portd_record bind = { .type = PORTD_BIND, .claim = rig_claim(1, ADDR) };

	assert(tracked && tracked->is.state == CM_ESTABLISHED &&
	       tracked->is.remote_comm_id == PEER_ID);
	assert(!rig_is_disconnected(&alice));
	assert(rig_ask(&alice, &bind) == 0); /* the claim still exists, with its owner */
	assert(alice.reply.port == RIG_SERVICE);
}

static void send_as_alice(const struct cm_msg *msg)
{
	struct mad_path to = rig_peer(ALICE_PEER);

	rig_send(&alice, &to, msg);
}

static void connect_alice(void)
{
	struct mad_path from = rig_peer(ALICE_PEER);
	struct rig_sent sent;
	struct cm_msg msg;

	rig_client_as_user(ALICE_UID);
	rig_join(&alice);
	assert(rig_listen(&alice, ADDR) == 0);
	cm_msg_init(&msg, CM_ATTR_REQ, 1);
	msg.req.local_comm_id = ALICE_ID;
	msg.req.local_ca_guid = RIG_GUID;
	msg.req.local_qpn = QPN;
	send_as_alice(&msg);
	cm_msg_init(&msg, CM_ATTR_REP, 1);
	msg.rep.local_comm_id = PEER_ID;
	msg.rep.remote_comm_id = ALICE_ID;
	msg.rep.local_qpn = QPN;
	rig_arrive(&from, &msg);
	cm_msg_init(&msg, CM_ATTR_RTU, 1);
	msg.rtu.local_comm_id = ALICE_ID;
	msg.rtu.remote_comm_id = PEER_ID;
	send_as_alice(&msg);
	while (rig_sent(&sent, &msg))
		;
}
static void must_be_empty(unsigned int n_fds)
{
	struct server *server = rig_server();
	unsigned int i;

	for (i = 0; i < AGES; i++) {
		rig_pass(AGES_MS);
		look_at_wire();
	}
	assert(server->n_clients == 1 && server->n_throttled == 0);
	assert(server->core.n_conns == 0);
	assert(server->tracker->dead == 0 && server->tracker->n_orphans == 0);
	for (i = 1; i < CLIENTS_MAX; i++)
		assert(tracker_count(server->tracker, (uint16_t)i) == 0);
	do_unplug();
	assert(rig_n_fds() == n_fds);
}

/* Alice resumes before the others: the rig's random numbers are all equal, so that any client could
 * guess the secret. */
static void resume_alice(const struct portd_record *track)
{
	struct portd_record done = { .type = PORTD_RESUMED };
	int page_fd = alice.page_fd;

	fd_close(&alice.control);
	fd_close(&alice.data);
	rig_client_as_user(ALICE_UID);
	rig_client_as(-1);
	alice.control = rig_dial();
	assert(rig_resume(&alice, page_fd) == 0);
	fd_close(&alice.page_fd);
	alice.page_fd = page_fd;
	assert(rig_hold(&alice) == 0 && open_port_1(&alice) == 0);
	assert(rig_listen(&alice, ADDR) == 0 && rig_ask(&alice, track) == 0);
	rig_ask(&alice, &done);
}

/* The next cmportd has read all state of the others. */
static void do_restart(void)
{
	struct portd_record track = { .type = PORTD_TRACK };
	char path[96];

	track.tracked = tracker_of_local(rig_server()->tracker, ALICE_ID)->is;
	snprintf(path, sizeof(path), "%s", rig_server()->options.path);
	rig_tear_down();
	rig_set_up(path);
	resume_alice(&track);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static void (*const does[])(void) = {
		do_connect, do_join,   do_close,   do_bytes,	 do_records, do_records,
		do_flood,   do_arrive, do_read,	   do_pass,	 do_settle,  do_turn,
		do_hops,    do_unplug, do_restart, do_elsewhere,
	};
	unsigned int i, n_fds;

	input = data;
	left = bytes;
	rig_set_up(clean_directory());
	for (i = 0; i < FUZZ_CLIENTS_MAX; i++)
		client[i] = (struct rig_client){ .control = -1, .data = -1, .page_fd = -1 };
	connect_alice();
	n_fds = rig_n_fds();
	while (left) {
		does[next_byte() % (sizeof(does) / sizeof(does[0]))]();
		look_at_wire();
	}
	for (i = 0; i < FUZZ_CLIENTS_MAX; i++)
		close_client(&client[i]);
	rig_settle();
	check_page_of_alice();
	must_be_empty(n_fds);
	check_page_of_alice();
	rig_leave(&alice);
	rig_tear_down();
	return 0;
}

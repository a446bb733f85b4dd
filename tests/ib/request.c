/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer that sends what no caller of the API can: a REQ with an alternate path, and LAP, to a
 * program that listens with AF_IB (end.c) on host a of a fabric with --lmc 1; it is on host b.
 * Prints the responses. Run by programs.py.
 *
 *   request GID PEER_GID stays|moves     where the alternate path leads to: the peer, or elsewhere
 */
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cm/core.h"
#include "mad/cm_msg.h"
#include "mad/umad.h"

#define SERVICE	     ((uint64_t)0x0106 << 16 | 7000)
#define OUR_ID	     0x1234567
#define OUR_QPN	     0x4321
#define LID_OF_A     2 /* with LMC 1 */
#define LID_OF_B     4
#define TIMEOUT	     20
#define ACK_TIMEOUT  19
#define ALT_TIMEOUT  17
#define ANSWER_MS    3000
#define QUIET_MS     300
#define RESPONSE_MTU 3
#define TIMES_MAX    50
#define AGAIN_US     200000

static struct mad_port *port;
static struct mad_path to_peer = { .dlid = LID_OF_A };
static struct mad_gid ours, theirs;

static void send_msg(const struct cm_msg *msg)
{
	uint8_t mad[MAD_BYTES];

	cm_msg_encode(msg, mad);
	if (mad_port_send(port, &to_peer, mad))
		exit(1);
}

/* Return: whether a message arrived in time. */
static bool receive(int ms, struct cm_msg *ret)
{
	struct pollfd ready = { .fd = port->fd, .events = POLLIN };
	uint8_t mad[MAD_BYTES];
	struct mad_path path;

	memset(ret, 0, sizeof(*ret));
	return poll(&ready, 1, ms) == 1 && !mad_port_receive(port, &path, mad) &&
	       !cm_msg_decode(mad, sizeof(mad), ret);
}

static void show(const char *asked, bool is_answered, const struct cm_msg *ret)
{
	if (!is_answered)
		printf("%s: silence\n", asked);
	else if (ret->hdr.attr_id == CM_ATTR_REJ)
		printf("%s: %s, reason %u\n", asked, cm_msg_layout(ret->hdr.attr_id)->name,
		       ret->rej.reason);
	else
		printf("%s: %s\n", asked, cm_msg_layout(ret->hdr.attr_id)->name);
	fflush(stdout);
}

static struct cm_req_path path_of(unsigned int bits, const struct mad_gid *to, uint8_t ack_timeout)
{
	return (struct cm_req_path){ .local_lid = (uint16_t)(LID_OF_B + bits),
				     .remote_lid = (uint16_t)(LID_OF_A + bits),
				     .local_gid = ours,
				     .remote_gid = *to,
				     .packet_rate = 7,
				     .subnet_local = 1,
				     .local_ack_timeout = ack_timeout };
}

/* The program at the other end may start late. */
static bool nobody_listens(const struct cm_msg *answer)
{
	return answer->hdr.attr_id == CM_ATTR_REJ &&
	       answer->rej.reason == CM_REJ_INVALID_SERVICE_ID;
}

static void connect_to(const struct mad_gid *alternate, struct cm_msg *ret)
{
	unsigned int times = 0;
	struct cm_msg msg;
	bool is_answered;

	cm_msg_init(&msg, CM_ATTR_REQ, 1);
	msg.req.local_comm_id = OUR_ID;
	msg.req.service_id = SERVICE;
	msg.req.local_ca_guid = 0x77;
	msg.req.local_qpn = OUR_QPN;
	msg.req.responder_resources = 1;
	msg.req.initiator_depth = 1;
	msg.req.remote_cm_response_timeout = TIMEOUT;
	msg.req.local_cm_response_timeout = TIMEOUT;
	msg.req.retry_count = 2;
	msg.req.rnr_retry_count = 7;
	msg.req.max_cm_retries = 15;
	msg.req.pkey = 0xffff;
	msg.req.path_mtu = RESPONSE_MTU;
	msg.req.primary = path_of(0, &theirs, ACK_TIMEOUT);
	msg.req.alternate = path_of(1, alternate, ALT_TIMEOUT);
	memcpy(msg.req.private_data, "raw", sizeof("raw"));
	do {
		send_msg(&msg);
		is_answered = receive(ANSWER_MS, ret);
	} while (nobody_listens(ret) && ++times < TIMES_MAX && !usleep(AGAIN_US));
	show("REQ", is_answered, ret);
}

static void set_ids(struct cm_msg *msg, enum cm_attr attr, const struct cm_msg *rep)
{
	cm_msg_init(msg, attr, 2);
	/* All messages from REP on begin with both ids. */
	msg->rtu.local_comm_id = OUR_ID;
	msg->rtu.remote_comm_id = rep->rep.local_comm_id;
}

static void ask_to_move(const struct cm_msg *rep)
{
	struct cm_msg msg, answer;
	bool is_answered;

	set_ids(&msg, CM_ATTR_LAP, rep);
	msg.lap.remote_qpn = rep->rep.local_qpn;
	msg.lap.remote_cm_response_timeout = TIMEOUT;
	msg.lap.alternate = path_of(1, &theirs, ALT_TIMEOUT);
	send_msg(&msg);
	is_answered = receive(QUIET_MS, &answer);
	show("LAP", is_answered, &answer);
}

/* The program at the other end does not read its events, so no response is expected. */
static void disconnect(const struct cm_msg *rep)
{
	struct cm_msg msg;

	set_ids(&msg, CM_ATTR_DREQ, rep);
	msg.dreq.remote_qpn = rep->rep.local_qpn;
	send_msg(&msg);
}

int main(int argc, char **argv)
{
	struct mad_gid elsewhere;
	struct umad_owner who;
	struct cm_msg rep, rtu;

	if (argc != 4 || inet_pton(AF_INET6, argv[1], ours.raw) != 1 ||
	    inet_pton(AF_INET6, argv[2], theirs.raw) != 1 || umad_port_open("fab0", 1, &port, &who))
		return 2;
	elsewhere = theirs;
	elsewhere.raw[sizeof(elsewhere.raw) - 1] ^= 0x40;
	connect_to(strcmp(argv[3], "moves") == 0 ? &elsewhere : &theirs, &rep);
	if (rep.hdr.attr_id == CM_ATTR_REP) {
		set_ids(&rtu, CM_ATTR_RTU, &rep);
		send_msg(&rtu);
		ask_to_move(&rep);
		disconnect(&rep);
	}
	mad_port_close(port);
	return 0;
}

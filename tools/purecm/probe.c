/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests, and matching of their responses. */
#include "tools/purecm/probe.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "cm/core.h"
#include "lib/portd/client/portd_client.h"
#include "mad/cma_hdr.h"
#include "tools/purecm/command.h"

#define PS_TCP		 0x0106
#define PERMISSIVE_LID	 0xffff
#define PKEY_DEFAULT	 0xffff
#define RESPONSE_TIMEOUT 20 /* encoded; these are the kernel's values */
#define PACKET_LIFE_TIME 18
#define MAX_CM_RETRIES	 15
#define RETRIES		 7
#define ROCE_BYTES	 96
#define PSN_MASK	 0xffffff

struct probe {
	const struct checkup *checkup;
	struct portd_client *client;
	struct portd_ids ids;
	struct portd_reply opened;
	struct mad_gid peer;
	uint16_t port;
	uint16_t src_port;
	uint32_t n_shots;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	/* The pending request: */
	uint32_t comm_id;
	uint64_t sent_ns;
	bool is_answered;
	struct cm_msg answer;
	struct probe_answer *ret;
};

/* --- opening ------------------------------------------------------------- */

static int make_queue_pair(struct probe *probe)
{
	struct ibv_context *verbs = probe->checkup->gid.verbs;
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 }
	};

	probe->pd = ibv_alloc_pd(verbs);
	probe->cq = ibv_create_cq(verbs, 1, NULL, NULL, 0);
	attr.send_cq = attr.recv_cq = probe->cq;
	if (probe->pd && probe->cq)
		probe->qp = ibv_create_qp(probe->pd, &attr);
	if (probe->qp)
		return 0;
	complain("%s has no queue pair for us: %s", ibv_get_device_name(verbs->device),
		 strerror(errno));
	return -ENOSPC;
}

static int open_client(struct probe *probe)
{
	const struct gid_entry *gid = &probe->checkup->gid;
	const char *device = ibv_get_device_name(gid->verbs->device);
	struct portd_why why = { "" };
	int err = portd_client_open(&probe->client, &probe->ids, &why);

	if (!err)
		err = portd_open_port(probe->client, device, gid->port_num, &probe->opened, &why);
	if (err)
		complain("%s%s%s", why.text, why.text[0] ? ": " : "", strerror(-err));
	return err;
}

int probe_open(struct checkup *checkup, uint16_t port, struct probe **ret)
{
	struct probe *probe = calloc(1, sizeof(*probe));
	int err = -ENOMEM;

	if (!probe)
		return err;
	probe->checkup = checkup;
	probe->port = port;
	probe->peer = addr_to_gid(&checkup->dst);
	err = open_client(probe);
	if (!err)
		err = make_queue_pair(probe);
	if (err) {
		probe_close(probe);
		return err;
	}
	probe->src_port = portd_take_port(probe->client, PS_TCP);
	*ret = probe;
	return 0;
}

void probe_close(struct probe *probe)
{
	if (!probe)
		return;
	if (probe->qp)
		ibv_destroy_qp(probe->qp);
	if (probe->cq)
		ibv_destroy_cq(probe->cq);
	if (probe->pd)
		ibv_dealloc_pd(probe->pd);
	if (probe->src_port)
		portd_give_port(probe->client, PS_TCP, probe->src_port);
	portd_client_close(probe->client);
	free(probe);
}

/* --- the request --------------------------------------------------------- */

static void put_header(const struct probe *probe, uint8_t *to)
{
	struct cma_hdr header = { .src_port = probe->src_port };

	header.ip_version = addr_pack(&probe->checkup->dst, header.dst_addr);
	addr_pack(&probe->checkup->route.src, header.src_addr);
	wire_encode(&cma_hdr_layout, &header, to);
}

static uint8_t path_mtu(unsigned int iface_mtu)
{
	uint8_t mtu = IBV_MTU_4096;

	while (mtu > IBV_MTU_256 && iface_mtu < (128u << mtu) + ROCE_BYTES)
		mtu--;
	return mtu;
}

static void put_path(const struct probe *probe, struct cm_req_path *path)
{
	const uint8_t hop_limit = probe->checkup->route.hop_limit;

	path->subnet_local = hop_limit <= 1;
	path->local_lid = path->remote_lid = hop_limit <= 1 ? 0 : PERMISSIVE_LID;
	memcpy(&path->local_gid, &probe->checkup->gid.gid, sizeof(path->local_gid));
	path->remote_gid = probe->peer;
	path->hop_limit = hop_limit;
	path->local_ack_timeout = PACKET_LIFE_TIME + 1;
}

static void make_req(const struct probe *probe, struct cm_msg *msg)
{
	struct cm_req *req = &msg->req;
	uint32_t psn = 0;

	if (getrandom(&psn, sizeof(psn), GRND_NONBLOCK) < 0)
		psn = probe->comm_id;
	cm_msg_init(msg, CM_ATTR_REQ, probe->comm_id);
	req->local_comm_id = probe->comm_id;
	req->service_id = cma_service_id(PS_TCP, probe->port);
	req->local_ca_guid = probe->opened.ca_guid;
	req->local_qpn = probe->qp->qp_num;
	req->remote_cm_response_timeout = RESPONSE_TIMEOUT;
	req->starting_psn = psn & PSN_MASK;
	req->local_cm_response_timeout = RESPONSE_TIMEOUT;
	req->retry_count = RETRIES;
	req->rnr_retry_count = RETRIES;
	req->pkey = PKEY_DEFAULT;
	req->path_mtu = path_mtu(probe->checkup->iface.mtu);
	req->max_cm_retries = MAX_CM_RETRIES;
	put_path(probe, &req->primary);
	put_header(probe, req->private_data);
}

static int send_msg(struct probe *probe, const struct cm_msg *msg)
{
	const struct checkup *checkup = probe->checkup;
	struct portd_mad mad = { .port = probe->opened.handle,
				 .path = { .grh = true,
					   .sgid_index = (uint8_t)checkup->gid.gid_index,
					   .hop_limit = checkup->route.hop_limit,
					   .dgid = probe->peer } };
	int err;

	cm_msg_encode(msg, mad.mad);
	err = portd_send(probe->client, &mad, 1);
	if (err)
		complain("cmportd does not send: %s", strerror(-err));
	return err;
}

/* --- the answer ---------------------------------------------------------- */

static void take_record(const struct portd_record *record, void *arg)
{
	struct probe *probe = arg;
	struct cm_msg msg;

	if (record->type != PORTD_MAD || cm_msg_decode(record->mad.mad, MAD_BYTES, &msg) ||
	    probe->is_answered)
		return;
	/* All responses begin with both ids; late ones are for an earlier request. */
	if (msg.hdr.attr_id != CM_ATTR_REP && msg.hdr.attr_id != CM_ATTR_REJ &&
	    msg.hdr.attr_id != CM_ATTR_MRA)
		return;
	if (msg.rtu.remote_comm_id != probe->comm_id)
		return;
	if (probe->ret->result == PROBE_SILENCE)
		probe->ret->ms = (double)(clock_ns() - probe->sent_ns) / 1e6;
	if (msg.hdr.attr_id == CM_ATTR_MRA) {
		probe->ret->result = PROBE_PATIENT;
		return;
	}
	probe->is_answered = true;
	probe->answer = msg;
	probe->ret->result = msg.hdr.attr_id == CM_ATTR_REP ? PROBE_REP : PROBE_REJ;
	probe->ret->reason = msg.hdr.attr_id == CM_ATTR_REJ ? msg.rej.reason : 0;
}

static int wait_for_answer(struct probe *probe, unsigned int timeout_ms)
{
	struct pollfd look = { .fd = portd_client_fd(probe->client), .events = POLLIN };
	const uint64_t end_ns = probe->sent_ns + timeout_ms * 1000000ull;
	uint64_t at_ns;
	int err = 0;

	while (!probe->is_answered && (at_ns = clock_ns()) < end_ns) {
		if (poll(&look, 1, (int)((end_ns - at_ns) / 1000000 + 1)) < 0) {
			probe->ret->result = PROBE_STOPPED;
			break;
		}
		do
			err = portd_receive(probe->client, take_record, probe);
		while (!err);
		if (err != -EAGAIN) {
			complain("cmportd has gone: %s", strerror(-err));
			return err;
		}
	}
	return 0;
}

/* The peer must not keep waiting for an RTU. */
static int say_goodbye(struct probe *probe)
{
	struct cm_msg rej;
	unsigned int i;

	if (probe->ret->result == PROBE_REJ)
		return 0;
	cm_msg_init(&rej, CM_ATTR_REJ, probe->comm_id);
	rej.rej.local_comm_id = probe->comm_id;
	if (probe->ret->result == PROBE_REP) {
		rej.rej.remote_comm_id = probe->answer.rep.local_comm_id;
		rej.rej.message = CM_ANSWERED_REP;
		rej.rej.reason = CM_REJ_CONSUMER;
		return send_msg(probe, &rej);
	}
	rej.rej.message = CM_ANSWERED_OTHER;
	rej.rej.reason = CM_REJ_TIMEOUT;
	rej.rej.ari_bytes = sizeof(probe->opened.ca_guid);
	for (i = 0; i < sizeof(probe->opened.ca_guid); i++)
		rej.rej.ari[i] = (uint8_t)(probe->opened.ca_guid >> (56 - 8 * i));
	return send_msg(probe, &rej);
}

int probe_shoot(struct probe *probe, unsigned int timeout_ms, struct probe_answer *ret)
{
	struct portd_close closed = { .peer_gid = probe->peer };
	struct cm_msg req;
	int err;

	if (probe->n_shots == probe->ids.count - 1) {
		complain("no more than %u requests at a time", probe->n_shots);
		return -ENOSPC;
	}
	/* The first id of a block may be 0, which is invalid. */
	probe->comm_id = probe->ids.first + ++probe->n_shots;
	*ret = (struct probe_answer){ .result = PROBE_SILENCE };
	probe->ret = ret;
	probe->is_answered = false;
	make_req(probe, &req);
	probe->sent_ns = clock_ns();
	err = send_msg(probe, &req);
	if (!err)
		err = wait_for_answer(probe, timeout_ms);
	if (!err)
		err = say_goodbye(probe);
	closed.local_comm_id = probe->comm_id;
	closed.remote_comm_id = probe->answer.rtu.local_comm_id;
	portd_closed(probe->client, &closed);
	portd_send_held(probe->client);
	return err;
}

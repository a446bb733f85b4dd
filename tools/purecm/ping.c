/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * purecm ping: checks whether an address has a connection manager and a listener, and how long a
 * response takes, by REQs that lead to no connection. They are sent through cmportd, like a
 * program's. Their queue pair exists, so that no peer takes the number for that of a live
 * connection, and stays in RESET.
 */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/clock.h"
#include "cm/core.h"
#include "cm/guard.h"
#include "lib/portd/client/portd_client.h"
#include "mad/cma_hdr.h"
#include "tools/purecm/checkup.h"
#include "tools/purecm/subcommand.h"
#include "tools/purecm/json.h"

#define TARGET_BYTES	 256
#define MS_PER_S	 1000

#define PS_TCP		 0x0106
#define PERMISSIVE_LID	 0xffff
#define PKEY_DEFAULT	 0xffff
#define RESPONSE_TIMEOUT 20 /* encoded; these are the kernel's values */
#define PACKET_LIFE_TIME 18
#define MAX_CM_RETRIES	 15
#define RETRIES		 7
#define ROCE_BYTES	 96
#define PSN_MASK	 0xffffff

enum probe_result {
	PROBE_REP,     /* a listener has accepted; rejected at once */
	PROBE_REJ,     /* there is a connection manager */
	PROBE_PATIENT, /* MRA and no more: a program has the request */
	PROBE_SILENCE,
	PROBE_STOPPED, /* by a signal */
};

struct probe_answer {
	enum probe_result result;
	uint16_t reason; /* of a REJ */
	double ms;	 /* until the first response */
};

struct ping {
	char target[TARGET_BYTES];
	uint16_t port;
	uint32_t count;
	double interval_s;
	double timeout_s;
	bool json;

	unsigned int n_sent;
	unsigned int n_answered;
	struct probe_answer last; /* the latest one that was a response */
	bool is_silent;		  /* the port, not the connection manager */
	double min_ms, max_ms, sum_ms, sum2_ms;
};

/* --- the command line ---------------------------------------------------- */

/* Takes HOST, HOST:PORT, [IPV6]:PORT; an IPv6 address without brackets has no port. */
static void take_target(void *input, char *text, struct argp_state *state)
{
	const char *colon = strrchr(text, ':'), *end = colon;
	struct ping *ping = input;
	unsigned int port;
	char rest;

	if (ping->target[0])
		argp_error(state, "one address at a time");
	if (strlen(text) >= sizeof(ping->target))
		argp_error(state, "the address is too long");
	if (*text == '[') {
		end = strchr(++text, ']');
		if (!end || (end[1] && end[1] != ':'))
			argp_error(state, "[%s is no address", text);
		colon = end && end[1] ? end + 1 : NULL;
	} else if (!colon || strchr(text, ':') != colon) {
		end = text + strlen(text);
		colon = NULL;
	}
	if (colon) {
		if (sscanf(colon, ":%5u%c", &port, &rest) != 1 || !port || port > UINT16_MAX)
			argp_error(state, "port: %s is no number from 1 to 65535", colon + 1);
		ping->port = (uint16_t)port;
	}
	snprintf(ping->target, sizeof(ping->target), "%.*s", (int)(end - text), text);
}

static void check_target(const void *input, struct argp_state *state)
{
	if (!((const struct ping *)input)->target[0])
		argp_error(state, "which address?");
}

/* clang-format off */
static const struct command_option options[] = {
	{ "count", 'c', "N", "how many requests (4)", COMMAND_NUMBER_AT(ping, count, 1, 60000) },
	{ "interval", 'i', "SECONDS", "from an answer to the next request (1)",
	  COMMAND_SECONDS_AT(ping, interval_s, 0, 3600) },
	{ "timeout", 'W', "SECONDS", "how long to wait for an answer (3)",
	  COMMAND_SECONDS_AT(ping, timeout_s, 0, 3600) },
	{ "json", 'j', NULL, "an object a line", COMMAND_FLAG_AT(ping, json) },
	{ 0 },
};
/* clang-format on */

static const struct command_line usage = {
	.args = "ADDRESS[:PORT]",
	.doc = "Sends connection requests that lead to no connection, and prints how long an answer "
	       "takes: a refusal if nobody listens, an acceptance, which is taken back at once, if "
	       "somebody does, whose program sees a request and a refusal. Without a port it asks "
	       "where nobody listens, and disturbs no program.\v"
	       "The exit status is 0 if there was an answer, and 1 if there was none.",
	.options = options,
	.take_arg = take_target,
	.check = check_target,
};

/* --- output --------------------------------------------------------------- */

static const char *const result_words[] = {
	[PROBE_REP] = "REP",	     [PROBE_REJ] = "REJ",      [PROBE_PATIENT] = "MRA",
	[PROBE_SILENCE] = "silence", [PROBE_STOPPED] = "stop",
};

static void print_title(const struct ping *ping, const struct checkup *checkup)
{
	char src[ADDR_STR_BYTES];

	if (ping->json)
		return;
	addr_str(&checkup->route.src, src);
	*strrchr(src, ':') = '\0';
	printf("ping %s from %s by %s/%u, GID index %u: REQ to ", ping->target, src,
	       ibv_get_device_name(checkup->gid.verbs->device), checkup->gid.port_num,
	       checkup->gid.gid_index);
	if (ping->port)
		printf("TCP port %u\n", ping->port);
	else
		puts("where nobody listens");
}

static void print_answer(const struct ping *ping, const struct probe_answer *answer)
{
	const bool is_answer = answer->result != PROBE_SILENCE;

	if (ping->json) {
		json_begin(NULL, stdout);
		json_uint("seq", ping->n_sent, stdout);
		json_text("answer", result_words[answer->result], stdout);
		if (answer->result == PROBE_REJ)
			json_uint("reason", answer->reason, stdout);
		if (is_answer)
			json_fixed("ms", answer->ms, 3, stdout);
		json_end(stdout);
	} else if (!is_answer) {
		printf("seq=%u no answer within %.1f s\n", ping->n_sent, ping->timeout_s);
	} else {
		printf("seq=%u %s time=%.2f ms", ping->n_sent, result_words[answer->result],
		       answer->ms);
		if (answer->result == PROBE_REJ)
			printf(" reason=%u (%s)", answer->reason,
			       cm_rej_reason_str(answer->reason));
		putchar('\n');
	}
	fflush(stdout);
}

static const char *conclusion_of(const struct ping *ping, const struct checkup *checkup)
{
	if (ping->is_silent)
		return "There is a connection manager. Whoever listens on that port has not "
		       "answered: its program is slow to accept, or its backlog is full.";
	if (!ping->n_answered && checkup->route.gateway)
		return "No answer: the host is down or out of reach behind the gateway, has no "
		       "connection manager, or UDP port 4791 is filtered on the way.";
	if (!ping->n_answered)
		return "The host is there, and no connection manager answers: there is none, or UDP "
		       "port 4791 is filtered.";
	if (ping->last.result == PROBE_REP)
		return "Somebody listens there, and accepts.";
	if (ping->last.result == PROBE_PATIENT)
		return "Somebody listens there, and takes its time.";
	if (ping->last.reason == 8 && ping->port)
		return "There is a connection manager; nobody listens on that port.";
	if (ping->last.reason == 28 && ping->port)
		return "There is a connection manager; whoever has that port refuses, or is not "
		       "there for this address.";
	return "There is a connection manager.";
}

static void print_summary(const struct ping *ping, const struct checkup *checkup)
{
	const double n = ping->n_answered, mean = n > 0 ? ping->sum_ms / n : 0;

	if (ping->json) {
		json_begin(NULL, stdout);
		json_uint("sent", ping->n_sent, stdout);
		json_uint("answered", ping->n_answered, stdout);
		if (ping->n_answered) {
			json_fixed("min_ms", ping->min_ms, 3, stdout);
			json_fixed("avg_ms", mean, 3, stdout);
			json_fixed("max_ms", ping->max_ms, 3, stdout);
		}
		json_text("conclusion", conclusion_of(ping, checkup), stdout);
		json_end(stdout);
		return;
	}
	printf("\n%u sent, %u answered, %.0f%% lost\n", ping->n_sent, ping->n_answered,
	       ping->n_sent ? 100.0 * (ping->n_sent - ping->n_answered) / ping->n_sent : 0.0);
	if (ping->n_answered)
		printf("min/avg/max/mdev = %.2f/%.2f/%.2f/%.2f ms\n", ping->min_ms, mean,
		       ping->max_ms, sqrt(fmax(0, ping->sum2_ms / n - mean * mean)));
	puts(conclusion_of(ping, checkup));
}

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
		err = portd_open_port(probe->client, device, gid->port_num, portd_keep_reply,
				      &probe->opened, &why);
	if (err)
		complain("%s%s%s", why.text, why.text[0] ? ": " : "", strerror(-err));
	return err;
}

static void close_probe(struct probe *probe)
{
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

static int open_probe(struct checkup *checkup, uint16_t port, struct probe **ret)
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
		close_probe(probe);
		return err;
	}
	probe->src_port = portd_take_port(probe->client, PS_TCP);
	*ret = probe;
	return 0;
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
	struct portd_record record = {
		.type = PORTD_MAD,
		.mad = { .port = probe->opened.handle,
			 .path = { .grh = true,
				   .sgid_index = (uint8_t)checkup->gid.gid_index,
				   .hop_limit = checkup->route.hop_limit,
				   .dgid = probe->peer } },
	};
	int err;

	cm_msg_encode(msg, record.mad.mad);
	err = portd_put_data(probe->client, &record);
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
	cm_rej_timeout(&rej.rej, probe->opened.ca_guid);
	return send_msg(probe, &rej);
}

static int shoot_probe(struct probe *probe, unsigned int timeout_ms, struct probe_answer *ret)
{
	struct portd_record closed = { .type = PORTD_CLOSE, .close = { .peer_gid = probe->peer } };
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
	closed.close.local_comm_id = probe->comm_id;
	closed.close.remote_comm_id = probe->answer.rtu.local_comm_id;
	portd_put_data(probe->client, &closed);
	return err;
}

/* --- all of them ----------------------------------------------------------- */

static void count_answer(struct ping *ping, const struct probe_answer *answer)
{
	if (answer->result == PROBE_SILENCE)
		return;
	if (!ping->n_answered || answer->ms < ping->min_ms)
		ping->min_ms = answer->ms;
	if (answer->ms > ping->max_ms)
		ping->max_ms = answer->ms;
	ping->n_answered++;
	ping->last = *answer;
	ping->sum_ms += answer->ms;
	ping->sum2_ms += answer->ms * answer->ms;
}

static int shoot_all(struct ping *ping, struct probe *probe)
{
	struct probe_answer answer;
	int err;

	while (!command_is_over && ping->n_sent < ping->count) {
		if (ping->n_sent)
			command_sleep(ping->interval_s);
		if (command_is_over)
			break;
		ping->n_sent++;
		err = shoot_probe(probe, (unsigned int)(ping->timeout_s * MS_PER_S), &answer);
		if (err)
			return err;
		if (answer.result == PROBE_STOPPED) {
			ping->n_sent--;
			break;
		}
		count_answer(ping, &answer);
		print_answer(ping, &answer);
	}
	return 0;
}

/* A listener that does not accept is as silent as a host without connection manager. */
static int ask_manager(struct ping *ping, struct checkup *checkup)
{
	struct probe_answer answer = { .result = PROBE_SILENCE };
	struct probe *probe;
	int err = open_probe(checkup, 0, &probe);

	if (err)
		return err;
	err = shoot_probe(probe, (unsigned int)(ping->timeout_s * MS_PER_S), &answer);
	close_probe(probe);
	ping->is_silent = answer.result == PROBE_REJ;
	return err;
}

static int run_ping(struct ping *ping, struct checkup *checkup)
{
	struct probe *probe;
	int err = checkup_find_way(checkup);

	if (!err)
		err = open_probe(checkup, ping->port, &probe);
	if (err)
		return err;
	print_title(ping, checkup);
	err = shoot_all(ping, probe);
	close_probe(probe);
	if (!err && ping->port && ping->n_sent && !ping->n_answered && !command_is_over)
		err = ask_manager(ping, checkup);
	print_summary(ping, checkup);
	return err;
}

int ping_main(int argc, char **argv)
{
	struct ping ping = { .count = 4, .interval_s = 1, .timeout_s = 3 };
	struct checkup *checkup = calloc(1, sizeof(*checkup));
	int err;

	if (!checkup)
		return STATUS_FAILED;
	command_parse(&usage, argc, argv, &ping);
	command_catch_end();
	checkup->target = ping.target;
	err = run_ping(&ping, checkup);
	checkup_fini(checkup);
	free(checkup);
	return err || !ping.n_answered ? STATUS_FAILED : STATUS_OK;
}

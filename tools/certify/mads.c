/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program mads sends MADs between two hosts by each possible path, and counts the responses.
 * purecm certify runs it on both hosts.
 *
 *   mads answer ADDRESS            own the CM class of the port that leads to ADDRESS, and respond
 *   mads ask ADDRESS FROM TO N MS  send N lookups FROM umad or own, a queue pair of our own, TO qp1
 *                                  or a number, a queue pair of the responding host; fewer if that
 *                                  takes more than MS milliseconds
 *
 * Responses are sent through umad, from QP1 to QP1, so only the request's path is tested. Each
 * reports how its request arrived. A connection manager responds to requests to QP1 too, without
 * that report. A path is dead if none of the first few requests arrives.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "mad/sender.h"
#include "mad/talk.h"
#include "mad/umad.h"
#include "mad/umad_node.h"
#include "mad/umad_owner.h"
#include "tools/purecm/checkup.h"
#include "tools/purecm/subcommand.h"

#define N_MAX	       100000
#define N_FIRST	       5
#define AT_ONCE	       16
#define LIMIT_FIRST_MS 1000
#define LIMIT_MS       1000
#define NS_PER_US      1000.0
#define MAD_TID_LOW_AT 12
#define AT_QP1	       1
#define AT_OWN	       2
#define DATA_MARKED    0x70636d31 /* precedes the report in a response */

/* How a request arrived; in the private data of its response. */
struct arrival {
	uint32_t mark, source_qpn, flow_label;
	uint8_t at, grh, sl, hop_limit, traffic_class;
	uint16_t pkey_index;
};

struct ways {
	struct checkup checkup;
	struct mad_port *umad;
	struct mad_sender *sender; /* NULL: none, see why_not */
	int why_not;
	struct mad_path path;
	int fd; /* of another agent, which can send to any queue pair; -1: none */
	uint32_t agent;
};

/* --- the port ------------------------------------------------------------ */

static int open_agent(struct ways *ways, const char *device)
{
	struct umad_reg_attr attr = { .mgmt_class = MAD_CLASS_CM,
				      .mgmt_class_version = MAD_CM_VERSION };
	char node[UMAD_NODE_BYTES] = "";
	struct umad_owner who;
	int err = umad_find_node(device, ways->checkup.gid.port_num, node, &who);

	if (err && err != -ENODEV)
		return err;
	ways->fd = umad_open_node(device, ways->checkup.gid.port_num, node);
	if (ways->fd < 0)
		return ways->fd;
	err = -umad_register2(ways->fd, &attr, &ways->agent);
	return err;
}

static int open_ways(struct ways *ways, const char *address)
{
	struct umad_owner who = { "", "" };
	const char *device;
	int err;

	ways->fd = -1;
	ways->checkup.target = address;
	err = checkup_find_way(&ways->checkup);
	if (err)
		return err;
	device = ibv_get_device_name(ways->checkup.gid.verbs->device);
	ways->path = (struct mad_path){ .grh = true,
					.sgid_index = (uint8_t)ways->checkup.gid.gid_index,
					.hop_limit = ways->checkup.route.hop_limit,
					.dgid = addr_to_gid(&ways->checkup.dst) };
	err = umad_port_open(device, ways->checkup.gid.port_num, &ways->umad, &who);
	if (!err)
		err = open_agent(ways, device);
	if (err) {
		complain("the CM class of %s/%u: %s%s%s%s%s", device, ways->checkup.gid.port_num,
			 strerror(-err), who.what[0] ? ": " : "", who.what,
			 who.remedy[0] ? "; " : "", who.remedy);
		return err;
	}
	ways->why_not =
		mad_sender_open(ways->checkup.gid.verbs, ways->checkup.gid.port_num, &ways->sender);
	if (ways->why_not)
		ways->sender = NULL;
	else
		mad_sender_insist(ways->sender);
	return 0;
}

static void close_ways(struct ways *ways)
{
	mad_sender_close(ways->sender);
	mad_port_close(ways->umad);
	if (ways->fd >= 0)
		umad_close_port(ways->fd);
	checkup_fini(&ways->checkup);
}

static uint32_t own_qpn(const struct ways *ways)
{
	return ways->sender ? mad_sender_qpn(ways->sender) : 0;
}

/* Return: 0 with a message and the port it arrived at; -EAGAIN. */
static int receive_mad(struct ways *ways, struct mad_path *path, uint8_t mad[MAD_BYTES],
		       struct mad_port **ret)
{
	int err;

	*ret = ways->umad;
	err = mad_port_receive(*ret, path, mad);
	if (err != -EAGAIN || !ways->sender)
		return err;
	*ret = mad_sender_port(ways->sender);
	return mad_port_receive(*ret, path, mad);
}

/* Return: false at the timeout. */
static bool wait_for_mads(struct ways *ways, int timeout_ms)
{
	struct pollfd fds[2] = { { .fd = ways->umad->fd, .events = POLLIN },
				 { .fd = -1, .events = POLLIN } };

	if (ways->sender)
		fds[1].fd = mad_sender_port(ways->sender)->fd;
	return poll(fds, 2, timeout_ms) > 0;
}

/* --- responding ----------------------------------------------------------- */

static void answer_one(struct ways *ways, struct mad_port *port, const struct mad_path *path,
		       const uint8_t mad[MAD_BYTES])
{
	const struct arrival arrival = { .mark = htonl(DATA_MARKED),
					 .source_qpn = port->source_qpn,
					 .flow_label = path->flow_label,
					 .at = port == ways->umad ? AT_QP1 : AT_OWN,
					 .grh = path->grh,
					 .sl = path->sl,
					 .hop_limit = path->hop_limit,
					 .traffic_class = path->traffic_class,
					 .pkey_index = path->pkey_index };
	uint8_t raw[MAD_BYTES];
	struct cm_msg answer;

	if (!mad_probe_answer(mad, raw) || cm_msg_decode(raw, MAD_BYTES, &answer))
		return;
	memcpy(answer.sidr_rep.private_data, &arrival, sizeof(arrival));
	cm_msg_encode(&answer, raw);
	mad_port_send(ways->umad, path, raw);
}

/* Ends on a write error, when the reader of our output has ended, or on a signal. */
static int answer_mads(struct ways *ways)
{
	struct mad_port *port;
	struct mad_path path;
	uint8_t mad[MAD_BYTES];
	int err;

	printf("{\"qpn\":%u,\"device\":\"%s\",\"port\":%u}\n", own_qpn(ways),
	       ibv_get_device_name(ways->checkup.gid.verbs->device), ways->checkup.gid.port_num);
	fflush(stdout);
	for (;;) {
		err = receive_mad(ways, &path, mad, &port);
		if (!err)
			answer_one(ways, port, &path, mad);
		else if (err == -EAGAIN)
			wait_for_mads(ways, -1);
		else if (err != -ENOMSG)
			return err;
	}
}

/* --- requesting ----------------------------------------------------------- */

struct asking {
	bool by_umad;
	uint32_t qpn;
	unsigned int n_wanted, n_sent, n_answered, n_open;
	uint64_t limit_ns, end_ns; /* of sending */
	uint64_t *sent_ns;	   /* by request; 0: answered */
	double *took_us;	   /* in order of responses */
	struct arrival arrival;
	bool is_printed; /* its arrival was printed */
};

static int send_by_umad(struct ways *ways, uint32_t qpn, uint32_t number,
			const uint8_t mad[MAD_BYTES])
{
	const uint32_t tid = htonl(number);
	uint8_t numbered[MAD_BYTES];

	memcpy(numbered, mad, MAD_BYTES);
	/* The kernel refuses a transaction id that is in flight on the same descriptor. */
	memcpy(numbered + MAD_TID_LOW_AT, &tid, sizeof(tid));
	return umad_write(ways->fd, ways->agent, &ways->path, qpn, numbered, 0);
}

static int send_one(struct ways *ways, struct asking *asking)
{
	uint8_t mad[MAD_BYTES];
	int err;

	mad_probe_write(asking->n_sent, mad);
	asking->sent_ns[asking->n_sent] = clock_ns();
	if (asking->by_umad) {
		err = send_by_umad(ways, asking->qpn, asking->n_sent, mad);
	} else {
		mad_sender_note_qpn(ways->sender, &ways->path.dgid, asking->qpn);
		err = mad_sender_send(ways->sender, &ways->path, mad);
	}
	asking->n_sent += !err;
	asking->n_open += !err;
	return err;
}

static void take_answer(struct asking *asking, const uint8_t mad[MAD_BYTES])
{
	struct cm_msg msg;
	struct arrival arrival;
	uint32_t id;

	if (cm_msg_decode(mad, MAD_BYTES, &msg) || msg.hdr.attr_id != CM_ATTR_SIDR_REP)
		return;
	id = msg.sidr_rep.request_id;
	if (id >= asking->n_sent || !asking->sent_ns[id])
		return;
	asking->took_us[asking->n_answered++] = (double)(clock_ns() - asking->sent_ns[id]) /
						NS_PER_US;
	asking->sent_ns[id] = 0;
	asking->n_open -= asking->n_open > 0;
	memcpy(&arrival, msg.sidr_rep.private_data, sizeof(arrival));
	if (arrival.mark != htonl(DATA_MARKED))
		return;
	asking->arrival = arrival;
	asking->is_printed = true;
}

/*
 * Until fewer than @most are unanswered, or none arrives before the timeout: the open ones are
 * lost.
 */
static int take_answers(struct ways *ways, struct asking *asking, unsigned int most)
{
	struct mad_port *port;
	struct mad_path path;
	uint8_t mad[MAD_BYTES];
	int err;

	while (asking->n_open > most) {
		err = receive_mad(ways, &path, mad, &port);
		if (!err)
			take_answer(asking, mad);
		else if (err == -EAGAIN &&
			 !wait_for_mads(ways, asking->n_answered ? LIMIT_MS : LIMIT_FIRST_MS))
			asking->n_open = 0;
		else if (err != -EAGAIN && err != -ENOMSG)
			return err;
	}
	return 0;
}

static int ask_all(struct ways *ways, struct asking *asking)
{
	int err = 0;

	while (!err && asking->n_sent < asking->n_wanted) {
		if (asking->n_sent >= N_FIRST &&
		    (!asking->n_answered || clock_ns() > asking->end_ns))
			break;
		err = send_one(ways, asking);
		if (!err)
			err = take_answers(ways, asking,
					   asking->n_sent == N_FIRST ? 0 : AT_ONCE - 1);
		if (asking->n_sent == N_FIRST) /* the first write to umad may have blocked */
			asking->end_ns = clock_ns() + asking->limit_ns;
	}
	return err ? err : take_answers(ways, asking, 0);
}

static int compare_doubles(const void *a, const void *b)
{
	const double *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

static void print_asked(const struct asking *asking, int err)
{
	const struct arrival *arrival = &asking->arrival;
	const double *took = asking->took_us;
	const unsigned int n = asking->n_answered;

	printf("{\"sent\":%u,\"answered\":%u", asking->n_sent, n);
	if (err)
		printf(",\"error\":\"%s\"", strerror(-err));
	qsort(asking->took_us, n, sizeof(*took), compare_doubles);
	if (n)
		printf(",\"min_us\":%.1f,\"median_us\":%.1f,\"max_us\":%.1f", took[0], took[n / 2],
		       took[n - 1]);
	if (asking->is_printed)
		printf(",\"arrived_at\":\"%s\",\"source_qpn\":%u,\"grh\":%s,\"sl\":%u,"
		       "\"pkey_index\":%u,\"hop_limit\":%u,\"traffic_class\":%u",
		       arrival->at == AT_QP1 ? "qp1" : "own", arrival->source_qpn,
		       arrival->grh ? "true" : "false", arrival->sl, arrival->pkey_index,
		       arrival->hop_limit, arrival->traffic_class);
	puts("}");
}

static int send_mads(struct ways *ways, struct asking *asking)
{
	int err;

	asking->sent_ns = calloc(asking->n_wanted, sizeof(*asking->sent_ns));
	asking->took_us = calloc(asking->n_wanted, sizeof(*asking->took_us));
	if (!asking->sent_ns || !asking->took_us)
		err = -ENOMEM;
	else if (!asking->by_umad && !ways->sender)
		err = ways->why_not;
	else
		err = ask_all(ways, asking);
	print_asked(asking, err);
	free(asking->sent_ns);
	free(asking->took_us);
	return 0;
}

static bool parse_asking(char **words, struct asking *ret)
{
	const bool is_qp1 = strcmp(words[1], "qp1") == 0;

	ret->by_umad = strcmp(words[0], "umad") == 0;
	ret->qpn = is_qp1 ? 1 : (uint32_t)strtoul(words[1], NULL, 0);
	ret->n_wanted = (unsigned int)strtoul(words[2], NULL, 10);
	ret->limit_ns = strtoul(words[3], NULL, 10) * CM_NS_PER_MS;
	return (ret->by_umad || strcmp(words[0], "own") == 0) && ret->qpn && ret->n_wanted &&
	       ret->n_wanted <= N_MAX;
}

int main(int argc, char **argv)
{
	const bool answers = argc == 3 && strcmp(argv[1], "answer") == 0;
	struct asking asking = { .by_umad = false };
	struct ways ways = { .umad = NULL };
	int err;

	if (!answers &&
	    (argc != 7 || strcmp(argv[1], "ask") != 0 || !parse_asking(argv + 3, &asking))) {
		fputs("usage: mads answer ADDRESS\n       mads ask ADDRESS umad|own qp1|QPN N MS\n",
		      stderr);
		return STATUS_USAGE;
	}
	err = open_ways(&ways, argv[2]);
	if (!err)
		err = answers ? answer_mads(&ways) : send_mads(&ways, &asking);
	close_ways(&ways);
	return err ? STATUS_FAILED : STATUS_OK;
}

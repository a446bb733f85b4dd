/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client of the subnet administrator as a program, for sa_judge.py, which runs an OpenSM on a
 * simulated fabric. Reads commands, one per line, and prints a response to each:
 *
 *   path DGID        the path to a port
 *   join MGID full   become a member of a group; again: once more
 *   join MGID send
 *   leave MGID       give the membership up that was joined last
 *   member MGID      the record of a group
 *   offer NAME ID    a service of this name, at our port
 *   find NAME        all services of this name
 *   reset            the subnet has changed
 *   stats            what was sent, and what came from memory
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <infiniband/umad.h>

#include "mad/sa/agent.h"
#include "mad/umad_sa.h"

#define ASKS_MAX   32
#define TIMEOUT_MS 5000
#define SETTLE_MS  300

#define PATH_MASK \
	(SA_PATH_DGID | SA_PATH_SGID | SA_PATH_REVERSIBLE | SA_PATH_NUMB_PATH | SA_PATH_PKEY)
#define JOIN_MASK  UINT64_C(0x130c7)
#define OFFER_MASK UINT64_C(0x57) /* id, GID, P_Key, lease, name */

static struct umad_sa sa;
static struct mad_path to_sm;
static struct mad_gid our_gid;
static struct sa_agent agent;
static struct sa_ask asks[ASKS_MAX];
static unsigned int n_asks;
static bool is_done;

static struct cm_time now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (struct cm_time){ (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec };
}

static void put_on_wire(void *arg, const uint8_t mad[MAD_BYTES], unsigned int wait_ms)
{
	int err = umad_sa_send(&sa, &to_sm, mad, wait_ms);

	(void)arg;
	if (err)
		fprintf(stderr, "sa_client: a question was not sent: %s\n", strerror(-err));
}

static void done(struct sa_ask *ask, int err, const struct sa_msg *answer)
{
	(void)ask;
	is_done = true;
	printf("%d", err);
	if (answer)
		wire_print(sa_msg_layout(answer->hdr.attr_id), &answer->path, 1, stdout);
	if (answer && answer->table)
		printf(" n=%zu", answer->n_records);
	putchar('\n');
	fflush(stdout);
}

/* Waits for a response, or for as long as a leave takes. */
static void run(int64_t for_ms)
{
	struct cm_time end = cm_time_after(now(), (uint64_t)for_ms * CM_NS_PER_MS);
	struct pollfd poll_fd = { .fd = sa.fd, .events = POLLIN };
	const uint8_t *mad;
	size_t bytes;

	while (!is_done && !cm_time_reached(end, now())) {
		/* Read only when ready: the simulator's descriptors always block. */
		if (poll(&poll_fd, 1, 10) == 1 && umad_sa_receive(&sa, &mad, &bytes) == 0)
			sa_agent_input(&agent, mad, bytes, now());
		sa_agent_expire(&agent, now());
	}
}

static void begin_question(struct sa_ask *ask)
{
	ask->timeout_ms = TIMEOUT_MS;
	ask->done = done;
	is_done = false;
	sa_agent_ask(&agent, ask, now());
	run(2 * TIMEOUT_MS);
}

static void ask_path(const struct mad_gid *dgid)
{
	struct sa_ask *ask = &asks[n_asks++];
	struct sa_path *path = &ask->msg.path;

	sa_msg_init(&ask->msg, SA_METHOD_GET, SA_ATTR_PATH_RECORD, PATH_MASK, 0);
	path->dgid = *dgid;
	path->sgid = our_gid;
	path->reversible = 1;
	path->numb_path = 1;
	path->pkey = 0xffff;
	begin_question(ask);
}

static void ask_member(const struct mad_gid *mgid)
{
	struct sa_ask *ask = &asks[n_asks++];

	sa_msg_init(&ask->msg, SA_METHOD_GET, SA_ATTR_MCMEMBER_RECORD, SA_MEMBER_MGID, 0);
	ask->msg.member.mgid = *mgid;
	begin_question(ask);
}

static void join(const struct mad_gid *mgid, uint8_t join_state)
{
	struct sa_ask *ask = &asks[n_asks++];
	struct sa_member *member = &ask->msg.member;

	sa_msg_init(&ask->msg, SA_METHOD_SET, SA_ATTR_MCMEMBER_RECORD, JOIN_MASK, 0);
	member->mgid = *mgid;
	member->port_gid = our_gid;
	member->qkey = 0x01234567;
	member->pkey = 0xffff;
	member->join_state = join_state;
	begin_question(ask);
}

static void registered(struct sa_flight *flight, int err, const struct sa_msg *answer)
{
	(void)flight;
	(void)answer;
	is_done = true;
	printf("%d\n", err);
	fflush(stdout);
}

/* Programs do this without librdmacm, and so without the agent. */
static void offer(const char *name, const char *id)
{
	static struct sa_flight flight;
	struct sa_service *service = &flight.msg.service;

	sa_msg_init(&flight.msg, SA_METHOD_SET, SA_ATTR_SERVICE_RECORD, OFFER_MASK, 0);
	service->service_id = strtoull(id, NULL, 0);
	service->gid = our_gid;
	service->pkey = 0xffff;
	service->lease_s = UINT32_MAX;
	snprintf((char *)service->name, sizeof(service->name), "%s", name);
	flight.landed = registered;
	is_done = false;
	sa_flight_start(&agent.flights, &flight, TIMEOUT_MS, now());
	run(2 * TIMEOUT_MS);
}

static void find(const char *name)
{
	struct sa_ask *ask = &asks[n_asks++];

	sa_msg_init(&ask->msg, SA_METHOD_GET_TABLE, SA_ATTR_SERVICE_RECORD, SA_SERVICE_NAME, 0);
	snprintf((char *)ask->msg.service.name, sizeof(ask->msg.service.name), "%s", name);
	begin_question(ask);
}

static void leave(const struct mad_gid *mgid)
{
	unsigned int i = n_asks;

	while (i-- > 0) {
		if (!asks[i].group || memcmp(&asks[i].msg.member.mgid, mgid, sizeof(*mgid)) != 0)
			continue;
		sa_agent_withdraw(&agent, &asks[i], now());
		is_done = false;
		run(SETTLE_MS);
		puts("0");
		fflush(stdout);
		return;
	}
	puts("-1");
	fflush(stdout);
}

static void reset(void)
{
	sa_agent_subnet(&agent, &agent.subnet, true, now());
	is_done = false;
	run(SETTLE_MS);
	puts("0");
	fflush(stdout);
}

static void run_command(const char *line)
{
	char verb[16] = "", gid_text[64] = "", how[16] = "";
	struct mad_gid gid = { 0 };

	sscanf(line, "%15s %63s %15s", verb, gid_text, how);
	inet_pton(AF_INET6, gid_text, gid.raw);
	if (!strcmp(verb, "path"))
		ask_path(&gid);
	else if (!strcmp(verb, "member"))
		ask_member(&gid);
	else if (!strcmp(verb, "join"))
		join(&gid, !strcmp(how, "send") ? SA_JOIN_SEND_ONLY_FULL : SA_JOIN_FULL);
	else if (!strcmp(verb, "offer"))
		offer(gid_text, how);
	else if (!strcmp(verb, "find"))
		find(gid_text);
	else if (!strcmp(verb, "leave"))
		leave(&gid);
	else if (!strcmp(verb, "reset"))
		reset();
	else
		printf("0 sent=%u cached=%u groups=%u\n", (unsigned int)agent.flights.n_sent,
		       (unsigned int)agent.n_from_cache, agent.n_groups);
	fflush(stdout);
}

static int begin(const char *device)
{
	struct sa_subnet subnet = { .is_active = true };
	umad_port_t port;
	uint64_t guid, prefix;
	int err;

	if (umad_init() < 0 || umad_get_port(device, 1, &port) < 0)
		return -ENODEV;
	subnet.lid = (uint16_t)port.base_lid;
	subnet.sm_lid = (uint16_t)port.sm_lid;
	to_sm.dlid = subnet.sm_lid;
	to_sm.sl = (uint8_t)port.sm_sl;
	prefix = port.gid_prefix;
	guid = port.port_guid;
	memcpy(our_gid.raw, &prefix, 8);
	memcpy(our_gid.raw + 8, &guid, 8);
	umad_release_port(&port);
	err = umad_sa_open(device, 1, &sa);
	if (err)
		return err;
	sa_agent_init(&agent, 77, 1, put_on_wire, NULL);
	sa_agent_subnet(&agent, &subnet, false, now());
	return 0;
}

int main(int argc, char **argv)
{
	char line[128];
	int err = begin(argc > 1 ? argv[1] : "ibsim0");

	if (err) {
		fprintf(stderr, "sa_client: %s\n", strerror(-err));
		return 1;
	}
	while (n_asks < ASKS_MAX && fgets(line, sizeof(line), stdin))
		run_command(line);
	sa_agent_fini(&agent);
	umad_sa_close(&sa);
	return 0;
}

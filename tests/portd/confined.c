/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client that sends each record of lib/portd/proto/proto.h to a confined cmportd, and receives
 * each that cmportd sends, on an InfiniBand port of a soft fabric. With --confine=kill, a system
 * call that the filter lacks ends that cmportd, and this program fails.
 *
 *   confined PORT-FILE START REMOVE
 *
 * START is a shell command that starts cmportd, REMOVE one that removes the device. Prints the
 * records that were not used, and last how many were. portd_put() and portd_get() are wrapped, so
 * each record that passes is counted, whatever sends it.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "mad/cm_msg.h"
#include "mad/cma_hdr.h"
#include "mad/sa_msg.h"
#include "lib/portd/client/portd_client.h"

#define CLAIM	   7
#define PORT	   7174
#define DEAF_PORT  7999 /* a port without a listener */
#define MANY_PORTS 200	/* more than are leased at once */
#define WAIT_MS	   10000
#define ASK	   5

static bool is_used[PORTD_N_TYPES];
static struct portd_client *client;
static struct portd_ids ids;
static struct portd_reply port;
static struct mad_path to_self;
static const char *device;
static uint32_t stat_id;
static pid_t cmportd; /* the one under test, not one that was started after it ended */

bool __real_portd_put(struct portd_datagram *datagram, const struct portd_record *record);
bool __wrap_portd_put(struct portd_datagram *datagram, const struct portd_record *record);
int __real_portd_get(struct portd_datagram *datagram, struct portd_record *ret);
int __wrap_portd_get(struct portd_datagram *datagram, struct portd_record *ret);

bool __wrap_portd_put(struct portd_datagram *datagram, const struct portd_record *record)
{
	is_used[record->type] = true;
	return __real_portd_put(datagram, record);
}

int __wrap_portd_get(struct portd_datagram *datagram, struct portd_record *ret)
{
	int err = __real_portd_get(datagram, ret);

	if (!err)
		is_used[ret->type] = true;
	return err;
}

static void check(const char *what, int err)
{
	if (!err)
		return;
	printf("%s: %s\n", what, strerror(-err));
	exit(1);
}

/* --- receiving ----------------------------------------------------------- */

static void put_row(struct portd_datagram *out, struct portd_record record)
{
	record.stat_row.ask_id = stat_id;
	portd_put(out, &record);
}

static void answer_stat(uint32_t ask_id)
{
	struct portd_datagram out = { .bytes = 0 };

	stat_id = ask_id;
	put_row(&out, (struct portd_record){ .type = PORTD_STAT_ID });
	put_row(&out, (struct portd_record){ .type = PORTD_STAT_COUNT });
	put_row(&out, (struct portd_record){ .type = PORTD_STAT_END });
	check("rows", portd_try_data(client, &out));
}

static void take(const struct portd_record *record, void *arg)
{
	(void)arg;
	if (record->type == PORTD_STAT_ASK)
		answer_stat(record->stat_ask.ask_id);
}

static void await(enum portd_type type)
{
	struct pollfd ready = { .fd = portd_client_fd(client), .events = POLLIN };
	int err = -EAGAIN;

	while (!is_used[type]) {
		while (!err)
			err = portd_receive(client, take, NULL);
		check(portd_type_str(type), is_used[type] || err == -EAGAIN ? 0 : err);
		err = 0;
		if (!is_used[type] && poll(&ready, 1, WAIT_MS) <= 0)
			check(portd_type_str(type), -ETIMEDOUT);
	}
}

/* --- each record --------------------------------------------------------- */

static void claim_ports(void)
{
	struct portd_claim claim = {
		.claim_id = CLAIM, .ps = RDMA_PS_TCP, .local_family = 4, .local_port = PORT
	};
	unsigned int i;

	check("bind", portd_bind(client, &claim));
	check("listen", portd_listen(client, &claim));
	portd_update(client, &claim);
	portd_release(client, CLAIM);
	for (i = 0; i < MANY_PORTS; i++)
		check("a leased port", portd_take_port(client, RDMA_PS_TCP) ? 0 : -EADDRNOTAVAIL);
	check("comm ids", portd_lease_ids(client, &(struct portd_ids){ 0 }));
}

/* The response to a REQ without a listener: cmportd answers REJ. */
static void send_message(void)
{
	struct portd_record record = { .type = PORTD_MAD,
				       .mad = { .port = port.handle, .path = to_self } };
	struct cma_hdr hdr = { .ip_version = 4, .src_port = portd_take_port(client, RDMA_PS_TCP) };
	struct cm_msg msg;

	cm_msg_init(&msg, CM_ATTR_REQ, 1);
	msg.req.local_comm_id = ids.first;
	msg.req.service_id = cma_service_id(RDMA_PS_TCP, DEAF_PORT);
	msg.req.local_ca_guid = port.ca_guid;
	msg.req.local_qpn = 0x800000;
	msg.req.pkey = 0xffff;
	msg.req.primary.local_lid = msg.req.primary.remote_lid = to_self.dlid;
	msg.req.primary.local_gid = msg.req.primary.remote_gid = port.gid0;
	wire_encode(&cma_hdr_layout, &hdr, msg.req.private_data);
	cm_msg_encode(&msg, record.mad.mad);
	check("a message", portd_put_data(client, &record));
	is_used[PORTD_MAD] = false; /* false until one arrives */
	await(PORTD_MAD);
}

static void ask_administrator(void)
{
	struct portd_record ask = { .type = PORTD_SA_ASK,
				    .sa_ask = { .port = port.handle,
						.method = SA_METHOD_GET,
						.attr = SA_ATTR_PATH_RECORD,
						.ask_id = ASK,
						.timeout_ms = WAIT_MS,
						.comp_mask = SA_PATH_DGID } };
	struct portd_record drop = { .type = PORTD_SA_DROP, .sa_drop = { .ask_id = ASK + 1 } };
	struct portd_record doubt = { .type = PORTD_SA_REVALIDATE,
				      .sa_revalidate = { .port = port.handle, .dgid = port.gid0 } };
	struct sa_path path = { .dgid = port.gid0 };

	wire_encode(sa_msg_layout(SA_ATTR_PATH_RECORD), &path, ask.sa_ask.record);
	check("a question", portd_put_data(client, &ask));
	await(PORTD_SA_TOLD);
	ask.sa_ask.ask_id++;
	check("a question", portd_put_data(client, &ask));
	check("its end", portd_put_data(client, &drop));
	check("a doubt", portd_put_data(client, &doubt));
}

static void look_around(void)
{
	struct portd_reply reply;

	send_message();
	check("a state", portd_stat(client, 0, &reply));
	await(PORTD_STAT_ASK);
	await(PORTD_STAT_END);
	usleep(100000); /* it sends one response every 20 ms */
	check("quotas", portd_stat(client, PORTD_STAT_QUOTAS, &reply));
	await(PORTD_STAT_QUOTA);
}

static pid_t pid_of_cmportd(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	struct ucred cred = { .pid = 0 };
	socklen_t bytes = sizeof(cred);

	strncpy(addr.sun_path, getenv("PURECM_SOCKET"), sizeof(addr.sun_path) - 1);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &bytes))
		check("cmportd", -errno);
	close(fd);
	return cred.pid;
}

static void check_cmportd(void)
{
	check("cmportd is another one", pid_of_cmportd() == cmportd ? 0 : -ECHILD);
}

static void change_settings(const char *port_file)
{
	FILE *file = fopen(port_file, "w");

	if (!file || fprintf(file, "* * default_roce_tos=26\n") < 0 || fclose(file))
		check(port_file, -errno);
	kill(cmportd, SIGHUP);
	await(PORTD_PORT_TOS);
}

/* --- the next cmportd ---------------------------------------------------- */

static void report_all(struct portd_client *resumed, void *arg)
{
	struct cm_record tracked = { .local_comm_id = ids.first + 1 };

	(void)arg;
	check("its port", portd_tell_port(resumed, device, 1, &port));
	check(port.text, -port.error);
	tracked.handle = port.handle;
	portd_tell_tracked(resumed, &tracked);
}

static void replace_cmportd(const char *start)
{
	check_cmportd();
	kill(cmportd, SIGKILL);
	while (kill(cmportd, 0) == 0)
		usleep(1000);
	if (system(start))
		check(start, -ECHILD);
	cmportd = pid_of_cmportd();
	check("the next cmportd", portd_resume(client, report_all, NULL));
}

static void begin(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *verbs = list && list[0] ? ibv_open_device(list[0]) : NULL;
	struct ibv_port_attr attr;
	struct portd_why why;

	if (!verbs || ibv_query_port(verbs, 1, &attr))
		check("a device", -ENODEV);
	device = strdup(ibv_get_device_name(list[0]));
	to_self = (struct mad_path){ .dlid = attr.lid };
	ibv_close_device(verbs);
	cmportd = pid_of_cmportd();
	check("cmportd", portd_client_open(&client, &ids, &why));
	check(why.text, portd_open_port(client, device, 1, portd_keep_reply, &port, &why));
}

int main(int argc, char **argv)
{
	const struct portd_record closed = { .type = PORTD_CLOSE, .close = { .local_comm_id = 1 } };
	unsigned int type, n = 0;

	if (argc != 4)
		return 2;
	begin();
	claim_ports();
	ask_administrator();
	look_around();
	check("a close", portd_put_data(client, &closed));
	change_settings(argv[1]);
	replace_cmportd(argv[2]);
	send_message();
	if (system(argv[3]))
		check(argv[3], -ECHILD);
	await(PORTD_GONE);
	check_cmportd();
	for (type = PORTD_NONE + 1; type < PORTD_N_TYPES; type++) {
		if (!is_used[type])
			printf("%s was not used\n", portd_type_str((enum portd_type)type));
		n += is_used[type];
	}
	printf("%u of %u records were used\n", n, PORTD_N_TYPES - 1);
	return n != PORTD_N_TYPES - 1;
}

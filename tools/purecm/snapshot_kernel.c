/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the ids and connections of the kernel's connection manager from RDMA netlink, as
 * `rdma resource` does, and its counters from sysfs. Part of snapshot.h.
 */
#include <ctype.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "tools/purecm/subcommand.h"
#include "tools/purecm/snapshot.h"

#define KERNEL_CLIENT 0 /* the kernel's own users, which have no pid */
#define SYSFS	      "/sys/class/infiniband"

/* The states of an id in the kernel's order. */
static const char *const id_states[] = {
	"IDLE",	      "ADDR_QUERY", "ADDR_RESOLVED", "ROUTE_QUERY",    "ROUTE_RESOLVED", "CONNECT",
	"DISCONNECT", "ADDR_BOUND", "LISTEN",	     "DEVICE_REMOVAL", "DESTROYING",
};

static const struct {
	const char *folder;
	enum portd_stat_counter what;
} counters[] = {
	{ "cm_tx_msgs", PORTD_COUNT_SENT },
	{ "cm_rx_msgs", PORTD_COUNT_RECEIVED },
	{ "cm_tx_retries", PORTD_COUNT_REPEATED },
	{ "cm_rx_duplicates", PORTD_COUNT_DUPLICATE },
};

struct device {
	uint32_t index;
	char name[PORTD_DEVICE_BYTES];
};

struct look {
	struct snapshot *snapshot;
	struct nl_sock *socket;
	uint32_t pid; /* 0: all */
	struct device device[PORTD_PORTS_MAX];
	unsigned int n_devices;
	const struct device *at; /* being queried */
	size_t first_id;	 /* of the device */
	int err;
};

typedef int take_function(struct nl_msg *msg, void *arg);

/* --- netlink -------------------------------------------------------------- */

static int ask_kernel(struct look *look, int command, take_function *take)
{
	struct nl_msg *msg =
		nlmsg_alloc_simple(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command), NLM_F_DUMP);
	int err;

	if (!msg)
		return -ENOMEM;
	if (look->at)
		nla_put_u32(msg, RDMA_NLDEV_ATTR_DEV_INDEX, look->at->index);
	nl_socket_modify_cb(look->socket, NL_CB_VALID, NL_CB_CUSTOM, take, look);
	err = nl_send_auto(look->socket, msg);
	nlmsg_free(msg);
	if (err >= 0)
		err = nl_recvmsgs_default(look->socket);
	return err < 0 ? err : look->err;
}

static bool parse_attrs(struct nl_msg *msg, struct nlattr *ret[RDMA_NLDEV_ATTR_MAX])
{
	return nlmsg_parse(nlmsg_hdr(msg), 0, ret, RDMA_NLDEV_ATTR_MAX - 1, NULL) == 0;
}

static uint32_t u32_of(const struct nlattr *attr)
{
	return attr && nla_len(attr) >= (int)sizeof(uint32_t) ? nla_get_u32(attr) : 0;
}

static uint8_t u8_of(const struct nlattr *attr)
{
	return attr && nla_len(attr) >= 1 ? nla_get_u8(attr) : 0;
}

static int take_device(struct nl_msg *msg, void *arg)
{
	struct nlattr *attr[RDMA_NLDEV_ATTR_MAX];
	struct look *look = arg;
	struct device *device = &look->device[look->n_devices];

	if (look->n_devices == PORTD_PORTS_MAX || !parse_attrs(msg, attr) ||
	    !attr[RDMA_NLDEV_ATTR_DEV_NAME])
		return NL_OK;
	device->index = u32_of(attr[RDMA_NLDEV_ATTR_DEV_INDEX]);
	nla_strlcpy(device->name, attr[RDMA_NLDEV_ATTR_DEV_NAME], sizeof(device->name));
	look->n_devices++;
	return NL_OK;
}

/* Calls @take for each row of a table. */
static int take_rows(struct nl_msg *msg, struct look *look, int table,
		     int take(struct look *look, struct nlattr *const attr[]))
{
	struct nlattr *attr[RDMA_NLDEV_ATTR_MAX], *row;
	int left;

	if (!parse_attrs(msg, attr) || !attr[table])
		return NL_OK;
	nla_for_each_nested(row, attr[table], left)
	{
		struct nlattr *of_row[RDMA_NLDEV_ATTR_MAX];

		if (look->err || nla_parse_nested(of_row, RDMA_NLDEV_ATTR_MAX - 1, row, NULL))
			continue;
		look->err = take(look, of_row);
	}
	return NL_OK;
}

/* --- ids ------------------------------------------------------------------ */

static bool is_wanted(const struct look *look, struct nlattr *const attr[])
{
	return !look->pid || u32_of(attr[RDMA_NLDEV_ATTR_RES_PID]) == look->pid;
}

static void read_process(struct snapshot_process *process)
{
	char path[64];
	struct stat of_process;

	snapshot_read_program(process);
	snprintf(path, sizeof(path), "/proc/%u", process->pid);
	if (stat(path, &of_process) == 0)
		process->uid = of_process.st_uid;
}

/*
 * A kernel module is shown by its name in brackets, without a process. Return: its number, or
 * -errno.
 */
static int find_process(struct look *look, struct nlattr *const attr[])
{
	struct snapshot *snapshot = look->snapshot;
	struct snapshot_process process = { .pid = u32_of(attr[RDMA_NLDEV_ATTR_RES_PID]),
					    .has_answered = true };
	char name[PROGRAM_BYTES - 2] = "kernel";
	size_t i;
	int err;

	if (process.pid) {
		read_process(&process);
	} else {
		if (attr[RDMA_NLDEV_ATTR_RES_KERN_NAME])
			nla_strlcpy(name, attr[RDMA_NLDEV_ATTR_RES_KERN_NAME], sizeof(name));
		snprintf(process.program, sizeof(process.program), "[%s]", name);
	}
	for (i = 1; i < snapshot->n_processes; i++) {
		if (snapshot->process[i].pid == process.pid &&
		    strcmp(snapshot->process[i].program, process.program) == 0)
			return (int)i;
	}
	if (i > UINT16_MAX)
		return -ENOBUFS;
	process.client = (uint16_t)i;
	snapshot->index[i] = (uint16_t)i;
	err = snapshot_add_process(snapshot, &process);
	return err ? err : (int)i;
}

static uint8_t find_port(struct snapshot *snapshot, const char *device, uint32_t port_num)
{
	struct snapshot_port *port;
	uint8_t i;

	for (i = 0; i < PORTD_PORTS_MAX; i++) {
		port = &snapshot->port[i];
		if (!port->is_known) {
			port->is_known = true;
			port->port_num = (uint8_t)port_num;
			snprintf(port->device, sizeof(port->device), "%s", device);
		}
		if (port->port_num == port_num && strcmp(port->device, device) == 0)
			return i;
	}
	return PORTD_PORTS_MAX;
}

static uint8_t id_state_of(uint8_t state)
{
	struct portd_stat_id row = { .id_state = 0 };

	if (state >= sizeof(id_states) / sizeof(id_states[0]))
		return PORTD_STAT_NONE;
	while (strcmp(snapshot_id_state(&row), id_states[state]) != 0)
		row.id_state++;
	return row.id_state;
}

/* Return: the address family, 4 or 6; 0 for none. */
static uint8_t read_addr(const struct nlattr *attr, uint8_t addr[16], uint16_t *port)
{
	struct sockaddr_storage storage = { .ss_family = AF_UNSPEC };
	const struct sockaddr_in6 *in6 = (const void *)&storage;
	const struct sockaddr_in *in = (const void *)&storage;

	if (attr)
		nla_memcpy(&storage, attr, sizeof(storage));
	if (storage.ss_family == AF_INET) {
		memcpy(addr + 12, &in->sin_addr, 4);
		*port = ntohs(in->sin_port);
		return 4;
	}
	if (storage.ss_family != AF_INET6)
		return 0;
	memcpy(addr, &in6->sin6_addr, 16);
	*port = ntohs(in6->sin6_port);
	return 6;
}

static int take_id(struct look *look, struct nlattr *const attr[])
{
	int process = is_wanted(look, attr) ? find_process(look, attr) : 0;
	struct portd_stat_id id = {
		.row.client = (uint16_t)process,
		.id_state = id_state_of(u8_of(attr[RDMA_NLDEV_ATTR_RES_STATE])),
		.conn_state = PORTD_STAT_NONE,
		.qp_type = u8_of(attr[RDMA_NLDEV_ATTR_RES_TYPE]),
		.ps = (uint16_t)u32_of(attr[RDMA_NLDEV_ATTR_RES_PS]),
		.local_qpn = u32_of(attr[RDMA_NLDEV_ATTR_RES_LQPN]),
		.retries = SNAPSHOT_UNKNOWN,
		.age_ms = UINT64_MAX,
	};

	if (process <= 0)
		return process;
	id.port =
		find_port(look->snapshot, look->at->name, u32_of(attr[RDMA_NLDEV_ATTR_PORT_INDEX]));
	id.family = read_addr(attr[RDMA_NLDEV_ATTR_RES_SRC_ADDR], id.local_addr, &id.local_port);
	read_addr(attr[RDMA_NLDEV_ATTR_RES_DST_ADDR], id.peer_addr, &id.peer_port);
	look->snapshot->process[process].n_conns += id.local_qpn != 0;
	return snapshot_add_id(look->snapshot, &id);
}

static int take_ids(struct nl_msg *msg, void *arg)
{
	return take_rows(msg, arg, RDMA_NLDEV_ATTR_RES_CM_ID, take_id);
}

/* The state of a connection shows only in its queue pair. */
static int take_qp(struct look *look, struct nlattr *const attr[])
{
	uint32_t qpn = u32_of(attr[RDMA_NLDEV_ATTR_RES_LQPN]);
	struct portd_stat_id *id;
	size_t i;

	for (i = look->first_id; i < look->snapshot->n_ids; i++) {
		id = &look->snapshot->id[i];
		if (!qpn || id->local_qpn != qpn)
			continue;
		id->remote_qpn = u32_of(attr[RDMA_NLDEV_ATTR_RES_RQPN]);
		id->conn_state = SNAPSHOT_QP_STATE + u8_of(attr[RDMA_NLDEV_ATTR_RES_STATE]);
	}
	return 0;
}

static int take_qps(struct nl_msg *msg, void *arg)
{
	return take_rows(msg, arg, RDMA_NLDEV_ATTR_RES_QP, take_qp);
}

static int look_at_devices(struct look *look)
{
	unsigned int i;
	int err = ask_kernel(look, RDMA_NLDEV_CMD_GET, take_device);

	for (i = 0; !err && i < look->n_devices; i++) {
		look->at = &look->device[i];
		look->first_id = look->snapshot->n_ids;
		err = ask_kernel(look, RDMA_NLDEV_CMD_RES_CM_ID_GET, take_ids);
		if (!err)
			err = ask_kernel(look, RDMA_NLDEV_CMD_RES_QP_GET, take_qps);
	}
	look->at = NULL;
	return err;
}

/* --- counters ------------------------------------------------------------- */

static bool read_counter(const char *device, unsigned int port, const char *folder,
			 const char *message, uint64_t *ret)
{
	char path[256], name[16], text[32];
	size_t i;

	for (i = 0; message[i] && i < sizeof(name) - 1; i++)
		name[i] = (char)tolower(message[i]);
	name[i] = '\0';
	snprintf(path, sizeof(path), SYSFS "/%s/ports/%u/%s/%s", device, port, folder, name);
	fd_read_file(path, text, sizeof(text));
	return sscanf(text, "%" SCNu64, ret) == 1;
}

/* Return: 1 if the port has counters, 0 if not, or -errno. */
static int count_port(struct snapshot *snapshot, const char *device, unsigned int port)
{
	struct portd_stat_count count = { .row.client = PORTD_STAT_PASSING };
	bool has_any = false;
	size_t i;
	int err;

	for (i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
		count.what = (uint8_t)counters[i].what;
		for (count.message = 0; count.message < CM_TALLY_NONE; count.message++) {
			if (!read_counter(device, port, counters[i].folder,
					  snapshot_message(count.message), &count.value))
				continue;
			has_any = true;
			if (!count.value)
				continue;
			count.port = find_port(snapshot, device, port);
			err = snapshot_add_count(snapshot, &count);
			if (err)
				return err;
		}
	}
	return has_any;
}

/* Return: whether any port has counters, which none has without a connection manager; or -errno. */
static int count_ports(struct look *look)
{
	unsigned int i, port, n = 0;
	int got;

	for (i = 0; i < look->n_devices; i++) {
		for (port = 1; port <= UINT8_MAX; port++) {
			got = count_port(look->snapshot, look->device[i].name, port);
			if (got < 0)
				return got;
			if (!got)
				break;
			n++;
		}
	}
	return n > 0;
}

/* --- the whole snapshot --------------------------------------------------- */

static int complain_of(int err, const char *what)
{
	complain("the kernel does not list %s: %s", what, nl_geterror(err));
	return -EIO;
}

int snapshot_gather_kernel(uint32_t pid, struct snapshot *ret)
{
	const struct snapshot_process itself = { .client = KERNEL_CLIENT,
						 .program = "kernel",
						 .has_answered = true };
	struct look look = { .snapshot = ret, .socket = nl_socket_alloc(), .pid = pid };
	int err;

	memset(ret, 0, sizeof(*ret));
	ret->of_kernel = true;
	ret->time_ns = clock_ns_of(CLOCK_REALTIME);
	if (!look.socket)
		return -ENOMEM;
	err = nl_connect(look.socket, NETLINK_RDMA);
	if (err) {
		nl_socket_free(look.socket);
		return -ENOENT; /* ib_core is not loaded */
	}
	err = snapshot_add_process(ret, &itself);
	if (!err)
		err = look_at_devices(&look);
	nl_socket_free(look.socket);
	if (err < 0)
		return complain_of(err, "its ids (rdma resource show cm_id)");
	err = count_ports(&look);
	if (err < 0 || err || ret->n_ids)
		return err < 0 ? err : 0;
	ret->n_processes = 0;
	return -ENOENT;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A port behind libibumad, used through mad_port_ops.
 *
 * A write() to umad holds its descriptor for up to a second while the kernel resolves the peer's
 * link address, and meanwhile nothing is delivered to that descriptor. Hence one descriptor that
 * only receives, and others that only send: see umad_writer.h.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <infiniband/umad.h>

#include "base/fd.h"
#include "mad/umad.h"
#include "mad/umad_node.h"
#include "mad/umad_owner.h"
#include "mad/umad_writer.h"

#define MAD_TID_LOW_AT 12

struct owned_port {
	struct mad_port port;
	struct umad_writer *writer;
	atomic_uint tid;
};

static struct owned_port *from_port(struct mad_port *port)
{
	return (struct owned_port *)((char *)port - offsetof(struct owned_port, port));
}

static void addr_to_path(const struct ib_mad_addr *addr, struct mad_path *path)
{
	memset(path, 0, sizeof(*path));
	path->pkey_index = addr->pkey_index;
	path->dlid = ntohs(addr->lid);
	path->sl = addr->sl;
	path->path_bits = addr->path_bits;
	if (!addr->grh_present)
		return;
	path->grh = true;
	path->sgid_index = addr->gid_index;
	path->hop_limit = addr->hop_limit;
	memcpy(path->dgid.raw, addr->gid, sizeof(path->dgid.raw));
	/* Linux reads both from the place of a GRH; with an IPv4 header they are not there. */
	if (mad_gid_is_ipv4(&path->dgid))
		return;
	path->traffic_class = addr->traffic_class;
	path->flow_label = ntohl(addr->flow_label);
}

static int umad_send_mad(struct mad_port *port, const struct mad_path *path,
			 const uint8_t mad[MAD_BYTES])
{
	struct owned_port *owned = from_port(port);
	uint32_t tid = htonl(atomic_fetch_add_explicit(&owned->tid, 1, memory_order_relaxed));
	uint8_t numbered[MAD_BYTES];

	memcpy(numbered, mad, MAD_BYTES);
	/* The kernel refuses a transaction id that is outstanding on the same descriptor. */
	memcpy(numbered + MAD_TID_LOW_AT, &tid, sizeof(tid));
	return umad_writer_send(owned->writer, path, numbered);
}

static int umad_receive_mad(struct mad_port *port, struct mad_path *path, uint8_t mad[MAD_BYTES])
{
	struct ib_user_mad head;
	int err = umad_read(port->fd, &head, mad);

	if (err)
		return err;
	addr_to_path(&head.addr, path);
	port->source_qpn = ntohl(head.addr.qpn);
	return 0;
}

static bool umad_has_queued(struct mad_port *port, const struct mad_gid *dgid)
{
	return umad_writer_has_queued(from_port(port)->writer, dgid);
}

static void umad_port_close(struct mad_port *port)
{
	struct owned_port *owned = from_port(port);

	umad_writer_close(owned->writer);
	fd_close(&port->fd);
	free(owned);
}

static const struct mad_port_ops umad_ops = {
	.send = umad_send_mad,
	.receive = umad_receive_mad,
	.close = umad_port_close,
	.has_queued = umad_has_queued,
};

/* An agent with method 0 receives nothing, and can always be registered. Return: 0 or -errno. */
static int register_agent(int fd, uint8_t method, uint32_t *ret_agent)
{
	struct umad_reg_attr attr = {
		.mgmt_class = MAD_CLASS_CM,
		.mgmt_class_version = MAD_CM_VERSION,
		.method_mask = { method ? 1u << method : 0 },
	};

	return -umad_register2(fd, &attr, ret_agent);
}

struct place {
	const char *device;
	uint8_t port_num;
	const char *node;
};

static int open_sender(void *arg, uint32_t *ret_agent)
{
	const struct place *place = arg;
	int fd = umad_open_node(place->device, place->port_num, place->node);
	int err = fd < 0 ? fd : register_agent(fd, 0, ret_agent);

	if (err && fd >= 0)
		close(fd);
	return err ? err : fd;
}

static struct owned_port *port_new(void)
{
	struct owned_port *owned = calloc(1, sizeof(*owned));
	unsigned int tid = 0;

	if (!owned)
		return NULL;
	owned->port.ops = &umad_ops;
	owned->port.fd = -1;
	/* Processes start with different ids only for the readers of traces. */
	if (getrandom(&tid, sizeof(tid), GRND_NONBLOCK) == sizeof(tid))
		atomic_init(&owned->tid, tid);
	return owned;
}

int umad_port_open(const char *device, uint8_t port_num, struct mad_port **ret,
		   struct umad_owner *ret_who)
{
	char node[UMAD_NODE_BYTES] = "";
	struct owned_port *owned;
	bool refused = false;
	uint32_t agent;
	int err = umad_find_node(device, port_num, node, ret_who);

	if (err && err != -ENODEV)
		return err;
	owned = port_new();
	if (!owned)
		return -ENOMEM;
	owned->port.fd = umad_open_node(device, port_num, node);
	if (owned->port.fd < 0) {
		err = err ? -ENXIO : umad_explain_open(node, -owned->port.fd, ret_who);
		goto fail;
	}
	err = register_agent(owned->port.fd, MAD_METHOD_SEND, &agent);
	refused = err == -EINVAL || err == -EPERM;
	if (!err)
		err = umad_writer_new(open_sender, &(struct place){ device, port_num, node },
				      &owned->writer);
	if (err)
		goto fail;
	*ret = &owned->port;
	return 0;

fail:
	/* Close first, or the search for the owner would find this process. */
	umad_port_close(&owned->port);
	return refused ? umad_explain_busy(device, port_num, node, ret_who) : err;
}

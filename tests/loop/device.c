/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An RDMA device that exists in memory only, so that ids connect without RDMA in the kernel: the
 * calls of libibverbs, and mad/umad.h, with the same names, so that the linker uses these. Verbs
 * create objects and ignore attributes. Messages sent from its port arrive there: the device is a
 * loopback.
 *
 * Its GIDs are those of the interface loop0, which loop.py creates. Linked with programs that
 * include the library, and with a cmportd.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mad/umad.h"
#include "tests/loop/device.h"

#define GUID	  UINT64_C(0x5054000000000001)
#define N_GIDS	  3
#define SPARE_WR  1
#define MAX_SGE	  1 /* too few for a queue pair of our own: messages go through umad */
#define QPN_FIRST 0x100

struct loop_port {
	struct mad_port port; /* first */
	int in;		      /* sent messages are written to it */
};

static atomic_int n_objects;

int loop_n_objects(void)
{
	return atomic_load(&n_objects);
}

static void *make(size_t bytes)
{
	void *made = calloc(1, bytes);

	if (made)
		atomic_fetch_add(&n_objects, 1);
	return made;
}

static int drop(void *made)
{
	atomic_fetch_sub(&n_objects, 1);
	free(made);
	return 0;
}

/* --- the device ---------------------------------------------------------- */

static struct verbs_context verbs;
static struct ibv_device device = { .name = "loop0", .dev_name = "uverbs0" };

#undef ibv_get_device_list
struct ibv_device **ibv_get_device_list(int *ret_n)
{
	struct ibv_device **list = calloc(2, sizeof(struct ibv_device *));

	if (!list) {
		errno = ENOMEM;
		return NULL;
	}
	list[0] = &device;
	if (ret_n)
		*ret_n = 1;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *which)
{
	return which->name;
}

struct ibv_context *ibv_open_device(struct ibv_device *which)
{
	verbs.context.device = which;
	return &verbs.context;
}

int ibv_close_device(struct ibv_context *which)
{
	(void)which;
	return 0;
}

int ibv_query_device(struct ibv_context *which, struct ibv_device_attr *ret)
{
	(void)which;
	*ret = (struct ibv_device_attr){
		.node_guid = htobe64(GUID),
		.phys_port_cnt = 1,
		.max_qp_rd_atom = 16,
		.max_qp_init_rd_atom = 16,
		.max_qp_wr = 1024,
		.max_sge = MAX_SGE,
		.max_cqe = 1024,
	};
	return 0;
}

static int query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
		      size_t bytes)
{
	struct ibv_port_attr is = {
		.state = IBV_PORT_ACTIVE,
		.max_mtu = IBV_MTU_1024,
		.active_mtu = IBV_MTU_1024,
		.gid_tbl_len = N_GIDS,
		.pkey_tbl_len = 1,
		.link_layer = IBV_LINK_LAYER_ETHERNET,
	};

	(void)context;
	if (port_num != 1)
		return EINVAL;
	memcpy(attr, &is, bytes < sizeof(is) ? bytes : sizeof(is));
	return 0;
}

static union ibv_gid gid_at(unsigned int index)
{
	static const char *const texts[N_GIDS] = { "fe80::1", ("::ffff:" LOOP_ADDR), LOOP_ADDR6 };
	union ibv_gid gid;

	inet_pton(AF_INET6, texts[index], &gid);
	return gid;
}

int ibv_query_gid(struct ibv_context *which, uint8_t port_num, int index, union ibv_gid *ret)
{
	(void)which, (void)port_num;
	*ret = gid_at((unsigned int)index);
	return 0;
}

static struct ibv_gid_entry entry_at(unsigned int index)
{
	return (struct ibv_gid_entry){ .gid = gid_at(index),
				       .gid_index = index,
				       .port_num = 1,
				       .gid_type = IBV_GID_TYPE_ROCE_V2,
				       .ndev_ifindex = if_nametoindex("loop0") };
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
		      struct ibv_gid_entry *ret, uint32_t flags, size_t entry_size)
{
	(void)context, (void)port_num, (void)flags, (void)entry_size;
	if (gid_index >= N_GIDS)
		return ENODATA;
	*ret = entry_at(gid_index);
	return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			     size_t max_entries, uint32_t flags, size_t entry_size)
{
	unsigned int i;

	(void)context, (void)flags, (void)entry_size;
	for (i = 0; i < N_GIDS && i < max_entries; i++)
		entries[i] = entry_at(i);
	return i;
}

/* --- the device ---------------------------------------------------------- */

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd = make(sizeof(*pd));

	if (pd)
		pd->context = context;
	return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	return drop(pd);
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct ibv_comp_channel *channel = make(sizeof(*channel));

	if (!channel)
		return NULL;
	channel->context = context;
	channel->fd = eventfd(0, EFD_CLOEXEC);
	if (channel->fd >= 0)
		return channel;
	drop(channel);
	return NULL;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	close(channel->fd);
	return drop(channel);
}

/* --- objects --- */
struct ibv_mr *(ibv_reg_mr)(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct ibv_mr *mr = make(sizeof(*mr));

	(void)access;
	if (mr)
		*mr = (struct ibv_mr){
			.context = pd->context, .pd = pd, .addr = addr, .length = length
		};
	return mr;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	return drop(mr);
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	struct ibv_cq *cq = make(sizeof(*cq));

	(void)comp_vector;
	if (!cq)
		return NULL;
	cq->context = context;
	cq->cqe = cqe;
	cq->cq_context = cq_context;
	cq->channel = channel;
	return cq;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	return drop(cq);
}

static struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	static atomic_uint next_qpn = QPN_FIRST;
	struct ibv_qp *qp;

	if (attr->cap.max_recv_sge > MAX_SGE) {
		errno = EINVAL;
		return NULL;
	}
	qp = make(sizeof(*qp));
	if (!qp)
		return NULL;
	qp->context = context;
	qp->qp_num = atomic_fetch_add(&next_qpn, 1) & 0xffffff;
	qp->pd = attr->pd;
	qp->send_cq = attr->send_cq;
	qp->recv_cq = attr->recv_cq;
	qp->srq = attr->srq;
	qp->qp_type = attr->qp_type;
	attr->cap.max_send_wr += SPARE_WR;
	return qp;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = { 0 };
	struct ibv_qp *qp;

	memcpy(&ex, attr, sizeof(*attr));
	ex.pd = pd;
	qp = create_qp_ex(pd->context, &ex);
	attr->cap = ex.cap;
	return qp;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	return drop(qp);
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	if (mask & IBV_QP_STATE)
		qp->state = attr->qp_state;
	return 0;
}

static struct ibv_srq *create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq *srq = make(sizeof(*srq));

	if (!srq)
		return NULL;
	srq->context = context;
	srq->pd = attr->pd;
	return srq;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex ex = { .attr = attr->attr, .pd = pd };

	return create_srq_ex(pd->context, &ex);
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
	return drop(srq);
}

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)qp, (void)gid, (void)lid;
	return 0;
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)qp, (void)gid, (void)lid;
	return 0;
}

int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp, (void)ece;
	return EOPNOTSUPP;
}

int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp, (void)ece;
	return EOPNOTSUPP;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	return drop(ah);
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	(void)attr;
	struct ibv_ah *ah = make(sizeof(*ah));

	if (ah)
		ah->pd = pd;
	return ah;
}

static struct verbs_context verbs = {
	.sz = sizeof(verbs),
	.query_port = query_port,
	.create_qp_ex = create_qp_ex,
	.create_srq_ex = create_srq_ex,
	.context.abi_compat = __VERBS_ABI_IS_EXTENDED,
};

/* --- its port ------------------------------------------------------------ */

struct packet {
	struct mad_path path;
	uint8_t mad[MAD_BYTES];
};

/* Both ends have the same address: the path to the peer is the path back. */
static int send_mad(struct mad_port *port, const struct mad_path *path,
		    const uint8_t mad[MAD_BYTES])
{
	struct packet packet = { .path = *path };

	memcpy(packet.mad, mad, MAD_BYTES);
	if (send(((struct loop_port *)port)->in, &packet, sizeof(packet), MSG_DONTWAIT) < 0)
		return -EAGAIN; /* dropped, as on a wire */
	return 0;
}

static int receive_mad(struct mad_port *port, struct mad_path *path, uint8_t mad[MAD_BYTES])
{
	struct packet packet;

	if (recv(port->fd, &packet, sizeof(packet), MSG_DONTWAIT) != sizeof(packet))
		return -EAGAIN;
	*path = packet.path;
	memcpy(mad, packet.mad, MAD_BYTES);
	return 0;
}

static void close_port(struct mad_port *port)
{
	close(port->fd);
	close(((struct loop_port *)port)->in);
	free(port);
}

static const struct mad_port_ops port_ops = { .send = send_mad,
					      .receive = receive_mad,
					      .close = close_port };

int umad_port_open(const char *name, uint8_t port_num, struct mad_port **ret,
		   struct umad_owner *ret_who)
{
	struct loop_port *port = calloc(1, sizeof(*port));
	int ends[2];

	(void)name, (void)port_num, (void)ret_who;
	if (!port)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) {
		free(port);
		return -errno;
	}
	port->port = (struct mad_port){ .ops = &port_ops, .fd = ends[0] };
	port->in = ends[1];
	*ret = &port->port;
	return 0;
}

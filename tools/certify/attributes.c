/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program attributes prints the attributes of each RDMA device, one line of JSON for each:
 * limits, ports, what inline data its queue pairs take, and whether this user may have a queue pair
 * with the Q_Key of QP1. purecm certify runs it on both hosts.
 */
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <infiniband/verbs.h>

#define QKEY_OF_QP1 0x80010000
#define INLINE_MAX  4096

static const char *const states[] = { "?", "down", "init", "armed", "active", "deferred" };
static const char *const atomics[] = { "none", "device", "global" };

/* --- attributes found by trying ------------------------------------------- */

/* Return: a queue pair that takes so many bytes inline, or NULL with errno. */
static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_cq *cq, enum ibv_qp_type type,
				unsigned int bytes)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = type,
		.cap = { .max_send_wr = 1,
			 .max_recv_wr = 1,
			 .max_send_sge = 1,
			 .max_recv_sge = 1,
			 .max_inline_data = bytes },
	};

	return ibv_create_qp(pd, &init);
}

/* Return: the most bytes that a queue pair with one request takes inline; -1: there is none. */
static int find_inline(struct ibv_pd *pd, struct ibv_cq *cq, enum ibv_qp_type type)
{
	unsigned int low = 0, high = INLINE_MAX + 1, bytes;
	struct ibv_qp *qp = create_qp(pd, cq, type, 0);

	if (!qp)
		return -1;
	ibv_destroy_qp(qp);
	while (high - low > 1) {
		bytes = (low + high) / 2;
		qp = create_qp(pd, cq, type, bytes);
		if (qp)
			ibv_destroy_qp(qp);
		*(qp ? &low : &high) = bytes;
	}
	return (int)low;
}

/* Since 6.4, kernels require CAP_NET_RAW for that, unless a setting permits it to all users. */
static const char *try_privileged_qkey(struct ibv_pd *pd, struct ibv_cq *cq, uint8_t port_num)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = port_num,
				    .qkey = QKEY_OF_QP1 };
	struct ibv_qp *qp = create_qp(pd, cq, IBV_QPT_UD, 0);
	int err;

	if (!qp)
		return strerror(errno);
	err = ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	ibv_destroy_qp(qp);
	return err ? strerror(err) : "permitted";
}

static void print_tried(struct ibv_context *verbs, uint8_t port_num)
{
	struct ibv_pd *pd = ibv_alloc_pd(verbs);
	struct ibv_cq *cq = pd ? ibv_create_cq(verbs, 2, NULL, NULL, 0) : NULL;

	if (cq)
		printf(", \"inline_rc\": %d, \"inline_ud\": %d, \"privileged_qkey\": \"%s\"",
		       find_inline(pd, cq, IBV_QPT_RC), find_inline(pd, cq, IBV_QPT_UD),
		       try_privileged_qkey(pd, cq, port_num));
	else
		printf(", \"privileged_qkey\": \"no queue: %s\"", strerror(errno));
	if (cq)
		ibv_destroy_cq(cq);
	if (pd)
		ibv_dealloc_pd(pd);
}

/* --- attributes found by queries ------------------------------------------ */

static void print_limits(const struct ibv_device_attr *attr)
{
	const struct {
		const char *name;
		int64_t value;
	} limits[] = {
		{ "max_qp", attr->max_qp },
		{ "max_qp_wr", attr->max_qp_wr },
		{ "max_sge", attr->max_sge },
		{ "max_sge_rd", attr->max_sge_rd },
		{ "max_cq", attr->max_cq },
		{ "max_cqe", attr->max_cqe },
		{ "max_mr", attr->max_mr },
		{ "max_mr_size", (int64_t)(attr->max_mr_size & INT64_MAX) },
		{ "max_pd", attr->max_pd },
		{ "max_ah", attr->max_ah },
		{ "max_srq", attr->max_srq },
		{ "max_srq_wr", attr->max_srq_wr },
		{ "max_srq_sge", attr->max_srq_sge },
		{ "max_mw", attr->max_mw },
		{ "max_qp_rd_atom", attr->max_qp_rd_atom },
		{ "max_qp_init_rd_atom", attr->max_qp_init_rd_atom },
		{ "max_res_rd_atom", attr->max_res_rd_atom },
		{ "max_mcast_grp", attr->max_mcast_grp },
		{ "max_mcast_qp_attach", attr->max_mcast_qp_attach },
		{ "max_pkeys", attr->max_pkeys },
		{ "local_ca_ack_delay", attr->local_ca_ack_delay },
	};
	size_t i;

	printf(", \"limits\": {");
	for (i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		printf("%s\"%s\": %" PRId64, i ? ", " : "", limits[i].name, limits[i].value);
	printf("}");
}

static void print_ports(struct ibv_context *verbs, uint8_t n_ports)
{
	struct ibv_port_attr attr;
	unsigned int i, n = 0;

	printf(", \"ports\": [");
	for (i = 1; i <= n_ports; i++) {
		if (ibv_query_port(verbs, (uint8_t)i, &attr))
			continue;
		printf("%s{\"number\": %u, \"state\": \"%s\", \"mtu\": %u, \"max_mtu\": %u, "
		       "\"lid\": %u, \"lmc\": %u, \"sm_lid\": %u, \"max_msg\": %u, "
		       "\"gid_entries\": %d, \"pkey_entries\": %u, \"grh_required\": %s, "
		       "\"cap_mask\": \"%#x\"}",
		       n++ ? ", " : "", i,
		       states[attr.state <= IBV_PORT_ACTIVE_DEFER ? attr.state : 0],
		       128U << attr.active_mtu, 128U << attr.max_mtu, attr.lid, attr.lmc,
		       attr.sm_lid, attr.max_msg_sz, attr.gid_tbl_len, attr.pkey_tbl_len,
		       attr.flags & IBV_QPF_GRH_REQUIRED ? "true" : "false", attr.port_cap_flags);
	}
	printf("]");
}

/* The file of libibverbs' driver, without its folder. */
static const char *provider_of(const struct ibv_context *verbs)
{
	int (*poll)(struct ibv_cq *, int, struct ibv_wc *) = verbs->ops.poll_cq;
	const void *address;
	const char *slash;
	Dl_info where;

	memcpy(&address, &poll, sizeof(address));
	if (!dladdr(address, &where) || !where.dli_fname)
		return "";
	slash = strrchr(where.dli_fname, '/');
	return slash ? slash + 1 : where.dli_fname;
}

static void print_device(struct ibv_device *device)
{
	struct ibv_context *verbs = ibv_open_device(device);
	struct ibv_device_attr_ex ex;
	const struct ibv_device_attr *attr = &ex.orig_attr;
	int err;

	printf("{\"name\": \"%s\", \"node\": \"%s\", \"transport\": \"%s\"",
	       ibv_get_device_name(device), device->dev_name,
	       device->transport_type == IBV_TRANSPORT_IB ? "InfiniBand or RoCE" : "other");
	err = verbs ? ibv_query_device_ex(verbs, NULL, &ex) : errno;
	if (err) {
		printf(", \"error\": \"%s\"}\n", strerror(err));
	} else {
		printf(", \"provider\": \"%s\", \"firmware\": \"%s\", \"vendor\": \"%#x\", "
		       "\"part\": \"%#x\", \"revision\": \"%#x\", \"atomics\": \"%s\", "
		       "\"capabilities\": \"%#" PRIx64 "\"",
		       provider_of(verbs), attr->fw_ver, attr->vendor_id, attr->vendor_part_id,
		       attr->hw_ver,
		       atomics[attr->atomic_cap <= IBV_ATOMIC_GLOB ? attr->atomic_cap : 0],
		       ex.device_cap_flags_ex);
		print_limits(attr);
		print_ports(verbs, attr->phys_port_cnt);
		print_tried(verbs, 1);
		printf("}\n");
	}
	if (verbs)
		ibv_close_device(verbs);
}

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int i;

	for (i = 0; list && list[i]; i++)
		print_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	return 0;
}

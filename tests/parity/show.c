/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Printing of ids, addresses, routes and queue pair attributes for the parity scenarios. Events
 * are in show_event.c.
 */
#include <arpa/inet.h>
#include <net/if.h>

#include "show.h"

#define FIRST_EPHEMERAL_PORT 32768
#define FLOW_LABEL_MASK	     0xfffffu

static struct {
	const struct rdma_cm_id *id;
	const char *label;
} labels[64];
static size_t label_count;

static uint32_t flow_from_ports;

int show_call(const char *what, int result)
{
	int cause = errno;

	if (result == -1 && cause && !strerrorname_np(cause))
		SAY("%s -> -1 errno %d", what, cause);
	else if (result == -1)
		SAY("%s -> -1 %s", what, cause ? strerrorname_np(cause) : "no errno");
	else
		SAY("%s -> %d", what, result);
	return result;
}

void assign_id_name(const struct rdma_cm_id *id, const char *label)
{
	size_t i;

	for (i = 0; i < label_count && labels[i].id != id; i++)
		;
	if (i == sizeof(labels) / sizeof(labels[0])) {
		SAY("too many labelled ids");
		exit(3);
	}
	labels[i].id = id;
	labels[i].label = label;
	if (i == label_count)
		label_count++;
}

const char *id_name(const struct rdma_cm_id *id)
{
	size_t i;

	if (!id)
		return "NULL";
	for (i = 0; i < label_count; i++)
		if (labels[i].id == id)
			return labels[i].label;
	return "unnamed";
}

static const char *port_name(in_port_t port, char *text, size_t size)
{
	if (ntohs(port) >= FIRST_EPHEMERAL_PORT)
		return "ephemeral";
	snprintf(text, size, "%u", ntohs(port));
	return text;
}

static void show_v6(const char *what, const struct sockaddr_in6 *v6)
{
	char text[INET6_ADDRSTRLEN], scope[IF_NAMESIZE] = "none", port[8];

	inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text));
	if (v6->sin6_scope_id && !if_indextoname(v6->sin6_scope_id, scope))
		strcpy(scope, "unknown");
	SAY("  %s inet6 %s port %s scope %s flow %u", what, text,
	    port_name(v6->sin6_port, port, sizeof(port)), scope, ntohl(v6->sin6_flowinfo));
}

void show_address(const char *what, const struct sockaddr *addr)
{
	const struct sockaddr_in *v4 = (const void *)addr;
	char text[INET_ADDRSTRLEN], port[8];

	if (addr->sa_family == AF_INET6) {
		show_v6(what, (const void *)addr);
	} else if (addr->sa_family == AF_INET) {
		inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text));
		SAY("  %s inet %s port %s", what, text,
		    port_name(v4->sin_port, port, sizeof(port)));
	} else {
		SAY("  %s family %u", what, addr->sa_family);
	}
}

static void show_gid(const char *what, const union ibv_gid *gid)
{
	char text[INET6_ADDRSTRLEN];

	SAY("  %s %s", what, inet_ntop(AF_INET6, gid, text, sizeof(text)));
}

void has_flow_of_ports(uint16_t src_port, uint16_t dst_port)
{
	flow_from_ports = (ntohs(src_port) * 31u + ntohs(dst_port)) & FLOW_LABEL_MASK;
}

static const char *flow_name(uint32_t flow, char *text, size_t size)
{
	if (flow && (flow & FLOW_LABEL_MASK) == flow_from_ports)
		return "from-ports";
	snprintf(text, size, "%#x", flow & FLOW_LABEL_MASK);
	return text;
}

static void show_path(const struct ibv_sa_path_rec *path)
{
	char flow[16];

	show_gid("path dgid", &path->dgid);
	show_gid("path sgid", &path->sgid);
	SAY("  path dlid %#x slid %#x", ntohs(path->dlid), ntohs(path->slid));
	SAY("  path raw %d bits beyond the flow label %#x", path->raw_traffic,
	    ntohl(path->flow_label) & ~FLOW_LABEL_MASK);
	SAY("  path flow %s hop %u tclass %u reversible %d numb %u",
	    flow_name(ntohl(path->flow_label), flow, sizeof(flow)), path->hop_limit,
	    path->traffic_class, path->reversible, path->numb_path);
	SAY("  path pkey %#x sl %u mtu %u/%u rate %u/%u life %u/%u preference %u",
	    ntohs(path->pkey), path->sl, path->mtu_selector, path->mtu, path->rate_selector,
	    path->rate, path->packet_life_time_selector, path->packet_life_time, path->preference);
}

#define SET(pointer) ((pointer) ? "set" : "NULL")

void show_id(const struct rdma_cm_id *id)
{
	const struct rdma_addr *addr = &id->route.addr;
	int i;

	SAY("id %s verbs %s pd %s qp %s srq %s port_num %u ps %#x qp_type %d", id_name(id),
	    SET(id->verbs), SET(id->pd), SET(id->qp), SET(id->srq), id->port_num, id->ps,
	    id->qp_type);
	SAY("  channel %s event %s send_cq %s/%s recv_cq %s/%s", SET(id->channel), SET(id->event),
	    SET(id->send_cq), SET(id->send_cq_channel), SET(id->recv_cq), SET(id->recv_cq_channel));
	show_address("src", &addr->src_addr);
	show_address("dst", &addr->dst_addr);
	show_gid("sgid", &addr->addr.ibaddr.sgid);
	show_gid("dgid", &addr->addr.ibaddr.dgid);
	SAY("  pkey %#x num_paths %d path_rec %s", ntohs(addr->addr.ibaddr.pkey),
	    id->route.num_paths, SET(id->route.path_rec));
	for (i = 0; i < id->route.num_paths; i++)
		show_path(&id->route.path_rec[i]);
}

void show_ah(const char *what, const struct ibv_ah_attr *ah)
{
	char flow[16], gid[INET6_ADDRSTRLEN];

	SAY("  %s dlid %#x sl %u src_path_bits %u static_rate %u is_global %u port_num %u", what,
	    ah->dlid, ah->sl, ah->src_path_bits, ah->static_rate, ah->is_global, ah->port_num);
	SAY("  %s dgid %s flow %s sgid_index %u hop %u tclass %u", what,
	    inet_ntop(AF_INET6, &ah->grh.dgid, gid, sizeof(gid)),
	    flow_name(ah->grh.flow_label, flow, sizeof(flow)), ah->grh.sgid_index,
	    ah->grh.hop_limit, ah->grh.traffic_class);
}

static const struct {
	int bit;
	const char *name;
} mask_names[] = {
	{ IBV_QP_STATE, "STATE" },
	{ IBV_QP_CUR_STATE, "CUR_STATE" },
	{ IBV_QP_EN_SQD_ASYNC_NOTIFY, "EN_SQD_ASYNC_NOTIFY" },
	{ IBV_QP_ACCESS_FLAGS, "ACCESS_FLAGS" },
	{ IBV_QP_PKEY_INDEX, "PKEY_INDEX" },
	{ IBV_QP_PORT, "PORT" },
	{ IBV_QP_QKEY, "QKEY" },
	{ IBV_QP_AV, "AV" },
	{ IBV_QP_PATH_MTU, "PATH_MTU" },
	{ IBV_QP_TIMEOUT, "TIMEOUT" },
	{ IBV_QP_RETRY_CNT, "RETRY_CNT" },
	{ IBV_QP_RNR_RETRY, "RNR_RETRY" },
	{ IBV_QP_RQ_PSN, "RQ_PSN" },
	{ IBV_QP_MAX_QP_RD_ATOMIC, "MAX_QP_RD_ATOMIC" },
	{ IBV_QP_ALT_PATH, "ALT_PATH" },
	{ IBV_QP_MIN_RNR_TIMER, "MIN_RNR_TIMER" },
	{ IBV_QP_SQ_PSN, "SQ_PSN" },
	{ IBV_QP_MAX_DEST_RD_ATOMIC, "MAX_DEST_RD_ATOMIC" },
	{ IBV_QP_PATH_MIG_STATE, "PATH_MIG_STATE" },
	{ IBV_QP_CAP, "CAP" },
	{ IBV_QP_DEST_QPN, "DEST_QPN" },
};

static void show_mask(int mask)
{
	size_t i;

	printf("  mask");
	for (i = 0; i < sizeof(mask_names) / sizeof(mask_names[0]); i++) {
		if (!(mask & mask_names[i].bit))
			continue;
		printf(" %s", mask_names[i].name);
		mask &= ~mask_names[i].bit;
	}
	SAY(" rest %#x", (unsigned)mask);
}

void show_qp_attr(const struct ibv_qp_attr *attr, int mask)
{
	const struct {
		int bit;
		const char *name;
		unsigned value;
	} rows[] = {
		{ IBV_QP_STATE, "state", attr->qp_state },
		{ IBV_QP_ACCESS_FLAGS, "access_flags", attr->qp_access_flags },
		{ IBV_QP_PKEY_INDEX, "pkey_index", attr->pkey_index },
		{ IBV_QP_PORT, "port_num", attr->port_num },
		{ IBV_QP_QKEY, "qkey", attr->qkey },
		{ IBV_QP_PATH_MTU, "path_mtu", attr->path_mtu },
		{ IBV_QP_TIMEOUT, "timeout", attr->timeout },
		{ IBV_QP_RETRY_CNT, "retry_cnt", attr->retry_cnt },
		{ IBV_QP_RNR_RETRY, "rnr_retry", attr->rnr_retry },
		{ IBV_QP_MAX_QP_RD_ATOMIC, "max_rd_atomic", attr->max_rd_atomic },
		{ IBV_QP_MIN_RNR_TIMER, "min_rnr_timer", attr->min_rnr_timer },
		{ IBV_QP_MAX_DEST_RD_ATOMIC, "max_dest_rd_atomic", attr->max_dest_rd_atomic },
		{ IBV_QP_PATH_MIG_STATE, "path_mig_state", attr->path_mig_state },
	};
	size_t i;

	show_mask(mask);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (mask & rows[i].bit)
			SAY("  %s %#x", rows[i].name, rows[i].value);
	if (mask & IBV_QP_RQ_PSN)
		SAY("  rq_psn %s", attr->rq_psn >> 24 ? "wider than 24 bits" : "24 bits");
	if (mask & IBV_QP_AV)
		show_ah("av", &attr->ah_attr);
}

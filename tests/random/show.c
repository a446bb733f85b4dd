/* SPDX-License-Identifier: BSD-2-Clause */
/* What the player prints beside what parity's functions do: what has changed of an id, results of
 * rdma_getaddrinfo(). */
#include "player.h"

#define STATE_BYTES 2048

static const char *place(const struct play *p, const struct rdma_cm_id *id)
{
	if (!id->channel)
		return "nowhere";
	return id->channel == p->channels[0] ? "c0" : id->channel == p->channels[1] ? "c1" : "sync";
}

static void show_queue_pair(struct ibv_qp *qp)
{
	static const char *const states[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (!qp || ibv_query_qp(qp, &attr, IBV_QP_STATE, &init)) {
		SAY("  qp %s", qp ? "unknown" : "NULL");
		return;
	}
	printf("  qp type %u %s", qp->qp_type, attr.qp_state < 7 ? states[attr.qp_state] : "?");
	if (qp->qp_type == IBV_QPT_RC &&
	    (attr.qp_state == IBV_QPS_RTR || attr.qp_state == IBV_QPS_RTS))
		printf(" mtu %u timeout %u retry %u/%u rd %u/%u rnr %u", attr.path_mtu,
		       attr.timeout, attr.retry_cnt, attr.rnr_retry, attr.max_rd_atomic,
		       attr.max_dest_rd_atomic, attr.min_rnr_timer);
	putchar('\n');
}

/* Whether a text has a line. */
static bool has_line(const char *text, const char *line)
{
	const char *at = strstr(text, line);
	size_t length = strlen(line);

	for (; at; at = strstr(at + 1, line))
		if ((at == text || at[-1] == '\n') && at[length] == '\n')
			return true;
	return false;
}

static void show_change(const struct play *p, struct slot *slot)
{
	char now[STATE_BYTES], copy[STATE_BYTES], *line, *at;
	FILE *out = stdout;

	stdout = fmemopen(now, sizeof(now), "w");
	show_id(slot->id);
	SAY("  at %s", place(p, slot->id));
	show_queue_pair(slot->id->qp);
	fclose(stdout);
	stdout = out;
	strcpy(copy, now);
	for (line = strtok_r(copy, "\n", &at); line; line = strtok_r(NULL, "\n", &at))
		if (!has_line(slot->shown, line))
			SAY("  %s:%s", slot->label, line);
	strcpy(slot->shown, now);
}

void show_changes(struct play *p)
{
	int i;

	for (i = 0; i < N_SLOTS; i++)
		if (p->slots[i].id && !p->slots[i].is_busy)
			show_change(p, &p->slots[i]);
}

void show_info(const struct rdma_addrinfo *info)
{
	for (; info; info = info->ai_next) {
		SAY("  info flags %#x family %d type %d ps %#x src %u dst %u route %zu connect %zu",
		    (unsigned)info->ai_flags, info->ai_family, info->ai_qp_type,
		    (unsigned)info->ai_port_space, info->ai_src_len, info->ai_dst_len,
		    (size_t)info->ai_route_len, (size_t)info->ai_connect_len);
		if (info->ai_src_addr)
			show_address("src", info->ai_src_addr);
		if (info->ai_dst_addr)
			show_address("dst", info->ai_dst_addr);
		SAY("  names %s %s", info->ai_src_canonname ? info->ai_src_canonname : "NULL",
		    info->ai_dst_canonname ? info->ai_dst_canonname : "NULL");
	}
}

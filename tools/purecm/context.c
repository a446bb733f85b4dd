/* SPDX-License-Identifier: BSD-2-Clause */
/* The conditions of texts: see advice.h. */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "tools/purecm/advice.h"
#include "tools/purecm/field.h"

#define PKEY_DEFAULT	 0xffff
#define TIMEOUT_DEFAULT	 20    /* encoded; for SIDR, and for messages without a timeout */
#define LOOKS_MAX	 10000 /* connections to search; later, queue pair numbers are reused */
#define RESEND_LATEST_NS UINT64_C(7000000000) /* of a REQ: 1 s purecm, 6.1 s Linux */
#define SERVICE_IB	 0x013f

static bool is_zero(const uint8_t *bytes, size_t n)
{
	while (n > 0 && bytes[n - 1] == 0)
		n--;
	return n == 0;
}

/* --- about the request ---------------------------------------------------- */

bool context_got_mra(const struct context *context)
{
	return flow_seen(context->flow, CM_ATTR_MRA)->count;
}

static bool was_repeated(const struct flow *flow)
{
	if (flow->outcome == FLOW_CLOSING)
		return flow_seen(flow, CM_ATTR_DREQ)->count > 1;
	return flow_seen(flow, CM_ATTR_REQ)->count > 1 || flow_seen(flow, CM_ATTR_REP)->count > 1 ||
	       flow_seen(flow, CM_ATTR_SIDR_REQ)->count > 1;
}

bool context_has_just_begun(const struct context *context)
{
	const struct flow *flow = context->flow;
	const double waited_s = clock_span_s(flow->last_ns, context->end_ns);
	unsigned int timeout = flow->req.remote_cm_response_timeout;

	if (flow_seen(flow, CM_ATTR_REP)->count)
		timeout = flow->req.local_cm_response_timeout;
	if (!timeout)
		timeout = TIMEOUT_DEFAULT;
	return !was_repeated(flow) && waited_s < encoded_s(timeout);
}

bool context_waited_briefly(const struct context *context)
{
	const struct flow *flow = context->flow;

	return !was_repeated(flow) && !context_answer_was_late(context) &&
	       !context_is_received_here(context) &&
	       flow_seen(flow, CM_ATTR_REJ)->first_ns - flow->first_ns < RESEND_LATEST_NS;
}

bool context_is_received_here(const struct context *context)
{
	return context->flow->last_way[FLOW_ACTIVE] == WAY_IN;
}

bool context_peer_speaks(const struct context *context)
{
	return flows_has_spoken(context->flows, flow_gid(context->flow, FLOW_PASSIVE));
}

bool context_is_infiniband(const struct context *context)
{
	return context->flow->network == NETWORK_INFINIBAND;
}

bool context_is_roce_v1(const struct context *context)
{
	return context->flow->network == NETWORK_ROCE_V1;
}

bool context_answer_was_late(const struct context *context)
{
	const struct flow *flow = context->flow;
	const struct flow_seen *rej = flow_seen(flow, CM_ATTR_REJ);

	return flow_seen(flow, CM_ATTR_REP)->count ||
	       (rej->count > 1 && rej->by == FLOW_ACTIVE && rej->last_ns > rej->first_ns);
}

static bool wants_ip_header(const struct flow *flow)
{
	return flow->is_whole && cma_service_is_ip(flow->service_id) &&
	       flow->service_id >> 16 != SERVICE_IB;
}

bool context_has_no_ip_header(const struct context *context)
{
	return wants_ip_header(context->flow) && !context->flow->has_cma;
}

bool context_has_foreign_gid(const struct context *context)
{
	const struct flow *flow = context->flow;

	if (flow->is_sidr || !flow->is_whole || observation_lid(flow_gid(flow, FLOW_ACTIVE)))
		return false;
	return !gid_is_same(&flow->req.primary.local_gid, flow_gid(flow, FLOW_ACTIVE)) ||
	       !gid_is_same(&flow->req.primary.remote_gid, flow_gid(flow, FLOW_PASSIVE));
}

static struct mad_gid gid_of_header(const struct cma_hdr *cma, const uint8_t address[16])
{
	struct mad_gid gid;

	if (cma->ip_version == 4)
		return observation_gid_of_ip4(address + 12);
	memcpy(gid.raw, address, sizeof(gid.raw));
	return gid;
}

/* Applies where GIDs are IP addresses, not to InfiniBand. */
bool context_has_other_address(const struct context *context)
{
	const struct flow *flow = context->flow;
	struct mad_gid named;

	if (!flow->has_cma || observation_lid(flow_gid(flow, FLOW_ACTIVE)))
		return false;
	if (flow->cma.ip_version == 4 && !is_zero(flow_gid(flow, FLOW_PASSIVE)->raw, 10))
		return false;
	named = gid_of_header(&flow->cma, flow->cma.dst_addr);
	return !gid_is_same(&named, flow_gid(flow, FLOW_PASSIVE));
}

bool context_has_other_pkey(const struct context *context)
{
	const struct flow *flow = context->flow;

	return flow->is_whole &&
	       (flow->is_sidr ? flow->sidr_req.pkey : flow->req.pkey) != PKEY_DEFAULT;
}

/* --- about the response --------------------------------------------------- */

/* The rejected queue pair is the REQ sender's or the REP sender's. */
static enum flow_end refused_end(const struct flow *flow)
{
	return flow_seen(flow, CM_ATTR_REJ)->by == FLOW_PASSIVE ? FLOW_ACTIVE : FLOW_PASSIVE;
}

static bool has_queue_pair(const struct flow *flow, const struct mad_gid *gid, uint32_t qpn)
{
	return qpn && ((gid_is_same(flow_gid(flow, FLOW_ACTIVE), gid) &&
			flow->end[FLOW_ACTIVE].local_qpn == qpn) ||
		       (gid_is_same(flow_gid(flow, FLOW_PASSIVE), gid) &&
			flow->end[FLOW_PASSIVE].local_qpn == qpn));
}

/* The older connection of a stale one. Return: NULL if it was not seen. */
static const struct flow *find_older(const struct context *context)
{
	const struct flow *flow = context->flow, *other;
	const enum flow_end end = refused_end(flow);
	uint32_t i, looks = 0;

	for (i = flow->number - 1; i > 0 && looks < LOOKS_MAX; i--, looks++) {
		other = flows_get(context->flows, i - 1);
		if (!other)
			break;
		if (has_queue_pair(other, flow_gid(flow, end), flow->end[end].local_qpn) &&
		    flow_seen(other, CM_ATTR_REP)->count)
			return other;
	}
	return NULL;
}

bool context_has_older(const struct context *context)
{
	return find_older(context);
}

bool context_has_private_data(const struct context *context)
{
	const struct cm_rej *rej = &context->flow->rej;

	return !is_zero(rej->private_data, sizeof(rej->private_data));
}

bool context_was_rejected_by_active(const struct context *context)
{
	return flow_seen(context->flow, CM_ATTR_REJ)->by == FLOW_ACTIVE;
}

bool context_was_established(const struct context *context)
{
	return flow_seen(context->flow, CM_ATTR_RTU)->count;
}

bool context_dreq_names_other_qpn(const struct context *context)
{
	const struct flow *flow = context->flow;
	const enum flow_end to = (enum flow_end) !flow_seen(flow, CM_ATTR_DREQ)->by;

	return flow->end[to].local_qpn && flow->dreq.remote_qpn != flow->end[to].local_qpn;
}

/* --- the facts for {words} in texts --------------------------------------- */

#define DATA_SHOWN_MAX 64
#define ARI_GID_BYTES  16

/* An end: of the flow, the sender of a message, or its receiver. */
static void print_end(const struct context *context, int end, FILE *out)
{
	char who[FLOW_WHO_BYTES];

	fputs(flow_who(context->flow, (enum flow_end)end, who), out);
}

static void print_sender(const struct context *context, int attr, FILE *out)
{
	print_end(context, flow_seen(context->flow, (enum cm_attr)attr)->by, out);
}

static void print_receiver(const struct context *context, int attr, FILE *out)
{
	print_end(context, !flow_seen(context->flow, (enum cm_attr)attr)->by, out);
}

static void print_gid(const struct mad_gid *gid, FILE *out)
{
	char who[WHO_BYTES];

	fputs(who_str(gid, who), out);
}

static void print_host(const struct context *context, int end, FILE *out)
{
	print_gid(flow_gid(context->flow, (enum flow_end)end), out);
}

static void print_service(const struct context *context, FILE *out)
{
	char text[FLOW_WHO_BYTES];

	fputs(flow_service(context->flow, text), out);
}

/* Prints "one REQ", "3 REQs in 6.2 s". */
static void print_times(const struct context *context, int attr, FILE *out)
{
	const struct flow_seen *seen = flow_seen(context->flow, (enum cm_attr)attr);
	const char *name = cm_msg_layout((uint16_t)attr)->name;

	if (seen->count == 1)
		fprintf(out, "one %s", name);
	else
		fprintf(out, "%u %ss in %.1f s", seen->count, name,
			clock_span_s(seen->first_ns, seen->last_ns));
}

static void print_requests(const struct context *context, FILE *out)
{
	print_times(context, context->flow->is_sidr ? CM_ATTR_SIDR_REQ : CM_ATTR_REQ, out);
}

enum span {
	SPAN_WATCHED, /* from the first message to the end of the capture */
	SPAN_WAITED,  /* ... to the REJ */
	SPAN_LATE,    /* from the REJ to the last message */
};

static void print_span(const struct context *context, int span, FILE *out)
{
	const struct flow *flow = context->flow;
	const uint64_t rej_ns = flow_seen(flow, CM_ATTR_REJ)->first_ns;

	fprintf(out, "%.1f s",
		span == SPAN_WATCHED  ? clock_span_s(flow->first_ns, context->end_ns)
		: span == SPAN_WAITED ? clock_span_s(flow->first_ns, rej_ns)
				      : clock_span_s(rej_ns, flow->last_ns));
}

static void print_mra_wait(const struct context *context, FILE *out)
{
	fprintf(out, "%.0f s", encoded_s(context->flow->mra.service_timeout));
}

static void print_reason(const struct context *context, FILE *out)
{
	fprintf(out, "%u, %s", context->flow->rej.reason,
		cm_rej_reason_str(context->flow->rej.reason));
}

/* The queue pair of a message's receiver. */
static void print_qpn(const struct context *context, int attr, FILE *out)
{
	const struct flow *flow = context->flow;

	fprintf(out, "0x%x", flow->end[!flow_seen(flow, (enum cm_attr)attr)->by].local_qpn);
}

static void print_guid(const struct context *context, FILE *out)
{
	const struct flow *flow = context->flow;
	const bool is_reqs = flow_seen(flow, CM_ATTR_REJ)->by == FLOW_PASSIVE;

	fprintf(out, "0x%016" PRIx64, is_reqs ? flow->req.local_ca_guid : flow->rep.local_ca_guid);
}

static void print_older(const struct context *context, FILE *out)
{
	const struct flow *older = find_older(context);

	if (older)
		fprintf(out, "#%u", older->number);
}

static void print_older_end(const struct context *context, FILE *out)
{
	const struct flow *older = find_older(context);

	if (older)
		fputs(flow_outcome_text(older->outcome), out);
}

/* A GID, a GUID, or other bytes, depending on their number. */
static void print_ari(const struct context *context, FILE *out)
{
	const struct cm_rej *rej = &context->flow->rej;
	unsigned int i, n = rej->ari_bytes;
	struct mad_gid gid;

	if (n > CM_REJ_ARI_BYTES)
		n = CM_REJ_ARI_BYTES;
	if (n == 0) {
		fputs("nothing", out);
	} else if (n == ARI_GID_BYTES) {
		memcpy(gid.raw, rej->ari, sizeof(gid.raw));
		print_gid(&gid, out);
	} else {
		fputs("0x", out);
		for (i = 0; i < n; i++)
			fprintf(out, "%02x", rej->ari[i]);
	}
}

/* Four bits in the first byte; senders differ in which half they use. */
static void print_ari_mtu(const struct context *context, FILE *out)
{
	const uint8_t byte = context->flow->rej.ari[0];
	unsigned int mtu = byte >> 4 ? byte >> 4 : byte;

	if (context->flow->rej.ari_bytes && mtu >= 1 && mtu <= 5)
		fprintf(out, "%u bytes", 128u << mtu);
	else
		fputs("unknown", out);
}

static void print_mtu(const struct context *context, FILE *out)
{
	fprintf(out, "%u bytes", 128u << (context->flow->req.path_mtu & 7));
}

static void print_pkey(const struct context *context, FILE *out)
{
	const struct flow *flow = context->flow;

	fprintf(out, "0x%04x", flow->is_sidr ? flow->sidr_req.pkey : flow->req.pkey);
}

static void print_named_gids(const struct context *context, FILE *out)
{
	print_gid(&context->flow->req.primary.local_gid, out);
	fputs(" to ", out);
	print_gid(&context->flow->req.primary.remote_gid, out);
}

static void print_packet_gids(const struct context *context, FILE *out)
{
	print_host(context, FLOW_ACTIVE, out);
	fputs(" to ", out);
	print_host(context, FLOW_PASSIVE, out);
}

static void print_header_address(const struct context *context, FILE *out)
{
	const struct cma_hdr *cma = &context->flow->cma;
	const bool is_ip4 = cma->ip_version == 4;
	char text[INET6_ADDRSTRLEN];

	fputs(inet_ntop(is_ip4 ? AF_INET : AF_INET6, cma->dst_addr + (is_ip4 ? 12 : 0), text,
			sizeof(text)),
	      out);
}

static void print_data(const uint8_t *data, size_t bytes, FILE *out)
{
	size_t i;

	while (bytes > 0 && !data[bytes - 1])
		bytes--;
	if (bytes > DATA_SHOWN_MAX)
		bytes = DATA_SHOWN_MAX;
	for (i = 0; i < bytes; i++)
		fprintf(out, "%02x", data[i]);
	fputs(bytes ? " \"" : "nothing", out);
	for (i = 0; i < bytes; i++)
		putc(isprint(data[i]) && data[i] != ' ' ? data[i] : '.', out);
	fputs(bytes ? "\"" : "", out);
}

static void print_rej_data(const struct context *context, FILE *out)
{
	const struct cm_rej *rej = &context->flow->rej;

	print_data(rej->private_data, sizeof(rej->private_data), out);
}

static void print_req_data(const struct context *context, FILE *out)
{
	const struct flow *flow = context->flow;

	print_data(flow->is_sidr ? flow->sidr_req.private_data : flow->req.private_data,
		   CMA_HDR_BYTES, out);
}

static void print_dreq_qpn(const struct context *context, FILE *out)
{
	fprintf(out, "0x%x", context->flow->dreq.remote_qpn);
}

static void print_status(const struct context *context, FILE *out)
{
	fprintf(out, "%u", context->flow->sidr_rep.status);
}

static void print_comm_id(const struct context *context, FILE *out)
{
	fprintf(out, "0x%x", context->flow->end[FLOW_ACTIVE].local_comm_id);
}

/* In alphabetical order. */
/* clang-format off */
static const struct {
	const char *word;
	void (*print)(const struct context *context, FILE *out);
	void (*print_of)(const struct context *context, int of, FILE *out); /* if not print */
	int of;
} facts[] = {
	{ "active", NULL, print_end, FLOW_ACTIVE },
	{ "ari", print_ari, NULL, 0 },
	{ "ari_mtu", print_ari_mtu, NULL, 0 },
	{ "closed", NULL, print_receiver, CM_ATTR_DREQ },
	{ "closer", NULL, print_sender, CM_ATTR_DREQ },
	{ "comm_id", print_comm_id, NULL, 0 },
	{ "dreq_qpn", print_dreq_qpn, NULL, 0 },
	{ "dreqs", NULL, print_times, CM_ATTR_DREQ },
	{ "guid", print_guid, NULL, 0 },
	{ "header_address", print_header_address, NULL, 0 },
	{ "host", NULL, print_host, FLOW_PASSIVE },
	{ "late", NULL, print_span, SPAN_LATE },
	{ "mra_wait", print_mra_wait, NULL, 0 },
	{ "mtu", print_mtu, NULL, 0 },
	{ "named_gids", print_named_gids, NULL, 0 },
	{ "older", print_older, NULL, 0 },
	{ "older_end", print_older_end, NULL, 0 },
	{ "packet_gids", print_packet_gids, NULL, 0 },
	{ "passive", NULL, print_end, FLOW_PASSIVE },
	{ "pkey", print_pkey, NULL, 0 },
	{ "qpn", NULL, print_qpn, CM_ATTR_REJ },
	{ "reason", print_reason, NULL, 0 },
	{ "rej_data", print_rej_data, NULL, 0 },
	{ "rejecter", NULL, print_sender, CM_ATTR_REJ },
	{ "replies", NULL, print_times, CM_ATTR_REP },
	{ "req_data", print_req_data, NULL, 0 },
	{ "requests", print_requests, NULL, 0 },
	{ "service", print_service, NULL, 0 },
	{ "status", print_status, NULL, 0 },
	{ "true_qpn", NULL, print_qpn, CM_ATTR_DREQ },
	{ "waited", NULL, print_span, SPAN_WAITED },
	{ "watched", NULL, print_span, SPAN_WATCHED },
};
/* clang-format on */

static int print_fact(const struct context *context, const char *word, size_t bytes, FILE *out)
{
	size_t i;

	for (i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
		if (strlen(facts[i].word) == bytes && strncmp(facts[i].word, word, bytes) == 0) {
			if (facts[i].print)
				facts[i].print(context, out);
			else
				facts[i].print_of(context, facts[i].of, out);
			return 0;
		}
	}
	return -EINVAL;
}

int context_print(const struct context *context, const char *text, FILE *out)
{
	size_t bytes;

	while (*text) {
		bytes = strcspn(text, "{");
		fwrite(text, 1, bytes, out);
		text += bytes;
		if (!*text)
			break;
		bytes = strcspn(++text, "}");
		if (print_fact(context, text, bytes, out))
			return -EINVAL;
		text += bytes + (text[bytes] == '}');
	}
	return 0;
}

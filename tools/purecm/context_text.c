/* SPDX-License-Identifier: BSD-2-Clause */
/* The facts for {words} in texts. Part of context.h. */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "tools/purecm/field.h"
#include "tools/purecm/context.h"

#define NS_PER_S       1e9
#define DATA_SHOWN_MAX 64
#define ARI_GID_BYTES  16

static double span_s(uint64_t from_ns, uint64_t to_ns)
{
	return (double)(int64_t)(to_ns - from_ns) / NS_PER_S;
}

static void print_active(const struct context *context, FILE *out)
{
	char who[FLOW_WHO_BYTES];

	fputs(flow_who(context->flow, FLOW_ACTIVE, who), out);
}

static void print_passive(const struct context *context, FILE *out)
{
	char who[FLOW_WHO_BYTES];

	fputs(flow_who(context->flow, FLOW_PASSIVE, who), out);
}

static void print_host(const struct context *context, FILE *out)
{
	char who[WHO_BYTES];

	fputs(who_str(flow_gid(context->flow, FLOW_PASSIVE), who), out);
}

static void print_end(const struct context *context, enum flow_end end, FILE *out)
{
	if (end == FLOW_ACTIVE)
		print_active(context, out);
	else
		print_passive(context, out);
}

static void print_rejecter(const struct context *context, FILE *out)
{
	print_end(context, flow_seen(context->flow, CM_ATTR_REJ)->by, out);
}

static void print_closer(const struct context *context, FILE *out)
{
	print_end(context, flow_seen(context->flow, CM_ATTR_DREQ)->by, out);
}

static void print_closed(const struct context *context, FILE *out)
{
	print_end(context, (enum flow_end) !flow_seen(context->flow, CM_ATTR_DREQ)->by, out);
}

static void print_service(const struct context *context, FILE *out)
{
	char text[FLOW_WHO_BYTES];

	fputs(flow_service(context->flow, text), out);
}

/* Prints "one REQ", "3 REQs in 6.2 s". */
static void print_times(const struct context *context, enum cm_attr attr, FILE *out)
{
	const struct flow_seen *seen = flow_seen(context->flow, attr);
	const char *name = cm_msg_layout(attr)->name;

	if (seen->count == 1)
		fprintf(out, "one %s", name);
	else
		fprintf(out, "%u %ss in %.1f s", seen->count, name,
			span_s(seen->first_ns, seen->last_ns));
}

static void print_requests(const struct context *context, FILE *out)
{
	print_times(context, context->flow->is_sidr ? CM_ATTR_SIDR_REQ : CM_ATTR_REQ, out);
}

static void print_replies(const struct context *context, FILE *out)
{
	print_times(context, CM_ATTR_REP, out);
}

static void print_dreqs(const struct context *context, FILE *out)
{
	print_times(context, CM_ATTR_DREQ, out);
}

static void print_watched(const struct context *context, FILE *out)
{
	fprintf(out, "%.1f s", span_s(context->flow->first_ns, context->end_ns));
}

static void print_waited(const struct context *context, FILE *out)
{
	fprintf(out, "%.1f s",
		span_s(context->flow->first_ns, flow_seen(context->flow, CM_ATTR_REJ)->first_ns));
}

static void print_mra_wait(const struct context *context, FILE *out)
{
	fprintf(out, "%.0f s", encoded_s(context->flow->mra.service_timeout));
}

static void print_late(const struct context *context, FILE *out)
{
	const struct flow_seen *rej = flow_seen(context->flow, CM_ATTR_REJ);

	fprintf(out, "%.1f s", span_s(rej->first_ns, context->flow->last_ns));
}

static void print_reason(const struct context *context, FILE *out)
{
	fprintf(out, "%u, %s", context->flow->rej.reason,
		cm_rej_reason_str(context->flow->rej.reason));
}

/* The queue pair of the REJ's receiver. */
static void print_qpn(const struct context *context, FILE *out)
{
	const struct flow *flow = context->flow;

	fprintf(out, "0x%x", flow->end[!flow_seen(flow, CM_ATTR_REJ)->by].local_qpn);
}

static void print_guid(const struct context *context, FILE *out)
{
	const struct flow *flow = context->flow;
	const bool is_reqs = flow_seen(flow, CM_ATTR_REJ)->by == FLOW_PASSIVE;

	fprintf(out, "0x%016" PRIx64, is_reqs ? flow->req.local_ca_guid : flow->rep.local_ca_guid);
}

static void print_older(const struct context *context, FILE *out)
{
	const struct flow *older = context_older(context);

	if (older)
		fprintf(out, "#%u", older->number);
}

static void print_older_end(const struct context *context, FILE *out)
{
	const struct flow *older = context_older(context);

	if (older)
		fputs(flow_outcome_text(older->outcome), out);
}

/* A GID, a GUID, or other bytes, depending on their number. */
static void print_ari(const struct context *context, FILE *out)
{
	const struct cm_rej *rej = &context->flow->rej;
	unsigned int i, n = rej->ari_bytes;
	struct mad_gid gid;
	char who[WHO_BYTES];

	if (n > CM_REJ_ARI_BYTES)
		n = CM_REJ_ARI_BYTES;
	if (n == 0) {
		fputs("nothing", out);
	} else if (n == ARI_GID_BYTES) {
		memcpy(gid.raw, rej->ari, sizeof(gid.raw));
		fputs(who_str(&gid, who), out);
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

static void print_gid(const struct mad_gid *gid, FILE *out)
{
	char who[WHO_BYTES];

	fputs(who_str(gid, who), out);
}

static void print_named_gids(const struct context *context, FILE *out)
{
	print_gid(&context->flow->req.primary.local_gid, out);
	fputs(" to ", out);
	print_gid(&context->flow->req.primary.remote_gid, out);
}

static void print_packet_gids(const struct context *context, FILE *out)
{
	print_gid(flow_gid(context->flow, FLOW_ACTIVE), out);
	fputs(" to ", out);
	print_gid(flow_gid(context->flow, FLOW_PASSIVE), out);
}

static void print_header_address(const struct context *context, FILE *out)
{
	const struct cma_hdr *cma = &context->flow->cma;
	char text[INET6_ADDRSTRLEN] = "?";

	if (cma->ip_version == 4)
		inet_ntop(AF_INET, cma->dst_addr + 12, text, sizeof(text));
	else
		inet_ntop(AF_INET6, cma->dst_addr, text, sizeof(text));
	fputs(text, out);
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

	if (flow->is_sidr)
		print_data(flow->sidr_req.private_data, CMA_HDR_BYTES, out);
	else
		print_data(flow->req.private_data, CMA_HDR_BYTES, out);
}

static void print_dreq_qpn(const struct context *context, FILE *out)
{
	fprintf(out, "0x%x", context->flow->dreq.remote_qpn);
}

static void print_true_qpn(const struct context *context, FILE *out)
{
	const struct flow *flow = context->flow;

	fprintf(out, "0x%x", flow->end[!flow_seen(flow, CM_ATTR_DREQ)->by].local_qpn);
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
} facts[] = {
	{ "active", print_active },
	{ "ari", print_ari },
	{ "ari_mtu", print_ari_mtu },
	{ "closed", print_closed },
	{ "closer", print_closer },
	{ "comm_id", print_comm_id },
	{ "dreq_qpn", print_dreq_qpn },
	{ "dreqs", print_dreqs },
	{ "guid", print_guid },
	{ "header_address", print_header_address },
	{ "host", print_host },
	{ "late", print_late },
	{ "mtu", print_mtu },
	{ "named_gids", print_named_gids },
	{ "older", print_older },
	{ "older_end", print_older_end },
	{ "packet_gids", print_packet_gids },
	{ "passive", print_passive },
	{ "mra_wait", print_mra_wait },
	{ "pkey", print_pkey },
	{ "qpn", print_qpn },
	{ "reason", print_reason },
	{ "rej_data", print_rej_data },
	{ "rejecter", print_rejecter },
	{ "replies", print_replies },
	{ "req_data", print_req_data },
	{ "requests", print_requests },
	{ "service", print_service },
	{ "status", print_status },
	{ "true_qpn", print_true_qpn },
	{ "waited", print_waited },
	{ "watched", print_watched },
};
/* clang-format on */

static int print_fact(const struct context *context, const char *word, size_t bytes, FILE *out)
{
	size_t i;

	for (i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
		if (strlen(facts[i].word) == bytes && strncmp(facts[i].word, word, bytes) == 0) {
			facts[i].print(context, out);
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

/* SPDX-License-Identifier: BSD-2-Clause */
/* The conditions of texts: see context.h. */
#include "tools/purecm/context.h"

#include <errno.h>
#include <string.h>

#include "tools/purecm/field.h"

#define NS_PER_S	 1e9
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

static bool same_gid(const struct mad_gid *a, const struct mad_gid *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* --- about the request ---------------------------------------------------- */

bool context_got_mra(const struct context *context)
{
	return flow_seen(context->flow, CM_ATTR_MRA)->count;
}

static bool was_repeated(const struct flow *flow)
{
	return flow_seen(flow, CM_ATTR_REQ)->count > 1 || flow_seen(flow, CM_ATTR_REP)->count > 1 ||
	       flow_seen(flow, CM_ATTR_SIDR_REQ)->count > 1;
}

bool context_has_just_begun(const struct context *context)
{
	const struct flow *flow = context->flow;
	const double waited_s = (double)(context->end_ns - flow->last_ns) / NS_PER_S;
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
	return !same_gid(&flow->req.primary.local_gid, flow_gid(flow, FLOW_ACTIVE)) ||
	       !same_gid(&flow->req.primary.remote_gid, flow_gid(flow, FLOW_PASSIVE));
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
	return !same_gid(&named, flow_gid(flow, FLOW_PASSIVE));
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
	return qpn && ((same_gid(flow_gid(flow, FLOW_ACTIVE), gid) &&
			flow->end[FLOW_ACTIVE].local_qpn == qpn) ||
		       (same_gid(flow_gid(flow, FLOW_PASSIVE), gid) &&
			flow->end[FLOW_PASSIVE].local_qpn == qpn));
}

const struct flow *context_older(const struct context *context)
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
	return context_older(context);
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

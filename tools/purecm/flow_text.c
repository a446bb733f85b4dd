/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptions of flows in words. Part of flow.h. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>

#include "mad/talk.h"
#include "tools/purecm/flow.h"

#define PS_SDP	 0x0001
#define PS_TCP	 0x0106
#define PS_UDP	 0x0111
#define PS_IB	 0x013f
#define PS_IPOIB 0x0002

static const struct {
	const char *word;
	const char *text;
} outcomes[FLOW_N_OUTCOMES] = {
#define X(name, word, text) [FLOW_##name] = { word, text },
	FLOW_OUTCOMES(X)
#undef X
};

const struct flow_seen *flow_seen(const struct flow *flow, enum cm_attr attr)
{
	return &flow->seen[attr - CM_ATTR_REQ];
}

const char *flow_outcome_word(enum flow_outcome outcome)
{
	return outcomes[outcome].word;
}

const char *flow_outcome_text(enum flow_outcome outcome)
{
	return outcomes[outcome].text;
}

bool flow_has_failed(const struct flow *flow)
{
	switch (flow->outcome) {
	case FLOW_ASKED:
	case FLOW_ANSWERED:
	case FLOW_REJECTED:
	case FLOW_GIVEN_UP:
	case FLOW_CLOSING:
		return true;
	case FLOW_ESTABLISHED:
	case FLOW_CLOSED:
	case FLOW_RESOLVED:
	case FLOW_PROBED:
	case FLOW_FRAGMENT:
	case FLOW_N_OUTCOMES:
		break;
	}
	return false;
}

static unsigned int port_of(const struct flow *flow, enum flow_end end)
{
	if (!flow->has_cma)
		return 0;
	return end == FLOW_ACTIVE ? flow->cma.src_port : flow->service_id & 0xffff;
}

const char *flow_who(const struct flow *flow, enum flow_end end, char buf[FLOW_WHO_BYTES])
{
	unsigned int port = port_of(flow, end);
	struct mad_gid gid = *flow_gid(flow, end);
	char who[WHO_BYTES];

	who_str(&gid, who);
	if (!port)
		snprintf(buf, FLOW_WHO_BYTES, "%s", who);
	else if (inet_pton(AF_INET6, who, gid.raw) == 1)
		snprintf(buf, FLOW_WHO_BYTES, "[%s]:%u", who, port);
	else
		snprintf(buf, FLOW_WHO_BYTES, "%s:%u", who, port);
	return buf;
}

static const char *space_name(uint64_t service_id)
{
	switch (service_id >> 16) {
	case PS_SDP:
		return "SDP";
	case PS_TCP:
		return "TCP";
	case PS_UDP:
		return "UDP";
	case PS_IB:
		return "IB";
	case PS_IPOIB:
		return "IPoIB";
	}
	return NULL;
}

const char *flow_service(const struct flow *flow, char buf[FLOW_WHO_BYTES])
{
	const char *space = space_name(flow->service_id);

	if (space)
		snprintf(buf, FLOW_WHO_BYTES, "%s port %u", space,
			 (unsigned int)(flow->service_id & 0xffff));
	else if (flow->service_id == MAD_PROBE_SERVICE_ID)
		snprintf(buf, FLOW_WHO_BYTES, "purecm's probe of a path");
	else
		snprintf(buf, FLOW_WHO_BYTES, "service 0x%" PRIx64, flow->service_id);
	return buf;
}

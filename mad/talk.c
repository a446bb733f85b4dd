/* SPDX-License-Identifier: BSD-2-Clause */
/* Classification of messages: see talk.h. */
#include "mad/talk.h"

#include "mad/wire_known.h"

#define PKEY_DEFAULT	 0xffff
#define SIDR_UNSUPPORTED 1 /* no such service: IBTA vol. 1, 12.11 */

struct ids {
	uint32_t first, second;
};

/* All bodies but those of REQ and SIDR begin with the two ids, the sender's first. */
static const struct wire_field ids_fields[] = {
	WIRE_ID(ids, first, 0, 0, 32),
	WIRE_ID(ids, second, 4, 0, 32),
};
static const struct wire_layout ids_layout = WIRE_LAYOUT("ids", ids, ids_fields, 8);

/* Position of an id. */
enum place {
	NOWHERE,
	FIRST,
	SECOND
};

static const struct kind {
	bool asks, answers;
	enum place sender, receiver;
} kinds[] = {
	[CM_ATTR_REQ] = { true, false, FIRST, NOWHERE },
	[CM_ATTR_MRA] = { false, true, FIRST, SECOND },
	[CM_ATTR_REJ] = { false, true, FIRST, SECOND },
	[CM_ATTR_REP] = { true, true, FIRST, SECOND },
	[CM_ATTR_RTU] = { false, true, FIRST, SECOND },
	[CM_ATTR_DREQ] = { true, false, FIRST, SECOND },
	[CM_ATTR_DREP] = { false, true, FIRST, SECOND },
	[CM_ATTR_SIDR_REQ] = { true, false, FIRST, NOWHERE },
	[CM_ATTR_SIDR_REP] = { false, true, NOWHERE, FIRST },
};

static uint32_t id_at(const struct ids *ids, enum place place)
{
	return place == FIRST ? ids->first : place == SECOND ? ids->second : 0;
}

struct mad_talk mad_talk_of(const uint8_t mad[MAD_BYTES])
{
	uint16_t attr_id = cm_mad_attr(mad);
	const struct kind *kind;
	struct ids ids = { .first = 0 };

	if (attr_id >= sizeof(kinds) / sizeof(kinds[0]))
		return (struct mad_talk){ .asks = false };
	kind = &kinds[attr_id];
	wire_decode_known(&ids_layout, mad + MAD_HDR_BYTES, &ids);
	return (struct mad_talk){ .asks = kind->asks,
				  .answers = kind->answers,
				  .attr_id = attr_id,
				  .sender_id = id_at(&ids, kind->sender),
				  .receiver_id = id_at(&ids, kind->receiver) };
}

void mad_probe_write(uint32_t request_id, uint8_t ret[MAD_BYTES])
{
	struct cm_msg msg;

	cm_msg_init(&msg, CM_ATTR_SIDR_REQ, (uint64_t)request_id << 32);
	msg.sidr_req.request_id = request_id;
	msg.sidr_req.pkey = PKEY_DEFAULT;
	msg.sidr_req.service_id = MAD_PROBE_SERVICE_ID;
	cm_msg_encode(&msg, ret);
}

bool mad_probe_answer(const uint8_t mad[MAD_BYTES], uint8_t ret[MAD_BYTES])
{
	struct cm_msg asked, answer;

	/* Nearly all messages are no lookups. */
	if (cm_mad_attr(mad) != CM_ATTR_SIDR_REQ)
		return false;
	if (cm_msg_decode(mad, MAD_BYTES, &asked) ||
	    asked.sidr_req.service_id != MAD_PROBE_SERVICE_ID)
		return false;
	cm_msg_init(&answer, CM_ATTR_SIDR_REP, asked.hdr.tid);
	answer.sidr_rep.request_id = asked.sidr_req.request_id;
	answer.sidr_rep.status = SIDR_UNSUPPORTED;
	cm_msg_encode(&answer, ret);
	return true;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The field tables of all CM messages, and the two functions that use them: encode and decode. To
 * check a row, compare it with the specification's table.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "mad/cm_msg.h"
#include "mad/wire_known.h"

#define MAD_BASE_VERSION 1
#define MAD_ATTR_AT	 16

/* clang-format off */

/*
 * IBTA vol. 1, 13.4.3, common MAD header, in table order: struct, member, byte, first bit, width.
 */
static const struct wire_field mad_hdr_fields[] = {
	WIRE(mad_hdr, base_version, 0, 0, 8),
	WIRE_ID(mad_hdr, mgmt_class, 1, 0, 8),
	WIRE(mad_hdr, class_version, 2, 0, 8),
	WIRE_ID(mad_hdr, method, 3, 0, 8),
	WIRE_ID(mad_hdr, status, 4, 0, 16),
	WIRE_ID(mad_hdr, class_specific, 6, 0, 16),
	WIRE_ID(mad_hdr, tid, 8, 0, 64),
	WIRE_ID(mad_hdr, attr_id, 16, 0, 16),
	WIRE_ID(mad_hdr, attr_mod, 20, 0, 32),
};

/* IBTA vol. 1, table 106, REQ. The last row before the private data is from a later edition. */
static const struct wire_field cm_req_fields[] = {
	WIRE_ID(cm_req, local_comm_id, 0, 0, 32),
	WIRE_ID(cm_req, vendor_id, 5, 0, 24),
	WIRE_ID(cm_req, service_id, 8, 0, 64),
	WIRE_ID(cm_req, local_ca_guid, 16, 0, 64),
	WIRE_ID(cm_req, local_qkey, 28, 0, 32),
	WIRE_ID(cm_req, local_qpn, 32, 0, 24),
	WIRE(cm_req, responder_resources, 35, 0, 8),
	WIRE_ID(cm_req, local_eecn, 36, 0, 24),
	WIRE(cm_req, initiator_depth, 39, 0, 8),
	WIRE_ID(cm_req, remote_eecn, 40, 0, 24),
	WIRE(cm_req, remote_cm_response_timeout, 43, 0, 5),
	WIRE(cm_req, transport_service_type, 43, 5, 2),
	WIRE(cm_req, flow_control, 43, 7, 1),
	WIRE_ID(cm_req, starting_psn, 44, 0, 24),
	WIRE(cm_req, local_cm_response_timeout, 47, 0, 5),
	WIRE(cm_req, retry_count, 47, 5, 3),
	WIRE_ID(cm_req, pkey, 48, 0, 16),
	WIRE(cm_req, path_mtu, 50, 0, 4),
	WIRE(cm_req, rdc_exists, 50, 4, 1),
	WIRE(cm_req, rnr_retry_count, 50, 5, 3),
	WIRE(cm_req, max_cm_retries, 51, 0, 4),
	WIRE(cm_req, srq, 51, 4, 1),
	WIRE(cm_req, extended_transport_type, 51, 5, 3),
	WIRE_ID(cm_req, primary.local_lid, 52, 0, 16),
	WIRE_ID(cm_req, primary.remote_lid, 54, 0, 16),
	WIRE_ADDR(cm_req, primary.local_gid, 56),
	WIRE_ADDR(cm_req, primary.remote_gid, 72),
	WIRE_ID(cm_req, primary.flow_label, 88, 0, 20),
	WIRE(cm_req, primary.packet_rate, 91, 2, 6),
	WIRE_ID(cm_req, primary.traffic_class, 92, 0, 8),
	WIRE(cm_req, primary.hop_limit, 93, 0, 8),
	WIRE(cm_req, primary.sl, 94, 0, 4),
	WIRE(cm_req, primary.subnet_local, 94, 4, 1),
	WIRE(cm_req, primary.local_ack_timeout, 95, 0, 5),
	WIRE_ID(cm_req, alternate.local_lid, 96, 0, 16),
	WIRE_ID(cm_req, alternate.remote_lid, 98, 0, 16),
	WIRE_ADDR(cm_req, alternate.local_gid, 100),
	WIRE_ADDR(cm_req, alternate.remote_gid, 116),
	WIRE_ID(cm_req, alternate.flow_label, 132, 0, 20),
	WIRE(cm_req, alternate.packet_rate, 135, 2, 6),
	WIRE_ID(cm_req, alternate.traffic_class, 136, 0, 8),
	WIRE(cm_req, alternate.hop_limit, 137, 0, 8),
	WIRE(cm_req, alternate.sl, 138, 0, 4),
	WIRE(cm_req, alternate.subnet_local, 138, 4, 1),
	WIRE(cm_req, alternate.local_ack_timeout, 139, 0, 5),
	WIRE(cm_req, sap_supported, 139, 5, 1),
	WIRE_BLOB(cm_req, private_data, 140),
};

/* IBTA vol. 1, table 107, MRA. */
static const struct wire_field cm_mra_fields[] = {
	WIRE_ID(cm_mra, local_comm_id, 0, 0, 32),
	WIRE_ID(cm_mra, remote_comm_id, 4, 0, 32),
	WIRE(cm_mra, message, 8, 0, 2),
	WIRE(cm_mra, service_timeout, 9, 0, 5),
	WIRE_BLOB(cm_mra, private_data, 10),
};

/* IBTA vol. 1, table 108, REJ. */
static const struct wire_field cm_rej_fields[] = {
	WIRE_ID(cm_rej, local_comm_id, 0, 0, 32),
	WIRE_ID(cm_rej, remote_comm_id, 4, 0, 32),
	WIRE(cm_rej, message, 8, 0, 2),
	WIRE(cm_rej, ari_bytes, 9, 0, 7),
	WIRE(cm_rej, reason, 10, 0, 16),
	WIRE_BLOB(cm_rej, ari, 12),
	WIRE_BLOB(cm_rej, private_data, 84),
};

/* IBTA vol. 1, table 110, REP. The vendor id uses bytes that were reserved in earlier editions. */
static const struct wire_field cm_rep_fields[] = {
	WIRE_ID(cm_rep, local_comm_id, 0, 0, 32),
	WIRE_ID(cm_rep, remote_comm_id, 4, 0, 32),
	WIRE_ID(cm_rep, local_qkey, 8, 0, 32),
	WIRE_ID(cm_rep, local_qpn, 12, 0, 24),
	WIRE_PART(cm_rep, vendor_id, 15, 0, 8, 16),
	WIRE_ID(cm_rep, local_eecn, 16, 0, 24),
	WIRE_PART(cm_rep, vendor_id, 19, 0, 8, 8),
	WIRE_ID(cm_rep, starting_psn, 20, 0, 24),
	WIRE_PART(cm_rep, vendor_id, 23, 0, 8, 0),
	WIRE(cm_rep, responder_resources, 24, 0, 8),
	WIRE(cm_rep, initiator_depth, 25, 0, 8),
	WIRE(cm_rep, target_ack_delay, 26, 0, 5),
	WIRE(cm_rep, failover_accepted, 26, 5, 2),
	WIRE(cm_rep, flow_control, 26, 7, 1),
	WIRE(cm_rep, rnr_retry_count, 27, 0, 3),
	WIRE(cm_rep, srq, 27, 3, 1),
	WIRE_ID(cm_rep, local_ca_guid, 28, 0, 64),
	WIRE_BLOB(cm_rep, private_data, 36),
};

/* IBTA vol. 1, table 111, RTU. */
static const struct wire_field cm_rtu_fields[] = {
	WIRE_ID(cm_rtu, local_comm_id, 0, 0, 32),
	WIRE_ID(cm_rtu, remote_comm_id, 4, 0, 32),
	WIRE_BLOB(cm_rtu, private_data, 8),
};

/* IBTA vol. 1, table 112, DREQ. */
static const struct wire_field cm_dreq_fields[] = {
	WIRE_ID(cm_dreq, local_comm_id, 0, 0, 32),
	WIRE_ID(cm_dreq, remote_comm_id, 4, 0, 32),
	WIRE_ID(cm_dreq, remote_qpn, 8, 0, 24),
	WIRE_BLOB(cm_dreq, private_data, 12),
};

/* IBTA vol. 1, table 113, DREP. */
static const struct wire_field cm_drep_fields[] = {
	WIRE_ID(cm_drep, local_comm_id, 0, 0, 32),
	WIRE_ID(cm_drep, remote_comm_id, 4, 0, 32),
	WIRE_BLOB(cm_drep, private_data, 8),
};

/* IBTA vol. 1, table 115, LAP. */
static const struct wire_field cm_lap_fields[] = {
	WIRE_ID(cm_lap, local_comm_id, 0, 0, 32),
	WIRE_ID(cm_lap, remote_comm_id, 4, 0, 32),
	WIRE_ID(cm_lap, remote_qpn, 12, 0, 24),
	WIRE(cm_lap, remote_cm_response_timeout, 15, 0, 5),
	WIRE_ID(cm_lap, alternate.local_lid, 20, 0, 16),
	WIRE_ID(cm_lap, alternate.remote_lid, 22, 0, 16),
	WIRE_ADDR(cm_lap, alternate.local_gid, 24),
	WIRE_ADDR(cm_lap, alternate.remote_gid, 40),
	WIRE_ID(cm_lap, alternate.flow_label, 56, 0, 20),
	WIRE_ID(cm_lap, alternate.traffic_class, 59, 0, 8),
	WIRE(cm_lap, alternate.hop_limit, 60, 0, 8),
	WIRE(cm_lap, alternate.packet_rate, 61, 2, 6),
	WIRE(cm_lap, alternate.sl, 62, 0, 4),
	WIRE(cm_lap, alternate.subnet_local, 62, 4, 1),
	WIRE(cm_lap, alternate.local_ack_timeout, 63, 0, 5),
	WIRE_BLOB(cm_lap, private_data, 64),
};

/* IBTA vol. 1, table 116, APR. */
static const struct wire_field cm_apr_fields[] = {
	WIRE_ID(cm_apr, local_comm_id, 0, 0, 32),
	WIRE_ID(cm_apr, remote_comm_id, 4, 0, 32),
	WIRE(cm_apr, info_bytes, 8, 0, 8),
	WIRE(cm_apr, status, 9, 0, 8),
	WIRE_BLOB(cm_apr, info, 12),
	WIRE_BLOB(cm_apr, private_data, 84),
};

/* IBTA vol. 1, table 119, SIDR_REQ. */
static const struct wire_field cm_sidr_req_fields[] = {
	WIRE_ID(cm_sidr_req, request_id, 0, 0, 32),
	WIRE_ID(cm_sidr_req, pkey, 4, 0, 16),
	WIRE_ID(cm_sidr_req, service_id, 8, 0, 64),
	WIRE_BLOB(cm_sidr_req, private_data, 16),
};

/*
 * IBTA vol. 1, table 120, SIDR_REP. Linux sets only the low byte of the vendor id's upper field, so
 * bits 23 to 16 arrive as zero from such a peer. We send all of them.
 */
static const struct wire_field cm_sidr_rep_fields[] = {
	WIRE_ID(cm_sidr_rep, request_id, 0, 0, 32),
	WIRE(cm_sidr_rep, status, 4, 0, 8),
	WIRE(cm_sidr_rep, info_bytes, 5, 0, 8),
	WIRE_PART(cm_sidr_rep, vendor_id, 6, 0, 16, 8),
	WIRE_ID(cm_sidr_rep, qpn, 8, 0, 24),
	WIRE_PART(cm_sidr_rep, vendor_id, 11, 0, 8, 0),
	WIRE_ID(cm_sidr_rep, service_id, 12, 0, 64),
	WIRE_ID(cm_sidr_rep, qkey, 20, 0, 32),
	WIRE_BLOB(cm_sidr_rep, info, 24),
	WIRE_BLOB(cm_sidr_rep, private_data, 96),
};

/* clang-format on */

#define CM_LAYOUT(title, type) WIRE_LAYOUT(title, type, type##_fields, CM_BODY_BYTES)

const struct wire_layout mad_hdr_layout =
	WIRE_LAYOUT("MAD", mad_hdr, mad_hdr_fields, MAD_HDR_BYTES);
const struct wire_layout cm_req_layout = CM_LAYOUT("REQ", cm_req);
const struct wire_layout cm_mra_layout = CM_LAYOUT("MRA", cm_mra);
const struct wire_layout cm_rej_layout = CM_LAYOUT("REJ", cm_rej);
const struct wire_layout cm_rep_layout = CM_LAYOUT("REP", cm_rep);
const struct wire_layout cm_rtu_layout = CM_LAYOUT("RTU", cm_rtu);
const struct wire_layout cm_dreq_layout = CM_LAYOUT("DREQ", cm_dreq);
const struct wire_layout cm_drep_layout = CM_LAYOUT("DREP", cm_drep);
const struct wire_layout cm_sidr_req_layout = CM_LAYOUT("SIDR_REQ", cm_sidr_req);
const struct wire_layout cm_sidr_rep_layout = CM_LAYOUT("SIDR_REP", cm_sidr_rep);
const struct wire_layout cm_lap_layout = CM_LAYOUT("LAP", cm_lap);
const struct wire_layout cm_apr_layout = CM_LAYOUT("APR", cm_apr);

uint16_t cm_mad_attr(const uint8_t mad[MAD_BYTES])
{
	return (uint16_t)(mad[MAD_ATTR_AT] << 8 | mad[MAD_ATTR_AT + 1]);
}

#define CM_LAYOUTS(X)                   \
	X(REQ, cm_req_layout)           \
	X(MRA, cm_mra_layout)           \
	X(REJ, cm_rej_layout)           \
	X(REP, cm_rep_layout)           \
	X(RTU, cm_rtu_layout)           \
	X(DREQ, cm_dreq_layout)         \
	X(DREP, cm_drep_layout)         \
	X(SIDR_REQ, cm_sidr_req_layout) \
	X(SIDR_REP, cm_sidr_rep_layout) \
	X(LAP, cm_lap_layout)           \
	X(APR, cm_apr_layout)

const struct wire_layout *cm_msg_layout(uint16_t attr_id)
{
	static const struct wire_layout *const layouts[] = {
#define X(name, layout) [CM_ATTR_##name] = &layout,
		CM_LAYOUTS(X)
#undef X
	};

	return attr_id < sizeof(layouts) / sizeof(layouts[0]) ? layouts[attr_id] : NULL;
}

static void body_encode(const struct cm_msg *msg, uint8_t *wire)
{
	switch ((enum cm_attr)msg->hdr.attr_id) {
#define X(name, layout)                                      \
	case CM_ATTR_##name:                                 \
		wire_encode_known(&layout, &msg->req, wire); \
		break;
		CM_LAYOUTS(X)
#undef X
	}
}

static void body_decode(const uint8_t *wire, struct cm_msg *msg)
{
	switch ((enum cm_attr)msg->hdr.attr_id) {
#define X(name, layout)                                      \
	case CM_ATTR_##name:                                 \
		wire_decode_known(&layout, wire, &msg->req); \
		break;
		CM_LAYOUTS(X)
#undef X
	}
}

void cm_msg_init(struct cm_msg *msg, enum cm_attr attr, uint64_t tid)
{
	memset(msg, 0, sizeof(*msg));
	msg->hdr.base_version = MAD_BASE_VERSION;
	msg->hdr.mgmt_class = MAD_CLASS_CM;
	msg->hdr.class_version = MAD_CM_VERSION;
	msg->hdr.method = MAD_METHOD_SEND;
	msg->hdr.tid = tid;
	msg->hdr.attr_id = attr;
}

void cm_msg_encode(const struct cm_msg *msg, uint8_t mad[MAD_BYTES])
{
	assert(cm_msg_layout(msg->hdr.attr_id));
	memset(mad, 0, MAD_BYTES);
	wire_encode_known(&mad_hdr_layout, &msg->hdr, mad);
	body_encode(msg, mad + MAD_HDR_BYTES);
}

int cm_msg_decode(const uint8_t *mad, size_t bytes, struct cm_msg *msg)
{
	struct mad_hdr hdr = { 0 };

	if (bytes != MAD_BYTES)
		return -EMSGSIZE;
	wire_decode_known(&mad_hdr_layout, mad, &hdr);
	if (hdr.base_version != MAD_BASE_VERSION || hdr.mgmt_class != MAD_CLASS_CM ||
	    hdr.class_version != MAD_CM_VERSION || hdr.method != MAD_METHOD_SEND)
		return -EBADMSG;
	if (!cm_msg_layout(hdr.attr_id))
		return -ENOMSG;
	memset(msg, 0, sizeof(*msg));
	msg->hdr = hdr;
	body_decode(mad + MAD_HDR_BYTES, msg);
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The vectors behind vectors.h. Numbers in front of the comments are byte offsets in the MAD.
 */
#include "tests/unit/mad/vectors.h"

/* clang-format off */

#define HDR(attr, mod)                                                          \
	{ .base_version = 1, .mgmt_class = 7, .class_version = 2, .method = 3,  \
	  .status = 0x8182, .class_specific = 0x8384,                           \
	  .tid = 0x0102030405060708, .attr_id = attr, .attr_mod = mod }

#define FE80_1 { { 0xfe, 0x80, [8] = 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8 } }
#define V4_2   { { [10] = 0xff, 0xff, 10, 0, 0, 2 } }
#define DB8_1  { { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 } }
#define DB8_2  { { 0x20, 0x01, 0x0d, 0xb8, [15] = 2 } }

static const char req_hex[] =
	"01 07 02 03 8182 8384 0102030405060708 0010 0000 a1a2a3a4\n"
	"11121314           # 24 local comm id\n"
	"00 212223          # 28 reserved, vendor id\n"
	"0000000001061b58   # 32 service id\n"
	"3132333435363738   # 40 CA GUID\n"
	"00000000 41424344  # 48 reserved, Q_Key\n"
	"515253 54          # 56 QPN, responder resources\n"
	"616263 64          # 60 EECN, initiator depth\n"
	"717273 a3          # 64 remote EECN, response timeout 20, service type 1, flow control 1\n"
	"818283 96          # 68 PSN, response timeout 18, retry count 6\n"
	"8fff 4d d9         # 72 P_Key; MTU 4, RDC 1, RNR 5; CM retries 13, SRQ 1, transport 1\n"
	"9192 9394          # 76 LIDs\n"
	"fe80000000000000 a1a2a3a4a5a6a7a8   # 80 local GID\n"
	"0000000000000000 0000ffff0a000002   # 96 remote GID\n"
	"b1b2b0 12          # 112 flow label b1b2b, rate 18\n"
	"c1 c2 d8 98        # 116 traffic class, hop limit; SL 13, subnet local 1; ACK timeout 19\n"
	"d1d2 d3d4          # 120 LIDs\n"
	"20010db800000000 0000000000000001   # 124\n"
	"20010db800000000 0000000000000002   # 140\n"
	"e1e2e0 3f          # 156 flow label e1e2e, rate 63\n"
	"f1 f2 50 3c        # 160 traffic class, hop limit; SL 5, subnet local 0; ACK 7, SAP 1\n"
	"deadbeef           # 164 private data\n";

static const char mra_hex[] =
	"01 07 02 03 8182 8384 0102030405060708 0011 0000 00000000\n"
	"11121314 15161718  # 24\n"
	"40 c0              # 32 message 1, service timeout 24\n"
	"cafe               # 34 private data\n";

static const char rej_hex[] =
	"01 07 02 03 8182 8384 0102030405060708 0012 0000 00000000\n"
	"11121314 15161718  # 24\n"
	"80 10 001c         # 32 message 2, ARI length 8, reason 28\n"
	"3132333435363738   # 36 ARI\n"
	"0000000000000000 0000000000000000 0000000000000000 0000000000000000\n"
	"0000000000000000 0000000000000000 0000000000000000 0000000000000000\n"
	"cafe               # 108 private data\n";

static const char rep_hex[] =
	"01 07 02 03 8182 8384 0102030405060708 0013 0000 a1a2a3a4\n"
	"11121314 15161718  # 24\n"
	"41424344           # 32 Q_Key\n"
	"515253 21          # 36 QPN, vendor id\n"
	"616263 22          # 40 EECN, vendor id\n"
	"818283 23          # 44 PSN, vendor id\n"
	"05 06 7d f0        # 48 resources, depth; ACK delay 15, failover 2, flow 1; RNR 7, SRQ 1\n"
	"3132333435363738   # 52 CA GUID\n"
	"cafe               # 60 private data\n";

static const char rtu_hex[] =
	"01 07 02 03 8182 8384 0102030405060708 0014 0000 00000000\n"
	"11121314 15161718 cafe\n";

static const char dreq_hex[] =
	"01 07 02 03 8182 8384 0102030405060708 0015 0000 00000000\n"
	"11121314 15161718  # 24\n"
	"515253 00          # 32 remote QPN\n"
	"cafe               # 36 private data\n";

static const char drep_hex[] =
	"01 07 02 03 8182 8384 0102030405060708 0016 0000 00000000\n"
	"11121314 15161718 cafe\n";

static const char sidr_req_hex[] =
	"01 07 02 03 8182 8384 0102030405060708 0017 0000 00000000\n"
	"11121314           # 24 request id\n"
	"8fff 0000          # 28 P_Key\n"
	"0000000001111b58   # 32 service id\n"
	"cafe               # 40 private data\n";

static const char sidr_rep_hex[] =
	"01 07 02 03 8182 8384 0102030405060708 0018 0000 a1a2a3a4\n"
	"11121314           # 24 request id\n"
	"04 02 2122         # 28 status, info length, vendor id high\n"
	"515253 23          # 32 QPN, vendor id low\n"
	"0000000001111b58   # 36 service id\n"
	"01234567           # 44 Q_Key\n"
	"abcd               # 48 info\n"
	"00000000 0000 0000000000000000 0000000000000000 0000000000000000 0000000000000000\n"
	"0000000000000000 0000000000000000 0000000000000000 0000000000000000\n"
	"cafe               # 120 private data\n";

static const char lap_hex[] =
	"01 07 02 03 8182 8384 0102030405060708 0019 0000 00000000\n"
	"11121314 15161718  # 24\n"
	"00000000           # 32 reserved\n"
	"515253 a0          # 36 remote QPN, response timeout 20\n"
	"00000000           # 40 reserved\n"
	"d1d2 d3d4          # 44 LIDs\n"
	"20010db800000000 0000000000000001   # 48\n"
	"20010db800000000 0000000000000002   # 64\n"
	"e1e2e0 f1          # 80 flow label e1e2e, traffic class\n"
	"f2 3e 58 38        # 84 hop limit; rate 62; SL 5, subnet local 1; ACK timeout 7\n"
	"cafe               # 88 private data\n";

static const char apr_hex[] =
	"01 07 02 03 8182 8384 0102030405060708 001a 0000 00000000\n"
	"11121314 15161718  # 24\n"
	"02 05 0000         # 32 info length, status\n"
	"abcd               # 36 info\n"
	"000000000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000\n"
	"0000000000000000 0000000000000000 0000000000000000 0000000000000000\n"
	"cafe               # 108 private data\n";

const struct vector vectors[] = {
	{
		.hex = req_hex,
		.msg = {
			.hdr = HDR(CM_ATTR_REQ, 0xa1a2a3a4),
			.req = {
				.local_comm_id = 0x11121314,
				.vendor_id = 0x212223,
				.service_id = 0x0000000001061b58,
				.local_ca_guid = 0x3132333435363738,
				.local_qkey = 0x41424344,
				.local_qpn = 0x515253,
				.responder_resources = 0x54,
				.local_eecn = 0x616263,
				.initiator_depth = 0x64,
				.remote_eecn = 0x717273,
				.remote_cm_response_timeout = 20,
				.transport_service_type = CM_TRANSPORT_UC,
				.flow_control = 1,
				.starting_psn = 0x818283,
				.local_cm_response_timeout = 18,
				.retry_count = 6,
				.pkey = 0x8fff,
				.path_mtu = 4,
				.rdc_exists = 1,
				.rnr_retry_count = 5,
				.max_cm_retries = 13,
				.srq = 1,
				.extended_transport_type = 1,
				.primary = {
					.local_lid = 0x9192,
					.remote_lid = 0x9394,
					.local_gid = FE80_1,
					.remote_gid = V4_2,
					.flow_label = 0xb1b2b,
					.packet_rate = 18,
					.traffic_class = 0xc1,
					.hop_limit = 0xc2,
					.sl = 13,
					.subnet_local = 1,
					.local_ack_timeout = 19,
				},
				.alternate = {
					.local_lid = 0xd1d2,
					.remote_lid = 0xd3d4,
					.local_gid = DB8_1,
					.remote_gid = DB8_2,
					.flow_label = 0xe1e2e,
					.packet_rate = 63,
					.traffic_class = 0xf1,
					.hop_limit = 0xf2,
					.sl = 5,
					.local_ack_timeout = 7,
				},
				.sap_supported = 1,
				.private_data = { 0xde, 0xad, 0xbe, 0xef },
			},
		},
	},
	{
		.hex = mra_hex,
		.msg = {
			.hdr = HDR(CM_ATTR_MRA, 0),
			.mra = {
				.local_comm_id = 0x11121314,
				.remote_comm_id = 0x15161718,
				.message = CM_ANSWERED_REP,
				.service_timeout = 24,
				.private_data = { 0xca, 0xfe },
			},
		},
	},
	{
		.hex = rej_hex,
		.msg = {
			.hdr = HDR(CM_ATTR_REJ, 0),
			.rej = {
				.local_comm_id = 0x11121314,
				.remote_comm_id = 0x15161718,
				.message = CM_ANSWERED_OTHER,
				.ari_bytes = 8,
				.reason = 28,
				.ari = { 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38 },
				.private_data = { 0xca, 0xfe },
			},
		},
	},
	{
		.hex = rep_hex,
		.msg = {
			.hdr = HDR(CM_ATTR_REP, 0xa1a2a3a4),
			.rep = {
				.local_comm_id = 0x11121314,
				.remote_comm_id = 0x15161718,
				.local_qkey = 0x41424344,
				.local_qpn = 0x515253,
				.local_eecn = 0x616263,
				.vendor_id = 0x212223,
				.starting_psn = 0x818283,
				.responder_resources = 5,
				.initiator_depth = 6,
				.target_ack_delay = 15,
				.failover_accepted = 2,
				.flow_control = 1,
				.rnr_retry_count = 7,
				.srq = 1,
				.local_ca_guid = 0x3132333435363738,
				.private_data = { 0xca, 0xfe },
			},
		},
	},
	{
		.hex = rtu_hex,
		.msg = {
			.hdr = HDR(CM_ATTR_RTU, 0),
			.rtu = {
				.local_comm_id = 0x11121314,
				.remote_comm_id = 0x15161718,
				.private_data = { 0xca, 0xfe },
			},
		},
	},
	{
		.hex = dreq_hex,
		.msg = {
			.hdr = HDR(CM_ATTR_DREQ, 0),
			.dreq = {
				.local_comm_id = 0x11121314,
				.remote_comm_id = 0x15161718,
				.remote_qpn = 0x515253,
				.private_data = { 0xca, 0xfe },
			},
		},
	},
	{
		.hex = drep_hex,
		.msg = {
			.hdr = HDR(CM_ATTR_DREP, 0),
			.drep = {
				.local_comm_id = 0x11121314,
				.remote_comm_id = 0x15161718,
				.private_data = { 0xca, 0xfe },
			},
		},
	},
	{
		.hex = sidr_req_hex,
		.msg = {
			.hdr = HDR(CM_ATTR_SIDR_REQ, 0),
			.sidr_req = {
				.request_id = 0x11121314,
				.pkey = 0x8fff,
				.service_id = 0x0000000001111b58,
				.private_data = { 0xca, 0xfe },
			},
		},
	},
	{
		.hex = sidr_rep_hex,
		.msg = {
			.hdr = HDR(CM_ATTR_SIDR_REP, 0xa1a2a3a4),
			.sidr_rep = {
				.request_id = 0x11121314,
				.status = 4,
				.info_bytes = 2,
				.vendor_id = 0x212223,
				.qpn = 0x515253,
				.service_id = 0x0000000001111b58,
				.qkey = 0x01234567,
				.info = { 0xab, 0xcd },
				.private_data = { 0xca, 0xfe },
			},
		},
	},
	{
		.hex = lap_hex,
		.msg = {
			.hdr = HDR(CM_ATTR_LAP, 0),
			.lap = {
				.local_comm_id = 0x11121314,
				.remote_comm_id = 0x15161718,
				.remote_qpn = 0x515253,
				.remote_cm_response_timeout = 20,
				.alternate = {
					.local_lid = 0xd1d2,
					.remote_lid = 0xd3d4,
					.local_gid = DB8_1,
					.remote_gid = DB8_2,
					.flow_label = 0xe1e2e,
					.packet_rate = 62,
					.traffic_class = 0xf1,
					.hop_limit = 0xf2,
					.sl = 5,
					.subnet_local = 1,
					.local_ack_timeout = 7,
				},
				.private_data = { 0xca, 0xfe },
			},
		},
	},
	{
		.hex = apr_hex,
		.msg = {
			.hdr = HDR(CM_ATTR_APR, 0),
			.apr = {
				.local_comm_id = 0x11121314,
				.remote_comm_id = 0x15161718,
				.info_bytes = 2,
				.status = 5,
				.info = { 0xab, 0xcd },
				.private_data = { 0xca, 0xfe },
			},
		},
	},
};
/* clang-format on */

const int n_vectors = sizeof(vectors) / sizeof(vectors[0]);

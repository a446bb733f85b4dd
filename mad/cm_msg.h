/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages of the communication manager (IBTA vol. 1, chapter 12) as host structs, and the
 * 256-byte MADs that carry them.
 *
 * Integers are in host byte order. This folder knows the format of the messages; cm/ knows what
 * they mean to a connection.
 */
#ifndef MAD_CM_MSG_H
#define MAD_CM_MSG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "mad/gid.h"
#include "mad/wire.h"

#define MAD_BYTES		  256
#define MAD_HDR_BYTES		  24
#define CM_BODY_BYTES		  (MAD_BYTES - MAD_HDR_BYTES)
#define MAD_CLASS_CM		  0x07
#define MAD_CM_VERSION		  2
#define MAD_METHOD_SEND		  0x03

#define CM_REQ_PRIVATE_BYTES	  92
#define CM_MRA_PRIVATE_BYTES	  222
#define CM_REJ_ARI_BYTES	  72
#define CM_REJ_PRIVATE_BYTES	  148
#define CM_REP_PRIVATE_BYTES	  196
#define CM_RTU_PRIVATE_BYTES	  224
#define CM_DREQ_PRIVATE_BYTES	  220
#define CM_DREP_PRIVATE_BYTES	  224
#define CM_SIDR_REQ_PRIVATE_BYTES 216
#define CM_SIDR_REP_INFO_BYTES	  72
#define CM_SIDR_REP_PRIVATE_BYTES 136
#define CM_LAP_PRIVATE_BYTES	  168
#define CM_APR_INFO_BYTES	  72
#define CM_APR_PRIVATE_BYTES	  148

/* Attribute ids of the CM class, IBTA vol. 1, table 105. */
enum cm_attr {
	CM_ATTR_REQ = 0x10,
	CM_ATTR_MRA,
	CM_ATTR_REJ,
	CM_ATTR_REP,
	CM_ATTR_RTU,
	CM_ATTR_DREQ,
	CM_ATTR_DREP,
	CM_ATTR_SIDR_REQ,
	CM_ATTR_SIDR_REP,
	CM_ATTR_LAP,
	CM_ATTR_APR,
};

/* The message that a MRA or a REJ answers. */
enum cm_msg_answered {
	CM_ANSWERED_REQ = 0,
	CM_ANSWERED_REP = 1,
	CM_ANSWERED_OTHER = 2,
};

/* REQ.transport_service_type and .extended_transport_type. */
enum cm_transport {
	CM_TRANSPORT_RC = 0,
	CM_TRANSPORT_UC = 1,
	CM_TRANSPORT_RD = 2,
	CM_TRANSPORT_EXTENDED = 3,

	CM_EXTENDED_XRC = 1,
};

/* The common MAD header, IBTA vol. 1, 13.4.3. */
struct mad_hdr {
	uint8_t base_version;
	uint8_t mgmt_class;
	uint8_t class_version;
	uint8_t method;
	uint16_t status;
	uint16_t class_specific;
	uint64_t tid;
	uint16_t attr_id;
	uint32_t attr_mod; /* ECE options in REQ, REP and SIDR_REP */
};

struct cm_req_path {
	uint16_t local_lid;
	uint16_t remote_lid;
	struct mad_gid local_gid;
	struct mad_gid remote_gid;
	uint32_t flow_label;
	uint8_t packet_rate;
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint8_t sl;
	uint8_t subnet_local;
	uint8_t local_ack_timeout;
};

struct cm_req {
	uint32_t local_comm_id;
	uint32_t vendor_id; /* ECE */
	uint64_t service_id;
	uint64_t local_ca_guid;
	uint32_t local_qkey;
	uint32_t local_qpn;
	uint8_t responder_resources;
	uint32_t local_eecn;
	uint8_t initiator_depth;
	uint32_t remote_eecn;
	uint8_t remote_cm_response_timeout;
	uint8_t transport_service_type;
	uint8_t flow_control;
	uint32_t starting_psn;
	uint8_t local_cm_response_timeout;
	uint8_t retry_count;
	uint16_t pkey;
	uint8_t path_mtu;
	uint8_t rdc_exists;
	uint8_t rnr_retry_count;
	uint8_t max_cm_retries;
	uint8_t srq;
	uint8_t extended_transport_type;
	struct cm_req_path primary;
	struct cm_req_path alternate;
	uint8_t sap_supported;
	uint8_t private_data[CM_REQ_PRIVATE_BYTES];
};

struct cm_mra {
	uint32_t local_comm_id;
	uint32_t remote_comm_id;
	uint8_t message; /* enum cm_msg_answered */
	uint8_t service_timeout;
	uint8_t private_data[CM_MRA_PRIVATE_BYTES];
};

struct cm_rej {
	uint32_t local_comm_id;
	uint32_t remote_comm_id;
	uint8_t message; /* enum cm_msg_answered */
	uint8_t ari_bytes;
	uint16_t reason;
	uint8_t ari[CM_REJ_ARI_BYTES];
	uint8_t private_data[CM_REJ_PRIVATE_BYTES];
};

struct cm_rep {
	uint32_t local_comm_id;
	uint32_t remote_comm_id;
	uint32_t local_qkey;
	uint32_t local_qpn;
	uint32_t local_eecn;
	uint32_t vendor_id; /* ECE; three single bytes on the wire */
	uint32_t starting_psn;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t target_ack_delay;
	uint8_t failover_accepted;
	uint8_t flow_control;
	uint8_t rnr_retry_count;
	uint8_t srq;
	uint64_t local_ca_guid;
	uint8_t private_data[CM_REP_PRIVATE_BYTES];
};

struct cm_rtu {
	uint32_t local_comm_id;
	uint32_t remote_comm_id;
	uint8_t private_data[CM_RTU_PRIVATE_BYTES];
};

struct cm_dreq {
	uint32_t local_comm_id;
	uint32_t remote_comm_id;
	uint32_t remote_qpn; /* the receiver's queue pair */
	uint8_t private_data[CM_DREQ_PRIVATE_BYTES];
};

struct cm_drep {
	uint32_t local_comm_id;
	uint32_t remote_comm_id;
	uint8_t private_data[CM_DREP_PRIVATE_BYTES];
};

struct cm_sidr_req {
	uint32_t request_id;
	uint16_t pkey;
	uint64_t service_id;
	uint8_t private_data[CM_SIDR_REQ_PRIVATE_BYTES];
};

struct cm_sidr_rep {
	uint32_t request_id;
	uint8_t status;
	uint8_t info_bytes;
	uint32_t vendor_id; /* ECE; 16 bits and 8 bits on the wire */
	uint32_t qpn;
	uint64_t service_id;
	uint32_t qkey;
	uint8_t info[CM_SIDR_REP_INFO_BYTES];
	uint8_t private_data[CM_SIDR_REP_PRIVATE_BYTES];
};

struct cm_lap {
	uint32_t local_comm_id;
	uint32_t remote_comm_id;
	uint32_t remote_qpn;
	uint8_t remote_cm_response_timeout;
	struct cm_req_path alternate;
	uint8_t private_data[CM_LAP_PRIVATE_BYTES];
};

struct cm_apr {
	uint32_t local_comm_id;
	uint32_t remote_comm_id;
	uint8_t info_bytes;
	uint8_t status;
	uint8_t info[CM_APR_INFO_BYTES];
	uint8_t private_data[CM_APR_PRIVATE_BYTES];
};

struct cm_msg {
	struct mad_hdr hdr;
	union {
		struct cm_req req;
		struct cm_mra mra;
		struct cm_rej rej;
		struct cm_rep rep;
		struct cm_rtu rtu;
		struct cm_dreq dreq;
		struct cm_drep drep;
		struct cm_sidr_req sidr_req;
		struct cm_sidr_rep sidr_rep;
		struct cm_lap lap;
		struct cm_apr apr;
	};
};

/* Layouts of the bodies: byte 0 is the first after the MAD header, as in the specification. */
extern const struct wire_layout mad_hdr_layout;
extern const struct wire_layout cm_req_layout;
extern const struct wire_layout cm_mra_layout;
extern const struct wire_layout cm_rej_layout;
extern const struct wire_layout cm_rep_layout;
extern const struct wire_layout cm_rtu_layout;
extern const struct wire_layout cm_dreq_layout;
extern const struct wire_layout cm_drep_layout;
extern const struct wire_layout cm_sidr_req_layout;
extern const struct wire_layout cm_sidr_rep_layout;
extern const struct wire_layout cm_lap_layout;
extern const struct wire_layout cm_apr_layout;

/** cm_mad_attr() - the attribute id of a MAD, without decoding the rest. */
uint16_t cm_mad_attr(const uint8_t mad[MAD_BYTES]);

/** cm_msg_layout() - the layout of a body; NULL for an attribute that is not of the CM class. */
const struct wire_layout *cm_msg_layout(uint16_t attr_id);

/** cm_msg_init() - initialise a message: zero @msg and fill in its header. */
void cm_msg_init(struct cm_msg *msg, enum cm_attr attr, uint64_t tid);

/** cm_msg_encode() - encode a message from cm_msg_init() into all bytes of a MAD. */
void cm_msg_encode(const struct cm_msg *msg, uint8_t mad[MAD_BYTES]);

/**
 * cm_msg_decode() - decode a MAD
 * @mad:   the received MAD
 * @bytes: its length
 * @msg:   filled in on success, otherwise untouched
 *
 * All fields of CM messages have fixed sizes, so no MAD of full length is malformed; the core
 * checks the values.
 *
 * Return: 0; -EMSGSIZE if @bytes is not 256; -EBADMSG if base version, class, class version or
 * method are not those of a CM message; -ENOMSG if the attribute is unknown.
 */
int cm_msg_decode(const uint8_t *mad, size_t bytes, struct cm_msg *msg);

/** cm_msg_print() - print name, ids and all nonzero fields on one line, without a newline. */
void cm_msg_print(const struct cm_msg *msg, FILE *out);

/** cm_rej_reason_str() - description of REJ.reason, IBTA vol. 1, table 109; never NULL. */
const char *cm_rej_reason_str(uint16_t reason);

/** cm_sidr_status_str() - description of SIDR_REP.status, IBTA vol. 1, 12.11; never NULL. */
const char *cm_sidr_status_str(uint8_t status);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages of subnet administration (IBTA vol. 1, chapter 15) that a connection manager needs:
 * records of paths, multicast members and services as host structs, and the 256-byte MADs that
 * carry them.
 *
 * Integers are in host byte order.
 */
#ifndef MAD_SA_MSG_H
#define MAD_SA_MSG_H

#include "mad/cm_msg.h"

#define MAD_CLASS_SA	      0x03
#define MAD_SA_VERSION	      2
#define SA_DATA_AT	      56
#define SA_DATA_BYTES	      (MAD_BYTES - SA_DATA_AT)
#define SA_SERVICE_NAME_BYTES 64

/* Bits of SA methods, IBTA vol. 1, 15.2.2. */
enum sa_method {
	SA_METHOD_GET = 0x01,
	SA_METHOD_SET = 0x02,
	SA_METHOD_GET_TABLE = 0x12,
	SA_METHOD_DELETE = 0x15,
	SA_METHOD_RESPONSE = 0x80, /* in all responses: GetResp 0x81, GetTableResp 0x92 */
};

/* IBTA vol. 1, 15.2.5. */
enum sa_attr {
	SA_ATTR_SERVICE_RECORD = 0x31,
	SA_ATTR_PATH_RECORD = 0x35,
	SA_ATTR_MCMEMBER_RECORD = 0x38,
};

/* Component masks: bit n is the n-th component of the record's table. */
#define SA_PATH_SERVICE_ID	UINT64_C(0x3) /* 64 bits are two components */
#define SA_PATH_DGID		(UINT64_C(1) << 2)
#define SA_PATH_SGID		(UINT64_C(1) << 3)
#define SA_PATH_TRAFFIC_CLASS	(UINT64_C(1) << 10)
#define SA_PATH_REVERSIBLE	(UINT64_C(1) << 11)
#define SA_PATH_NUMB_PATH	(UINT64_C(1) << 12)
#define SA_PATH_PKEY		(UINT64_C(1) << 13)
#define SA_PATH_QOS_CLASS	(UINT64_C(1) << 14)

#define SA_MEMBER_MGID		(UINT64_C(1) << 0)
#define SA_MEMBER_PORT_GID	(UINT64_C(1) << 1)
#define SA_MEMBER_QKEY		(UINT64_C(1) << 2)
#define SA_MEMBER_MTU_SELECTOR	(UINT64_C(1) << 4)
#define SA_MEMBER_MTU		(UINT64_C(1) << 5)
#define SA_MEMBER_TRAFFIC_CLASS (UINT64_C(1) << 6)
#define SA_MEMBER_PKEY		(UINT64_C(1) << 7)
#define SA_MEMBER_RATE_SELECTOR (UINT64_C(1) << 8)
#define SA_MEMBER_RATE		(UINT64_C(1) << 9)
#define SA_MEMBER_SL		(UINT64_C(1) << 12)
#define SA_MEMBER_FLOW_LABEL	(UINT64_C(1) << 13)
#define SA_MEMBER_HOP_LIMIT	(UINT64_C(1) << 14)
#define SA_MEMBER_JOIN_STATE	(UINT64_C(1) << 16)

#define SA_SERVICE_ID		(UINT64_C(1) << 0)
#define SA_SERVICE_NAME		(UINT64_C(1) << 6)

/* MCMemberRecord.join_state, IBTA vol. 1, 15.2.5.17. */
enum sa_join_state {
	SA_JOIN_FULL = 0x1,
	SA_JOIN_SEND_ONLY_FULL = 0x8,
};

enum sa_selector {
	SA_SELECTOR_GREATER = 0,
	SA_SELECTOR_LESS = 1,
	SA_SELECTOR_EXACTLY = 2,
	SA_SELECTOR_LARGEST = 3,
};

#define SA_RMPP_ACTIVE 1 /* of rmpp_flags */
#define SA_RMPP_LAST   4

/* Between the MAD header and the record: the RMPP header and the SA header. */
struct sa_hdr {
	uint8_t rmpp_version;
	uint8_t rmpp_type;
	uint8_t rmpp_resp_time;
	uint8_t rmpp_flags;
	uint8_t rmpp_status;
	uint32_t rmpp_data1;
	uint32_t rmpp_data2;
	uint64_t sm_key;
	uint16_t attr_offset;
	uint64_t comp_mask;
};

struct sa_path {
	uint64_t service_id;
	struct mad_gid dgid;
	struct mad_gid sgid;
	uint16_t dlid;
	uint16_t slid;
	uint8_t raw_traffic;
	uint32_t flow_label;
	uint8_t hop_limit;
	uint8_t traffic_class;
	uint8_t reversible;
	uint8_t numb_path;
	uint16_t pkey;
	uint16_t qos_class;
	uint8_t sl;
	uint8_t mtu_selector;
	uint8_t mtu; /* enum ibv_mtu */
	uint8_t rate_selector;
	uint8_t rate; /* enum ibv_rate */
	uint8_t packet_life_time_selector;
	uint8_t packet_life_time;
	uint8_t preference;
};

struct sa_member {
	struct mad_gid mgid;
	struct mad_gid port_gid;
	uint32_t qkey;
	uint16_t mlid;
	uint8_t mtu_selector;
	uint8_t mtu;
	uint8_t traffic_class;
	uint16_t pkey;
	uint8_t rate_selector;
	uint8_t rate;
	uint8_t packet_life_time_selector;
	uint8_t packet_life_time;
	uint8_t sl;
	uint32_t flow_label;
	uint8_t hop_limit;
	uint8_t scope;
	uint8_t join_state;
	uint8_t proxy_join;
};

struct sa_service {
	uint64_t service_id;
	struct mad_gid gid;
	uint16_t pkey;
	uint32_t lease_s;
	uint8_t key[16];
	uint8_t name[SA_SERVICE_NAME_BYTES];
	uint8_t data8[16];
	uint8_t data16[16];
	uint8_t data32[16];
	uint8_t data64[16];
};

struct sa_msg {
	struct mad_hdr hdr;
	struct sa_hdr sa;
	/* The records of a GetTableResp, as on the wire, where it was decoded from. */
	const uint8_t *table;
	size_t n_records, record_bytes;
	union {
		struct sa_path path;
		struct sa_member member;
		struct sa_service service;
	};
};

/* Layouts: sa_hdr begins after the MAD header, records at their own first byte. */
extern const struct wire_layout sa_hdr_layout;
extern const struct wire_layout sa_path_layout;
extern const struct wire_layout sa_member_layout;
extern const struct wire_layout sa_service_layout;

/** sa_msg_layout() - the layout of a record; NULL for an unknown attribute. */
const struct wire_layout *sa_msg_layout(uint16_t attr_id);

/**
 * sa_msg_init() - initialise a message: zero @msg and fill in its header
 * @comp_mask: valid components of the record
 */
void sa_msg_init(struct sa_msg *msg, enum sa_method method, enum sa_attr attr, uint64_t comp_mask,
		 uint64_t tid);

/** sa_msg_encode() - encode a message from sa_msg_init() into all bytes of a MAD. */
void sa_msg_encode(const struct sa_msg *msg, uint8_t mad[MAD_BYTES]);

/**
 * sa_msg_decode() - decode a MAD
 * @mad:   the received MAD; a table may be longer, with the headers of its first segment
 * @bytes: its length
 * @msg:   filled in on success, otherwise untouched; of a table with its first record
 *
 * Return: 0; -EMSGSIZE if @bytes is not 256 and it is no table; -EBADMSG if base version, class or
 * class version are not those of SA, or a table's records are too short; -ENOMSG if the attribute
 * is unknown.
 */
int sa_msg_decode(const uint8_t *mad, size_t bytes, struct sa_msg *msg);

/** sa_msg_record() - read one of the records of a table, into itself */
void sa_msg_record(struct sa_msg *table, size_t i);

#endif

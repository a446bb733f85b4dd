/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MADs of the subnet administrator's class (IBTA vol. 1, chapter 15): what resolution of routes and
 * multicast say on InfiniBand. Looked at by the trace, and by it alone.
 */
#ifndef TOOLS_PURECM_SA_H
#define TOOLS_PURECM_SA_H

#include "mad/cm_msg.h"

struct sa_path_record {
	uint64_t service_id;
	struct mad_gid dgid;
	struct mad_gid sgid;
	uint16_t dlid;
	uint16_t slid;
	uint32_t flow_label;
	uint8_t hop_limit;
	uint8_t tclass;
	uint8_t reversible;
	uint8_t numb_path;
	uint16_t pkey;
	uint16_t qos_class;
	uint8_t sl;
	uint8_t mtu;
	uint8_t rate;
	uint8_t packet_life_time;
};

struct sa_mc_member_record {
	struct mad_gid mgid;
	struct mad_gid port_gid;
	uint32_t qkey;
	uint16_t mlid;
	uint8_t mtu;
	uint8_t tclass;
	uint16_t pkey;
	uint8_t rate;
	uint8_t packet_life_time;
	uint8_t sl;
	uint32_t flow_label;
	uint8_t hop_limit;
	uint8_t scope;
	uint8_t join_state;
};

union sa_record {
	struct sa_path_record path;
	struct sa_mc_member_record member;
};

/**
 * sa_decode() - read a MAD of the SA class
 * @ret_hdr:    its header
 * @ret_record: what it is about, if a layout is returned
 *
 * Return: the record's layout, or NULL for a record that we do not read.
 */
const struct wire_layout *sa_decode(const uint8_t mad[MAD_BYTES], struct mad_hdr *ret_hdr,
				    union sa_record *ret_record);

/** sa_name() - "GetResp PathRecord". Return: @buf. */
const char *sa_name(const struct mad_hdr *hdr, char *buf, size_t bytes);

#endif

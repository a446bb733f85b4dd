/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCE v2 packets on their way from fabric-host, which has the UDP port, to the process that has
 * the queue pair: this header, and UDP payloads one after the other as they came, all of one size
 * but the last, which may be shorter. They are checked and decoded by the process.
 */
#ifndef FABRIC_FRAMES_H
#define FABRIC_FRAMES_H

#include <infiniband/verbs.h>
#include <stdint.h>

#define FAB_FRAMES_MAGIC     0xfab2
#define FAB_FRAMES_BYTES_MAX 65535 /* of payloads: what UDP_GRO gives at once */

struct fab_frames {
	uint16_t magic;
	uint16_t source_port;
	uint16_t segment_bytes;
	uint8_t hop_limit;
	uint8_t traffic_class;
	uint32_t bytes;	  /* of all payloads */
	uint32_t ifindex; /* by which they came */
	uint8_t port_num; /* of the device, by the address or by that */
	union ibv_gid sgid, dgid;
};

#endif

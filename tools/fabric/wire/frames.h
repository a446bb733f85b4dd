/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCE v2 packets as delivered by the kernel: this header, and UDP payloads of equal size, except
 * that the last may be shorter. Packets for the queue pair of another process are forwarded to its
 * slot's socket in this form.
 */
#ifndef FABRIC_FRAMES_H
#define FABRIC_FRAMES_H

#include <infiniband/verbs.h>
#include <stdint.h>

#include "tools/fabric/wire/folder.h"

#define FAB_FRAMES_MAGIC     0xfab2
#define FAB_FRAMES_BYTES_MAX 65535 /* of payloads: maximum of UDP_GRO */

struct fab_frames {
	uint16_t magic;
	uint16_t source_port;
	uint16_t segment_bytes;
	uint16_t identification; /* likely one of the first packet, over IPv4; see roce/icrc.h */
	uint8_t hop_limit;
	uint8_t traffic_class;
	uint32_t bytes;	  /* of all payloads */
	uint32_t ifindex; /* receiving interface */
	uint8_t port_num; /* of the device, found by address or interface */
	union ibv_gid sgid, dgid;
};

/**
 * fab_frames_forward() - forward packets to the process of a slot on this host
 * @fd:    any AF_UNIX datagram socket
 * @bytes: frames->bytes of payloads; lost if that process cannot accept them now
 */
void fab_frames_forward(int fd, const struct fab_folder *folder, unsigned int slot,
			const struct fab_frames *frames, const uint8_t *bytes);

#endif

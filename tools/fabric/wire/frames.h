/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCE v2 packets as the kernel gave them: this header, and UDP payloads one after the other, all
 * of one size but the last, which may be shorter. Those for the queue pair of another process go to
 * its slot's socket in this form.
 */
#ifndef FABRIC_FRAMES_H
#define FABRIC_FRAMES_H

#include <infiniband/verbs.h>
#include <stdint.h>

#include "tools/fabric/wire/folder.h"

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

/**
 * fab_frames_hand_on() - give packets to the process of this host that has a slot
 * @fd:    any datagram socket of AF_UNIX
 * @bytes: frames->bytes of payloads; lost if that process does not take them now
 */
void fab_frames_hand_on(int fd, const struct fab_folder *folder, unsigned int slot,
			const struct fab_frames *frames, const uint8_t *bytes);

#endif

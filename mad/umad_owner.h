/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds in /sys and /proc what keeps us from owning the CM class of a port. */
#ifndef MAD_UMAD_OWNER_H
#define MAD_UMAD_OWNER_H

#include <stdint.h>

#include "mad/umad.h"

#define UMAD_NODE_BYTES 64

/* Directories to search, and how to open nodes; tests replace them. */
struct umad_dirs {
	const char *sys;  /* "/sys" */
	const char *proc; /* "/proc" */
	const char *dev;  /* "/dev/infiniband" */
	int (*open)(const char *path, int flags, ...);
};

extern struct umad_dirs umad_dirs;

/**
 * umad_device_name() - current name of a device: udev and users rename open ones
 * @verbs_node: its verbs node, which is never renamed: "uverbs0"
 * @io:         in: its last known name; out: its current name, unchanged if unknown
 */
void umad_device_name(const char *verbs_node, char io[UMAD_NODE_BYTES]);

/**
 * umad_find_node() - find the device node of a port
 * @device:   name of the RDMA device
 * @port_num: from 1
 * @ret_node: filled in: "umad0"
 * @ret_who:  filled in on failure
 *
 * Return: 0; -ENODEV if the kernel does not know the device; -ENXIO if its port has no node;
 * -EMFILE, -ENFILE or -ENOMEM if the search failed.
 */
int umad_find_node(const char *device, uint8_t port_num, char ret_node[UMAD_NODE_BYTES],
		   struct umad_owner *ret_who);

/**
 * umad_explain_open() - find out why the node could not be opened
 * @node:    from umad_find_node()
 * @err:     errno of the attempt
 * @ret_who: filled in
 *
 * Return: the error that umad_port_open() returns.
 */
int umad_explain_open(const char *node, int err, struct umad_owner *ret_who);

/**
 * umad_explain_busy() - find the owner of the CM class of the port
 * @device:   name of the RDMA device
 * @port_num: from 1
 * @node:     from umad_find_node(), empty if there is none; the caller has closed its own
 *            descriptors of it
 * @ret_who:  filled in
 *
 * Return: -EBUSY if it is the kernel's connection manager, -EADDRINUSE if it is a process.
 */
int umad_explain_busy(const char *device, uint8_t port_num, const char *node,
		      struct umad_owner *ret_who);

#endif

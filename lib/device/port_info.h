/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a port says of itself: state, LMC, P_Keys. To ask it may be a command of firmware, which
 * takes up to half a millisecond, so the answers are kept until cmportd reports an event of the
 * device. While cmportd has no port of the device open for us, each call asks.
 *
 * The functions that ask must be called without the engine's lock; with it, the others.
 * Thread-safe.
 */
#ifndef LIB_DEVICE_PORT_INFO_H
#define LIB_DEVICE_PORT_INFO_H

#include "lib/device/device.h"

struct port_info {
	enum ibv_port_state state;
	bool is_infiniband;
	bool needs_grh; /* in all packets: between virtual functions only the GID tells the way */
	uint8_t lmc;
	uint16_t n_pkeys; /* size of the table */
};

/** port_cache_new() - make the cache of a device. Return: to be freed with free(), or NULL. */
struct port_cache *port_cache_new(uint8_t n_ports);

/** port_info() - ask a port, unless the answer is known. Return: 0 or -errno. */
int port_info(const struct device *device, uint8_t port_num, struct port_info *ret);

/**
 * port_pkey_index() - find a P_Key, of full or limited membership, in a port's table
 * @pkey: in host byte order
 *
 * Return: 0; -ENOENT: the port is not in that partition.
 */
int port_pkey_index(const struct device *device, uint8_t port_num, uint16_t pkey, uint16_t *ret);

/** port_info_read() - ask all InfiniBand ports of a device, with their P_Keys, unless all is known
 */
void port_info_read(const struct device *device);

/** port_info_known() - the last answer, zeros if there was none; asks nobody */
struct port_info port_info_known(const struct device *device, uint8_t port_num);

/** port_pkey_known() - as port_pkey_index(), of what was read last; asks nobody */
int port_pkey_known(const struct device *device, uint8_t port_num, uint16_t pkey, uint16_t *ret);

/** port_info_after_fork() - in a forked child: whatever the parent's threads were doing here */
void port_info_after_fork(void);

#endif

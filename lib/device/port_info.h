/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attributes of a port: state, LMC, P_Keys. A query may be a firmware command, which takes up to
 * half a millisecond, so the results are cached until cmportd reports an event of the device. While
 * cmportd has no port of the device open for this process, each call queries the device.
 *
 * Functions that query must be called without the engine's lock, the others with it. Thread-safe.
 */
#ifndef LIB_DEVICE_PORT_INFO_H
#define LIB_DEVICE_PORT_INFO_H

#include "lib/device/device.h"

struct port_info {
	enum ibv_port_state state;
	bool is_infiniband;
	bool needs_grh; /* required in all packets, as between virtual functions */
	uint8_t lmc;
	uint16_t n_pkeys; /* size of the table */
};

/** port_cache_new() - make the cache of a device. Return: for port_cache_free(), or NULL. */
struct port_cache *port_cache_new(uint8_t n_ports);
void port_cache_free(struct port_cache *cache, uint8_t n_ports);

/** port_info() - query a port, unless its attributes are cached. Return: 0 or -errno. */
int port_info(const struct device *device, uint8_t port_num, struct port_info *ret);

/**
 * port_pkey_index() - find a P_Key, of full or limited membership, in a port's table
 * @pkey: in host byte order
 *
 * Whatever the membership of @pkey, an entry of full membership comes before a limited one.
 *
 * Return: 0; -ENOENT: the port is not in that partition.
 */
int port_pkey_index(const struct device *device, uint8_t port_num, uint16_t pkey, uint16_t *ret);

/** port_info_read() - query all InfiniBand ports of a device and their P_Keys, unless cached */
void port_info_read(const struct device *device);

/** port_info_known() - the cached attributes, zeros if there are none; never queries */
struct port_info port_info_known(const struct device *device, uint8_t port_num);

/** port_pkey_known() - port_pkey_index() of the cached table; never queries */
int port_pkey_known(const struct device *device, uint8_t port_num, uint16_t pkey, uint16_t *ret);

/** port_info_after_fork() - in a forked child: reset the lock, which a thread may have held */
void port_info_after_fork(void);

#endif

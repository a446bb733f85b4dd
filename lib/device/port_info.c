/* SPDX-License-Identifier: BSD-2-Clause */
/* The cache of port attributes: see port_info.h. */
#include "lib/device/port_info.h"

#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/command.h"

#define PKEY_BASE 0x7fff
#define PKEY_FULL 0x8000
#define LIMITED	  1

struct port_cache {
	struct port_info info;
	unsigned int events;	/* device_events() before it was read; 0: to be read again */
	unsigned int n_queries; /* how often it was read */
	unsigned int n_pkeys;	/* of the table, those that were read: the first ones */
	unsigned int n_known;	/* with those of the query before, which are used until then */
	uint16_t *pkey;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* not held during a query */

struct port_cache *port_cache_new(uint8_t n_ports)
{
	return calloc(n_ports, sizeof(struct port_cache));
}

void port_cache_free(struct port_cache *cache, uint8_t n_ports)
{
	int i;

	for (i = 0; cache && i < n_ports; i++)
		free(cache[i].pkey);
	free(cache);
}

/* --- attributes ------------------------------------------------------------ */

/* Those with the engine's lock wait for this one. */
static void lock_cache(void)
{
	pthread_mutex_lock(&lock);
	command_forbid();
}

static void unlock_cache(void)
{
	command_permit();
	pthread_mutex_unlock(&lock);
}

static struct port_cache *cache_of(const struct device *device, uint8_t port_num)
{
	return port_num && port_num <= device->n_ports ? &device->cache[port_num - 1] : NULL;
}

static bool is_current(const struct device *device, const struct port_cache *cache)
{
	return cache->events && cache->events == device_events(device);
}

static void keep_info(struct port_cache *cache, const struct port_info *info, unsigned int events)
{
	uint16_t *pkey = calloc(info->n_pkeys + 1u, sizeof(*pkey));

	lock_cache();
	if (!cache->pkey || cache->info.n_pkeys != info->n_pkeys) {
		free(cache->pkey);
		cache->pkey = pkey;
		cache->n_known = 0;
		pkey = NULL;
	}
	cache->info = *info;
	cache->events = cache->pkey ? events : 0;
	cache->n_queries++;
	cache->n_pkeys = 0;
	unlock_cache();
	free(pkey);
}

static int query_port(const struct device *device, uint8_t port_num, struct port_info *ret)
{
	unsigned int events = device_events(device);
	struct ibv_port_attr attr;
	int err;

	command_check();
	err = ibv_query_port(device->verbs, port_num, &attr);
	if (err)
		return -err;
	*ret = (struct port_info){
		.state = attr.state,
		.is_infiniband = attr.link_layer == IBV_LINK_LAYER_INFINIBAND,
		.needs_grh = attr.flags & IBV_QPF_GRH_REQUIRED,
		.lmc = attr.lmc,
		.n_pkeys = attr.pkey_tbl_len,
	};
	keep_info(cache_of(device, port_num), ret, events);
	return 0;
}

int port_info(const struct device *device, uint8_t port_num, struct port_info *ret)
{
	struct port_cache *cache = cache_of(device, port_num);
	bool is;

	if (!cache)
		return -EINVAL;
	lock_cache();
	is = is_current(device, cache);
	if (is)
		*ret = cache->info;
	unlock_cache();
	return is ? 0 : query_port(device, port_num, ret);
}

struct port_info port_info_known(const struct device *device, uint8_t port_num)
{
	const struct port_cache *cache = cache_of(device, port_num);
	struct port_info info = { .state = IBV_PORT_NOP };

	lock_cache();
	if (cache)
		info = cache->info;
	unlock_cache();
	return info;
}

/* --- P_Keys ----------------------------------------------------------------- */

/*
 * Finds an entry of full membership before one of limited membership, among the first @n. The lock
 * is held. Return: 0; LIMITED, with the index of that; -ENOENT.
 */
static int find_pkey(const struct port_cache *cache, unsigned int n, uint16_t pkey, uint16_t *ret)
{
	int err = -ENOENT;
	unsigned int i;

	for (i = 0; i < n && err; i++) {
		if (((cache->pkey[i] ^ pkey) & PKEY_BASE) != 0)
			continue;
		if (err == -ENOENT || cache->pkey[i] & PKEY_FULL) {
			*ret = (uint16_t)i;
			err = cache->pkey[i] & PKEY_FULL ? 0 : LIMITED;
		}
	}
	return err;
}

/*
 * Reads the next entry of the table, which is a command of its own. An entry that cannot be read
 * counts as empty until the port is queried again, at the next call. Return: false if the whole
 * table was read.
 */
static bool read_next_pkey(const struct device *device, uint8_t port_num)
{
	struct port_cache *cache = cache_of(device, port_num);
	unsigned int n_queries, index;
	__be16 entry = 0;
	bool is_more;
	int err;

	lock_cache();
	n_queries = cache->n_queries;
	index = cache->n_pkeys;
	is_more = cache->pkey && index < cache->info.n_pkeys;
	unlock_cache();
	if (!is_more)
		return false;
	command_check();
	err = ibv_query_pkey(device->verbs, port_num, (int)index, &entry);
	lock_cache();
	if (cache->n_queries == n_queries && cache->n_pkeys == index) {
		cache->pkey[cache->n_pkeys++] = err ? 0 : be16toh(entry);
		if (cache->n_known < cache->n_pkeys)
			cache->n_known = cache->n_pkeys;
		cache->events = err ? 0 : cache->events;
	}
	unlock_cache();
	return true;
}

int port_pkey_index(const struct device *device, uint8_t port_num, uint16_t pkey, uint16_t *ret)
{
	struct port_cache *cache = cache_of(device, port_num);
	struct port_info info;
	int err;

	if (port_info(device, port_num, &info))
		return -ENOENT;
	do {
		lock_cache();
		err = find_pkey(cache, cache->n_pkeys, pkey, ret);
		unlock_cache();
	} while (err && read_next_pkey(device, port_num));
	return err == LIMITED ? 0 : err;
}

int port_pkey_known(const struct device *device, uint8_t port_num, uint16_t pkey, uint16_t *ret)
{
	const struct port_cache *cache = cache_of(device, port_num);
	int err = -ENOENT;

	lock_cache();
	if (cache && cache->pkey)
		err = find_pkey(cache, cache->n_known, pkey, ret);
	unlock_cache();
	return err == LIMITED ? 0 : err;
}

void port_info_read(const struct device *device)
{
	struct port_info info;
	uint8_t num;

	for (num = 1; num <= device->n_ports; num++)
		if (!port_info(device, num, &info) && info.is_infiniband &&
		    info.state == IBV_PORT_ACTIVE)
			while (read_next_pkey(device, num))
				;
}

void port_info_after_fork(void)
{
	pthread_mutex_init(&lock, NULL);
}

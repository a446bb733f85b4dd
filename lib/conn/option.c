/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_set_option(), and the getters of ports. One row per option. */
#include <endian.h>
#include <errno.h>
#include <infiniband/ib.h>
#include <infiniband/sa.h>
#include <purecm/purecm.h>
#include <string.h>

#include "lib/api.h"
#include "lib/conn/id_route.h"
#include "lib/diag/defaults.h"
#include "lib/engine/engine.h"
#include "lib/id/claims.h"

static int set_tos(struct id *id, const void *value)
{
	id->option.tos = *(const uint8_t *)value;
	id->option.has_tos = true;
	return 0;
}

static int set_reuseaddr(struct id *id, const void *value)
{
	int on;

	memcpy(&on, value, sizeof(on));
	if (on ? id->state == ID_LISTEN : id->state != ID_IDLE)
		return -EINVAL;
	id->claim.reuseaddr = on;
	return 0;
}

static int set_afonly(struct id *id, const void *value)
{
	int on;

	memcpy(&on, value, sizeof(on));
	if (id->state != ID_IDLE && id->state != ID_ADDR_BOUND)
		return -EINVAL;
	id->claim.afonly = on;
	id->option.has_afonly = true;
	return 0;
}

static int set_ack_timeout(struct id *id, const void *value)
{
	enum ibv_qp_type type = id_transport(id);

	if (type != IBV_QPT_RC && type != IBV_QPT_XRC_SEND)
		return -EINVAL;
	id->option.ack_timeout = *(const uint8_t *)value;
	id->option.has_ack_timeout = true;
	return 0;
}

static int set_connect_timeout(struct id *id, const void *value)
{
	uint32_t ms;

	memcpy(&ms, value, sizeof(ms));
	if (ms == 0 || (id->conn && id->accepted))
		return -EINVAL;
	id->option.give_up_ns = ms * CM_NS_PER_MS;
	return 0;
}

static int set_retry_waits(struct id *id, const void *value)
{
	struct purecm_retry_waits waits;

	memcpy(&waits, value, sizeof(waits));
	if ((waits.first_ms == 0) != (waits.last_ms == 0) || waits.first_ms > waits.last_ms)
		return -EINVAL;
	if (id->conn && id->accepted)
		return -EINVAL;
	id->option.waits.first_ms = waits.first_ms;
	id->option.waits.last_ms = waits.last_ms;
	return 0;
}

static int set_retries(struct id *id, const void *value)
{
	uint32_t retries;

	memcpy(&retries, value, sizeof(retries));
	if (retries > DEFAULTS_RETRIES_MAX || (id->conn && id->accepted))
		return -EINVAL;
	id->option.waits.transmissions_max = (uint8_t)(retries + 1);
	return 0;
}

static const struct {
	int level;
	int name;
	size_t bytes;
	int (*set)(struct id *id, const void *value); /* called with the engine's lock held */
} options[] = {
	{ RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 1, set_tos },
	{ RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, sizeof(int), set_reuseaddr },
	{ RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, sizeof(int), set_afonly },
	{ RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 1, set_ack_timeout },
	{ PURECM_OPTION, PURECM_OPTION_CONNECT_TIMEOUT_MS, sizeof(uint32_t), set_connect_timeout },
	{ PURECM_OPTION, PURECM_OPTION_RETRY_WAITS, sizeof(struct purecm_retry_waits),
	  set_retry_waits },
	{ PURECM_OPTION, PURECM_OPTION_RETRIES, sizeof(uint32_t), set_retries },
};

/* Only one of the paths that a program may pass is used. */
static const struct ibv_path_data *primary_path(const struct ibv_path_data *data, size_t n)
{
	const uint32_t flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY |
			       IBV_PATH_FLAG_BIDIRECTIONAL;
	size_t i;

	for (i = 0; i < n; i++)
		if (data[i].flags == flags)
			return &data[i];
	return NULL;
}

/* Replaces rdma_resolve_route(). */
static int set_ib_path(struct id *id, const void *value, size_t bytes)
{
	const struct ibv_path_data *data;
	struct sa_path record;
	uint16_t pkey_index;
	int err = -EINVAL;

	_Static_assert(sizeof(data->path) == 64, "as on the wire");
	if (!value || bytes % sizeof(*data))
		return -EINVAL;
	data = primary_path(value, bytes / sizeof(*data));
	if (!data)
		return -EINVAL;
	wire_decode(&sa_path_layout, (const uint8_t *)&data->path, &record);
	if (!engine_id_is(id, ID_ADDR_RESOLVED))
		return -EINVAL;
	pkey_index = path_find_pkey(&id->path.gid, record.pkey);
	engine_lock();
	if (id->state == ID_ADDR_RESOLVED)
		err = id->path.loopback ? -ENODEV : 0;
	if (!err)
		route_set(id, &record, pkey_index);
	engine_unlock();
	return err;
}

static int set_option(struct id *id, int level, int name, const void *value, size_t bytes)
{
	struct portd_claim claim;
	bool is_claimed;
	size_t i;
	int err;

	if (!value && bytes)
		return -EFAULT;
	if (level == RDMA_OPTION_IB && name == RDMA_OPTION_IB_PATH)
		return set_ib_path(id, value, bytes);
	for (i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		if (options[i].level != level || options[i].name != name)
			continue;
		if (!value || bytes != options[i].bytes)
			return -EINVAL;
		engine_lock();
		err = options[i].set(id, value);
		is_claimed = !err && claims_state(id, &claim);
		engine_unlock();
		if (is_claimed)
			claims_changed(&claim);
		return err;
	}
	return -ENOSYS;
}

int rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval, size_t optlen)
{
	return api_return(id_check(id) ?: set_option(id_of(id), level, optname, optval, optlen));
}

static __be16 port_of_sockaddr(const struct sockaddr *sa)
{
	switch (sa->sa_family) {
	case AF_INET:
		return ((const struct sockaddr_in *)sa)->sin_port;
	case AF_INET6:
		return ((const struct sockaddr_in6 *)sa)->sin6_port;
	case AF_IB:
		return htobe16((uint16_t)be64toh(((const struct sockaddr_ib *)sa)->sib_sid));
	}
	return 0;
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return port_of_sockaddr(&id->route.addr.src_addr);
}

__be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return port_of_sockaddr(&id->route.addr.dst_addr);
}

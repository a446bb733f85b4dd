/* SPDX-License-Identifier: BSD-2-Clause */
/* The listener of a request among the claims of a port: see ports.h. */
#include <errno.h>

#include "mad/cma_hdr.h"
#include "lib/portd/server/ports/ports_own.h"

static struct holder *holder_of(struct cm_node *node)
{
	return node ? container_of(node, struct holder, by_port) : NULL;
}

static struct cm_key key_of(uint16_t ps, uint16_t port)
{
	return (struct cm_key){ .guid = ps, .id = port };
}

int ports_add_listener(struct ports *ports, struct holder *holder)
{
	const struct cm_key key = key_of(holder->claim.ps, addr_port(&holder->claim.local));
	const struct cm_node *other = cm_index_find(&ports->listeners, &key);
	unsigned int n;

	for (n = 0; other; n++)
		other = cm_index_next(other);
	if (n >= PORTS_LISTEN_MAX)
		return -ENOSPC;
	if (cm_index_reserve(&ports->listeners, ports->listeners.table.n_nodes + 1))
		return -ENOMEM;
	cm_index_insert(&ports->listeners, &holder->by_port, &key);
	return 0;
}

/* A listener on an address belongs to the device of that address only. */
static bool hears_device(const struct holder *holder, uint64_t handles)
{
	return holder->listening && (!holder->heard_at || (holder->heard_at <= PORTD_PORTS_MAX &&
							   handles >> (holder->heard_at - 1) & 1));
}

static bool wants_destination(const struct port_claim *claim, const union addr *dst,
			      unsigned int ifindex)
{
	union addr scoped = *dst;

	/* the listener itself checks the GID */
	if (addr_is_ib(dst))
		return addr_is_ib(&claim->local);
	/* A header has no scope. */
	if (addr_is_link_local(dst))
		scoped.in6.sin6_scope_id = ifindex ? ifindex : addr_scope(&claim->local);
	return port_claim_accepts(claim, &scoped);
}

/* Private data without the header of the IP CM service belongs to an AF_IB request. */
static union addr destination_of(const uint8_t *data, uint16_t port)
{
	struct cma_hdr hdr;
	union addr dst;

	addr_unpack(cma_hdr_read(data, &hdr) ? hdr.ip_version : AF_IB, hdr.dst_addr, port, 0, &dst);
	return dst;
}

uint16_t ports_listener(const struct ports *ports, const struct ports_request *request)
{
	uint16_t ps = (uint16_t)(request->service_id >> 16);
	uint16_t port = (uint16_t)request->service_id;
	const struct cm_key key = key_of(ps, port);
	const struct holder *holder = holder_of(cm_index_find(&ports->listeners, &key));
	uint16_t found = PORTS_NOBODY;
	union addr dst;

	if (!holder || request->service_id != cma_service_id(ps, port))
		return PORTS_NOBODY;
	dst = destination_of(request->data, port);
	for (; holder; holder = holder_of(cm_index_next(&holder->by_port))) {
		if (!hears_device(holder, request->handles))
			continue;
		if (wants_destination(&holder->claim, &dst, request->ifindex))
			return holder->client;
		found = PORTS_NOT_FOR_THEM;
	}
	return found;
}

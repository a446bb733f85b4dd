/* SPDX-License-Identifier: BSD-2-Clause */
/* The listener of a request among the claims of a port: see ports.h. */
#include "mad/cma_hdr.h"
#include "lib/portd/server/ports_own.h"

/* A listener on an address belongs to the device of that address only. */
static bool hears_device(const struct holder *holder, uint64_t handles)
{
	return holder->listening && (!holder->heard_at || (holder->heard_at <= PORTD_PORTS_MAX &&
							   handles >> (holder->heard_at - 1) & 1));
}

static bool wants_destination(const struct port_claim *claim, const union addr *dst)
{
	union addr scoped = *dst;

	/* the listener itself checks the GID */
	if (addr_is_ib(dst))
		return addr_is_ib(&claim->local);
	/* A header has no scope; the request arrived on the interface of the claim. */
	if (addr_is_link_local(dst))
		scoped.in6.sin6_scope_id = addr_scope(&claim->local);
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

uint16_t ports_listener(const struct ports *ports, uint64_t service_id, const uint8_t *data,
			uint64_t handles)
{
	uint16_t ps = (uint16_t)(service_id >> 16);
	uint16_t port = (uint16_t)service_id;
	uint16_t found = PORTS_NOBODY;
	const struct port_claim *claim;
	union addr dst;

	if (service_id != cma_service_id(ps, port))
		return PORTS_NOBODY;
	dst = destination_of(data, port);
	for (claim = port_space_first(&ports->space, ps, port); claim; claim = claim->next) {
		const struct holder *holder = (const struct holder *)claim;

		if (!hears_device(holder, handles))
			continue;
		if (wants_destination(claim, &dst))
			return holder->client;
		found = PORTS_NOT_FOR_THEM;
	}
	return found;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Texts of failures: see failure.h. purecm_last_failure(). */
#include "lib/diag/failure.h"

#include <errno.h>
#include <purecm/purecm.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/api.h"
#include "lib/diag/lock_order.h"
#include "lib/diag/warning.h"

struct phrase {
	int err; /* 0 ends a table */
	const char *text;
};

static const struct phrase address_phrases[] = {
	{ EADDRNOTAVAIL, "no interface of this host has this address" },
	{ ENODEV, "its interface has no RDMA device" },
	{ EINVAL,
	  "it is link-local without a scope id, or its interface does not suit the port space" },
	{ 0, NULL },
};

static const struct phrase port_phrases[] = {
	{ EADDRINUSE, "another id is bound to the port" },
	{ EADDRNOTAVAIL, "another id is bound to the port, and one of the two to all addresses" },
	{ EACCES, "a port below 1024 needs CAP_NET_BIND_SERVICE; "
		  "any port needs a cmportd that this user can reach or start" },
	{ 0, NULL },
};

static const struct phrase route_phrases[] = {
	{ ENETUNREACH, "the kernel has no route to it" },
	{ EHOSTUNREACH, "the kernel's route to it is of type unreachable" },
	{ EACCES,
	  "the kernel's route to it is of type prohibit, or the umad node cannot be opened" },
	{ ENODEV, "no RDMA device has an active port" },
	{ ENXIO, "the port has no umad node; try modprobe ib_umad" },
	{ EBUSY, "the kernel's ib_cm owns the CM class of the port" },
	{ EADDRINUSE, "another process owns the CM class of the port" },
	{ 0, NULL },
};

static const char *phrase_of(const struct phrase *table, int err)
{
	for (; table->err; table++)
		if (table->err == -err)
			return table->text;
	return strerror(-err);
}

__attribute__((format(printf, 2, 3))) static void set_failure(struct id *id, const char *format,
							      ...)
{
	char *text, *before;
	va_list args;
	int n;

	va_start(args, format);
	n = vasprintf(&text, format, args);
	va_end(args);
	if (n < 0)
		return; /* out of memory: no text */
	warning_of_failure(text);
	lock_take(&id->lock, LOCK_ID);
	before = id->failure;
	id->failure = text;
	lock_give(&id->lock, LOCK_ID);
	free(before);
}

static const char *iface_name(unsigned int ifindex, struct net_iface *iface)
{
	return net_iface_get(ifindex, iface) ? "a removed interface" : iface->name;
}

void failure_of_address(struct id *id, const union addr *addr, int err)
{
	char at[ADDR_STR_BYTES];

	set_failure(id, "local address %s: %s", addr_str(addr, at),
		    phrase_of(address_phrases, err));
}

void failure_of_port(struct id *id, const union addr *addr, int err)
{
	char at[ADDR_STR_BYTES];

	set_failure(id, "local address %s: %s", addr_str(addr, at), phrase_of(port_phrases, err));
}

void failure_of_route(struct id *id, const union addr *dst, int err)
{
	char to[ADDR_STR_BYTES], from[ADDR_STR_BYTES];

	set_failure(id, "destination %s from %s: %s", addr_str(dst, to),
		    addr_str(&id->claim.local, from), phrase_of(route_phrases, err));
}

void failure_of_device(struct id *id, const union addr *dst, const struct net_route *route, int err)
{
	char to[ADDR_STR_BYTES], from[ADDR_STR_BYTES];
	struct net_iface iface;

	set_failure(id,
		    "destination %s: the route from %s leaves by %s, which has no RDMA device: %s",
		    addr_str(dst, to), addr_str(&route->src, from),
		    iface_name(route->ifindex, &iface), strerror(-err));
}

void failure_of_neighbour(struct id *id)
{
	const struct net_route *route = &id->path.route;
	char to[ADDR_STR_BYTES], hop[ADDR_STR_BYTES];
	struct net_iface iface;

	set_failure(id, "destination %s: the link address of %s %s on %s was not resolved in time",
		    addr_str(&id->claim.peer, to), route->gateway ? "gateway" : "host",
		    addr_str(&route->next_hop, hop), iface_name(route->ifindex, &iface));
}

void failure_of_move(struct id *id, const uint8_t from[NET_ETHERNET_HW_BYTES],
		     const uint8_t to[NET_ETHERNET_HW_BYTES])
{
	char peer[ADDR_STR_BYTES];

	set_failure(id,
		    "destination %s: its link address was %02x:%02x:%02x:%02x:%02x:%02x when the "
		    "route was resolved, and is %02x:%02x:%02x:%02x:%02x:%02x now",
		    addr_str(&id->claim.peer, peer), from[0], from[1], from[2], from[3], from[4],
		    from[5], to[0], to[1], to[2], to[3], to[4], to[5]);
}

void failure_of_path(struct id *id, int err)
{
	char to[ADDR_STR_BYTES];
	struct net_iface iface;

	addr_str(&id->claim.peer, to);
	if (id->path.loopback)
		set_failure(id, "destination %s: loopback addresses have no RDMA device", to);
	else if (err == -EINVAL && !net_iface_get(id->path.route.ifindex, &iface))
		set_failure(id, "destination %s: the MTU of %s, %u, is too small for RoCE", to,
			    iface.name, iface.mtu);
	else
		set_failure(id, "destination %s: no path: %s", to, strerror(-err));
}

void failure_of_answer(struct id *id)
{
	char peer[ADDR_STR_BYTES];

	set_failure(id, "peer %s: no answer; purecm explain --recorded shows what was sent",
		    addr_str(&id->claim.peer, peer));
}

static int last_failure(struct id *id, char *text, size_t bytes)
{
	int err = 0;

	lock_take(&id->lock, LOCK_ID);
	if (id->failure)
		snprintf(text, bytes, "%s", id->failure);
	else
		err = -ENOENT;
	lock_give(&id->lock, LOCK_ID);
	return err;
}

int purecm_last_failure(struct rdma_cm_id *id, char *text, size_t bytes)
{
	if (!text || !bytes)
		return api_return(-EINVAL);
	return api_return(id_check(id) ?: last_failure(id_of(id), text, bytes));
}

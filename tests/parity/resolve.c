/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parity: address and route resolution, successful and failed. run.py has prepared the routes used
 * here.
 */
#include "steps.h"

/* Long enough for a second call while the first one is pending. */
#define SILENT_MS 2000

static void start_resolve(struct scene *s, struct rdma_cm_id *id, struct sockaddr *src,
			  struct sockaddr *dst)
{
	if (!DO(rdma_resolve_addr(id, src, dst, RESOLVE_MS)))
		take_event(s);
	show_id(id);
}

static void route_and_show(struct scene *s, struct rdma_cm_id *id)
{
	if (!DO(rdma_resolve_route(id, RESOLVE_MS)))
		take_event(s);
	has_flow_of_ports(rdma_get_src_port(id), rdma_get_dst_port(id));
	show_id(id);
}

static void peer_resolves_step_by_step(struct scene *s)
{
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);

	DO(rdma_resolve_addr(id, NULL, at(&s->peer, s->port), RESOLVE_MS));
	show_address("dst at once", rdma_get_peer_addr(id));
	take_event(s);
	show_id(id);
	route_and_show(s, id);
	close_id(id);
}

static void source_can_be_chosen(struct scene *s)
{
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);

	start_resolve(s, id, at(&s->self, 0), at(&s->peer, s->port));
	close_id(id);
	id = open_id(s, "id", RDMA_PS_TCP);
	start_resolve(s, id, at(&s->self, s->port), at(&s->peer, s->port));
	close_id(id);
	id = open_id(s, "id", RDMA_PS_TCP);
	start_resolve(s, id, any(s, s->port), at(&s->peer, s->port));
	close_id(id);
	id = open_id(s, "id", RDMA_PS_TCP);
	start_resolve(s, id, numeric("203.0.113.9", 0), at(&s->peer, s->port));
	start_resolve(s, id, NULL, at(&s->peer, s->port));
	close_id(id);
}

static void bound_id_ignores_the_source(struct scene *s)
{
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);

	DO(rdma_bind_addr(id, at(&s->self, s->port)));
	start_resolve(s, id, numeric("203.0.113.9", 99), at(&s->peer, s->port));
	route_and_show(s, id);
	close_id(id);
	id = open_id(s, "id", RDMA_PS_TCP);
	DO(rdma_bind_addr(id, any(s, s->port)));
	start_resolve(s, id, NULL, at(&s->peer, s->port));
	close_id(id);
}

static void families_must_match(struct scene *s)
{
	const char *other = s->family == AF_INET ? "::1:2:3" : "192.0.2.1";
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);

	DO(rdma_bind_addr(id, at(&s->self, 0)));
	start_resolve(s, id, NULL, numeric(other, 5));
	start_resolve(s, id, NULL, at(&s->peer, 5));
	close_id(id);
	id = open_id(s, "id", RDMA_PS_TCP);
	start_resolve(s, id, at(&s->self, 0), numeric(other, 5));
	close_id(id);
}

static void silent_neighbour_times_out(struct scene *s)
{
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);

	DO(rdma_resolve_addr(id, NULL, beside(s, SILENT, s->port), SILENT_MS));
	DO(rdma_resolve_addr(id, NULL, at(&s->peer, s->port), RESOLVE_MS));
	take_event(s);
	show_id(id);
	start_resolve(s, id, NULL, at(&s->peer, s->port));
	route_and_show(s, id);
	close_id(id);
}

/* One id for each address: a call that fails at once leaves the id unchanged. */
static void unreachable_peer_is_reported(struct scene *s, const char *why, const char *addr)
{
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);

	SAY("%s", why);
	start_resolve(s, id, NULL, numeric(addr, s->port));
	start_resolve(s, id, NULL, at(&s->peer, s->port));
	close_id(id);
}

static void routing_errors_are_reported(struct scene *s)
{
	const bool v4 = s->family == AF_INET;

	unreachable_peer_is_reported(s, "no route", v4 ? "203.0.113.9" : "2001:db8:ffff::9");
	unreachable_peer_is_reported(s, "unreachable_peer_is_reported route",
				     v4 ? "198.51.100.1" : "2001:db8:1::1");
	unreachable_peer_is_reported(s, "prohibit route", v4 ? "198.51.101.1" : "2001:db8:2::1");
	unreachable_peer_is_reported(s, "blackhole route", v4 ? "198.51.102.1" : "2001:db8:3::1");
	unreachable_peer_is_reported(s, "route without RDMA device",
				     v4 ? "198.51.103.1" : "2001:db8:4::1");
}

static void odd_destinations_are_refused(struct scene *s)
{
	struct rdma_cm_id *id;

	id = open_id(s, "to wildcard", RDMA_PS_TCP);
	start_resolve(s, id, NULL, any(s, s->port));
	route_and_show(s, id);
	close_id(id);
	id = open_id(s, "to loopback", RDMA_PS_TCP);
	start_resolve(s, id, NULL, loopback(s, s->port));
	route_and_show(s, id);
	close_id(id);
	id = open_id(s, "to group", RDMA_PS_UDP);
	start_resolve(s, id, NULL, numeric(s->family == AF_INET ? "239.1.2.3" : "ff0e::123", 9));
	close_id(id);
}

static void routes_are_resolved_once(struct scene *s)
{
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);

	DO(rdma_bind_addr(id, at(&s->self, 0)));
	DO(rdma_resolve_route(id, RESOLVE_MS));
	start_resolve(s, id, NULL, at(&s->peer, s->port));
	DO(rdma_resolve_addr(id, NULL, at(&s->peer, s->port), RESOLVE_MS));
	DO(rdma_resolve_route(id, RESOLVE_MS));
	DO(rdma_resolve_route(id, RESOLVE_MS));
	take_event(s);
	DO(rdma_resolve_route(id, RESOLVE_MS));
	DO(rdma_resolve_addr(id, NULL, at(&s->peer, s->port), RESOLVE_MS));
	show_quiet(s->channel);
	close_id(id);
}

static void timeouts_of_zero_are_accepted(struct scene *s)
{
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);

	if (!DO(rdma_resolve_addr(id, NULL, at(&s->peer, s->port), 0)))
		take_event(s);
	if (!DO(rdma_resolve_route(id, 0)))
		take_event(s);
	close_id(id);
}

static void every_port_space_resolves(struct scene *s)
{
	static const int spaces[] = { RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IB, RDMA_PS_IPOIB };
	struct rdma_cm_id *id;
	size_t i;

	for (i = 0; i < 4; i++) {
		id = open_id(s, "id", spaces[i]);
		SAY("port space %#x", (unsigned)spaces[i]);
		start_resolve(s, id, NULL, at(&s->peer, s->port));
		close_id(id);
	}
}

const struct scenario resolve_scenarios[] = {
	LOCAL("resolve-peer", peer_resolves_step_by_step, 0,
	      "the id's fields after each step to a living peer"),
	LOCAL("resolve-source", source_can_be_chosen, 0,
	      "a source address, a source port, a wildcard and a foreign source"),
	LOCAL("resolve-bound", bound_id_ignores_the_source, 0,
	      "resolving on an id that is bound already"),
	LOCAL("resolve-families", families_must_match, 0,
	      "source and destination of different families"),
	LOCAL("resolve-silent", silent_neighbour_times_out, 0,
	      "an address nobody answers for: ADDR_ERROR, and the id can be used again"),
	LOCAL("resolve-unreachable_peer_is_reported", routing_errors_are_reported, 0,
	      "addresses that the routing table refuses"),
	LOCAL("resolve-odd", odd_destinations_are_refused, 0,
	      "wildcard, loopback and multicast destinations"),
	LOCAL("resolve-order", routes_are_resolved_once, 0, "steps too early, twice, and too late"),
	LOCAL("resolve-timeout-zero", timeouts_of_zero_are_accepted, 0, "a timeout of zero"),
	LOCAL("resolve-spaces", every_port_space_resolves, 0,
	      "address resolution in every port space"),
	LAST_SCENARIO,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/* Parity: address resolution with sources, scopes, timeouts and rules that are seldom used. */
#include <limits.h>
#include <net/if.h>
#include <netdb.h>

#include "steps.h"

static void start_resolve(struct scene *s, struct rdma_cm_id *id, struct sockaddr *src,
			  struct sockaddr *dst)
{
	if (!DO(rdma_resolve_addr(id, src, dst, RESOLVE_MS)))
		take_event(s);
}

/* Without a device, stock ends with SIGSEGV in rdma_resolve_route(). */
static void resolve_and_show(struct scene *s, struct rdma_cm_id *id, struct sockaddr *src,
			     struct sockaddr *dst)
{
	start_resolve(s, id, src, dst);
	if (id->verbs && !DO(rdma_resolve_route(id, RESOLVE_MS)))
		take_event(s);
	flow_is_from_ports(rdma_get_src_port(id), rdma_get_dst_port(id));
	show_id(id);
	close_id(id);
}

static struct rdma_cm_id *bound_to(struct scene *s, struct sockaddr *addr)
{
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);

	DO(rdma_bind_addr(id, addr));
	return id;
}

static void bound_source_stays(struct scene *s)
{
	SAY("own to wildcard");
	resolve_and_show(s, bound_to(s, at(&s->self, 0)), NULL, any(s, s->port));
	SAY("own to loopback");
	resolve_and_show(s, bound_to(s, at(&s->self, 0)), NULL, loopback(s, s->port));
	SAY("own to own");
	resolve_and_show(s, bound_to(s, at(&s->self, 0)), NULL, at(&s->self, s->port));
	SAY("loopback to peer");
	resolve_and_show(s, bound_to(s, loopback(s, 0)), NULL, at(&s->peer, s->port));
	SAY("loopback to own");
	resolve_and_show(s, bound_to(s, loopback(s, 0)), NULL, at(&s->self, s->port));
	SAY("loopback to loopback");
	resolve_and_show(s, bound_to(s, loopback(s, 0)), NULL, loopback(s, s->port));
	SAY("loopback to wildcard");
	resolve_and_show(s, bound_to(s, loopback(s, 0)), NULL, any(s, s->port));
	SAY("wildcard to loopback");
	resolve_and_show(s, bound_to(s, any(s, 0)), NULL, loopback(s, s->port));
	SAY("wildcard to own");
	resolve_and_show(s, bound_to(s, any(s, 0)), NULL, at(&s->self, s->port));
	SAY("given own to loopback");
	resolve_and_show(s, open_id(s, "id", RDMA_PS_TCP), at(&s->self, 0), loopback(s, s->port));
	SAY("given own to wildcard");
	resolve_and_show(s, open_id(s, "id", RDMA_PS_TCP), at(&s->self, 0), any(s, s->port));
	SAY("given loopback to peer");
	resolve_and_show(s, open_id(s, "id", RDMA_PS_TCP), loopback(s, 0), at(&s->peer, s->port));
}

/* An address in another scope; 0: without. */
static struct sockaddr *scoped(const struct sockaddr_storage *addr, const char *interface,
			       uint16_t port)
{
	struct sockaddr_storage copy = *addr;

	((struct sockaddr_in6 *)&copy)->sin6_scope_id = interface ? if_nametoindex(interface) : 0;
	return at(&copy, port);
}

static void scope_is_missing(struct scene *s, struct sockaddr *bare)
{
	SAY("unbound");
	resolve_and_show(s, open_id(s, "id", RDMA_PS_TCP), NULL, bare);
	SAY("bound");
	resolve_and_show(s, bound_to(s, at(&s->self, 0)), NULL, bare);
	SAY("given source");
	resolve_and_show(s, open_id(s, "id", RDMA_PS_TCP), at(&s->self, 0), bare);
	SAY("given source without scope");
	resolve_and_show(s, open_id(s, "id", RDMA_PS_TCP), scoped(&s->self, NULL, 0), bare);
	SAY("bound to the wildcard");
	resolve_and_show(s, bound_to(s, any(s, 0)), NULL, bare);
	SAY("bound to a global address");
	resolve_and_show(s, bound_to(s, numeric("fd00:77::1", 0)), NULL, bare);
	SAY("to the own address");
	resolve_and_show(s, open_id(s, "id", RDMA_PS_TCP), NULL, scoped(&s->self, NULL, s->port));
}

static void scope_is_another(struct scene *s, struct sockaddr *other)
{
	SAY("to another scope, unbound");
	resolve_and_show(s, open_id(s, "id", RDMA_PS_TCP), NULL, other);
	SAY("to another scope, bound");
	resolve_and_show(s, bound_to(s, at(&s->self, 0)), NULL, other);
	SAY("to another scope, given source");
	resolve_and_show(s, open_id(s, "id", RDMA_PS_TCP), at(&s->self, 0), other);
}

/* With link-local addresses of both hosts only. */
static void scope_may_be_missing(struct scene *s)
{
	if (!IN6_IS_ADDR_LINKLOCAL(&((struct sockaddr_in6 *)&s->peer)->sin6_addr))
		return;
	scope_is_missing(s, scoped(&s->peer, NULL, s->port));
	scope_is_another(s, scoped(&s->peer, "norma", s->port));
}

static void forget_peer(void)
{
	shell("ip neigh flush all; ip -6 neigh flush all");
}

static void negative_timeouts(struct scene *s)
{
	static const int timeouts[] = { -1, INT_MIN, -100 };
	struct rdma_cm_id *id;
	size_t i;

	for (i = 0; i < sizeof(timeouts) / sizeof(timeouts[0]); i++) {
		SAY("timeout %d", timeouts[i]);
		forget_peer();
		id = open_id(s, "id", RDMA_PS_TCP);
		if (!DO(rdma_resolve_addr(id, NULL, at(&s->peer, s->port), timeouts[i])))
			take_event(s);
		if (!DO(rdma_resolve_route(id, timeouts[i])))
			take_event(s);
		close_id(id);
	}
}

static void try_rule(struct scene *s, const char *rule)
{
	const char *six = s->family == AF_INET6 ? "-6" : "";
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);
	char peer[INET6_ADDRSTRLEN];

	getnameinfo((struct sockaddr *)&s->peer, sizeof(s->peer), peer, sizeof(peer), NULL, 0,
		    NI_NUMERICHOST);
	SAY("rule %s", rule);
	shell("ip %s route replace unreachable default table 77", six);
	shell("ip %s rule add to %s %s lookup 77 priority 10", six, peer, rule);
	start_resolve(s, id, NULL, at(&s->peer, s->port));
	shell("ip %s rule del priority 10", six);
	close_id(id);
}

static void rules_of_ports_and_protocols(struct scene *s)
{
	static const char *const rules[] = {
		"",
		"ipproto udp",
		"ipproto tcp",
		"dport 4791",
		"ipproto udp dport 4791",
		"sport 1-65534",
		"uidrange 0-0",
		"uidrange 1-1000000",
	};

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		try_rule(s, rules[i]);
}

const struct scenario resolve_odd_scenarios[] = {
	LOCAL("resolve-from-bound", bound_source_stays, 0,
	      "a bound source and destinations of this host, and a bound loopback address"),
	LOCAL("resolve-scopeless", scope_may_be_missing, V6_ONLY,
	      "link-local destinations without a scope, and with another one"),
	LOCAL("resolve-timeout-negative", negative_timeouts, ALONE, "negative timeouts"),
	LOCAL("resolve-rules", rules_of_ports_and_protocols, ALONE,
	      "routing rules with protocols, ports and users"),
	LAST_SCENARIO,
};

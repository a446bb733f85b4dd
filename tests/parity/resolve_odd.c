/* SPDX-License-Identifier: BSD-2-Clause */
/* Parity: address resolution with rarely used sources, scopes, timeouts and rules. */
#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <net/if.h>
#include <netdb.h>

#include <infiniband/ib.h>

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
	has_flow_of_ports(rdma_get_src_port(id), rdma_get_dst_port(id));
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

/* An address in another scope; 0: without a scope. */
static struct sockaddr *scoped(const struct sockaddr_storage *addr, const char *interface,
			       uint16_t port)
{
	struct sockaddr_storage copy = *addr;

	((struct sockaddr_in6 *)&copy)->sin6_scope_id = interface ? if_nametoindex(interface) : 0;
	return at(&copy, port);
}

static void resolve_without_scope(struct scene *s, struct sockaddr *bare)
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

static void resolve_with_another_scope(struct scene *s, struct sockaddr *other)
{
	SAY("to another scope, unbound");
	resolve_and_show(s, open_id(s, "id", RDMA_PS_TCP), NULL, other);
	SAY("to another scope, bound");
	resolve_and_show(s, bound_to(s, at(&s->self, 0)), NULL, other);
	SAY("to another scope, given source");
	resolve_and_show(s, open_id(s, "id", RDMA_PS_TCP), at(&s->self, 0), other);
}

/* Needs link-local addresses of both hosts. */
static void resolve_with_optional_scope(struct scene *s)
{
	if (!IN6_IS_ADDR_LINKLOCAL(&((struct sockaddr_in6 *)&s->peer)->sin6_addr))
		return;
	resolve_without_scope(s, scoped(&s->peer, NULL, s->port));
	resolve_with_another_scope(s, scoped(&s->peer, "norma", s->port));
}

static void forget_peer(void)
{
	shell("ip neigh flush all; ip -6 neigh flush all");
}

static void resolve_with_negative_timeouts(struct scene *s)
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
		"ipproto 17",
		"ipproto 6",
		"dport 4791",
		"ipproto 17 dport 4791",
		"sport 1-65534",
		"uidrange 0-0",
		"uidrange 1-1000000",
	};

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		try_rule(s, rules[i]);
}

/* --- AF_IB ---------------------------------------------------------------- */

/* The GID that a RoCE port has for an IP address; @ip may be NULL: the wildcard address. */
static struct sockaddr_ib gid_of(const struct sockaddr_storage *ip, enum rdma_port_space ps,
				 uint16_t port)
{
	struct sockaddr_ib ib = { .sib_family = AF_IB,
				  .sib_pkey = htobe16(0xffff),
				  .sib_sid = htobe64((uint64_t)ps << 16 | port),
				  .sib_sid_mask = htobe64(UINT64_MAX) };

	if (!ip)
		return ib;
	if (ip->ss_family == AF_INET6) {
		memcpy(&ib.sib_addr, &((const struct sockaddr_in6 *)ip)->sin6_addr, 16);
		return ib;
	}
	memset(ib.sib_addr.sib_raw + 10, 0xff, 2);
	memcpy(ib.sib_addr.sib_raw + 12, &((const struct sockaddr_in *)ip)->sin_addr, 4);
	return ib;
}

/* Prints the failing call: with stock, GIDs of RoCE ports are resolved, but have no routes. */
static void resolve_gid(struct scene *s, enum rdma_port_space ps, const char *how,
			struct sockaddr_ib *from, struct sockaddr_ib *to)
{
	struct rdma_cm_id *id = open_id(s, "id", ps);

	if (rdma_resolve_addr(id, (struct sockaddr *)from, (struct sockaddr *)to, RESOLVE_MS)) {
		SAY("%s: no address: %s", how, strerrorname_np(errno));
	} else {
		expect_event(s, RDMA_CM_EVENT_ADDR_RESOLVED);
		if (rdma_resolve_route(id, RESOLVE_MS))
			SAY("%s: no route: %s", how, strerrorname_np(errno));
		else
			take_event(s);
	}
	close_id(id);
}

static void resolve_gids_in_space(struct scene *s, enum rdma_port_space ps)
{
	struct sockaddr_ib own = gid_of(&s->self, ps, 0), peer = gid_of(&s->peer, ps, s->port);
	struct sockaddr_ib here = gid_of(&s->self, ps, s->port),
			   any_gid = gid_of(NULL, ps, s->port);
	struct rdma_cm_id *id;

	resolve_gid(s, ps, "to own", NULL, &here);
	resolve_gid(s, ps, "to the peer's", NULL, &peer);
	resolve_gid(s, ps, "to the wildcard", NULL, &any_gid);
	resolve_gid(s, ps, "from own to own", &own, &here);
	resolve_gid(s, ps, "from own to the peer's", &own, &peer);
	SAY("at own");
	id = open_id(s, "id", ps);
	DO(rdma_bind_addr(id, (struct sockaddr *)&here));
	close_id(id);
	SAY("at the wildcard");
	id = open_id(s, "id", ps);
	if (!DO(rdma_bind_addr(id, (struct sockaddr *)&any_gid)))
		DO(rdma_listen(id, 1));
	close_id(id);
}

static void resolve_gids_of_roce(struct scene *s)
{
	SAY("TCP");
	resolve_gids_in_space(s, RDMA_PS_TCP);
	SAY("UDP");
	resolve_gids_in_space(s, RDMA_PS_UDP);
	SAY("IB");
	resolve_gids_in_space(s, RDMA_PS_IB);
}

const struct scenario resolve_odd_scenarios[] = {
	LOCAL("resolve-from-bound", bound_source_stays, 0,
	      "a bound source and destinations of this host, and a bound loopback address"),
	LOCAL("resolve-scopeless", resolve_with_optional_scope, V6_ONLY,
	      "link-local destinations without a scope, and with another one"),
	LOCAL("resolve-timeout-negative", resolve_with_negative_timeouts, ALONE,
	      "negative timeouts"),
	LOCAL("resolve-rules", rules_of_ports_and_protocols, ALONE,
	      "routing rules with protocols, ports and users"),
	LOCAL("resolve-gid", resolve_gids_of_roce, 0, "AF_IB addresses: GIDs of RoCE ports"),
	LAST_SCENARIO,
};

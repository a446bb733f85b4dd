/* SPDX-License-Identifier: BSD-2-Clause */
/* Parity: binding an id to an address. Conflicts between ids are in conflict.c. */
#include <ifaddrs.h>
#include <linux/capability.h>
#include <net/if.h>
#include <sys/syscall.h>

#include "steps.h"

static void bind_and_show(struct scene *s, enum rdma_port_space ps, struct sockaddr *addr)
{
	struct rdma_cm_id *id = open_id(s, "id", ps);

	DO(rdma_bind_addr(id, addr));
	show_id(id);
	close_id(id);
}

static void wildcard_gets_a_port_but_no_device(struct scene *s)
{
	bind_and_show(s, RDMA_PS_TCP, any(s, 0));
	bind_and_show(s, RDMA_PS_TCP, any(s, s->port));
	bind_and_show(s, RDMA_PS_UDP, any(s, s->port));
	bind_and_show(s, RDMA_PS_IB, any(s, s->port));
	bind_and_show(s, RDMA_PS_IPOIB, any(s, s->port));
}

static void own_address_gets_a_device(struct scene *s)
{
	bind_and_show(s, RDMA_PS_TCP, at(&s->self, 0));
	bind_and_show(s, RDMA_PS_TCP, at(&s->self, s->port));
	bind_and_show(s, RDMA_PS_UDP, at(&s->self, s->port));
	bind_and_show(s, RDMA_PS_IB, at(&s->self, s->port));
	bind_and_show(s, RDMA_PS_IPOIB, at(&s->self, s->port));
}

static void loopback_counts_as_wildcard(struct scene *s)
{
	bind_and_show(s, RDMA_PS_TCP, loopback(s, 0));
	bind_and_show(s, RDMA_PS_TCP, loopback(s, s->port));
	if (s->family == AF_INET)
		bind_and_show(s, RDMA_PS_TCP, numeric("127.1.2.3", s->port));
}

static void unassigned_addresses_are_refused(struct scene *s)
{
	bind_and_show(s, RDMA_PS_TCP, at(&s->peer, s->port));
	if (s->family == AF_INET) {
		bind_and_show(s, RDMA_PS_TCP, numeric("203.0.113.9", s->port));
		bind_and_show(s, RDMA_PS_TCP, numeric("224.1.2.3", s->port));
		bind_and_show(s, RDMA_PS_TCP, numeric("255.255.255.255", s->port));
	} else {
		bind_and_show(s, RDMA_PS_TCP, numeric("2001:db8:ffff::9", s->port));
		bind_and_show(s, RDMA_PS_TCP, numeric("ff0e::123", s->port));
	}
}

static bool own_link_local_address_is_accepted(struct sockaddr_in6 *found)
{
	const struct sockaddr_in6 *addr;
	struct ifaddrs *all, *one;
	bool ok = false;

	if (getifaddrs(&all))
		give_up("getifaddrs: %s", strerror(errno));
	for (one = all; one && !ok; one = one->ifa_next) {
		addr = (const void *)one->ifa_addr;
		if (!addr || addr->sin6_family != AF_INET6 ||
		    !IN6_IS_ADDR_LINKLOCAL(&addr->sin6_addr))
			continue;
		*found = *addr;
		ok = true;
	}
	freeifaddrs(all);
	return ok;
}

/* Omits fields of the id that differ after the failure. */
static void scope_of_lo_is_refused(struct scene *s, struct sockaddr_storage addr)
{
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);
	struct sockaddr *on_lo;

	((struct sockaddr_in6 *)&addr)->sin6_scope_id = if_nametoindex("lo");
	on_lo = at(&addr, s->port);
	DO(rdma_bind_addr(id, on_lo));
	close_id(id);
}

static void link_local_needs_its_scope(struct scene *s)
{
	struct sockaddr_storage addr = { 0 };
	struct sockaddr_in6 *v6 = (void *)&addr;
	uint32_t scope;

	if (!own_link_local_address_is_accepted(v6))
		give_up("this host has no link-local address");
	scope = v6->sin6_scope_id;
	bind_and_show(s, RDMA_PS_TCP, at(&addr, s->port));
	v6->sin6_scope_id = 0;
	bind_and_show(s, RDMA_PS_TCP, at(&addr, s->port));
	scope_of_lo_is_refused(s, addr);
	v6->sin6_scope_id = 9999;
	bind_and_show(s, RDMA_PS_TCP, at(&addr, s->port));
	v6->sin6_scope_id = scope;
	v6->sin6_addr.s6_addr[15] ^= 0x55;
	bind_and_show(s, RDMA_PS_TCP, at(&addr, s->port));
}

static void second_bind_is_refused(struct scene *s)
{
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);

	DO(rdma_bind_addr(id, any(s, 0)));
	DO(rdma_bind_addr(id, at(&s->self, 0)));
	show_id(id);
	close_id(id);
	id = open_id(s, "id", RDMA_PS_TCP);
	DO(rdma_bind_addr(id, at(&s->peer, s->port)));
	DO(rdma_bind_addr(id, at(&s->self, s->port)));
	show_id(id);
	close_id(id);
}

static void drop_bind_service(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		give_up("capget: %s", strerror(errno));
	data[0].effective &= ~(1u << CAP_NET_BIND_SERVICE);
	if (syscall(SYS_capset, &header, data))
		give_up("capset: %s", strerror(errno));
}

static void low_ports_need_a_capability(struct scene *s)
{
	bind_and_show(s, RDMA_PS_TCP, any(s, 1023));
	bind_and_show(s, RDMA_PS_UDP, at(&s->self, 1));
	drop_bind_service();
	/* Stock accepts no calls on a descriptor that was opened with other capabilities. */
	rdma_destroy_event_channel(s->channel);
	open_channel(s);
	bind_and_show(s, RDMA_PS_TCP, any(s, 1023));
	bind_and_show(s, RDMA_PS_UDP, at(&s->self, 1));
	bind_and_show(s, RDMA_PS_TCP, any(s, 1024));
}

static void listening_without_bind_takes_v4(struct scene *s)
{
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);

	DO(rdma_listen(id, 0));
	show_id(id);
	DO(rdma_listen(id, 5));
	close_id(id);
	id = open_id(s, "id", RDMA_PS_TCP);
	DO(rdma_bind_addr(id, at(&s->self, 0)));
	DO(rdma_listen(id, 1000000));
	show_id(id);
	close_id(id);
}

static void ephemeral_ports_run_out(struct scene *s)
{
	struct rdma_cm_id *ids[5];
	size_t i;

	shell("cat /proc/sys/net/ipv4/ip_local_port_range > /run/parity-ports;"
	      "echo 61100 61103 > /proc/sys/net/ipv4/ip_local_port_range");
	for (i = 0; i < 5; i++) {
		ids[i] = open_id(s, "id", RDMA_PS_TCP);
		DO(rdma_bind_addr(ids[i], any(s, 0)));
	}
	for (i = 0; i < 5; i++)
		close_id(ids[i]);
	shell("cat /run/parity-ports > /proc/sys/net/ipv4/ip_local_port_range");
}

const struct scenario bind_scenarios[] = {
	LOCAL("bind-wildcard", wildcard_gets_a_port_but_no_device, 0,
	      "the wildcard address in every port space"),
	LOCAL("bind-own", own_address_gets_a_device, 0,
	      "an address of this host in every port space"),
	LOCAL("bind-loopback", loopback_counts_as_wildcard, 0, "loopback addresses"),
	LOCAL("bind-foreign", unassigned_addresses_are_refused, 0,
	      "addresses that this host does not have"),
	LOCAL("bind-link-local", link_local_needs_its_scope, V6_ONLY,
	      "link-local addresses with right, wrong and no scope"),
	LOCAL("bind-twice", second_bind_is_refused, 0, "a second bind after both outcomes"),
	LOCAL("bind-low-port", low_ports_need_a_capability, 0,
	      "ports below 1024 with and without CAP_NET_BIND_SERVICE"),
	LOCAL("bind-by-listen", listening_without_bind_takes_v4, 0,
	      "rdma_listen on an id that was never bound; backlogs out of range"),
	LOCAL("bind-exhausted", ephemeral_ports_run_out, ALONE,
	      "more ids than there are ephemeral ports"),
	LAST_SCENARIO,
};

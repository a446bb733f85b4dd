/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The path to an address, resolved like rdma_resolve_addr(): step by step, each with the results of
 * the previous one. Part of checkup.h.
 */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/device/device_sysfs.h"
#include "tools/purecm/checkup.h"
#include "tools/purecm/command.h"

#define LOOK_AGAIN_MS 50
#define LOOKS	      60 /* 3 s in total, like the kernel's solicitations */
#define NS_PER_MS     1000000

/* addr_str() without the port. */
static const char *ip_str(const union addr *addr, char buf[ADDR_STR_BYTES])
{
	char *colon;

	addr_str(addr, buf);
	colon = strrchr(buf, ':');
	if (colon)
		*colon = '\0';
	return buf;
}

void check_address(struct checkup *checkup, struct finding *finding)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *list;
	char text[ADDR_STR_BYTES];
	int err = getaddrinfo(checkup->target, NULL, &hints, &list);

	if (err) {
		found(finding, VERDICT_BAD, "%s: %s", checkup->target, gai_strerror(err));
		return;
	}
	checkup->has_dst = !addr_copy(list->ai_addr, &checkup->dst);
	freeaddrinfo(list);
	if (!checkup->has_dst)
		found(finding, VERDICT_BAD, "%s is neither an IPv4 nor an IPv6 address",
		      checkup->target);
	else if (addr_is_any(&checkup->dst))
		found(finding, VERDICT_BAD,
		      "%s belongs to no interface; RDMA has no loopback address",
		      ip_str(&checkup->dst, text));
	else if (addr_is_link_local(&checkup->dst) && !addr_scope(&checkup->dst))
		found(finding, VERDICT_BAD, "%s is link-local and does not name its interface",
		      ip_str(&checkup->dst, text));
	else
		found(finding, VERDICT_OK, "%s", ip_str(&checkup->dst, text));
	checkup->has_dst = finding->verdict == VERDICT_OK;
}

void check_route(struct checkup *checkup, struct finding *finding)
{
	char src[ADDR_STR_BYTES], hop[ADDR_STR_BYTES];
	int err;

	if (!checkup->has_dst) {
		found(finding, VERDICT_SKIP, "not checked: no address");
		return;
	}
	err = net_route_lookup(&checkup->dst, NULL, 0, &checkup->route);
	if (err) {
		found(finding, VERDICT_BAD, "no route: %s", strerror(-err));
		return;
	}
	checkup->has_route = true;
	found(finding, VERDICT_OK, "from %s", ip_str(&checkup->route.src, src));
	if (checkup->route.local)
		found(finding, VERDICT_OK, "it is an address of this host");
	else if (checkup->route.gateway)
		found(finding, VERDICT_OK, "through gateway %s",
		      ip_str(&checkup->route.next_hop, hop));
	else
		found(finding, VERDICT_OK, "directly");
}

void check_interface(struct checkup *checkup, struct finding *finding)
{
	int err;

	if (!checkup->has_route) {
		found(finding, VERDICT_SKIP, "not checked: no route");
		return;
	}
	err = net_iface_get(checkup->route.ifindex, &checkup->iface);
	if (err) {
		found(finding, VERDICT_BAD, "interface %u: %s", checkup->route.ifindex,
		      strerror(-err));
		return;
	}
	checkup->has_iface = true;
	found(finding, checkup->iface.up ? VERDICT_OK : VERDICT_BAD, "%s is %s, mtu %u",
	      checkup->iface.name, checkup->iface.up ? "up" : "down", checkup->iface.mtu);
	if (!checkup->iface.up)
		found_remedy(finding, "ip link set %s up", checkup->iface.name);
}

static int find_source_gid(struct checkup *checkup)
{
	struct mad_gid gid;

	if (net_iface_gid(&checkup->iface, &gid))
		return gid_find_ib(checkup->verbs, checkup->n_verbs, &gid, checkup->route.ifindex,
				   &checkup->gid);
	return gid_find(checkup->verbs, checkup->n_verbs, &checkup->route.src,
			checkup->route.ifindex, &checkup->gid);
}

/* Return: the device whose GID tables show the interface, or NULL. */
static const char *device_of_iface(const struct checkup *checkup)
{
	struct device_want want = { 0 };
	int i;

	snprintf(want.iface[0], sizeof(want.iface[0]), "%s", checkup->iface.name);
	for (i = 0; i < checkup->n_devices; i++)
		if (device_sysfs_has(checkup->list[i], &want, DEVICE_GIDS_OF_PORT))
			return ibv_get_device_name(checkup->list[i]);
	return NULL;
}

static void find_no_gid(const struct checkup *checkup, struct finding *finding)
{
	const char *iface = checkup->iface.name, *device = device_of_iface(checkup);
	char src[ADDR_STR_BYTES];

	ip_str(&checkup->route.src, src);
	found(finding, VERDICT_BAD, "no active port has a GID for %s on %s", src, iface);
	if (device) {
		found(finding, VERDICT_BAD,
		      "%s is the interface of %s, but the address is another's", iface, device);
		found_remedy(finding,
			     "ip addr add ADDRESS/PREFIX dev %s; or let the route leave by the "
			     "interface that has %s",
			     iface, src);
	} else {
		found_remedy(finding,
			     "Let the route leave by an interface with an RDMA device (rdma link); "
			     "or modprobe rdma_rxe && rdma link add rxe0 type rxe netdev %s",
			     iface);
	}
}

void check_source_gid(struct checkup *checkup, struct finding *finding)
{
	static const char *const types[] = {
		[IBV_GID_TYPE_IB] = "InfiniBand",
		[IBV_GID_TYPE_ROCE_V1] = "RoCE v1",
		[IBV_GID_TYPE_ROCE_V2] = "RoCE v2",
	};
	char src[ADDR_STR_BYTES];

	if (!checkup->has_iface) {
		found(finding, VERDICT_SKIP, "not checked: no interface");
		return;
	}
	if (find_source_gid(checkup)) {
		find_no_gid(checkup, finding);
		return;
	}
	checkup->has_gid = true;
	found(finding, VERDICT_OK, "%s/%u, GID index %u, %s, of %s on %s",
	      ibv_get_device_name(checkup->gid.verbs->device), checkup->gid.port_num,
	      checkup->gid.gid_index, types[checkup->gid.type], ip_str(&checkup->route.src, src),
	      checkup->iface.name);
}

/*
 * The kernel decides how often to solicit; this waits for its result. It starts again if the
 * kernel has given up meanwhile, which may have been an attempt that somebody else had begun, or
 * has forgotten the neighbour, as when a link goes down and up.
 */
static enum net_neigh wait_for_neighbour(const struct net_route *route)
{
	const struct timespec wait = { .tv_nsec = LOOK_AGAIN_MS * NS_PER_MS };
	enum net_neigh state = net_neigh_state(route);
	unsigned int looks;

	for (looks = 0; state != NET_NEIGH_KNOWN && looks < LOOKS; looks++) {
		if (state != NET_NEIGH_PENDING || !looks)
			net_neigh_ask(route);
		nanosleep(&wait, NULL);
		state = net_neigh_state(route);
	}
	return state;
}

void check_neighbour(struct checkup *checkup, struct finding *finding)
{
	char hop[ADDR_STR_BYTES];

	if (!checkup->has_route) {
		found(finding, VERDICT_SKIP, "not checked: no route");
		return;
	}
	ip_str(&checkup->route.next_hop, hop);
	if (checkup->route.local)
		found(finding, VERDICT_OK, "not needed on the same host");
	else if (wait_for_neighbour(&checkup->route) == NET_NEIGH_KNOWN)
		found(finding, VERDICT_OK, "the link address of %s is known", hop);
	else
		found(finding, VERDICT_BAD, "%s does not answer ARP or neighbour discovery", hop);
}

int checkup_find_way(struct checkup *checkup)
{
	static check_function *const steps[] = {
		check_devices,	 check_ports,	   check_address,   check_route,
		check_interface, check_source_gid, check_neighbour,
	};
	struct finding finding;
	size_t i;

	for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		memset(&finding, 0, sizeof(finding));
		steps[i](checkup, &finding);
		if (finding.verdict == VERDICT_BAD) {
			complain("no request can be sent: %s (`purecm doctor %s' says more)",
				 finding.text, checkup->target);
			return -EHOSTUNREACH;
		}
	}
	if (checkup->gid.type == IBV_GID_TYPE_IB) {
		complain("no request can be sent: %s is on InfiniBand, and this is for RoCE",
			 checkup->iface.name);
		return -EHOSTUNREACH;
	}
	return 0;
}

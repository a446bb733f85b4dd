/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who the host is. On RoCE its GIDs are the addresses of its network interface, as they come and
 * go; every one is entered in the fabric, so that others find the host by it.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/fabric/host/host.h"
#include "tools/fabric/host/sa.h"

#define LID_MCAST      0xc000
#define GUID_PREFIX    0x0050430000000000ull /* "PC" in a vendor's place */
#define HEADERS_BYTES  96
#define FULL_PKEY      0xffff
#define DEFAULT_PREFIX 0xfe80000000000000ull

static const union ibv_gid no_gid;

static bool is_roce(const struct host *host)
{
	return host->link_layer == IBV_LINK_LAYER_ETHERNET;
}

static bool is_none(const union ibv_gid *gid)
{
	return memcmp(gid, &no_gid, sizeof(no_gid)) == 0;
}

static bool same(const union ibv_gid *a, const union ibv_gid *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* --- names in the fabric ------------------------------------------------- */

static void enter(const struct host *host, const union ibv_gid *gid)
{
	char path[FAB_PATH_BYTES], owner[FAB_NAME_BYTES];

	fab_place_gid(&host->place, gid, path);
	if (!symlink(host->place.host, path))
		return;
	if (!fab_place_host_of(&host->place, gid, owner) && strcmp(owner, host->place.host) != 0)
		host_say(host, "host %s has the same address: %s", owner, strrchr(path, '/') + 1);
}

static void leave(const struct host *host, const union ibv_gid *gid)
{
	char path[FAB_PATH_BYTES], owner[FAB_NAME_BYTES];

	if (fab_place_host_of(&host->place, gid, owner) || strcmp(owner, host->place.host) != 0)
		return;
	fab_place_gid(&host->place, gid, path);
	unlink(path);
}

/* --- the table ----------------------------------------------------------- */

struct wanted {
	union ibv_gid gid[FAB_GIDS];
	unsigned int n;
};

static void want(struct wanted *wanted, const union ibv_gid *gid)
{
	unsigned int i;

	for (i = 0; i < wanted->n; i++)
		if (same(&wanted->gid[i], gid))
			return;
	if (wanted->n < FAB_GIDS)
		wanted->gid[wanted->n++] = *gid;
}

/* The default GID: fe80:: and the link address as an EUI-64. */
static union ibv_gid default_gid(const uint8_t mac[6])
{
	union ibv_gid gid = {
		.raw = {0xfe, 0x80}
	};

	memcpy(gid.raw + 8, mac, 3);
	gid.raw[8] ^= 2;
	gid.raw[11] = 0xff;
	gid.raw[12] = 0xfe;
	memcpy(gid.raw + 13, mac + 3, 3);
	return gid;
}

static void want_address(struct wanted *wanted, const struct sockaddr *addr)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)addr;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;
	union ibv_gid gid = {
		.raw = {[10] = 0xff, [11] = 0xff}
	};

	if (addr->sa_family == AF_INET) {
		memcpy(gid.raw + 12, &in->sin_addr, 4);
		want(wanted, &gid);
	} else if (addr->sa_family == AF_INET6) {
		memcpy(gid.raw, &in6->sin6_addr, sizeof(gid.raw));
		want(wanted, &gid);
	}
}

static void collect(const struct host *host, struct wanted *wanted)
{
	struct ifaddrs *all, *at;
	union ibv_gid gid;

	if (getifaddrs(&all))
		return;
	for (at = all; at; at = at->ifa_next) {
		const struct sockaddr_ll *link = (const struct sockaddr_ll *)at->ifa_addr;

		if (!link || strcmp(at->ifa_name, host->netdev) != 0 ||
		    link->sll_family != AF_PACKET)
			continue;
		gid = default_gid(link->sll_addr);
		want(wanted, &gid);
	}
	for (at = all; at; at = at->ifa_next)
		if (at->ifa_addr && !strcmp(at->ifa_name, host->netdev))
			want_address(wanted, at->ifa_addr);
	freeifaddrs(all);
}

static bool is_wanted(const struct wanted *wanted, const union ibv_gid *gid)
{
	unsigned int i;

	for (i = 0; i < wanted->n; i++)
		if (same(&wanted->gid[i], gid))
			return true;
	return false;
}

static bool add(struct host *host, const union ibv_gid *gid, unsigned int ifindex)
{
	struct fab_port *port = &host->page->port[0];
	int i;

	for (i = 0; i < FAB_GIDS; i++)
		if (same(&port->gid[i].gid, gid))
			return false;
	for (i = 0; i < FAB_GIDS && !is_none(&port->gid[i].gid); i++)
		continue;
	if (i == FAB_GIDS)
		return false;
	port->gid[i].gid = *gid;
	port->gid[i].type = IBV_GID_TYPE_ROCE_V2;
	port->gid[i].ifindex = ifindex;
	enter(host, gid);
	return true;
}

static void take_lids(const struct host *host)
{
	const struct fab_port *port = &host->page->port[0];
	char path[FAB_PATH_BYTES];
	uint16_t i;

	for (i = 0; i < 1u << port->lmc; i++) {
		fab_place_lid(&host->place, (uint16_t)(port->lid + i), path);
		if (symlink(host->place.host, path))
			host_say(host, "its LID %u is another host's", port->lid + i);
	}
}

static void give_lids_back(const struct host *host)
{
	const struct fab_port *port = &host->page->port[0];
	char path[FAB_PATH_BYTES];
	uint16_t i;

	for (i = 0; port->lid && i < 1u << port->lmc; i++) {
		fab_place_lid(&host->place, (uint16_t)(port->lid + i), path);
		unlink(path);
	}
}

static bool is_lid_free(const struct host *host, uint16_t lid)
{
	char owner[FAB_NAME_BYTES];
	uint16_t i;

	for (i = 0; i < 1u << host->lmc; i++)
		if (!fab_place_host_of_lid(&host->place, (uint16_t)(lid + i), owner) &&
		    strcmp(owner, host->place.host) != 0)
			return false;
	return true;
}

void identity_set_lid(struct host *host, uint16_t lid)
{
	struct fab_port *port = &host->page->port[0];

	/* All know the administrator's, and nobody would tell them. */
	if (port->link_layer != IBV_LINK_LAYER_INFINIBAND || host->number == SA_HOST_NUMBER ||
	    !lid || lid >= LID_MCAST || lid & ((1u << host->lmc) - 1) || !is_lid_free(host, lid)) {
		host_say(host, "cannot have LID %u", lid);
		return;
	}
	give_lids_back(host);
	fab_page_write_begin(host->page);
	port->lid = lid;
	fab_page_write_end(host->page);
	take_lids(host);
	events_send(host, IBV_EVENT_LID_CHANGE, 1);
}

/* On InfiniBand a port is what the subnet manager made it. */
static void be_on_subnet(struct host *host)
{
	struct fab_port *port = &host->page->port[0];

	port->lmc = host->lmc;
	port->lid = (uint16_t)(host->number << host->lmc);
	port->sm_lid = (uint16_t)(SA_HOST_NUMBER << host->lmc);
	port->gid[0].gid.global.subnet_prefix = htobe64(DEFAULT_PREFIX);
	port->gid[0].gid.global.interface_id = htobe64(be64toh(host->page->node_guid) + 1);
	port->gid[0].type = IBV_GID_TYPE_IB;
	enter(host, &port->gid[0].gid);
	take_lids(host);
}

/* What fits into a packet of the interface, with all headers of RoCE. */
static uint8_t path_mtu(const struct host *host)
{
	struct ifreq request = { .ifr_mtu = 0 };
	uint8_t mtu = IBV_MTU_4096;
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	strncpy(request.ifr_name, host->netdev, sizeof(request.ifr_name) - 1);
	if (fd >= 0 && !ioctl(fd, SIOCGIFMTU, &request))
		while (mtu > IBV_MTU_256 && request.ifr_mtu < (128 << mtu) + HEADERS_BYTES)
			mtu--;
	if (fd >= 0)
		close(fd);
	return mtu;
}

/* Entries keep their place in the table while they last. */
static void update(struct host *host)
{
	struct fab_port *port = &host->page->port[0];
	unsigned int i, ifindex = if_nametoindex(host->netdev);
	struct wanted wanted = { .n = 0 };
	bool changed = false;

	if (host->page->is_removed)
		return;
	collect(host, &wanted);
	fab_page_write_begin(host->page);
	port->mtu = path_mtu(host);
	for (i = 0; i < FAB_GIDS; i++) {
		if (is_none(&port->gid[i].gid) || is_wanted(&wanted, &port->gid[i].gid))
			continue;
		leave(host, &port->gid[i].gid);
		memset(&port->gid[i], 0, sizeof(port->gid[i]));
		changed = true;
	}
	for (i = 0; i < wanted.n; i++)
		changed |= add(host, &wanted.gid[i], ifindex);
	fab_page_write_end(host->page);
	if (changed)
		events_send(host, IBV_EVENT_GID_CHANGE, 1);
}

/* --- following the interface --------------------------------------------- */

static void netlink_ready(struct host *host, struct watch *watch)
{
	char message[8192];

	while (recv(watch->fd, message, sizeof(message), MSG_DONTWAIT) > 0)
		continue;
	update(host);
}

static int follow(struct host *host)
{
	struct sockaddr_nl addr = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)))
		return -errno;
	return host_watch(host, &host->netlink, fd, netlink_ready);
}

/* --- opening and closing ------------------------------------------------- */

static void fill_port(struct host *host)
{
	struct fab_port *port = &host->page->port[0];

	port->state = IBV_PORT_ACTIVE;
	port->link_layer = host->link_layer;
	port->mtu = IBV_MTU_4096;
	port->pkey[0] = FULL_PKEY;
}

int identity_open(struct host *host)
{
	char path[FAB_PATH_BYTES];
	int err;

	if (is_roce(host) && (!host->netdev || !if_nametoindex(host->netdev))) {
		host_say(host, "there is no interface %s", host->netdev ? host->netdev : "(none)");
		return -ENODEV;
	}
	fab_place_page(&host->place, path);
	err = fab_page_create(path, &host->page);
	if (err)
		return err;
	fab_page_write_begin(host->page);
	strcpy(host->page->host, host->place.host);
	host->page->node_guid = htobe64(GUID_PREFIX | (uint64_t)host->number << 8);
	host->page->n_ports = 1;
	fill_port(host);
	if (!is_roce(host))
		be_on_subnet(host);
	fab_page_write_end(host->page);
	err = is_roce(host) ? follow(host) : 0;
	if (!err && is_roce(host))
		update(host);
	return err;
}

void identity_forget(struct host *host)
{
	int i;

	for (i = 0; i < FAB_GIDS; i++)
		if (!is_none(&host->page->port[0].gid[i].gid))
			leave(host, &host->page->port[0].gid[i].gid);
	give_lids_back(host);
}

void identity_close(struct host *host)
{
	char path[FAB_PATH_BYTES];

	identity_forget(host);
	host->page->is_removed = 1;
	events_send(host, IBV_EVENT_DEVICE_FATAL, 0);
	fab_place_page(&host->place, path);
	unlink(path);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The page of the host and its GIDs. On RoCE a port's GIDs follow the addresses of its network
 * interface; each is entered in the fabric, so that other hosts can find the port.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "tools/fabric/host/host.h"
#include "tools/fabric/wire/device.h"
#include "tools/fabric/wire/quirks.h"

#define GUID_PREFIX   0x0050430000000000ull /* "PC" in place of a vendor's OUI */
#define HEADERS_BYTES 96

static const union ibv_gid no_gid;

static bool is_roce(const struct host *host)
{
	return host->link_layer == IBV_LINK_LAYER_ETHERNET;
}

static bool has_netdev(const struct host *host, uint8_t port_num)
{
	return strcmp(host->netdev[port_num - 1], NO_NETDEV) != 0;
}

static bool is_none(const union ibv_gid *gid)
{
	return memcmp(gid, &no_gid, sizeof(no_gid)) == 0;
}

static bool is_same_gid(const union ibv_gid *a, const union ibv_gid *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* --- the table ----------------------------------------------------------- */

struct wanted {
	union ibv_gid gid[FAB_GIDS];
	unsigned int n;
};

static bool is_wanted(const struct wanted *wanted, const union ibv_gid *gid)
{
	unsigned int i;

	for (i = 0; i < wanted->n; i++)
		if (is_same_gid(&wanted->gid[i], gid))
			return true;
	return false;
}

static void want_gid(struct wanted *wanted, const union ibv_gid *gid)
{
	if (wanted->n < FAB_GIDS && !is_wanted(wanted, gid))
		wanted->gid[wanted->n++] = *gid;
}

/* The default GID: fe80:: and the link address as an EUI-64. */
static union ibv_gid default_gid(const uint8_t mac[6])
{
	union ibv_gid gid = { .raw = { 0xfe, 0x80 } };

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
	union ibv_gid gid;

	if (addr->sa_family == AF_INET) {
		gid = fab_gid_of_ipv4(&in->sin_addr);
		want_gid(wanted, &gid);
	} else if (addr->sa_family == AF_INET6) {
		memcpy(gid.raw, &in6->sin6_addr, sizeof(gid.raw));
		want_gid(wanted, &gid);
	}
}

/* @has_ip: include GIDs from the interface's IP addresses. Return: false if they cannot be read. */
static bool collect_gids(const char *netdev, bool has_ip, struct wanted *wanted)
{
	struct ifaddrs *all, *at;
	union ibv_gid gid;

	if (getifaddrs(&all))
		return false;
	for (at = all; at; at = at->ifa_next) {
		const struct sockaddr_ll *link = (const struct sockaddr_ll *)at->ifa_addr;

		if (!link || strcmp(at->ifa_name, netdev) != 0 || link->sll_family != AF_PACKET)
			continue;
		gid = default_gid(link->sll_addr);
		want_gid(wanted, &gid);
	}
	for (at = all; at && has_ip; at = at->ifa_next)
		if (at->ifa_addr && !strcmp(at->ifa_name, netdev))
			want_address(wanted, at->ifa_addr);
	freeifaddrs(all);
	return true;
}

static void want_pods(const struct host *host, uint8_t port_num, struct wanted *wanted)
{
	unsigned int i;

	for (i = 0; i < host->n_pods; i++)
		if (host->pod[i].port_num == port_num)
			want_gid(wanted, &host->pod[i].gid);
}

/*
 * The kernel knows the namespace of each address; here, those in other namespaces are configured.
 */
static unsigned int ifindex_of(const struct host *host, const union ibv_gid *gid,
			       unsigned int ifindex)
{
	unsigned int i;

	for (i = 0; i < host->n_pods; i++)
		if (is_same_gid(&host->pod[i].gid, gid))
			return host->pod[i].ifindex;
	return ifindex;
}

/* Return: the index of a free entry, or -1. */
static int find_free_gid(const struct host *host, uint8_t port_num)
{
	const struct fab_port *port = &host->page->port[port_num - 1];
	const bool is_last_first = fab_has_quirk(host->page, FAB_QUIRK_GIDS_LAST);
	int i, at;

	for (i = 0; i < FAB_GIDS; i++) {
		at = is_last_first ? FAB_GIDS - 1 - i : i;
		if (is_none(&port->gid[at].gid) &&
		    !fab_page_gid_is_held(host->page_fd, port_num, (uint32_t)at))
			return at;
	}
	return -1;
}

static bool add_gid(struct host *host, uint8_t port_num, const union ibv_gid *gid,
		    unsigned int ifindex)
{
	struct fab_port *port = &host->page->port[port_num - 1];
	int i;

	for (i = 0; i < FAB_GIDS; i++)
		if (is_same_gid(&port->gid[i].gid, gid))
			return false;
	i = find_free_gid(host, port_num);
	if (i < 0)
		return false;
	port->gid[i].gid = *gid;
	port->gid[i].type = fab_has_quirk(host->page, FAB_QUIRK_NO_CM) ? IBV_GID_TYPE_IB
								       : IBV_GID_TYPE_ROCE_V2;
	port->gid[i].ifindex = ifindex;
	names_enter(host, port_num, gid);
	return true;
}

/* Return: false if the query fails. */
static bool ask_netdev(const char *netdev, unsigned long what, struct ifreq *ret)
{
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool answers;

	if (fd < 0)
		fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	memset(ret, 0, sizeof(*ret));
	strncpy(ret->ifr_name, netdev, sizeof(ret->ifr_name) - 1);
	answers = fd >= 0 && !ioctl(fd, what, ret);
	fd_close(&fd);
	return answers;
}

/* The largest path MTU whose packets fit into the interface's MTU with all headers of RoCE. */
static uint8_t path_mtu(const char *netdev)
{
	uint8_t mtu = IBV_MTU_4096;
	struct ifreq answer;

	if (ask_netdev(netdev, SIOCGIFMTU, &answer))
		while (mtu > IBV_MTU_256 && answer.ifr_mtu < (128 << mtu) + HEADERS_BYTES)
			mtu--;
	return mtu;
}

/*
 * Hosts on other machines may have our number, so the GUID is made from the link address, as on
 * other devices. Return: 0 if the address cannot be read.
 */
static __be64 guid_of_link(const char *netdev)
{
	struct wanted wanted = { .n = 0 };

	collect_gids(netdev, false, &wanted);
	return wanted.gid[0].global.interface_id;
}

/* Entries keep their index while they exist. */
static void update_port(struct host *host, uint8_t port_num)
{
	struct fab_port *port = &host->page->port[port_num - 1];
	const char *netdev = host->netdev[port_num - 1];
	unsigned int i, ifindex = if_nametoindex(netdev);
	struct wanted wanted = { .n = 0 };
	bool changed = false;

	if (host->page->is_removed || !has_netdev(host, port_num))
		return;
	if (!collect_gids(netdev, !fab_has_quirk(host->page, FAB_QUIRK_NO_CM), &wanted)) {
		host->is_stale = true;
		return;
	}
	want_pods(host, port_num, &wanted);
	fab_page_write_begin(host->page);
	port->mtu = path_mtu(netdev);
	for (i = 0; i < FAB_GIDS; i++) {
		if (is_none(&port->gid[i].gid) || is_wanted(&wanted, &port->gid[i].gid))
			continue;
		names_leave(host, port_num, &port->gid[i].gid);
		memset(&port->gid[i], 0, sizeof(port->gid[i]));
		changed = true;
	}
	for (i = 0; i < wanted.n; i++)
		changed |= add_gid(host, port_num, &wanted.gid[i],
				   ifindex_of(host, &wanted.gid[i], ifindex));
	fab_page_write_end(host->page);
	sysfs_write(host);
	if (changed)
		events_send(host, IBV_EVENT_GID_CHANGE, port_num);
}

static void update_all(struct host *host)
{
	uint8_t i;

	host->is_stale = false;
	for (i = 1; i <= host->n_ports; i++)
		update_port(host, i);
}

void identity_try_again(struct host *host)
{
	if (host->is_stale)
		update_all(host);
}

void identity_rename(struct host *host, const char *name)
{
	char old[FAB_NAME_BYTES];

	if (host->page->is_removed || strlen(name) >= FAB_NAME_BYTES || strchr(name, '/')) {
		host_log(host, "cannot be renamed to %s", name);
		return;
	}
	strcpy(old, host->page->device);
	fab_page_write_begin(host->page);
	strcpy(host->page->device, name);
	fab_page_write_end(host->page);
	sysfs_rename(host, old);
}

void identity_add_pod(struct host *host, const struct pod_gid *pod)
{
	unsigned int i;

	for (i = 0; i < host->n_pods && !is_same_gid(&host->pod[i].gid, &pod->gid); i++)
		continue;
	if (!pod->ifindex && i < host->n_pods)
		host->pod[i] = host->pod[--host->n_pods];
	else if (pod->ifindex && i == host->n_pods && i < PODS_MAX)
		host->pod[host->n_pods++] = *pod;
	update_port(host, pod->port_num);
}

/* --- following the interface --------------------------------------------- */

static void netlink_ready(struct watch *watch)
{
	char message[8192];

	while (recv(watch->fd, message, sizeof(message), MSG_DONTWAIT) > 0)
		continue;
	update_all(container_of(watch, struct host, netlink));
}

static int follow_netdevs(struct host *host)
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
	return loop_watch(&host->loop, &host->netlink, fd, EPOLLIN, netlink_ready);
}

/* --- opening and closing ------------------------------------------------- */

static void fill_port(struct host *host, uint8_t port_num)
{
	struct fab_port *port = &host->page->port[port_num - 1];

	port->state = has_netdev(host, port_num) ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
	port->link_layer = host->link_layer;
	port->mtu = IBV_MTU_4096;
	port->pkey[0] = FAB_PKEY_DEFAULT;
	if (!is_roce(host))
		subnet_fill(host, port_num);
}

static void warn_of_missing_interface(const struct host *host, const char *name)
{
	struct if_nameindex *all = if_nameindex(), *at;
	char there[256] = "";
	size_t n = 0;

	for (at = all; at && at->if_index && n < sizeof(there) - IF_NAMESIZE - 1; at++)
		n += (size_t)snprintf(there + n, sizeof(there) - n, " %s", at->if_name);
	if (all)
		if_freenameindex(all);
	host_log(host, "there is no interface %s; there are:%s", name, there);
}

static bool has_interfaces(const struct host *host)
{
	unsigned int i;

	for (i = 0; i < host->n_ports; i++) {
		if (!has_netdev(host, (uint8_t)(i + 1)) || if_nametoindex(host->netdev[i]))
			continue;
		warn_of_missing_interface(host, host->netdev[i]);
		return false;
	}
	return true;
}

static bool has_address(const struct fab_port *port)
{
	unsigned int i;

	for (i = 0; i < FAB_GIDS; i++)
		if (!is_none(&port->gid[i].gid) && !fab_gid_is_link_local(&port->gid[i].gid))
			return true;
	return false;
}

/* The cause may be removed while we run. */
static void warn_of_netdev(const struct host *host, uint8_t port_num)
{
	const char *netdev = host->netdev[port_num - 1];
	struct ifreq answer;

	if (!has_netdev(host, port_num))
		return;
	if (ask_netdev(netdev, SIOCGIFFLAGS, &answer) && !(answer.ifr_flags & IFF_UP))
		host_log(host, "interface %s is down: \"ip link set %s up\" as root mends it",
			 netdev, netdev);
	if (ask_netdev(netdev, SIOCGIFMTU, &answer) &&
	    answer.ifr_mtu < (int)FAB_MAD_BYTES + HEADERS_BYTES)
		host_log(host, "interface %s has an MTU of %d: to connect needs %d at least",
			 netdev, answer.ifr_mtu, (int)FAB_MAD_BYTES + HEADERS_BYTES);
	if (!has_address(&host->page->port[port_num - 1]))
		host_log(host,
			 "interface %s has no IP address but a link-local one: \"ip address add "
			 "ADDRESS/BITS dev %s\" as root gives it one",
			 netdev, netdev);
}

int identity_open(struct host *host)
{
	char path[FAB_PATH_BYTES];
	struct rlimit memlock;
	uint8_t i;
	int err;

	if (is_roce(host) && !has_interfaces(host))
		return -ENODEV;
	fab_folder_page(&host->folder, path);
	err = fab_page_create(path, &host->page);
	if (err)
		return err;
	host->page_fd = open(path, O_RDWR | O_CLOEXEC);
	if (host->page_fd < 0)
		return -errno;
	fab_page_write_begin(host->page);
	strcpy(host->page->host, host->folder.host);
	strcpy(host->page->device, FAB_DEVICE);
	host->page->node_guid = htobe64(GUID_PREFIX | (uint64_t)host->number << 8);
	if (host->wire == FAB_WIRE_ROCE)
		host->page->node_guid = guid_of_link(host->netdev[host->n_ports - 1]);
	host->page->n_ports = host->n_ports;
	host->page->quirks = host->quirks;
	fab_page_set_limits(host->page, host->limit);
	host->page->wire = host->wire;
	host->page->network = fab_page_own_network();
	host->page->memlock = getrlimit(RLIMIT_MEMLOCK, &memlock) ? 0 : memlock.rlim_cur;
	host->page->vrf = host->vrf;
	for (i = 1; i <= host->n_ports; i++)
		fill_port(host, i);
	fab_page_write_end(host->page);
	sysfs_write(host);
	err = is_roce(host) ? follow_netdevs(host) : 0;
	if (!err && is_roce(host))
		update_all(host);
	for (i = 1; !err && host->wire == FAB_WIRE_ROCE && i <= host->n_ports; i++)
		warn_of_netdev(host, i);
	return err;
}

void identity_forget(struct host *host)
{
	uint8_t port_num;
	int i;

	for (port_num = 1; port_num <= host->n_ports; port_num++) {
		for (i = 0; i < FAB_GIDS; i++)
			names_leave(host, port_num, &host->page->port[port_num - 1].gid[i].gid);
		subnet_forget(host, port_num);
	}
}

void identity_close(struct host *host)
{
	char path[FAB_PATH_BYTES];

	identity_forget(host);
	if (!host->page->is_removed)
		events_send(host, IBV_EVENT_DEVICE_FATAL, 0);
	host->page->is_removed = 1;
	fab_folder_page(&host->folder, path);
	unlink(path);
}

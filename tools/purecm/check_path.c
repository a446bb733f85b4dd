/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The path to an address, resolved like rdma_resolve_addr(): step by step, each with the results of
 * the previous one. Part of checkup.h.
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "lib/device/device_sysfs.h"
#include "tools/purecm/checkup.h"
#include "tools/purecm/pcapng.h"
#include "tools/purecm/subcommand.h"

#define LOOK_AGAIN_MS 50
#define LOOKS	      60 /* 3 s in total, like the kernel's solicitations */

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

	if (!checkup->has_dst)
		return;
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

	if (!checkup->has_route)
		return;
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

	if (!checkup->has_iface)
		return;
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
	const struct timespec wait = { .tv_nsec = LOOK_AGAIN_MS * CM_NS_PER_MS };
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

	if (!checkup->has_route)
		return;
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
			complain("no request can be sent: %s (`purecm doctor %s' has more)",
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

/* --- path MTU --------------------------------------------------------------- */

/*
 * Whether packets as large as the path MTU reach the address and return complete, with an echo
 * request that must not be fragmented. An interface with a smaller MTU drops such packets or cannot
 * send them, so connections are established, but their data is lost.
 */

#define ICMP_HEADER   8
#define ICMP_ECHO     8
#define ICMP6_ECHO    128
#define IP4_BYTES_MAX 60
#define COOKIE_BYTES  8
#define SMALL_BYTES   56
#define ROCE_HEADERS  44 /* after IP: UDP, BTH, RETH, immediate data, invariant CRC */
#define ECHO_MAX      (4096 + ROCE_HEADERS)
#define TRIES	      3
#define WAIT_MS	      500

struct echo {
	int fd;
	bool is_ip6;
	bool is_raw;
	uint8_t cookie[COOKIE_BYTES]; /* identifies the response */
};

static int open_socket(struct echo *echo)
{
	const int family = echo->is_ip6 ? AF_INET6 : AF_INET;
	const int protocol = echo->is_ip6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP;

	/* Most distributions permit the former for all users, and the latter for root only. */
	echo->fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, protocol);
	echo->is_raw = echo->fd < 0;
	if (echo->is_raw)
		echo->fd = socket(family, SOCK_RAW | SOCK_CLOEXEC, protocol);
	return echo->fd < 0 ? -errno : 0;
}

static int open_echo(struct echo *echo, const union addr *dst)
{
	const int probe4 = IP_PMTUDISC_PROBE, probe6 = IPV6_PMTUDISC_PROBE, yes = 1;
	union addr to = *dst;
	int err;

	echo->is_ip6 = dst->sa.sa_family == AF_INET6;
	if (getrandom(echo->cookie, COOKIE_BYTES, 0) != COOKIE_BYTES)
		return -EIO;
	err = open_socket(echo);
	if (err)
		return err;
	if (echo->is_ip6) {
		to.in6.sin6_port = 0;
		err = setsockopt(echo->fd, SOL_IPV6, IPV6_MTU_DISCOVER, &probe6, sizeof(probe6)) ||
		      setsockopt(echo->fd, SOL_IPV6, IPV6_RECVFRAGSIZE, &yes, sizeof(yes)) ||
		      connect(echo->fd, &to.sa, sizeof(to.in6));
	} else {
		to.in4.sin_port = 0;
		err = setsockopt(echo->fd, SOL_IP, IP_MTU_DISCOVER, &probe4, sizeof(probe4)) ||
		      setsockopt(echo->fd, SOL_IP, IP_RECVFRAGSIZE, &yes, sizeof(yes)) ||
		      connect(echo->fd, &to.sa, sizeof(to.in4));
	}
	if (!err)
		return 0;
	err = -errno;
	close(echo->fd);
	return err;
}

/* Return: size of the largest fragment of the response; 0: not fragmented. */
static int fragment_of(struct msghdr *answer)
{
	struct cmsghdr *cmsg;
	int bytes;

	for (cmsg = CMSG_FIRSTHDR(answer); cmsg; cmsg = CMSG_NXTHDR(answer, cmsg)) {
		if ((cmsg->cmsg_level == SOL_IP && cmsg->cmsg_type == IP_RECVFRAGSIZE) ||
		    (cmsg->cmsg_level == SOL_IPV6 && cmsg->cmsg_type == IPV6_RECVFRAGSIZE)) {
			memcpy(&bytes, CMSG_DATA(cmsg), sizeof(bytes));
			return bytes;
		}
	}
	return 0;
}

/* Return: as fragment_of(); -ETIMEDOUT. */
static int await_answer(const struct echo *echo, size_t bytes)
{
	struct pollfd poll_fd = { .fd = echo->fd, .events = POLLIN };
	_Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(int))];
	uint8_t answer[IP4_BYTES_MAX + ECHO_MAX];
	struct iovec iov = { answer, sizeof(answer) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control };
	const uint64_t end_ns = clock_ns() + WAIT_MS * CM_NS_PER_MS;
	const uint8_t *icmp;
	uint64_t now_ns;
	ssize_t n;

	while ((now_ns = clock_ns()) < end_ns &&
	       poll(&poll_fd, 1, (int)((end_ns - now_ns) / CM_NS_PER_MS) + 1) > 0) {
		msg.msg_controllen = sizeof(control);
		n = recvmsg(echo->fd, &msg, 0);
		icmp = answer;
		if (n > 0 && echo->is_raw && !echo->is_ip6) {
			icmp += (answer[0] & 0xf) * 4;
			n -= icmp - answer;
		}
		if (n == (ssize_t)bytes && icmp[0] != (echo->is_ip6 ? ICMP6_ECHO : ICMP_ECHO) &&
		    memcmp(icmp + ICMP_HEADER, echo->cookie, COOKIE_BYTES) == 0)
			return fragment_of(&msg);
	}
	return -ETIMEDOUT;
}

/* @bytes: after the IP header; even. Return: as await_answer(). */
static int send_echo(const struct echo *echo, size_t bytes)
{
	uint8_t request[ECHO_MAX] = { echo->is_ip6 ? ICMP6_ECHO : ICMP_ECHO };
	int i, ret = -ETIMEDOUT;
	uint16_t sum;

	memcpy(request + ICMP_HEADER, echo->cookie, COOKIE_BYTES);
	sum = check_sum(request, bytes);
	request[2] = (uint8_t)(sum >> 8);
	request[3] = (uint8_t)sum;
	for (i = 0; i < TRIES && ret < 0; i++) {
		if (send(echo->fd, request, bytes, 0) == (ssize_t)bytes)
			ret = await_answer(echo, bytes);
	}
	return ret;
}

static const struct check_port *find_port(const struct checkup *checkup)
{
	unsigned int i;

	for (i = 0; i < checkup->n_ports; i++) {
		if (checkup->port[i].verbs == checkup->gid.verbs &&
		    checkup->port[i].port_num == checkup->gid.port_num)
			return &checkup->port[i];
	}
	return NULL;
}

static void compare_sizes(const struct echo *echo, unsigned int mtu, struct finding *finding)
{
	int fragment;

	if (send_echo(echo, SMALL_BYTES) < 0) {
		found(finding, VERDICT_SKIP, "not checked: no echo request is answered");
		return;
	}
	fragment = send_echo(echo, mtu + ROCE_HEADERS);
	if (fragment < 0)
		found(finding, VERDICT_BAD,
		      "packets for a path MTU of %u do not come back, small ones do", mtu);
	else if (fragment > 0)
		found(finding, VERDICT_BAD,
		      "packets for a path MTU of %u come back in fragments of %d bytes", mtu,
		      fragment);
	else
		found(finding, VERDICT_OK, "packets for a path MTU of %u come back", mtu);
}

void check_path_mtu(struct checkup *checkup, struct finding *finding)
{
	const struct check_port *port = checkup->has_gid ? find_port(checkup) : NULL;
	struct echo echo;
	int err;

	if (!port || !check_port_is_roce(port))
		return;
	if (checkup->route.local) {
		found(finding, VERDICT_OK, "not needed on the same host");
	} else if (net_neigh_state(&checkup->route) != NET_NEIGH_KNOWN) {
		found(finding, VERDICT_SKIP, "not checked: no neighbour");
	} else {
		err = open_echo(&echo, &checkup->dst);
		if (err) {
			found(finding, VERDICT_SKIP, "not checked: echo request: %s",
			      strerror(-err));
			return;
		}
		compare_sizes(&echo, 128u << port->attr.active_mtu, finding);
		close(echo.fd);
	}
}

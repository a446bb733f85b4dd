/* SPDX-License-Identifier: BSD-2-Clause */
/* The sockets that send RoCE v2: see sockets.h. */
#include "tools/fabric/udp/sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "tools/fabric/udp/vrf.h"
#include "tools/fabric/wire/packet.h"

#define SEND_BYTES (4 << 20)
#define FLOW_PORTS 0xc000 /* A17.9.1: the source port provides flow entropy, in this range */
#define FLOW_TRIES 32

socklen_t udp_address(const union ibv_gid *gid, uint16_t port, uint32_t ifindex,
		      struct sockaddr_storage *ret)
{
	struct sockaddr_in *in = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ret;

	memset(ret, 0, sizeof(*ret));
	if (fab_gid_is_ipv4(gid)) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		memcpy(&in->sin_addr, gid->raw + FAB_GID_IPV4_AT, sizeof(in->sin_addr));
		return sizeof(*in);
	}
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(port);
	memcpy(&in6->sin6_addr, gid->raw, sizeof(in6->sin6_addr));
	if (fab_gid_is_link_local(gid) || fab_gid_is_group(gid))
		in6->sin6_scope_id = ifindex;
	return sizeof(*in6);
}

static uint16_t port_of(int fd)
{
	struct sockaddr_storage addr = { .ss_family = AF_UNSPEC };
	socklen_t bytes = sizeof(addr);

	if (getsockname(fd, (struct sockaddr *)&addr, &bytes))
		return 0;
	return ntohs(addr.ss_family == AF_INET ? ((struct sockaddr_in *)&addr)->sin_port
					       : ((struct sockaddr_in6 *)&addr)->sin6_port);
}

static int bind_flow(int fd, int family, const struct in_addr *source)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr = *source };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	unsigned int i, first = (unsigned int)getpid() * 2654435761u >> 18;
	int err = -1;

	for (i = 0; i <= FLOW_TRIES && err; i++) {
		uint16_t port = (uint16_t)(FLOW_PORTS | (first + i * 61) % (0x10000 - FLOW_PORTS));

		/* If all are taken, use any port. */
		in.sin_port = htons(i < FLOW_TRIES ? port : 0);
		in6.sin6_port = in.sin_port;
		err = family == AF_INET ? bind(fd, (struct sockaddr *)&in, sizeof(in))
					: bind(fd, (struct sockaddr *)&in6, sizeof(in6));
	}
	return err ? -errno : 0;
}

static int set_up(int fd, int family, const struct in_addr *source)
{
	int on = 1, bytes = SEND_BYTES, err = 0;
	int discover = family == AF_INET ? IP_PMTUDISC_DO : IPV6_PMTUDISC_DO;

	/* Best effort: with a smaller buffer, more is queued in memory. */
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	if (family == AF_INET6)
		err = setsockopt(fd, SOL_IPV6, IPV6_V6ONLY, &on, sizeof(on)) ||
		      setsockopt(fd, SOL_IPV6, IPV6_MTU_DISCOVER, &discover, sizeof(discover));
	else
		err = setsockopt(fd, SOL_IP, IP_MTU_DISCOVER, &discover, sizeof(discover));
	return err ? -errno : bind_flow(fd, family, source);
}

static int open_socket(struct udp_socket *ret, uint32_t vrf, int family,
		       const struct in_addr *source)
{
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int err = fd < 0 ? -errno : udp_vrf_bind(fd, vrf);

	if (!err)
		err = set_up(fd, family, source);
	if (err) {
		fd_close(&fd);
		return err;
	}
	ret->fd = fd;
	ret->port = port_of(fd);
	ret->has_segments = true;
	return 0;
}

void udp_sockets_clear(struct udp_sockets *sockets)
{
	*sockets = (struct udp_sockets){
		.v4 = { .fd = -1, .room = { .fd = -1 } },
		.v6 = { .fd = -1, .room = { .fd = -1 } },
	};
}

int udp_sockets_open(struct udp_sockets *sockets, uint32_t vrf)
{
	const struct in_addr any = { .s_addr = htonl(INADDR_ANY) };
	int err = open_socket(&sockets->v4, vrf, AF_INET, &any);
	int err6 = open_socket(&sockets->v6, vrf, AF_INET6, &any);

	sockets->vrf = vrf;
	return err && err6 ? err : 0;
}

void udp_sockets_close(struct udp_sockets *sockets)
{
	while (sockets->n_bound)
		fd_close(&sockets->bound[--sockets->n_bound].fd);
	fd_close(&sockets->v4.fd);
	fd_close(&sockets->v6.fd);
}

/* --- bound sockets -------------------------------------------------------- */

static bool is_bound_to_flow(const struct udp_socket *socket, const struct udp_flow *flow)
{
	return socket->flow.hop_limit == flow->hop_limit &&
	       socket->flow.traffic_class == flow->traffic_class &&
	       memcmp(&socket->flow.sgid, &flow->sgid, sizeof(flow->sgid)) == 0;
}

static int bind_to_flow(struct udp_socket *ret, uint32_t vrf, const struct udp_flow *flow)
{
	int hop_limit = flow->hop_limit, traffic_class = flow->traffic_class;
	struct in_addr source;
	int err;

	*ret = (struct udp_socket){ .room = { .fd = -1 }, .flow = *flow, .is_bound = true };
	memcpy(&source, flow->sgid.raw + FAB_GID_IPV4_AT, sizeof(source));
	err = open_socket(ret, vrf, AF_INET, &source);
	if (!err && (setsockopt(ret->fd, SOL_IP, IP_TTL, &hop_limit, sizeof(hop_limit)) ||
		     setsockopt(ret->fd, SOL_IP, IP_TOS, &traffic_class, sizeof(traffic_class)))) {
		err = -errno;
		fd_close(&ret->fd);
	}
	return err;
}

struct udp_socket *udp_sockets_find(struct udp_sockets *sockets, const struct udp_flow *flow,
				    const union ibv_gid *dgid)
{
	unsigned int i;

	if (!fab_gid_is_ipv4(dgid))
		return &sockets->v6;
	if (!fab_gid_is_ipv4(&flow->sgid) || fab_gid_is_group(dgid))
		return &sockets->v4;
	for (i = 0; i < sockets->n_bound; i++)
		if (is_bound_to_flow(&sockets->bound[i], flow))
			return &sockets->bound[i];
	if (i == UDP_BOUND_MAX || bind_to_flow(&sockets->bound[i], sockets->vrf, flow))
		return &sockets->v4;
	sockets->n_bound++;
	return &sockets->bound[i];
}

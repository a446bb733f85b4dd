/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receiving RoCE v2: see in.h.
 */
#include "tools/fabric/udp/in.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/fabric/roce/codec.h"
#include "tools/fabric/roce/icrc.h"
#include "tools/fabric/udp/vrf.h"

#define RECEIVE_BYTES (8 << 20)
#define DEST_QP_AT    4 /* offset in a UDP payload; the word has a reserved byte on top */
#define QPN_MASK      0xffffff

#ifndef UDP_NO_CHECK6_RX
#define UDP_NO_CHECK6_RX 102
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef IPV6_MULTICAST_ALL
#define IPV6_MULTICAST_ALL 29
#endif

static void set_options(int fd, int family)
{
	int on = 1, bytes = RECEIVE_BYTES;

	/* Best effort: with a smaller buffer, more is lost and retransmitted. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	setsockopt(fd, SOL_UDP, UDP_GRO, &on, sizeof(on));
	setsockopt(fd, SOL_IP, IP_RECVTTL, &on, sizeof(on));
	setsockopt(fd, SOL_IP, IP_RECVTOS, &on, sizeof(on));
	if (family == AF_INET) {
		setsockopt(fd, SOL_IP, IP_PKTINFO, &on, sizeof(on));
		return;
	}
	setsockopt(fd, SOL_IPV6, IPV6_RECVPKTINFO, &on, sizeof(on));
	setsockopt(fd, SOL_IPV6, IPV6_RECVHOPLIMIT, &on, sizeof(on));
	setsockopt(fd, SOL_IPV6, IPV6_RECVTCLASS, &on, sizeof(on));
	/*
	 * Linux's rxe sends no UDP checksum over IPv6; the ICRC covers more than the checksum
	 * would.
	 */
	setsockopt(fd, SOL_UDP, UDP_NO_CHECK6_RX, &on, sizeof(on));
}

static int bind_port(int fd, uint32_t vrf, int family, bool is_shared)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(ROCE_UDP_PORT) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(ROCE_UDP_PORT) };
	int off = 0, on = is_shared, err = udp_vrf_bind(fd, vrf);

	if (err)
		return err;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)))
		return -errno;
	if (family == AF_INET)
		return bind(fd, (struct sockaddr *)&in, sizeof(in)) ? -errno : 0;
	if (setsockopt(fd, SOL_IPV6, IPV6_V6ONLY, &off, sizeof(off)))
		return -errno;
	return bind(fd, (struct sockaddr *)&in6, sizeof(in6)) ? -errno : 0;
}

static int open_port(uint32_t vrf, bool is_shared)
{
	static const int families[] = { AF_INET6, AF_INET };
	int fd, err = -EAFNOSUPPORT;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		fd = socket(families[i], SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		err = fd < 0 ? -errno : bind_port(fd, vrf, families[i], is_shared);
		if (!err) {
			set_options(fd, families[i]);
			udp_in_take_groups(fd, false);
			return fd;
		}
		if (fd >= 0)
			close(fd);
		if (err == -EADDRINUSE)
			return err;
	}
	return err;
}

int udp_in_open(uint32_t vrf)
{
	/* Without the flag: another fabric of the same user would let us share its port. */
	int fd = open_port(vrf, false);

	if (fd < 0)
		return fd;
	close(fd);
	fd = open_port(vrf, true);
	/*
	 * Each of several members of a group gets its packets; with a single member, Linux lets the
	 * program of udp_in_steer() choose.
	 */
	if (fd >= 0)
		udp_in_take_groups(fd, true);
	return fd;
}

int udp_in_open_more(uint32_t vrf)
{
	return open_port(vrf, true);
}

int udp_in_steer(int fd, const uint16_t *slot, unsigned int n)
{
	struct sock_filter code[3 + 2 * UDP_IN_SOCKETS_MAX + 1] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, DEST_QP_AT),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, QPN_MASK),
		BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, FAB_SLOT_SHIFT),
	};
	struct sock_fprog program = { .len = 3, .filter = code };
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (!slot[i])
			continue;
		code[program.len++] =
			(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, slot[i], 0, 1);
		code[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, i + 1);
	}
	code[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof(program))
		       ? -errno
		       : 0;
}

void udp_in_take_groups(int fd, bool on)
{
	int value = on;

	setsockopt(fd, SOL_IP, IP_MULTICAST_ALL, &value, sizeof(value));
	setsockopt(fd, SOL_IPV6, IPV6_MULTICAST_ALL, &value, sizeof(value));
}

void udp_in_drain(int fd)
{
	char byte;

	while (recv(fd, &byte, sizeof(byte), MSG_DONTWAIT | MSG_TRUNC) >= 0)
		continue;
}

static int int_of(const struct cmsghdr *at)
{
	int value = 0;

	memcpy(&value, CMSG_DATA(at), sizeof(value));
	return value;
}

static void take_control(const struct cmsghdr *at, struct fab_frames *ret)
{
	struct in6_pktinfo in6;
	struct in_pktinfo in;

	if (at->cmsg_level == SOL_UDP && at->cmsg_type == UDP_GRO) {
		ret->segment_bytes = (uint16_t)int_of(at);
	} else if (at->cmsg_level == SOL_IP && at->cmsg_type == IP_PKTINFO) {
		memcpy(&in, CMSG_DATA(at), sizeof(in));
		ret->dgid = fab_gid_of_ipv4(&in.ipi_addr);
		ret->ifindex = (uint32_t)in.ipi_ifindex;
	} else if (at->cmsg_level == SOL_IPV6 && at->cmsg_type == IPV6_PKTINFO) {
		memcpy(&in6, CMSG_DATA(at), sizeof(in6));
		memcpy(ret->dgid.raw, &in6.ipi6_addr, sizeof(ret->dgid.raw));
		ret->ifindex = in6.ipi6_ifindex;
	} else if (at->cmsg_level == SOL_IP && at->cmsg_type == IP_TTL) {
		ret->hop_limit = (uint8_t)int_of(at);
	} else if (at->cmsg_level == SOL_IPV6 && at->cmsg_type == IPV6_HOPLIMIT) {
		ret->hop_limit = (uint8_t)int_of(at);
	} else if (at->cmsg_level == SOL_IPV6 && at->cmsg_type == IPV6_TCLASS) {
		ret->traffic_class = (uint8_t)int_of(at);
	} else if (at->cmsg_level == SOL_IP && at->cmsg_type == IP_TOS) {
		ret->traffic_class = *CMSG_DATA(at);
	}
}

static void take_sender(const struct sockaddr_storage *from, struct fab_frames *ret)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)from;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)from;

	if (from->ss_family == AF_INET) {
		ret->sgid = fab_gid_of_ipv4(&in->sin_addr);
		ret->source_port = ntohs(in->sin_port);
	} else {
		memcpy(ret->sgid.raw, &in6->sin6_addr, sizeof(ret->sgid.raw));
		ret->source_port = ntohs(in6->sin6_port);
	}
}

static uint8_t find_port(const struct fab_page *page, const struct fab_frames *frames)
{
	uint8_t port_num;

	for (port_num = 1; port_num <= page->n_ports; port_num++) {
		if (fab_gid_is_group(&frames->dgid)
			    ? fab_page_interface(page, port_num) == frames->ifindex
			    : fab_page_find_gid(page, port_num, &frames->dgid) >= 0)
			return port_num;
	}
	return 0;
}

bool udp_in_receive(int fd, const struct fab_page *page, struct fab_frames *ret, uint8_t *ret_bytes)
{
	uint64_t room[64];
	struct sockaddr_storage from = { .ss_family = AF_UNSPEC };
	struct iovec iov = { .iov_base = ret_bytes, .iov_len = FAB_FRAMES_BYTES_MAX };
	struct msghdr msg = {
		.msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = room,
		.msg_controllen = sizeof(room),
	};
	struct cmsghdr *at;
	ssize_t n = recvmsg(fd, &msg, MSG_DONTWAIT);

	if (n < 0)
		return false;
	memset(ret, 0, sizeof(*ret));
	ret->magic = FAB_FRAMES_MAGIC;
	ret->bytes = (uint32_t)n;
	take_sender(&from, ret);
	for (at = CMSG_FIRSTHDR(&msg); at; at = CMSG_NXTHDR(&msg, at))
		take_control(at, ret);
	if (!ret->segment_bytes)
		ret->segment_bytes = (uint16_t)n;
	ret->port_num = find_port(page, ret);
	return true;
}

bool udp_in_packet(const struct fab_frames *frames, const uint8_t *bytes, size_t n,
		   struct fab_packet *ret, const uint8_t **ret_payload)
{
	struct icrc_flow flow = { .sgid = &frames->sgid,
				  .dgid = &frames->dgid,
				  .source_port = frames->source_port,
				  .identification = frames->identification };

	if (!icrc_holds(&flow, bytes, n) || roce_read(bytes, n, ret, ret_payload))
		return false;
	ret->sgid = frames->sgid;
	ret->dgid = frames->dgid;
	ret->hop_limit = frames->hop_limit;
	ret->traffic_class = frames->traffic_class;
	ret->port_num = frames->port_num;
	return true;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending RoCE v2: see out.h.
 */
#include "tools/fabric/udp/out.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/fabric/roce/icrc.h"
#include "tools/fabric/udp/vrf.h"

#define HOP_LIMIT_ELSE 64

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

struct waiting {
	struct list link;
	struct udp_burst burst;
	uint8_t bytes[];
};

/* --- one burst ----------------------------------------------------------- */

static void seal_burst(const struct udp_burst *burst, uint16_t port, bool is_cut_by_kernel)
{
	struct icrc_flow flow = { .sgid = &burst->flow.sgid,
				  .dgid = &burst->dgid,
				  .source_port = port };
	size_t at, n;

	for (at = 0; at < burst->n_bytes; at += burst->segment_bytes) {
		n = burst->n_bytes - at < burst->segment_bytes ? burst->n_bytes - at
							       : burst->segment_bytes;
		icrc_seal(&flow, burst->bytes + at, n);
		if (is_cut_by_kernel)
			flow.identification++;
	}
}

struct control {
	struct msghdr *msg;
	struct cmsghdr *next;
};

static void add_control(struct control *control, int level, int type, const void *data,
			size_t bytes)
{
	struct cmsghdr *at = control->next;

	at->cmsg_level = level;
	at->cmsg_type = type;
	at->cmsg_len = CMSG_LEN(bytes);
	memcpy(CMSG_DATA(at), data, bytes);
	control->msg->msg_controllen = (size_t)((char *)at - (char *)control->msg->msg_control) +
				       CMSG_SPACE(bytes);
	control->next = (struct cmsghdr *)((char *)at + CMSG_SPACE(bytes));
}

static void add_ip_controls(struct control *control, const struct udp_burst *burst)
{
	int hop_limit = burst->flow.hop_limit, traffic_class = burst->flow.traffic_class;
	bool needs_interface = fab_gid_is_group(&burst->dgid) ||
			       fab_gid_is_link_local(&burst->dgid);
	struct in_pktinfo in = { .ipi_ifindex = needs_interface ? (int)burst->ifindex : 0 };
	struct in6_pktinfo in6 = { .ipi6_ifindex = needs_interface ? burst->ifindex : 0 };

	if (fab_gid_is_ipv4(&burst->dgid)) {
		memcpy(&in.ipi_spec_dst, burst->flow.sgid.raw + FAB_GID_IPV4_AT,
		       sizeof(in.ipi_spec_dst));
		add_control(control, SOL_IP, IP_PKTINFO, &in, sizeof(in));
		add_control(control, SOL_IP, IP_TTL, &hop_limit, sizeof(hop_limit));
		add_control(control, SOL_IP, IP_TOS, &traffic_class, sizeof(traffic_class));
	} else {
		memcpy(&in6.ipi6_addr, burst->flow.sgid.raw, sizeof(in6.ipi6_addr));
		add_control(control, SOL_IPV6, IPV6_PKTINFO, &in6, sizeof(in6));
		add_control(control, SOL_IPV6, IPV6_HOPLIMIT, &hop_limit, sizeof(hop_limit));
		add_control(control, SOL_IPV6, IPV6_TCLASS, &traffic_class, sizeof(traffic_class));
	}
}

/* The destination and the control messages of all datagrams of a burst. */
struct envelope {
	struct sockaddr_storage to;
	uint64_t room[32];
	struct msghdr msg;
};

static void address_burst(const struct udp_socket *from, const struct udp_burst *burst,
			  bool has_segments, struct envelope *ret)
{
	struct control control = { &ret->msg, (struct cmsghdr *)ret->room };
	uint16_t segment_bytes = (uint16_t)burst->segment_bytes;

	ret->msg = (struct msghdr){
		.msg_name = &ret->to,
		.msg_namelen = udp_address(&burst->dgid, ROCE_UDP_PORT, burst->ifindex, &ret->to),
		.msg_control = ret->room,
	};
	if (!from->is_bound || has_segments)
		memset(ret->room, 0, sizeof(ret->room));
	if (!from->is_bound)
		add_ip_controls(&control, burst);
	if (has_segments)
		add_control(&control, SOL_UDP, UDP_SEGMENT, &segment_bytes, sizeof(segment_bytes));
}

static int send_whole(const struct udp_socket *from, const struct udp_burst *burst)
{
	struct iovec iov = { .iov_base = burst->bytes, .iov_len = burst->n_bytes };
	struct envelope envelope;

	address_burst(from, burst, true, &envelope);
	envelope.msg.msg_iov = &iov;
	envelope.msg.msg_iovlen = 1;
	return sendmsg(from->fd, &envelope.msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* A single packet without control messages: the kernel has the least to copy. */
static int send_single(const struct udp_socket *from, const struct udp_burst *burst)
{
	struct sockaddr_storage to;
	socklen_t bytes = udp_address(&burst->dgid, ROCE_UDP_PORT, burst->ifindex, &to);

	return sendto(from->fd, burst->bytes, burst->n_bytes, MSG_DONTWAIT | MSG_NOSIGNAL,
		      (struct sockaddr *)&to, bytes) < 0
		       ? -errno
		       : 0;
}

/* Resumes after the segments that the last attempt has sent, if the socket was full. */
static int send_segments(const struct udp_socket *from, struct udp_burst *burst)
{
	struct mmsghdr msgs[UDP_OUT_SEGMENTS];
	struct iovec iov[UDP_OUT_SEGMENTS];
	struct envelope envelope;
	unsigned int i;
	size_t at, left;
	int n;

	address_burst(from, burst, false, &envelope);
	for (i = burst->n_sent; i < burst->n_segments; i++) {
		at = i * burst->segment_bytes;
		left = burst->n_bytes - at;
		iov[i].iov_base = burst->bytes + at;
		iov[i].iov_len = left < burst->segment_bytes ? left : burst->segment_bytes;
		msgs[i].msg_hdr = envelope.msg;
		msgs[i].msg_hdr.msg_iov = &iov[i];
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
	while (burst->n_sent < burst->n_segments) {
		n = sendmmsg(from->fd, msgs + burst->n_sent, burst->n_segments - burst->n_sent,
			     MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0)
			return -errno;
		burst->n_sent += (unsigned int)n;
	}
	return 0;
}

/*
 * Inverts a bit of a sealed packet. A second call restores it, because a packet that must wait is
 * sealed again.
 */
static void invert_bit(const struct udp_burst *burst)
{
	uint32_t bit = (uint32_t)burst->corrupt_bit % (uint32_t)(8 * burst->n_bytes);

	if (burst->corrupt_bit >= 0)
		burst->bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
}

static int send_one_by_one(const struct udp_socket *from, struct udp_burst *burst)
{
	int err;

	seal_burst(burst, from->port, false);
	invert_bit(burst);
	err = from->is_bound && burst->n_segments == 1 ? send_single(from, burst)
						       : send_segments(from, burst);
	invert_bit(burst);
	return err;
}

/*
 * Segmentation may be refused by a kernel or a device, or for a packet that is too large for the
 * route.
 */
static int send_burst(struct udp_socket *from, struct udp_burst *burst)
{
	int err;

	if (from->fd < 0)
		return -EAFNOSUPPORT;
	if (burst->n_segments == 1 || !from->has_segments)
		return send_one_by_one(from, burst);
	seal_burst(burst, from->port, true);
	err = send_whole(from, burst);
	if (err != -EIO && err != -EINVAL && err != -ENOPROTOOPT && err != -EOPNOTSUPP)
		return err;
	err = send_one_by_one(from, burst);
	if (!err)
		from->has_segments = false;
	return err;
}

/* --- failures ------------------------------------------------------------- */

static const struct {
	int err;
	const char *text;
} advice[] = {
	{ -EMSGSIZE, "does not fit into the MTU of its route: set a smaller path MTU, or a "
		     "larger MTU on the way" },
	{ -EPERM, "is refused by a firewall of this host (UDP, destination port 4791)" },
	{ -EACCES, "is refused by this host (a route that prohibits it, or a broadcast "
		   "address)" },
	{ -ENETUNREACH, "has no route" },
	{ -EHOSTUNREACH, "has no way to its host" },
	{ -EINVAL, "cannot leave: its source address is not (any more) this host's" },
	{ -EADDRNOTAVAIL, "cannot leave: its source address is not (any more) this host's" },
	{ -EAFNOSUPPORT, "is of an IP version that this host does not have" },
};

/* Logs once for each kind of failure. */
static void log_send_error(struct udp_out *out, const struct udp_burst *burst, int err)
{
	const unsigned int n_kinds = sizeof(advice) / sizeof(advice[0]);
	char to[INET6_ADDRSTRLEN] = "?";
	unsigned int i = 0;

	/* Linux returns this for a source address that it does not have. */
	if (err == -ENETUNREACH &&
	    udp_out_reach(out, &burst->flow.sgid, &burst->dgid, burst->ifindex) == EADDRNOTAVAIL)
		err = -EADDRNOTAVAIL;
	while (i < n_kinds && advice[i].err != err)
		i++;
	if (out->complaints & 1u << i)
		return;
	out->complaints |= 1u << i;
	if (fab_gid_is_ipv4(&burst->dgid))
		inet_ntop(AF_INET, burst->dgid.raw + FAB_GID_IPV4_AT, to, sizeof(to));
	else
		inet_ntop(AF_INET6, burst->dgid.raw, to, sizeof(to));
	if (i < n_kinds)
		fprintf(stderr, "fabric: a RoCE packet of %zu bytes to %s %s\n",
			burst->segment_bytes, to, advice[i].text);
	else
		fprintf(stderr, "fabric: a RoCE packet of %zu bytes to %s cannot leave: %s\n",
			burst->segment_bytes, to, strerror(-err));
}

/* --- waiting ------------------------------------------------------------- */

static bool is_full(int err)
{
	return err == -EAGAIN || err == -ENOBUFS;
}

static struct udp_socket *socket_for(struct udp_out *out, const struct udp_burst *burst)
{
	return udp_sockets_find(&out->sockets, &burst->flow, &burst->dgid);
}

static void socket_writable(struct watch *watch)
{
	(void)watch; /* udp_out_send_waiting() does the work */
}

static void await_room(struct udp_out *out, struct udp_socket *from)
{
	out->full = from;
	loop_watch(&out->loop, &from->room, from->fd, EPOLLOUT, socket_writable);
}

static void keep_burst(struct udp_out *out, const struct udp_burst *burst)
{
	struct udp_socket *from = socket_for(out, burst);
	struct waiting *waiting;

	if (out->n_waiting + burst->n_bytes > UDP_OUT_WAITING_MAX)
		return;
	waiting = malloc(sizeof(*waiting) + burst->n_bytes);
	if (!waiting)
		return;
	waiting->burst = *burst;
	waiting->burst.bytes = waiting->bytes;
	memcpy(waiting->bytes, burst->bytes, burst->n_bytes);
	if (list_is_empty(&out->waiting))
		await_room(out, from);
	list_append(&out->waiting, &waiting->link);
	out->n_waiting += burst->n_bytes;
}

void udp_out_flush(struct udp_out *out)
{
	struct udp_burst *burst = &out->burst;
	int err = 0;

	if (!burst->n_segments)
		return;
	if (list_is_empty(&out->waiting))
		err = send_burst(socket_for(out, burst), burst);
	if (!list_is_empty(&out->waiting) || is_full(err))
		keep_burst(out, burst);
	else if (err)
		log_send_error(out, burst, err);
	burst->n_segments = 0;
	burst->n_sent = 0;
	burst->n_bytes = 0;
	burst->is_full = false;
}

bool udp_out_has_segments(const struct udp_out *out)
{
	unsigned int i;

	for (i = 0; i < out->sockets.n_bound; i++)
		if (!out->sockets.bound[i].has_segments)
			return false;
	return out->sockets.v4.has_segments && out->sockets.v6.has_segments;
}

void udp_out_send_waiting(struct udp_out *out)
{
	struct waiting *waiting;
	struct udp_socket *from;
	int err;

	loop_turn(&out->loop, 0);
	udp_out_flush(out);
	if (out->full)
		loop_unwatch(&out->loop, &out->full->room);
	out->full = NULL;
	while (!list_is_empty(&out->waiting)) {
		waiting = container_of(out->waiting.next, struct waiting, link);
		from = socket_for(out, &waiting->burst);
		err = send_burst(from, &waiting->burst);
		if (is_full(err)) {
			await_room(out, from);
			return;
		}
		if (err)
			log_send_error(out, &waiting->burst, err);
		list_remove(&waiting->link);
		out->n_waiting -= waiting->burst.n_bytes;
		free(waiting);
	}
}

void udp_out_retry(struct udp_out *out)
{
	if (!list_is_empty(&out->waiting) && loop_turn(&out->loop, 0) > 0)
		udp_out_send_waiting(out);
}

/* --- packets ------------------------------------------------------------- */

static uint8_t hop_limit_of(const struct fab_packet *packet)
{
	return packet->hop_limit ? packet->hop_limit : HOP_LIMIT_ELSE;
}

static bool fits_burst(const struct udp_burst *burst, const struct fab_packet *packet, size_t n)
{
	return !burst->is_full && n <= burst->segment_bytes &&
	       burst->n_segments < UDP_OUT_SEGMENTS && burst->n_bytes + n <= UDP_OUT_BURST_BYTES &&
	       burst->slot == packet->dest_qpn >> FAB_SLOT_SHIFT &&
	       burst->flow.hop_limit == hop_limit_of(packet) &&
	       burst->flow.traffic_class == packet->traffic_class &&
	       memcmp(&burst->dgid, &packet->dgid, sizeof(burst->dgid)) == 0 &&
	       memcmp(&burst->flow.sgid, &packet->sgid, sizeof(burst->flow.sgid)) == 0;
}

static void begin_burst(struct udp_burst *burst, const struct fab_packet *packet, uint32_t ifindex,
			size_t n)
{
	burst->flow.sgid = packet->sgid;
	burst->dgid = packet->dgid;
	burst->ifindex = ifindex;
	burst->slot = packet->dest_qpn >> FAB_SLOT_SHIFT;
	burst->flow.hop_limit = hop_limit_of(packet);
	burst->flow.traffic_class = packet->traffic_class;
	burst->segment_bytes = n;
}

static int put_packet(struct fab_faulty *faulty, const void *way, const struct fab_packet *packet,
		      const void *payload, int32_t corrupt_bit)
{
	struct udp_out *out = container_of(faulty, struct udp_out, faulty);
	struct udp_burst *burst = &out->burst;
	size_t n = roce_write(packet, payload, burst->bytes + burst->n_bytes);
	size_t at = burst->n_bytes;

	if (!n)
		return 0;
	if (burst->n_segments && (corrupt_bit >= 0 || !fits_burst(burst, packet, n))) {
		udp_out_flush(out);
		memmove(burst->bytes, burst->bytes + at, n);
	}
	if (!burst->n_segments)
		begin_burst(burst, packet, *(const uint32_t *)way, n);
	burst->corrupt_bit = corrupt_bit;
	burst->is_full = n < burst->segment_bytes || corrupt_bit >= 0;
	burst->n_segments++;
	burst->n_bytes += n;
	return 0;
}

void udp_out_packet(struct udp_out *out, const struct fab_packet *packet, uint32_t ifindex,
		    const void *payload)
{
	fab_faulty_send(&out->faulty, &ifindex, sizeof(ifindex), packet, payload);
}

/* --- beginning and end ---------------------------------------------------- */

void udp_out_clear(struct udp_out *out)
{
	*out = (struct udp_out){
		.loop = { .fd = -1 },
	};
	udp_sockets_clear(&out->sockets);
	list_init(&out->waiting);
	fab_faulty_clear(&out->faulty);
}

int udp_out_init(struct udp_out *out, uint32_t vrf, const char *dir, uint32_t sender)
{
	int err;

	udp_out_clear(out);
	out->burst.bytes = malloc(UDP_OUT_BURST_BYTES + ROCE_BYTES_MAX);
	if (!out->burst.bytes)
		return -ENOMEM;
	err = loop_init(&out->loop);
	if (!err)
		err = fab_faulty_init(&out->faulty, dir, sender, &out->loop, put_packet);
	if (err)
		return err;
	return udp_sockets_open(&out->sockets, vrf);
}

void udp_out_fini(struct udp_out *out)
{
	struct waiting *waiting;

	/* First, because a forked child shares this epoll instance with its parent. */
	loop_fini(&out->loop);
	list_for_each_entry_safe (waiting, &out->waiting, link)
		free(waiting);
	list_init(&out->waiting);
	out->n_waiting = 0;
	fab_faulty_fini(&out->faulty);
	udp_sockets_close(&out->sockets);
	out->full = NULL;
	free(out->burst.bytes);
	out->burst = (struct udp_burst){ .n_segments = 0 };
}

int udp_out_reach(const struct udp_out *out, const union ibv_gid *sgid, const union ibv_gid *dgid,
		  uint32_t ifindex)
{
	struct sockaddr_storage from, to;
	socklen_t from_bytes = udp_address(sgid, 0, ifindex, &from);
	socklen_t to_bytes = udp_address(dgid, ROCE_UDP_PORT, ifindex, &to);
	int fd, err;

	if (from.ss_family != to.ss_family)
		return EINVAL;
	fd = socket(from.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return errno;
	err = -udp_vrf_bind(fd, out->sockets.vrf);
	if (!err && (bind(fd, (struct sockaddr *)&from, from_bytes) ||
		     connect(fd, (struct sockaddr *)&to, to_bytes)))
		err = errno;
	close(fd);
	return err;
}

int udp_out_join(const union ibv_gid *mgid, uint32_t ifindex)
{
	struct group_req request = { .gr_interface = ifindex };
	int level, fd, err;

	udp_address(mgid, 0, ifindex, &request.gr_group);
	level = request.gr_group.ss_family == AF_INET ? SOL_IP : SOL_IPV6;
	fd = socket(request.gr_group.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (!setsockopt(fd, level, MCAST_JOIN_GROUP, &request, sizeof(request)))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

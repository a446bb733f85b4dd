/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The UDP side of a datagram socket: exchange of queue pair addresses, and datagrams sent before
 * that is complete. The service thread receives.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/rsocket/dgram.h"

#define COPIES_MAX    1024 /* unread; more are dropped */
#define AT_ONCE	      16   /* so that each socket gets its share of the service thread */

#define QPN_GSI	      1
#define QPN_MULTICAST 0xffffff

int dgram_udp_send(struct dgram *d, const struct dgram_dest *dest, enum dgram_op op,
		   const struct iovec *iov, int n_iov)
{
	uint8_t wire[DGRAM_UDP_BYTES_MAX];
	struct dgram_udp header = { .op = op,
				    .qpn = dest->qp->id->qp->qp_num,
				    .addr = dest->qp->local };
	struct iovec whole[1 + UIO_MAXIOV] = { { wire, dgram_udp_encode(&header, wire) } };
	union addr to = dest->addr;
	struct msghdr msg = { .msg_name = &to,
			      .msg_namelen = addr_bytes(&to.sa),
			      .msg_iov = whole,
			      .msg_iovlen = (size_t)n_iov + 1 };

	if (n_iov >= UIO_MAXIOV)
		return -EINVAL;
	if (n_iov)
		memcpy(&whole[1], iov, (size_t)n_iov * sizeof(*iov));
	if (sendmsg(d->base.fd, &msg, MSG_NOSIGNAL) >= 0)
		return 0;
	d->is_udp_full = d->is_udp_full || errno == EAGAIN;
	return -errno;
}

/* A datagram over UDP has no slot, so it is copied. */
static void deliver_copy(struct dgram *d, const union addr *from, const uint8_t *data, size_t bytes)
{
	struct dgram_packet *packet = NULL;

	if (d->n_copies < COPIES_MAX)
		packet = malloc(sizeof(*packet) + bytes);
	if (!packet)
		return;
	d->n_copies++;
	*packet = (struct dgram_packet){ .from = *from,
					 .data = (uint8_t *)(packet + 1),
					 .bytes = (uint32_t)bytes };
	memcpy(packet + 1, data, bytes);
	list_init(&packet->link);
	if (!dgram_deliver(d, packet))
		dgram_qp_read(d, packet);
}

/* Otherwise any host could redirect our datagrams to others, or to a multicast group. */
static bool is_location_of(const struct dgram_udp *header, const union addr *from)
{
	struct mad_gid claimed = addr_to_gid(&header->addr), source = addr_to_gid(from);

	return header->qpn > QPN_GSI && header->qpn != QPN_MULTICAST &&
	       !memcmp(&claimed, &source, sizeof(source));
}

static void handle_udp(struct dgram *d, const union addr *from, const uint8_t *wire, size_t bytes)
{
	struct dgram_udp header;
	struct dgram_dest *dest;
	ssize_t skip = dgram_udp_decode(wire, bytes, &header);
	bool is_located;
	int err;

	if (skip < 0)
		return;
	pthread_mutex_lock(&d->base.lock);
	err = dgram_dest_get(d, from, &dest);
	if (!err && header.op == DGRAM_DATA) {
		deliver_copy(d, from, wire + skip, bytes - (size_t)skip);
		dgram_udp_send(d, dest, DGRAM_CONTROL, NULL, 0);
	}
	is_located = !err && is_location_of(&header, from);
	if (is_located)
		dest->is_held = true;
	pthread_mutex_unlock(&d->base.lock);
	if (is_located)
		dgram_dest_resolve(dest, header.qpn);
}

void dgram_udp_readable(struct serviced *serviced)
{
	struct dgram *d = container_of(serviced, struct dgram, udp);
	uint8_t wire[DGRAM_UDP_BYTES_MAX + DGRAM_SLOT_BYTES];

	for (int i = 0; i < AT_ONCE; i++) {
		union addr from = { 0 };
		socklen_t bytes = sizeof(from);
		ssize_t n =
			recvfrom(d->base.fd, wire, sizeof(wire), MSG_DONTWAIT, &from.sa, &bytes);

		if (n < 0)
			return;
		handle_udp(d, &from, wire, (size_t)n);
	}
}

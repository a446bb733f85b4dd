/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs of datagram sockets: see dgram.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/log.h"
#include "lib/net/netlink.h"
#include "lib/rsocket/dgram.h"
#include "lib/rsocket/settings.h"
#include "lib/rsocket/wait.h"
#include "lib/verbs/qp.h"
#include "mad/inbox.h"

#define RECV_BYTES	    (INBOX_GRH_BYTES + DGRAM_SLOT_BYTES)
#define IS_SEND		    (1ULL << 32) /* in a wr_id, together with the slot */
#define COMPLETIONS_AT_ONCE 16
#define QKEY		    0x01234567
#define SLOTS_MIN	    16

static uint8_t *recv_slot(const struct dgram_qp *qp, uint32_t slot)
{
	return qp->memory + (size_t)slot * RECV_BYTES;
}

static uint8_t *send_slot(const struct dgram_qp *qp, uint32_t slot)
{
	return qp->memory + (size_t)qp->n_slots * RECV_BYTES + (size_t)slot * DGRAM_SLOT_BYTES;
}

/* Shared by all receives. */
static uint8_t *recv_rest(const struct dgram_qp *qp)
{
	return send_slot(qp, qp->n_slots);
}

/* A packet that is longer than its receive would break the queue pair, and anyone can send one. */
static int post_recv(struct dgram_qp *qp, uint32_t slot)
{
	struct ibv_sge sge[INBOX_SGES] = { { .addr = (uintptr_t)recv_slot(qp, slot),
					     .length = RECV_BYTES,
					     .lkey = qp->mr->lkey },
					   { .addr = (uintptr_t)recv_rest(qp),
					     .length = INBOX_REST_BYTES,
					     .lkey = qp->mr->lkey } };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = sge, .num_sge = INBOX_SGES }, *bad;
	int err;

	/* A device leaves the bytes in front of an IPv4 header as they are. */
	*recv_slot(qp, slot) = 0;
	err = qp->is_broken ? EIO : ibv_post_recv(qp->id->qp, &wr, &bad);
	if (err)
		qp->idle[qp->n_idle++] = slot;
	else
		qp->n_posted++;
	return -err;
}

/* --- making -------------------------------------------------------------- */

static uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static int make_queues(struct dgram *d, struct dgram_qp *qp)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_UD,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = qp->n_slots,
			 .max_recv_wr = qp->n_slots,
			 .max_send_sge = 1,
			 .max_recv_sge = INBOX_SGES,
			 .max_inline_data = d->inline_size },
	};
	struct epoll_event event = { .events = EPOLLIN };

	errno = 0;
	qp->channel = ibv_create_comp_channel(qp->id->verbs);
	if (qp->channel)
		qp->cq = ibv_create_cq(qp->id->verbs, (int)qp->n_slots * 2, NULL, qp->channel, 0);
	if (!qp->cq)
		return rsock_verbs_error();
	attr.send_cq = qp->cq;
	attr.recv_cq = qp->cq;
	if (rdma_create_qp(qp->id, NULL, &attr))
		return -errno;
	qp->inline_bytes = attr.cap.max_inline_data;
	if (fcntl(qp->channel->fd, F_SETFL, fcntl(qp->channel->fd, F_GETFL) | O_NONBLOCK) ||
	    epoll_ctl(d->epoll_fd, EPOLL_CTL_ADD, qp->channel->fd, &event))
		return -errno;
	return 0;
}

static int make_memory(struct dgram_qp *qp)
{
	size_t bytes = (size_t)qp->n_slots * (RECV_BYTES + DGRAM_SLOT_BYTES) + INBOX_REST_BYTES;

	qp->memory = calloc(1, bytes);
	qp->packet = calloc(qp->n_slots, sizeof(*qp->packet));
	qp->spare = calloc(qp->n_slots, sizeof(*qp->spare));
	qp->idle = calloc(qp->n_slots, sizeof(*qp->idle));
	if (!qp->memory || !qp->packet || !qp->spare || !qp->idle)
		return -ENOMEM;
	errno = 0;
	qp->mr = ibv_reg_mr(qp->id->pd, qp->memory, bytes, IBV_ACCESS_LOCAL_WRITE);
	return qp->mr ? 0 : rsock_verbs_error();
}

int dgram_qp_make(struct dgram *d, struct dgram_qp *qp)
{
	uint32_t fit = settings()->recv_bytes / DGRAM_SLOT_BYTES;
	int err;

	qp->n_slots = min_u32(fit, min_u32(d->sq_size, d->rq_size));
	if (qp->n_slots < SLOTS_MIN)
		qp->n_slots = SLOTS_MIN;
	err = make_queues(d, qp);
	if (!err)
		err = make_memory(qp);
	for (uint32_t slot = 0; !err && slot < qp->n_slots; slot++) {
		list_init(&qp->packet[slot].link);
		qp->packet[slot].qp = qp;
		qp->spare[qp->n_spare++] = slot;
		err = post_recv(qp, slot);
	}
	if (err)
		return err;
	list_append(&d->qps, &qp->link);
	/* Sleeping threads have not armed this completion queue. */
	watch_notify(&d->base);
	return 0;
}

/* Binds to the UDP socket's port number, so that the number is taken in both port spaces. */
static int bind_id(struct dgram_qp *qp)
{
	struct ibv_port_attr port;
	int err;

	if (rdma_create_id(NULL, &qp->id, qp, RDMA_PS_UDP))
		return -errno;
	if (rdma_bind_addr(qp->id, &qp->local.sa))
		return -errno;
	if (!qp->id->verbs)
		return -ENODEV;
	/* Not cached: a new MTU of the interface is no event of the device. */
	err = ibv_query_port(qp->id->verbs, qp->id->port_num, &port);
	qp->mtu = err ? 0 : 128U << port.active_mtu;
	qp->is_roce = !err && port.link_layer == IBV_LINK_LAYER_ETHERNET;
	return -err;
}

static int make_qp(struct dgram *d, const union addr *local, struct dgram_qp **ret)
{
	struct dgram_qp *qp = calloc(1, sizeof(*qp));
	int err;

	if (!qp)
		return -ENOMEM;
	list_init(&qp->link);
	qp->local = *local;
	err = bind_id(qp);
	if (!err)
		err = dgram_qp_make(d, qp);
	if (err) {
		dgram_qp_free(d, qp);
		return err;
	}
	*ret = qp;
	return 0;
}

void dgram_qp_free(struct dgram *d, struct dgram_qp *qp)
{
	list_remove(&qp->link);
	for (uint32_t slot = 0; qp->packet && slot < qp->n_slots; slot++)
		if (qp->packet[slot].qp)
			list_remove(&qp->packet[slot].link);
	if (qp->channel)
		epoll_ctl(d->epoll_fd, EPOLL_CTL_DEL, qp->channel->fd, NULL);
	if (qp->id && qp->id->qp)
		rdma_destroy_qp(qp->id);
	if (qp->cq)
		ibv_destroy_cq(qp->cq);
	if (qp->channel)
		ibv_destroy_comp_channel(qp->channel);
	if (qp->mr)
		ibv_dereg_mr(qp->mr);
	if (qp->id)
		rdma_destroy_id(qp->id);
	free(qp->memory);
	free(qp->packet);
	free(qp->spare);
	free(qp->idle);
	free(qp);
}

/* The source address of a datagram: the socket's, or the route's if the socket is bound to any. */
static int find_source(struct dgram *d, const union addr *peer, union addr *ret)
{
	struct net_route route;
	socklen_t bytes = sizeof(*ret);
	uint16_t port;
	int err;

	if (getsockname(d->base.fd, &ret->sa, &bytes))
		return -errno;
	port = ret->in4.sin_port;
	if (!addr_is_any(ret))
		return 0;
	err = net_route_lookup(peer, NULL, 0, &route);
	if (err)
		return err;
	*ret = route.src;
	ret->in4.sin_port = port;
	return 0;
}

int dgram_qp_for(struct dgram *d, const union addr *peer, struct dgram_qp **ret)
{
	union addr local;
	int err = find_source(d, peer, &local);
	struct dgram_qp *qp;

	if (err)
		return err;
	list_for_each_entry (qp, &d->qps, link) {
		if (addr_same_ip(&qp->local, &local)) {
			*ret = qp;
			return 0;
		}
	}
	return make_qp(d, &local, ret);
}

/* --- receiving ----------------------------------------------------------- */

void dgram_qp_read(struct dgram *d, struct dgram_packet *packet)
{
	list_remove(&packet->link);
	if (packet->qp) {
		post_recv(packet->qp, (uint32_t)(packet - packet->qp->packet));
	} else {
		d->n_copies--;
		free(packet);
	}
}

/* Any host can name another as the sender. On InfiniBand a GID is no IP address. */
static bool is_sent_from(const struct dgram_qp *qp, const struct ibv_wc *wc, const union addr *from)
{
	const uint8_t *grh = recv_slot(qp, (uint32_t)wc->wr_id);
	struct mad_gid claimed = addr_to_gid(from), source, dest;

	if (!qp->is_roce || !(wc->wc_flags & IBV_WC_GRH))
		return true;
	return !inbox_grh_gids(grh, &source, &dest) && !memcmp(&claimed, &source, sizeof(source));
}

/* Return: whether the packet was queued for the program; otherwise its slot is free. */
static bool handle_received(struct dgram *d, struct dgram_qp *qp, const struct ibv_wc *wc)
{
	struct dgram_packet *packet = &qp->packet[wc->wr_id];
	const uint8_t *data = recv_slot(qp, (uint32_t)wc->wr_id) + INBOX_GRH_BYTES;
	uint32_t bytes = wc->byte_len > INBOX_GRH_BYTES ? wc->byte_len - INBOX_GRH_BYTES : 0;
	ssize_t header = dgram_ud_decode(data, bytes, &packet->from);

	if (bytes > DGRAM_SLOT_BYTES || header < 0 || !is_sent_from(qp, wc, &packet->from))
		return false;
	if (addr_is_link_local(&packet->from))
		packet->from.in6.sin6_scope_id = id_of(qp->id)->path.gid.ifindex;
	packet->data = data + header;
	packet->bytes = bytes - (uint32_t)header;
	return dgram_deliver(d, packet);
}

static void handle_completion(struct dgram *d, struct dgram_qp *qp, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS && !qp->is_broken) {
		log_debug("socket %d: queue pair %u: %s; it is restarted", d->base.fd,
			  qp->id->qp->qp_num, ibv_wc_status_str(wc->status));
		qp->is_broken = true;
		qp_to_error(id_of(qp->id));
	}
	if (wc->wr_id & IS_SEND) {
		qp->spare[qp->n_spare++] = (uint32_t)wc->wr_id;
		return;
	}
	qp->n_posted--;
	if (wc->status != IBV_WC_SUCCESS || !handle_received(d, qp, wc))
		post_recv(qp, (uint32_t)wc->wr_id);
}

/* It starts again once all requests have completed. Meanwhile datagrams are sent over UDP. */
static void restart_broken(struct dgram *d, struct dgram_qp *qp)
{
	uint32_t n = qp->n_idle;

	if (!qp->is_broken || qp->n_posted || qp->n_spare < qp->n_slots || d->error)
		return;
	d->error = qp_restart(id_of(qp->id));
	qp->is_broken = d->error != 0;
	qp->n_idle = 0;
	for (uint32_t i = 0; i < n; i++)
		post_recv(qp, qp->idle[i]);
}

void dgram_qp_progress(struct dgram *d, struct dgram_qp *qp)
{
	struct ibv_wc wc[COMPLETIONS_AT_ONCE];
	uint32_t left = 2 * qp->n_slots;
	int n = COMPLETIONS_AT_ONCE;

	while (n == COMPLETIONS_AT_ONCE && left >= COMPLETIONS_AT_ONCE) {
		n = ibv_poll_cq(qp->cq, COMPLETIONS_AT_ONCE, wc);
		for (int i = 0; i < n; i++)
			handle_completion(d, qp, &wc[i]);
		left -= COMPLETIONS_AT_ONCE;
	}
	if (n == COMPLETIONS_AT_ONCE)
		watch_notify(&d->base);
	restart_broken(d, qp);
}

/* --- sending ------------------------------------------------------------- */

int dgram_qp_send(struct dgram_dest *dest, const uint8_t *header, size_t header_bytes,
		  const struct rs_transfer *out)
{
	struct dgram_qp *qp = dest->qp;
	uint32_t slot = qp->n_spare ? qp->spare[qp->n_spare - 1] : 0;
	struct ibv_sge sge = { .addr = (uintptr_t)send_slot(qp, slot), .lkey = qp->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = IS_SEND | slot,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.wr.ud = { .ah = dest->ah, .remote_qpn = dest->qpn, .remote_qkey = QKEY },
	};
	uint32_t payload = (uint32_t)rs_transfer_bytes(out);
	struct rs_cursor from = { out->iov, 0 };
	uint8_t *to = send_slot(qp, slot);
	struct ibv_send_wr *bad;
	int err;

	if (!qp->n_spare)
		return -EAGAIN;
	memcpy(to, header, header_bytes);
	rs_gather(&from, to + header_bytes, payload);
	sge.length = (uint32_t)header_bytes + payload;
	if (sge.length <= qp->inline_bytes)
		wr.send_flags = IBV_SEND_INLINE;
	err = ibv_post_send(qp->id->qp, &wr, &bad);
	if (!err)
		qp->n_spare--;
	return -err;
}

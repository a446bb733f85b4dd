/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reception beside QP1: see inbox.h. The device puts the GRH in front of a message, or an IPv4
 * header in the last twenty bytes of that space; the path back to the sender is read from it, as
 * the kernel does for QP1 (IBTA vol. 1, annex 17, A17.9.2).
 */
#include "mad/inbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"

#define SLOT_BYTES     (INBOX_GRH_BYTES + MAD_BYTES)
#define IPV4_AT	       20
#define IPV4_WORDS     10 /* of 16 bits, without options */
#define HOP_LIMIT      64
#define GIDS_MAX       1024
#define SGID_INDEX_MAX UINT8_MAX
#define OWN_MAX	       64
#define AGAIN_NS       20000000 /* then the table is read again for a GID not in it */

struct own_gid {
	struct mad_gid gid;
	int index; /* -ENOENT: it was in no entry, or in several */
	uint64_t read_ns;
};

/* On pages of its own, which a child lacks where the kernel does not copy registered memory. */
struct room {
	uint8_t slot[INBOX_SLOTS][SLOT_BYTES];
	uint8_t rest[INBOX_REST_BYTES]; /* shared by all slots, for messages that are too long */
};

struct inbox {
	struct mad_port port; /* first */
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	struct ibv_context *verbs;
	uint8_t port_num;
	unsigned int n_slots;
	struct own_gid own[OWN_MAX]; /* recently queried GIDs */
	unsigned int n_own;	     /* total number queried */
	struct room *room;
};

/* --- the path back to the sender ----------------------------------------- */

static bool is_grh(const uint8_t grh[INBOX_GRH_BYTES])
{
	return grh[0] >> 4 == 6;
}

static bool has_valid_checksum(const uint8_t *ipv4)
{
	uint32_t sum = 0;
	int i;

	for (i = 0; i < IPV4_WORDS; i++)
		sum += (uint32_t)(ipv4[2 * i] << 8 | ipv4[2 * i + 1]);
	return (sum & 0xffff) + (sum >> 16) == 0xffff;
}

static struct own_gid *known_gid(struct inbox *inbox, const struct mad_gid *gid)
{
	unsigned int i;

	for (i = 0; i < inbox->n_own && i < OWN_MAX; i++)
		if (!memcmp(&inbox->own[i].gid, gid, sizeof(*gid)))
			return &inbox->own[i];
	return NULL;
}

/* Return: the number of entries in *ret, which the caller frees. */
static ssize_t read_gids(const struct inbox *inbox, struct ibv_gid_entry **ret)
{
	*ret = calloc(GIDS_MAX, sizeof(**ret));
	return *ret ? ibv_query_gid_table(inbox->verbs, *ret, GIDS_MAX, 0) : 0;
}

/*
 * Return: the index of a GID, if it is unique: two interfaces may have the same link-local address,
 * and an arriving message does not show which of them received it.
 */
static int find_index(const struct inbox *inbox, const struct mad_gid *gid)
{
	struct ibv_gid_entry *entry;
	ssize_t i, n = read_gids(inbox, &entry);
	unsigned int n_found = 0;
	uint32_t index = 0;

	for (i = 0; i < n; i++) {
		if (entry[i].port_num != inbox->port_num ||
		    entry[i].gid_type != IBV_GID_TYPE_ROCE_V2 ||
		    memcmp(&entry[i].gid, gid, sizeof(*gid)) != 0)
			continue;
		index = entry[i].gid_index;
		n_found++;
	}
	free(entry);
	return n_found == 1 && index <= SGID_INDEX_MAX ? (int)index : -ENOENT;
}

static int own_index(struct inbox *inbox, const struct mad_gid *gid)
{
	uint64_t now_ns = clock_coarse_ns();
	struct own_gid *own;
	int index;

	own = known_gid(inbox, gid);
	if (own && (own->index >= 0 || now_ns - own->read_ns < AGAIN_NS)) {
		index = own->index;
	} else {
		index = find_index(inbox, gid);
		own = own ? own : &inbox->own[inbox->n_own++ % OWN_MAX];
		*own = (struct own_gid){ *gid, index, now_ns };
	}
	return index;
}

bool inbox_answers_for(struct inbox *inbox, uint8_t sgid_index)
{
	struct ibv_gid_entry entry;
	struct mad_gid gid;

	if (ibv_query_gid_ex(inbox->verbs, inbox->port_num, sgid_index, &entry, 0))
		return false;
	memcpy(&gid, &entry.gid, sizeof(gid));
	return own_index(inbox, &gid) == sgid_index;
}

/*
 * The service level of a REQ's path. Completions do not have it over RoCE: mlx5 stores the packet
 * type there, other devices nothing.
 */
static uint8_t sl_of_path(const uint8_t mad[MAD_BYTES])
{
	struct cm_msg msg;

	if (cm_mad_attr(mad) != CM_ATTR_REQ || cm_msg_decode(mad, MAD_BYTES, &msg))
		return 0;
	return msg.req.primary.sl;
}

int inbox_grh_gids(const uint8_t grh[INBOX_GRH_BYTES], struct mad_gid *ret_source,
		   struct mad_gid *ret_dest)
{
	/*
	 * The bytes in front of an IPv4 header may look like a GRH; and a packet that never left
	 * the host has no checksum.
	 */
	if (grh[IPV4_AT] == 0x45 && (!is_grh(grh) || has_valid_checksum(grh + IPV4_AT))) {
		*ret_source = mad_gid_of_ipv4(grh + IPV4_AT + 12);
		*ret_dest = mad_gid_of_ipv4(grh + IPV4_AT + 16);
	} else if (is_grh(grh)) {
		memcpy(ret_source, grh + 8, sizeof(*ret_source));
		memcpy(ret_dest, grh + 24, sizeof(*ret_dest));
	} else {
		return -EPROTO;
	}
	return 0;
}

static int find_return_path(struct inbox *inbox, const uint8_t grh[INBOX_GRH_BYTES], uint8_t sl,
			    struct mad_path *ret)
{
	struct mad_gid own;
	int index, err;

	*ret = (struct mad_path){ .sl = sl, .grh = true, .hop_limit = HOP_LIMIT };
	err = inbox_grh_gids(grh, &ret->dgid, &own);
	if (err)
		return err;
	if (!mad_gid_is_ipv4(&ret->dgid)) {
		ret->traffic_class = (uint8_t)(grh[0] << 4 | grh[1] >> 4);
		ret->flow_label = (uint32_t)((grh[1] & 0xf) << 16 | grh[2] << 8 | grh[3]);
	}
	index = own_index(inbox, &own);
	ret->sgid_index = (uint8_t)index;
	return index < 0 ? index : 0;
}

/* --- receiving ----------------------------------------------------------- */

/*
 * A message that is too long would break the queue pair for ever, and anyone can send one: rest[]
 * takes what exceeds a slot.
 */
static int post_slot(struct inbox *inbox, uint64_t slot)
{
	struct ibv_sge sge[INBOX_SGES] = { { .addr = (uintptr_t)inbox->room->slot[slot],
					     .length = SLOT_BYTES,
					     .lkey = inbox->mr->lkey },
					   { .addr = (uintptr_t)inbox->room->rest,
					     .length = INBOX_REST_BYTES,
					     .lkey = inbox->mr->lkey } };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = sge, .num_sge = INBOX_SGES }, *bad;

	return -ibv_post_recv(inbox->qp, &wr, &bad);
}

/*
 * Return: 1 with @wc; 0 if there is none, with the channel armed for the next; negative on error.
 */
static int next_completion(struct inbox *inbox, struct ibv_wc *wc)
{
	struct ibv_cq *cq;
	void *context;
	int n = ibv_poll_cq(inbox->cq, 1, wc);

	if (n > 0 || ibv_get_cq_event(inbox->channel, &cq, &context))
		return n;
	ibv_ack_cq_events(inbox->cq, 1);
	if (n < 0 || ibv_req_notify_cq(inbox->cq, 0))
		return -EIO;
	return ibv_poll_cq(inbox->cq, 1, wc);
}

static int take_completion(struct inbox *inbox, const struct ibv_wc *wc, struct mad_path *path,
			   uint8_t mad[MAD_BYTES])
{
	const uint8_t *slot = inbox->room->slot[wc->wr_id];

	if (wc->byte_len != SLOT_BYTES || !(wc->wc_flags & IBV_WC_GRH))
		return -EPROTO;
	inbox->port.source_qpn = wc->src_qp;
	memcpy(mad, slot + INBOX_GRH_BYTES, MAD_BYTES);
	return find_return_path(inbox, slot, sl_of_path(mad), path);
}

/*
 * Skips one invalid message per call: anyone may send here at any rate. When the queue pair has
 * broken, all slots are flushed and none is posted again.
 */
static int inbox_receive(struct mad_port *port, struct mad_path *path, uint8_t mad[MAD_BYTES])
{
	struct inbox *inbox = (struct inbox *)port;
	struct ibv_wc wc;
	int err;

	if (next_completion(inbox, &wc) <= 0)
		return -EAGAIN;
	if (wc.status != IBV_WC_SUCCESS)
		return -ENOMSG;
	err = take_completion(inbox, &wc, path, mad);
	post_slot(inbox, wc.wr_id); /* fails on a device that is gone */
	return err ? -ENOMSG : 0;
}

static int inbox_send(struct mad_port *port, const struct mad_path *path,
		      const uint8_t mad[MAD_BYTES])
{
	(void)port;
	(void)path;
	(void)mad;
	return -EOPNOTSUPP;
}

/* The sender closes it. */
static void inbox_close(struct mad_port *port)
{
	(void)port;
}

static const struct mad_port_ops inbox_ops = {
	.send = inbox_send,
	.receive = inbox_receive,
	.close = inbox_close,
};

/* --- beginning and end --------------------------------------------------- */

static int open_channel(struct inbox *inbox)
{
	int flags;

	inbox->channel = ibv_create_comp_channel(inbox->verbs);
	if (!inbox->channel)
		return errno ? -errno : -ENOMEM;
	inbox->port.fd = inbox->channel->fd;
	flags = fcntl(inbox->port.fd, F_GETFL);
	return fcntl(inbox->port.fd, F_SETFL, flags | O_NONBLOCK) ? -errno : 0;
}

static int make_room(struct inbox *inbox, struct ibv_pd *pd)
{
	void *room = mmap(NULL, sizeof(*inbox->room), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (room == MAP_FAILED)
		return -errno;
	inbox->room = room;
	errno = 0;
	inbox->mr = ibv_reg_mr(pd, room, sizeof(*inbox->room), IBV_ACCESS_LOCAL_WRITE);
	return inbox->mr ? 0 : errno ? -errno : -ENOMEM;
}

static int open_parts(struct inbox *inbox, struct ibv_pd *pd)
{
	int err = open_channel(inbox);

	if (!err)
		err = make_room(inbox, pd);
	if (err)
		return err;
	errno = 0;
	inbox->cq = ibv_create_cq(inbox->verbs, (int)inbox->n_slots, NULL, inbox->channel, 0);
	return inbox->cq ? 0 : errno ? -errno : -ENOMEM;
}

int inbox_new(struct ibv_pd *pd, uint8_t port_num, unsigned int n_slots, struct inbox **ret)
{
	struct inbox *inbox = calloc(1, sizeof(*inbox));
	int err;

	if (!inbox)
		return -ENOMEM;
	inbox->port.ops = &inbox_ops;
	inbox->verbs = pd->context;
	inbox->port_num = port_num;
	inbox->n_slots = n_slots;
	err = open_parts(inbox, pd);
	if (err)
		inbox_free(inbox);
	else
		*ret = inbox;
	return err;
}

struct ibv_cq *inbox_cq(const struct inbox *inbox)
{
	return inbox->cq;
}

int inbox_start(struct inbox *inbox, struct ibv_qp *qp)
{
	uint64_t i;
	int err = 0;

	inbox->qp = qp;
	for (i = 0; i < inbox->n_slots && !err; i++)
		err = post_slot(inbox, i);
	return err ? err : -ibv_req_notify_cq(inbox->cq, 0);
}

struct mad_port *inbox_port(struct inbox *inbox)
{
	return &inbox->port;
}

void inbox_forget(struct inbox *inbox)
{
	inbox->n_own = 0;
}

void inbox_free(struct inbox *inbox)
{
	if (!inbox)
		return;
	if (inbox->cq)
		ibv_destroy_cq(inbox->cq);
	if (inbox->mr)
		ibv_dereg_mr(inbox->mr);
	if (inbox->room)
		munmap(inbox->room, sizeof(*inbox->room));
	if (inbox->channel)
		ibv_destroy_comp_channel(inbox->channel);
	free(inbox);
}

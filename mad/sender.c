/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fast way out of a port: see sender.h.
 *
 * MADs are sent inline, so no buffer outlives the post. Address handles are kept in a small
 * direct-mapped cache; one that is replaced may still be in use by a posted send, so it is
 * destroyed when nothing is under way any more.
 */
#include "mad/sender.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mad/inbox.h"
#include "mad/peers.h"

#define QP1_QKEY    0x80010000
#define SENDS_MAX   256
#define HANDLES	    256 /* a power of two */
#define RETIRED_MAX 64
#define POLL_BATCH  16
#define HELD_MAX    32

/* What an address handle depends on. The flow label is left out: it would make one a connection,
 * and serves only to spread data over equal paths. */
struct key {
	struct mad_gid dgid;
	uint8_t sgid_index;
	uint8_t hop_limit;
	uint8_t traffic_class;
	uint8_t sl;
};

struct handle {
	struct key key;
	unsigned int epoch; /* of the sender, when it was made */
	bool is_made;
	struct ibv_ah *ah; /* NULL: answers could not come here, it has to go through umad */
};

/* A message that is ready to be posted. */
struct held {
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	uint8_t mad[MAD_BYTES];
};

struct mad_sender {
	pthread_mutex_t lock;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint8_t port_num;
	bool broken;
	unsigned int epoch;    /* handles of an earlier one are not to be used */
	unsigned int n_posted; /* and not yet completed */
	unsigned int n_held;
	struct held held[HELD_MAX];
	struct handle handle[HANDLES];
	struct ibv_ah *retired[RETIRED_MAX];
	unsigned int n_retired;
	struct inbox *inbox;
	struct peers peers;
};

/* --- the queue pair ------------------------------------------------------ */

static int create(struct mad_sender *sender, struct ibv_context *verbs)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = SENDS_MAX,
			 .max_recv_wr = INBOX_SLOTS,
			 .max_send_sge = 1,
			 .max_recv_sge = INBOX_SGES,
			 .max_inline_data = MAD_BYTES},
	};
	int err;

	sender->pd = ibv_alloc_pd(verbs);
	sender->cq = ibv_create_cq(verbs, SENDS_MAX, NULL, NULL, 0);
	if (!sender->pd || !sender->cq)
		return errno ? -errno : -ENOMEM;
	err = inbox_new(sender->pd, sender->port_num, &sender->inbox);
	if (err)
		return err;
	init.send_cq = sender->cq;
	init.recv_cq = inbox_cq(sender->inbox);
	sender->qp = ibv_create_qp(sender->pd, &init);
	if (!sender->qp)
		return errno ? -errno : -ENOMEM;
	return init.cap.max_inline_data < MAD_BYTES ? -EOPNOTSUPP : 0;
}

static int start(struct mad_sender *sender)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = sender->port_num,
		.qkey = QP1_QKEY,
	};
	int err = ibv_modify_qp(sender->qp, &attr,
				IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

	if (!err)
		err = -inbox_start(sender->inbox, sender->qp);
	attr.qp_state = IBV_QPS_RTR;
	if (!err)
		err = ibv_modify_qp(sender->qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	if (!err)
		err = ibv_modify_qp(sender->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	return -err;
}

/* Handles are kept by GID, which on InfiniBand is not all of an address. */
static bool is_roce(struct ibv_context *verbs, uint8_t port_num)
{
	struct ibv_port_attr attr;

	return !ibv_query_port(verbs, port_num, &attr) &&
	       attr.link_layer == IBV_LINK_LAYER_ETHERNET;
}

int mad_sender_open(struct ibv_context *verbs, uint8_t port_num, struct mad_sender **ret)
{
	struct mad_sender *sender;
	int err;

	if (!is_roce(verbs, port_num))
		return -EOPNOTSUPP;
	sender = calloc(1, sizeof(*sender));
	if (!sender)
		return -ENOMEM;
	pthread_mutex_init(&sender->lock, NULL);
	sender->port_num = port_num;
	err = create(sender, verbs);
	if (!err)
		err = start(sender);
	if (err) {
		mad_sender_close(sender);
		return err;
	}
	*ret = sender;
	return 0;
}

/* --- address handles ----------------------------------------------------- */

static void destroy_retired(struct mad_sender *sender)
{
	while (sender->n_retired)
		ibv_destroy_ah(sender->retired[--sender->n_retired]);
}

static void retire(struct mad_sender *sender, struct handle *handle)
{
	if (!handle->ah)
		return;
	sender->retired[sender->n_retired++] = handle->ah;
	handle->ah = NULL;
}

static struct handle *slot_of(struct mad_sender *sender, const struct key *key)
{
	const uint8_t *bytes = (const uint8_t *)key;
	uint32_t hash = 0;
	size_t i;

	for (i = 0; i < sizeof(*key); i++)
		hash = (hash ^ bytes[i]) * UINT32_C(0x01000193);
	return &sender->handle[(hash >> 16) & (HANDLES - 1)];
}

static struct ibv_ah *make_ah(struct mad_sender *sender, const struct key *key)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = sender->port_num,
		.sl = key->sl,
		.grh = {.sgid_index = key->sgid_index,
			 .hop_limit = key->hop_limit,
			 .traffic_class = key->traffic_class},
	};

	memcpy(&attr.grh.dgid, &key->dgid, sizeof(attr.grh.dgid));
	return ibv_create_ah(sender->pd, &attr);
}

static struct key key_of(const struct mad_path *path)
{
	return (struct key){
		.dgid = path->dgid,
		.sgid_index = path->sgid_index,
		.hop_limit = path->hop_limit,
		.traffic_class = path->traffic_class,
		.sl = path->sl,
	};
}

static bool is_current(const struct mad_sender *sender, const struct handle *handle,
		       const struct key *key)
{
	return handle->is_made && handle->epoch == sender->epoch &&
	       memcmp(&handle->key, key, sizeof(*key)) == 0;
}

static int make_handle(struct mad_sender *sender, struct handle *handle, const struct key *key)
{
	retire(sender, handle);
	handle->is_made = false;
	if (inbox_answers_for(sender->inbox, key->sgid_index)) {
		errno = 0;
		handle->ah = make_ah(sender, key);
		if (!handle->ah)
			return errno ? -errno : -ENOMEM;
	}
	handle->key = *key;
	handle->epoch = sender->epoch;
	handle->is_made = true;
	return 0;
}

static int find_ah(struct mad_sender *sender, const struct mad_path *path, struct ibv_ah **ret)
{
	struct key key = key_of(path);
	struct handle *handle = slot_of(sender, &key);
	int err = 0;

	if (!is_current(sender, handle, &key)) {
		if (sender->n_retired == RETIRED_MAX)
			return -EAGAIN;
		err = make_handle(sender, handle, &key);
	}
	*ret = handle->ah;
	return !err && !handle->ah ? -EAGAIN : err;
}

bool mad_sender_is_ready(struct mad_sender *sender, const struct mad_path *path)
{
	struct key key = key_of(path);
	const struct handle *handle = slot_of(sender, &key);
	bool is;

	pthread_mutex_lock(&sender->lock);
	is = path->grh && is_current(sender, handle, &key) && handle->ah;
	pthread_mutex_unlock(&sender->lock);
	return is;
}

/* --- sending ------------------------------------------------------------- */

static void reap(struct mad_sender *sender)
{
	struct ibv_wc wc[POLL_BATCH];
	int i, n;

	do {
		n = ibv_poll_cq(sender->cq, POLL_BATCH, wc);
		for (i = 0; i < n; i++)
			if (wc[i].status != IBV_WC_SUCCESS)
				sender->broken = true;
		sender->n_posted -= n > 0 ? (unsigned int)n : 0;
	} while (n == POLL_BATCH);
	if (n < 0)
		sender->broken = true;
	if (sender->n_posted + sender->n_held == 0)
		destroy_retired(sender);
}

static void prepare(struct held *held, struct ibv_ah *ah, uint32_t qpn,
		    const uint8_t mad[MAD_BYTES])
{
	memcpy(held->mad, mad, MAD_BYTES);
	held->sge = (struct ibv_sge){ .addr = (uintptr_t)held->mad, .length = MAD_BYTES };
	held->wr = (struct ibv_send_wr){
		.sg_list = &held->sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_INLINE,
		.wr.ud = {.ah = ah, .remote_qpn = qpn, .remote_qkey = QP1_QKEY},
	};
}

/* Return: how many could not be posted. */
static unsigned int post_held(struct mad_sender *sender)
{
	unsigned int i, n_posted, n = sender->n_held;
	struct ibv_send_wr *bad = NULL;

	if (n == 0)
		return 0;
	for (i = 0; i + 1 < n; i++)
		sender->held[i].wr.next = &sender->held[i + 1].wr;
	sender->n_held = 0;
	if (!ibv_post_send(sender->qp, &sender->held[0].wr, &bad)) {
		sender->n_posted += n;
		return 0;
	}
	for (n_posted = 0; n_posted < n && bad != &sender->held[n_posted].wr; n_posted++)
		continue;
	sender->n_posted += n_posted;
	return n - n_posted;
}

/* To a few milliseconds: it is asked for each message. */
static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static int hold(struct mad_sender *sender, const struct mad_path *path,
		const uint8_t mad[MAD_BYTES])
{
	struct ibv_ah *ah;
	int err;

	reap(sender);
	if (sender->broken || sender->n_posted + sender->n_held == SENDS_MAX)
		return -EAGAIN;
	err = find_ah(sender, path, &ah);
	if (err)
		return err;
	prepare(&sender->held[sender->n_held++], ah,
		peers_qpn(&sender->peers, &path->dgid, now_ns()), mad);
	return sender->n_held == HELD_MAX && post_held(sender) ? -EIO : 0;
}

int mad_sender_hold(struct mad_sender *sender, const struct mad_path *path,
		    const uint8_t mad[MAD_BYTES])
{
	int err;

	if (!path->grh)
		return -EAGAIN;
	pthread_mutex_lock(&sender->lock);
	err = hold(sender, path, mad);
	pthread_mutex_unlock(&sender->lock);
	return err;
}

int mad_sender_send(struct mad_sender *sender, const struct mad_path *path,
		    const uint8_t mad[MAD_BYTES])
{
	int err;

	if (!path->grh)
		return -EAGAIN;
	pthread_mutex_lock(&sender->lock);
	err = hold(sender, path, mad);
	if (!err && post_held(sender))
		err = -EAGAIN;
	pthread_mutex_unlock(&sender->lock);
	return err;
}

unsigned int mad_sender_release(struct mad_sender *sender)
{
	unsigned int n_lost;

	pthread_mutex_lock(&sender->lock);
	n_lost = post_held(sender);
	pthread_mutex_unlock(&sender->lock);
	return n_lost;
}

/* In this order: a handle of the new epoch must not be made from the old GIDs. */
void mad_sender_forget(struct mad_sender *sender)
{
	inbox_forget(sender->inbox);
	pthread_mutex_lock(&sender->lock);
	sender->epoch++;
	pthread_mutex_unlock(&sender->lock);
}

/* --- whom it hears ------------------------------------------------------- */

struct mad_port *mad_sender_port(struct mad_sender *sender)
{
	return inbox_port(sender->inbox);
}

void mad_sender_heard(struct mad_sender *sender, const struct mad_gid *gid, uint32_t qpn)
{
	if (qpn <= PEER_QP1)
		return;
	pthread_mutex_lock(&sender->lock);
	peers_heard(&sender->peers, gid, qpn, now_ns());
	pthread_mutex_unlock(&sender->lock);
}

void mad_sender_doubt(struct mad_sender *sender, const struct mad_gid *gid)
{
	pthread_mutex_lock(&sender->lock);
	peers_doubt(&sender->peers, gid, now_ns());
	pthread_mutex_unlock(&sender->lock);
}

void mad_sender_close(struct mad_sender *sender)
{
	int i;

	if (!sender)
		return;
	if (sender->qp)
		ibv_destroy_qp(sender->qp);
	destroy_retired(sender);
	for (i = 0; i < HANDLES; i++)
		if (sender->handle[i].ah)
			ibv_destroy_ah(sender->handle[i].ah);
	inbox_free(sender->inbox);
	if (sender->cq)
		ibv_destroy_cq(sender->cq);
	if (sender->pd)
		ibv_dealloc_pd(sender->pd);
	pthread_mutex_destroy(&sender->lock);
	free(sender);
}

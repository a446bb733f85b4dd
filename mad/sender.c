/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fast way out of a port: see sender.h.
 *
 * MADs are sent inline, so the device needs no buffer of ours; they are kept until they have
 * completed, so that what failed can go another way. Address handles are kept in a small
 * direct-mapped cache; one that is replaced may still be in use by a posted send, so it is
 * destroyed when nothing is under way any more.
 */
#include "mad/sender.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "mad/asked.h"
#include "mad/inbox.h"
#include "mad/peers.h"

#define QP1_QKEY    0x80010000
#define SENDS_MAX   256
#define HANDLES	    256 /* a power of two */
#define RETIRED_MAX 64
#define POLL_BATCH  16
#define HELD_MAX    32
#define LOOK_NS	    1000000
#define LOOKS	    50

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

/* A message on its way out. */
struct parting {
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct mad_path path;
	bool is_posted;
	uint8_t mad[MAD_BYTES];
};

/* Numbers of messages. */
struct row {
	unsigned int n;
	uint16_t at[SENDS_MAX];
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
	struct row held;       /* ready to be posted */
	struct row failed;     /* to go another way */
	struct row spare;
	struct parting parting[SENDS_MAX];
	struct handle handle[HANDLES];
	struct ibv_ah *retired[RETIRED_MAX];
	unsigned int n_retired;
	struct inbox *inbox;
	struct peers peers;
	struct asked asked;
	bool insists;
};

static void put_number(struct row *row, unsigned int number)
{
	row->at[row->n++] = (uint16_t)number;
}

/* --- the queue pair ------------------------------------------------------ */

static int create_qp(struct mad_sender *sender, struct ibv_context *verbs)
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

static int start_qp(struct mad_sender *sender)
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
	while (sender->spare.n < SENDS_MAX)
		put_number(&sender->spare, SENDS_MAX - 1 - sender->spare.n);
	sender->port_num = port_num;
	err = create_qp(sender, verbs);
	if (!err)
		err = start_qp(sender);
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

static struct handle *slot_of(struct mad_sender *sender, const struct key *key)
{
	return &sender->handle[hash_bytes(key, sizeof(*key)) & (HANDLES - 1)];
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
	if (handle->ah)
		sender->retired[sender->n_retired++] = handle->ah;
	handle->ah = NULL;
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

/* Return: the queue pair that a message is for; PEER_BY_UMAD. */
static uint32_t find_qpn(const struct mad_sender *sender, const struct mad_path *path,
			 const struct mad_talk *talk)
{
	uint32_t qpn = peers_qpn(&sender->peers, &path->dgid, talk->asks, clock_coarse_ns());

	if (sender->insists)
		return qpn == PEER_BY_UMAD ? PEER_QP1 : qpn;
	return !talk->asks && asked_again(&sender->asked, &path->dgid, talk) ? PEER_BY_UMAD : qpn;
}

bool mad_sender_is_ready(struct mad_sender *sender, const struct mad_path *path,
			 const uint8_t mad[MAD_BYTES])
{
	struct key key = key_of(path);
	const struct handle *handle = slot_of(sender, &key);
	struct mad_talk talk = mad_talk_of(mad);
	bool is;

	pthread_mutex_lock(&sender->lock);
	is = path->grh && is_current(sender, handle, &key) && handle->ah &&
	     find_qpn(sender, path, &talk) != PEER_BY_UMAD;
	pthread_mutex_unlock(&sender->lock);
	return is;
}

/* --- sending ------------------------------------------------------------- */

static void complete_parting(struct mad_sender *sender, const struct ibv_wc *wc)
{
	struct parting *parting = &sender->parting[wc->wr_id];

	if (!parting->is_posted)
		return; /* given up before, see give_up_posted() */
	parting->is_posted = false;
	sender->n_posted--;
	if (wc->status == IBV_WC_SUCCESS) {
		put_number(&sender->spare, (unsigned int)wc->wr_id);
		return;
	}
	sender->broken = true;
	put_number(&sender->failed, (unsigned int)wc->wr_id);
}

/* Nothing will complete any more. What has left all the same is said twice, which does no harm. */
static void give_up_posted(struct mad_sender *sender)
{
	unsigned int i;

	sender->broken = true;
	for (i = 0; i < SENDS_MAX && sender->n_posted; i++) {
		if (!sender->parting[i].is_posted)
			continue;
		sender->parting[i].is_posted = false;
		sender->n_posted--;
		put_number(&sender->failed, i);
	}
}

static void reap_completions(struct mad_sender *sender)
{
	struct ibv_wc wc[POLL_BATCH];
	int i, n;

	do {
		n = ibv_poll_cq(sender->cq, POLL_BATCH, wc);
		for (i = 0; i < n; i++)
			complete_parting(sender, &wc[i]);
	} while (n == POLL_BATCH);
	if (n < 0)
		give_up_posted(sender);
	if (sender->n_posted + sender->held.n == 0)
		destroy_retired(sender);
}

static void prepare_parting(struct mad_sender *sender, const struct mad_path *path,
			    struct ibv_ah *ah, uint32_t qpn, const uint8_t mad[MAD_BYTES])
{
	unsigned int number = sender->spare.at[--sender->spare.n];
	struct parting *parting = &sender->parting[number];

	memcpy(parting->mad, mad, MAD_BYTES);
	parting->path = *path;
	parting->sge = (struct ibv_sge){ .addr = (uintptr_t)parting->mad, .length = MAD_BYTES };
	parting->wr = (struct ibv_send_wr){
		.wr_id = number,
		.sg_list = &parting->sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_INLINE,
		.wr.ud = {.ah = ah, .remote_qpn = qpn, .remote_qkey = QP1_QKEY},
	};
	put_number(&sender->held, number);
}

static void post_held(struct mad_sender *sender)
{
	struct row *held = &sender->held;
	struct ibv_send_wr *bad = NULL;
	unsigned int i, n = held->n;
	struct parting *parting;
	int err;

	if (n == 0)
		return;
	for (i = 0; i + 1 < n; i++)
		sender->parting[held->at[i]].wr.next = &sender->parting[held->at[i + 1]].wr;
	err = ibv_post_send(sender->qp, &sender->parting[held->at[0]].wr, &bad);
	held->n = 0;
	for (i = 0; i < n; i++) {
		parting = &sender->parting[held->at[i]];
		if (err && bad == &parting->wr)
			break;
		parting->is_posted = true;
		sender->n_posted++;
	}
	for (; i < n; i++)
		put_number(&sender->failed, held->at[i]);
}

static int hold_message(struct mad_sender *sender, const struct mad_path *path,
			const uint8_t mad[MAD_BYTES])
{
	struct mad_talk talk = mad_talk_of(mad);
	struct ibv_ah *ah;
	uint32_t qpn;
	int err;

	reap_completions(sender);
	if (sender->broken || sender->spare.n == 0)
		return -EAGAIN;
	qpn = find_qpn(sender, path, &talk);
	if (qpn == PEER_BY_UMAD)
		return -EAGAIN;
	err = find_ah(sender, path, &ah);
	if (err)
		return err;
	prepare_parting(sender, path, ah, qpn, mad);
	/* That another queue pair of the peer's can be reached says nothing about QP1. */
	if (talk.asks && qpn == PEER_QP1)
		peers_asked(&sender->peers, &path->dgid, talk.sender_id, clock_coarse_ns());
	if (sender->held.n == HELD_MAX)
		post_held(sender);
	return 0;
}

static int hold_or_send(struct mad_sender *sender, const struct mad_path *path,
			const uint8_t mad[MAD_BYTES], bool is_sent)
{
	int err;

	if (!path->grh)
		return -EAGAIN;
	pthread_mutex_lock(&sender->lock);
	err = hold_message(sender, path, mad);
	if (!err && is_sent)
		post_held(sender);
	pthread_mutex_unlock(&sender->lock);
	return err;
}

int mad_sender_hold(struct mad_sender *sender, const struct mad_path *path,
		    const uint8_t mad[MAD_BYTES])
{
	return hold_or_send(sender, path, mad, false);
}

int mad_sender_send(struct mad_sender *sender, const struct mad_path *path,
		    const uint8_t mad[MAD_BYTES])
{
	return hold_or_send(sender, path, mad, true);
}

void mad_sender_release(struct mad_sender *sender)
{
	pthread_mutex_lock(&sender->lock);
	post_held(sender);
	pthread_mutex_unlock(&sender->lock);
}

bool mad_sender_failed(struct mad_sender *sender, struct mad_path *path, uint8_t mad[MAD_BYTES])
{
	const struct parting *parting;
	unsigned int number;
	bool any;

	pthread_mutex_lock(&sender->lock);
	if (sender->n_posted)
		reap_completions(sender);
	any = sender->failed.n;
	if (any) {
		number = sender->failed.at[0];
		memmove(sender->failed.at, sender->failed.at + 1,
			--sender->failed.n * sizeof(sender->failed.at[0]));
		parting = &sender->parting[number];
		*path = parting->path;
		memcpy(mad, parting->mad, MAD_BYTES);
		put_number(&sender->spare, number);
	}
	pthread_mutex_unlock(&sender->lock);
	return any;
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
	peers_heard(&sender->peers, gid, qpn, clock_coarse_ns());
	pthread_mutex_unlock(&sender->lock);
}

void mad_sender_came(struct mad_sender *sender, const struct mad_gid *gid,
		     const uint8_t mad[MAD_BYTES])
{
	struct mad_talk talk = mad_talk_of(mad);

	pthread_mutex_lock(&sender->lock);
	if (talk.answers)
		peers_answered(&sender->peers, gid, talk.receiver_id, clock_coarse_ns());
	if (asked_note(&sender->asked, gid, &talk))
		peers_missed(&sender->peers, gid, clock_coarse_ns());
	pthread_mutex_unlock(&sender->lock);
}

void mad_sender_unanswered(struct mad_sender *sender, const struct mad_gid *gid,
			   const uint8_t mad[MAD_BYTES])
{
	struct mad_talk talk = mad_talk_of(mad);

	pthread_mutex_lock(&sender->lock);
	peers_unanswered(&sender->peers, gid, talk.sender_id, clock_coarse_ns());
	pthread_mutex_unlock(&sender->lock);
}

void mad_sender_insist(struct mad_sender *sender)
{
	pthread_mutex_lock(&sender->lock);
	sender->insists = true;
	pthread_mutex_unlock(&sender->lock);
}

/* A queue pair that goes takes with it what it has not sent yet. */
static void await_posted(struct mad_sender *sender)
{
	const struct timespec look = { .tv_nsec = LOOK_NS };
	int looks;

	for (looks = 0; looks < LOOKS && sender->n_posted && !sender->broken; looks++) {
		if (looks)
			nanosleep(&look, NULL);
		reap_completions(sender);
	}
}

void mad_sender_close(struct mad_sender *sender)
{
	int i;

	if (!sender)
		return;
	await_posted(sender);
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

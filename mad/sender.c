/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fast path out of a port: see sender.h.
 *
 * MADs are sent from registered slots, as not every device takes 256 bytes inline. They stay there
 * until they complete, so that failed ones can be sent another way.
 */
#include "mad/sender.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "base/clock.h"
#include "mad/asked.h"
#include "mad/handles.h"
#include "mad/inbox.h"
#include "mad/peers.h"

#define QP1_QKEY   0x80010000
#define SENDS_MAX  256
#define POLL_BATCH 16
#define HELD_MAX   32
#define LOOK_NS	   1000000
#define LOOKS	   50

/* An outgoing message. */
struct outgoing {
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct mad_path path;
	bool is_posted;
};

/* A queue of slot numbers. */
struct row {
	unsigned int n;
	uint16_t at[SENDS_MAX];
};

struct mad_sender {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint8_t port_num;
	bool broken;
	unsigned int n_slots;  /* of SENDS_MAX, as many as the device allows */
	unsigned int n_posted; /* posted, not yet completed */
	struct row held;       /* ready to be posted */
	struct row failed;     /* to be sent through umad */
	struct row spare;
	struct outgoing outgoing[SENDS_MAX];
	uint8_t (*slot)[MAD_BYTES]; /* indexed as outgoing[]; on pages of its own, as in inbox.c */
	struct ibv_mr *mr;
	struct handles handles;
	struct inbox *inbox;
	struct peers peers;
	struct asked asked;
	bool insists;
};

bool mad_sender_is_busy(const struct mad_sender *sender)
{
	return sender->held.n || sender->n_posted || sender->failed.n ||
	       sender->peers.n[WAY_PROBED];
}

static void put_number(struct row *row, unsigned int number)
{
	row->at[row->n++] = (uint16_t)number;
}

/* --- the queue pair ------------------------------------------------------ */

static unsigned int min_limit(unsigned int a, int b)
{
	return b > 0 && (unsigned int)b < a ? (unsigned int)b : a;
}

static int make_slots(struct mad_sender *sender)
{
	void *slot = mmap(NULL, SENDS_MAX * sizeof(*sender->slot), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (slot == MAP_FAILED)
		return -errno;
	sender->slot = slot;
	errno = 0;
	sender->mr = ibv_reg_mr(sender->pd, slot, SENDS_MAX * sizeof(*sender->slot), 0);
	if (!sender->mr)
		return errno ? -errno : -ENOMEM;
	while (sender->spare.n < sender->n_slots)
		put_number(&sender->spare, sender->n_slots - 1 - sender->spare.n);
	return 0;
}

static int create_qp(struct mad_sender *sender, struct ibv_context *verbs)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD,
		.sq_sig_all = 1,
		.cap = { .max_send_sge = 1, .max_recv_sge = INBOX_SGES },
	};
	struct ibv_device_attr limits;
	unsigned int n_max = INBOX_SLOTS;
	int err;

	if (!ibv_query_device(verbs, &limits))
		n_max = min_limit(min_limit(n_max, limits.max_qp_wr), limits.max_cqe);
	sender->n_slots = min_limit(SENDS_MAX, (int)n_max);
	errno = 0;
	sender->cq = ibv_create_cq(verbs, (int)sender->n_slots, NULL, NULL, 0);
	if (!sender->cq)
		return errno ? -errno : -ENOMEM;
	err = inbox_new(sender->pd, sender->port_num, n_max, &sender->inbox);
	if (err)
		return err;
	init.cap.max_send_wr = sender->n_slots;
	init.cap.max_recv_wr = n_max;
	init.send_cq = sender->cq;
	init.recv_cq = inbox_cq(sender->inbox);
	errno = 0;
	sender->qp = ibv_create_qp(sender->pd, &init);
	return sender->qp ? 0 : errno ? -errno : -ENOMEM;
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

/* Handles are cached by GID, which does not identify a destination on InfiniBand. */
static bool is_roce(struct ibv_context *verbs, uint8_t port_num)
{
	struct ibv_port_attr attr;

	return !ibv_query_port(verbs, port_num, &attr) &&
	       attr.link_layer == IBV_LINK_LAYER_ETHERNET;
}

static int open_parts(struct mad_sender *sender, struct ibv_context *verbs)
{
	int err;

	errno = 0;
	sender->pd = ibv_alloc_pd(verbs);
	if (!sender->pd)
		return errno ? -errno : -ENOMEM;
	err = create_qp(sender, verbs);
	if (!err)
		err = make_slots(sender);
	if (!err)
		err = handles_init(&sender->handles, sender->pd, sender->port_num, sender->inbox);
	if (!err)
		err = peers_init(&sender->peers);
	return err ? err : start_qp(sender);
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
	sender->port_num = port_num;
	err = open_parts(sender, verbs);
	if (err) {
		mad_sender_close(sender);
		return err;
	}
	*ret = sender;
	return 0;
}

/* --- choice of the destination ------------------------------------------- */

/*
 * Begins a round of probes if one is due. Return: the destination queue pair of a message, or
 * PEER_BY_UMAD.
 */
static uint32_t choose_qpn(struct mad_sender *sender, const struct mad_path *path,
			   const struct mad_talk *talk)
{
	const uint64_t now_ns = clock_coarse_ns();
	uint32_t qpn;

	if (talk->asks && !sender->broken && !sender->insists)
		qpn = peers_asked(&sender->peers, path, now_ns);
	else
		qpn = peers_qpn(&sender->peers, &path->dgid, now_ns);
	if (sender->insists)
		return qpn == PEER_BY_UMAD ? PEER_QP1 : qpn;
	return asked_again(&sender->asked, &path->dgid, talk) ? PEER_BY_UMAD : qpn;
}

/* --- sending ------------------------------------------------------------- */

static void complete_outgoing(struct mad_sender *sender, const struct ibv_wc *wc)
{
	struct outgoing *outgoing = &sender->outgoing[wc->wr_id];

	if (!outgoing->is_posted)
		return; /* given up by give_up_posted() */
	outgoing->is_posted = false;
	sender->n_posted--;
	if (wc->status == IBV_WC_SUCCESS) {
		put_number(&sender->spare, (unsigned int)wc->wr_id);
		return;
	}
	sender->broken = true;
	put_number(&sender->failed, (unsigned int)wc->wr_id);
}

/* No more completions will come. Messages that did leave are sent twice, which is harmless. */
static void give_up_posted(struct mad_sender *sender)
{
	unsigned int i;

	sender->broken = true;
	for (i = 0; i < SENDS_MAX && sender->n_posted; i++) {
		if (!sender->outgoing[i].is_posted)
			continue;
		sender->outgoing[i].is_posted = false;
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
			complete_outgoing(sender, &wc[i]);
	} while (n == POLL_BATCH);
	if (n < 0)
		give_up_posted(sender);
	if (sender->n_posted + sender->held.n == 0)
		handles_drain(&sender->handles);
}

static void prepare_outgoing(struct mad_sender *sender, const struct mad_path *path,
			     struct ibv_ah *ah, uint32_t qpn, const uint8_t mad[MAD_BYTES])
{
	unsigned int number = sender->spare.at[--sender->spare.n];
	struct outgoing *outgoing = &sender->outgoing[number];

	memcpy(sender->slot[number], mad, MAD_BYTES);
	outgoing->path = *path;
	outgoing->sge = (struct ibv_sge){ .addr = (uintptr_t)sender->slot[number],
					  .length = MAD_BYTES,
					  .lkey = sender->mr->lkey };
	outgoing->wr = (struct ibv_send_wr){
		.wr_id = number,
		.sg_list = &outgoing->sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.wr.ud = { .ah = ah, .remote_qpn = qpn, .remote_qkey = QP1_QKEY },
	};
	put_number(&sender->held, number);
}

static void post_held(struct mad_sender *sender)
{
	struct row *held = &sender->held;
	struct ibv_send_wr *bad = NULL;
	unsigned int i, n = held->n;
	struct outgoing *outgoing;
	int err;

	if (n == 0)
		return;
	for (i = 0; i + 1 < n; i++)
		sender->outgoing[held->at[i]].wr.next = &sender->outgoing[held->at[i + 1]].wr;
	err = ibv_post_send(sender->qp, &sender->outgoing[held->at[0]].wr, &bad);
	held->n = 0;
	for (i = 0; i < n; i++) {
		outgoing = &sender->outgoing[held->at[i]];
		if (err && bad == &outgoing->wr)
			break;
		outgoing->is_posted = true;
		sender->n_posted++;
	}
	for (; i < n; i++)
		put_number(&sender->failed, held->at[i]);
}

static bool may_hold(struct mad_sender *sender)
{
	if (sender->n_posted || sender->handles.n_retired)
		reap_completions(sender);
	return !sender->broken && sender->spare.n;
}

static void hold_outgoing(struct mad_sender *sender, const struct mad_path *path, struct ibv_ah *ah,
			  uint32_t qpn, const uint8_t mad[MAD_BYTES])
{
	prepare_outgoing(sender, path, ah, qpn, mad);
	if (sender->held.n == HELD_MAX)
		post_held(sender);
}

static int hold_to_qpn(struct mad_sender *sender, const struct mad_path *path, uint32_t qpn,
		       const uint8_t mad[MAD_BYTES])
{
	struct ibv_ah *ah;
	int err;

	if (!may_hold(sender))
		return -EAGAIN;
	err = handles_make(&sender->handles, path, &ah);
	if (!err)
		hold_outgoing(sender, path, ah, qpn, mad);
	return err;
}

static int hold_message(struct mad_sender *sender, const struct mad_path *path,
			const uint8_t mad[MAD_BYTES])
{
	struct mad_talk talk = mad_talk_of(mad);
	uint32_t qpn = choose_qpn(sender, path, &talk);

	return qpn == PEER_BY_UMAD ? -EAGAIN : hold_to_qpn(sender, path, qpn, mad);
}

static int hold_or_send(struct mad_sender *sender, const struct mad_path *path,
			const uint8_t mad[MAD_BYTES], bool is_sent)
{
	int err;

	if (!path->grh)
		return -EAGAIN;
	err = hold_message(sender, path, mad);
	if (!err && is_sent)
		post_held(sender);
	return err;
}

enum mad_sender_way mad_sender_try(struct mad_sender *sender, const struct mad_path *path,
				   const uint8_t mad[MAD_BYTES])
{
	struct mad_talk talk = mad_talk_of(mad);
	uint32_t qpn = path->grh ? choose_qpn(sender, path, &talk) : PEER_BY_UMAD;
	struct ibv_ah *ah;

	if (qpn == PEER_BY_UMAD)
		return MAD_SENDER_REFUSES;
	ah = handles_find(&sender->handles, path);
	if (!ah)
		return MAD_SENDER_RESOLVES;
	if (!may_hold(sender))
		return MAD_SENDER_REFUSES;
	hold_outgoing(sender, path, ah, qpn, mad);
	return MAD_SENDER_HOLDS;
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
	post_held(sender);
}

bool mad_sender_failed(struct mad_sender *sender, struct mad_path *path, uint8_t mad[MAD_BYTES])
{
	const struct outgoing *outgoing;
	unsigned int number;
	bool any;

	if (sender->n_posted)
		reap_completions(sender);
	any = sender->failed.n;
	if (any) {
		number = sender->failed.at[0];
		memmove(sender->failed.at, sender->failed.at + 1,
			--sender->failed.n * sizeof(sender->failed.at[0]));
		outgoing = &sender->outgoing[number];
		*path = outgoing->path;
		memcpy(mad, sender->slot[number], MAD_BYTES);
		put_number(&sender->spare, number);
	}
	return any;
}

/* The order matters: a handle of the new epoch must not be made from the old GIDs. */
void mad_sender_forget(struct mad_sender *sender)
{
	inbox_forget(sender->inbox);
	handles_forget(&sender->handles);
}

/* --- reception ------------------------------------------------------------ */

struct mad_port *mad_sender_port(struct mad_sender *sender)
{
	return inbox_port(sender->inbox);
}

uint32_t mad_sender_qpn(const struct mad_sender *sender)
{
	return sender->qp->qp_num;
}

void mad_sender_note_qpn(struct mad_sender *sender, const struct mad_gid *gid, uint32_t qpn)
{
	if (qpn <= PEER_QP1)
		return;
	peers_note_message(&sender->peers, gid, qpn, clock_coarse_ns());
}

static bool begins_exchange(const struct mad_talk *talk)
{
	return talk->attr_id == CM_ATTR_REQ || talk->attr_id == CM_ATTR_SIDR_REQ;
}

bool mad_sender_note_arrival(struct mad_sender *sender, const struct mad_gid *gid, uint32_t qpn,
			     const uint8_t mad[MAD_BYTES])
{
	struct mad_talk talk = mad_talk_of(mad);
	bool answers;

	peers_note_arrival(&sender->peers, gid);
	if (begins_exchange(&talk))
		peers_note_request(&sender->peers, gid, qpn);
	answers = talk.attr_id == CM_ATTR_SIDR_REP &&
		  peers_answered(&sender->peers, gid, talk.receiver_id, clock_coarse_ns());
	if (asked_note(&sender->asked, gid, &talk))
		peers_missed(&sender->peers, gid, clock_coarse_ns());
	return answers;
}

void mad_sender_unanswered(struct mad_sender *sender, const struct mad_path *path)
{
	peers_unanswered(&sender->peers, path, clock_coarse_ns());
}

/* The precise clock, by which timers of probes are set: the coarse one would end them too early. */
bool mad_sender_probe(struct mad_sender *sender, struct mad_path *ret, uint8_t ret_mad[MAD_BYTES])
{
	uint64_t now_ns;
	uint32_t id;
	bool is_due;

	if (!sender->peers.n[WAY_PROBED])
		return false;
	now_ns = clock_ns();
	is_due = peers_due_ns(&sender->peers) <= now_ns &&
		 getrandom(&id, sizeof(id), GRND_NONBLOCK) == sizeof(id) &&
		 peers_probe(&sender->peers, id, now_ns, ret, &id);
	if (is_due)
		mad_probe_write(id, ret_mad);
	return is_due;
}

void mad_sender_send_probe(struct mad_sender *sender, const struct mad_path *path,
			   const uint8_t mad[MAD_BYTES])
{
	hold_to_qpn(sender, path, PEER_QP1, mad);
}

void mad_sender_score(struct mad_sender *sender, struct mad_sender_score *ret)
{
	*ret = (struct mad_sender_score){ .n_probed = sender->peers.n[WAY_PROBED],
					  .probe_due_ns = peers_due_ns(&sender->peers),
					  .n_reached = sender->peers.n[WAY_WORKS],
					  .n_lost = sender->peers.n[WAY_FAILS],
					  .first_lost = sender->peers.lost };
}

void mad_sender_insist(struct mad_sender *sender)
{
	sender->insists = true;
}

/* Destroying a queue pair discards messages that it has not sent yet. */
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
	if (!sender)
		return;
	await_posted(sender);
	if (sender->qp)
		ibv_destroy_qp(sender->qp);
	handles_fini(&sender->handles);
	peers_fini(&sender->peers);
	if (sender->mr)
		ibv_dereg_mr(sender->mr);
	if (sender->slot)
		munmap(sender->slot, SENDS_MAX * sizeof(*sender->slot));
	inbox_free(sender->inbox);
	if (sender->cq)
		ibv_destroy_cq(sender->cq);
	if (sender->pd)
		ibv_dealloc_pd(sender->pd);
	free(sender);
}

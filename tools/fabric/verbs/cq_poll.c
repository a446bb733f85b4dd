/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading completions: ibv_poll_cq(), and by field with struct ibv_cq_ex. */
#include "tools/fabric/verbs/cq_poll.h"

#include <errno.h>
#include <sched.h>

#include "tools/fabric/verbs/ack.h"
#include "tools/fabric/verbs/carrier.h"
#include "tools/fabric/verbs/completion.h"
#include "tools/fabric/verbs/engine.h"
#include "tools/fabric/verbs/held.h"
#include "tools/fabric/verbs/poller.h"

#define POLLS_PER_YIELD	 4
#define LOOKS_PER_SOCKET 8

static uint32_t n_visible(const struct fab_cq *cq)
{
	return cq->count - cq->is_last_held;
}

/* Where packets may be in memory, too, most polls make no system call. */
static bool looks_at_socket(struct fab_context *context)
{
	return !context->grants || !context->poller.has_packets ||
	       ++context->poller.n_looks % LOOKS_PER_SOCKET == 0;
}

static void take_packets(struct fab_context *context)
{
	bool by_socket = looks_at_socket(context);

	if (context_progress(context, by_socket) != PROGRESS_NONE || !by_socket)
		return;
	ack_polled(context);
	held_polled(context);
	poller_polled(context);
}

/*
 * Locks the context. For an empty queue, packets are handled here, so that no thread must wake up
 * for a polling program.
 */
static struct fab_context *lock_filled(struct fab_cq *cq)
{
	struct fab_context *context = to_context(cq->ex.context);

	pthread_mutex_lock(&context->lock);
	if (!n_visible(cq) && context->has_thread)
		take_packets(context);
	return context;
}

/* Locked. Return: NULL if the queue is empty; valid until the context is unlocked. */
static const struct fab_completion *take_first(struct fab_cq *cq)
{
	const struct fab_completion *first = &cq->ring[cq->head];

	if (!n_visible(cq))
		return NULL;
	cq->head = (cq->head + 1) % cq->n;
	cq->count--;
	return first;
}

/*
 * A program that only polls yields the processor to the process that it waits for. Not each time:
 * where nobody else is, to find that out takes as long as to look for a packet.
 */
static void unlock_polled(struct fab_context *context, bool found)
{
	bool yields = !found && context->poller.n_polls % POLLS_PER_YIELD == 0 &&
		      context->poller.n_looks % LOOKS_PER_SOCKET == 0;

	if (found)
		poller_note_completion(context);
	context_unlock(context);
	if (yields)
		sched_yield();
}

int cq_poll(struct ibv_cq *ibv, int num_entries, struct ibv_wc *wc)
{
	struct fab_cq *cq = to_cq(ibv);
	struct fab_context *context = lock_filled(cq);
	const struct fab_completion *first;
	int i;

	for (i = 0; i < num_entries && (first = take_first(cq)); i++)
		wc[i] = first->wc;
	unlock_polled(context, i > 0);
	return i;
}

int cq_req_notify(struct ibv_cq *ibv, int solicited_only)
{
	struct fab_context *context = to_context(ibv->context);

	pthread_mutex_lock(&context->lock);
	poller_arms(context);
	held_show(context);
	cq_arm(to_cq(ibv), solicited_only);
	pthread_mutex_unlock(&context->lock);
	return 0;
}

/* --- by field ------------------------------------------------------------- */

static struct fab_cq *from_ex(struct ibv_cq_ex *ex)
{
	return container_of(ex, struct fab_cq, ex);
}

static int next_poll(struct ibv_cq_ex *ex)
{
	struct fab_cq *cq = from_ex(ex);
	struct fab_context *context = lock_filled(cq);
	const struct fab_completion *first = take_first(cq);

	if (first)
		cq->current = *first;
	unlock_polled(context, first);
	if (!first)
		return ENOENT;
	ex->wr_id = cq->current.wc.wr_id;
	ex->status = cq->current.wc.status;
	return 0;
}

/* There is one current completion, so other threads wait for end_poll(), if there was one. */
static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	int err;

	if (attr->comp_mask)
		return EINVAL;
	pthread_mutex_lock(&from_ex(ex)->poll_lock);
	err = next_poll(ex);
	if (err)
		pthread_mutex_unlock(&from_ex(ex)->poll_lock);
	return err;
}

static void end_poll(struct ibv_cq_ex *ex)
{
	pthread_mutex_unlock(&from_ex(ex)->poll_lock);
}

#define READER(type, name, member)                  \
	static type name(struct ibv_cq_ex *ex)      \
	{                                           \
		return from_ex(ex)->current.member; \
	}

/* clang-format off */
READER(enum ibv_wc_opcode, read_opcode, wc.opcode)
READER(uint32_t, read_vendor_err, wc.vendor_err)
READER(uint32_t, read_byte_len, wc.byte_len)
READER(__be32, read_imm_data, wc.imm_data)
READER(uint32_t, read_qp_num, wc.qp_num)
READER(uint32_t, read_src_qp, wc.src_qp)
READER(unsigned int, read_wc_flags, wc.wc_flags)
READER(uint32_t, read_slid, wc.slid)
READER(uint8_t, read_sl, wc.sl)
READER(uint8_t, read_dlid_path_bits, wc.dlid_path_bits)
READER(uint64_t, read_clock, clock_ns)
READER(uint64_t, read_wall_clock, wall_clock_ns)
/* clang-format on */

/* The device has none of these, so no queue is made for them; verbs.h calls them nevertheless. */
static uint16_t read_cvlan(struct ibv_cq_ex *ex)
{
	(void)ex;
	return 0;
}

static uint32_t read_flow_tag(struct ibv_cq_ex *ex)
{
	(void)ex;
	return 0;
}

static void read_tm_info(struct ibv_cq_ex *ex, struct ibv_wc_tm_info *info)
{
	(void)ex;
	*info = (struct ibv_wc_tm_info){ .tag = 0 };
}

static void set_readers(struct fab_cq *cq)
{
	struct ibv_cq_ex *ex = &cq->ex;

	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_byte_len = read_byte_len;
	ex->read_imm_data = read_imm_data;
	ex->read_qp_num = read_qp_num;
	ex->read_src_qp = read_src_qp;
	ex->read_wc_flags = read_wc_flags;
	ex->read_slid = read_slid;
	ex->read_sl = read_sl;
	ex->read_dlid_path_bits = read_dlid_path_bits;
	ex->read_completion_ts = read_clock;
	ex->read_completion_wallclock_ns = read_wall_clock;
	ex->read_cvlan = read_cvlan;
	ex->read_flow_tag = read_flow_tag;
	ex->read_tm_info = read_tm_info;
}

#define KNOWN_FLAGS                                                    \
	(IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | \
	 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
#define KNOWN_MASK (IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD)

/* Flags for a single thread, or a parent domain, have no effect here. */
static bool is_supported(const struct ibv_cq_init_attr_ex *attr)
{
	uint32_t flags = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attr->flags : 0;

	return !(attr->wc_flags & ~(uint64_t)KNOWN_FLAGS) &&
	       !(attr->comp_mask & ~(uint32_t)KNOWN_MASK) &&
	       !(flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
}

struct ibv_cq_ex *cq_create_ex(struct ibv_context *verbs, struct ibv_cq_init_attr_ex *attr)
{
	struct ibv_cq *cq;

	if (!is_supported(attr)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	cq = ibv_create_cq(verbs, (int)attr->cqe, attr->cq_context, attr->channel,
			   (int)attr->comp_vector);
	if (!cq)
		return NULL;
	to_cq(cq)->wc_flags = attr->wc_flags;
	set_readers(to_cq(cq));
	return &to_cq(cq)->ex;
}

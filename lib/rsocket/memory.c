/* SPDX-License-Identifier: BSD-2-Clause */
/* The verbs objects of a stream socket: see memory.h. */
#include "lib/rsocket/memory.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/id/id.h"

#define QUEUE_MIN 16
#define QUEUE_MAX 0xFFFE
/* Credit and IOMAP messages use the same notes, and any number of IOMAP messages may be in flight.
 */
#define N_NOTES(s)  (memory_note_is_inline(s) ? 0 : (s)->sizes.sq_size)
#define NOTE_BYTES  sizeof(struct rs_iomap_entry)
#define UNACKED_MAX 1000
#define RECVS_MAX   32 /* posted at once */
#define CACHE_LINE  64

/* --- making -------------------------------------------------------------- */

/*
 * Control messages need no credit and must find a receive even if the program makes no calls. With
 * only as many receives as credits, a peer that disconnects would wait for the program.
 */
static uint32_t n_recvs(const struct stream *s)
{
	return s->sizes.rq_size + CTRL_SLOTS;
}

static uint32_t clamp_u32(uint32_t value, uint32_t low, uint32_t high)
{
	if (value < low)
		return low;
	return value < high ? value : high;
}

static void clamp_sizes(struct stream *s)
{
	int limit = id_of(s->id)->attached->attr.max_qp_wr;
	uint32_t most = clamp_u32((uint32_t)limit, QUEUE_MIN, QUEUE_MAX);

	s->sizes.sq_size = clamp_u32(s->sizes.sq_size, QUEUE_MIN, most);
	s->sizes.rq_size = clamp_u32(s->sizes.rq_size, QUEUE_MIN, most - CTRL_SLOTS);
	s->sizes.recv_bytes = clamp_u32(s->sizes.recv_bytes & ~1U, 2, INT32_MAX);
}

static int make_queues(struct stream *s)
{
	struct stream_memory *m = &s->memory;
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = s->sizes.sq_size,
			 .max_recv_wr = n_recvs(s),
			 .max_send_sge = 2,
			 .max_recv_sge = 1,
			 .max_inline_data = s->sizes.inline_size },
	};

	errno = 0;
	m->channel = ibv_create_comp_channel(s->id->verbs);
	if (!m->channel)
		return rsock_verbs_error();
	if (fcntl(m->channel->fd, F_SETFL, fcntl(m->channel->fd, F_GETFL) | O_NONBLOCK))
		return -errno;
	m->recv.cq = ibv_create_cq(s->id->verbs, (int)n_recvs(s), &m->recv, m->channel, 0);
	if (m->recv.cq)
		m->send.cq =
			ibv_create_cq(s->id->verbs, (int)s->sizes.sq_size, &m->send, m->channel, 0);
	if (!m->send.cq)
		return rsock_verbs_error();
	attr.send_cq = m->send.cq;
	attr.recv_cq = m->recv.cq;
	if (rdma_create_qp(s->id, NULL, &attr))
		return -errno;
	m->has_qp = true;
	s->sizes.inline_size = attr.cap.max_inline_data;
	return 0;
}

/* Registered memory is not copied by fork(), so it shares no page with other data. */
static int make_buffer(struct stream *s, size_t bytes, int access, void **ret, struct ibv_mr **mr)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return -ENOMEM;
	*ret = at;
	errno = 0;
	*mr = ibv_reg_mr(s->id->pd, *ret, bytes, access);
	return *mr ? 0 : rsock_verbs_error();
}

static void free_buffer(void *at, size_t bytes, struct ibv_mr *mr)
{
	if (mr)
		ibv_dereg_mr(mr);
	if (at)
		munmap(at, bytes);
}

static size_t send_ring_bytes(const struct stream *s)
{
	return s->sizes.send_bytes + N_NOTES(s) * NOTE_BYTES;
}

static size_t table_bytes(const struct stream *s)
{
	size_t bytes = RS_TABLE_ENTRIES * sizeof(struct rs_entry) +
		       s->sizes.iomap_size * sizeof(struct rs_iomap_entry);

	return (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
}

/* The table, which is short, and the ring: few sockets have a use for a page between them. */
static size_t recv_buffer_bytes(const struct stream *s)
{
	return table_bytes(s) + s->sizes.recv_bytes;
}

int memory_make(struct stream *s)
{
	const int by_peer = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	struct stream_memory *m = &s->memory;
	int err;

	clamp_sizes(s);
	err = make_queues(s);
	if (!err)
		err = make_buffer(s, send_ring_bytes(s), IBV_ACCESS_LOCAL_WRITE,
				  (void **)&m->send_ring, &m->send_mr);
	if (!err)
		err = make_buffer(s, recv_buffer_bytes(s), by_peer, (void **)&m->table,
				  &m->recv_mr);
	if (err)
		return err;
	m->recv_ring = (uint8_t *)m->table + table_bytes(s);
	recv_window_init(&s->in, (uint16_t)s->sizes.rq_size, s->sizes.recv_bytes);
	send_window_init(&s->out, s->sizes.sq_size, s->sizes.send_bytes);
	return memory_post_recvs(s, n_recvs(s));
}

static void destroy_cq(struct completions *c)
{
	if (!c->cq)
		return;
	ibv_ack_cq_events(c->cq, c->n_unacked);
	ibv_destroy_cq(c->cq);
}

void memory_free(struct stream *s)
{
	struct stream_memory *m = &s->memory;

	if (m->has_qp)
		rdma_destroy_qp(s->id);
	destroy_cq(&m->recv);
	destroy_cq(&m->send);
	if (m->channel)
		ibv_destroy_comp_channel(m->channel);
	free_buffer(m->send_ring, send_ring_bytes(s), m->send_mr);
	free_buffer(m->table, recv_buffer_bytes(s), m->recv_mr);
	*m = (struct stream_memory){ 0 };
}

/* --- hello --------------------------------------------------------------- */

struct rs_hello memory_hello(const struct stream *s)
{
	const struct stream_memory *m = &s->memory;

	return (struct rs_hello){ .version = RS_VERSION,
				  .has_iomap = true,
				  .big_endian = rs_host_is_big_endian(),
				  .credits = (uint16_t)s->sizes.rq_size,
				  .iomap_scaled = rs_scale_encode(s->sizes.iomap_size),
				  .table_addr = (uintptr_t)m->table,
				  .table_key = m->recv_mr->rkey,
				  .table_entries = RS_TABLE_ENTRIES,
				  .half_addr = (uintptr_t)m->recv_ring,
				  .half_key = m->recv_mr->rkey,
				  .half_bytes = s->sizes.recv_bytes / 2 };
}

int memory_learn(struct stream *s, const struct rs_hello *hello)
{
	if (hello->version != RS_VERSION || !hello->table_entries)
		return -ENOTSUP;
	s->peer = (struct stream_peer){ .table_addr = hello->table_addr,
					.table_key = hello->table_key,
					.table_entries = hello->table_entries,
					.big_endian = hello->big_endian };
	if (hello->has_iomap)
		s->peer.iomap_size = rs_scale_decode(hello->iomap_scaled);
	s->in.n_slots = hello->table_entries;
	s->in.slot = 1 % hello->table_entries;
	send_window_open(&s->out, hello);
	return 0;
}

/* --- posting ------------------------------------------------------------- */

int memory_post_recvs(struct stream *s, uint32_t n)
{
	struct ibv_recv_wr wr[RECVS_MAX], *bad;

	while (n) {
		uint32_t part = n < RECVS_MAX ? n : RECVS_MAX;
		int err;

		for (uint32_t i = 0; i < part; i++)
			wr[i] = (struct ibv_recv_wr){ .wr_id = RECV_WR_ID,
						      .next = i + 1 < part ? &wr[i + 1] : NULL };
		err = ibv_post_recv(s->id->qp, wr, &bad);
		if (err)
			return -err;
		n -= part;
	}
	return 0;
}

struct sent sent_of(uint64_t wr_id)
{
	return (struct sent){ .op = (enum rs_op)(wr_id >> 48),
			      .slots = (uint16_t)(wr_id >> 32),
			      .ring_bytes = (uint32_t)wr_id };
}

int memory_post(struct stream *s, enum rs_op op, uint32_t ring_bytes, const uint32_t *message,
		const struct piece *piece, int n_pieces, bool is_inline, struct rs_entry to)
{
	struct sent sent = { .op = op, .slots = 1, .ring_bytes = ring_bytes };
	struct ibv_sge sge[2];
	struct ibv_send_wr wr, *bad;
	int err;

	if (op == RS_OP_DATA || op == RS_OP_WRITE) {
		sent.slots = 0;
		if (!send_window_keep_quiet(&s->out, ring_bytes)) {
			sent.slots = (uint16_t)s->out.quiet_slots;
			sent.ring_bytes = s->out.quiet_bytes;
			send_window_signal(&s->out);
		}
	}
	/* By member: clearing what other operations use would cost as much as all of this. */
	wr.wr_id = (uint64_t)sent.op << 48 | (uint64_t)sent.slots << 32 | sent.ring_bytes;
	wr.next = NULL;
	wr.sg_list = sge;
	wr.num_sge = n_pieces;
	wr.opcode = message ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
	wr.send_flags = (is_inline ? IBV_SEND_INLINE : 0) | (sent.slots ? IBV_SEND_SIGNALED : 0);
	wr.imm_data = message ? htobe32(*message) : 0;
	wr.wr.rdma.remote_addr = to.addr;
	wr.wr.rdma.rkey = to.key;
	for (int i = 0; i < n_pieces; i++)
		sge[i] = (struct ibv_sge){ .addr = (uintptr_t)piece[i].at,
					   .length = piece[i].bytes,
					   .lkey = piece[i].lkey };
	err = ibv_post_send(s->id->qp, &wr, &bad);
	if (!err && sent.slots)
		s->n_sent++;
	return -err;
}

bool memory_note_is_inline(const struct stream *s)
{
	return s->sizes.inline_size >= NOTE_BYTES;
}

struct piece memory_note(struct stream *s, const void *note, uint32_t bytes)
{
	struct stream_memory *m = &s->memory;
	uint8_t *at = m->send_ring + s->sizes.send_bytes + m->next_note * NOTE_BYTES;

	if (memory_note_is_inline(s))
		return (struct piece){ .at = note, .bytes = bytes };
	m->next_note = (m->next_note + 1) % N_NOTES(s);
	memcpy(at, note, bytes);
	return (struct piece){ .at = at, .bytes = bytes, .lkey = m->send_mr->lkey };
}

/* --- events -------------------------------------------------------------- */

static void arm_cq(struct completions *c)
{
	if (!c->armed && ibv_req_notify_cq(c->cq, 0) == 0)
		c->armed = true;
}

int memory_arm(struct stream *s, bool for_sent)
{
	struct stream_memory *m = &s->memory;

	if (!m->has_qp)
		return -1;
	arm_cq(&m->recv);
	/* A queue pair may flush its receives before it reports the failed send. */
	if (for_sent || m->is_flushing)
		arm_cq(&m->send);
	return m->channel->fd;
}

bool memory_disarm(struct stream *s)
{
	struct stream_memory *m = &s->memory;
	struct completions *c;
	struct ibv_cq *cq;
	void *context;

	if (!m->has_qp || ibv_get_cq_event(m->channel, &cq, &context))
		return false;
	c = context;
	c->armed = false;
	if (++c->n_unacked == UNACKED_MAX) {
		ibv_ack_cq_events(cq, c->n_unacked);
		c->n_unacked = 0;
	}
	return true;
}

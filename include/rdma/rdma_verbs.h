/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Short forms of the verbs for an id that has its own queue pair: register, post, wait for a
 * completion. All but the shared receive queue calls are inlined into the program, so the members
 * of struct rdma_cm_id that they read (qp, pd, srq, the completion queues and their channels) are
 * part of the ABI.
 *
 * Every posting function stores @context in ibv_wc.wr_id, and returns once the work request is
 * queued; buffers and their registration must stay valid until it has completed. An array @sgl is
 * copied. @flags are enum ibv_send_flags. @mr covers the buffer; it may be NULL where the data is
 * inline (IBV_SEND_INLINE) or absent.
 *
 * All int functions return 0, or -1 with errno set by the device (ENOMEM: queue full).
 */
#ifndef RDMA_VERBS_H
#define RDMA_VERBS_H

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The library is built with -fvisibility=hidden; it exports what is declared here. */
#pragma GCC visibility push(default)

/**
 * rdma_create_srq() - create a shared receive queue for the id
 * @id:   with a device, without a shared receive queue; sets id->srq
 * @pd:   of the same device, or NULL for id->pd
 * @attr: attributes; updated with the actual capacities
 *
 * Queue pairs that are created on @id later receive from it. Destroy it after them, with
 * rdma_destroy_srq().
 *
 * Return: 0, or -1 with errno set: EINVAL without @pd and device; else the error of the device.
 */
int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr);

/**
 * rdma_create_srq_ex() - rdma_create_srq() with extended attributes
 * @id:   as for rdma_create_srq()
 * @attr: attributes; comp_mask must have IBV_SRQ_INIT_ATTR_TYPE, absent members are filled in
 *
 * Return: as rdma_create_srq(); also EINVAL without a type.
 */
int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr);

/**
 * rdma_destroy_srq() - destroy the id's shared receive queue
 * @id: with a shared receive queue; id->srq is NULL afterwards
 */
void rdma_destroy_srq(struct rdma_cm_id *id);

#pragma GCC visibility pop

/**
 * rdma_seterrno() - convert the result of a verb to this library's convention
 * @ret: 0, a positive errno, or -1 with errno already set
 *
 * Return: 0 for 0, else -1 with errno set.
 */
static inline int rdma_seterrno(int ret)
{
	if (ret == 0)
		return 0;
	if (ret > 0)
		errno = ret;
	return -1;
}

/**
 * rdma_reg_msgs() - register a buffer for sending and receiving
 * @id:     with a protection domain
 * @addr:   first byte
 * @length: size in bytes
 *
 * Return: the registration, for rdma_dereg_mr(); or NULL with errno set.
 */
static inline struct ibv_mr *rdma_reg_msgs(struct rdma_cm_id *id, void *addr, size_t length)
{
	return ibv_reg_mr(id->pd, addr, length, IBV_ACCESS_LOCAL_WRITE);
}

/**
 * rdma_reg_read() - register a buffer that the peer may read
 * @id:     with a protection domain
 * @addr:   first byte
 * @length: size in bytes
 *
 * Return: the registration, for rdma_dereg_mr(); or NULL with errno set.
 */
static inline struct ibv_mr *rdma_reg_read(struct rdma_cm_id *id, void *addr, size_t length)
{
	return ibv_reg_mr(id->pd, addr, length, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
}

/**
 * rdma_reg_write() - register a buffer that the peer may write
 * @id:     with a protection domain
 * @addr:   first byte
 * @length: size in bytes
 *
 * Return: the registration, for rdma_dereg_mr(); or NULL with errno set.
 */
static inline struct ibv_mr *rdma_reg_write(struct rdma_cm_id *id, void *addr, size_t length)
{
	return ibv_reg_mr(id->pd, addr, length, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
}

/**
 * rdma_dereg_mr() - deregister a buffer
 * @mr: the registration; freed
 */
static inline int rdma_dereg_mr(struct ibv_mr *mr)
{
	return rdma_seterrno(ibv_dereg_mr(mr));
}

/* One buffer as a scatter/gather entry; the key is 0 without @mr. */
static inline struct ibv_sge purecm_sge(void *addr, size_t length, struct ibv_mr *mr)
{
	struct ibv_sge sge;

	sge.addr = (uint64_t)(uintptr_t)addr;
	sge.length = (uint32_t)length;
	sge.lkey = mr ? mr->lkey : 0;
	return sge;
}

/* A send work request without the members that depend on its opcode. */
static inline struct ibv_send_wr purecm_send_wr(enum ibv_wr_opcode opcode, void *context,
						struct ibv_sge *sgl, int nsge, int flags)
{
	struct ibv_send_wr wr;

	memset(&wr, 0, sizeof(wr));
	wr.wr_id = (uintptr_t)context;
	wr.sg_list = sgl;
	wr.num_sge = nsge;
	wr.opcode = opcode;
	wr.send_flags = (unsigned int)flags;
	return wr;
}

/* Posts @wr alone. */
static inline int purecm_post(struct rdma_cm_id *id, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	return rdma_seterrno(ibv_post_send(id->qp, wr, &bad));
}

/**
 * rdma_post_recvv() - post a receive to id->srq, or to id->qp if there is none
 * @id:      with one of them
 * @context: wr_id of the completion
 * @sgl:     the buffers
 * @nsge:    number of buffers
 */
static inline int rdma_post_recvv(struct rdma_cm_id *id, void *context, struct ibv_sge *sgl,
				  int nsge)
{
	struct ibv_recv_wr wr, *bad;

	memset(&wr, 0, sizeof(wr));
	wr.wr_id = (uintptr_t)context;
	wr.sg_list = sgl;
	wr.num_sge = nsge;
	if (id->srq)
		return rdma_seterrno(ibv_post_srq_recv(id->srq, &wr, &bad));
	return rdma_seterrno(ibv_post_recv(id->qp, &wr, &bad));
}

/**
 * rdma_post_sendv() - post a send
 * @id:      with a queue pair
 * @context: wr_id of the completion
 * @sgl:     the buffers
 * @nsge:    number of buffers
 * @flags:   enum ibv_send_flags
 */
static inline int rdma_post_sendv(struct rdma_cm_id *id, void *context, struct ibv_sge *sgl,
				  int nsge, int flags)
{
	struct ibv_send_wr wr = purecm_send_wr(IBV_WR_SEND, context, sgl, nsge, flags);

	return purecm_post(id, &wr);
}

/**
 * rdma_post_readv() - post an RDMA read
 * @id:          with a queue pair
 * @context:     wr_id of the completion
 * @sgl:         the buffers to read into
 * @nsge:        number of buffers
 * @flags:       enum ibv_send_flags
 * @remote_addr: address of the data at the peer
 * @rkey:        the peer's key for it
 */
static inline int rdma_post_readv(struct rdma_cm_id *id, void *context, struct ibv_sge *sgl,
				  int nsge, int flags, uint64_t remote_addr, uint32_t rkey)
{
	struct ibv_send_wr wr = purecm_send_wr(IBV_WR_RDMA_READ, context, sgl, nsge, flags);

	wr.wr.rdma.remote_addr = remote_addr;
	wr.wr.rdma.rkey = rkey;
	return purecm_post(id, &wr);
}

/**
 * rdma_post_writev() - post an RDMA write
 * @id:          with a queue pair
 * @context:     wr_id of the completion
 * @sgl:         the buffers to write from
 * @nsge:        number of buffers
 * @flags:       enum ibv_send_flags
 * @remote_addr: destination address at the peer
 * @rkey:        the peer's key for it
 */
static inline int rdma_post_writev(struct rdma_cm_id *id, void *context, struct ibv_sge *sgl,
				   int nsge, int flags, uint64_t remote_addr, uint32_t rkey)
{
	struct ibv_send_wr wr = purecm_send_wr(IBV_WR_RDMA_WRITE, context, sgl, nsge, flags);

	wr.wr.rdma.remote_addr = remote_addr;
	wr.wr.rdma.rkey = rkey;
	return purecm_post(id, &wr);
}

/**
 * rdma_post_recv() - rdma_post_recvv() with one buffer
 * @id:      as for rdma_post_recvv()
 * @context: wr_id of the completion
 * @addr:    first byte
 * @length:  size in bytes
 * @mr:      covers the buffer
 */
static inline int rdma_post_recv(struct rdma_cm_id *id, void *context, void *addr, size_t length,
				 struct ibv_mr *mr)
{
	struct ibv_sge sge = purecm_sge(addr, length, mr);

	return rdma_post_recvv(id, context, &sge, 1);
}

/**
 * rdma_post_send() - rdma_post_sendv() with one buffer
 * @id:      as for rdma_post_sendv()
 * @context: wr_id of the completion
 * @addr:    first byte
 * @length:  size in bytes
 * @mr:      covers the buffer; may be NULL
 * @flags:   enum ibv_send_flags
 */
static inline int rdma_post_send(struct rdma_cm_id *id, void *context, void *addr, size_t length,
				 struct ibv_mr *mr, int flags)
{
	struct ibv_sge sge = purecm_sge(addr, length, mr);

	return rdma_post_sendv(id, context, &sge, 1, flags);
}

/**
 * rdma_post_read() - rdma_post_readv() with one buffer
 * @id:          as for rdma_post_readv()
 * @context:     wr_id of the completion
 * @addr:        first byte
 * @length:      size in bytes
 * @mr:          covers the buffer
 * @flags:       enum ibv_send_flags
 * @remote_addr: as for rdma_post_readv()
 * @rkey:        as for rdma_post_readv()
 */
static inline int rdma_post_read(struct rdma_cm_id *id, void *context, void *addr, size_t length,
				 struct ibv_mr *mr, int flags, uint64_t remote_addr, uint32_t rkey)
{
	struct ibv_sge sge = purecm_sge(addr, length, mr);

	return rdma_post_readv(id, context, &sge, 1, flags, remote_addr, rkey);
}

/**
 * rdma_post_write() - rdma_post_writev() with one buffer
 * @id:          as for rdma_post_writev()
 * @context:     wr_id of the completion
 * @addr:        first byte
 * @length:      size in bytes
 * @mr:          covers the buffer; may be NULL
 * @flags:       enum ibv_send_flags
 * @remote_addr: as for rdma_post_writev()
 * @rkey:        as for rdma_post_writev()
 */
static inline int rdma_post_write(struct rdma_cm_id *id, void *context, void *addr, size_t length,
				  struct ibv_mr *mr, int flags, uint64_t remote_addr, uint32_t rkey)
{
	struct ibv_sge sge = purecm_sge(addr, length, mr);

	return rdma_post_writev(id, context, &sge, 1, flags, remote_addr, rkey);
}

/**
 * rdma_post_ud_send() - send a datagram, with the Q_Key RDMA_UDP_QKEY
 * @id:         with a datagram queue pair
 * @context:    wr_id of the completion
 * @addr:       first byte
 * @length:     size in bytes
 * @mr:         covers the buffer; may be NULL
 * @flags:      enum ibv_send_flags
 * @ah:         address handle of the destination
 * @remote_qpn: queue pair number at the destination
 */
static inline int rdma_post_ud_send(struct rdma_cm_id *id, void *context, void *addr, size_t length,
				    struct ibv_mr *mr, int flags, struct ibv_ah *ah,
				    uint32_t remote_qpn)
{
	struct ibv_sge sge = purecm_sge(addr, length, mr);
	struct ibv_send_wr wr = purecm_send_wr(IBV_WR_SEND, context, &sge, 1, flags);

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = remote_qpn;
	wr.wr.ud.remote_qkey = RDMA_UDP_QKEY;
	return purecm_post(id, &wr);
}

/*
 * Sleeps until @channel announces a completion of @cq. The library creates one channel per queue,
 * with the id as context: any other event means that the id is corrupt.
 */
static inline int purecm_sleep_on_cq(struct rdma_cm_id *id, struct ibv_cq *cq,
				     struct ibv_comp_channel *channel)
{
	struct ibv_cq *announced;
	void *context;

	if (ibv_get_cq_event(channel, &announced, &context))
		return -1;
	assert(announced == cq && context == id);
	(void)id;
	ibv_ack_cq_events(cq, 1);
	return 0;
}

/* Gets one completion of @cq. Polls again after arming, to catch one that came in between. */
static inline int purecm_get_comp(struct rdma_cm_id *id, struct ibv_cq *cq,
				  struct ibv_comp_channel *channel, struct ibv_wc *wc)
{
	int n, ret;

	for (;;) {
		n = ibv_poll_cq(cq, 1, wc);
		if (n)
			break;
		ret = ibv_req_notify_cq(cq, 0);
		if (ret)
			return rdma_seterrno(ret);
		n = ibv_poll_cq(cq, 1, wc);
		if (n)
			break;
		if (purecm_sleep_on_cq(id, cq, channel))
			return -1;
	}
	return n < 0 ? rdma_seterrno(n) : n;
}

/**
 * rdma_get_send_comp() - wait for the next completion of id->send_cq
 * @id: with a completion queue that the library created
 * @wc: filled in
 *
 * Return: 1, or -1 with errno set.
 */
static inline int rdma_get_send_comp(struct rdma_cm_id *id, struct ibv_wc *wc)
{
	return purecm_get_comp(id, id->send_cq, id->send_cq_channel, wc);
}

/**
 * rdma_get_recv_comp() - wait for the next completion of id->recv_cq
 * @id: with a completion queue that the library created
 * @wc: filled in
 *
 * Return: 1, or -1 with errno set.
 */
static inline int rdma_get_recv_comp(struct rdma_cm_id *id, struct ibv_wc *wc)
{
	return purecm_get_comp(id, id->recv_cq, id->recv_cq_channel, wc);
}

#ifdef __cplusplus
}
#endif

#endif /* RDMA_VERBS_H */

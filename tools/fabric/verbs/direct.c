/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes and reads without packets: see direct.h. */
#include "tools/fabric/verbs/direct.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "tools/fabric/verbs/memory.h"
#include "tools/fabric/verbs/transport.h"

#define WORD_BYTES sizeof(uint64_t)
#define BYTES_MAX  (1u << 20) /* the call that posts a send returns after it */

struct fab_direct {
	struct fab_grants *grants;     /* of the peer's process; NULL if they cannot be used */
	int32_t pid;		       /* of that process */
	struct fab_grant *grant;       /* the one for this queue pair */
	const struct fab_page *page;   /* of the peer's host */
	struct fab_counters *of_slots; /* of the peer's host, or NULL */
	bool is_refused;	       /* by the kernel, or according to the files */
	bool copies_short_words;
};

static bool is_for(const struct fab_grant *grant, const struct fab_packet *header)
{
	return memcmp(&grant->header, header, sizeof(*header)) == 0;
}

static struct fab_grant *find_grant(struct fab_grants *grants, const struct fab_packet *header)
{
	unsigned int i;

	for (i = 0; i < FAB_GRANTS; i++)
		if (is_for(&grants->grant[i], header))
			return &grants->grant[i];
	return NULL;
}

/*
 * A program may poll a number whose last byte is the message's, so that number is stored in one
 * piece. The kernel copies eight bytes in one piece, but fewer byte by byte on a processor without
 * fast short "rep movsb". With it, a reader saw no part of 600,000 numbers of 2, 4 and 8 bytes.
 */
static bool copies_short_words(void)
{
#ifdef __x86_64__
	const unsigned int fsrm = 1u << 4;
	unsigned int eax, ebx, ecx, edx;

	return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && edx & fsrm;
#else
	return true;
#endif
}

static bool open_files(struct fab_direct *direct, const struct fab_qp *qp)
{
	const struct fab_folder *folder = &context_of(qp)->device->folder;
	struct fab_folder there = *folder;
	char path[FAB_PATH_BYTES];

	memcpy(there.host, qp->peer.host, sizeof(there.host));
	fab_folder_page(&there, path);
	if (fab_page_open(path, &direct->page))
		return false;
	if (fab_counters_open(folder, there.host, &direct->of_slots))
		direct->of_slots = NULL;
	fab_folder_grants(folder, there.host, qp->attr.dest_qp_num >> FAB_SLOT_SHIFT, path);
	return !fab_grants_open(path, &direct->grants, &direct->pid);
}

/* What cannot be opened is not tried again. */
static void open_peer(struct fab_qp *qp)
{
	qp->direct = calloc(1, sizeof(*qp->direct));
	if (!qp->direct)
		return;
	qp->direct->copies_short_words = copies_short_words();
	qp->direct->is_refused = !open_files(qp->direct, qp);
}

void direct_open(struct fab_qp *qp)
{
	struct fab_packet header;

	if (!context_of(qp)->grants)
		return;
	if (!qp->direct)
		open_peer(qp);
	if (!qp->direct || qp->direct->is_refused)
		return;
	transport_header(qp, &header);
	if (!(qp->direct->grant && is_for(qp->direct->grant, &header)))
		qp->direct->grant = find_grant(qp->direct->grants, &header);
}

void direct_close(struct fab_qp *qp)
{
	if (!qp->direct)
		return;
	fab_grants_close(qp->direct->grants);
	fab_counters_close(qp->direct->of_slots);
	fab_page_close(qp->direct->page);
	free(qp->direct);
	qp->direct = NULL;
}

/* --- copies -------------------------------------------------------------- */

/* Return: size of the number that ends a message at @end; 0 if it cannot be stored at once. */
static size_t last_bytes(const struct fab_direct *direct, uint64_t end, uint64_t bytes)
{
	size_t n = WORD_BYTES;

	while (n > bytes || end % n)
		n /= 2;
	return n == WORD_BYTES || n == 1 || direct->copies_short_words ? n : 0;
}

/*
 * The kernel copies each part in ascending order, and one after the other. Return: false if nothing
 * or not all was copied.
 */
static bool copy(struct fab_direct *direct, enum fab_right right, uint64_t at, const void *data,
		 size_t bytes)
{
	size_t last = right == FAB_RIGHT_WRITE ? last_bytes(direct, at + bytes, bytes) : bytes;
	struct iovec here = { (void *)(uintptr_t)data, bytes };
	struct iovec there[2] = {
		{ (void *)(uintptr_t)at, bytes - last },
		{ (void *)(uintptr_t)(at + bytes - last), last },
	};
	bool one = bytes == last;
	ssize_t n;

	if (!last)
		return false;
	if (right == FAB_RIGHT_READ)
		n = process_vm_readv(direct->pid, &here, 1, there + one, 1, 0);
	else
		n = process_vm_writev(direct->pid, &here, 1, there + one, one ? 1 : 2, 0);
	if (n < 0 && (errno == EPERM || errno == ENOSYS))
		direct->is_refused = true;
	return n == (ssize_t)bytes;
}

/* --- sends ---------------------------------------------------------------- */

static bool is_wire_plain(const struct fab_qp *qp)
{
	const struct fab_context *context = context_of(qp);
	const struct fab_page *page = context->device->page;

	return !page->is_removed && page->port[qp->attr.port_num - 1].state == IBV_PORT_ACTIVE &&
	       !fab_faulty_has_faults(&context->peers.faulty);
}

/* What is gathered from several places must fit into context->scratch. */
static bool is_short(const struct fab_send *send)
{
	bool in_one_piece = send->inline_data || send->n_sge == 1;

	if (!send->bytes || (send->opcode == IBV_WR_RDMA_READ && !in_one_piece))
		return false;
	return send->bytes <= (in_one_piece ? BYTES_MAX : FAB_FRAGMENT_BYTES);
}

/* Return: whether @right is the one that a send needs, if it can be executed here. */
static bool find_right(const struct fab_qp *qp, const struct fab_send *send, enum fab_right *right)
{
	*right = send->opcode == IBV_WR_RDMA_READ ? FAB_RIGHT_READ : FAB_RIGHT_WRITE;
	if (*right == FAB_RIGHT_READ)
		return qp->attr.max_rd_atomic && is_short(send);
	return send->opcode == IBV_WR_RDMA_WRITE && is_short(send);
}

/* Return: the data of a write, or the place of that of a read; NULL for packets to find out why. */
static const void *find_data(const struct fab_qp *qp, const struct fab_send *send,
			     enum fab_right right)
{
	const struct ibv_sge *sge = send->sge;
	const void *data = NULL;
	const struct fab_mr *mr;

	if (!send->inline_data && send->n_sge == 1) {
		mr = memory_find(context_of(qp), qp->ex.qp_base.pd, sge->lkey, sge->addr,
				 sge->length, right == FAB_RIGHT_READ ? IBV_ACCESS_LOCAL_WRITE : 0);
		return mr ? memory_at(mr, sge->addr) : NULL;
	}
	if (transport_gather(qp, send, 0, (uint32_t)send->bytes, &data) != IBV_WC_SUCCESS)
		return NULL;
	return data;
}

/*
 * Return: whether all that was sent in packets before has been handled, which a reliable requester
 * knows by acknowledgements.
 */
static bool has_handled_all(const struct fab_grant *grant, const struct fab_packet *header,
			    const struct fab_send *send)
{
	return header->service != FAB_SERVICE_UC ||
	       __atomic_load_n(&grant->psn, __ATOMIC_ACQUIRE) == (send->first_psn & FAB_PSN_MASK);
}

/* Nothing has changed since the responder checked the rights, and the range is in the region. */
static bool covers(const struct fab_direct *direct, enum fab_right right,
		   const struct fab_packet *header, const struct fab_send *send)
{
	const struct fab_grant *grant = direct->grant;
	const struct fab_granted *region = &grant->region[right];

	return is_for(grant, header) && region->rkey && region->rkey == send->rkey &&
	       has_handled_all(grant, header, send) &&
	       grant->turn == __atomic_load_n(&direct->page->turn, __ATOMIC_ACQUIRE) &&
	       send->remote_addr >= region->iova && send->bytes <= region->bytes &&
	       send->remote_addr - region->iova <= region->bytes - send->bytes;
}

static bool copy_if_granted(struct fab_direct *direct, enum fab_right right,
			    const struct fab_packet *header, const struct fab_send *send,
			    const void *data)
{
	const struct fab_granted *region = &direct->grant->region[right];

	return covers(direct, right, header, send) && fab_grants_is_alive(direct->grants) &&
	       copy(direct, right, region->at + (send->remote_addr - region->iova), data,
		    send->bytes);
}

static void count_at_both_ends(struct fab_counters *from, struct fab_counters *to,
			       struct fab_packet *packet, uint8_t op)
{
	packet->op = op;
	fab_count_sent(from, packet);
	fab_count_received(to, packet);
}

/* As the packets that there would be, at both ends. */
static void count_packets(const struct fab_qp *qp, enum fab_right right, struct fab_packet *packet,
			  uint32_t bytes)
{
	struct fab_counters *of_slots = qp->direct->of_slots, *own = context_of(qp)->counters;
	struct fab_counters *peer = of_slots ? &of_slots[packet->dest_qpn >> FAB_SLOT_SHIFT] : NULL;
	struct fab_packet back = *packet;

	packet->flags |= FAB_FIRST | FAB_LAST;
	back.flags |= FAB_FIRST | FAB_LAST;
	back.from_port = packet->port_num;
	back.port_num = packet->from_port;
	if (right == FAB_RIGHT_READ)
		count_at_both_ends(own, peer, packet, FAB_OP_READ);
	for (; bytes; bytes -= packet->bytes) {
		packet->bytes = bytes < qp->payload_bytes ? bytes : qp->payload_bytes;
		back.bytes = packet->bytes;
		if (right == FAB_RIGHT_READ)
			count_at_both_ends(peer, own, &back, FAB_OP_READ_RESPONSE);
		else
			count_at_both_ends(own, peer, packet, FAB_OP_WRITE);
	}
}

static bool may_have_right(const struct fab_qp *qp, const struct fab_send *send,
			   enum fab_right *right)
{
	const struct fab_direct *direct = qp->direct;

	return direct && direct->grant && !direct->is_refused && find_right(qp, send, right) &&
	       is_wire_plain(qp);
}

static bool execute_by_grant(struct fab_qp *qp, const struct fab_send *send)
{
	struct fab_direct *direct = qp->direct;
	struct fab_packet header;
	enum fab_right right;
	const void *data;
	bool done;

	if (!may_have_right(qp, send, &right))
		return false;
	data = find_data(qp, send, right);
	if (!data || !fab_grant_trylock(direct->grant))
		return false;
	transport_header(qp, &header);
	done = copy_if_granted(direct, right, &header, send, data);
	fab_grant_unlock(direct->grant);
	if (done)
		count_packets(qp, right, &header, (uint32_t)send->bytes);
	return done;
}

/*
 * No acknowledgement reports the grant of an unreliable queue pair, so look for it, less often
 * after each failure.
 */
static void look_for_grant(struct fab_qp *qp)
{
	uint32_t n = ++qp->n_by_packets;

	if (n > 1 && (n & (n - 1)) == 0)
		direct_open(qp);
}

bool direct_execute(struct fab_qp *qp, const struct fab_send *send)
{
	enum fab_right right;

	if (execute_by_grant(qp, send))
		return true;
	if (qp->init.qp_type == IBV_QPT_UC && find_right(qp, send, &right))
		look_for_grant(qp);
	return false;
}

bool direct_is_worth_waiting(const struct fab_qp *qp, const struct fab_send *send)
{
	struct fab_packet header;
	enum fab_right right;

	if (send->opcode != IBV_WR_RDMA_READ || !may_have_right(qp, send, &right))
		return false;
	transport_header(qp, &header);
	return covers(qp->direct, right, &header, send) && fab_grants_is_alive(qp->direct->grants);
}

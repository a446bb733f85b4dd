/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stores to a program's memory: each byte is stored once, in ascending order. Programs poll the
 * last byte of a message, and may reuse the memory as soon as it changes.
 *
 * What comes lies across the border of two pages, the second of which may not be written yet. So
 * the first store into it stops: all before the border must be there by then, and what the test
 * puts there instead, as a program that answers would, must not be stored over afterwards. Runs on
 * a host of a soft fabric: tests/fabric/meson.build.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fabric/rig.h"
#include "tests/unit/test.h"

#define BYTES_MAX    200
#define ATOMIC_BYTES 8
#define GRH_BYTES    40
#define ANSWER	     0x55

static const struct {
	const char *name;
	enum ibv_qp_type type;
	enum ibv_wr_opcode opcode;
} ways[] = {
	{ "write", IBV_QPT_RC, IBV_WR_RDMA_WRITE },
	{ "write with immediate", IBV_QPT_RC, IBV_WR_RDMA_WRITE_WITH_IMM },
	{ "send", IBV_QPT_RC, IBV_WR_SEND },
	{ "response of a read", IBV_QPT_RC, IBV_WR_RDMA_READ },
	{ "response of an atomic", IBV_QPT_RC, IBV_WR_ATOMIC_FETCH_AND_ADD },
	{ "unreliable write", IBV_QPT_UC, IBV_WR_RDMA_WRITE_WITH_IMM },
	{ "datagram", IBV_QPT_UD, IBV_WR_SEND },
};

static const uint32_t lengths[] = { 2,	3,  4,	5,  7,	8,  9,	15, 16, 17, 24,	 31,  32,
				    33, 40, 47, 48, 63, 64, 65, 80, 96, 97, 128, 129, BYTES_MAX };

/* --- the border ---------------------------------------------------------- */

static struct {
	char *border;
	size_t page_bytes;
	uint32_t before; /* number of bytes before it */
	char expected[BYTES_MAX];
	volatile bool was_reached, was_whole;
} field;

static void border_is_reached(int number, siginfo_t *info, void *context)
{
	const char *at = info->si_addr;

	(void)context;
	if (at < field.border - field.before || at >= field.border + field.page_bytes) {
		signal(number, SIG_DFL);
		return;
	}
	field.was_reached = true;
	field.was_whole = memcmp(field.border - field.before, field.expected, field.before) == 0;
	memset(field.border - field.before, ANSWER, field.before);
	mprotect(field.border, field.page_bytes, PROT_READ | PROT_WRITE);
}

/* To be called when the device has installed its own handler. */
static void field_open(void)
{
	struct sigaction action = { .sa_sigaction = border_is_reached, .sa_flags = SA_SIGINFO };
	char *pages;

	field.page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	pages = mmap(NULL, 2 * field.page_bytes, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(pages, MAP_FAILED);
	field.border = pages + field.page_bytes;
	ck_assert_int_eq(sigaction(SIGSEGV, &action, NULL), 0);
}

static void field_prepare(uint32_t before, uint32_t bytes, unsigned int seed)
{
	uint32_t i;

	for (i = 0; i < bytes; i++)
		field.expected[i] = (char)(1 + (seed + i) % 80); /* not ANSWER, not 0 */
	memset(field.border - before, 0, bytes);
	field.before = before;
	field.was_reached = false;
	field.was_whole = false;
	mprotect(field.border, field.page_bytes, PROT_READ);
}

static void field_judge(const char *way, uint32_t bytes)
{
	uint32_t i;

	ck_assert_msg(field.was_reached, "%s of %u bytes: nothing came", way, bytes);
	ck_assert_msg(field.was_whole, "%s of %u bytes: byte %u was stored before one below it",
		      way, bytes, field.before);
	for (i = 0; i < field.before; i++)
		ck_assert_msg(field.border[(int)i - (int)field.before] == ANSWER,
			      "%s of %u bytes: byte %u was stored again after byte %u", way, bytes,
			      i, field.before);
	ck_assert_int_eq(memcmp(field.border, field.expected + field.before, bytes - field.before),
			 0);
}

/* --- received data ------------------------------------------------------- */

static bool is_response(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static void receive_into(struct rig *rig, const struct ibv_sge *field_sge)
{
	struct ibv_sge sge[2] = { { (uintptr_t)rig->b.memory, GRH_BYTES, rig->b.mr->lkey },
				  *field_sge };
	bool is_datagram = rig->b.qp->qp_type == IBV_QPT_UD;
	struct ibv_recv_wr *bad,
		wr = { .sg_list = is_datagram ? sge : sge + 1, .num_sge = is_datagram ? 2 : 1 };

	ck_assert_int_eq(ibv_post_recv(rig->b.qp, &wr, &bad), 0);
}

/* The other end has the data that will be written to the field. */
static struct ibv_send_wr request(struct rig *rig, enum ibv_wr_opcode opcode, struct ibv_sge *sge,
				  const struct ibv_sge *field_sge)
{
	struct ibv_send_wr wr = rig_wr(rig, opcode, sge, field_sge->length);

	if (is_response(opcode)) {
		memcpy(rig->b.memory, field.expected, field_sge->length);
		*sge = *field_sge;
		return wr;
	}
	memcpy(rig->a.memory, field.expected, field_sge->length);
	wr.wr.rdma.remote_addr = field_sge->addr;
	wr.wr.rdma.rkey = field_sge->lkey;
	return wr;
}

static void bring(struct rig *rig, struct ibv_ah *ah, enum ibv_wr_opcode opcode,
		  const struct ibv_sge *field_sge)
{
	bool takes_receive = opcode == IBV_WR_SEND || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	struct ibv_sge sge;
	struct ibv_send_wr wr = request(rig, opcode, &sge, field_sge);

	if (ah) {
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = rig->b.qp->qp_num;
		wr.wr.ud.remote_qkey = RIG_QKEY;
	}
	if (takes_receive)
		receive_into(rig, field_sge);
	rig_post(&rig->a, &wr);
	rig_wait(rig->a.cq, IBV_WC_SUCCESS);
	if (takes_receive)
		rig_wait(rig->b.cq, IBV_WC_SUCCESS);
}

TEST_LOOP(each_byte_is_stored_once_and_in_order, 0, sizeof(ways) / sizeof(ways[0]))
{
	enum ibv_wr_opcode opcode = ways[_i].opcode;
	struct ibv_sge sge;
	struct ibv_ah *ah;
	struct ibv_mr *mr;
	struct rig rig;
	size_t i;

	rig_open(&rig, &(struct rig_config){ .type = ways[_i].type });
	field_open();
	ah = ways[_i].type == IBV_QPT_UD ? rig_ah(&rig) : NULL;
	mr = ibv_reg_mr(rig.pd, field.border - field.page_bytes, 2 * field.page_bytes,
			RIG_ALL_ACCESS);
	ck_assert_ptr_nonnull(mr);
	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD && lengths[i] != ATOMIC_BYTES)
			continue;
		for (uint32_t before = 1; before < lengths[i]; before++) {
			field_prepare(before, lengths[i], before);
			sge = (struct ibv_sge){ (uintptr_t)field.border - before, lengths[i],
						mr->lkey };
			bring(&rig, ah, opcode, &sge);
			field_judge(ways[_i].name, lengths[i]);
		}
	}
	ck_assert_int_eq(ibv_dereg_mr(mr), 0);
	if (ah)
		ibv_destroy_ah(ah);
	rig_close(&rig);
}

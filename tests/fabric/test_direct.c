/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes and reads that need no packet (tools/fabric/verbs/direct.h): when they are possible, what
 * ends the permission, and their order among other requests. Runs on hosts of a soft fabric that
 * permits them, and, with PACKETS=1, on some that do not: tests/fabric/meson.build.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/fabric/direct_rig.h"
#include "tests/unit/test.h"
#include "tools/fabric/wire/page.h"

NEEDS(kernel_permits_writes);

TEST(permitted_writes_need_no_packets)
{
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ 0 });
	ck_assert_uint_ne(write_text(&rig, "gazelles", 0), 0);
	ck_assert_int_eq(write_until_permitted(&rig), is_permitted());
	rig_close(&rig);
}

TEST(permitted_reads_need_no_packets)
{
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ 0 });
	ck_assert_uint_ne(read_text(&rig, "gazelles", 0), 0);
	ck_assert_int_eq(read_until_permitted(&rig), is_permitted());
	rig_close(&rig);
}

TEST(reads_and_writes_of_a_queue_pair_are_both_permitted)
{
	unsigned int i;
	struct rig rig;

	open_permitted(&rig);
	ck_assert(read_until_permitted(&rig));
	for (i = 0; i < 10; i++) {
		ck_assert_uint_eq(write_text(&rig, "gazelles", 64), 0);
		ck_assert_uint_eq(read_text(&rig, "an otter", RIG_BYTES - BYTES), 0);
	}
	rig_close(&rig);
}

TEST(direct_write_is_stored_when_the_call_returns)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct rig rig;

	open_permitted(&rig);
	wr = write_at(&rig, &sge, 0, BYTES);
	memcpy(rig.a.memory, "gazelles", BYTES);
	rig_post(&rig.a, &wr);
	ck_assert_int_eq(memcmp(rig.b.memory, "gazelles", BYTES), 0);
	rig_wait(rig.a.cq, IBV_WC_SUCCESS);
	rig_none(rig.a.cq);
	rig_close(&rig);
}

TEST(first_and_last_bytes_of_the_region_are_written)
{
	struct rig rig;

	open_permitted(&rig);
	ck_assert_uint_eq(write_text(&rig, "g", 0), 0);
	ck_assert_uint_eq(write_text(&rig, "gazelles", RIG_BYTES - BYTES), 0);
	ck_assert_uint_eq(write_text(&rig, "s", RIG_BYTES - 1), 0);
	rig_close(&rig);
}

TEST(short_writes_of_any_length_and_place_are_whole)
{
	struct rig rig;
	char text[40];
	uint32_t bytes, at;

	open_permitted(&rig);
	for (bytes = 1; bytes < sizeof(text); bytes++) {
		memset(text, (char)('a' + bytes % 26), sizeof(text));
		text[bytes] = '\0';
		for (at = 64; at < 72; at++) {
			memset(rig.b.memory, 0, 128);
			write_text(&rig, text, at);
			ck_assert_int_eq(rig.b.memory[at - 1], 0);
			ck_assert_int_eq(rig.b.memory[at + bytes], 0);
		}
	}
	rig_close(&rig);
}

/* A PSN out of order would make a request be refused or remain unanswered. */
/* Return: number of packets of the write. */
static unsigned int write_long(struct rig *rig, uint32_t bytes, unsigned int seed, uint32_t n_sge)
{
	struct ibv_sge sge[2];
	struct ibv_send_wr wr = write_at(rig, sge, 0, bytes);
	unsigned int before = n_packets;
	uint32_t i;

	for (i = 0; i < bytes; i++)
		rig->a.memory[i] = (char)(i * 7 + seed);
	if (n_sge == 2) {
		sge[1] = sge[0];
		sge[0].length = bytes / 2;
		sge[1].addr += bytes / 2;
		sge[1].length = bytes - bytes / 2;
		wr.num_sge = 2;
	}
	rig_post(&rig->a, &wr);
	rig_wait(rig->a.cq, IBV_WC_SUCCESS);
	ck_assert_int_eq(memcmp(rig->a.memory, rig->b.memory, bytes), 0);
	return n_packets - before;
}

static const struct {
	uint32_t bytes, n_sge;
	bool by_packets;
} long_writes[] = {
	{ 32768, 1, false },  { 32769, 1, false }, { 1000000, 1, false }, { 1u << 20, 1, false },
	{ 1048577, 1, true }, { 32768, 2, false }, { 32769, 2, true }, /* gathered data is limited
									  to the size of a packet */
};

/* After one write in packets, writes are permitted without. */
TEST_LOOP(long_writes_need_no_packets_either, 0, sizeof(long_writes) / sizeof(long_writes[0]))
{
	unsigned int i, n = 1;
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ 0 });
	ck_assert_uint_ne(write_long(&rig, long_writes[_i].bytes, 0, long_writes[_i].n_sge), 0);
	for (i = 1; n && (i < 20 || !long_writes[_i].by_packets); i++) {
		n = write_long(&rig, long_writes[_i].bytes, i, long_writes[_i].n_sge);
		usleep(n ? 1000 : 0);
	}
	ck_assert_int_eq(n != 0, long_writes[_i].by_packets);
	rig_close(&rig);
}

TEST(direct_write_keeps_its_order_among_other_requests)
{
	struct ibv_sge sge[3];
	struct rig rig;
	unsigned int i;

	open_permitted(&rig);
	for (i = 0; i < 50; i++) {
		struct ibv_send_wr write = write_at(&rig, &sge[0], 0, BYTES);
		struct ibv_send_wr read = rig_wr(&rig, IBV_WR_RDMA_READ, &sge[1], BYTES);
		struct ibv_send_wr send = rig_wr(&rig, IBV_WR_SEND, &sge[2], BYTES);

		write_text(&rig, i % 2 ? "gazelles" : "elephant", 0);
		sge[1].addr += 64;
		rig_receive(&rig.b, i, BYTES);
		memcpy(rig.a.memory, i % 2 ? "an otter" : "a weasel", BYTES);
		/* Requests in a list are outstanding together, so they need packets. */
		write.next = &read;
		read.next = i % 3 ? &send : NULL;
		rig_post(&rig.a, &write);
		if (!read.next)
			rig_post(&rig.a, &send);
		rig_wait(rig.a.cq, IBV_WC_SUCCESS);
		rig_wait(rig.a.cq, IBV_WC_SUCCESS);
		rig_wait(rig.a.cq, IBV_WC_SUCCESS);
		ck_assert_int_eq(memcmp(rig.a.memory + 64, rig.a.memory, BYTES), 0);
		rig_wait(rig.b.cq, IBV_WC_SUCCESS);
	}
	rig_close(&rig);
}

/* Posts a list of reads to consecutive places, after a send or not. */
static void post_reads(struct rig *rig, struct ibv_sge *sge, uint32_t n, bool after_send)
{
	struct ibv_send_wr wr[8];
	uint32_t i;

	for (i = 0; i < n; i++) {
		wr[i] = rig_wr(rig, i || !after_send ? IBV_WR_RDMA_READ : IBV_WR_SEND, &sge[i],
			       BYTES);
		sge[i].addr += i * BYTES;
		wr[i].wr_id = i;
		wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
	}
	rig_post(&rig->a, wr);
	for (i = 0; i < n; i++)
		ck_assert_uint_eq(rig_wait(rig->a.cq, IBV_WC_SUCCESS).wr_id, i);
}

TEST(reads_posted_together_need_no_packets)
{
	unsigned int before;
	struct ibv_sge sge[8];
	struct rig rig;

	open_permitted(&rig);
	ck_assert(read_until_permitted(&rig));
	before = n_packets;
	post_reads(&rig, sge, 8, false);
	ck_assert_uint_eq(n_packets, before);
	ck_assert_int_eq(memcmp(rig.a.memory + 7 * BYTES, "elephant", BYTES), 0);
	rig_close(&rig);
}

TEST(reads_wait_for_what_is_outstanding_rather_than_use_packets)
{
	unsigned int before;
	struct ibv_sge sge[8];
	struct rig rig;

	open_permitted(&rig);
	ck_assert(read_until_permitted(&rig));
	rig_receive(&rig.b, 0, BYTES);
	before = n_packets;
	post_reads(&rig, sge, 8, true);
	ck_assert_uint_le(n_packets, before + 2); /* the send and its ACK */
	rig_wait(rig.b.cq, IBV_WC_SUCCESS);
	ck_assert_uint_eq(write_text(&rig, "gazelles", 0), 0);
	rig_close(&rig);
}

/* --- unreliable connections ---------------------------------------------- */

static void await_text(const struct rig *rig, const char *text)
{
	while (memcmp(rig->b.memory, text, BYTES))
		usleep(100);
}

/* Return: number of packets. */
static unsigned int write_unreliably(struct rig *rig, const char *text)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = write_at(rig, &sge, 0, BYTES);
	unsigned int before = n_packets;

	memcpy(rig->a.memory, text, BYTES);
	rig_post(&rig->a, &wr);
	rig_wait(rig->a.cq, IBV_WC_SUCCESS);
	await_text(rig, text);
	return n_packets - before;
}

static bool write_unreliably_until_permitted(struct rig *rig)
{
	unsigned int i;

	for (i = 0; i < (is_permitted() ? ATTEMPTS_MAX : 1000); i++) {
		if (!write_unreliably(rig, i % 2 ? "gazelles" : "elephant"))
			return true;
		usleep(1000);
	}
	return false;
}

TEST(unreliable_writes_need_no_packets_either)
{
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_UC });
	ck_assert_uint_ne(write_unreliably(&rig, "gazelles"), 0);
	ck_assert_int_eq(write_unreliably_until_permitted(&rig), is_permitted());
	rig_close(&rig);
}

TEST(unreliable_write_does_not_overtake_a_packet)
{
	struct ibv_sge sge;
	struct rig rig;
	unsigned int i;

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_UC });
	ck_assert(write_unreliably_until_permitted(&rig));
	for (i = 0; i < 500; i++) {
		struct ibv_send_wr wr = write_at(&rig, &sge, 0, BYTES);

		wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM; /* the receiver must process a packet */
		rig_receive(&rig.b, i, 0);
		memcpy(rig.a.memory, "elephant", BYTES);
		rig_post(&rig.a, &wr);
		memcpy(rig.a.memory, "gazelles", BYTES);
		wr.opcode = IBV_WR_RDMA_WRITE;
		rig_post(&rig.a, &wr);
		rig_wait(rig.b.cq, IBV_WC_SUCCESS);
		await_text(&rig, "gazelles");
		rig_wait(rig.a.cq, IBV_WC_SUCCESS);
		rig_wait(rig.a.cq, IBV_WC_SUCCESS);
	}
	ck_assert(write_unreliably_until_permitted(&rig));
	rig_close(&rig);
}

/* --- ends of the permission ------------------------------------------------ */

static void deregister(struct rig *rig)
{
	struct ibv_mr *mr = rig->b.mr;

	rig->b.mr = ibv_reg_mr(rig->pd, rig->b.memory, RIG_BYTES, RIG_ALL_ACCESS);
	ck_assert_ptr_nonnull(rig->b.mr);
	ck_assert_int_eq(ibv_dereg_mr(mr), 0);
}

static void withdraw_access(struct rig *rig)
{
	ck_assert_int_eq(ibv_rereg_mr(rig->b.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ),
			 0);
}

static void withdraw_reads(struct rig *rig)
{
	ck_assert_int_eq(ibv_rereg_mr(rig->b.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE),
			 0);
}

static void change_domain(struct rig *rig)
{
	struct ibv_pd *pd = ibv_alloc_pd(rig->verbs);

	ck_assert_ptr_nonnull(pd);
	ck_assert_int_eq(ibv_rereg_mr(rig->b.mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0), 0);
}

static void shrink_region(struct rig *rig)
{
	ck_assert_int_eq(ibv_rereg_mr(rig->b.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
				      rig->b.memory + 64, 64, 0),
			 0);
}

static void withdraw_access_of_qp(struct rig *rig)
{
	struct ibv_qp_attr attr = { .qp_access_flags = IBV_ACCESS_REMOTE_READ };

	ck_assert_int_eq(ibv_modify_qp(rig->b.qp, &attr, IBV_QP_ACCESS_FLAGS), 0);
}

static void withdraw_reads_of_qp(struct rig *rig)
{
	struct ibv_qp_attr attr = { .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };

	ck_assert_int_eq(ibv_modify_qp(rig->b.qp, &attr, IBV_QP_ACCESS_FLAGS), 0);
}

static void enter_error(struct rig *rig)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	ck_assert_int_eq(ibv_modify_qp(rig->b.qp, &attr, IBV_QP_STATE), 0);
}

static const struct {
	void (*end)(struct rig *rig);
	enum ibv_wc_status status;
} ends[] = {
	{ deregister, IBV_WC_REM_ACCESS_ERR },
	{ withdraw_access, IBV_WC_REM_ACCESS_ERR },
	{ change_domain, IBV_WC_REM_ACCESS_ERR },
	{ shrink_region, IBV_WC_REM_ACCESS_ERR },
	{ withdraw_access_of_qp, IBV_WC_REM_INV_REQ_ERR },
	{ enter_error, IBV_WC_RETRY_EXC_ERR },
}, ends_of_reads[] = {
	{ deregister, IBV_WC_REM_ACCESS_ERR },
	{ withdraw_reads, IBV_WC_REM_ACCESS_ERR },
	{ change_domain, IBV_WC_REM_ACCESS_ERR },
	{ shrink_region, IBV_WC_REM_ACCESS_ERR },
	{ withdraw_reads_of_qp, IBV_WC_REM_INV_REQ_ERR },
	{ enter_error, IBV_WC_RETRY_EXC_ERR },
};

TEST_LOOP(change_at_the_peer_ends_the_permission, 0, sizeof(ends) / sizeof(ends[0]))
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct rig rig;

	open_permitted(&rig);
	wr = write_at(&rig, &sge, 0, BYTES);
	memcpy(rig.a.memory, "intruder", BYTES);
	ends[_i].end(&rig);
	rig_post(&rig.a, &wr);
	rig_wait(rig.a.cq, ends[_i].status);
	ck_assert_int_eq(memcmp(rig.b.memory, "elephant", BYTES), 0);
}

TEST_LOOP(change_at_the_peer_ends_the_permission_to_read, 0,
	  sizeof(ends_of_reads) / sizeof(ends_of_reads[0]))
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct rig rig;

	open_permitted(&rig);
	ck_assert(read_until_permitted(&rig));
	wr = rig_wr(&rig, IBV_WR_RDMA_READ, &sge, BYTES);
	memcpy(rig.a.memory, "my own..", BYTES);
	ends_of_reads[_i].end(&rig);
	rig_post(&rig.a, &wr);
	rig_wait(rig.a.cq, ends_of_reads[_i].status);
	ck_assert_int_eq(memcmp(rig.a.memory, "my own..", BYTES), 0);
}

static void use_other_key(struct ibv_send_wr *wr)
{
	wr->wr.rdma.rkey++;
}

static void begin_before(struct ibv_send_wr *wr)
{
	wr->wr.rdma.remote_addr--;
}

static void end_after(struct ibv_send_wr *wr)
{
	wr->wr.rdma.remote_addr += RIG_BYTES - BYTES + 1;
}

static void wrap_around(struct ibv_send_wr *wr)
{
	wr->wr.rdma.remote_addr = UINT64_MAX - 3;
}

static void (*const lies[])(struct ibv_send_wr *wr) = { use_other_key, begin_before, end_after,
							wrap_around };

TEST_LOOP(forbidden_direct_write_is_refused, 0, sizeof(lies) / sizeof(lies[0]))
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct rig rig;

	open_permitted(&rig);
	wr = write_at(&rig, &sge, 0, BYTES);
	memcpy(rig.a.memory, "intruder", BYTES);
	lies[_i](&wr);
	rig_post(&rig.a, &wr);
	rig_wait(rig.a.cq, IBV_WC_REM_ACCESS_ERR);
	ck_assert_int_eq(memcmp(rig.b.memory, "elephant", BYTES), 0);
}

TEST_LOOP(forbidden_direct_read_is_refused, 0, sizeof(lies) / sizeof(lies[0]))
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct rig rig;

	open_permitted(&rig);
	ck_assert(read_until_permitted(&rig));
	wr = rig_wr(&rig, IBV_WR_RDMA_READ, &sge, BYTES);
	memcpy(rig.a.memory, "my own..", BYTES);
	lies[_i](&wr);
	rig_post(&rig.a, &wr);
	rig_wait(rig.a.cq, IBV_WC_REM_ACCESS_ERR);
	ck_assert_int_eq(memcmp(rig.a.memory, "my own..", BYTES), 0);
}

static void use_none(struct rig *rig, struct ibv_sge *sge)
{
	(void)rig;
	sge->lkey++;
}

static void use_unwritable(struct rig *rig, struct ibv_sge *sge)
{
	struct ibv_mr *mr = ibv_reg_mr(rig->pd, rig->a.memory, RIG_BYTES, 0);

	ck_assert_ptr_nonnull(mr);
	sge->lkey = mr->lkey;
}

static void use_too_much(struct rig *rig, struct ibv_sge *sge)
{
	(void)rig;
	sge->addr += RIG_BYTES - BYTES + 1;
}

static void (*const places[])(struct rig *rig, struct ibv_sge *sge) = { use_none, use_unwritable,
									use_too_much };

TEST_LOOP(direct_read_to_forbidden_memory_is_refused, 0, sizeof(places) / sizeof(places[0]))
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct rig rig;

	open_permitted(&rig);
	ck_assert(read_until_permitted(&rig));
	wr = rig_wr(&rig, IBV_WR_RDMA_READ, &sge, BYTES);
	places[_i](&rig, &sge);
	rig_post(&rig.a, &wr);
	rig_wait(rig.a.cq, IBV_WC_LOC_PROT_ERR);
}

/* A queue pair that may have no read outstanding waits for ever, as with packets. */
TEST(direct_read_respects_the_number_of_outstanding_reads)
{
	struct ibv_qp_attr attr = { .max_rd_atomic = 0, .qp_state = IBV_QPS_SQD };
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct rig rig;

	open_permitted(&rig);
	ck_assert(read_until_permitted(&rig));
	ck_assert_int_eq(ibv_modify_qp(rig.a.qp, &attr, IBV_QP_STATE), 0);
	ck_assert_int_eq(ibv_modify_qp(rig.a.qp, &attr, IBV_QP_STATE | IBV_QP_MAX_QP_RD_ATOMIC), 0);
	attr.qp_state = IBV_QPS_RTS;
	ck_assert_int_eq(ibv_modify_qp(rig.a.qp, &attr, IBV_QP_STATE), 0);
	write_text(&rig, "elephant", 0);
	ck_assert(write_until_permitted(&rig));
	wr = rig_wr(&rig, IBV_WR_RDMA_READ, &sge, BYTES);
	rig_post(&rig.a, &wr);
	rig_none(rig.a.cq);
	rig_close(&rig);
}

TEST(unregistered_source_is_refused)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct rig rig;

	open_permitted(&rig);
	wr = write_at(&rig, &sge, 0, BYTES);
	sge.lkey++;
	rig_post(&rig.a, &wr);
	rig_wait(rig.a.cq, IBV_WC_LOC_PROT_ERR);
	ck_assert_int_eq(memcmp(rig.b.memory, "elephant", BYTES), 0);
}

/* Changes of ports, P_Keys and GIDs change the page of the host. */
TEST(change_of_the_device_makes_the_peer_check_again)
{
	const char *folder = getenv("PURECM_FABRIC");
	struct fab_page *page;
	struct rig rig;
	char path[256];
	int fd;

	open_permitted(&rig);
	snprintf(path, sizeof(path), "%s/page", folder);
	fd = open(path, O_RDWR);
	ck_assert_int_ge(fd, 0);
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(page, MAP_FAILED);
	__atomic_add_fetch(&page->turn, 2, __ATOMIC_SEQ_CST);
	ck_assert_uint_ne(write_text(&rig, "gazelles", 0), 0);
	ck_assert(write_until_permitted(&rig));
	rig_close(&rig);
}

/* --- kernels that refuse ----------------------------------------------------- */

static const int refusals[] = { EPERM, ENOSYS };

/* As with the system call filter of a container. */
static void refuse_writes(int err)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_process_vm_writev, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)err),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

TEST_LOOP(writes_use_packets_where_the_kernel_refuses, 0, 2)
{
	struct rig rig;
	unsigned int i;

	open_permitted(&rig);
	refuse_writes(refusals[_i]);
	for (i = 0; i < 100; i++)
		ck_assert_uint_ne(write_text(&rig, i % 2 ? "gazelles" : "elephant", i), 0);
	rig_close(&rig);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory windows of both types, and requests to invalidate their keys, from the owner and from the
 * peer. Runs on a host of a soft fabric, on both of its wires: tests/fabric/meson.build.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fabric/rig.h"
#include "tests/unit/test.h"

#define BYTES	   64
#define OPS	   (IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_SEND_WITH_INV)
#define REMOTE_ALL (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* The queue pair of b allows every remote access; its memory region allows only binding windows. */
static const struct rig_config rc = { .access = RIG_ALL_ACCESS };

static void open_for_windows(struct rig *rig)
{
	rig_open(rig, &rc);
	ck_assert_int_eq(ibv_rereg_mr(rig->b.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND),
			 0);
	memcpy(rig->a.memory, "elephant", 8);
}

static struct ibv_mw *new_window(struct rig *rig, enum ibv_mw_type type)
{
	struct ibv_mw *mw = ibv_alloc_mw(rig->pd, type);

	ck_assert_ptr_nonnull(mw);
	return mw;
}

static void close_with(struct rig *rig, struct ibv_mw *mw)
{
	ck_assert_int_eq(ibv_dealloc_mw(mw), 0);
	rig_close(rig);
}

static struct ibv_mw_bind_info first_bytes(struct rig *rig)
{
	return (struct ibv_mw_bind_info){ rig->b.mr, (uintptr_t)rig->b.memory, BYTES, REMOTE_ALL };
}

/* --- accesses that a window permits -------------------------------------- */

static struct ibv_send_wr access_wr(struct rig *rig, enum ibv_wr_opcode opcode, struct ibv_sge *sge,
				    uint32_t rkey, uint64_t addr)
{
	struct ibv_send_wr wr = rig_wr(rig, opcode, sge, 8);

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.remote_addr = addr;
	} else {
		wr.wr.rdma.rkey = rkey;
		wr.wr.rdma.remote_addr = addr;
	}
	return wr;
}

static void expect_access(struct rig *rig, enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t addr,
			  enum ibv_wc_status status)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = access_wr(rig, opcode, &sge, rkey, addr);

	rig_post(&rig->a, &wr);
	rig_wait(rig->a.cq, status);
}

static void expect_write(struct rig *rig, uint32_t rkey, enum ibv_wc_status status)
{
	expect_access(rig, IBV_WR_RDMA_WRITE, rkey, (uintptr_t)rig->b.memory, status);
}

/* --- type 1 -------------------------------------------------------------- */

static void bind_one(struct rig *rig, struct ibv_mw *mw, struct ibv_mw_bind_info info,
		     enum ibv_wc_status status)
{
	struct ibv_mw_bind bind = { .wr_id = 7, .bind_info = info };
	uint32_t before = mw->rkey;
	struct ibv_wc wc;

	bind.send_flags = IBV_SEND_SIGNALED;
	ck_assert_int_eq(ibv_bind_mw(rig->b.qp, mw, &bind), 0);
	ck_assert_uint_ne(mw->rkey, before);
	wc = rig_wait(rig->b.cq, status);
	ck_assert_uint_eq(wc.wr_id, 7);
	if (status == IBV_WC_SUCCESS)
		ck_assert_int_eq(wc.opcode, IBV_WC_BIND_MW);
}

/* Opens a window to b's first bytes. */
static struct ibv_mw *open_bound(struct rig *rig)
{
	struct ibv_mw *mw;

	open_for_windows(rig);
	mw = new_window(rig, IBV_MW_TYPE_1);
	bind_one(rig, mw, first_bytes(rig), IBV_WC_SUCCESS);
	return mw;
}

TEST(window_opens_its_range_to_the_peer)
{
	struct ibv_mw *mw;
	struct rig rig;

	mw = open_bound(&rig);
	expect_write(&rig, mw->rkey, IBV_WC_SUCCESS);
	ck_assert_int_eq(memcmp(rig.b.memory, "elephant", 8), 0);
	expect_access(&rig, IBV_WR_RDMA_READ, mw->rkey, (uintptr_t)rig.b.memory, IBV_WC_SUCCESS);
	expect_access(&rig, IBV_WR_ATOMIC_FETCH_AND_ADD, mw->rkey,
		      (uintptr_t)rig.b.memory + BYTES - 8, IBV_WC_SUCCESS);
	close_with(&rig, mw);
}

TEST(window_grants_nothing_beyond_its_end)
{
	struct ibv_mw *mw;
	struct rig rig;

	mw = open_bound(&rig);
	expect_access(&rig, IBV_WR_RDMA_WRITE, mw->rkey, (uintptr_t)rig.b.memory + BYTES - 7,
		      IBV_WC_REM_ACCESS_ERR);
	close_with(&rig, mw);
}

static const enum ibv_wr_opcode accesses[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
					       IBV_WR_ATOMIC_FETCH_AND_ADD };

TEST_LOOP(window_grants_only_its_own_access, 0, 3)
{
	static const unsigned int others[] = {
		IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
		IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
		IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};
	struct ibv_mw_bind_info info;
	struct ibv_mw *mw;
	struct rig rig;

	open_for_windows(&rig);
	mw = new_window(&rig, IBV_MW_TYPE_1);
	info = first_bytes(&rig);
	info.mw_access_flags = others[_i];
	bind_one(&rig, mw, info, IBV_WC_SUCCESS);
	expect_access(&rig, accesses[_i], mw->rkey, info.addr, IBV_WC_REM_ACCESS_ERR);
	close_with(&rig, mw);
}

TEST(zero_based_window_has_offsets_as_addresses)
{
	struct ibv_mw_bind_info info;
	struct ibv_mw *mw;
	struct rig rig;

	open_for_windows(&rig);
	mw = new_window(&rig, IBV_MW_TYPE_1);
	info = first_bytes(&rig);
	info.addr += 8;
	info.mw_access_flags |= IBV_ACCESS_ZERO_BASED;
	bind_one(&rig, mw, info, IBV_WC_SUCCESS);
	expect_access(&rig, IBV_WR_RDMA_WRITE, mw->rkey, 0, IBV_WC_SUCCESS);
	ck_assert_int_eq(memcmp(rig.b.memory + 8, "elephant", 8), 0);
	close_with(&rig, mw);
}

/* Ways to invalidate a key. */
enum end_of_key {
	NEVER_BOUND,
	BOUND_ANEW,
	UNBOUND,
	DEALLOCATED,
	N_ENDS,
};

TEST_LOOP(old_key_of_a_window_is_invalid, 0, N_ENDS)
{
	struct ibv_mw_bind_info nothing = { .mr = NULL };
	struct ibv_mw *mw;
	struct rig rig;
	uint32_t rkey;

	open_for_windows(&rig);
	mw = new_window(&rig, IBV_MW_TYPE_1);
	if (_i != NEVER_BOUND)
		bind_one(&rig, mw, first_bytes(&rig), IBV_WC_SUCCESS);
	rkey = mw->rkey;
	if (_i == BOUND_ANEW)
		bind_one(&rig, mw, first_bytes(&rig), IBV_WC_SUCCESS);
	if (_i == UNBOUND)
		bind_one(&rig, mw, nothing, IBV_WC_SUCCESS);
	if (_i == DEALLOCATED)
		ck_assert_int_eq(ibv_dealloc_mw(mw), 0);
	if (_i == BOUND_ANEW)
		expect_write(&rig, mw->rkey, IBV_WC_SUCCESS);
	expect_write(&rig, rkey, IBV_WC_REM_ACCESS_ERR);
	if (_i != DEALLOCATED)
		close_with(&rig, mw);
}

TEST(key_of_a_window_is_no_local_key)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_mw *mw;
	struct rig rig;

	mw = open_bound(&rig);
	wr = rig_wr(&rig, IBV_WR_RDMA_WRITE, &sge, 8);
	sge = (struct ibv_sge){ (uintptr_t)rig.b.memory, 8, mw->rkey };
	rig_post(&rig.b, &wr);
	rig_wait(rig.b.cq, IBV_WC_LOC_PROT_ERR);
	close_with(&rig, mw);
}

TEST(region_with_a_bound_window_cannot_be_deregistered)
{
	struct ibv_mw *mw;
	struct rig rig;

	mw = open_bound(&rig);
	ck_assert_int_eq(ibv_dereg_mr(rig.b.mr), EBUSY);
	ck_assert_int_eq(ibv_rereg_mr(rig.b.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
			 IBV_REREG_MR_ERR_INPUT);
	ck_assert_int_eq(errno, EBUSY);
	ck_assert_int_eq(ibv_dealloc_mw(mw), 0);
	rig_close(&rig); /* this deregisters it */
}

enum wrong {
	BEYOND_THE_REGION,
	WINDOW_OF_A_WINDOW,
	NO_WINDOWS_ALLOWED,
	WRITE_TO_A_READABLE_REGION,
	N_WRONG,
};

TEST_LOOP(wrong_bind_is_an_error_of_the_queue_pair, 0, N_WRONG)
{
	struct ibv_mw_bind_info info;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_mw *mw;
	struct rig rig;
	int access = _i == NO_WINDOWS_ALLOWED ? IBV_ACCESS_LOCAL_WRITE : IBV_ACCESS_MW_BIND;

	open_for_windows(&rig);
	mw = new_window(&rig, IBV_MW_TYPE_1);
	info = first_bytes(&rig);
	if (_i == BEYOND_THE_REGION)
		info.addr += RIG_BYTES - BYTES + 1;
	if (_i == WINDOW_OF_A_WINDOW)
		info.mw_access_flags = IBV_ACCESS_MW_BIND;
	if (_i >= NO_WINDOWS_ALLOWED)
		ck_assert_int_eq(
			ibv_rereg_mr(rig.b.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, access),
			0);
	bind_one(&rig, mw, info, IBV_WC_MW_BIND_ERR);
	ck_assert_int_eq(ibv_query_qp(rig.b.qp, &attr, IBV_QP_STATE, &init), 0);
	ck_assert_int_eq(attr.qp_state, IBV_QPS_ERR);
	close_with(&rig, mw);
}

/* --- type 2 -------------------------------------------------------------- */

static struct ibv_send_wr bind_wr(struct ibv_mw *mw, struct ibv_mw_bind_info info)
{
	return (struct ibv_send_wr){
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = { mw, ibv_inc_rkey(mw->rkey), info },
	};
}

static struct ibv_send_wr invalidate_wr(enum ibv_wr_opcode opcode, uint32_t rkey)
{
	return (struct ibv_send_wr){
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.invalidate_rkey = rkey,
	};
}

/* A window that is bound by b's queue pair. */
static struct ibv_mw *new_bound(struct rig *rig)
{
	struct ibv_mw *mw = new_window(rig, IBV_MW_TYPE_2);
	struct ibv_send_wr wr = bind_wr(mw, first_bytes(rig));

	rig_post(&rig->b, &wr);
	ck_assert_int_eq(rig_wait(rig->b.cq, IBV_WC_SUCCESS).opcode, IBV_WC_BIND_MW);
	mw->rkey = wr.bind_mw.rkey;
	return mw;
}

TEST(window_of_type_2_has_the_key_that_the_program_gave_it)
{
	struct ibv_mw *mw;
	struct rig rig;

	open_for_windows(&rig);
	mw = new_bound(&rig);
	expect_write(&rig, mw->rkey, IBV_WC_SUCCESS);
	expect_write(&rig, ibv_inc_rkey(mw->rkey), IBV_WC_REM_ACCESS_ERR);
	close_with(&rig, mw);
}

TEST(window_of_type_2_serves_one_queue_pair)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_mw *mw;
	struct rig rig;

	open_for_windows(&rig);
	mw = new_bound(&rig);
	/* Here b writes through a's queue pair. */
	wr = access_wr(&rig, IBV_WR_RDMA_WRITE, &sge, mw->rkey, (uintptr_t)rig.b.memory);
	sge = (struct ibv_sge){ (uintptr_t)rig.b.memory, 8, rig.b.mr->lkey };
	rig_post(&rig.b, &wr);
	rig_wait(rig.b.cq, IBV_WC_REM_ACCESS_ERR);
	close_with(&rig, mw);
}

TEST(bound_window_of_type_2_is_not_bound_again)
{
	struct ibv_send_wr wr;
	struct ibv_mw *mw;
	struct rig rig;

	open_for_windows(&rig);
	mw = new_bound(&rig);
	wr = bind_wr(mw, first_bytes(&rig));
	rig_post(&rig.b, &wr);
	rig_wait(rig.b.cq, IBV_WC_MW_BIND_ERR);
	close_with(&rig, mw);
}

/* A local operation has no data, whatever is in its request. */
TEST(local_operation_ignores_data_and_its_flag)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_mw *mw;
	struct rig rig;

	open_for_windows(&rig);
	mw = new_bound(&rig);
	sge = (struct ibv_sge){ .addr = (uintptr_t)rig.b.memory, .length = RIG_BYTES };
	wr = invalidate_wr(IBV_WR_LOCAL_INV, mw->rkey);
	wr.send_flags |= IBV_SEND_INLINE;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	rig_post(&rig.b, &wr);
	ck_assert_int_eq(rig_wait(rig.b.cq, IBV_WC_SUCCESS).opcode, IBV_WC_LOCAL_INV);
	close_with(&rig, mw);
}

TEST(invalidated_window_can_be_bound_again)
{
	struct ibv_send_wr wr;
	struct ibv_mw *mw;
	struct rig rig;
	uint32_t old;

	open_for_windows(&rig);
	mw = new_bound(&rig);
	old = mw->rkey;
	wr = invalidate_wr(IBV_WR_LOCAL_INV, old);
	rig_post(&rig.b, &wr);
	ck_assert_int_eq(rig_wait(rig.b.cq, IBV_WC_SUCCESS).opcode, IBV_WC_LOCAL_INV);
	wr = bind_wr(mw, first_bytes(&rig));
	rig_post(&rig.b, &wr);
	rig_wait(rig.b.cq, IBV_WC_SUCCESS);
	expect_write(&rig, wr.bind_mw.rkey, IBV_WC_SUCCESS);
	expect_write(&rig, old, IBV_WC_REM_ACCESS_ERR);
	close_with(&rig, mw);
}

TEST(receive_reports_an_invalidation_by_the_peer)
{
	struct ibv_send_wr wr;
	struct ibv_mw *mw;
	struct ibv_wc wc;
	struct rig rig;

	open_for_windows(&rig);
	mw = new_bound(&rig);
	rig_receive(&rig.b, 1, BYTES);
	wr = invalidate_wr(IBV_WR_SEND_WITH_INV, mw->rkey);
	rig_post(&rig.a, &wr);
	wc = rig_wait(rig.b.cq, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc.wc_flags, IBV_WC_WITH_INV);
	ck_assert_uint_eq(wc.invalidated_rkey, mw->rkey);
	ck_assert_int_eq(rig_wait(rig.a.cq, IBV_WC_SUCCESS).opcode, IBV_WC_SEND);
	expect_write(&rig, mw->rkey, IBV_WC_REM_ACCESS_ERR);
	close_with(&rig, mw);
}

TEST(long_send_invalidates_at_its_end)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_mw *mw;
	struct rig rig;

	open_for_windows(&rig);
	mw = new_bound(&rig);
	rig_receive(&rig.b, 1, RIG_BYTES);
	wr = rig_wr(&rig, IBV_WR_SEND_WITH_INV, &sge, RIG_BYTES);
	wr.invalidate_rkey = mw->rkey;
	rig_post(&rig.a, &wr);
	ck_assert_uint_eq(rig_wait(rig.b.cq, IBV_WC_SUCCESS).invalidated_rkey, mw->rkey);
	rig_wait(rig.a.cq, IBV_WC_SUCCESS);
	expect_write(&rig, mw->rkey, IBV_WC_REM_ACCESS_ERR);
	close_with(&rig, mw);
}

/* Keys that cannot be invalidated: a region's, that of a window of type 1, and an unknown one. */
static uint32_t lasting_key(struct rig *rig, struct ibv_mw *mw, int i)
{
	if (i == 0)
		return rig->b.mr->rkey;
	return i == 1 ? mw->rkey : 0x7fffff00;
}

TEST_LOOP(peer_can_invalidate_only_windows_of_type_2, 0, 3)
{
	struct ibv_send_wr wr;
	struct ibv_mw *mw;
	struct rig rig;

	mw = open_bound(&rig);
	rig_receive(&rig.b, 1, BYTES);
	wr = invalidate_wr(IBV_WR_SEND_WITH_INV, lasting_key(&rig, mw, _i));
	rig_post(&rig.a, &wr);
	rig_wait(rig.a.cq, IBV_WC_REM_ACCESS_ERR);
	rig_wait(rig.b.cq, IBV_WC_WR_FLUSH_ERR);
	rig_event(&rig, IBV_EVENT_QP_ACCESS_ERR);
	close_with(&rig, mw);
}

TEST_LOOP(owner_can_invalidate_only_windows_of_type_2, 0, 3)
{
	struct ibv_send_wr wr;
	struct ibv_mw *mw;
	struct rig rig;

	mw = open_bound(&rig);
	wr = invalidate_wr(IBV_WR_LOCAL_INV, lasting_key(&rig, mw, _i));
	rig_post(&rig.b, &wr);
	rig_wait(rig.b.cq, IBV_WC_MW_BIND_ERR);
	close_with(&rig, mw);
}

TEST(destroyed_queue_pair_unbinds_its_windows)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_mw *mw;
	struct rig rig;

	open_for_windows(&rig);
	mw = new_bound(&rig);
	ck_assert_int_eq(ibv_destroy_qp(rig.b.qp), 0);
	ck_assert_int_eq(ibv_rereg_mr(rig.b.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0), 0);
	ck_assert_int_eq(ibv_dealloc_mw(mw), 0);
	init.send_cq = rig.b.cq;
	init.recv_cq = rig.b.cq;
	rig.b.qp = ibv_create_qp(rig.pd, &init);
	rig_close(&rig);
}

/* --- forks --------------------------------------------------------------- */

enum child {
	USES_THE_PARENTS,
	HAS_ITS_OWN,
	CANNOT_HAVE_ITS_OWN,
	N_CHILDREN,
};

/* Return: true if creating a queue pair has the result that this kind of child expects. */
static bool create_own(struct rig *rig, enum child kind)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };

	if (kind == CANNOT_HAVE_ITS_OWN)
		setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 0, 0 });
	init.send_cq = init.recv_cq = rig->b.cq;
	return kind == USES_THE_PARENTS ||
	       !ibv_create_qp(rig->pd, &init) == (kind == CANNOT_HAVE_ITS_OWN);
}

/* Return: 0, or the number of the first wrong answer. */
static int use_inherited(struct rig *rig, struct ibv_mw *mw, enum child kind)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };
	struct ibv_send_wr *bad, wr;
	struct ibv_sge sge;
	struct ibv_wc wc;

	wr = rig_wr(rig, IBV_WR_RDMA_WRITE, &sge, 8);
	if (!create_own(rig, kind))
		return 1;
	if (ibv_post_send(rig->a.qp, &wr, &bad) || ibv_poll_cq(rig->a.cq, 1, &wc) != 1 ||
	    wc.status != IBV_WC_WR_FLUSH_ERR)
		return 2;
	if (ibv_modify_qp(rig->a.qp, &attr, IBV_QP_STATE) != EIO)
		return 3;
	if (ibv_dealloc_mw(mw))
		return 4;
	return ibv_destroy_qp(rig->a.qp) || ibv_destroy_qp(rig->b.qp) ? 5 : 0;
}

TEST_LOOP(forked_child_can_free_but_not_use_what_it_inherits, 0, N_CHILDREN)
{
	struct ibv_mw *mw;
	struct rig rig;
	int status;
	pid_t child;

	open_for_windows(&rig);
	mw = new_bound(&rig);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (!child)
		_exit(use_inherited(&rig, mw, (enum child)_i));
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	/* The parent's are unchanged. */
	expect_write(&rig, mw->rkey, IBV_WC_SUCCESS);
	close_with(&rig, mw);
}

/* --- order --------------------------------------------------------------- */

/* One list: sends before the invalidation arrive; a send after it carries the new key. */
TEST(bind_and_invalidate_keep_their_order)
{
	struct ibv_send_wr wr[4], *bad;
	struct ibv_sge sge;
	struct ibv_mw *mw;
	struct rig rig;
	int i;

	open_for_windows(&rig);
	mw = new_bound(&rig);
	rig_receive(&rig.a, 1, BYTES);
	wr[0] = rig_wr(&rig, IBV_WR_RDMA_READ, &sge, RIG_BYTES);
	wr[0].wr.rdma.remote_addr = (uintptr_t)rig.a.memory;
	wr[0].wr.rdma.rkey = rig.a.mr->rkey;
	sge = (struct ibv_sge){ (uintptr_t)rig.b.memory, RIG_BYTES, rig.b.mr->lkey };
	wr[1] = invalidate_wr(IBV_WR_LOCAL_INV, mw->rkey);
	wr[2] = bind_wr(mw, first_bytes(&rig));
	wr[3] = (struct ibv_send_wr){ .opcode = IBV_WR_SEND_WITH_IMM,
				      .send_flags = IBV_SEND_SIGNALED,
				      .imm_data = wr[2].bind_mw.rkey };
	for (i = 0; i < 4; i++) {
		wr[i].wr_id = (uint64_t)i;
		wr[i].next = i < 3 ? &wr[i + 1] : NULL;
	}
	ck_assert_int_eq(ibv_post_send(rig.b.qp, wr, &bad), 0);
	for (i = 0; i < 4; i++)
		ck_assert_uint_eq(rig_wait(rig.b.cq, IBV_WC_SUCCESS).wr_id, (uint64_t)i);
	expect_write(&rig, rig_wait(rig.a.cq, IBV_WC_SUCCESS).imm_data, IBV_WC_SUCCESS);
	close_with(&rig, mw);
}

TEST(functions_of_an_extended_queue_pair_bind_and_invalidate)
{
	struct ibv_mw_bind_info info;
	struct ibv_qp_ex *ex;
	struct ibv_mw *mw;
	struct rig rig;
	uint32_t rkey;

	rig_open(&rig, &(struct rig_config){ .send_ops = OPS });
	mw = new_window(&rig, IBV_MW_TYPE_2);
	rkey = ibv_inc_rkey(mw->rkey);
	info = first_bytes(&rig);
	ck_assert_int_eq(ibv_rereg_mr(rig.b.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND),
			 0);
	ex = ibv_qp_to_qp_ex(rig.b.qp);
	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_bind_mw(ex, mw, rkey, &info);
	ibv_wr_local_inv(ex, rkey);
	ibv_wr_bind_mw(ex, mw, ibv_inc_rkey(rkey), &info);
	ck_assert_int_eq(ibv_wr_complete(ex), 0);
	ck_assert_int_eq(rig_wait(rig.b.cq, IBV_WC_SUCCESS).opcode, IBV_WC_BIND_MW);
	ck_assert_int_eq(rig_wait(rig.b.cq, IBV_WC_SUCCESS).opcode, IBV_WC_LOCAL_INV);
	ck_assert_int_eq(rig_wait(rig.b.cq, IBV_WC_SUCCESS).opcode, IBV_WC_BIND_MW);
	rig_receive(&rig.b, 1, BYTES);
	ex = ibv_qp_to_qp_ex(rig.a.qp);
	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send_inv(ex, ibv_inc_rkey(rkey));
	ck_assert_int_eq(ibv_wr_complete(ex), 0);
	ck_assert_uint_eq(rig_wait(rig.b.cq, IBV_WC_SUCCESS).invalidated_rkey, ibv_inc_rkey(rkey));
	rig_wait(rig.a.cq, IBV_WC_SUCCESS);
	close_with(&rig, mw);
}

TEST(device_announces_its_window_types)
{
	bool is_2a = getenv("WINDOWS_2A");
	struct ibv_device_attr attr;
	struct rig rig;

	rig_open(&rig, &rc);
	ck_assert_int_eq(ibv_query_device(rig.verbs, &attr), 0);
	ck_assert(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW);
	ck_assert_int_eq(!(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B), is_2a);
	ck_assert_int_eq(!(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2A), !is_2a);
	ck_assert_int_gt(attr.max_mw, 0);
	rig_close(&rig);
}

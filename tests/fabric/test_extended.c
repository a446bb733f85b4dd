/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Verbs that only some devices have: changing a memory region, memory on demand and of the device,
 * thread and parent domains, timestamps, shared receive queues of another size. Runs on a host of a
 * soft fabric: tests/fabric/meson.build.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/fabric/rig.h"
#include "tests/unit/test.h"

static const struct rig_config rc = { .type = IBV_QPT_RC };

/* --- memory regions ------------------------------------------------------ */

/* Return: the status of an RDMA write of 8 bytes. */
static enum ibv_wc_status write_to(struct rig *rig, uint32_t rkey, uint64_t addr)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = rig_wr(rig, IBV_WR_RDMA_WRITE, &sge, 8);
	struct ibv_wc wc;

	wr.wr.rdma.rkey = rkey;
	wr.wr.rdma.remote_addr = addr;
	rig_post(&rig->a, &wr);
	while (!ibv_poll_cq(rig->a.cq, 1, &wc))
		continue;
	return wc.status;
}

/* As above, to the beginning of b's memory. */
static enum ibv_wc_status write_to_b(struct rig *rig)
{
	return write_to(rig, rig->b.mr->rkey, (uintptr_t)rig->b.memory);
}

TEST(reregistered_region_loses_removed_access)
{
	struct rig rig;

	rig_open(&rig, &rc);
	ck_assert_int_eq(write_to_b(&rig), IBV_WC_SUCCESS);
	ck_assert_int_eq(ibv_rereg_mr(rig.b.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0), 0);
	ck_assert_int_eq(write_to_b(&rig), IBV_WC_REM_ACCESS_ERR);
	rig_close(&rig);
}

TEST(region_moves_to_other_memory_with_its_key)
{
	static char other[8];
	struct rig rig;

	rig_open(&rig, &rc);
	memcpy(rig.a.memory, "elephant", 8);
	ck_assert_int_eq(ibv_rereg_mr(rig.b.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, other,
				      sizeof(other), 0),
			 0);
	ck_assert_int_eq(write_to_b(&rig), IBV_WC_REM_ACCESS_ERR);
	rig_close(&rig);
	rig_open(&rig, &rc);
	memcpy(rig.a.memory, "elephant", 8);
	ck_assert_int_eq(ibv_rereg_mr(rig.b.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, other,
				      sizeof(other), 0),
			 0);
	free(rig.b.memory);
	rig.b.memory = other; /* the target of rig_wr() */
	ck_assert_int_eq(write_to_b(&rig), IBV_WC_SUCCESS);
	ck_assert_int_eq(memcmp(other, "elephant", 8), 0);
	rig.b.memory = NULL;
	rig_close(&rig);
}

TEST(region_moves_to_another_domain_and_back)
{
	struct ibv_pd *other;
	struct rig rig;

	rig_open(&rig, &rc);
	other = ibv_alloc_pd(rig.verbs);
	ck_assert_int_eq(ibv_rereg_mr(rig.b.mr, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0), 0);
	ck_assert_ptr_eq(rig.b.mr->pd, other);
	ck_assert_int_eq(ibv_dealloc_pd(other), EBUSY);
	ck_assert_int_eq(ibv_rereg_mr(rig.b.mr, IBV_REREG_MR_CHANGE_PD, rig.pd, NULL, 0, 0), 0);
	ck_assert_int_eq(write_to_b(&rig), IBV_WC_SUCCESS);
	ck_assert_int_eq(ibv_dealloc_pd(other), 0);
	rig_close(&rig);
}

static const struct {
	int flags;
	size_t bytes;
	int access;
	int error;
} wrong[] = {
	{ 0, 8, 0, EINVAL },
	{ 1 << 3, 8, 0, EINVAL },
	{ IBV_REREG_MR_CHANGE_TRANSLATION, SIZE_MAX, 0, EFAULT },
	{ IBV_REREG_MR_CHANGE_ACCESS, 8, IBV_ACCESS_REMOTE_WRITE, EINVAL },
};

TEST_LOOP(failed_reregistration_leaves_the_region_unchanged, 0,
	  (int)(sizeof(wrong) / sizeof(wrong[0])))
{
	struct rig rig;

	rig_open(&rig, &rc);
	errno = 0;
	ck_assert_int_eq(ibv_rereg_mr(rig.b.mr, wrong[_i].flags, NULL, rig.b.memory,
				      wrong[_i].bytes, wrong[_i].access),
			 IBV_REREG_MR_ERR_INPUT);
	ck_assert_int_eq(errno, wrong[_i].error);
	ck_assert_int_eq(write_to_b(&rig), IBV_WC_SUCCESS);
	rig_close(&rig);
}

/* --- memory on demand ---------------------------------------------------- */

#define PAGE	 4096
#define ODP	 (RIG_ALL_ACCESS | IBV_ACCESS_ON_DEMAND)
#define FOR_READ PROT_READ
#define FOR_BOTH (PROT_READ | PROT_WRITE)

/* Two pages that are not mapped yet. */
static char *reserve(void)
{
	char *pages = mmap(NULL, 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(pages, MAP_FAILED);
	return pages;
}

/* These pages become an end's memory. */
static void replace_memory(struct rig *rig, struct end *end, char *pages, unsigned int access)
{
	ck_assert_int_eq(ibv_dereg_mr(end->mr), 0);
	free(end->memory);
	end->memory = pages;
	end->mr = ibv_reg_mr(rig->pd, pages, 2 * PAGE, access);
	ck_assert_ptr_nonnull(end->mr);
}

static void register_on_demand(struct rig *rig, char *pages)
{
	replace_memory(rig, &rig->b, pages, ODP);
}

static void close_on_demand(struct rig *rig)
{
	ck_assert_int_eq(munmap(rig->b.memory, 2 * PAGE), 0);
	rig->b.memory = NULL;
	rig_close(rig);
}

/* An option that a device may ignore; it has no effect here. */
TEST(memory_with_relaxed_ordering_is_registered_and_written)
{
	struct rig rig;
	struct ibv_mr *mr;

	rig_open(&rig, &rc);
	mr = ibv_reg_mr(rig.pd, rig.b.memory, RIG_BYTES,
			RIG_ALL_ACCESS | IBV_ACCESS_RELAXED_ORDERING);
	ck_assert_ptr_nonnull(mr);
	ck_assert_int_eq(ibv_dereg_mr(rig.b.mr), 0);
	rig.b.mr = mr;
	memcpy(rig.a.memory, "elephant", 8);
	ck_assert_int_eq(write_to_b(&rig), IBV_WC_SUCCESS);
	ck_assert_int_eq(memcmp(rig.b.memory, "elephant", 8), 0);
	rig_close(&rig);
}

TEST(memory_on_demand_may_be_unmapped_at_registration)
{
	char *pages = reserve();
	struct rig rig;

	rig_open(&rig, &rc);
	register_on_demand(&rig, pages);
	ck_assert_int_eq(mprotect(pages, 2 * PAGE, FOR_BOTH), 0);
	memcpy(rig.a.memory, "elephant", 8);
	ck_assert_int_eq(write_to_b(&rig), IBV_WC_SUCCESS);
	ck_assert_int_eq(memcmp(pages, "elephant", 8), 0);
	ck_assert_int_eq(madvise(pages, 2 * PAGE, MADV_DONTNEED), 0);
	ck_assert_int_eq(write_to_b(&rig), IBV_WC_SUCCESS);
	ck_assert_int_eq(memcmp(pages, "elephant", 8), 0);
	close_on_demand(&rig);
}

TEST_LOOP(write_to_read_only_memory_on_demand_is_a_remote_access_error, 0, 2)
{
	static const int protection[] = { PROT_NONE, FOR_READ };
	char *pages = reserve();
	struct rig rig;

	rig_open(&rig, &rc);
	register_on_demand(&rig, pages);
	ck_assert_int_eq(mprotect(pages, 2 * PAGE, protection[_i]), 0);
	ck_assert_int_eq(write_to_b(&rig), IBV_WC_REM_ACCESS_ERR);
	close_on_demand(&rig);
}

TEST(whole_address_space_can_be_registered)
{
	struct ibv_device_attr_ex device;
	struct ibv_mr *all;
	struct rig rig;

	rig_open(&rig, &rc);
	ck_assert_int_eq(ibv_query_device_ex(rig.verbs, NULL, &device), 0);
	ck_assert(device.odp_caps.general_caps & IBV_ODP_SUPPORT_IMPLICIT);
	all = ibv_reg_mr(rig.pd, NULL, SIZE_MAX, ODP);
	ck_assert_ptr_nonnull(all);
	rig.b.mr->rkey = all->rkey; /* used by rig_wr() */
	memcpy(rig.a.memory, "elephant", 8);
	ck_assert_int_eq(write_to_b(&rig), IBV_WC_SUCCESS);
	ck_assert_int_eq(memcmp(rig.b.memory, "elephant", 8), 0);
	ck_assert_int_eq(ibv_dereg_mr(all), 0);
	rig_close(&rig);
}

static const struct {
	int protection, advice, flags, error;
} advised[] = {
	{ FOR_BOTH, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH, 0 },
	{ FOR_READ, IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH, 0 },
	{ FOR_READ, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH, EFAULT },
	{ PROT_NONE, IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH, EFAULT },
	{ PROT_NONE, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, 0 },
	{ PROT_NONE, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, IBV_ADVISE_MR_FLAG_FLUSH, 0 },
	{ FOR_BOTH, 77, 0, EOPNOTSUPP },
	{ FOR_BOTH, IBV_ADVISE_MR_ADVICE_PREFETCH, 1 << 5, EOPNOTSUPP },
};

TEST_LOOP(advice_about_memory_on_demand_is_checked, 0, (int)(sizeof(advised) / sizeof(advised[0])))
{
	char *pages = reserve();
	struct ibv_sge sge = { .addr = (uintptr_t)pages, .length = 2 * PAGE };
	struct rig rig;

	rig_open(&rig, &rc);
	sge.lkey = rig.a.mr->lkey;
	ck_assert_int_eq(ibv_advise_mr(rig.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1), EINVAL);
	sge.lkey = 1;
	ck_assert_int_eq(ibv_advise_mr(rig.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1), ENOENT);
	register_on_demand(&rig, pages);
	sge.lkey = rig.b.mr->lkey;
	ck_assert_int_eq(mprotect(pages, 2 * PAGE, advised[_i].protection), 0);
	ck_assert_int_eq(ibv_advise_mr(rig.pd, (enum ibv_advise_mr_advice)advised[_i].advice,
				       (uint32_t)advised[_i].flags, &sge, 1),
			 advised[_i].error);
	close_on_demand(&rig);
}

/* --- memory that is unmapped ----------------------------------------------- */

/* A device keeps pages that were pinned; here only what is stored to them can be lost unnoticed. */
static const struct {
	enum ibv_wr_opcode opcode;
	bool is_of_a;
	enum ibv_wc_status pinned, on_demand;
} unmapped[] = {
	{ IBV_WR_RDMA_WRITE, false, IBV_WC_SUCCESS, IBV_WC_REM_ACCESS_ERR },
	{ IBV_WR_ATOMIC_WRITE, false, IBV_WC_SUCCESS, IBV_WC_REM_ACCESS_ERR },
	{ IBV_WR_SEND, false, IBV_WC_SUCCESS, IBV_WC_REM_OP_ERR },
	{ IBV_WR_RDMA_READ, true, IBV_WC_SUCCESS, IBV_WC_LOC_PROT_ERR },
	{ IBV_WR_ATOMIC_FETCH_AND_ADD, true, IBV_WC_SUCCESS, IBV_WC_LOC_PROT_ERR },
	{ IBV_WR_RDMA_READ, false, IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR },
	{ IBV_WR_ATOMIC_FETCH_AND_ADD, false, IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR },
	{ IBV_WR_RDMA_WRITE, true, IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_PROT_ERR },
	{ IBV_WR_SEND, true, IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_PROT_ERR },
};

#define N_UNMAPPED (int)(sizeof(unmapped) / sizeof(unmapped[0]))

static void replace_by_unmapped(struct rig *rig, struct end *end, unsigned int access)
{
	char *pages = reserve();

	ck_assert_int_eq(mprotect(pages, 2 * PAGE, FOR_BOTH), 0);
	replace_memory(rig, end, pages, access);
	ck_assert_int_eq(munmap(pages, 2 * PAGE), 0);
}

TEST_LOOP(unmapped_memory_does_not_end_its_program, 0, 2 * N_UNMAPPED)
{
	bool is_on_demand = _i >= N_UNMAPPED, is_of_a = unmapped[_i % N_UNMAPPED].is_of_a;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct rig rig;

	rig_open(&rig, &rc);
	replace_by_unmapped(&rig, is_of_a ? &rig.a : &rig.b, is_on_demand ? ODP : RIG_ALL_ACCESS);
	wr = rig_wr(&rig, unmapped[_i % N_UNMAPPED].opcode, &sge, 8);
	rig_receive(&rig.b, 1, 8);
	rig_post(&rig.a, &wr);
	rig_wait(rig.a.cq, is_on_demand ? unmapped[_i % N_UNMAPPED].on_demand
					: unmapped[_i % N_UNMAPPED].pinned);
	*(is_of_a ? &rig.a.memory : &rig.b.memory) = NULL;
	rig_close(&rig);
}

static sigjmp_buf after_fault;

static void leave_fault(int signal_number)
{
	siglongjmp(after_fault, signal_number);
}

TEST(fault_of_the_program_itself_goes_to_its_own_handler)
{
	volatile char *pages = reserve();
	struct rig rig;

	ck_assert(signal(SIGSEGV, leave_fault) != SIG_ERR);
	rig_open(&rig, &rc);
	ck_assert_int_eq(write_to_b(&rig), IBV_WC_SUCCESS);
	if (!sigsetjmp(after_fault, 1)) {
		*pages = 1;
		ck_abort_msg("no fault");
	}
	rig_close(&rig);
}

/* One of two pages is protected. */
static const struct {
	int page, protection;
	unsigned int access;
	int error;
} protected[] = {
	{ 0, PROT_NONE, 0, EFAULT },
	{ 1, PROT_NONE, 0, EFAULT },
	{ 0, FOR_READ, IBV_ACCESS_LOCAL_WRITE, EFAULT },
	{ 1, FOR_READ, IBV_ACCESS_LOCAL_WRITE, EFAULT },
	{ 1, FOR_READ, IBV_ACCESS_REMOTE_READ, 0 },
	{ 1, FOR_READ, ODP, 0 },
};

TEST_LOOP(memory_that_cannot_be_accessed_as_requested_is_not_registered, 0,
	  (int)(sizeof(protected) / sizeof(protected[0])))
{
	char *pages = reserve();
	struct ibv_mr *mr;
	struct rig rig;

	rig_open(&rig, &rc);
	ck_assert_int_eq(mprotect(pages, 2 * PAGE, FOR_BOTH), 0);
	ck_assert_int_eq(
		mprotect(pages + protected[_i].page * PAGE, PAGE, protected[_i].protection), 0);
	errno = 0;
	mr = ibv_reg_mr(rig.pd, pages, 2 * PAGE, protected[_i].access);
	ck_assert_int_eq(errno, protected[_i].error);
	ck_assert_int_eq(!mr, !!protected[_i].error);
	if (mr)
		ck_assert_int_eq(ibv_dereg_mr(mr), 0);
	ck_assert_int_eq(munmap(pages, 2 * PAGE), 0);
	rig_close(&rig);
}

/* --- memory of the device ------------------------------------------------ */

TEST(memory_of_the_device_is_written_by_its_key_and_read_by_copying)
{
	struct ibv_alloc_dm_attr attr = { .length = 64 };
	char before[8] = "giraffe", after[8];
	struct ibv_dm *dm;
	struct ibv_mr *mr;
	struct rig rig;

	rig_open(&rig, &rc);
	dm = ibv_alloc_dm(rig.verbs, &attr);
	ck_assert_ptr_nonnull(dm);
	ck_assert_int_eq(ibv_memcpy_to_dm(dm, 8, before, 8), 0);
	mr = ibv_reg_dm_mr(rig.pd, dm, 8, 16, RIG_ALL_ACCESS | IBV_ACCESS_ZERO_BASED);
	ck_assert_ptr_nonnull(mr);
	ck_assert_int_eq(ibv_memcpy_from_dm(after, dm, 8, 8), 0);
	ck_assert_int_eq(memcmp(after, "giraffe", 8), 0);
	memcpy(rig.a.memory, "elephant", 8);
	ck_assert_int_eq(write_to(&rig, mr->rkey, 0), IBV_WC_SUCCESS);
	ck_assert_int_eq(ibv_memcpy_from_dm(after, dm, 8, 8), 0);
	ck_assert_int_eq(memcmp(after, "elephant", 8), 0);
	ck_assert_int_eq(ibv_free_dm(dm), EBUSY);
	ck_assert_int_eq(write_to(&rig, mr->rkey, 16), IBV_WC_REM_ACCESS_ERR);
	ck_assert_int_eq(ibv_dereg_mr(mr), 0);
	ck_assert_int_eq(ibv_free_dm(dm), 0);
	rig_close(&rig);
}

TEST(memory_of_the_device_has_bounds)
{
	struct ibv_alloc_dm_attr attr = { .length = 64 };
	struct ibv_device_attr_ex device;
	struct ibv_dm *dm, *all;
	char word[4] = "";
	struct rig rig;

	rig_open(&rig, &rc);
	ck_assert_int_eq(ibv_query_device_ex(rig.verbs, NULL, &device), 0);
	dm = ibv_alloc_dm(rig.verbs, &attr);
	ck_assert_int_eq(ibv_memcpy_to_dm(dm, 64, word, 4), EINVAL);
	ck_assert_int_eq(ibv_memcpy_from_dm(word, dm, UINT64_MAX - 3, 4), EINVAL);
	ck_assert_int_eq(ibv_memcpy_to_dm(dm, 2, word, 4), EINVAL);
	ck_assert_int_eq(ibv_memcpy_from_dm(word, dm, 4, 3), EINVAL);
	ck_assert_ptr_null(ibv_reg_dm_mr(rig.pd, dm, 0, 64, 0)); /* addresses do not start at 0 */
	ck_assert_ptr_null(ibv_reg_dm_mr(rig.pd, dm, 1, 64, IBV_ACCESS_ZERO_BASED));
	attr.length = device.max_dm_size;
	ck_assert_ptr_null(ibv_alloc_dm(rig.verbs, &attr));
	ck_assert_int_eq(errno, ENOMEM);
	ck_assert_int_eq(ibv_free_dm(dm), 0);
	all = ibv_alloc_dm(rig.verbs, &attr);
	ck_assert_ptr_nonnull(all);
	ck_assert_int_eq(ibv_free_dm(all), 0);
	attr.length++;
	ck_assert_ptr_null(ibv_alloc_dm(rig.verbs, &attr));
	ck_assert_int_eq(errno, EINVAL);
	rig_close(&rig);
}

/* --- another thread ------------------------------------------------------ */

struct other {
	void (*run)(void *);
	void *arg;
	pid_t id;
	bool has_ended;
	pthread_t thread;
};

static void *run_other(void *arg)
{
	struct other *other = arg;

	__atomic_store_n(&other->id, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	other->run(other->arg);
	__atomic_store_n(&other->has_ended, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Until the thread sleeps, for a lock that the caller has, or has ended. */
static void start_other(struct other *other)
{
	pid_t id = 0;

	ck_assert_int_eq(pthread_create(&other->thread, NULL, run_other, other), 0);
	while (!id || (!__atomic_load_n(&other->has_ended, __ATOMIC_ACQUIRE) && !rig_is_asleep(id)))
		id = __atomic_load_n(&other->id, __ATOMIC_ACQUIRE);
}

/* --- lists of requests --------------------------------------------------- */

static const struct rig_config lists = { .send_ops = IBV_QP_EX_WITH_RDMA_WRITE };

static void add_write(struct rig *rig, uint64_t wr_id)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(rig->a.qp);

	ex->wr_id = wr_id;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(ex, rig->b.mr->rkey, (uintptr_t)rig->b.memory);
	ibv_wr_set_sge(ex, rig->a.mr->lkey, (uintptr_t)rig->a.memory, 8);
}

static void post_second(void *arg)
{
	struct rig *rig = arg;

	ibv_wr_start(ibv_qp_to_qp_ex(rig->a.qp));
	add_write(rig, 2);
	ck_assert_int_eq(ibv_wr_complete(ibv_qp_to_qp_ex(rig->a.qp)), 0);
}

/* The first list is posted or aborted. */
TEST_LOOP(list_of_another_thread_waits_for_the_end_of_the_first, 0, 2)
{
	struct rig rig;
	struct other other = { .run = post_second, .arg = &rig };

	rig_open(&rig, &lists);
	ibv_wr_start(ibv_qp_to_qp_ex(rig.a.qp));
	add_write(&rig, 1);
	start_other(&other);
	if (_i == 0)
		ck_assert_int_eq(ibv_wr_complete(ibv_qp_to_qp_ex(rig.a.qp)), 0);
	else
		ibv_wr_abort(ibv_qp_to_qp_ex(rig.a.qp));
	if (_i == 0)
		ck_assert_uint_eq(rig_wait(rig.a.cq, IBV_WC_SUCCESS).wr_id, 1);
	ck_assert_uint_eq(rig_wait(rig.a.cq, IBV_WC_SUCCESS).wr_id, 2);
	ck_assert_int_eq(pthread_join(other.thread, NULL), 0);
	rig_close(&rig);
}

TEST(child_forked_during_a_list_can_begin_its_own)
{
	struct ibv_qp_ex *ex;
	struct rig rig;
	pid_t child;
	int status;

	rig_open(&rig, &lists);
	ex = ibv_qp_to_qp_ex(rig.a.qp);
	ibv_wr_start(ex);
	child = fork();
	if (!child) {
		alarm(20);
		ibv_wr_start(ex);
		_exit(0);
	}
	ibv_wr_abort(ex);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	rig_close(&rig);
}

TEST(list_that_fails_posts_none_of_its_requests)
{
	struct ibv_qp_ex *ex;
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct rig rig;
	int i;

	rig_open(&rig, &lists);
	ex = ibv_qp_to_qp_ex(rig.a.qp);
	ibv_wr_start(ex);
	for (i = 0; i <= RIG_DEPTH; i++)
		add_write(&rig, 1);
	ck_assert_int_eq(ibv_wr_complete(ex), ENOMEM);
	wr = rig_wr(&rig, IBV_WR_RDMA_WRITE, &sge, 8);
	wr.wr_id = 2;
	rig_post(&rig.a, &wr);
	ck_assert_uint_eq(rig_wait(rig.a.cq, IBV_WC_SUCCESS).wr_id, 2);
	rig_close(&rig);
}

/* --- domains ------------------------------------------------------------- */

TEST(parent_domain_is_its_protection_domain)
{
	struct ibv_parent_domain_init_attr init = { .comp_mask = 0 };
	struct ibv_td_init_attr td_init = { .comp_mask = 0 };
	struct ibv_pd *parent;
	struct rig rig;

	rig_open(&rig, &rc);
	init.pd = rig.pd;
	init.td = ibv_alloc_td(rig.verbs, &td_init);
	ck_assert_ptr_nonnull(init.td);
	parent = ibv_alloc_parent_domain(rig.verbs, &init);
	ck_assert_ptr_nonnull(parent);
	ck_assert_int_eq(ibv_rereg_mr(rig.a.mr, IBV_REREG_MR_CHANGE_PD, parent, NULL, 0, 0), 0);
	ck_assert_int_eq(write_to_b(&rig), IBV_WC_SUCCESS);
	ck_assert_int_eq(ibv_dealloc_pd(parent), EBUSY);
	ck_assert_int_eq(ibv_dealloc_td(init.td), EBUSY);
	ck_assert_int_eq(ibv_rereg_mr(rig.a.mr, IBV_REREG_MR_CHANGE_PD, rig.pd, NULL, 0, 0), 0);
	ck_assert_int_eq(ibv_dealloc_pd(parent), 0);
	ck_assert_int_eq(ibv_dealloc_td(init.td), 0);
	rig_close(&rig);
}

TEST(domain_with_unknown_flags_is_refused)
{
	struct ibv_parent_domain_init_attr init = { .comp_mask = 0 };
	struct ibv_td_init_attr td_init = { .comp_mask = 1 };
	struct rig rig;

	rig_open(&rig, &rc);
	errno = 0;
	ck_assert_ptr_null(ibv_alloc_parent_domain(rig.verbs, &init));
	ck_assert_int_eq(errno, EINVAL);
	init.pd = rig.pd;
	init.comp_mask = 1u << 31;
	ck_assert_ptr_null(ibv_alloc_parent_domain(rig.verbs, &init));
	ck_assert_int_eq(errno, EOPNOTSUPP);
	errno = 0;
	ck_assert_ptr_null(ibv_alloc_td(rig.verbs, &td_init));
	ck_assert_int_eq(errno, EOPNOTSUPP);
	rig_close(&rig);
}

/* --- tables -------------------------------------------------------------- */

TEST(gid_table_that_does_not_fit_is_an_error)
{
	struct ibv_gid_entry entries[64];
	ssize_t n;
	struct rig rig;

	rig_open(&rig, &rc);
	n = ibv_query_gid_table(rig.verbs, entries, 64, 0);
	ck_assert_int_gt(n, 1);
	ck_assert_int_eq(ibv_query_gid_table(rig.verbs, entries, (size_t)n, 0), n);
	ck_assert_int_eq(ibv_query_gid_table(rig.verbs, entries, (size_t)n - 1, 0), -EINVAL);
	rig_close(&rig);
}

/* --- completions --------------------------------------------------------- */

static uint64_t device_clock(struct rig *rig)
{
	struct ibv_values_ex now = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };

	ck_assert_int_eq(ibv_query_rt_values_ex(rig->verbs, &now), 0);
	return (uint64_t)now.raw_clock.tv_nsec;
}

/* Return: a queue whose completions have timestamps, with a queue pair that completes to it. */
static struct ibv_cq_ex *timed_queue(struct rig *rig, struct ibv_qp **ret_qp)
{
	struct ibv_cq_init_attr_ex init = {
		.cqe = 4,
		.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(rig->verbs, &init);
	struct ibv_qp_init_attr qp_init = { .qp_type = IBV_QPT_UD, .cap = { 1, 1, 1, 1, 0 } };

	ck_assert_ptr_nonnull(cq);
	qp_init.send_cq = ibv_cq_ex_to_cq(cq);
	qp_init.recv_cq = ibv_cq_ex_to_cq(cq);
	*ret_qp = ibv_create_qp(rig->pd, &qp_init);
	ck_assert_ptr_nonnull(*ret_qp);
	return cq;
}

/* Flushing creates a completion at once. */
static void complete_one(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_recv_wr *bad, wr = { .wr_id = 1 };

	ck_assert_int_eq(
		ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
		0);
	ck_assert_int_eq(ibv_post_recv(qp, &wr, &bad), 0);
	attr.qp_state = IBV_QPS_ERR;
	ck_assert_int_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
}

TEST(completion_has_timestamps_of_both_clocks)
{
	struct ibv_poll_cq_attr poll = { .comp_mask = 0 };
	uint64_t began_ns = clock_ns_of(CLOCK_REALTIME);
	struct ibv_device_attr_ex device;
	uint64_t before, after;
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;
	struct rig rig;

	rig_open(&rig, &rc);
	ck_assert_int_eq(ibv_query_device_ex(rig.verbs, NULL, &device), 0);
	ck_assert_uint_eq(device.hca_core_clock, 1000000);
	ck_assert_uint_eq(device.completion_timestamp_mask, UINT64_MAX);
	cq = timed_queue(&rig, &qp);
	before = device_clock(&rig);
	complete_one(qp);
	after = device_clock(&rig);
	ck_assert_int_eq(ibv_start_poll(cq, &poll), 0);
	ck_assert_uint_ge(ibv_wc_read_completion_ts(cq), before);
	ck_assert_uint_le(ibv_wc_read_completion_ts(cq), after);
	ck_assert_uint_ge(ibv_wc_read_completion_wallclock_ns(cq), began_ns);
	ck_assert_uint_le(ibv_wc_read_completion_wallclock_ns(cq), clock_ns_of(CLOCK_REALTIME));
	ibv_end_poll(cq);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	ck_assert_int_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	rig_close(&rig);
}

static void read_second(void *arg)
{
	struct ibv_poll_cq_attr poll = { .comp_mask = 0 };
	struct ibv_cq_ex *cq = arg;

	ck_assert_int_eq(ibv_start_poll(cq, &poll), 0);
	ck_assert_uint_eq(cq->wr_id, 2);
	ibv_end_poll(cq);
}

TEST(completion_is_not_replaced_by_that_of_another_thread)
{
	struct ibv_recv_wr *bad, second = { .wr_id = 2 };
	struct ibv_poll_cq_attr poll = { .comp_mask = 0 };
	struct other other = { .run = read_second };
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;
	struct rig rig;

	rig_open(&rig, &rc);
	cq = other.arg = timed_queue(&rig, &qp);
	complete_one(qp);
	ck_assert_int_eq(ibv_post_recv(qp, &second, &bad), 0);
	ck_assert_int_eq(ibv_start_poll(cq, &poll), 0);
	start_other(&other);
	ck_assert_uint_eq(cq->wr_id, 1);
	ibv_end_poll(cq);
	ck_assert_int_eq(pthread_join(other.thread, NULL), 0);
	/* There is no end of a poll that found nothing. */
	ck_assert_int_eq(ibv_start_poll(cq, &poll), ENOENT);
	ck_assert_int_eq(ibv_start_poll(cq, &poll), ENOENT);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	ck_assert_int_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	rig_close(&rig);
}

/* --- shared receive queues ----------------------------------------------- */

static int resize(struct rig *rig, uint32_t max_wr, uint32_t limit, int mask)
{
	struct ibv_srq_attr attr = { .max_wr = max_wr, .srq_limit = limit };

	return ibv_modify_srq(rig->srq, &attr, mask);
}

static void send_empty(struct rig *rig)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = rig_wr(rig, IBV_WR_SEND, &sge, 0);

	rig_post(&rig->a, &wr);
	rig_wait(rig->a.cq, IBV_WC_SUCCESS);
}

/* Grown, or shrunk to the posted receives, after its oldest slots were used once. */
TEST_LOOP(receives_keep_their_order_in_a_resized_queue, 0, 2)
{
	static const uint32_t sizes[] = { 3, 200 };
	struct ibv_srq_attr attr;
	struct rig rig;
	uint64_t i;

	rig_open(&rig, &(struct rig_config){ .srq = true });
	for (i = 0; i < 5; i++)
		rig_receive(&rig.b, i, 8);
	for (i = 0; i < 2; i++) {
		send_empty(&rig);
		ck_assert_uint_eq(rig_wait(rig.b.cq, IBV_WC_SUCCESS).wr_id, i);
	}
	ck_assert_int_eq(resize(&rig, sizes[_i], 0, IBV_SRQ_MAX_WR), 0);
	ck_assert_int_eq(ibv_query_srq(rig.srq, &attr), 0);
	ck_assert_uint_eq(attr.max_wr, sizes[_i]);
	for (; i < 5; i++) {
		send_empty(&rig);
		ck_assert_uint_eq(rig_wait(rig.b.cq, IBV_WC_SUCCESS).wr_id, i);
	}
	for (i = 0; i < sizes[_i]; i++)
		rig_receive(&rig.b, i, 8);
	rig_close(&rig);
}

TEST(shared_receive_queue_does_not_shrink_below_its_contents)
{
	struct rig rig;
	uint64_t i;

	rig_open(&rig, &(struct rig_config){ .srq = true });
	for (i = 0; i < 3; i++)
		rig_receive(&rig.b, i, 8);
	ck_assert_int_eq(resize(&rig, 0, 0, IBV_SRQ_MAX_WR), EINVAL);
	ck_assert_int_eq(resize(&rig, 2, 0, IBV_SRQ_MAX_WR), EINVAL);
	ck_assert_int_eq(resize(&rig, 1 << 20, 0, IBV_SRQ_MAX_WR), EINVAL);
	ck_assert_int_eq(resize(&rig, 4, 5, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL);
	ck_assert_int_eq(resize(&rig, 4, 4, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), 0);
	ck_assert_int_eq(resize(&rig, 3, 0, IBV_SRQ_MAX_WR), EINVAL);
	rig_close(&rig);
}

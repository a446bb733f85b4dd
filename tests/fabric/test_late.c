/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device handles a packet when it arrives; the soft fabric's thread may be late on a busy
 * machine. In these tests it does not run, and packets of connections that arrived before a queue
 * pair ends still count; or the program's thread that takes an event is late. Runs on a host of a
 * soft fabric: tests/fabric/meson.build.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "tests/fabric/rig.h"
#include "tests/unit/test.h"

#define WORD	  8
#define GRH_BYTES 40

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static bool is_late;

/* The device's threads are stopped with it. */
__attribute__((visibility("default"))) int epoll_wait(int fd, struct epoll_event *events, int n_max,
						      int timeout_ms)
{
	int n = epoll_pwait(fd, events, n_max, timeout_ms, NULL);

	pthread_mutex_lock(&mutex);
	while (is_late)
		pthread_cond_wait(&cond, &mutex);
	pthread_mutex_unlock(&mutex);
	return n;
}

static void set_late(bool value)
{
	pthread_mutex_lock(&mutex);
	is_late = value;
	pthread_cond_broadcast(&cond);
	pthread_mutex_unlock(&mutex);
}

static int end_pair(struct end *end, bool is_destroyed)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	int err = is_destroyed ? ibv_destroy_qp(end->qp)
			       : ibv_modify_qp(end->qp, &attr, IBV_QP_STATE);

	if (is_destroyed)
		end->qp = NULL;
	return err;
}

/*
 * B has received and acknowledged it; A's program destroys its queue pair before A's thread has
 * run.
 */
TEST(acknowledged_send_is_not_flushed)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_RC });
	rig_receive(&rig.b, 1, WORD);
	wr = rig_wr(&rig, IBV_WR_SEND, &sge, WORD);
	set_late(true);
	rig_post(&rig.a, &wr);
	rig_wait(rig.b.cq, IBV_WC_SUCCESS);
	ck_assert_int_eq(end_pair(&rig.a, false), 0);
	rig_wait(rig.a.cq, IBV_WC_SUCCESS);
	set_late(false);
	rig_close(&rig);
}

/*
 * A write that arrived is in B's memory, and A gets its acknowledgement, whatever happens to B's
 * queue pair.
 */
TEST_LOOP(arrived_write_is_executed, 0, 2)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_RC });
	rig.a.memory[0] = 'A';
	wr = rig_wr(&rig, IBV_WR_RDMA_WRITE, &sge, WORD);
	set_late(true);
	rig_post(&rig.a, &wr);
	ck_assert_int_eq(end_pair(&rig.b, _i), 0);
	ck_assert_int_eq(rig.b.memory[0], 'A');
	rig_wait(rig.a.cq, IBV_WC_SUCCESS);
	set_late(false);
	rig_close(&rig);
}

/*
 * UCX frees the buffers of posted receives before it destroys their queue pair, while its
 * registration cache keeps the memory region.
 */
TEST(datagram_for_a_queue_pair_that_ends_is_not_stored)
{
	struct ibv_send_wr wr;
	struct ibv_ah *ah;
	struct ibv_sge sge;
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_UD });
	ah = rig_ah(&rig);
	rig_receive(&rig.b, 1, GRH_BYTES + WORD);
	memset(rig.b.memory, 'B', GRH_BYTES + WORD);
	wr = rig_wr(&rig, IBV_WR_SEND, &sge, WORD);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = rig.b.qp->qp_num;
	wr.wr.ud.remote_qkey = RIG_QKEY;
	set_late(true);
	rig_post(&rig.a, &wr);
	ck_assert_int_eq(end_pair(&rig.b, true), 0);
	ck_assert_int_eq(rig.b.memory[GRH_BYTES], 'B');
	set_late(false);
	rig_wait(rig.a.cq, IBV_WC_SUCCESS);
	ibv_destroy_ah(ah);
	rig_close(&rig);
}

/* --- events -------------------------------------------------------------- */

/* A thread takes an event of an object, which the main thread destroys. */
struct taking {
	struct rig rig;
	bool is_of_cq;
	pid_t destroyer;
	bool has_taken, is_destroying, is_destroyed; /* set in this order */
};

static __thread struct taking *taking; /* until the next unlock */

/* Until the object is destroyed, or the destroyer waits. */
static void wait_for_destroyer(struct taking *by)
{
	__atomic_store_n(&by->has_taken, true, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&by->is_destroyed, __ATOMIC_ACQUIRE) &&
	       !(__atomic_load_n(&by->is_destroying, __ATOMIC_ACQUIRE) &&
		 rig_is_asleep(by->destroyer)))
		usleep(1000);
}

/* The device's locks are unlocked with it, too. */
__attribute__((visibility("default"))) int pthread_mutex_unlock(pthread_mutex_t *lock)
{
	int (*next)(pthread_mutex_t *) = (__typeof__(next))dlsym(RTLD_NEXT, "pthread_mutex_unlock");
	struct taking *by = taking;
	int err = next(lock);

	taking = NULL;
	if (by)
		wait_for_destroyer(by);
	return err;
}

/* Return: whether the object was destroyed before its event was acknowledged. */
static void *take_event(void *arg)
{
	struct ibv_async_event event;
	struct taking *by = arg;
	struct ibv_cq *cq;
	void *context;

	taking = by;
	if (by->is_of_cq)
		ck_assert_int_eq(ibv_get_cq_event(by->rig.channel, &cq, &context), 0);
	else
		ck_assert_int_eq(ibv_get_async_event(by->rig.verbs, &event), 0);
	if (__atomic_load_n(&by->is_destroyed, __ATOMIC_ACQUIRE))
		return by;
	if (by->is_of_cq)
		ibv_ack_cq_events(cq, 1);
	else
		ibv_ack_async_event(&event);
	return NULL;
}

/* An event of B's completion queue, whose queue pair ends, or of B's queue pair. */
static void cause_event(struct taking *by)
{
	struct rig *rig = &by->rig;

	ck_assert_int_eq(ibv_req_notify_cq(rig->b.cq, 0), 0);
	rig_receive(&rig->b, 1, WORD);
	ck_assert_int_eq(end_pair(&rig->b, false), 0);
	if (by->is_of_cq)
		ck_assert_int_eq(ibv_destroy_qp(rig->b.qp), 0);
}

TEST_LOOP(object_whose_event_was_taken_is_destroyed_after_its_acknowledgement, 0, 2)
{
	struct taking by = { .is_of_cq = _i, .destroyer = gettid() };
	pthread_t thread;
	void *too_early;

	rig_open(&by.rig, &(struct rig_config){ .srq = !_i });
	cause_event(&by);
	ck_assert_int_eq(pthread_create(&thread, NULL, take_event, &by), 0);
	while (!__atomic_load_n(&by.has_taken, __ATOMIC_ACQUIRE))
		usleep(1000);
	__atomic_store_n(&by.is_destroying, true, __ATOMIC_RELEASE);
	ck_assert_int_eq(_i ? ibv_destroy_cq(by.rig.b.cq) : ibv_destroy_qp(by.rig.b.qp), 0);
	__atomic_store_n(&by.is_destroyed, true, __ATOMIC_RELEASE);
	ck_assert_int_eq(pthread_join(thread, &too_early), 0);
	ck_assert_ptr_null(too_early);
}

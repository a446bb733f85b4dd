/* SPDX-License-Identifier: BSD-2-Clause */
/* purecm_set_trace() (lib/engine/trace.c), with a port and a connection of the test. */
#include <pthread.h>
#include <purecm/purecm.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/device/device.h"
#include "lib/engine/trace.h"
#include "tests/unit/lib/threads.h"
#include "tests/unit/test.h"

static struct ibv_device ib_device = { .name = "rxe0" };
static struct ibv_context verbs = { .device = &ib_device };
static struct device device = { .verbs = &verbs };
static struct port port = { .device = &device, .port_num = 2 };
static struct mad_path path;
static uint8_t mad[MAD_BYTES] = { 1, 7, 2, 3 };
static struct cm_conn conn = { .local_comm_id = 0x1234 };

static struct purecm_trace seen;
static unsigned int n_seen;
static void *seen_arg;

static void see(const struct purecm_trace *trace, void *arg)
{
	seen = *trace;
	seen_arg = arg;
	n_seen++;
}

static void setup(void)
{
	memset(&path.dgid, 0x77, sizeof(path.dgid));
	n_seen = 0;
	purecm_set_trace(see, &n_seen);
}

static void teardown(void)
{
	purecm_set_trace(NULL, NULL);
}

FIXTURE(setup, teardown);

TEST(trace_of_a_message_has_its_port_and_peer)
{
	trace_message('>', &port, &path, mad);
	ck_assert_uint_eq(n_seen, 1);
	ck_assert_int_eq(seen.kind, PURECM_TRACE_SENT);
	ck_assert_str_eq(seen.device, "rxe0");
	ck_assert_uint_eq(seen.port_num, 2);
	ck_assert_mem_eq(&seen.peer, &path.dgid, sizeof(seen.peer));
	ck_assert_uint_eq(seen.mad_bytes, MAD_BYTES);
	ck_assert_mem_eq(seen.mad, mad, MAD_BYTES);
	ck_assert_uint_gt(seen.time_ns, 0);
	ck_assert_ptr_eq(seen_arg, &n_seen);
}

TEST(trace_distinguishes_received_and_sent_messages)
{
	trace_message('<', &port, &path, mad);
	ck_assert_int_eq(seen.kind, PURECM_TRACE_RECEIVED);
}

TEST(trace_of_a_transition_has_names)
{
	trace_step(&conn, CM_IDLE, CM_CALL_REQ);
	ck_assert_int_eq(seen.kind, PURECM_TRACE_STATE);
	ck_assert_uint_eq(seen.local_comm_id, 0x1234);
	ck_assert_str_eq(seen.from, "IDLE");
	ck_assert_str_eq(seen.to, "IDLE");
	ck_assert_str_eq(seen.why, "CALL_REQ");
	ck_assert_ptr_null(seen.mad);
}

TEST(trace_without_a_function_calls_nothing)
{
	purecm_set_trace(NULL, NULL);
	trace_message('>', &port, &path, mad);
	trace_step(&conn, CM_IDLE, CM_CALL_REQ);
	ck_assert_uint_eq(n_seen, 0);
}

static sem_t inside, may_leave;
static atomic_bool has_left;

static void linger(const struct purecm_trace *trace, void *arg)
{
	(void)trace;
	(void)arg;
	sem_post(&inside);
	sem_wait(&may_leave);
	has_left = true;
}

static void *step(void *arg)
{
	trace_step(&conn, CM_IDLE, CM_CALL_REQ);
	return arg;
}

/* Returns when the function's thread and the one that replaces it wait. */
static void *let_thread_leave(void *arg)
{
	threads_wait_asleep();
	sem_post(&may_leave);
	return arg;
}

TEST(replaced_function_has_returned)
{
	pthread_t stepper, timer;

	sem_init(&inside, 0, 0);
	sem_init(&may_leave, 0, 0);
	purecm_set_trace(linger, NULL);
	pthread_create(&stepper, NULL, step, NULL);
	sem_wait(&inside);
	pthread_create(&timer, NULL, let_thread_leave, NULL);
	purecm_set_trace(NULL, NULL);
	ck_assert(has_left);
	pthread_join(stepper, NULL);
	pthread_join(timer, NULL);
}

TEST(child_can_set_a_function_after_a_fork_during_a_call)
{
	pthread_t stepper;
	int status;
	pid_t child;

	sem_init(&inside, 0, 0);
	sem_init(&may_leave, 0, 0);
	purecm_set_trace(linger, NULL);
	pthread_create(&stepper, NULL, step, NULL);
	sem_wait(&inside);
	child = fork();
	if (child == 0) {
		alarm(200);
		trace_after_fork(); /* as the engine's fork handler does */
		purecm_set_trace(NULL, NULL);
		_exit(0);
	}
	waitpid(child, &status, 0);
	sem_post(&may_leave);
	pthread_join(stepper, NULL);
	ck_assert_int_eq(status, 0);
}

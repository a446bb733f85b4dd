/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine (lib/engine/engine.c): its turns, steps of the core, and the upcalls above it. */
#include "lib/engine/engine.h"

#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <semaphore.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/lib/rig.h"
#include "tests/unit/test.h"

FIXTURE(rig_begin, NULL);

static struct id *requesting(void)
{
	struct rdma_conn_param param = { .qp_num = 1 };
	struct id *id = rig_routed(RDMA_PS_TCP);

	ck_assert_int_eq(rdma_connect(&id->pub, &param), 0);
	return id;
}

static void expect_report(enum cm_report_kind kind)
{
	ck_assert_uint_eq(rig.n_reports, 1);
	ck_assert_int_eq(rig.report[0].kind, kind);
}

/* --- input ---------------------------------------------------------------------- */

TEST(message_is_reported_to_the_upcalls)
{
	struct id *id = requesting();
	struct cm_msg rep = rig_rep();

	rig_receive(&rep);
	expect_report(CM_REPORT_RESPONSE);
	ck_assert_ptr_eq(rig.report[0].conn, id->conn);
}

/* As rig_receive(), with more messages to follow. */
static void receive_one(const struct cm_msg *msg)
{
	struct mad_path path = { .grh = true };
	uint8_t mad[MAD_BYTES];

	cm_msg_encode(msg, mad);
	engine_receive(rig.port, &path, mad);
}

TEST(answers_are_sent_after_all_messages)
{
	struct cm_msg dreq;

	cm_msg_init(&dreq, CM_ATTR_DREQ, 1); /* without a connection: answered at once */
	receive_one(&dreq);
	receive_one(&dreq);
	ck_assert_uint_eq(fake_cmportd_count(PORTD_MAD), 2);
	ck_assert_uint_eq(cmportd.n_left, 0);
	engine_received_all();
	ck_assert_uint_eq(cmportd.n_left, 2);
	ck_assert_uint_eq(cmportd.n_sends, 1);
}

TEST(invalid_mad_is_dropped)
{
	uint8_t mad[MAD_BYTES] = { 0 };
	struct mad_path path = { .grh = true };

	engine_receive(rig.port, &path, mad);
	engine_received_all();
	ck_assert_uint_eq(rig.n_reports, 0);
	ck_assert_uint_eq(cmportd.n_said, 0);
}

/* --- time ------------------------------------------------------------------------- */

TEST(unanswered_message_is_retransmitted_and_marked)
{
	requesting();
	rig.now_ns += 60 * 1000 * CM_NS_PER_MS;
	engine_turn(0);
	ck_assert_uint_eq(fake_cmportd_count(PORTD_MAD), 2);
	ck_assert(fake_cmportd_last(PORTD_MAD)->mad.again);
	ck_assert_uint_eq(cmportd.n_left, cmportd.n_said);
}

TEST(nothing_is_retransmitted_early)
{
	requesting();
	engine_turn(0);
	ck_assert_uint_eq(fake_cmportd_count(PORTD_MAD), 1);
	ck_assert(!fake_cmportd_last(PORTD_MAD)->mad.again);
}

/* The first eight are sent one by one: cm/peer.c. */
TEST(simultaneous_retransmissions_share_a_datagram)
{
	unsigned int n_sends;
	int i;

	for (i = 0; i < 8 + 2; i++)
		requesting();
	rig.now_ns += 60 * 1000 * CM_NS_PER_MS;
	for (i = 0; i < 8; i++) {
		engine_turn(0);
		rig.now_ns += 10 * CM_NS_PER_MS;
	}
	ck_assert_uint_eq(fake_cmportd_count(PORTD_MAD), 10 + 8);
	n_sends = cmportd.n_sends;
	engine_turn(0);
	ck_assert_uint_eq(fake_cmportd_count(PORTD_MAD), 10 + 8 + 2);
	ck_assert_uint_eq(cmportd.n_sends, n_sends + 1);
}

TEST(before_sleep_is_called_in_each_turn)
{
	engine_turn(0);
	engine_turn(0);
	ck_assert_uint_eq(rig.n_looked, 2);
}

TEST(resolutions_are_checked_when_their_timer_expires)
{
	const struct cm_time at = { .ns = rig.now_ns + CM_NS_PER_MS };
	struct cm_timer timer = { 0 };

	cm_timer_arm(&engine_held()->resolutions, &timer, at);
	engine_turn(0);
	ck_assert_uint_eq(rig.n_expired, 0);
	rig.now_ns = at.ns;
	engine_turn(0);
	ck_assert_uint_eq(rig.n_expired, 1);
	cm_timer_disarm(&engine_held()->resolutions, &timer);
	engine_turn(0);
	ck_assert_uint_eq(rig.n_expired, 1);
}

/* --- descriptors --------------------------------------------------------------------- */

static unsigned int n_ready;

static void take_ready(struct watch *watch)
{
	eventfd_t count;

	ck_assert_int_eq(eventfd_read(watch->fd, &count), 0);
	n_ready++;
}

TEST(function_of_a_watched_descriptor_is_called_when_it_is_readable)
{
	static struct watch watch;
	int fd = eventfd(0, EFD_CLOEXEC);

	ck_assert_int_eq(engine_watch(&watch, fd, take_ready), 0);
	engine_turn(0);
	ck_assert_uint_eq(n_ready, 0);
	eventfd_write(fd, 1);
	engine_turn(0);
	ck_assert_uint_eq(n_ready, 1);
	close(fd);
}

TEST(unwatched_descriptor_is_ignored)
{
	static struct watch watch;
	int fd = eventfd(1, EFD_CLOEXEC);

	ck_assert_int_eq(engine_watch(&watch, fd, take_ready), 0);
	engine_unwatch(&watch);
	engine_turn(0);
	ck_assert_uint_eq(n_ready, 0);
	close(fd);
}

/* The response arrives at the third poll of the descriptor. */
static unsigned int n_looks;

static void take_rep_at_last(struct watch *watch)
{
	struct cm_msg rep = rig_rep();

	if (++n_looks < 3)
		return;
	rig_receive(&rep);
	engine_unwatch(watch);
}

TEST(message_with_an_unread_answer_is_not_retransmitted)
{
	static struct watch watch;
	int fd = eventfd(1, EFD_CLOEXEC);
	struct id *id = requesting();

	ck_assert_int_eq(engine_watch(&watch, fd, take_rep_at_last), 0);
	rig.now_ns += 5 * 1000 * CM_NS_PER_MS;
	engine_turn(0);
	rig_expect_conn(id, CM_REP_RCVD);
	ck_assert_uint_eq(fake_cmportd_count(PORTD_MAD), 1);
	close(fd);
}

static void never_end(struct watch *watch)
{
	(void)watch;
}

TEST(busy_descriptor_delays_no_timer_for_ever)
{
	static struct watch watch;
	int fd = eventfd(1, EFD_CLOEXEC);

	requesting();
	ck_assert_int_eq(engine_watch(&watch, fd, never_end), 0);
	rig.now_ns += 5 * 1000 * CM_NS_PER_MS;
	engine_turn(0);
	ck_assert_uint_eq(fake_cmportd_count(PORTD_MAD), 2);
	engine_unwatch(&watch);
	close(fd);
}

/* --- the lock -------------------------------------------------------------------------- */

TEST(refused_step_changes_nothing)
{
	struct id *id = requesting();
	struct outbox box;

	outbox_init(&box);
	ck_assert_int_eq(engine_step(engine_lock(), &box, id->conn, CM_CALL_RTU, NULL), -EINVAL);
	engine_unlock();
	ck_assert_uint_eq(box.n, 0);
	rig_expect_conn(id, CM_REQ_SENT);
}

TEST(exiting_process_sends_one_message_per_connection)
{
	struct id *id = rig_connected();

	requesting();
	ck_assert(engine_destroy_connections(1000));
	ck_assert_ptr_null(id->conn);
	fake_cmportd_last(PORTD_MAD);
	ck_assert_uint_eq(fake_cmportd_count(PORTD_MAD), 5); /* REQ, RTU, REQ; DREQ, REJ */
	ck_assert_uint_eq(cmportd.n_left, cmportd.n_said);
}

TEST(exiting_process_waits_for_no_answer)
{
	rig_connected();
	rig_connected();
	engine_held()->core.out_max = 1;
	ck_assert(engine_destroy_connections(1000));
	ck_assert_uint_eq(fake_cmportd_count(PORTD_MAD), 6); /* REQ, RTU; REQ, RTU; DREQ, DREQ */
}

static void *take_lock(void *arg)
{
	engine_lock();
	return arg;
}

TEST(exiting_process_does_not_wait_long_for_the_lock)
{
	uint64_t now_ns = rig.now_ns;
	pthread_t holder;

	rig.now_ns = 0;
	pthread_create(&holder, NULL, take_lock, NULL);
	pthread_join(holder, NULL);
	ck_assert(!engine_destroy_connections(1));
	rig.now_ns = now_ns; /* Check measures durations with it */
}

TEST(random_numbers_differ)
{
	ck_assert_uint_ne(engine_random(), engine_random());
}

/* --- events posted by upcalls --------------------------------------------------- */

static struct id *listener;

static void post_event(struct engine *engine, struct outbox *box, const struct cm_report *report,
		       const struct cm_msg *msg)
{
	(void)engine, (void)box, (void)report, (void)msg;
	id_notify(listener, RDMA_CM_EVENT_ADDR_CHANGE, 0);
}

static bool is_readable(const struct channel *channel)
{
	struct pollfd poller = { .fd = channel->pub.fd, .events = POLLIN };

	return poll(&poller, 1, 0) == 1;
}

static void set_up_posting(void)
{
	static struct engine_upcalls upcalls;

	upcalls = rig_reporting;
	upcalls.report = post_event;
	rig_begin_with(&upcalls);
}

FIXTURE(set_up_posting, NULL);

TEST(pollers_are_woken_after_all_messages)
{
	struct cm_msg req;

	listener = rig_listener(1);
	req = rig_req(1);
	receive_one(&req);
	ck_assert(!is_readable(rig.channel));
	engine_received_all();
	ck_assert(is_readable(rig.channel));
}

/* --- the start -------------------------------------------------------------------- */

static struct engine_upcalls starting;
static int status_of_child;

/* As another thread would, while the first id is created. */
static int fork_child(void)
{
	pid_t child = fork();

	if (!child) {
		alarm(20); /* otherwise the child would wait for ever */
		_exit(engine_start(&rig_reporting) ? 1 : 0);
	}
	waitpid(child, &status_of_child, 0);
	return 0;
}

FIXTURE(NULL, NULL);

TEST(child_of_a_fork_during_the_first_start_has_an_engine)
{
	starting = rig_reporting;
	starting.start = fork_child;
	ck_assert_int_eq(engine_start(&starting), 0);
	ck_assert_int_eq(status_of_child, 0);
}

static sem_t has_told;

static struct cm_time tell_resumer(void)
{
	if (pthread_equal(cmportd.resumer, pthread_self()))
		sem_post(&has_told);
	return CM_TIME_NEVER;
}

/* An event of the network may come before anything of cmportd. */
TEST(engine_resumes_in_its_thread_from_the_first_turn_on)
{
	starting = rig_reporting;
	starting.deadline = tell_resumer;
	ck_assert_int_eq(engine_start(&starting), 0);
	ck_assert_int_eq(sem_wait(&has_told), 0);
}

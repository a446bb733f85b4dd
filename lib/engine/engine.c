/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine: see engine.h. The thread lives from the first id to the end of the process.
 */
#include "lib/engine/engine.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <time.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/thread.h"
#include "lib/diag/lock_order.h"
#include "lib/diag/warning.h"
#include "lib/engine/session.h"
#include "lib/engine/trace.h"

#define SLACK_NS      (4 * CM_NS_PER_MS) /* deadlines this close together are served together */
#define READS_MAX     64		 /* maximum turns by which overdue timers are put off */
#define WAITING_USUAL 64 /* ids that wait for an address or path; more make the tables grow */

static pthread_mutex_t lock = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static bool started;
static struct engine engine;
static const struct engine_upcalls *upcalls;
static struct loop loop = { .fd = -1 };
static int alarm_fd = -1;
static struct watch alarm_watch, network_watch;
static struct cm_time rings_at; /* alarm time; atomic, written under the lock */
static struct {
	struct cm_effects fx;
	struct outbox box;
} own; /* the thread's, for one step; large */

/* A counter under a keyed mixing function (splitmix64's). */
uint64_t engine_random(void)
{
	uint64_t x = __atomic_add_fetch(&engine.random_count, 1, __ATOMIC_RELAXED) *
		     UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ engine.random_secret ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

struct engine *engine_lock(void)
{
	lock_take(&lock, LOCK_ENGINE);
	return &engine;
}

struct engine *engine_held(void)
{
	return &engine;
}

void engine_unlock(void)
{
	struct list channels;
	const bool any = channel_take_posted(&channels);

	lock_give(&lock, LOCK_ENGINE);
	if (any)
		channel_signal_posted(&channels);
}

bool engine_id_is(const struct id *id, enum id_state state)
{
	bool is;

	engine_lock();
	is = id->state == state;
	engine_unlock();
	return is;
}

/* --- stepping the core --------------------------------------------------- */

static void take_effects(struct outbox *box, const struct cm_effects *fx)
{
	unsigned int i;

	assert(box->n + fx->n_sends <= OUTBOX_MAX);

	for (i = 0; i < fx->n_sends; i++) {
		box->send[box->n++] = fx->send[i];
		port_get(port_of(fx->send[i].port));
	}
	session_take_closed(box);
	for (i = 0; i < fx->n_reports; i++)
		upcalls->report(&engine, box, &fx->report[i], &fx->msg);
}

int engine_step(struct engine *of, struct outbox *box, struct cm_conn *conn, enum cm_event verb,
		const struct cm_args *args)
{
	struct cm_effects fx;
	int err = cm_core_call(&of->core, conn, verb, args, clock_now(), &fx);

	if (err)
		return err;
	take_effects(box, &fx);
	engine_wake();
	return 0;
}

static struct cm_time next_deadline(void)
{
	return cm_time_earlier(cm_core_deadline(&engine.core),
			       cm_timers_deadline(&engine.resolutions));
}

/*
 * Any thread that brings a deadline nearer sets the alarm, so that the engine's thread can sleep.
 */
static void set_alarm(struct cm_time deadline)
{
	struct itimerspec at = { .it_interval.tv_sec = 0 };
	uint64_t ns = deadline.ns;

	if (ns >= rings_at.ns)
		return;
	ns = (ns + SLACK_NS - 1) / SLACK_NS * SLACK_NS;
	if (ns >= rings_at.ns)
		return;
	__atomic_store_n(&rings_at.ns, ns, __ATOMIC_RELAXED);
	at.it_value = clock_timespec(ns);
	if (timerfd_settime(alarm_fd, TFD_TIMER_ABSTIME, &at, NULL))
		log_debug("the CM thread cannot be woken");
}

void engine_wake(void)
{
	set_alarm(next_deadline());
}

void engine_wake_at(struct cm_time time)
{
	set_alarm(time);
}

/* --- the thread ---------------------------------------------------------- */

static bool is_request(const uint8_t mad[MAD_BYTES])
{
	uint16_t attr = cm_mad_attr(mad);

	return attr == CM_ATTR_REQ || attr == CM_ATTR_SIDR_REQ;
}

/* A request is located with the lock held, when no device may be queried. */
void engine_receive(struct port *port, const struct mad_path *path, const uint8_t mad[MAD_BYTES])
{
	bool locates = is_request(mad);

	trace_message('<', port, path, mad);
	if (locates) {
		upcalls->prepare(port);
		gid_read_again_after(GID_NEVER);
	}
	outbox_init(&own.box);
	engine_lock();
	session_count_mad();
	if (cm_core_reserve(&engine.core))
		warning_of_requests();
	cm_core_input(&engine.core, &port->cm, path, mad, MAD_BYTES, clock_now(), &own.fx);
	take_effects(&own.box, &own.fx);
	lock_give(&lock, LOCK_ENGINE);
	if (locates)
		gid_read_again_after(0);
	outbox_hold(&own.box, false);
}

/* Sends answers and wakes programs once per batch. */
void engine_received_all(void)
{
	outbox_release();
	engine_lock();
	engine_unlock();
}

struct overdue {
	bool connections;
	bool resolutions;
};

static struct overdue find_overdue(void)
{
	const struct cm_time alarm = { __atomic_load_n(&rings_at.ns, __ATOMIC_RELAXED) };
	const struct cm_time now = clock_now();
	struct overdue are = { false, false };

	/* The alarm rings at most so much later than the first deadline. */
	if (!cm_time_reached(alarm, cm_time_after(now, SLACK_NS)))
		return are;
	engine_lock();
	are.connections = cm_time_reached(cm_core_deadline(&engine.core), now);
	are.resolutions = cm_time_reached(cm_timers_deadline(&engine.resolutions), now);
	engine_unlock();
	return are;
}

/* If the thread was delayed, unread messages may answer what seems to be overdue. */
static struct overdue read_unread(void)
{
	struct overdue are = find_overdue();
	unsigned int i;

	for (i = 0; i < READS_MAX && are.connections && loop_turn(&loop, 0) > 0; i++)
		are = find_overdue();
	return are;
}

static void run_timers(struct overdue are)
{
	bool more = are.connections, holds = false;

	while (more) {
		outbox_init(&own.box);
		engine_lock();
		more = cm_core_expire(&engine.core, clock_now(), &own.fx);
		take_effects(&own.box, &own.fx);
		engine_unlock();
		holds = holds || own.box.n;
		outbox_hold(&own.box, true);
	}
	if (holds)
		outbox_release();
	if (are.resolutions)
		upcalls->expire(clock_now());
}

/* cmportd handles the addresses of peers. */
static void net_changed(const struct net_event *event, void *arg)
{
	bool *interfaces = arg; /* ports may have come, or their GIDs have changed */

	switch (event->change) {
	case NET_CHANGE_NEIGH:
		upcalls->neighbour_changed(event);
		break;
	case NET_CHANGE_LINK:
		upcalls->interface_changed(event);
		*interfaces = true;
		break;
	case NET_CHANGE_ADDR:
	case NET_CHANGE_LOST:
		*interfaces = true;
		break;
	case NET_CHANGE_ROUTE:
		break;
	}
}

static void network_changed(struct watch *watch)
{
	bool interfaces = false;

	(void)watch;
	net_watch_drain(net_changed, &interfaces);
	if (!interfaces)
		return;
	gid_forget(NULL);
	upcalls->interfaces_changed();
}

/* Timers run after each turn anyway; the edge-triggered alarm is never read. */
static void alarm_rang(struct watch *watch)
{
	(void)watch;
}

void engine_turn(int most_ms)
{
	engine_lock();
	/* An alarm that already went off, or was put off, would wake the thread for nothing. */
	if (cm_time_reached(rings_at, clock_now()))
		__atomic_store_n(&rings_at.ns, UINT64_MAX, __ATOMIC_RELAXED);
	set_alarm(cm_time_earlier(next_deadline(), upcalls->deadline()));
	engine_unlock();
	loop_turn(&loop, most_ms);
	run_timers(read_unread());
	upcalls->before_sleep();
}

static void *run_thread(void *arg)
{
	pthread_setname_np(pthread_self(), "purecm");
	portd_resume_here(); /* a port may come before the first record of cmportd */
	for (;;)
		engine_turn(-1);
	return arg;
}

/* --- beginning and end --------------------------------------------------- */

int engine_watch(struct watch *watch, int fd, void (*ready)(struct watch *watch))
{
	return loop_watch(&loop, watch, fd, EPOLLIN, ready);
}

void engine_unwatch(struct watch *watch)
{
	loop_unwatch(&loop, watch);
}

static int open_descriptors(void)
{
	int err = net_watch_open(NET_WATCH_OWN);

	if (!err)
		err = loop_init(&loop);
	if (err)
		return err;
	alarm_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (alarm_fd < 0)
		return -errno;
	err = loop_watch(&loop, &alarm_watch, alarm_fd, EPOLLIN | EPOLLET, alarm_rang);
	if (!err)
		err = engine_watch(&network_watch, net_watch_fd(), network_changed);
	return err ? err : upcalls->start();
}

static void close_descriptors(void)
{
	loop_fini(&loop);
	fd_close(&alarm_fd);
	if (upcalls)
		upcalls->stop();
}

static void free_tables(void)
{
	cm_core_fini(&engine.core);
	hash_fini(&engine.subnet_asks);
	hash_fini(&engine.resolving);
}

static int init_state(void)
{
	uint64_t secret[2] = { 0 };
	int err;

	if (getrandom(secret, sizeof(secret), 0) != sizeof(secret))
		return -errno;
	err = cm_core_init(&engine.core, secret[0]);
	if (err)
		return err;
	err = hash_init(&engine.subnet_asks, WAITING_USUAL);
	if (!err)
		err = hash_init(&engine.resolving, WAITING_USUAL);
	if (err) {
		free_tables();
		return err;
	}
	engine.core.trace = trace_step;
	port_limits_read(&engine.limits);
	engine.random_secret = secret[1];
	list_init(&engine.ids);
	rings_at = CM_TIME_NEVER;
	return 0;
}

/*
 * A child has neither our thread nor our ports and connections, and starts from nothing. The
 * parent's state is leaked on purpose: its memory is not shared.
 */
static void forget_parent(void)
{
	pthread_mutex_init(&lock, NULL);
	pthread_mutex_init(&start_lock, NULL);
	lock_after_fork();
	close_descriptors();
	id_events_after_fork();
	net_after_fork();
	gid_after_fork();
	session_after_fork();
	trace_after_fork();
	if (upcalls)
		upcalls->after_fork();
	engine = (struct engine){ 0 };
	started = false;
}

static void drop_state(void)
{
	close_descriptors();
	net_watch_close();
	free_tables();
}

int engine_init(const struct engine_upcalls *above)
{
	int err = init_state();

	upcalls = above;
	if (err)
		return err;
	err = open_descriptors();
	if (err)
		drop_state();
	return err;
}

static int start_thread(const struct engine_upcalls *above)
{
	int err = engine_init(above);

	if (err)
		return err;
	err = thread_start(run_thread, NULL);
	if (err)
		drop_state();
	return err;
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forget_parent);
}

/* Another thread may fork while this one holds the lock, also the first time. */
int engine_start(const struct engine_upcalls *above)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int err = 0;

	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&start_lock);
	if (!started)
		err = start_thread(above);
	started = started || !err;
	pthread_mutex_unlock(&start_lock);
	return err;
}

bool engine_is_started(void)
{
	return started;
}

/* Each connection sends one last message. */
static void destroy_all(void)
{
	struct id *id;
	struct outbox box;

	engine.core.out_max = UINT_MAX; /* the answers will not be received */
	list_for_each_entry (id, &engine.ids, link) {
		if (!id->conn)
			continue;
		outbox_init(&box);
		engine_step(&engine, &box, id->conn, CM_CALL_DESTROY, NULL);
		id->conn = NULL;
		outbox_hold(&box, false);
	}
}

bool engine_destroy_connections(int most_ms)
{
	const struct timespec until = clock_after_ms((unsigned int)most_ms);

	if (pthread_mutex_clocklock(&lock, CLOCK_MONOTONIC, &until))
		return false;
	lock_taken(LOCK_ENGINE);
	destroy_all();
	lock_give(&lock, LOCK_ENGINE);
	outbox_release();
	return true;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine: see engine.h. The thread lives from the first id to the end of the process.
 */
#include "lib/engine.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "lib/host.h"
#include "lib/hotplug.h"
#include "lib/listen.h"
#include "lib/lock_order.h"
#include "lib/log.h"
#include "lib/outbox.h"
#include "lib/removal.h"
#include "lib/report.h"
#include "lib/resolve.h"
#include "base/thread.h"
#include "lib/trace.h"
#include "lib/warning.h"
#include "lib/net/membership.h"

#define EVENTS_MAX   16
#define EXIT_WAIT_MS 200
#define SLACK_NS     (4 * CM_NS_PER_MS) /* deadlines so close to each other are met together */

static pthread_mutex_t lock = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static bool started;
static struct engine engine;
static int poll_fd = -1;
static int alarm_fd = -1;
static int hotplug_fd = -1;
static struct net_watch *net_watch;
static char host;		/* stands for cmportd in the poll set */
static struct cm_time rings_at; /* what the alarm is set to; under the lock */

struct cm_time engine_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (struct cm_time){ (uint64_t)now.tv_sec * UINT64_C(1000000000) +
				 (uint64_t)now.tv_nsec };
}

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

	list_init(&channels);
	channel_take_posted(&channels);
	lock_give(&lock, LOCK_ENGINE);
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
	host_take_closed(box);
	for (i = 0; i < fx->n_reports; i++)
		report_handle(&engine, box, &fx->report[i], &fx->msg);
}

int engine_step(struct engine *of, struct outbox *box, struct cm_conn *conn, enum cm_event verb,
		const struct cm_args *args)
{
	struct cm_effects fx;
	int err = cm_core_call(&of->core, conn, verb, args, engine_now(), &fx);

	if (err)
		return err;
	take_effects(box, &fx);
	engine_wake(of);
	return 0;
}

static struct cm_time next_deadline(void)
{
	return cm_time_earlier(cm_core_deadline(&engine.core),
			       cm_timers_deadline(&engine.resolutions));
}

/* The alarm is set by whoever brings a deadline nearer, so that the thread can sleep on. */
static void set_alarm(struct cm_time deadline)
{
	struct itimerspec at = { .it_interval.tv_sec = 0 };
	uint64_t ns = deadline.ns;

	if (ns >= rings_at.ns)
		return;
	ns = (ns + SLACK_NS - 1) / SLACK_NS * SLACK_NS;
	if (ns >= rings_at.ns)
		return;
	rings_at.ns = ns;
	at.it_value.tv_sec = (time_t)(ns / UINT64_C(1000000000));
	at.it_value.tv_nsec = (long)(ns % UINT64_C(1000000000));
	if (timerfd_settime(alarm_fd, TFD_TIMER_ABSTIME, &at, NULL))
		log_debug("the CM thread cannot be woken");
}

void engine_wake(struct engine *of)
{
	(void)of;
	set_alarm(next_deadline());
}

/* --- the thread ---------------------------------------------------------- */

void engine_receive(struct port *port, const struct mad_path *path, const uint8_t mad[MAD_BYTES])
{
	static struct cm_effects fx; /* large, and of the one thread that comes here */
	static struct outbox box;

	trace_message('<', port, path, mad);
	outbox_init(&box);
	engine_lock();
	if (cm_core_reserve(&engine.core))
		warning_of_requests();
	cm_core_input(&engine.core, &port->cm, path, mad, MAD_BYTES, engine_now(), &fx);
	take_effects(&box, &fx);
	lock_give(&lock, LOCK_ENGINE);
	outbox_hold(&box);
}

/* Programs are woken, and answers leave, once for all that had come. */
void engine_received_all(void)
{
	outbox_release();
	engine_lock();
	engine_unlock();
}

static void run_timers(void)
{
	static struct cm_effects fx;
	static struct outbox box;
	bool more = true, holds = false;

	while (more) {
		outbox_init(&box);
		engine_lock();
		more = cm_core_expire(&engine.core, engine_now(), &fx);
		take_effects(&box, &fx);
		engine_unlock();
		holds = holds || box.n;
		outbox_hold_again(&box);
	}
	if (holds)
		outbox_release();
	resolve_expire(engine_now());
}

/* How messages get to peers is cmportd's business. */
static void net_changed(const struct net_event *event, void *arg)
{
	bool *interfaces = arg; /* ports may have come, or their GIDs changed */

	switch (event->change) {
	case NET_CHANGE_NEIGH:
		resolve_neigh_changed(event);
		break;
	case NET_CHANGE_ADDR:
	case NET_CHANGE_LINK:
	case NET_CHANGE_LOST:
		*interfaces = true;
		break;
	case NET_CHANGE_ROUTE:
		break;
	}
}

static void network_changed(void)
{
	bool interfaces = false;

	net_watch_drain(net_watch, net_changed, &interfaces);
	if (!interfaces)
		return;
	gid_forget(NULL);
	listen_extend();
}

/* An alarm that rings only now, or has been put off, wakes the thread for nothing. */
static void set_next_alarm(void)
{
	engine_lock();
	if (cm_time_reached(rings_at, engine_now()))
		rings_at = CM_TIME_NEVER;
	set_alarm(cm_time_earlier(next_deadline(), host_deadline()));
	engine_unlock();
}

static void dispatch(const struct epoll_event *event)
{
	if (event->data.ptr == &engine)
		network_changed();
	else if (event->data.ptr == &hotplug_fd)
		hotplug_drain(hotplug_fd);
	else if (event->data.ptr == &host)
		host_receive();
	/* The alarm: timers are run anyway. */
}

static void *run(void *arg)
{
	struct epoll_event events[EVENTS_MAX];
	int i, n;

	pthread_setname_np(pthread_self(), "purecm");
	for (;;) {
		set_next_alarm();
		n = epoll_wait(poll_fd, events, EVENTS_MAX, -1);
		for (i = 0; i < n; i++)
			dispatch(&events[i]);
		run_timers();
		host_look();
	}
	return arg;
}

/* --- beginning and end --------------------------------------------------- */

static int watch_for(uint32_t what, int fd, void *who)
{
	struct epoll_event event = { .events = what, .data.ptr = who };

	return epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int watch(int fd, void *who)
{
	return watch_for(EPOLLIN, fd, who);
}

int engine_watch_host(int fd)
{
	return watch(fd, &host);
}

void engine_unwatch_host(int fd)
{
	epoll_ctl(poll_fd, EPOLL_CTL_DEL, fd, NULL);
}

/* Where a container does not let us, devices are only seen to go by their ports. */
static int watch_devices(void)
{
	hotplug_fd = hotplug_open();
	if (hotplug_fd == -EMFILE || hotplug_fd == -ENFILE || hotplug_fd == -ENOMEM)
		return hotplug_fd;
	if (hotplug_fd >= 0)
		return watch(hotplug_fd, &hotplug_fd);
	log_debug("devices that come and go are not announced here: %s", strerror(-hotplug_fd));
	return 0;
}

static int open_descriptors(void)
{
	int err = net_watch_open(&net_watch);

	if (err)
		return err;
	poll_fd = epoll_create1(EPOLL_CLOEXEC);
	alarm_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (poll_fd < 0 || alarm_fd < 0)
		return -errno;
	err = watch_for(EPOLLIN | EPOLLET, alarm_fd, &alarm_fd); /* never read */
	if (!err)
		err = watch(net_watch_fd(net_watch), &engine);
	return err ? err : watch_devices();
}

static void close_descriptors(void)
{
	if (poll_fd >= 0)
		close(poll_fd);
	if (alarm_fd >= 0)
		close(alarm_fd);
	if (hotplug_fd >= 0)
		close(hotplug_fd);
	poll_fd = -1;
	alarm_fd = -1;
	hotplug_fd = -1;
}

static int init_state(void)
{
	struct port_limits limits;
	uint64_t secret[3] = { 0 };
	int err;

	if (getrandom(secret, sizeof(secret), 0) != sizeof(secret))
		return -errno;
	err = cm_core_init(&engine.core, secret[0]);
	if (err)
		return err;
	engine.core.trace = trace_step;
	port_limits_read(&limits);
	port_space_init(&engine.ports, &limits, secret[1]);
	engine.random_secret = secret[2];
	list_init(&engine.ids);
	list_init(&engine.resolving);
	list_init(&engine.subnet_asks);
	rings_at = CM_TIME_NEVER;
	return 0;
}

/* A child has neither our thread nor any business with our ports and connections. It starts from
 * nothing; what the parent had is leaked on purpose, as its memory is shared with nobody. */
static void forget_parent(void)
{
	pthread_mutex_init(&lock, NULL);
	pthread_mutex_init(&start_lock, NULL);
	lock_after_fork();
	close_descriptors();
	channel_after_fork();
	id_after_fork();
	net_after_fork();
	membership_after_fork();
	gid_after_fork();
	device_after_fork();
	host_after_fork();
	trace_after_fork();
	engine = (struct engine){ 0 };
	net_watch = NULL; /* net_after_fork() has closed it */
	started = false;
}

static int start(void)
{
	static bool fork_handled;
	int err = init_state();

	if (err)
		return err;
	err = open_descriptors();
	if (!err)
		err = thread_start(run, NULL);
	if (err) {
		close_descriptors();
		net_watch_close(net_watch);
		net_watch = NULL;
		cm_core_fini(&engine.core);
		port_space_fini(&engine.ports);
		return err;
	}
	if (!fork_handled)
		pthread_atfork(NULL, NULL, forget_parent);
	fork_handled = true;
	return 0;
}

int engine_start(void)
{
	int err = 0;

	pthread_mutex_lock(&start_lock);
	if (!started)
		err = start();
	started = started || !err;
	pthread_mutex_unlock(&start_lock);
	return err;
}

/* Each gets one last message. */
static void destroy_connections(void)
{
	struct list *node;
	struct id *id;
	struct outbox box;

	engine.core.out_max = UINT_MAX; /* nobody will be there for the answers */
	list_for_each (node, &engine.ids) {
		id = container_of(node, struct id, link);
		if (!id->conn)
			continue;
		outbox_init(&box);
		engine_step(&engine, &box, id->conn, CM_CALL_DESTROY, NULL);
		id->conn = NULL;
		outbox_hold(&box);
	}
}

/*
 * A program that exits without destroying its ids leaves peers that would wait for it. cmportd ends
 * its connections as the kernel would. One that is of this process has to be given the time; and
 * the first process of a container is followed at once by all others there, cmportd for one. exit()
 * may have been called with the lock held, from a signal handler for one, so it is not waited for.
 */
static void __attribute__((destructor)) end_connections(void)
{
	struct timespec until;

	if (!started || !host_client())
		return;
	if (host_ends_with_us()) {
		host_end(EXIT_WAIT_MS);
		return;
	}
	if (getpid() != 1)
		return;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += EXIT_WAIT_MS * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;
	if (pthread_mutex_clocklock(&lock, CLOCK_MONOTONIC, &until))
		return;
	lock_taken(LOCK_ENGINE);
	destroy_connections();
	lock_give(&lock, LOCK_ENGINE);
	outbox_release();
	portd_drain(host_client(), EXIT_WAIT_MS);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Parity: the event channel as a file descriptor. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include "steps.h"

#define N_SIGNALS 3

static void start_one(struct scene *s, struct rdma_cm_id *id)
{
	if (rdma_resolve_addr(id, NULL, at(&s->peer, s->port), RESOLVE_MS))
		give_up("rdma_resolve_addr: %s", strerror(errno));
}

static int ready(const struct rdma_event_channel *channel, int wait_ms)
{
	struct pollfd pfd = { .fd = channel->fd, .events = POLLIN | POLLOUT | POLLPRI };

	return poll(&pfd, 1, wait_ms) > 0 ? pfd.revents : 0;
}

static void poll_reports_whether_get_blocks(struct scene *s)
{
	struct rdma_cm_id *one = open_id(s, "one", RDMA_PS_TCP);
	struct rdma_cm_id *two = open_id(s, "two", RDMA_PS_TCP);
	struct rdma_cm_event *event;

	SAY("before %#x", (unsigned)ready(s->channel, 0) & POLLIN);
	start_one(s, one);
	SAY("one event %#x", (unsigned)ready(s->channel, PATIENCE_MS) & POLLIN);
	start_one(s, two);
	pause_ms(QUIET_MS);
	event = wait_event(s->channel);
	SAY("one of two taken %#x", (unsigned)ready(s->channel, PATIENCE_MS) & POLLIN);
	rdma_ack_cm_event(event);
	event = wait_event(s->channel);
	SAY("both taken, one not acknowledged %#x", (unsigned)ready(s->channel, 0) & POLLIN);
	rdma_ack_cm_event(event);
	close_id(two);
	close_id(one);
}

static void destroyed_events_are_not_ready(struct scene *s)
{
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);

	start_one(s, id);
	SAY("one event %#x", (unsigned)ready(s->channel, PATIENCE_MS) & POLLIN);
	DO(rdma_destroy_id(id));
	SAY("its id destroyed %#x", (unsigned)ready(s->channel, 0) & POLLIN);
}

static void nonblocking_get_fails_with_eagain(struct scene *s)
{
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);
	struct rdma_cm_event *event;

	fcntl(s->channel->fd, F_SETFL, fcntl(s->channel->fd, F_GETFL) | O_NONBLOCK);
	DO(rdma_get_cm_event(s->channel, &event));
	start_one(s, id);
	take_event(s);
	DO(rdma_get_cm_event(s->channel, &event));
	fcntl(s->channel->fd, F_SETFL, fcntl(s->channel->fd, F_GETFL) & ~O_NONBLOCK);
	start_one(s, open_id(s, "second", RDMA_PS_TCP));
	DO(rdma_get_cm_event(s->channel, &event));
	show_event(event);
	id = event->id;
	rdma_ack_cm_event(event);
	close_id(id);
}

/* Edge triggered: the number of edges in a wait. */
static int edges(int epoll, int wait_ms)
{
	struct epoll_event seen;

	return epoll_wait(epoll, &seen, 1, wait_ms);
}

static void every_event_is_an_edge(struct scene *s)
{
	struct epoll_event want = { .events = EPOLLIN | EPOLLET };
	struct rdma_cm_id *one = open_id(s, "one", RDMA_PS_TCP);
	struct rdma_cm_id *two = open_id(s, "two", RDMA_PS_TCP);
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	DO(epoll_ctl(epoll, EPOLL_CTL_ADD, s->channel->fd, &want));
	SAY("nothing: %d", edges(epoll, QUIET_MS));
	start_one(s, one);
	SAY("first event: %d", edges(epoll, PATIENCE_MS));
	SAY("no second edge: %d", edges(epoll, QUIET_MS));
	start_one(s, two);
	SAY("second event, first not taken: %d", edges(epoll, PATIENCE_MS));
	take_event(s);
	take_event(s);
	SAY("both taken: %d", edges(epoll, QUIET_MS));
	DO(rdma_resolve_route(one, RESOLVE_MS));
	SAY("third event: %d", edges(epoll, PATIENCE_MS));
	take_event(s);
	close(epoll);
	close_id(two);
	close_id(one);
}

static void on_alarm(int number)
{
	(void)number;
}

struct interrupted {
	pthread_t thread;
	atomic_bool done;
};

/* It is unknown whether the thread waits already, so it gets more than one signal. */
static void *interrupt(void *arg)
{
	struct interrupted *interrupted = arg;

	do {
		pause_ms(QUIET_MS);
		pthread_kill(interrupted->thread, SIGUSR1);
	} while (!atomic_load(&interrupted->done));
	return NULL;
}

static void signals_interrupt_get(struct scene *s)
{
	struct sigaction action = { .sa_handler = on_alarm };
	struct interrupted self = { .thread = pthread_self() };
	struct rdma_cm_event *event;
	pthread_t other;

	sigaction(SIGUSR1, &action, NULL);
	pthread_create(&other, NULL, interrupt, &self);
	DO(rdma_get_cm_event(s->channel, &event));
	atomic_store(&self.done, true);
	pthread_join(other, NULL);
}

static void *get_and_show(void *channel)
{
	struct rdma_cm_event *event;

	if (!DO(rdma_get_cm_event(channel, &event))) {
		show_event(event);
		rdma_ack_cm_event(event);
	}
	return NULL;
}

struct begun {
	pthread_t thread;
	struct scene *scene;
	struct rdma_cm_id *id;
};

/* Signals for a waiting thread, and then its event. */
static void *interrupt_and_start(void *arg)
{
	struct begun *begun = arg;
	int i;

	for (i = 0; i < N_SIGNALS; i++) {
		pause_ms(QUIET_MS);
		pthread_kill(begun->thread, SIGUSR1);
	}
	pause_ms(QUIET_MS);
	start_one(begun->scene, begun->id);
	return NULL;
}

static void get_goes_on_after_signals(struct scene *s)
{
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);
	struct begun self = { .thread = pthread_self(), .scene = s, .id = id };
	pthread_t other;

	sigaction(SIGUSR1, &action, NULL);
	pthread_create(&other, NULL, interrupt_and_start, &self);
	get_and_show(s->channel);
	pthread_join(other, NULL);
	close_id(id);
}

static void blocked_get_wakes_up(struct scene *s)
{
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);
	pthread_t getter;

	pthread_create(&getter, NULL, get_and_show, s->channel);
	pause_ms(QUIET_MS);
	start_one(s, id);
	pthread_join(getter, NULL);
	close_id(id);
}

static void get_is_a_cancellation_point(struct scene *s)
{
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);
	pthread_t getter;
	void *result;

	pthread_create(&getter, NULL, get_and_show, s->channel);
	pause_ms(QUIET_MS);
	pthread_cancel(getter);
	pthread_join(getter, &result);
	SAY("cancelled %d", result == PTHREAD_CANCELED);
	start_one(s, id);
	take_event(s);
	close_id(id);
}

/* As mckey and rping end: with a thread in the channel. */
static void channel_is_destroyed_under_a_blocked_get(struct scene *s)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	pthread_t getter;
	void *result;

	(void)s;
	pthread_create(&getter, NULL, get_and_show, channel);
	pause_ms(QUIET_MS);
	rdma_destroy_event_channel(channel);
	pause_ms(QUIET_MS);
	SAY("returned %d", !pthread_tryjoin_np(getter, &result));
	pthread_cancel(getter);
	pthread_join(getter, &result);
	SAY("cancelled %d", result == PTHREAD_CANCELED);
}

static void channels_keep_their_events_apart(struct scene *s)
{
	struct rdma_event_channel *first = s->channel, *second = rdma_create_event_channel();
	struct rdma_cm_id *one = open_id(s, "one", RDMA_PS_TCP), *two;

	s->channel = second;
	two = open_id(s, "two", RDMA_PS_TCP);
	start_one(s, two);
	take_event(s);
	SAY("first channel %#x", (unsigned)ready(first, QUIET_MS) & POLLIN);
	s->channel = first;
	start_one(s, one);
	take_event(s);
	SAY("second channel %#x", (unsigned)ready(second, QUIET_MS) & POLLIN);
	close_id(one);
	close_id(two);
	rdma_destroy_event_channel(second);
}

const struct scenario event_scenarios[] = {
	LOCAL("events-poll", poll_reports_whether_get_blocks, 0,
	      "readiness before and after events are taken and acknowledged"),
	LOCAL("events-destroyed", destroyed_events_are_not_ready, 0,
	      "events of a destroyed id are gone"),
	LOCAL("events-nonblocking", nonblocking_get_fails_with_eagain, 0,
	      "O_NONBLOCK set and cleared on the descriptor"),
	LOCAL("events-edges", every_event_is_an_edge, 0, "EPOLLET sees each new event"),
	LOCAL("events-signal", signals_interrupt_get, 0, "EINTR"),
	LOCAL("events-signal-restart", get_goes_on_after_signals, 0,
	      "a handler with SA_RESTART, and no EINTR"),
	LOCAL("events-wake", blocked_get_wakes_up, 0, "a thread that waits in rdma_get_cm_event"),
	LOCAL("events-cancel", get_is_a_cancellation_point, 0,
	      "a thread that is cancelled in rdma_get_cm_event"),
	LOCAL("events-destroyed-channel", channel_is_destroyed_under_a_blocked_get, 0,
	      "a channel is destroyed while a thread waits in rdma_get_cm_event"),
	LOCAL("events-channels", channels_keep_their_events_apart, 0,
	      "two channels in one process"),
	LAST_SCENARIO,
};

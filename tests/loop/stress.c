/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that make every call of the API on each other's ids, over the loopback device, for a
 * build with ThreadSanitizer and for helgrind. Some wait on one channel, the hall, and handle all
 * events; the others run scenarios: ids that those handle, ids that are destroyed or moved to
 * another channel while they do, endpoints, datagram services, groups.
 *
 * stress PLAYS SEED: prints how often each ran. Exit status 0 if all ids could be destroyed and no
 * verbs object is left.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "tests/loop/device.h"

#define TCP_PORT   7501
#define UDP_PORT   7502
#define WAITERS	   3
#define PLAYERS	   5 /* eight threads, with the waiters */
#define RESOLVE_MS 2000
#define LOOK_MS	   20
#define PATIENCE   20 /* checks, before a player's own id is given up */
#define ALARM_S	   2800

static struct rdma_event_channel *hall;
static struct fate *to_destroy; /* a list, under the lock */
static pthread_mutex_t to_destroy_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t to_destroy_more = PTHREAD_COND_INITIALIZER;
static atomic_bool is_over;
static atomic_int n_alive; /* ids that a thread of the hall will destroy */
static int n_plays;

/*
 * An id is destroyed by the player that made it, or by the first thread of the hall that handles
 * its end; if another thread is still accepting it, by that one, as no id may be destroyed during a
 * call on it.
 */
struct fate {
	bool is_players;
	bool is_welcomed; /* these two under the lock */
	bool is_sealed;
	struct rdma_cm_id *id;
	struct fate *next;
};

static struct sockaddr_in address_of_shop(uint16_t port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };

	inet_pton(AF_INET, LOOP_ADDR, &at.sin_addr);
	return at;
}

static struct fate *new_fate(bool is_players)
{
	struct fate *fate = calloc(1, sizeof(*fate));

	if (!fate)
		abort();
	fate->is_players = is_players;
	return fate;
}

static void destroy(struct rdma_cm_id *id)
{
	struct fate *fate = id->context;

	if (id->qp)
		rdma_destroy_qp(id);
	if (rdma_destroy_id(id))
		abort();
	free(fate);
}

/* --- in the hall --------------------------------------------------------- */

/* The lock is held. */
static void queue_sealed(struct fate *fate)
{
	fate->next = to_destroy;
	to_destroy = fate;
	pthread_cond_signal(&to_destroy_more);
}

/* The context of a new id is its listener's, a player's, until it is accepted. */
static void seal(struct rdma_cm_id *id)
{
	struct fate *fate;

	pthread_mutex_lock(&to_destroy_lock);
	fate = id->context;
	if (!fate->is_players && !fate->is_sealed) {
		fate->is_sealed = true;
		fate->id = id;
		if (!fate->is_welcomed)
			queue_sealed(fate);
	}
	pthread_mutex_unlock(&to_destroy_lock);
}

/* Return: NULL at the end of the run. */
static struct fate *next_sealed(void)
{
	struct fate *fate;

	pthread_mutex_lock(&to_destroy_lock);
	while (!to_destroy && !atomic_load(&is_over))
		pthread_cond_wait(&to_destroy_more, &to_destroy_lock);
	fate = to_destroy;
	if (fate)
		to_destroy = fate->next;
	pthread_mutex_unlock(&to_destroy_lock);
	return fate;
}

static void *destroy_sealed(void *arg)
{
	struct fate *fate;

	while ((fate = next_sealed())) {
		destroy(fate->id);
		atomic_fetch_sub(&n_alive, 1);
	}
	return arg;
}

static struct rdma_conn_param next_param(void)
{
	static atomic_uint qpn = 0x800;

	return (struct rdma_conn_param){ .retry_count = 7,
					 .rnr_retry_count = 7,
					 .qp_num = atomic_fetch_add(&qpn, 1) & 0xffffff };
}

static struct fate *begin_accepting(struct rdma_cm_id *id)
{
	struct fate *fate = new_fate(false);

	fate->id = id;
	fate->is_welcomed = true;
	pthread_mutex_lock(&to_destroy_lock);
	id->context = fate;
	pthread_mutex_unlock(&to_destroy_lock);
	atomic_fetch_add(&n_alive, 1);
	return fate;
}

static void end_accepting(struct fate *fate, bool is_at_end)
{
	pthread_mutex_lock(&to_destroy_lock);
	fate->is_welcomed = false;
	fate->is_sealed |= is_at_end;
	if (fate->is_sealed)
		queue_sealed(fate);
	pthread_mutex_unlock(&to_destroy_lock);
}

/*
 * Mostly accepted; else rejected, dropped or migrated. Another thread may handle its end meanwhile:
 * the request is charged to the listener, so rdma_destroy_id() does not wait for its
 * acknowledgement.
 */
static void accept_one(struct rdma_cm_id *id, unsigned int *seed)
{
	struct rdma_conn_param param = next_param();
	struct fate *fate = begin_accepting(id);
	bool is_lookup = id->ps == RDMA_PS_UDP;
	int mood = rand_r(seed) % 10;

	if (mood == 0)
		rdma_reject(id, "no", 2);
	if (mood == 1)
		rdma_migrate_id(id, hall);
	end_accepting(fate, mood <= 2 || rdma_accept(id, &param) || is_lookup);
}

static void act_on(struct rdma_cm_event *event, unsigned int *seed)
{
	struct rdma_conn_param param = next_param();
	int ret = 0;

	switch ((int)event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		ret = rdma_resolve_route(event->id, RESOLVE_MS);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		ret = rdma_connect(event->id, &param);
		break;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		accept_one(event->id, seed);
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		rdma_establish(event->id);
		ret = rdma_disconnect(event->id);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		rdma_disconnect(event->id);
		seal(event->id);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (event->id->ps == RDMA_PS_UDP)
			seal(event->id);
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
	case RDMA_CM_EVENT_USER:
		break;
	default:
		seal(event->id);
	}
	if (ret)
		seal(event->id);
}

static bool take_one(struct rdma_event_channel *from, unsigned int *seed)
{
	struct pollfd wait = { .fd = from->fd, .events = POLLIN };
	struct rdma_cm_event *event;

	poll(&wait, 1, LOOK_MS);
	if (rdma_get_cm_event(from, &event))
		return false;
	act_on(event, seed);
	rdma_ack_cm_event(event);
	return true;
}

static void *run_listener(void *arg)
{
	unsigned int seed = (unsigned int)(uintptr_t)arg;

	while (!atomic_load(&is_over))
		take_one(hall, &seed);
	return NULL;
}

/* --- scenarios ----------------------------------------------------------- */

struct player {
	unsigned int seed;
	struct rdma_event_channel *own;
};

static struct rdma_cm_id *begin_connecting(struct rdma_event_channel *channel,
					   enum rdma_port_space ps, uint16_t port, bool is_players)
{
	struct sockaddr_in at = address_of_shop(port);
	struct rdma_cm_id *id;

	if (rdma_create_id(channel, &id, new_fate(is_players), ps))
		abort();
	if (!is_players)
		atomic_fetch_add(&n_alive, 1);
	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)&at, RESOLVE_MS))
		seal(id);
	return id;
}

static void run_to_the_end(struct player *player)
{
	begin_connecting(hall, RDMA_PS_TCP, TCP_PORT, false);
	(void)player;
}

static void look_up_name(struct player *player)
{
	begin_connecting(hall, RDMA_PS_UDP, UDP_PORT, false);
	(void)player;
}

static void destroy_at_random_time(struct player *player)
{
	struct rdma_cm_id *id = begin_connecting(hall, RDMA_PS_TCP, TCP_PORT, true);

	if (rand_r(&player->seed) % 2)
		usleep((useconds_t)rand_r(&player->seed) % 3000);
	destroy(id);
}

static void take_own_events(struct player *player)
{
	int i;

	for (i = 0; i < PATIENCE && take_one(player->own, &player->seed); i++)
		;
}

static void move_at_random_time(struct player *player)
{
	struct rdma_cm_id *id = begin_connecting(hall, RDMA_PS_TCP, TCP_PORT, true);

	if (rand_r(&player->seed) % 2)
		usleep((useconds_t)rand_r(&player->seed) % 1000);
	if (rdma_migrate_id(id, player->own))
		abort();
	take_own_events(player);
	if (rand_r(&player->seed) % 2 && rdma_migrate_id(id, hall))
		abort();
	destroy(id);
}

static void connect_synchronously(struct player *player)
{
	struct ibv_qp_init_attr qp = { .cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	struct rdma_cm_id *id = begin_connecting(player->own, RDMA_PS_TCP, TCP_PORT, true);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	uint8_t tos = 1;
	int mask;

	rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos));
	rdma_write_cm_event(id, RDMA_CM_EVENT_USER, 0, 1);
	take_own_events(player);
	if (id->verbs && !rdma_create_qp(id, NULL, &qp))
		rdma_init_qp_attr(id, &attr, &mask);
	rdma_notify(id, IBV_EVENT_COMM_EST);
	destroy(id);
}

static void connect_as_endpoint(struct player *player)
{
	struct ibv_qp_init_attr qp = { .cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *found;
	struct rdma_cm_id *id;
	char port[8];

	(void)player;
	snprintf(port, sizeof(port), "%d", TCP_PORT);
	if (rdma_getaddrinfo(LOOP_ADDR, port, &hints, &found))
		abort();
	if (!rdma_create_ep(&id, found, NULL, &qp)) {
		if (!rdma_connect(id, NULL))
			rdma_disconnect(id);
		rdma_destroy_ep(id);
	}
	rdma_freeaddrinfo(found);
}

static void join_a_group(struct player *player)
{
	struct sockaddr_in at = address_of_shop(0), group = { .sin_family = AF_INET };
	struct sockaddr *to = (struct sockaddr *)&group;
	struct rdma_cm_id *id;

	inet_pton(AF_INET, "239.70.0.9", &group.sin_addr);
	if (rdma_create_id(player->own, &id, new_fate(true), RDMA_PS_UDP))
		abort();
	if (!rdma_bind_addr(id, (struct sockaddr *)&at) && !rdma_join_multicast(id, to, NULL)) {
		take_one(player->own, &player->seed);
		rdma_leave_multicast(id, to);
	}
	destroy(id);
}

static void open_short_listener(struct player *player)
{
	struct sockaddr_in at = address_of_shop(0);
	struct ibv_context **devices = rdma_get_devices(NULL);
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id;

	if (!devices || !channel || rdma_create_id(channel, &id, new_fate(true), RDMA_PS_TCP))
		abort();
	if (rdma_bind_addr(id, (struct sockaddr *)&at) || rdma_listen(id, 4) ||
	    !rdma_get_src_port(id) || rdma_get_dst_port(id))
		abort();
	rdma_migrate_id(id, player->own);
	destroy(id);
	rdma_destroy_event_channel(channel);
	rdma_free_devices(devices);
}

static const struct {
	const char *name;
	void (*play)(struct player *player);
} plays[] = {
	{ "driven by the hall", run_to_the_end },
	{ "looked up", look_up_name },
	{ "destroyed any time", destroy_at_random_time },
	{ "moved any time", move_at_random_time },
	{ "alone", connect_synchronously },
	{ "an endpoint", connect_as_endpoint },
	{ "in a group", join_a_group },
	{ "a listener", open_short_listener },
};
#define N_PLAYS (sizeof(plays) / sizeof(plays[0]))

static atomic_int n_played[N_PLAYS];

static void *play(void *arg)
{
	struct player player = { .seed = (unsigned int)(uintptr_t)arg,
				 .own = rdma_create_event_channel() };
	unsigned int which;
	int i;

	fcntl(player.own->fd, F_SETFL, O_NONBLOCK);
	for (i = 0; i < n_plays; i++) {
		which = (unsigned int)rand_r(&player.seed) % N_PLAYS;
		plays[which].play(&player);
		atomic_fetch_add(&n_played[which], 1);
	}
	rdma_destroy_event_channel(player.own);
	return NULL;
}

/* --- the run ------------------------------------------------------------- */

static struct rdma_cm_id *open_listener(enum rdma_port_space ps, uint16_t port)
{
	struct sockaddr_in at = address_of_shop(port);
	struct rdma_cm_id *id;

	if (rdma_create_id(hall, &id, new_fate(true), ps) ||
	    rdma_bind_addr(id, (struct sockaddr *)&at) || rdma_listen(id, 0)) {
		perror("listener");
		exit(1);
	}
	return id;
}

/* The last ids of the hall end by themselves, at the latest when their peers time out. */
static bool await_all(void)
{
	int i;

	for (i = 0; i < ALARM_S * 50 && atomic_load(&n_alive); i++)
		usleep(20000);
	return atomic_load(&n_alive) == 0;
}

static int report(void)
{
	int left = loop_n_objects();
	unsigned int i;

	for (i = 0; i < N_PLAYS; i++)
		printf("%d %s, ", atomic_load(&n_played[i]), plays[i].name);
	printf("%d verbs objects left\n", left);
	return left > 1; /* a default protection domain is kept */
}

int main(int argc, char **argv)
{
	pthread_t waiter[WAITERS], player[PLAYERS], destroyer;
	struct rdma_cm_id *tcp, *udp;
	uintptr_t seed = argc > 2 ? strtoul(argv[2], NULL, 0) : 1;
	int i;

	n_plays = argc > 1 ? atoi(argv[1]) : 20;
	alarm(ALARM_S);
	hall = rdma_create_event_channel();
	if (!hall)
		return 1;
	fcntl(hall->fd, F_SETFL, O_NONBLOCK);
	tcp = open_listener(RDMA_PS_TCP, TCP_PORT);
	udp = open_listener(RDMA_PS_UDP, UDP_PORT);
	pthread_create(&destroyer, NULL, destroy_sealed, NULL);
	for (i = 0; i < WAITERS; i++)
		pthread_create(&waiter[i], NULL, run_listener, (void *)(seed * 100 + i));
	for (i = 0; i < PLAYERS; i++)
		pthread_create(&player[i], NULL, play, (void *)(seed * 100 + 50 + i));
	for (i = 0; i < PLAYERS; i++)
		pthread_join(player[i], NULL);
	if (!await_all())
		return 1;
	atomic_store(&is_over, true);
	for (i = 0; i < WAITERS; i++)
		pthread_join(waiter[i], NULL);
	pthread_mutex_lock(&to_destroy_lock);
	pthread_cond_signal(&to_destroy_more);
	pthread_mutex_unlock(&to_destroy_lock);
	pthread_join(destroyer, NULL);
	destroy(tcp);
	destroy(udp);
	rdma_destroy_event_channel(hall);
	return report();
}

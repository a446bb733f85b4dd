/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Users: see user.h.
 */
#include "lib/portd/server/user.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "lib/portd/server/closer.h"
#include "lib/portd/server/state.h"

#define BURST_SHARE   10 /* the burst is one second's rate divided by this */
#define RESTING_LOOK  4	 /* users without clients to check for each new client */
#define CONNECT_PRICE 8	 /* in messages; for its end, see client.c */
#define SAY_AGAIN_NS  (60000 * CM_NS_PER_MS)

int users_init(struct users *users)
{
	list_init(&users->all);
	list_init(&users->resting);
	users->turn = USER_TURN;
	return hash_init(&users->by_uid, USERS_MAX);
}

static struct user *find_user(struct server *server, uid_t uid)
{
	struct user *user;

	hash_for_each_match_entry (user, &server->users.by_uid, hash_bytes(&uid, sizeof(uid)),
				   by_uid)
		if (user->uid == uid)
			return user;
	return NULL;
}

static uint32_t allowed(const struct client *client, enum quota quota)
{
	return quota_of(&client->server->options.quotas, quota);
}

static void refill(const struct server *server, struct user *user)
{
	const uint32_t rate = quota_of(&server->options.quotas, QUOTA_USER_RATE);

	bucket_refill(&user->rate, server->now, rate, (double)rate / BURST_SHARE);
}

/* All programs of a job may start at once. */
static double connects_at_once(const struct server *server)
{
	return USER_CONNECTS_S * (double)quota_of(&server->options.quotas, QUOTA_USER_CONNECTS);
}

static void refill_connects(const struct server *server, struct user *user)
{
	bucket_refill(&user->connects, server->now,
		      quota_of(&server->options.quotas, QUOTA_USER_CONNECTS),
		      connects_at_once(server));
}

void user_init(struct user *user, uid_t uid)
{
	user->uid = uid;
	list_init(&user->link);
	list_init(&user->resting);
	list_init(&user->tables);
	list_init(&user->tells);
	list_init(&user->lanes);
	list_init(&user->sends);
	list_init(&user->held_lanes);
	list_init(&user->holds);
	list_init(&user->hops);
	list_init(&user->waits);
}

static void user_free(struct server *server, struct user *user)
{
	struct users *users = &server->users;

	closer_forget(server->closer, &user->closing);
	closer_forget(server->closer, &user->hanging_up);
	hash_remove(&users->by_uid, &user->by_uid);
	users->numbered[user->number] = NULL;
	users->n--;
	list_remove(&user->link);
	list_remove(&user->resting);
	free(user);
}

static bool has_rested(struct server *server, struct user *user)
{
	const struct quotas *quotas = &server->options.quotas;

	refill(server, user);
	refill_connects(server, user);
	return user->rate.tokens >= (double)quota_of(quotas, QUOTA_USER_RATE) / BURST_SHARE &&
	       user->connects.tokens >= connects_at_once(server);
}

/* What was logged about him is not logged again as long as he is known. */
static bool may_be_forgotten(struct server *server, struct user *user)
{
	return !user->was_refused && !user->has_lied && has_rested(server, user);
}

/* A few are checked for each new client, so there are never many to check. */
static void forget_rested(struct server *server, bool is_full)
{
	struct users *users = &server->users;
	struct user *user;
	unsigned int i;

	for (i = 0; i < RESTING_LOOK && !list_is_empty(&users->resting); i++) {
		user = container_of(users->resting.next, struct user, resting);
		list_remove(&user->resting);
		list_append(&users->resting, &user->resting);
		if (!tracker_dead_of(server->tracker, user->number) && !user->n_leaving &&
		    !closer_count(user->closing) && !closer_count(user->hanging_up) &&
		    (is_full || may_be_forgotten(server, user)))
			user_free(server, user);
	}
}

/* One place is reserved for root. */
static bool has_room(const struct users *users, uid_t uid)
{
	return users->n < (uid ? USERS_MAX - 2 : USERS_MAX - 1); /* no number is 0 */
}

static struct user *user_new(struct server *server, uid_t uid)
{
	struct users *users = &server->users;
	struct user *user;

	if (!has_room(users, uid))
		forget_rested(server, true);
	user = has_room(users, uid) ? calloc(1, sizeof(*user)) : NULL;
	if (!user)
		return NULL;
	user_init(user, uid);
	do
		users->last = (uint16_t)(users->last % (USERS_MAX - 1) + 1);
	while (users->numbered[users->last]);
	user->number = users->last;
	users->numbered[user->number] = user;
	users->n++;
	list_append(&users->all, &user->link);
	hash_insert(&users->by_uid, &user->by_uid, hash_bytes(&uid, sizeof(uid)));
	refill(server, user);
	refill_connects(server, user);
	return user;
}

bool user_enter(struct server *server, struct client *client, uid_t uid)
{
	struct user *user;

	forget_rested(server, false);
	user = find_user(server, uid);
	if (!user)
		user = user_new(server, uid);
	if (!user)
		return false;
	list_remove(&user->resting);
	client->user = user;
	user->n_clients++;
	user->connects.tokens--;
	user_spend(client, CONNECT_PRICE);
	return true;
}

void user_leave(struct client *client)
{
	struct user *user = client->user;

	user->n_blocks -= client->n_blocks;
	client->server->users.n_blocks -= client->n_blocks;
	if (--user->n_clients == 0)
		list_append(&client->server->users.resting, &user->resting);
	client->user = NULL;
}

void user_discard(struct server *server, struct user *user, int fd)
{
	if (!user)
		user = &server->nobody;
	if (fd >= 0 && (!server->closer || !closer_put(server->closer, &user->closing, fd)))
		close(fd);
}

void user_hang_up(struct server *server, struct user *user, int socket)
{
	if (!user)
		user = &server->nobody;
	if (!server->closer || closer_is_empty(socket) ||
	    !closer_put(server->closer, &user->hanging_up, socket))
		close(socket);
}

void users_fini(struct server *server)
{
	struct user *user;

	list_for_each_entry_safe (user, &server->users.all, link)
		user_free(server, user);
	closer_forget(server->closer, &server->nobody.closing);
	closer_forget(server->closer, &server->nobody.hanging_up);
	hash_fini(&server->users.by_uid);
}

/* --- quotas --------------------------------------------------------------- */

static uint32_t all_have(const struct server *server, enum quota quota)
{
	switch ((int)quota) {
	case QUOTA_USER_CLIENTS:
		return server->n_clients + ROOT_CLIENTS;
	case QUOTA_USER_PORTS:
		return server->users.n_ports;
	case QUOTA_USER_IDS:
		return server->users.n_blocks;
	case QUOTA_USER_TRACKED:
		return tracker_count_all(server->tracker);
	case QUOTA_USER_DEAD:
		return tracker_count_dead(server->tracker);
	case QUOTA_USER_QUEUED:
		return server->users.n_queued;
	case QUOTA_USER_UNSENT:
		return server->users.n_requests;
	case QUOTA_USER_SA:
		return server->users.n_asks;
	}
	return 0; /* nothing that all have in common */
}

static uint32_t all_may_have(const struct server *server, enum quota quota)
{
	const uint32_t most = quota_of_all(&server->options.quotas, quota);

	return quota == QUOTA_USER_CLIENTS && most > CLIENTS_MAX ? CLIENTS_MAX : most;
}

/* Those who come back after a restart had their shares before. */
static bool leaves_share(const struct server *server, enum quota quota, uint32_t has)
{
	return server->grace_until.ns ||
	       quota_leaves_share(&server->options.quotas, quota, has, all_have(server, quota),
				  all_may_have(server, quota));
}

static void explain(const struct server *server, uid_t uid, enum quota quota, uint32_t has,
		    char ret[USER_WHY_BYTES])
{
	const struct quotas *quotas = &server->options.quotas;

	if (has >= quota_of(quotas, quota))
		snprintf(ret, USER_WHY_BYTES,
			 "uid %u has enough: %s are limited to %u; cmportd --quota=%s=NUMBER "
			 "allows more",
			 (unsigned int)uid, quota_unit(quota), quota_of(quotas, quota),
			 quota_name(quota));
	else
		snprintf(
			ret, USER_WHY_BYTES,
			"uid %u has %u and all users have %u of %u (%s): the rest is for users who "
			"have less; cmportd --quota=%s=NUMBER allows more",
			(unsigned int)uid, has, all_have(server, quota),
			all_may_have(server, quota), quota_unit(quota), quota_name(quota));
}

static void say_once(const struct server *server, struct user *user, enum quota quota, uint32_t has)
{
	char why[USER_WHY_BYTES];

	if (user->was_refused >> quota & 1)
		return;
	user->was_refused |= UINT32_C(1) << quota;
	if (has < quota_of(&server->options.quotas, quota)) {
		explain(server, user->uid, quota, has, why);
		log_warn("%s", why);
		return;
	}
	log_warn("uid %u has reached its quota %s=%u (%s); others are not affected",
		 (unsigned int)user->uid, quota_name(quota),
		 quota_of(&server->options.quotas, quota), quota_unit(quota));
}

bool user_has_room(const struct client *client, enum quota quota, uint32_t has)
{
	return client->user->uid == 0 ||
	       (has < allowed(client, quota) && leaves_share(client->server, quota, has));
}

bool user_may(struct client *client, enum quota quota, uint32_t has)
{
	if (user_has_room(client, quota, has))
		return true;
	say_once(client->server, client->user, quota, has);
	return false;
}

void user_why(const struct client *client, enum quota quota, uint32_t has, char ret[USER_WHY_BYTES])
{
	explain(client->server, client->uid, quota, has, ret);
}

/* --- connects ------------------------------------------------------------- */

static int check_connects(struct server *server, struct user *user, char *ret_why)
{
	const uint32_t rate = quota_of(&server->options.quotas, QUOTA_USER_CONNECTS);

	refill_connects(server, user);
	if (user->connects.tokens >= 1)
		return 0;
	snprintf(ret_why, USER_WHY_BYTES,
		 "uid %u connects to cmportd too often: %s are limited to %u; cmportd --quota=%s="
		 "NUMBER allows more",
		 (unsigned int)user->uid, quota_unit(QUOTA_USER_CONNECTS), rate,
		 quota_name(QUOTA_USER_CONNECTS));
	say_once(server, user, QUOTA_USER_CONNECTS, rate);
	return -EAGAIN;
}

void user_turned_away(struct server *server, struct user *user, uid_t uid, const char *why)
{
	if (!user)
		user = &server->nobody;
	user->n_turned_away++;
	if (user->turned_at.ns &&
	    !cm_time_reached(cm_time_after(user->turned_at, SAY_AGAIN_NS), server->now))
		return;
	log_warn("uid %u cannot connect: %s (%u connects since that was last said)",
		 (unsigned int)uid, why, user->n_turned_away);
	user->n_turned_away = 0;
	user->turned_at = server->now;
}

int user_may_connect(struct server *server, uid_t uid, struct user **ret_user, char *ret_why)
{
	struct user *user = find_user(server, uid);
	const uint32_t n_clients = user ? user->n_clients : 0;
	int err;

	*ret_user = user;
	if (!uid)
		return 0;
	err = user ? check_connects(server, user, ret_why) : 0;
	if (err)
		return err;
	if (n_clients < quota_of(&server->options.quotas, QUOTA_USER_CLIENTS) &&
	    leaves_share(server, QUOTA_USER_CLIENTS, n_clients))
		return 0;
	explain(server, uid, QUOTA_USER_CLIENTS, n_clients, ret_why);
	if (user)
		say_once(server, user, QUOTA_USER_CLIENTS, n_clients);
	else
		user_turned_away(server, NULL, uid, ret_why);
	return -EDQUOT;
}

/* --- what is left, and what is spent --------------------------------------- */

uint32_t user_room(const struct client *client, enum quota quota, uint32_t has)
{
	const uint32_t most = allowed(client, quota);

	if (client->user->uid == 0)
		return UINT32_MAX;
	return has < most ? most - has : 0;
}

bool user_may_track(struct client *client)
{
	return tracker_count(client->server->tracker, client->index) <
		       allowed(client, QUOTA_CLIENT_TRACKED) &&
	       user_may(client, QUOTA_USER_TRACKED, client->user->n_tracked);
}

void user_spend(struct client *client, double tokens)
{
	struct users *users = &client->server->users;
	struct user *user = client->user;
	bool had_turn;

	client->rate.tokens -= tokens;
	if (user->uid)
		user->rate.tokens -= tokens;
	if (user->turn_no != client->server->turn_no)
		user->turn = 0;
	user->turn_no = client->server->turn_no;
	had_turn = user->turn < users->turn;
	user->turn += tokens;
	users->n_at_turn += had_turn && user->turn >= users->turn;
}

void user_spend_looks(struct client *client, uint64_t n_looked_at)
{
	const uint64_t n = ports_n_looked_at(client->net_ns->ports) - n_looked_at;

	if (n)
		user_spend(client, LOOK_PRICE * (double)n);
}

bool user_has_turn(const struct client *client)
{
	const struct user *user = client->user;

	return user->turn_no != client->server->turn_no || user->turn < client->server->users.turn;
}

void users_next_turn(struct users *users)
{
	users->turn = (double)USER_TURN / (users->n_at_turn ? users->n_at_turn : 1);
	if (users->turn < USER_TURN_LEAST)
		users->turn = USER_TURN_LEAST;
	users->n_at_turn = 0;
}

void user_refill(struct client *client)
{
	const uint32_t rate = allowed(client, QUOTA_CLIENT_RATE);

	bucket_refill(&client->rate, client->server->now, rate, (double)rate / BURST_SHARE);
	refill(client->server, client->user);
}

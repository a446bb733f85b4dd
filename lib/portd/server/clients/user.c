/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Users: see user.h.
 */
#include "lib/portd/server/clients/user.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "lib/portd/server/clients/closer.h"
#include "lib/portd/server/ledger/tracked.h"
#include "lib/portd/server/server_state.h"

#define RESTING_LOOK 4 /* users without clients to check for each new client */

int users_init(struct users *users)
{
	list_init(&users->all);
	list_init(&users->resting);
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

static bool has_rate(const struct server *server, struct user *user)
{
	const uint32_t rate = quota_of(&server->options.quotas, QUOTA_USER_RATE);

	return bucket_has(&user->rate, rate, rate, server->now);
}

static bool has_connects(const struct server *server, struct user *user)
{
	return bucket_has(&user->connects, CONNECTS_S, CONNECTS_MAX, server->now);
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
	return has_rate(server, user) && has_connects(server, user) && user->rate.taken <= 0 &&
	       user->connects.taken <= 0;
}

/* What was logged about a user is not logged again as long as the user is known. */
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
	return user;
}

bool user_enter(struct server *server, struct client *client, uid_t uid)
{
	struct user *user;

	user = find_user(server, uid);
	if (!user)
		user = user_new(server, uid);
	if (!user)
		return false;
	list_remove(&user->resting);
	forget_rested(server, false);
	client->user = user;
	user->n_clients++;
	bucket_take(&user->connects, CONNECTS_S, CONNECTS_MAX, server->now);
	return true;
}

void user_leave(struct client *client)
{
	struct user *user = client->user;

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

uint32_t user_has(const struct server *server, const struct user *user, enum quota quota)
{
	switch ((int)quota) {
	case QUOTA_USER_CLIENTS:
		return user->n_clients;
	case QUOTA_USER_PORTS:
		return user->n_ports;
	case QUOTA_USER_CONNS:
		return user->n_tracked + tracker_dead_of(server->tracker, user->number);
	case QUOTA_USER_QUEUED:
		return user->n_queued;
	case QUOTA_USER_UNSENT:
		return user->n_requests;
	}
	return PORTD_QUOTA_EACH;
}

static void explain(const struct server *server, uid_t uid, enum quota quota,
		    char ret[USER_WHY_BYTES])
{
	snprintf(ret, USER_WHY_BYTES,
		 "uid %u has enough: %s are limited to %u; cmportd --quota=%s=NUMBER allows more",
		 (unsigned int)uid, quota_unit(quota), quota_of(&server->options.quotas, quota),
		 quota_name(quota));
}

static void say_once(const struct server *server, struct user *user, enum quota quota)
{
	if (user->was_refused >> quota & 1)
		return;
	user->was_refused |= UINT32_C(1) << quota;
	log_warn("uid %u has reached its quota %s=%u (%s); others are not affected",
		 (unsigned int)user->uid, quota_name(quota),
		 quota_of(&server->options.quotas, quota), quota_unit(quota));
}

uint32_t user_room(const struct client *client, enum quota quota)
{
	uint32_t most, has;

	if (client->user->uid == 0)
		return UINT32_MAX;
	most = quota_of(&client->server->options.quotas, quota);
	has = user_has(client->server, client->user, quota);
	return has < most ? most - has : 0;
}

bool user_may(struct client *client, enum quota quota)
{
	if (user_room(client, quota))
		return true;
	say_once(client->server, client->user, quota);
	return false;
}

void user_why(const struct client *client, enum quota quota, char ret[USER_WHY_BYTES])
{
	explain(client->server, client->uid, quota, ret);
}

void user_turned_away(struct server *server, struct user *user, uid_t uid, const char *why)
{
	if (!user)
		user = &server->nobody;
	user->n_turned_away++;
	if (!server_says_again(server, user->turned_at))
		return;
	log_warn("uid %u cannot connect: %s (%u connects since that was last said)",
		 (unsigned int)uid, why, user->n_turned_away);
	user->n_turned_away = 0;
	user->turned_at = server->now;
}

int user_may_connect(struct server *server, uid_t uid, struct user **ret_user, char *ret_why)
{
	struct user *user = find_user(server, uid);

	*ret_user = user;
	if (uid && server->n_clients >= CLIENTS_MAX - ROOT_CLIENTS) {
		snprintf(ret_why, USER_WHY_BYTES, "no room for another client: %u are here",
			 server->n_clients);
		user_turned_away(server, user, uid, ret_why);
		return -EAGAIN;
	}
	if (!uid || !user)
		return 0;
	if (!has_connects(server, user)) {
		snprintf(ret_why, USER_WHY_BYTES,
			 "uid %u has enough: its connections to cmportd are limited to %u a second",
			 (unsigned int)uid, CONNECTS_S);
		return -EAGAIN;
	}
	if (user->n_clients < quota_of(&server->options.quotas, QUOTA_USER_CLIENTS))
		return 0;
	explain(server, uid, QUOTA_USER_CLIENTS, ret_why);
	say_once(server, user, QUOTA_USER_CLIENTS);
	return -EDQUOT;
}

/* --- what is spent --------------------------------------------------------- */

static struct user *user_in_turn(const struct client *client)
{
	struct user *user = client->user;

	if (user->turn_no != client->server->turn_no)
		user->turn = 0;
	user->turn_no = client->server->turn_no;
	return user;
}

void user_spend(struct client *client)
{
	struct user *user = user_in_turn(client);

	if (user->uid)
		user->rate.taken++;
	user->turn++;
}

void user_end_turn(struct client *client)
{
	user_in_turn(client)->turn += USER_TURN;
}

bool user_has_turn(const struct client *client)
{
	const struct user *user = client->user;

	return user->turn_no != client->server->turn_no || user->turn < USER_TURN;
}

bool user_has_rate(const struct client *client)
{
	return has_rate(client->server, client->user);
}

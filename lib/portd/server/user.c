/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Users: see user.h.
 */
#include "lib/portd/server/user.h"

#include <stdlib.h>

#include "base/log.h"
#include "lib/portd/server/state.h"

#define BURST_SHARE 10 /* the burst is one such part of what a second allows */

static struct user *find(struct server *server, uid_t uid)
{
	struct user *user;

	list_for_each_entry (user, &server->users, link)
		if (user->uid == uid)
			return user;
	return NULL;
}

static bool has_number(const struct server *server, uint16_t number)
{
	struct user *user;

	list_for_each_entry (user, &server->users, link)
		if (user->number == number)
			return true;
	return number == 0;
}

static uint32_t allowed(const struct client *client, enum quota quota)
{
	return quota_of(&client->server->options.quotas, quota);
}

static double refilled(double tokens, struct cm_time since, struct cm_time now, uint32_t rate,
		       double full)
{
	tokens += (double)(now.ns - since.ns) * rate / 1e9;
	return tokens < full ? tokens : full;
}

static void refill(struct server *server, struct user *user)
{
	const uint32_t rate = quota_of(&server->options.quotas, QUOTA_USER_RATE);

	user->tokens = refilled(user->tokens, user->tokens_at, server->now, rate,
				(double)rate / BURST_SHARE);
	user->tokens_at = server->now;
}

/* All programs of a job may start at once, so the burst is one second's rate. */
static void refill_connects(struct server *server, struct user *user)
{
	const uint32_t rate = quota_of(&server->options.quotas, QUOTA_USER_CONNECTS);

	user->connects = refilled(user->connects, user->connects_at, server->now, rate, rate);
	user->connects_at = server->now;
}

void user_init(struct user *user, uid_t uid)
{
	user->uid = uid;
	list_init(&user->link);
	list_init(&user->requests);
	list_init(&user->sends);
	list_init(&user->hops);
	list_init(&user->waits);
}

static void user_free(struct user *user)
{
	list_remove(&user->link);
	free(user);
}

static void forget_rested(struct server *server)
{
	const struct quotas *quotas = &server->options.quotas;
	struct user *user;

	list_for_each_entry_safe (user, &server->users, link) {
		refill(server, user);
		refill_connects(server, user);
		if (!user->n_clients &&
		    user->tokens >= (double)quota_of(quotas, QUOTA_USER_RATE) / BURST_SHARE &&
		    user->connects >= quota_of(quotas, QUOTA_USER_CONNECTS) &&
		    !tracker_dead_of(server->tracker, user->number))
			user_free(user);
	}
}

bool user_enter(struct server *server, struct client *client, uid_t uid)
{
	struct user *user;

	forget_rested(server);
	user = find(server, uid);
	if (!user) {
		user = calloc(1, sizeof(*user));
		if (!user)
			return false;
		user_init(user, uid);
		while (has_number(server, ++server->last_user))
			;
		user->number = server->last_user;
		list_append(&server->users, &user->link);
		user->tokens = (double)allowed(client, QUOTA_USER_RATE) / BURST_SHARE;
		user->connects = allowed(client, QUOTA_USER_CONNECTS);
		user->tokens_at = user->connects_at = server->now;
	}
	client->user = user;
	user->n_clients++;
	user->connects--;
	return true;
}

void user_leave(struct client *client)
{
	client->user->n_clients--;
	client->user->n_blocks -= client->n_blocks;
	client->user = NULL;
}

void user_forget_all(struct server *server)
{
	struct user *user;

	list_for_each_entry_safe (user, &server->users, link)
		user_free(user);
}

static void say_once(const struct server *server, struct user *user, enum quota quota)
{
	if (!(user->was_refused >> quota & 1))
		log_warn("uid %u has reached its quota %s=%u (%s); others are not affected",
			 (unsigned int)user->uid, quota_name(quota),
			 quota_of(&server->options.quotas, quota), quota_unit(quota));
	user->was_refused |= UINT32_C(1) << quota;
}

bool user_may_connect(struct server *server, uid_t uid)
{
	struct user *user = uid ? find(server, uid) : NULL;

	if (!user)
		return true;
	refill_connects(server, user);
	if (user->connects >= 1)
		return true;
	say_once(server, user, QUOTA_USER_CONNECTS);
	return false;
}

bool user_may(struct client *client, enum quota quota, uint32_t has)
{
	if (client->user->uid == 0 || has < allowed(client, quota))
		return true;
	say_once(client->server, client->user, quota);
	return false;
}

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
	struct user *user = client->user;

	client->tokens -= tokens;
	if (user->uid)
		user->tokens -= tokens;
	if (user->turn_no != client->server->turn_no)
		user->turn = 0;
	user->turn_no = client->server->turn_no;
	user->turn += tokens;
}

bool user_has_turn(const struct client *client)
{
	const struct user *user = client->user;

	return user->turn_no != client->server->turn_no || user->turn < USER_TURN;
}

void user_refill(struct client *client)
{
	const struct cm_time now = client->server->now;

	client->tokens = refilled(client->tokens, client->tokens_at, now,
				  allowed(client, QUOTA_CLIENT_RATE),
				  (double)allowed(client, QUOTA_CLIENT_RATE) / BURST_SHARE);
	client->tokens_at = now;
	refill(client->server, client->user);
}

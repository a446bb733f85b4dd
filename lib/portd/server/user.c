/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Users: see user.h.
 */
#include "lib/portd/server/user.h"

#include <stdlib.h>

#include "base/log.h"
#include "lib/portd/server/ports.h"
#include "lib/portd/server/state.h"

#define BURST_SHARE 10 /* of what a second allows, that much at once */

static struct user *find(struct server *server, uid_t uid)
{
	struct user *user;
	struct list *node;

	list_for_each (node, &server->users) {
		user = container_of(node, struct user, link);
		if (user->uid == uid)
			return user;
	}
	return NULL;
}

static uint32_t allowed(const struct client *client, enum quota quota)
{
	return quota_of(&client->server->options.quotas, quota);
}

bool user_enter(struct server *server, struct client *client, uid_t uid)
{
	struct user *user = find(server, uid);

	if (!user) {
		user = calloc(1, sizeof(*user));
		if (!user)
			return false;
		user->uid = uid;
		list_init(&user->link);
		list_init(&user->clients);
		list_append(&server->users, &user->link);
		user->tokens = (double)allowed(client, QUOTA_USER_RATE) / BURST_SHARE;
		user->tokens_at = server->now;
	}
	client->user = user;
	list_append(&user->clients, &client->of_user);
	user->n_clients++;
	return true;
}

void user_leave(struct client *client)
{
	struct user *user = client->user;

	list_remove(&client->of_user);
	client->user = NULL;
	if (--user->n_clients)
		return;
	list_remove(&user->link);
	free(user);
}

bool user_may(struct client *client, enum quota quota, uint32_t has)
{
	struct user *user = client->user;

	if (user->uid == 0 || has < allowed(client, quota))
		return true;
	if (!(user->was_refused >> quota & 1))
		log_warn("uid %u has reached its quota %s=%u (%s); others are not affected",
			 (unsigned int)user->uid, quota_name(quota), allowed(client, quota),
			 quota_unit(quota));
	user->was_refused |= UINT32_C(1) << quota;
	return false;
}

uint32_t user_has(const struct client *client, enum quota quota)
{
	const struct client *each;
	struct list *node;
	uint32_t n = 0;

	list_for_each (node, &client->user->clients) {
		each = container_of(node, struct client, of_user);
		if (quota == QUOTA_USER_PORTS)
			n += ports_count(each->net_ns->ports, each->index);
		else
			n += quota == QUOTA_USER_IDS ? each->n_blocks : each->n_asks;
	}
	return n;
}

void user_spend(struct client *client, double tokens)
{
	client->tokens -= tokens;
	if (client->user->uid)
		client->user->tokens -= tokens;
}

static double refilled(double tokens, struct cm_time since, struct cm_time now, uint32_t rate)
{
	const double full = (double)rate / BURST_SHARE;

	tokens += (double)(now.ns - since.ns) * rate / 1e9;
	return tokens < full ? tokens : full;
}

void user_refill(struct client *client)
{
	const struct cm_time now = client->server->now;
	struct user *user = client->user;

	client->tokens = refilled(client->tokens, client->tokens_at, now,
				  allowed(client, QUOTA_CLIENT_RATE));
	client->tokens_at = now;
	user->tokens =
		refilled(user->tokens, user->tokens_at, now, allowed(client, QUOTA_USER_RATE));
	user->tokens_at = now;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Realms: see realm.h.
 */
#include "lib/portd/server/realm.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static struct realm *realm_new(uint64_t cookie, uint64_t seed)
{
	struct realm *realm = calloc(1, sizeof(*realm));
	struct port_limits limits;

	if (!realm)
		return NULL;
	port_limits_read(&limits);
	realm->ports = ports_new(&limits, seed);
	if (!realm->ports) {
		free(realm);
		return NULL;
	}
	list_init(&realm->link);
	realm->cookie = cookie;
	realm->seed = seed;
	return realm;
}

static void realm_free(struct realm *realm)
{
	list_remove(&realm->link);
	ports_free(realm->ports);
	free(realm);
}

/* Kernels before 5.14 do not say. */
static uint64_t cookie_of(int fd)
{
	socklen_t bytes = sizeof(uint64_t);
	uint64_t cookie = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &bytes))
		return 0;
	return cookie;
}

struct realm *realm_home(uint64_t seed)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	uint64_t cookie = 0;

	if (fd >= 0) {
		cookie = cookie_of(fd);
		close(fd);
	}
	return realm_new(cookie, seed);
}

void realm_home_free(struct realm *home)
{
	struct list *node, *after;

	if (!home)
		return;
	list_for_each_safe (node, after, &home->link)
		realm_free(container_of(node, struct realm, link));
	realm_free(home);
}

static struct realm *find(struct realm *home, uint64_t cookie)
{
	struct realm *realm;
	struct list *node;

	if (!home->cookie || !cookie || cookie == home->cookie)
		return home;
	list_for_each (node, &home->link) {
		realm = container_of(node, struct realm, link);
		if (realm->cookie == cookie)
			return realm;
	}
	return NULL;
}

struct realm *realm_enter(struct realm *home, int fd)
{
	uint64_t cookie = cookie_of(fd);
	struct realm *realm = find(home, cookie);

	if (!realm) {
		realm = realm_new(cookie, home->seed);
		if (!realm)
			return NULL;
		list_append(&home->link, &realm->link);
	}
	realm->n_clients++;
	return realm;
}

bool realm_made(const struct realm *realm, int fd)
{
	return realm->cookie && cookie_of(fd) == realm->cookie;
}

void realm_leave(struct realm *home, struct realm *realm)
{
	if (--realm->n_clients == 0 && realm != home)
		realm_free(realm);
}

uint16_t realm_listener(struct realm *home, uint64_t service_id, const uint8_t *data)
{
	uint16_t to = ports_listener(home->ports, service_id, data);
	struct list *node = home->link.next;

	for (; to == PORTS_NOBODY && node != &home->link; node = node->next)
		if (ports_listener(container_of(node, struct realm, link)->ports, service_id,
				   data) != PORTS_NOBODY)
			to = PORTS_NOT_FOR_THEM;
	return to;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Network namespaces: see net_ns.h.
 */
#include "lib/portd/server/net_ns.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static struct net_ns *net_ns_new(uint64_t cookie, uint64_t seed)
{
	struct net_ns *net_ns = calloc(1, sizeof(*net_ns));
	struct port_limits limits;

	if (!net_ns)
		return NULL;
	port_limits_read(&limits);
	net_ns->ports = ports_new(&limits, seed);
	if (!net_ns->ports) {
		free(net_ns);
		return NULL;
	}
	list_init(&net_ns->link);
	net_ns->cookie = cookie;
	net_ns->seed = seed;
	return net_ns;
}

static void net_ns_free(struct net_ns *net_ns)
{
	list_remove(&net_ns->link);
	ports_free(net_ns->ports);
	free(net_ns);
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

struct net_ns *net_ns_home(uint64_t seed)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	uint64_t cookie = 0;

	if (fd >= 0) {
		cookie = cookie_of(fd);
		close(fd);
	}
	return net_ns_new(cookie, seed);
}

void net_ns_home_free(struct net_ns *home)
{
	struct list *node, *after;

	if (!home)
		return;
	list_for_each_safe (node, after, &home->link)
		net_ns_free(container_of(node, struct net_ns, link));
	net_ns_free(home);
}

static struct net_ns *find(struct net_ns *home, uint64_t cookie)
{
	struct net_ns *net_ns;
	struct list *node;

	if (!home->cookie || !cookie || cookie == home->cookie)
		return home;
	list_for_each (node, &home->link) {
		net_ns = container_of(node, struct net_ns, link);
		if (net_ns->cookie == cookie)
			return net_ns;
	}
	return NULL;
}

struct net_ns *net_ns_enter(struct net_ns *home, int fd)
{
	uint64_t cookie = cookie_of(fd);
	struct net_ns *net_ns = find(home, cookie);

	if (!net_ns) {
		net_ns = net_ns_new(cookie, home->seed);
		if (!net_ns)
			return NULL;
		list_append(&home->link, &net_ns->link);
	}
	net_ns->n_clients++;
	return net_ns;
}

bool net_ns_made(const struct net_ns *net_ns, int fd)
{
	return net_ns->cookie && cookie_of(fd) == net_ns->cookie;
}

void net_ns_leave(struct net_ns *home, struct net_ns *net_ns)
{
	if (--net_ns->n_clients == 0 && net_ns != home)
		net_ns_free(net_ns);
}

uint16_t net_ns_listener(struct net_ns *home, uint64_t service_id, const uint8_t *data)
{
	uint16_t to = ports_listener(home->ports, service_id, data);
	struct list *node = home->link.next;

	for (; to == PORTS_NOBODY && node != &home->link; node = node->next)
		if (ports_listener(container_of(node, struct net_ns, link)->ports, service_id,
				   data) != PORTS_NOBODY)
			to = PORTS_NOT_FOR_THEM;
	return to;
}

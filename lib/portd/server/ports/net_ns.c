/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Network namespaces: see net_ns.h.
 */
#include "lib/portd/server/ports/net_ns.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "lib/net/hop.h"

#define NAMESPACES_FIRST 16

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
	list_init(&net_ns->of_shown);
	list_init(&net_ns->shown);
	net_ns->cookie = cookie;
	net_ns->seed = seed;
	net_ns->netlink_fd = -1;
	return net_ns;
}

static void net_ns_free(struct net_ns *net_ns)
{
	list_remove(&net_ns->link);
	list_remove(&net_ns->of_shown);
	hash_fini(&net_ns->namespaces);
	ports_free(net_ns->ports);
	fd_close(&net_ns->netlink_fd);
	free(net_ns);
}

/* Kernels before 5.14 lack the option. */
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
	struct net_ns *home;
	uint64_t cookie = 0;

	if (fd >= 0) {
		cookie = cookie_of(fd);
		close(fd);
	}
	home = net_ns_new(cookie, seed);
	if (home && hash_init(&home->namespaces, NAMESPACES_FIRST)) {
		net_ns_free(home);
		return NULL;
	}
	return home;
}

void net_ns_home_free(struct net_ns *home)
{
	struct net_ns *net_ns;

	if (!home)
		return;
	list_for_each_entry_safe (net_ns, &home->link, link)
		net_ns_free(net_ns);
	net_ns_free(home);
}

static uint64_t hash_of(uint64_t cookie)
{
	return hash_bytes(&cookie, sizeof(cookie));
}

static struct net_ns *find_net_ns(struct net_ns *home, uint64_t cookie)
{
	struct net_ns *net_ns;

	if (!home->cookie || !cookie || cookie == home->cookie)
		return home;
	hash_for_each_match_entry (net_ns, &home->namespaces, hash_of(cookie), by_cookie)
		if (net_ns->cookie == cookie)
			return net_ns;
	return NULL;
}

static struct net_ns *add_net_ns(struct net_ns *home, uint64_t cookie)
{
	struct net_ns *net_ns;

	if (hash_reserve(&home->namespaces, home->namespaces.n_nodes + 1))
		return NULL;
	net_ns = net_ns_new(cookie, home->seed);
	if (!net_ns)
		return NULL;
	list_append(&home->link, &net_ns->link);
	hash_insert(&home->namespaces, &net_ns->by_cookie, hash_of(cookie));
	return net_ns;
}

struct net_ns *net_ns_enter(struct net_ns *home, int fd)
{
	uint64_t cookie = cookie_of(fd);
	struct net_ns *net_ns = find_net_ns(home, cookie);

	if (!net_ns)
		net_ns = add_net_ns(home, cookie);
	if (net_ns)
		net_ns->n_clients++;
	return net_ns;
}

bool net_ns_made(const struct net_ns *net_ns, int fd)
{
	return net_ns->cookie && cookie_of(fd) == net_ns->cookie;
}

void net_ns_leave(struct net_ns *home, struct net_ns *net_ns)
{
	if (--net_ns->n_clients || net_ns == home)
		return;
	hash_remove(&home->namespaces, &net_ns->by_cookie);
	net_ns_free(net_ns);
}

/* --- GIDs of other namespaces --------------------------------------------- */

#define READ_AGAIN_NS (250 * CM_NS_PER_MS)
#define READ_SMALL    8	 /* datagrams of a namespace with few interfaces */
#define READ_TURN     32 /* datagrams, then others wait for the next request */

/*
 * The search for a GID that no namespace has visits all of them. A user may have as many namespaces
 * as remain free, and no more.
 */
static bool may_show(const struct net_ns *home, uid_t uid)
{
	const struct net_ns *net_ns;
	unsigned int n = 0, n_all = 0;

	list_for_each_entry (net_ns, &home->shown, of_shown) {
		n += net_ns->shown_by == uid;
		n_all++;
	}
	return uid == 0 || (n < NET_NS_SHOWN_MAX && n + n_all < NET_NS_SHOWN_ALL);
}

bool net_ns_show(struct net_ns *home, struct net_ns *net_ns, int fd, uid_t uid)
{
	bool is_ours = net_ns != home && net_ns->netlink_fd < 0 && net_foreign_is_socket(fd) &&
		       net_ns_made(net_ns, fd) && may_show(home, uid);

	if (!is_ours)
		return false;
	net_ns->netlink_fd = fd;
	net_ns->shown_by = uid;
	list_prepend(&home->shown, &net_ns->of_shown);
	home->has_news = true;
	return true;
}

static bool has_gid(const struct net_ns *net_ns, const struct mad_gid *gid, unsigned int ifindex)
{
	unsigned int i;

	for (i = 0; i < net_ns->n_gids; i++)
		if (net_ns->gid[i].ifindex == ifindex &&
		    !memcmp(&net_ns->gid[i].gid, gid, sizeof(*gid)))
			return true;
	return false;
}

static bool is_due(const struct net_ns *net_ns, struct cm_time now)
{
	return cm_time_reached(net_ns->due_at, now);
}

/* Users can make thousands of interfaces. What takes long is done rarely. Return: its price. */
static unsigned int read_gids(struct net_ns *net_ns, struct cm_time now)
{
	unsigned int n_datagrams;
	int n = net_foreign_read(net_ns->netlink_fd, net_ns->gid, NET_NS_GIDS, &n_datagrams);

	net_ns->n_gids = n > 0 ? (unsigned int)n : 0;
	net_ns->due_at =
		cm_time_after(now, READ_AGAIN_NS * (n_datagrams > READ_SMALL ? n_datagrams : 1));
	return n_datagrams;
}

/*
 * The addresses of a network namespace change: a GID that is in none of the lists may be new, and
 * one that is may have moved to another namespace. The number of lists that a request reads again
 * is limited, as is the rate; the next request begins with those that were left.
 */
static bool read_those_due(struct net_ns *home, struct cm_time now)
{
	unsigned int n_datagrams = 0;
	struct net_ns *net_ns;
	bool is_news = false;

	if (!home->has_news && !is_due(home, now))
		return false;
	home->has_news = false;
	home->due_at = cm_time_after(now, READ_AGAIN_NS);
	list_for_each_entry_safe (net_ns, &home->shown, of_shown) {
		if (!is_due(net_ns, now))
			continue;
		if (n_datagrams >= READ_TURN) {
			home->has_news = true;
			break;
		}
		n_datagrams += read_gids(net_ns, now);
		is_news = true;
		list_remove(&net_ns->of_shown);
		list_append(&home->shown, &net_ns->of_shown);
	}
	return is_news;
}

static struct net_ns *find_by_gid(struct net_ns *home, const struct gid_entry *entry)
{
	struct net_ns *net_ns;
	struct mad_gid gid;

	memcpy(&gid, &entry->gid, sizeof(gid));
	list_for_each_entry (net_ns, &home->shown, of_shown)
		if (has_gid(net_ns, &gid, entry->ifindex))
			return net_ns;
	return NULL;
}

struct net_ns *net_ns_of_gid(struct net_ns *home, const struct gid_entry *gid, struct cm_time now)
{
	struct net_ns *found;

	if (list_is_empty(&home->shown) || gid->type == IBV_GID_TYPE_IB || hop_is_here(gid))
		return home;
	found = find_by_gid(home, gid);
	if ((!found || is_due(found, now)) && read_those_due(home, now))
		found = find_by_gid(home, gid);
	return found ? found : home;
}

static bool has_listener(const struct net_ns *net_ns, const struct ports_request *request)
{
	return ports_listener(net_ns->ports, request) != PORTS_NOBODY;
}

uint16_t net_ns_listener(struct net_ns *home, const struct net_ns *net_ns,
			 const struct ports_request *request)
{
	uint16_t to = ports_listener(net_ns->ports, request);
	struct net_ns *other;
	unsigned int n = 0;

	if (to != PORTS_NOBODY)
		return to;
	if (net_ns != home && has_listener(home, request))
		return PORTS_NOT_FOR_THEM;
	/* Only the reason of the rejection depends on them. */
	list_for_each_entry (other, &home->link, link) {
		if (n++ == NET_NS_WALK_MAX)
			break;
		if (has_listener(other, request))
			return PORTS_NOT_FOR_THEM;
	}
	return PORTS_NOBODY;
}

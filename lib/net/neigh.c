/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Neighbours: the next hops with a known link address. The first lookup queries the kernel,
 * announcements keep the entry up to date.
 *
 * Only NET_NEIGH_KNOWN is served from the cache: the kernel announces when that ends, but not when
 * it starts to resolve again.
 */
#include "lib/net/internal.h"

#include <errno.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/list.h"
#include "base/slab.h"

#define ENTRIES_MAX	    16384 /* as many as mad/peers.h keeps peers */
#define BUCKETS_MIN	    64
#define HW_BYTES_MAX	    32
#define REVALIDATE_PAUSE_NS (10000 * CM_NS_PER_MS)
/*
 * An empty datagram makes the kernel resolve the next hop for a process that may not write
 * neighbour entries. It goes to the discard service (RFC 863), which rarely runs and gets no data;
 * where a packet filter of this host refuses that, to RoCE v2, whose devices may count it as an
 * error.
 */
#define DISCARD_PORT 9
#define ROCE_PORT    4791

struct key {
	struct net_ip ip;
	uint32_t ifindex;
};

struct entry {
	struct hash_node node;
	struct list added; /* in cache.added */
	struct key key;
	uint8_t state; /* enum net_neigh */
	uint8_t hw_bytes;
	uint8_t hw[HW_BYTES_MAX]; /* the last known one, also after it was lost */
	uint64_t revalidated_ns;  /* 0: never */
};

static struct {
	struct hash by_key;
	struct list added; /* the oldest first */
	struct slab slab;
	struct entry spare; /* used when out of memory; lookups do not find it */
} cache;

static void forget_entry(struct entry *entry)
{
	hash_remove(&cache.by_key, &entry->node);
	list_remove(&entry->added);
	slab_give(&cache.slab, entry);
}

void net_neigh_flush(void)
{
	hash_fini(&cache.by_key);
	slab_fini(&cache.slab);
	memset(&cache, 0, sizeof(cache));
}

void net_neigh_after_fork(void)
{
	memset(&cache, 0, sizeof(cache));
}

static struct entry *find_entry(const struct key *key)
{
	struct entry *entry;

	if (!cache.by_key.n_nodes)
		return NULL;
	hash_for_each_match_entry (entry, &cache.by_key, hash_bytes(key, sizeof(*key)), node)
		if (!memcmp(&entry->key, key, sizeof(*key)))
			return entry;
	return NULL;
}

/* Return: NULL when out of memory. */
static struct entry *new_entry(void)
{
	size_t n = cache.by_key.n_nodes;

	if (!cache.by_key.n_buckets) {
		if (hash_init(&cache.by_key, BUCKETS_MIN))
			return NULL;
		list_init(&cache.added);
		slab_init(&cache.slab, sizeof(struct entry));
	}
	if (n >= ENTRIES_MAX)
		forget_entry(container_of(cache.added.next, struct entry, added));
	else if (n >= cache.by_key.n_buckets)
		hash_reserve(&cache.by_key, 2 * n); /* or chains become longer */
	return slab_take(&cache.slab);
}

static struct entry *find_or_add_entry(const struct key *key)
{
	struct entry *entry = find_entry(key);

	if (entry)
		return entry;
	net_announcements_want(&key->ip);
	entry = new_entry();
	if (!entry) {
		cache.spare = (struct entry){ .key = *key, .state = NET_NEIGH_NONE };
		return &cache.spare;
	}
	*entry = (struct entry){ .key = *key, .state = NET_NEIGH_NONE };
	hash_insert(&cache.by_key, &entry->node, hash_bytes(key, sizeof(*key)));
	list_append(&cache.added, &entry->added);
	return entry;
}

static enum net_neigh state_of_nud(unsigned int nud)
{
	if (nud & (NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT | NUD_NOARP))
		return NET_NEIGH_KNOWN;
	if (nud & NUD_INCOMPLETE)
		return NET_NEIGH_PENDING;
	return nud & NUD_FAILED ? NET_NEIGH_FAILED : NET_NEIGH_NONE;
}

/* Parses one RTM_NEWNEIGH or RTM_DELNEIGH into an entry. Return: 0 or -EPROTO. */
static int parse_neigh(struct nlmsghdr *hdr, void *arg)
{
	struct ndmsg *ndm = nlmsg_data(hdr);
	struct nlattr *attr[NDA_MAX + 1];
	struct entry *ret = arg;
	int hw_bytes;

	/* Bridges announce their forwarding tables in the same group. */
	if (nlmsg_parse(hdr, sizeof(*ndm), attr, NDA_MAX, NULL) < 0 || !attr[NDA_DST] ||
	    (ndm->ndm_family != AF_INET && ndm->ndm_family != AF_INET6) ||
	    ndm->ndm_flags & NTF_PROXY)
		return -EPROTO;
	memset(ret, 0, sizeof(*ret));
	ret->key.ifindex = ndm->ndm_ifindex;
	ret->key.ip = net_ip_from_attr(ndm->ndm_family, attr[NDA_DST], ndm->ndm_ifindex);
	ret->state = state_of_nud(ndm->ndm_state);
	if (hdr->nlmsg_type == RTM_DELNEIGH)
		ret->state = NET_NEIGH_NONE;
	if (ret->state != NET_NEIGH_KNOWN || !attr[NDA_LLADDR])
		return 0;
	hw_bytes = nla_len(attr[NDA_LLADDR]);
	ret->hw_bytes = hw_bytes < HW_BYTES_MAX ? hw_bytes : HW_BYTES_MAX;
	memcpy(ret->hw, nla_data(attr[NDA_LLADDR]), ret->hw_bytes);
	return 0;
}

static bool hw_differs(const struct entry *a, const struct entry *b)
{
	return a->hw_bytes && b->hw_bytes &&
	       (a->hw_bytes != b->hw_bytes || memcmp(a->hw, b->hw, a->hw_bytes));
}

static void fill_change(struct net_event *event, const struct entry *before,
			const struct entry *now)
{
	event->hw_changed = hw_differs(before, now);
	if (!event->hw_changed || before->hw_bytes != NET_ETHERNET_HW_BYTES ||
	    now->hw_bytes != NET_ETHERNET_HW_BYTES)
		return;
	memcpy(event->hw_before, before->hw, NET_ETHERNET_HW_BYTES);
	memcpy(event->hw, now->hw, NET_ETHERNET_HW_BYTES);
}

static void learn_neigh(struct entry *entry, const struct entry *news)
{
	entry->state = news->state;
	if (news->hw_bytes) {
		entry->hw_bytes = news->hw_bytes;
		memcpy(entry->hw, news->hw, sizeof(entry->hw));
	}
}

bool net_neigh_announced(struct nlmsghdr *hdr, struct net_event *event)
{
	struct entry *entry;
	struct entry news;
	bool known;

	if (parse_neigh(hdr, &news) < 0)
		return false;
	entry = find_entry(&news.key);
	event->change = NET_CHANGE_NEIGH;
	event->ifindex = news.key.ifindex;
	net_ip_to_addr(&news.key.ip, &event->addr);
	event->neigh = news.state;
	if (!entry) /* never looked up: nothing to compare with, and not worth caching */
		return true;
	fill_change(event, entry, &news);
	known = entry->state == NET_NEIGH_KNOWN;
	learn_neigh(entry, &news);
	return !known || news.state != NET_NEIGH_KNOWN || event->hw_changed;
}

static int take_nud(struct nlmsghdr *hdr, void *arg)
{
	*(unsigned int *)arg = ((struct ndmsg *)nlmsg_data(hdr))->ndm_state;
	return 0;
}

static struct nl_msg *neigh_request(int type, int flags, const struct key *key, int ndm_flags,
				    uint16_t nud)
{
	struct ndmsg ndm = {
		.ndm_family = key->ip.family,
		.ndm_ifindex = key->ifindex,
		.ndm_flags = ndm_flags,
		.ndm_state = nud,
	};
	struct nl_msg *msg = net_message(type, flags, &ndm, sizeof(ndm));

	if (msg)
		net_ip_put(msg, NDA_DST, &key->ip);
	return msg;
}

static enum net_neigh ask_kernel(const struct key *key)
{
	struct entry *entry = find_or_add_entry(key);
	struct entry news = { .state = NET_NEIGH_NONE };
	struct net_iface iface;

	/*
	 * An announcement that is still in the socket may be older or newer than the response, but
	 * the last one is never older than a response that differs from it. So the response counts
	 * only if nothing was announced meanwhile.
	 */
	entry->state = NET_NEIGH_NONE;
	if (net_request(neigh_request(RTM_GETNEIGH, 0, key, 0, 0), parse_neigh, &news) < 0)
		news.state = NET_NEIGH_NONE;
	net_announcements_take();
	entry = find_or_add_entry(key);
	if (entry->state == NET_NEIGH_NONE)
		learn_neigh(entry, &news);
	if (entry->state == NET_NEIGH_NONE && !net_iface_fetch(key->ifindex, &iface) &&
	    !iface.resolves)
		return NET_NEIGH_KNOWN;
	return entry->state;
}

static struct key key_of(const struct net_route *route)
{
	return (struct key){ .ip = net_ip_of(&route->next_hop), .ifindex = route->ifindex };
}

bool net_neigh_is_known(const struct net_route *route)
{
	struct key key = key_of(route);
	const struct entry *entry;

	if (route->local || addr_is_multicast(&route->next_hop))
		return true;
	entry = find_entry(&key);
	return entry && entry->state == NET_NEIGH_KNOWN;
}

enum net_neigh net_neigh_state(const struct net_route *route)
{
	struct key key = key_of(route);
	enum net_neigh state = NET_NEIGH_KNOWN;

	if (net_enter())
		return NET_NEIGH_NONE;
	if (!net_neigh_is_known(route))
		state = ask_kernel(&key);
	net_leave();
	return state;
}

/*
 * Sends through the route's interface. A source address of a VRF exists only for sockets that are
 * bound to it or to an interface in it. Elsewhere the options below do, and need no privileges.
 */
static int pin_socket(int fd, const struct net_route *route)
{
	uint32_t ifindex = htonl(route->ifindex);
	int on = 1;
	int rc;

	setsockopt(fd, SOL_SOCKET, SO_DONTROUTE, &on, sizeof(on));
	if (fd_bind_to_interface(fd, route->ifindex) == 0)
		rc = 0;
	else if (route->next_hop.sa.sa_family == AF_INET)
		rc = setsockopt(fd, IPPROTO_IP, IP_UNICAST_IF, &ifindex, sizeof(ifindex));
	else
		rc = setsockopt(fd, IPPROTO_IPV6, IPV6_UNICAST_IF, &ifindex, sizeof(ifindex));
	if (rc < 0)
		return -errno;
	/* Policy routing may use the source; an IPv4 one cannot be used towards an IPv6 router. */
	if (route->src.sa.sa_family == route->next_hop.sa.sa_family &&
	    bind(fd, &route->src.sa, addr_bytes(&route->src.sa)) < 0)
		return -errno;
	return 0;
}

static int send_nothing(int fd, union addr *to, uint16_t port)
{
	addr_set_port(to, port);
	return connect(fd, &to->sa, addr_bytes(&to->sa)) < 0 || send(fd, "", 0, 0) < 0 ? -errno : 0;
}

static int ask_by_datagram(const struct net_route *route)
{
	union addr to = route->next_hop;
	int fd = socket(to.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int err;

	if (fd < 0)
		return -errno;
	err = pin_socket(fd, route);
	if (!err) {
		err = send_nothing(fd, &to, DISCARD_PORT);
		if (err == -EPERM)
			err = send_nothing(fd, &to, ROCE_PORT);
	}
	close(fd);
	return err;
}

int net_neigh_ask(const struct net_route *route)
{
	struct key key = key_of(route);
	int rc = net_enter();

	if (rc)
		return rc;
	net_announcements_want(&key.ip);
	rc = net_request(neigh_request(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_ACK, &key, NTF_USE, 0),
			 NULL, NULL);
	net_leave();
	return rc == -EPERM ? ask_by_datagram(route) : rc;
}

static bool is_believed(const struct key *key)
{
	unsigned int nud = 0;

	net_request(neigh_request(RTM_GETNEIGH, 0, key, 0, 0), take_nud, &nud);
	return nud & (NUD_REACHABLE | NUD_STALE | NUD_DELAY);
}

static bool may_revalidate(struct entry *entry)
{
	uint64_t now_ns = clock_coarse_ns();

	if (entry->revalidated_ns && now_ns - entry->revalidated_ns < REVALIDATE_PAUSE_NS)
		return false;
	entry->revalidated_ns = now_ns;
	return true;
}

void net_neigh_revalidate(const struct net_route *route)
{
	struct key key = key_of(route);
	int rc = 0;

	if (route->local || net_enter())
		return;
	if (may_revalidate(find_or_add_entry(&key)) && is_believed(&key))
		rc = net_request(
			neigh_request(RTM_NEWNEIGH, NLM_F_REPLACE | NLM_F_ACK, &key, 0, NUD_PROBE),
			NULL, NULL);
	net_leave();
	if (rc == -EPERM)
		ask_by_datagram(route);
}

unsigned int net_neigh_hw(const struct net_route *route, uint8_t ret[HW_BYTES_MAX])
{
	struct key key = key_of(route);
	const struct entry *entry;
	struct net_iface iface;
	unsigned int bytes = 0;

	if (net_enter())
		return 0;
	if (route->local) {
		if (!net_iface_fetch(route->ifindex, &iface)) {
			bytes = iface.hw_bytes;
			memcpy(ret, iface.hw_addr, sizeof(iface.hw_addr));
		}
	} else {
		entry = find_entry(&key);
		/* Known to route lookups, but perhaps never queried here. */
		if (!entry || entry->state != NET_NEIGH_KNOWN || !entry->hw_bytes)
			ask_kernel(&key);
		entry = find_entry(&key);
		if (entry && entry->state == NET_NEIGH_KNOWN) {
			bytes = entry->hw_bytes;
			memcpy(ret, entry->hw, sizeof(entry->hw));
		}
	}
	net_leave();
	return bytes;
}

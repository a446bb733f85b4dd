/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IGMP and MLD memberships: see membership.h.
 */
#include "lib/net/membership.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/list.h"
#include "lib/net/internal.h"

#define BUCKETS_MIN 16

/* A socket that holds memberships. */
struct holder {
	struct list link; /* in with_room[] or full */
	sa_family_t family;
	int fd;
	unsigned int n_held;
};

struct membership {
	struct hash_node link;
	struct holder *holder;
	unsigned int ifindex;
	union addr group; /* port 0 */
	unsigned int n_joined;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* The holders. A full one is not tried again until one of its groups is left. */
static struct list with_room[] = { { &with_room[0], &with_room[0] }, /* IPv4 */
				   { &with_room[1], &with_room[1] } };
static struct list full = { &full, &full };
static struct hash memberships; /* by interface and group */

static struct list *holders_with_room(sa_family_t family)
{
	return &with_room[family != AF_INET];
}

static int change_membership(const struct holder *holder, int option,
			     const struct membership *membership)
{
	int level = holder->family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6;
	struct group_req req = { .gr_interface = membership->ifindex };

	addr_store(&membership->group, &req.gr_group);
	return setsockopt(holder->fd, level, option, &req, sizeof(req)) ? -errno : 0;
}

/* Return: the holder; NULL with errno set. */
static struct holder *holder_new(sa_family_t family)
{
	struct holder *holder = calloc(1, sizeof(*holder));

	if (!holder)
		return NULL;
	holder->family = family;
	holder->fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (holder->fd < 0) {
		free(holder);
		return NULL;
	}
	list_append(holders_with_room(family), &holder->link);
	return holder;
}

static void holder_free_if_idle(struct holder *holder)
{
	if (holder->n_held)
		return;
	list_remove(&holder->link);
	close(holder->fd);
	free(holder);
}

static bool is_full(int err)
{
	return err == -ENOBUFS || err == -ENOMEM; /* of IPv4 and IPv6 */
}

/* Return: 0; -ENOBUFS if no socket has room; other -errno. */
static int hold_by_existing(struct membership *membership)
{
	struct list *room = holders_with_room(membership->group.sa.sa_family);
	int err;

	while (!list_is_empty(room)) {
		membership->holder = container_of(room->next, struct holder, link);
		err = change_membership(membership->holder, MCAST_JOIN_GROUP, membership);
		if (!is_full(err))
			return err;
		list_remove(&membership->holder->link);
		list_append(&full, &membership->holder->link);
	}
	return -ENOBUFS;
}

static int hold_membership(struct membership *membership)
{
	int err = hold_by_existing(membership);

	if (err == -ENOBUFS) {
		membership->holder = holder_new(membership->group.sa.sa_family);
		if (!membership->holder)
			return -errno;
		err = change_membership(membership->holder, MCAST_JOIN_GROUP, membership);
	}
	membership->holder->n_held += !err;
	holder_free_if_idle(membership->holder);
	return err;
}

static void release_membership(struct membership *membership)
{
	struct holder *holder = membership->holder;

	/* May fail: the membership goes with its interface. */
	change_membership(holder, MCAST_LEAVE_GROUP, membership);
	holder->n_held--;
	list_remove(&holder->link);
	list_append(holders_with_room(holder->family), &holder->link);
	holder_free_if_idle(holder);
}

static uint64_t hash_of(unsigned int ifindex, const union addr *group)
{
	struct {
		struct net_ip ip;
		uint32_t ifindex;
	} key = { net_ip_of(group), ifindex };

	return hash_bytes(&key, sizeof(key));
}

static struct membership *find_membership(unsigned int ifindex, const union addr *group)
{
	struct membership *membership;

	if (!memberships.n_buckets)
		return NULL;
	hash_for_each_match_entry (membership, &memberships, hash_of(ifindex, group), link)
		if (membership->ifindex == ifindex && addr_same_ip(&membership->group, group))
			return membership;
	return NULL;
}

static size_t wanted_buckets(void)
{
	return memberships.n_nodes < BUCKETS_MIN ? BUCKETS_MIN : memberships.n_nodes + 1;
}

static int join_first(unsigned int ifindex, const union addr *group)
{
	struct membership *membership = calloc(1, sizeof(*membership));
	int err = membership ? hash_reserve(&memberships, wanted_buckets()) : -ENOMEM;

	if (!err) {
		membership->ifindex = ifindex;
		membership->group = *group;
		addr_set_port(&membership->group, 0);
		err = hold_membership(membership);
	}
	if (err) {
		free(membership);
		return err;
	}
	membership->n_joined = 1;
	hash_insert(&memberships, &membership->link, hash_of(ifindex, group));
	return 0;
}

int membership_join(unsigned int ifindex, const union addr *group)
{
	struct membership *membership;
	int err = 0;

	if (!ifindex)
		return -ENODEV; /* the kernel would choose one */
	pthread_mutex_lock(&lock);
	membership = find_membership(ifindex, group);
	if (membership)
		membership->n_joined++;
	else
		err = join_first(ifindex, group);
	pthread_mutex_unlock(&lock);
	return err;
}

void membership_leave(unsigned int ifindex, const union addr *group)
{
	struct membership *membership;

	pthread_mutex_lock(&lock);
	membership = find_membership(ifindex, group);
	if (membership && --membership->n_joined == 0) {
		hash_remove(&memberships, &membership->link);
		release_membership(membership);
		free(membership);
	}
	pthread_mutex_unlock(&lock);
}

/* What the parent's threads were doing here does not matter: the memory is leaked. */
static void close_all(struct list *holders)
{
	struct holder *holder;

	list_for_each_entry (holder, holders, link)
		close(holder->fd);
	list_init(holders);
}

/* --- memberships of the kernel ------------------------------------------- */

/*
 * The last word of a line is the hardware address of a group. For IP over InfiniBand it has 20
 * bytes; the last 16 are the MGID.
 */
bool net_lists_group(FILE *in, const uint8_t mgid[MGID_BYTES])
{
	char wanted[2 * MGID_BYTES + 1], addr[65];
	bool is_listed = false;
	size_t i;

	for (i = 0; i < MGID_BYTES; i++)
		snprintf(&wanted[2 * i], 3, "%02x", mgid[i]);
	while (!is_listed && fscanf(in, "%*s %*s %*s %*s %64s", addr) == 1)
		is_listed = strlen(addr) == 8 + 2 * MGID_BYTES && strcmp(addr + 8, wanted) == 0;
	fclose(in);
	return is_listed;
}

/* RFC 4391, 4. The kernel does not list the broadcast group of IP over InfiniBand. */
static bool is_of_broadcasts(const uint8_t mgid[MGID_BYTES])
{
	static const uint8_t signature[] = { 0x40, 0x1b }, all[] = { 0xff, 0xff, 0xff, 0xff };

	return memcmp(mgid + 2, signature, sizeof(signature)) == 0 &&
	       memcmp(mgid + 12, all, sizeof(all)) == 0;
}

bool net_kernel_has_group(const uint8_t mgid[MGID_BYTES])
{
	FILE *in = is_of_broadcasts(mgid) ? NULL : fopen("/proc/net/dev_mcast", "re");

	return !in || net_lists_group(in, mgid);
}

void membership_after_fork(void)
{
	pthread_mutex_init(&lock, NULL);
	close_all(&with_room[0]);
	close_all(&with_room[1]);
	close_all(&full);
	memberships = (struct hash){ 0 };
}

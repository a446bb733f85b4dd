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

/* A socket that holds memberships. */
struct holder {
	struct holder *next;
	sa_family_t family;
	int fd;
	unsigned int n_held;
};

struct membership {
	struct membership *next;
	struct holder *holder;
	unsigned int ifindex;
	union addr group; /* port 0 */
	unsigned int n_joined;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct holder *holders;
static struct membership *memberships;

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
	holder->next = holders;
	holders = holder;
	return holder;
}

static void holder_free_if_idle(struct holder *holder)
{
	struct holder **at = &holders;

	if (holder->n_held)
		return;
	while (*at != holder)
		at = &(*at)->next;
	*at = holder->next;
	close(holder->fd);
	free(holder);
}

/* Uses the first socket with room: a full one fails with ENOBUFS (IPv4) or ENOMEM (IPv6). */
static int hold_membership(struct membership *membership)
{
	const union addr *group = &membership->group;
	struct holder *holder = holders;
	int err = -ENOBUFS;

	for (; holder; holder = holder->next) {
		if (holder->family != group->sa.sa_family)
			continue;
		err = change_membership(holder, MCAST_JOIN_GROUP, membership);
		if (err != -ENOBUFS && err != -ENOMEM)
			break;
	}
	if (!holder) {
		holder = holder_new(group->sa.sa_family);
		if (!holder)
			return -errno;
		err = change_membership(holder, MCAST_JOIN_GROUP, membership);
	}
	holder->n_held += !err;
	membership->holder = holder;
	holder_free_if_idle(holder);
	return err;
}

static struct membership **find_membership(unsigned int ifindex, const union addr *group)
{
	struct membership **at = &memberships;

	while (*at && ((*at)->ifindex != ifindex || !addr_same_ip(&(*at)->group, group)))
		at = &(*at)->next;
	return at;
}

static int join_first(unsigned int ifindex, const union addr *group)
{
	struct membership *membership = calloc(1, sizeof(*membership));
	int err;

	if (!membership)
		return -ENOMEM;
	membership->ifindex = ifindex;
	membership->group = *group;
	addr_set_port(&membership->group, 0);
	err = hold_membership(membership);
	if (err) {
		free(membership);
		return err;
	}
	membership->n_joined = 1;
	membership->next = memberships;
	memberships = membership;
	return 0;
}

int membership_join(unsigned int ifindex, const union addr *group)
{
	struct membership **at;
	int err = 0;

	if (!ifindex)
		return -ENODEV; /* the kernel would choose one */
	pthread_mutex_lock(&lock);
	at = find_membership(ifindex, group);
	if (*at)
		(*at)->n_joined++;
	else
		err = join_first(ifindex, group);
	pthread_mutex_unlock(&lock);
	return err;
}

void membership_leave(unsigned int ifindex, const union addr *group)
{
	struct membership **at, *membership;

	pthread_mutex_lock(&lock);
	at = find_membership(ifindex, group);
	membership = *at;
	if (membership && --membership->n_joined == 0) {
		*at = membership->next;
		/* May fail: the membership goes with its interface. */
		change_membership(membership->holder, MCAST_LEAVE_GROUP, membership);
		membership->holder->n_held--;
		holder_free_if_idle(membership->holder);
		free(membership);
	}
	pthread_mutex_unlock(&lock);
}

void membership_after_fork(void)
{
	struct holder *holder;

	pthread_mutex_init(&lock, NULL);
	for (holder = holders; holder; holder = holder->next)
		close(holder->fd);
	holders = NULL;
	memberships = NULL;
}

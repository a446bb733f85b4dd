/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's announcements. Any thread that enters the netlink code reads them from the socket
 * and applies them to the caches; reports are queued for each net_watch until its
 * net_watch_drain(). The descriptor that the owner polls is an epoll of the socket and of an
 * eventfd, which is set while the queue is not empty. So no thread can miss what another has read.
 */
#include "lib/net/internal.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fd.h"

#define QUEUE_EVENTS	256
#define BATCH_EVENTS	32
#define WATCH_RCV_BYTES (1 << 20)
#define WATCHES_MAX	2 /* a process has an engine, and may run its own cmportd */

static const int groups[] = {
	RTNLGRP_LINK,	    RTNLGRP_NEIGH,	RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR,
	RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE, RTNLGRP_IPV4_RULE,   RTNLGRP_IPV6_RULE,
	RTNLGRP_NEXTHOP, /* rules and next hops affect routes too */
	RTNLGRP_TC,	    RTNLGRP_DCB,
};

struct net_watch {
	bool is_open;
	int wake_fd; /* eventfd: the queue is not empty */
	int poll_fd; /* epoll of wake_fd and of the netlink socket */
	int n_queued;
	struct net_event queue[QUEUE_EVENTS];
};

static struct net_watch watches[WATCHES_MAX];
static int netlink_fd = -1;
static unsigned int n_changes; /* atomic: of addresses and links */
static unsigned int n_class_changes;
static __thread enum {
	EACH_LOOKS, /* how this thread's lookups read the announcements */
	NEXT_LOOKS,
	NONE_LOOKS,
} looks;
static char message[32768] __attribute__((aligned(NLMSG_ALIGNTO)));

unsigned int net_changes(void)
{
	return __atomic_load_n(&n_changes, __ATOMIC_ACQUIRE);
}

unsigned int net_class_changes(void)
{
	return n_class_changes;
}

static void count_change(void)
{
	__atomic_add_fetch(&n_changes, 1, __ATOMIC_RELEASE);
}

static void close_watch(struct net_watch *watch)
{
	if (!watch->is_open)
		return;
	fd_close(&watch->poll_fd);
	fd_close(&watch->wake_fd);
	watch->n_queued = 0;
	watch->is_open = false;
}

static int open_netlink(void)
{
	struct sockaddr_nl self = { .nl_family = AF_NETLINK };
	int bytes = WATCH_RCV_BYTES;

	netlink_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	if (netlink_fd < 0)
		return -errno;
	/* Best effort: with less room, announcements are lost sooner, which is handled. */
	setsockopt(netlink_fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	net_filter_attach(netlink_fd);
	if (bind(netlink_fd, (struct sockaddr *)&self, sizeof(self)) < 0)
		return -errno;
	for (unsigned int i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		/* EINVAL: a kernel without this group announces nothing in it. */
		if (setsockopt(netlink_fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &groups[i],
			       sizeof(groups[i])) < 0 &&
		    errno != EINVAL)
			return -errno;
	}
	return 0;
}

void net_news_want(const struct net_ip *ip)
{
	net_filter_want(netlink_fd, ip);
}

static int poll_add(const struct net_watch *watch, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(watch->poll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int open_watch(struct net_watch *watch)
{
	int rc;

	watch->is_open = true;
	watch->n_queued = 0;
	watch->poll_fd = -1;
	watch->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (watch->wake_fd < 0)
		return -errno;
	watch->poll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (watch->poll_fd < 0)
		return -errno;
	rc = poll_add(watch, netlink_fd);
	return rc ? rc : poll_add(watch, watch->wake_fd);
}

static void flush_all(void)
{
	net_route_flush();
	net_iface_flush();
	net_neigh_flush();
	n_class_changes++;
}

/* A full queue is reported like a full socket: re-read everything. */
static void enqueue_for(struct net_watch *watch, const struct net_event *event)
{
	const struct net_event *last = watch->queue;

	if (!watch->n_queued) {
		eventfd_write(watch->wake_fd, 1);
	} else {
		last += watch->n_queued - 1;
		if (last->change == NET_CHANGE_LOST || !memcmp(last, event, sizeof(*event)))
			return;
	}
	if (watch->n_queued < QUEUE_EVENTS) {
		watch->queue[watch->n_queued++] = *event;
		return;
	}
	memset(&watch->queue[0], 0, sizeof(watch->queue[0]));
	watch->queue[0].change = NET_CHANGE_LOST;
	watch->n_queued = 1;
}

static void enqueue_event(const struct net_event *event)
{
	int i;

	for (i = 0; i < WATCHES_MAX; i++)
		if (watches[i].is_open)
			enqueue_for(&watches[i], event);
}

static void lose_announcements(void)
{
	struct net_event event;

	memset(&event, 0, sizeof(event)); /* padding, too: enqueue_for() compares bytes */
	event.change = NET_CHANGE_LOST;
	flush_all();
	count_change();
	enqueue_event(&event);
}

static void addr_announced(struct nlmsghdr *hdr, struct net_event *event)
{
	struct ifaddrmsg *ifa = nlmsg_data(hdr);
	struct nlattr *attr[IFA_MAX + 1];
	struct nlattr *own;

	event->change = NET_CHANGE_ADDR;
	if (nlmsg_parse(hdr, sizeof(*ifa), attr, IFA_MAX, NULL) < 0)
		return;
	event->ifindex = ifa->ifa_index;
	own = attr[IFA_LOCAL] ? attr[IFA_LOCAL] : attr[IFA_ADDRESS];
	if (own) {
		struct net_ip ip = net_ip_from_attr(ifa->ifa_family, own, ifa->ifa_index);

		net_ip_to_addr(&ip, &event->addr);
	}
}

static void take_announcement(struct nlmsghdr *hdr)
{
	struct net_event event;

	memset(&event, 0, sizeof(event));
	switch (hdr->nlmsg_type) {
	case RTM_NEWNEIGH:
	case RTM_DELNEIGH:
		if (!net_neigh_announced(hdr, &event))
			return;
		break;
	case RTM_NEWADDR:
	case RTM_DELADDR:
		addr_announced(hdr, &event);
		net_iface_flush();
		count_change();
		break;
	case RTM_NEWLINK:
	case RTM_DELLINK:
		event.change = NET_CHANGE_LINK;
		net_iface_announced(hdr, &event);
		count_change();
		break;
	case RTM_NEWQDISC:
	case RTM_DELQDISC:
	case RTM_GETDCB: /* announcements, too */
	case RTM_SETDCB:
		n_class_changes++;
		return;
	case RTM_NEWTCLASS: /* announced in the same group as queueing disciplines */
	case RTM_DELTCLASS:
	case RTM_NEWTFILTER:
	case RTM_DELTFILTER:
	case RTM_NEWCHAIN:
	case RTM_DELCHAIN:
		return;
	default: /* routes, rules and next-hop objects */
		event.change = NET_CHANGE_ROUTE;
		break;
	}
	/* When a neighbour fails, the kernel may choose another gateway. */
	if (event.change != NET_CHANGE_NEIGH || event.neigh == NET_NEIGH_FAILED)
		net_route_flush();
	enqueue_event(&event);
}

/*
 * Every lookup calls this, and mostly finds nothing: recvfrom() is a third faster then than
 * recvmsg(), which has to copy and check a header first.
 */
void net_news_take(void)
{
	struct sockaddr_nl from;

	for (;;) {
		struct nlmsghdr *hdr = (struct nlmsghdr *)message;
		socklen_t from_bytes = sizeof(from);
		/* MSG_TRUNC: return the full length even if the message does not fit. */
		ssize_t bytes = recvfrom(netlink_fd, message, sizeof(message),
					 MSG_DONTWAIT | MSG_TRUNC, (struct sockaddr *)&from,
					 &from_bytes);
		int left;

		if (bytes < 0 && errno == EINTR)
			continue;
		if (bytes < 0 && errno != ENOBUFS)
			return;
		if (bytes >= 0 && from.nl_pid) /* accept messages of the kernel only */
			continue;
		if (bytes < 0 || bytes > (ssize_t)sizeof(message)) {
			lose_announcements();
			continue;
		}
		for (left = bytes; nlmsg_ok(hdr, left); hdr = nlmsg_next(hdr, &left))
			take_announcement(hdr);
	}
}

int net_enter(void)
{
	int rc;

	net_reenter();
	rc = netlink_fd >= 0 ? 0 : open_netlink();
	if (!rc) {
		if (looks != NONE_LOOKS)
			net_news_take();
		if (looks == NEXT_LOOKS)
			looks = NONE_LOOKS;
		return 0;
	}
	fd_close(&netlink_fd);
	net_leave();
	return rc;
}

void net_batch_begin(void)
{
	looks = NEXT_LOOKS;
}

void net_batch_end(void)
{
	looks = EACH_LOOKS;
}

int net_watch_open(struct net_watch **ret)
{
	struct net_watch *watch = watches;
	int rc = net_enter();

	if (rc)
		return rc;
	while (watch < watches + WATCHES_MAX && watch->is_open)
		watch++;
	if (watch == watches + WATCHES_MAX) {
		rc = -ENOSPC;
	} else {
		rc = open_watch(watch);
		if (rc)
			close_watch(watch);
		else
			*ret = watch;
	}
	net_leave();
	return rc;
}

void net_watch_close(struct net_watch *watch)
{
	if (!watch)
		return;
	net_reenter();
	close_watch(watch);
	net_leave();
}

int net_watch_fd(const struct net_watch *watch)
{
	return watch->poll_fd;
}

/* Return: number of reports moved to @batch. */
static int take_batch(struct net_watch *watch, struct net_event *batch)
{
	eventfd_t count;
	int n;

	if (net_enter())
		return 0;
	n = watch->n_queued < BATCH_EVENTS ? watch->n_queued : BATCH_EVENTS;
	memcpy(batch, watch->queue, n * sizeof(*batch));
	watch->n_queued -= n;
	memmove(watch->queue, watch->queue + n, watch->n_queued * sizeof(*batch));
	if (!watch->n_queued)
		eventfd_read(watch->wake_fd, &count);
	net_leave();
	return n;
}

void net_watch_drain(struct net_watch *watch,
		     void (*report)(const struct net_event *event, void *arg), void *arg)
{
	struct net_event batch[BATCH_EVENTS];
	int n;

	do {
		n = take_batch(watch, batch);
		for (int i = 0; report && i < n; i++)
			report(&batch[i], arg);
	} while (n == BATCH_EVENTS);
}

void net_after_fork(void)
{
	int i;

	net_request_after_fork();
	for (i = 0; i < WATCHES_MAX; i++)
		close_watch(&watches[i]);
	fd_close(&netlink_fd);
	net_filter_forget();
	flush_all();
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's announcements, in two sockets. A process is woken by one of them, which a filter
 * keeps to what it uses; the other one has everything, and waits until a lookup reads it. Any
 * thread that enters the netlink code reads both and applies them to the caches; an epoll of both
 * shows in one system call that there are none.
 *
 * Reports are queued until net_watch_drain(). The descriptor that the owner polls is an epoll of
 * the sockets that it watches and of an eventfd, which is set while the queue is not empty. So no
 * thread can miss what another has read.
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
#include "base/large.h"

#define QUEUE_EVENTS	256
#define BATCH_EVENTS	32
#define WATCH_RCV_BYTES (1 << 20)
/*
 * Of the socket that no thread waits for: an idle process must not keep the routes of a whole table
 * in the kernel. What has no room is reported as lost, and read again when it is needed.
 */
#define QUIET_RCV_BYTES (16 << 10)

#define GROUP(number)	(1u << ((number)-1))
#define OWN_GROUPS                                                                 \
	(GROUP(RTNLGRP_LINK) | GROUP(RTNLGRP_NEIGH) | GROUP(RTNLGRP_IPV4_IFADDR) | \
	 GROUP(RTNLGRP_IPV6_IFADDR))
/* Rules and next-hop objects affect routes, too. */
#define ALL_GROUPS                                                                          \
	(GROUP(RTNLGRP_LINK) | GROUP(RTNLGRP_IPV4_IFADDR) | GROUP(RTNLGRP_IPV6_IFADDR) |    \
	 GROUP(RTNLGRP_IPV4_ROUTE) | GROUP(RTNLGRP_IPV6_ROUTE) | GROUP(RTNLGRP_IPV4_RULE) | \
	 GROUP(RTNLGRP_IPV6_RULE) | GROUP(RTNLGRP_NEXTHOP) | GROUP(RTNLGRP_TC) |            \
	 GROUP(RTNLGRP_DCB))

static struct {
	bool is_open;
	enum net_watch_kind kind;
	int wake_fd; /* eventfd: the queue is not empty */
	int poll_fd; /* epoll of wake_fd and of the netlink sockets */
	int n_queued;
} watch;

static struct net_event queue[QUEUE_EVENTS] LARGE_STATIC;
static int fds[2] = { -1, -1 }; /* the netlink sockets, by kind of announcements */
static int news_fd = -1;	/* epoll of both */
static unsigned int n_changes;	/* atomic: of addresses and links */
static unsigned int n_class_changes;
static __thread enum {
	EACH_LOOKS, /* how this thread's lookups read the announcements */
	NEXT_LOOKS,
	NONE_LOOKS,
} looks;
static char message[32768] LARGE_STATIC __attribute__((aligned(NLMSG_ALIGNTO)));

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

static void close_watch(void)
{
	if (!watch.is_open)
		return;
	fd_close(&watch.poll_fd);
	fd_close(&watch.wake_fd);
	watch.n_queued = 0;
	watch.is_open = false;
}

static int open_socket(enum net_watch_kind kind)
{
	struct sockaddr_nl self = { .nl_family = AF_NETLINK,
				    .nl_groups = kind == NET_WATCH_OWN ? OWN_GROUPS : ALL_GROUPS };
	int bytes = kind == NET_WATCH_OWN ? WATCH_RCV_BYTES : QUIET_RCV_BYTES;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	fds[kind] = fd;
	if (fd < 0)
		return -errno;
	/* Best effort: with less room, announcements are lost sooner, which is handled. */
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	if (kind == NET_WATCH_OWN)
		net_filter_attach(fd);
	return bind(fd, (struct sockaddr *)&self, sizeof(self)) < 0 ? -errno : 0;
}

static int poll_add(int poll_fd, int fd, enum net_watch_kind kind)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = kind };

	return epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int open_sockets(void)
{
	int kind, rc = 0;

	news_fd = epoll_create1(EPOLL_CLOEXEC);
	if (news_fd < 0)
		return -errno;
	for (kind = NET_WATCH_OWN; !rc && kind <= NET_WATCH_ALL; kind++) {
		rc = open_socket(kind);
		if (!rc)
			rc = poll_add(news_fd, fds[kind], kind);
	}
	return rc;
}

static void close_sockets(void)
{
	fd_close(&fds[NET_WATCH_OWN]);
	fd_close(&fds[NET_WATCH_ALL]);
	fd_close(&news_fd);
	net_filter_attach(-1);
}

/* One that watches all has to keep up with bursts. */
static int watch_all(void)
{
	int bytes = WATCH_RCV_BYTES;

	setsockopt(fds[NET_WATCH_ALL], SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	return poll_add(watch.poll_fd, fds[NET_WATCH_ALL], NET_WATCH_ALL);
}

static int open_watch(enum net_watch_kind kind)
{
	int rc;

	watch.is_open = true;
	watch.kind = kind;
	watch.poll_fd = -1;
	watch.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (watch.wake_fd < 0)
		return -errno;
	watch.poll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (watch.poll_fd < 0)
		return -errno;
	rc = poll_add(watch.poll_fd, fds[NET_WATCH_OWN], NET_WATCH_OWN);
	if (!rc && kind == NET_WATCH_ALL)
		rc = watch_all();
	return rc ? rc : poll_add(watch.poll_fd, watch.wake_fd, 0);
}

/* All but the neighbours. */
static void flush_all(void)
{
	net_route_flush();
	net_iface_flush();
	n_class_changes++;
}

/* A full queue is reported like a full socket: re-read everything. */
static void enqueue_event(const struct net_event *event)
{
	const struct net_event *last = watch.n_queued ? &queue[watch.n_queued - 1] : NULL;

	if (last && (last->change == NET_CHANGE_LOST || !memcmp(last, event, sizeof(*event))))
		return;
	if (!last)
		eventfd_write(watch.wake_fd, 1);
	if (watch.n_queued < QUEUE_EVENTS) {
		queue[watch.n_queued++] = *event;
		return;
	}
	memset(&queue[0], 0, sizeof(queue[0]));
	queue[0].change = NET_CHANGE_LOST;
	watch.n_queued = 1;
}

/* Neighbours are in one socket only, which wakes everyone. */
static void lose_announcements(enum net_watch_kind kind)
{
	struct net_event event;

	memset(&event, 0, sizeof(event)); /* padding, too: enqueue_event() compares bytes */
	event.change = NET_CHANGE_LOST;
	flush_all();
	if (kind == NET_WATCH_OWN) /* neighbours are in no other socket */
		net_neigh_flush();
	count_change();
	if (watch.is_open && (kind == NET_WATCH_OWN || watch.kind == NET_WATCH_ALL))
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

/* The first of two copies finds the new link address of a bond, whatever is watched. */
static bool is_for_all_kinds(const struct net_event *event)
{
	static const uint8_t none[sizeof(event->hw)];

	return event->change == NET_CHANGE_NEIGH ||
	       (event->change == NET_CHANGE_LINK && memcmp(event->hw, none, sizeof(none)));
}

/* Interfaces and addresses may be in both sockets; only the copy in that of the kind counts. */
static void report_announcement(const struct net_event *event, enum net_watch_kind kind)
{
	/* When a neighbour fails, the kernel may choose another gateway. */
	if (event->change != NET_CHANGE_NEIGH || event->neigh == NET_NEIGH_FAILED)
		net_route_flush();
	if (watch.is_open && (kind == watch.kind || is_for_all_kinds(event)))
		enqueue_event(event);
}

/* RTM_DELLINK of a bridge: the link is no longer one of its ports. */
static bool is_of_bridge(struct nlmsghdr *hdr)
{
	const struct ifinfomsg *link = nlmsg_data(hdr);

	return nlmsg_valid_hdr(hdr, sizeof(*link)) && link->ifi_family == AF_BRIDGE;
}

static void take_announcement(struct nlmsghdr *hdr, enum net_watch_kind kind)
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
		if (is_of_bridge(hdr))
			return;
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
	report_announcement(&event, kind);
}

static void read_socket(enum net_watch_kind kind)
{
	struct sockaddr_nl from;

	for (;;) {
		struct nlmsghdr *hdr = (struct nlmsghdr *)message;
		socklen_t from_bytes = sizeof(from);
		/* MSG_TRUNC: return the full length even if the message does not fit. */
		ssize_t bytes = recvfrom(fds[kind], message, sizeof(message),
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
			lose_announcements(kind);
			continue;
		}
		for (left = bytes; nlmsg_ok(hdr, left); hdr = nlmsg_next(hdr, &left))
			take_announcement(hdr, kind);
	}
}

/* Every lookup calls this, and mostly finds nothing. */
void net_announcements_take(void)
{
	struct epoll_event ready[2];
	int i, n = epoll_wait(news_fd, ready, 2, 0);

	for (i = 0; i < n; i++)
		read_socket(ready[i].data.u32);
}

int net_enter(void)
{
	int rc;

	net_reenter();
	rc = news_fd >= 0 ? 0 : open_sockets();
	if (!rc) {
		if (looks != NONE_LOOKS)
			net_announcements_take();
		if (looks == NEXT_LOOKS)
			looks = NONE_LOOKS;
		return 0;
	}
	close_sockets();
	net_leave();
	return rc;
}

void net_catch_up(void)
{
	if (!net_enter())
		net_leave();
}

void net_batch_begin(void)
{
	looks = NEXT_LOOKS;
}

void net_batch_end(void)
{
	looks = EACH_LOOKS;
}

int net_watch_open(enum net_watch_kind kind)
{
	int rc = net_enter();

	if (rc)
		return rc;
	rc = open_watch(kind);
	if (rc)
		close_watch();
	net_leave();
	return rc;
}

void net_watch_close(void)
{
	net_reenter();
	close_watch();
	net_leave();
}

int net_watch_fd(void)
{
	return watch.poll_fd;
}

/* Return: number of reports moved to @batch. */
static int take_batch(struct net_event *batch)
{
	eventfd_t count;
	int n;

	if (net_enter())
		return 0;
	n = watch.n_queued < BATCH_EVENTS ? watch.n_queued : BATCH_EVENTS;
	memcpy(batch, queue, n * sizeof(*batch));
	watch.n_queued -= n;
	memmove(queue, queue + n, watch.n_queued * sizeof(*batch));
	if (!watch.n_queued)
		eventfd_read(watch.wake_fd, &count);
	net_leave();
	return n;
}

void net_watch_drain(void (*report)(const struct net_event *event, void *arg), void *arg)
{
	struct net_event batch[BATCH_EVENTS];
	int n;

	do {
		n = take_batch(batch);
		for (int i = 0; report && i < n; i++)
			report(&batch[i], arg);
	} while (n == BATCH_EVENTS);
}

void net_after_fork(void)
{
	net_request_after_fork();
	close_watch();
	close_sockets();
	net_filter_forget();
	net_iface_after_fork();
	net_neigh_after_fork();
	flush_all();
}

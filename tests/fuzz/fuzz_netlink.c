/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes in place of the kernel's answers and announcements, while routes, neighbours,
 * interfaces and GIDs are looked up: no byte beyond a message is read, and every call ends. The
 * unused part of a buffer is poisoned.
 *
 * The calls of lib/net/ that talk to the kernel are replaced when this is linked (--wrap).
 */
#include <assert.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <linux/rtnetlink.h>
#include <sanitizer/asan_interface.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/net/gid_table.h"
#include "lib/net/internal.h"
#include "lib/net/netlink.h"
#include "tests/fuzz/input.h"

#define MESSAGE_MAX 4096
#define ATTRS_MAX   8
#define GIDS_MAX    16
#define HUGE_BYTES  60000 /* larger than all buffers of the library */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
const char *__lsan_default_suppressions(void);

int __wrap_socket(int family, int type, int protocol);
int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t bytes);
int __wrap_bind(int fd, const struct sockaddr *addr, socklen_t bytes);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t bytes);
int __wrap_epoll_wait(int fd, struct epoll_event *ready, int n_max, int timeout_ms);
ssize_t __wrap_send(int fd, const void *data, size_t bytes, int flags);
ssize_t __wrap_recv(int fd, void *to, size_t bytes, int flags);
ssize_t __wrap_recvfrom(int fd, void *to, size_t bytes, int flags, struct sockaddr *from,
			socklen_t *from_bytes);

static struct input in;
static uint32_t seq; /* of the request that waits for its answer */
static uint8_t message[MESSAGE_MAX];
static size_t message_bytes;

/* --- messages of the kernel ---------------------------------------------- */

static const uint16_t types[] = {
	RTM_NEWROUTE, RTM_NEWNEIGH, RTM_DELNEIGH, RTM_NEWADDR, RTM_DELADDR,  RTM_NEWLINK,
	RTM_DELLINK,  NLMSG_ERROR,  NLMSG_DONE,	  RTM_NEWRULE, RTM_NEWQDISC, RTM_GETDCB,
};

static void put_attr(struct nlmsghdr *hdr)
{
	uint8_t type = next_byte(&in), bytes = next_byte(&in) % 40;
	size_t at = NLMSG_ALIGN(hdr->nlmsg_len);
	struct rtattr attr = { .rta_len = (uint16_t)RTA_LENGTH(bytes),
			       .rta_type = (uint16_t)(type & 0x3f) };

	if (type & 0x40)
		attr.rta_len = next_byte(&in); /* a wrong value */
	if (type & 0x80)
		attr.rta_type |= NLA_F_NESTED;
	memcpy((uint8_t *)hdr + at, &attr, sizeof(attr));
	next_bytes(&in, (uint8_t *)hdr + at + RTA_LENGTH(0), bytes);
	hdr->nlmsg_len = (uint32_t)(at + RTA_LENGTH(bytes));
}

/* A well-formed message with any contents; then any byte may be changed. */
static void put_message(void)
{
	struct nlmsghdr *hdr = (struct nlmsghdr *)(message + message_bytes);
	uint8_t how = next_byte(&in), what = next_byte(&in), body = next_byte(&in) % 64;
	unsigned int i;

	if (message_bytes + 1024 > sizeof(message))
		return;
	memset(hdr, 0, 1024);
	hdr->nlmsg_type = types[what % (sizeof(types) / sizeof(types[0]))];
	hdr->nlmsg_flags = how & 1 ? NLM_F_MULTI : 0;
	hdr->nlmsg_seq = how & 2 ? next_byte(&in) : seq;
	next_bytes(&in, hdr + 1, body);
	hdr->nlmsg_len = (uint32_t)NLMSG_LENGTH(body);
	for (i = 0; i < what / 32u; i++)
		put_attr(hdr);
	message_bytes += NLMSG_ALIGN(hdr->nlmsg_len);
	if (how & 4)
		hdr->nlmsg_len = next_byte(&in);
}

static void make_message(void)
{
	uint8_t how = next_byte(&in);
	unsigned int i;

	message_bytes = 0;
	if (how >= 0xf0) {
		message_bytes = next_byte(&in);
		next_bytes(&in, message, message_bytes);
		return;
	}
	for (i = 0; i <= how % 4u; i++)
		put_message();
	if (how & 8 && message_bytes)
		message_bytes -= next_byte(&in) % 16; /* truncated */
}

static ssize_t copy_message(void *to, size_t room, int flags)
{
	size_t n;

	ASAN_UNPOISON_MEMORY_REGION(to, room);
	if (in.left == 0) {
		errno = flags & MSG_DONTWAIT ? EAGAIN : EIO;
		return -1;
	}
	if (next_byte(&in) % 16 == 0) {
		errno = next_byte(&in) % 2 ? EINTR : ENOBUFS;
		return -1;
	}
	make_message();
	n = message_bytes < room ? message_bytes : room;
	memcpy(to, message, n);
	ASAN_POISON_MEMORY_REGION((uint8_t *)to + n, room - n);
	return (ssize_t)n;
}

/* --- in place of the C library ------------------------------------------- */

int __wrap_socket(int family, int type, int protocol)
{
	(void)family, (void)type, (void)protocol;
	return eventfd(0, EFD_CLOEXEC);
}

int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t bytes)
{
	(void)fd, (void)addr, (void)bytes;
	return 0;
}

int __wrap_bind(int fd, const struct sockaddr *addr, socklen_t bytes)
{
	(void)fd, (void)addr, (void)bytes;
	return 0;
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t bytes)
{
	(void)fd, (void)level, (void)name, (void)value, (void)bytes;
	return 0;
}

/* Every announcement is in the socket without a filter. */
int __wrap_epoll_wait(int fd, struct epoll_event *ready, int n_max, int timeout_ms)
{
	(void)fd, (void)n_max, (void)timeout_ms;
	ready->data.u32 = NET_WATCH_ALL;
	return 1;
}

ssize_t __wrap_send(int fd, const void *data, size_t bytes, int flags)
{
	struct nlmsghdr hdr;

	(void)fd, (void)flags;
	if (bytes < sizeof(hdr))
		return (ssize_t)bytes;
	memcpy(&hdr, data, sizeof(hdr));
	assert(hdr.nlmsg_len == bytes);
	seq = hdr.nlmsg_seq;
	return (ssize_t)bytes;
}

ssize_t __wrap_recv(int fd, void *to, size_t bytes, int flags)
{
	(void)fd;
	return copy_message(to, bytes, flags);
}

ssize_t __wrap_recvfrom(int fd, void *to, size_t bytes, int flags, struct sockaddr *from,
			socklen_t *from_bytes)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	uint8_t how = next_byte(&in);
	ssize_t n;

	(void)fd, (void)from_bytes;
	if (how < 0x60) {
		ASAN_UNPOISON_MEMORY_REGION(to, bytes);
		errno = EAGAIN;
		return -1;
	}
	kernel.nl_pid = how == 0xff;
	memcpy(from, &kernel, sizeof(kernel));
	n = copy_message(to, bytes, flags);
	return n >= 0 && how == 0xfe ? HUGE_BYTES : n;
}

/* --- a device with any GIDs ---------------------------------------------- */

static int query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
		      size_t bytes)
{
	(void)context;
	memset(attr, 0, bytes);
	if (port_num > next_byte(&in) % 8)
		return EINVAL;
	attr->state = (enum ibv_port_state)(next_byte(&in) % 6);
	attr->link_layer = next_byte(&in) % 3;
	attr->gid_tbl_len = next_byte(&in) % GIDS_MAX;
	return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			     size_t max_entries, uint32_t flags, size_t entry_size)
{
	size_t i, n = next_byte(&in) % GIDS_MAX;

	(void)context, (void)flags;
	assert(entry_size == sizeof(*entries));
	if (n > max_entries)
		return -EINVAL;
	for (i = 0; i < n; i++)
		next_bytes(&in, &entries[i], sizeof(entries[i]));
	return (ssize_t)n;
}

static struct verbs_context device = {
	.sz = sizeof(device),
	.query_port = query_port,
	.context.abi_compat = __VERBS_ABI_IS_EXTENDED,
};

/* --- lookups ------------------------------------------------------------- */

static struct net_route route;

static void next_addr(union addr *ret)
{
	uint8_t how = next_byte(&in);

	addr_set_any(ret, how & 1 ? AF_INET6 : AF_INET);
	if (how & 1)
		next_bytes(&in, &ret->in6.sin6_addr, 16);
	else
		next_bytes(&in, &ret->in4.sin_addr, 4);
	if (how & 1)
		ret->in6.sin6_scope_id = how >> 5;
}

static void do_route(void)
{
	struct net_route found;
	union addr dst, src;
	bool has_src = next_byte(&in) & 1;

	next_addr(&dst);
	if (has_src)
		next_addr(&src);
	if (!net_route_lookup(&dst, has_src ? &src : NULL, next_byte(&in) % 4, &found))
		route = found;
}

static void do_neigh(void)
{
	assert(net_neigh_state(&route) <= NET_NEIGH_NONE);
}

static void do_ask(void)
{
	net_neigh_ask(&route);
}

static void do_iface(void)
{
	struct net_iface iface;

	if (net_iface_get(next_byte(&in) % 4, &iface))
		return;
	assert(memchr(iface.name, 0, sizeof(iface.name)));
	assert(net_service_level(&iface, next_byte(&in)) <= NET_SERVICE_LEVEL_MAX);
}

static void do_owner(void)
{
	struct net_iface iface;
	union addr addr;

	next_addr(&addr);
	net_iface_of_addr(&addr, &iface);
}

static void look_at(const struct net_event *event, void *arg)
{
	assert(event->change <= NET_CHANGE_LOST && !arg);
}

static void do_drain(void)
{
	net_watch_drain(look_at, NULL);
}

static void do_gid(void)
{
	struct ibv_context *verbs = &device.context;
	struct gid_entry found;
	union addr addr;

	next_addr(&addr);
	if (next_byte(&in) & 1)
		gid_find(&verbs, 1, &addr, next_byte(&in) % 4, &found);
	else
		gid_by_index(verbs, next_byte(&in), next_byte(&in), &found);
}

/* The table of addresses, which net_after_fork() drops: a fork may have come while it grew. */
const char *__lsan_default_suppressions(void)
{
	return "leak:add_addr";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static void (*const does[])(void) = { do_route, do_neigh, do_ask, do_iface,
					      do_owner, do_drain, do_gid };

	in = (struct input){ data, bytes };
	memset(&route, 0, sizeof(route));
	addr_set_any(&route.next_hop, AF_INET);
	if (net_watch_open(NET_WATCH_ALL))
		return 0;
	while (in.left)
		does[next_byte(&in) % (sizeof(does) / sizeof(does[0]))]();
	net_neigh_flush(); /* else leaked by the next */
	net_after_fork();  /* drops all caches */
	gid_forget(NULL);
	return 0;
}

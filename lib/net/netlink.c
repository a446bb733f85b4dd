/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The request side of netlink.h: the lock, the request socket, and addresses as keys. libnl builds
 * and parses the messages; its caches are not used, because they copy whole tables for one entry.
 *
 * The sockets belong to the network namespace of the thread that called first.
 */
#include "lib/net/internal.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/large.h"

static char response[32768] LARGE_STATIC __attribute__((aligned(NLMSG_ALIGNTO)));
static struct {
	pthread_mutex_t lock;
	int cancel_state; /* of the holder */
	int fd;
	uint32_t seq;
} net = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

struct net_ip net_ip_of(const union addr *addr)
{
	struct net_ip ip = { 0 };

	if (!addr)
		return ip;
	ip.family = addr->sa.sa_family;
	if (ip.family == AF_INET)
		memcpy(ip.bytes, &addr->in4.sin_addr, 4);
	else
		memcpy(ip.bytes, &addr->in6.sin6_addr, 16);
	ip.scope = addr_scope(addr);
	return ip;
}

void net_ip_to_addr(const struct net_ip *ip, union addr *ret)
{
	addr_set_any(ret, ip->family);
	if (ip->family == AF_INET) {
		memcpy(&ret->in4.sin_addr, ip->bytes, 4);
	} else if (ip->family == AF_INET6) {
		memcpy(&ret->in6.sin6_addr, ip->bytes, 16);
		ret->in6.sin6_scope_id = ip->scope;
	}
}

unsigned int net_ip_bytes(const struct net_ip *ip)
{
	return ip->family == AF_INET ? 4 : 16;
}

struct net_ip net_ip_from_attr(unsigned int family, const struct nlattr *attr, unsigned int ifindex)
{
	struct net_ip ip = { .family = family };
	union addr addr;

	if ((unsigned int)nla_len(attr) < net_ip_bytes(&ip))
		return (struct net_ip){ 0 };
	memcpy(ip.bytes, nla_data(attr), net_ip_bytes(&ip));
	net_ip_to_addr(&ip, &addr);
	if (addr_is_link_local(&addr))
		ip.scope = ifindex;
	return ip;
}

void net_ip_put(struct nl_msg *msg, int type, const struct net_ip *ip)
{
	nla_put(msg, type, net_ip_bytes(ip), ip->bytes);
}

struct nl_msg *net_message(int type, int flags, void *header, size_t bytes)
{
	struct nl_msg *msg = nlmsg_alloc_simple(type, NLM_F_REQUEST | flags);

	if (msg)
		nlmsg_append(msg, header, bytes, NLMSG_ALIGNTO);
	return msg;
}

/* Closes the socket: the rest of a response would disturb the next request. */
static int give_up(int err)
{
	close(net.fd);
	net.fd = -1;
	return err;
}

static int open_socket(void)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };

	if (net.fd >= 0)
		return 0;
	net.fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (net.fd < 0)
		return -errno;
	if (connect(net.fd, (struct sockaddr *)&kernel, sizeof(kernel)) < 0)
		return give_up(-errno);
	return 0;
}

void net_reenter(void)
{
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	pthread_mutex_lock(&net.lock);
	net.cancel_state = cancel_state;
}

void net_leave(void)
{
	int cancel_state = net.cancel_state;

	pthread_mutex_unlock(&net.lock);
	pthread_setcancelstate(cancel_state, NULL);
}

static int request_send(struct nl_msg *msg)
{
	struct nlmsghdr *hdr = nlmsg_hdr(msg);
	ssize_t sent;

	hdr->nlmsg_seq = ++net.seq;
	do
		sent = send(net.fd, hdr, hdr->nlmsg_len, 0);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

struct exchange {
	int (*take)(struct nlmsghdr *hdr, void *arg);
	void *arg;
	int rc;	      /* first failure */
	bool done;    /* the response is complete */
	bool is_torn; /* the list changed during the dump: entries may be missing */
};

static void take_message(struct exchange *exchange, struct nlmsghdr *hdr)
{
	const struct nlmsgerr *err = nlmsg_data(hdr);
	int rc = 0;

	if (hdr->nlmsg_seq != net.seq) /* of an abandoned request */
		return;
	exchange->done = !(hdr->nlmsg_flags & NLM_F_MULTI);
	if (hdr->nlmsg_flags & NLM_F_DUMP_INTR)
		exchange->is_torn = true;
	if (hdr->nlmsg_type == NLMSG_ERROR) {
		rc = nlmsg_valid_hdr(hdr, sizeof(err->error)) && err->error <= 0 ? err->error
										 : -EPROTO;
		exchange->done = true;
	} else if (hdr->nlmsg_type == NLMSG_DONE) {
		exchange->done = true;
	} else if (exchange->take && !exchange->rc) {
		rc = exchange->take(hdr, exchange->arg);
	}
	if (!exchange->rc)
		exchange->rc = rc;
}

/* A dump is read to its end even after a failure: until then the socket accepts no other. */
int net_request(struct nl_msg *msg, int (*take)(struct nlmsghdr *hdr, void *arg), void *arg)
{
	struct exchange exchange = { .take = take, .arg = arg };
	int rc = msg ? open_socket() : -ENOMEM; /* the previous socket may have been closed */

	if (!rc)
		rc = request_send(msg);
	nlmsg_free(msg);
	if (rc)
		return rc;
	while (!exchange.done) {
		/* MSG_TRUNC: return the full length even if the message does not fit. */
		ssize_t bytes = recv(net.fd, response, sizeof(response), MSG_TRUNC);
		struct nlmsghdr *hdr = (struct nlmsghdr *)response;
		int left = bytes;

		if (bytes < 0 && errno == EINTR)
			continue;
		if (bytes <= 0 || bytes > (ssize_t)sizeof(response))
			return give_up(bytes < 0 ? -errno : -EIO);
		for (; nlmsg_ok(hdr, left); hdr = nlmsg_next(hdr, &left))
			take_message(&exchange, hdr);
	}
	return !exchange.rc && exchange.is_torn ? -EAGAIN : exchange.rc;
}

void net_request_after_fork(void)
{
	fd_close(&net.fd);
	pthread_mutex_init(&net.lock, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls of sockets that scripts may have: streams of the process with itself. All of them are
 * non-blocking, so a script waits where it polls.
 */
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <rdma/rsocket.h>

#include "player.h"

#define N_SOCKETS 6

static int sockets[N_SOCKETS] = { -1, -1, -1, -1, -1, -1 };
static bool was_connected[N_SOCKETS], listens[N_SOCKETS];

static size_t number_of(const char *word)
{
	return (unsigned)atoi(word + 1) % N_SOCKETS;
}

static int keep(size_t number, int fd)
{
	if (fd < 0)
		return -1;
	sockets[number] = fd;
	was_connected[number] = listens[number] = false;
	rfcntl(fd, F_SETFL, O_NONBLOCK);
	return 0;
}

static socklen_t size_of(const struct sockaddr *addr)
{
	return addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
					  : sizeof(struct sockaddr_in6);
}

static const struct {
	const char *word;
	int level, name;
} options[] = {
	{ "reuse", SOL_SOCKET, SO_REUSEADDR },	   { "rcvbuf", SOL_SOCKET, SO_RCVBUF },
	{ "sndbuf", SOL_SOCKET, SO_SNDBUF },	   { "keepalive", SOL_SOCKET, SO_KEEPALIVE },
	{ "error", SOL_SOCKET, SO_ERROR },	   { "linger", SOL_SOCKET, SO_LINGER },
	{ "oob", SOL_SOCKET, SO_OOBINLINE },	   { "nodelay", IPPROTO_TCP, TCP_NODELAY },
	{ "keepidle", IPPROTO_TCP, TCP_KEEPIDLE }, { "maxseg", IPPROTO_TCP, TCP_MAXSEG },
	{ "v6only", IPPROTO_IPV6, IPV6_V6ONLY },   { "sqsize", SOL_RDMA, RDMA_SQSIZE },
	{ "rqsize", SOL_RDMA, RDMA_RQSIZE },	   { "inline", SOL_RDMA, RDMA_INLINE },
	{ "iomap", SOL_RDMA, RDMA_IOMAPSIZE },	   { "none", 77, 1 },
};

static int option(int fd, const char *word, const char *value)
{
	/* Stock takes no heed of a size that is too small for SO_LINGER. */
	int number[2] = { atoi(value), 0 }, result;
	socklen_t size = strcmp(word, "linger") ? sizeof(number[0]) : sizeof(number);
	size_t i;

	for (i = 0; i + 1 < sizeof(options) / sizeof(options[0]); i++)
		if (!strcmp(options[i].word, word))
			break;
	if (strcmp(value, "get"))
		return rsetsockopt(fd, options[i].level, options[i].name, number, size);
	result = rgetsockopt(fd, options[i].level, options[i].name, number, &size);
	if (!result)
		printf(" %d/%u", number[0], size);
	return result;
}

static int show_names(int fd)
{
	struct sockaddr_storage addr;
	socklen_t size = sizeof(addr);
	int result = rgetsockname(fd, (void *)&addr, &size);

	putchar('\n');
	if (!result)
		show_address("local", (void *)&addr);
	size = sizeof(addr);
	result = rgetpeername(fd, (void *)&addr, &size);
	if (!result)
		show_address("remote", (void *)&addr);
	return result;
}

static int wait_for(int fd, bool is_used, const char *word, unsigned limit_ms)
{
	struct pollfd ready = { .fd = fd, .events = *word == 'r' ? POLLIN : POLLOUT };
	int result = 0;

	if (!is_used)
		printf(" not made: stock may never return");
	else
		result = rpoll(&ready, 1, limit_ms);
	printf(" %#x", (unsigned)ready.revents);
	return result;
}

/* What was received is compared with what socket number 0, 1 and so on sends. */
static int move_bytes(size_t number, char **words)
{
	static char bytes[70000];
	size_t length = atoi(words[2]);
	int flags = !strcmp(words[3], "peek") ? MSG_PEEK : 0;
	ssize_t n;

	if (length > sizeof(bytes))
		length = sizeof(bytes);
	if (!strcmp(words[0], "s:send")) {
		memset(bytes, 'a' + number, length);
		return rsend(sockets[number], bytes, length, 0);
	}
	n = rrecv(sockets[number], bytes, length, flags);
	if (n > 0)
		printf(" %c%c", bytes[0], bytes[n - 1]);
	return n;
}

static int call_socket(struct play *p, size_t number)
{
	struct sockaddr *addr = address_of(p->words[2], p->words[3], RDMA_PS_TCP);
	const char *what = p->words[0] + 2;
	int fd = sockets[number], result;

	if (!strcmp(what, "bind"))
		return rbind(fd, addr, size_of(addr));
	if (!strcmp(what, "listen")) {
		listens[number] = true;
		return rlisten(fd, 5);
	}
	if (!strcmp(what, "connect")) {
		result = rconnect(fd, addr, size_of(addr));
		was_connected[number] = true;
		return result;
	}
	if (!strcmp(what, "accept")) {
		if (sockets[number_of(p->words[2])] >= 0)
			return -1;
		result = keep(number_of(p->words[2]), raccept(fd, NULL, NULL));
		was_connected[number_of(p->words[2])] = !result;
		return result;
	}
	if (!strcmp(what, "shut"))
		return rshutdown(fd, atoi(p->words[2]));
	if (!strcmp(what, "option"))
		return option(fd, p->words[2], p->words[3]);
	if (!strcmp(what, "names"))
		return show_names(fd);
	if (!strcmp(what, "poll"))
		return wait_for(fd, was_connected[number] || listens[number], p->words[2],
				p->limit_ms);
	if (!strcmp(what, "close")) {
		sockets[number] = -1;
		return rclose(fd);
	}
	if (!was_connected[number]) {
		printf(" not made: stock crashes");
		return 0;
	}
	return move_bytes(number, p->words);
}

void make_socket_call(struct play *p)
{
	size_t number = number_of(p->words[1]);
	const bool is_new = !strcmp(p->words[0], "s:new");
	int result;

	if (is_new != (sockets[number] < 0)) {
		SAY(" %s", is_new ? "there is one" : "no socket");
		return;
	}
	errno = 0;
	if (is_new)
		result = keep(number,
			      rsocket(*p->words[2] == '6' ? AF_INET6 : AF_INET, SOCK_STREAM, 0));
	else
		result = call_socket(p, number);
	show_call("", result);
	settle(p);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls of sockets that scripts may have. All are non-blocking: a script waits where it polls.
 */
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/uio.h>
#include <rdma/rsocket.h>

#include "player.h"

#define N_SOCKETS 6
#define POLLS	  8

static int sockets[N_SOCKETS] = { -1, -1, -1, -1, -1, -1 };
static bool was_connected[N_SOCKETS], is_connected[N_SOCKETS], listens[N_SOCKETS],
	is_datagram[N_SOCKETS];
static struct sockaddr_storage targets[N_SOCKETS]; /* of rconnect() */

static size_t number_of(const char *word)
{
	return (unsigned)atoi(word + 1) % N_SOCKETS;
}

static int keep(size_t number, int fd)
{
	if (fd < 0)
		return -1;
	sockets[number] = fd;
	was_connected[number] = is_connected[number] = false;
	listens[number] = is_datagram[number] = false;
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

/* Stock's rpoll() may spin for ever if it has a limit; its listeners are writable. */
static int wait_for(struct play *p, size_t number)
{
	struct pollfd ready = { .fd = sockets[number],
				.events = *p->words[2] == 'r' || listens[number] ? POLLIN
										 : POLLOUT };
	int i, result = rpoll(&ready, 1, 0);

	for (i = 0; i < POLLS && !result; i++) {
		p->is_settled = false;
		settle(p);
		result = rpoll(&ready, 1, 0);
	}
	printf(" %#x", (unsigned)ready.revents);
	return result;
}

static int select_one(int fd)
{
	struct timeval none = { 0 };
	fd_set readable, writable;
	int result;

	FD_ZERO(&readable);
	FD_SET(fd, &readable);
	writable = readable;
	result = rselect(fd + 1, &readable, &writable, NULL, &none);
	printf(" %d%d", !!FD_ISSET(fd, &readable), !!FD_ISSET(fd, &writable));
	return result;
}

/* Sends or receives by one buffer, by a vector of two, or by a message header. */
static ssize_t move(const char *what, int fd, char *bytes, size_t length, int flags)
{
	struct iovec pieces[2] = { { bytes, length / 2 },
				   { bytes + length / 2, length - length / 2 } };
	struct msghdr message = { .msg_iov = pieces, .msg_iovlen = 2 };

	return !strcmp(what, "send")	   ? rsend(fd, bytes, length, 0)
	       : !strcmp(what, "write")	   ? rwrite(fd, bytes, length)
	       : !strcmp(what, "writev")   ? rwritev(fd, pieces, 2)
	       : !strcmp(what, "sendto")   ? rsendto(fd, bytes, length, 0, NULL, 0)
	       : !strcmp(what, "sendmsg")  ? rsendmsg(fd, &message, 0)
	       : !strcmp(what, "iowrite")  ? (ssize_t)riowrite(fd, bytes, length, 0, 0)
	       : !strcmp(what, "read")	   ? rread(fd, bytes, length)
	       : !strcmp(what, "readv")	   ? rreadv(fd, pieces, 2)
	       : !strcmp(what, "recvfrom") ? rrecvfrom(fd, bytes, length, flags, NULL, NULL)
	       : !strcmp(what, "recvmsg")  ? rrecvmsg(fd, &message, flags)
					   : rrecv(fd, bytes, length, flags);
}

/* What was received is compared with what socket number 0, 1 and so on sends. */
static int move_bytes(size_t number, char **words)
{
	static char bytes[70000];
	size_t length = atoi(words[2]);
	int flags = !strcmp(words[3], "peek")  ? MSG_PEEK
		    : !strcmp(words[3], "all") ? MSG_WAITALL
					       : 0;
	ssize_t n;

	if (length > sizeof(bytes))
		length = sizeof(bytes);
	memset(bytes, 'a' + number, length);
	n = move(words[0] + 2, sockets[number], bytes, length, flags);
	if (n > 0 && words[0][2] == 'r')
		printf(" %c%c", bytes[0], bytes[n - 1]);
	return n;
}

static int map(int fd, size_t length)
{
	static char bytes[4096];

	return length ? riomap(fd, bytes, length, PROT_WRITE, 0, 0) : riounmap(fd, bytes, 4096);
}

enum {
	SAFE = 1,   /* also on a socket that was never connected */
	QUIET = 2,  /* nothing reaches a peer */
	STARTS = 4, /* threads; other calls may spin for ever with stock */
};

static unsigned flags_of(const char *line)
{
	static const struct {
		const char *word;
		unsigned flags;
	} calls[] = {
		{ "s:new", QUIET | STARTS },   { "s:bind", SAFE | QUIET },
		{ "s:listen", SAFE | STARTS }, { "s:accept", SAFE | STARTS },
		{ "s:connect", STARTS },       { "s:shut", SAFE },
		{ "s:option", SAFE | QUIET },  { "s:names", SAFE | QUIET },
		{ "s:close", SAFE },
	};
	size_t i, length = strcspn(line, " ");

	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (length == strlen(calls[i].word) && !strncmp(line, calls[i].word, length))
			return calls[i].flags;
	return 0;
}

bool is_quiet_for_sockets(const char *line)
{
	return flags_of(line) & QUIET;
}

/* Why a call is not made; NULL if it is. */
static const char *reason_against(size_t number, char **words)
{
	const char *word = words[0], *what = word + 2;
	const struct sockaddr *addr = address_of(words[2], words[3], RDMA_PS_TCP);

	if (is_datagram[number] && (!strcmp(what, "connect") || !strcmp(what, "listen") ||
				    !strcmp(what, "accept") || !strcmp(what, "shut")))
		return "stock's datagrams do not work on RoCE";
	if (is_connected[number] && !strcmp(what, "connect"))
		return "stock returns 0 every time, purecm EISCONN, as TCP";
	if (was_connected[number] && !strcmp(what, "connect") &&
	    memcmp(&targets[number], addr, size_of(addr)))
		return "stock then names this address as its peer's";
	if (!strcmp(what, "recvmsg") && !strcmp(words[3], "peek"))
		return "stock takes the bytes";
	if (flags_of(word) & SAFE)
		return NULL;
	if (was_connected[number] || !strcmp(what, "connect"))
		return NULL;
	if (!strcmp(what, "poll") || !strcmp(what, "select"))
		return listens[number] ? NULL : "stock may never return";
	return "stock crashes";
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
		memcpy(&targets[number], addr, size_of(addr));
		was_connected[number] = true;
		is_connected[number] |= !result;
		return result;
	}
	if (!strcmp(what, "accept")) {
		if (sockets[number_of(p->words[2])] >= 0)
			return -1;
		result = keep(number_of(p->words[2]), raccept(fd, NULL, NULL));
		was_connected[number_of(p->words[2])] = !result;
		is_connected[number_of(p->words[2])] = !result;
		return result;
	}
	if (!strcmp(what, "shut"))
		return rshutdown(fd, atoi(p->words[2]));
	if (!strcmp(what, "option"))
		return option(fd, p->words[2], p->words[3]);
	if (!strcmp(what, "names"))
		return show_names(fd);
	if (!strcmp(what, "poll"))
		return wait_for(p, number);
	if (!strcmp(what, "select"))
		return select_one(fd);
	if (!strcmp(what, "iomap"))
		return map(fd, atoi(p->words[2]));
	if (!strcmp(what, "close")) {
		sockets[number] = -1;
		return rclose(fd);
	}
	return move_bytes(number, p->words);
}

void make_socket_call(struct play *p)
{
	size_t number = number_of(p->words[1]);
	const bool is_new = !strcmp(p->words[0], "s:new"), is_stream = *p->words[3] != 'd';
	const char *why = reason_against(number, p->words);
	int result;

	if (is_new != (sockets[number] < 0)) {
		SAY(" %s", is_new ? "there is one" : "no socket");
		return;
	}
	if (!is_new && why) {
		SAY(" not made: %s", why);
		return;
	}
	set_idle(p, !(flags_of(p->words[0]) & STARTS));
	errno = 0;
	if (is_new) {
		result = keep(number, rsocket(*p->words[2] == '6' ? AF_INET6 : AF_INET,
					      is_stream ? SOCK_STREAM : SOCK_DGRAM, 0));
		is_datagram[number] = !result && !is_stream;
	} else {
		result = call_socket(p, number);
	}
	set_idle(p, true);
	show_call("", result);
	p->is_settled &= is_quiet_for_sockets(p->words[0]);
	settle(p);
}

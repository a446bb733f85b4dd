/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls on stream sockets with both ends in this process, one line each with the result:
 *
 *     sockets ADDRESS [ours]
 *
 * ADDRESS is the host's own. Run by sockets.py, with stock and with this library. Omits what
 * differs from run to run, and calls in which stock crashes: rsend() and rrecv() on a socket that
 * was not connected. With "ours", also a call in which stock never returns.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/sa.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <rdma/rsocket.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/uio.h>
#include <unistd.h>

#define PORT	    7475
#define NO_PORT	    7476
#define PATIENCE_MS 20000

static struct sockaddr_in server_addr;

static ssize_t show(const char *what, ssize_t result)
{
	if (result < 0)
		printf("%s: %s\n", what, strerrorname_np(errno));
	else
		printf("%s: %zd\n", what, result);
	fflush(stdout);
	return result;
}

static void die(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

static struct sockaddr *generic_addr(struct sockaddr_in *addr)
{
	return (struct sockaddr *)addr;
}

/* --- options ------------------------------------------------------------- */

static const struct {
	const char *text;
	int level, name, value;
} options[] = {
	{ "SO_REUSEADDR", SOL_SOCKET, SO_REUSEADDR, 1 },
	{ "SO_RCVBUF", SOL_SOCKET, SO_RCVBUF, 65536 },
	{ "SO_SNDBUF", SOL_SOCKET, SO_SNDBUF, 65536 },
	{ "SO_KEEPALIVE", SOL_SOCKET, SO_KEEPALIVE, 1 },
	{ "SO_OOBINLINE", SOL_SOCKET, SO_OOBINLINE, 1 },
	{ "SO_BROADCAST", SOL_SOCKET, SO_BROADCAST, 1 },
	{ "TCP_NODELAY", IPPROTO_TCP, TCP_NODELAY, 1 },
	{ "TCP_KEEPIDLE", IPPROTO_TCP, TCP_KEEPIDLE, 600 },
	{ "TCP_KEEPIDLE of nothing", IPPROTO_TCP, TCP_KEEPIDLE, 0 },
	{ "TCP_KEEPCNT", IPPROTO_TCP, TCP_KEEPCNT, 9 },
	{ "TCP_KEEPINTVL", IPPROTO_TCP, TCP_KEEPINTVL, 75 },
	{ "TCP_CONGESTION", IPPROTO_TCP, TCP_CONGESTION, 0 },
	{ "IP_TOS", IPPROTO_IP, IP_TOS, 32 },
	{ "TCP_CORK", IPPROTO_TCP, TCP_CORK, 1 },
	{ "IPV6_V6ONLY", IPPROTO_IPV6, IPV6_V6ONLY, 1 },
	{ "RDMA_SQSIZE", SOL_RDMA, RDMA_SQSIZE, 64 },
	{ "RDMA_RQSIZE", SOL_RDMA, RDMA_RQSIZE, 48 },
	{ "RDMA_INLINE", SOL_RDMA, RDMA_INLINE, 32 },
	{ "RDMA_IOMAPSIZE", SOL_RDMA, RDMA_IOMAPSIZE, 300 },
	{ "an option that is none", SOL_SOCKET, 9999, 1 },
	{ "a level that is none", 9999, 1, 1 },
};

static void show_option(int fd, size_t i, const char *when)
{
	char what[128];
	socklen_t bytes = sizeof(int);
	int value = 0;

	snprintf(what, sizeof(what), "%s %s", when, options[i].text);
	if (rgetsockopt(fd, options[i].level, options[i].name, &value, &bytes))
		show(what, -1);
	else
		show(what, value);
}

/* The option as a program sets it with a byte and as one gets it with an int. */
static void set_tos_byte(int fd, const char *when)
{
	uint8_t tos = 16;
	socklen_t bytes = sizeof(int);
	int value = 0;
	char what[64];

	snprintf(what, sizeof(what), "%s set IP_TOS of a byte", when);
	show(what, rsetsockopt(fd, IPPROTO_IP, IP_TOS, &tos, sizeof(tos)));
	snprintf(what, sizeof(what), "%s IP_TOS then", when);
	show(what, rgetsockopt(fd, IPPROTO_IP, IP_TOS, &value, &bytes) ? -1 : value);
}

static void set_options(int fd, const char *when)
{
	char what[128];

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		show_option(fd, i, when);
		snprintf(what, sizeof(what), "%s set %s", when, options[i].text);
		show(what, rsetsockopt(fd, options[i].level, options[i].name, &options[i].value,
				       sizeof(int)));
		show_option(fd, i, when);
	}
	set_tos_byte(fd, when);
}

/* --- without a connection ------------------------------------------------ */

static void kinds(void)
{
	show("rsocket AF_UNIX", rsocket(AF_UNIX, SOCK_STREAM, 0));
	show("rsocket SOCK_RAW", rsocket(AF_INET, SOCK_RAW, 0));
	show("rsocket SOCK_STREAM of UDP", rsocket(AF_INET, SOCK_STREAM, IPPROTO_UDP));
	show("rsocket SOCK_DGRAM of TCP", rsocket(AF_INET, SOCK_DGRAM, IPPROTO_TCP));
}

static void flags_of(int fd)
{
	show("F_GETFL without O_NONBLOCK", rfcntl(fd, F_GETFL, 0) & O_NONBLOCK);
	show("F_SETFL", rfcntl(fd, F_SETFL, O_NONBLOCK));
	show("F_GETFL with O_NONBLOCK", (rfcntl(fd, F_GETFL, 0) & O_NONBLOCK) == O_NONBLOCK);
	show("F_SETFL back", rfcntl(fd, F_SETFL, 0));
	show("F_GETFL is without", rfcntl(fd, F_GETFL, 0) & O_NONBLOCK);
	show("F_GETLK", rfcntl(fd, F_GETLK, 0));
}

static void unconnected(void)
{
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);
	struct ibv_path_data route = { 0 };
	struct sockaddr_in addr;
	socklen_t bytes;

	flags_of(fd);
	bytes = sizeof(route);
	show("unconnected set RDMA_ROUTE", rsetsockopt(fd, SOL_RDMA, RDMA_ROUTE, &route, bytes));
	show("unconnected RDMA_ROUTE", rgetsockopt(fd, SOL_RDMA, RDMA_ROUTE, &route, &bytes));
	show("its size", bytes);
	bytes = sizeof(addr);
	show("unconnected rgetsockname", rgetsockname(fd, generic_addr(&addr), &bytes));
	set_options(fd, "unconnected");
	rclose(fd);
}

/* --- with a connection --------------------------------------------------- */

static int listen_here(void)
{
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);

	if (rbind(fd, generic_addr(&server_addr), sizeof(server_addr)))
		die("rbind");
	show("rbind again", rbind(fd, generic_addr(&server_addr), sizeof(server_addr)));
	show("SO_REUSEADDR when bound",
	     rsetsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)));
	show("rlisten", rlisten(fd, 5));
	rfcntl(fd, F_SETFL, O_NONBLOCK);
	show("raccept of nobody", raccept(fd, NULL, NULL));
	rfcntl(fd, F_SETFL, 0);
	return fd;
}

static short await(int fd, short events)
{
	struct pollfd poll = { .fd = fd, .events = events };

	rpoll(&poll, 1, PATIENCE_MS);
	return poll.revents;
}

static int connect_there(int listener, int *accepted)
{
	int fd = rsocket(AF_INET, SOCK_STREAM, 0), err = -1;
	struct sockaddr_in from = { 0 };
	socklen_t bytes = sizeof(from);

	rfcntl(fd, F_SETFL, O_NONBLOCK);
	show("rconnect", rconnect(fd, generic_addr(&server_addr), sizeof(server_addr)));
	show("POLLIN of the listener", await(listener, POLLIN));
	*accepted = raccept(listener, generic_addr(&from), &bytes);
	show("raccept", *accepted >= 0 ? 0 : -1);
	show("its address", memcmp(&from.sin_addr, &server_addr.sin_addr, 4));
	show("POLLOUT when connected", await(fd, POLLOUT));
	bytes = sizeof(err);
	rgetsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &bytes);
	show("SO_ERROR", err);
	rfcntl(fd, F_SETFL, 0);
	return fd;
}

static void names(int client, int server)
{
	struct sockaddr_in mine = { 0 }, theirs = { 0 };
	socklen_t bytes = sizeof(mine);

	show("rgetsockname", rgetsockname(client, generic_addr(&mine), &bytes));
	show("its size", bytes);
	bytes = sizeof(theirs);
	show("rgetpeername", rgetpeername(server, generic_addr(&theirs), &bytes));
	show("the same port", mine.sin_port == theirs.sin_port && mine.sin_port);
	bytes = sizeof(theirs);
	rgetpeername(client, generic_addr(&theirs), &bytes);
	show("the server's port", ntohs(theirs.sin_port));
}

/* Everything but the LIDs and the flow label: for RoCE, stock has bytes of MAC addresses there. */
static void route(int client)
{
	struct ibv_path_data data = { 0 };
	const struct ibv_path_record *path = &data.path;
	socklen_t bytes = sizeof(data) - 1;

	show("RDMA_ROUTE without room", rgetsockopt(client, SOL_RDMA, RDMA_ROUTE, &data, &bytes));
	bytes = sizeof(data);
	show("RDMA_ROUTE", rgetsockopt(client, SOL_RDMA, RDMA_ROUTE, &data, &bytes));
	show("its size", bytes);
	show("flags", data.flags);
	show("service id", (ssize_t)path->service_id);
	show("the same GIDs", !memcmp(&path->dgid, &path->sgid, sizeof(path->dgid)));
	show("hop limit", be32toh(path->flowlabel_hoplimit) & 0xff);
	show("traffic class", path->tclass);
	show("reversible, number of paths", path->reversible_numpath);
	show("P_Key", be16toh(path->pkey));
	show("QoS class, SL", be16toh(path->qosclass_sl));
	show("MTU's selector", path->mtu >> 6);
	show("rate's selector", path->rate >> 6);
	show("packet life time's selector", path->packetlifetime >> 6);
	show("preference", path->preference);
}

static void segments(int client)
{
	int value = 1000;
	socklen_t bytes = sizeof(value);

	show("set TCP_MAXSEG", rsetsockopt(client, IPPROTO_TCP, TCP_MAXSEG, &value, bytes));
	show("TCP_MAXSEG", rgetsockopt(client, IPPROTO_TCP, TCP_MAXSEG, &value, &bytes));
	show("is an MTU",
	     value == 256 || value == 512 || value == 1024 || value == 2048 || value == 4096);
}

static void transfers(int client, int server)
{
	char buf[16], more[16];
	struct iovec in = { buf, 3 };
	struct iovec out[2] = {
		{ (char[]){ "ab" }, 2 },
		{ (char[]){ "cde" }, 3 },
	};
	struct msghdr msg = { .msg_iov = out, .msg_iovlen = 2 };
	struct sockaddr_in from;
	socklen_t bytes = sizeof(from);

	show("rwrite", rwrite(client, "hello", 5));
	show("rread", rread(server, buf, 2));
	show("MSG_PEEK", rrecv(server, buf, sizeof(buf), MSG_PEEK));
	show("MSG_WAITALL", rrecv(server, buf, 3, MSG_WAITALL));
	show("the rest", memcmp(buf, "llo", 3));
	show("MSG_DONTWAIT", rrecv(server, buf, 1, MSG_DONTWAIT));
	show("rwritev", rwritev(client, out, 2));
	show("rreadv", rreadv(server, &in, 1));
	show("rsendmsg", rsendmsg(client, &msg, 0));
	msg = (struct msghdr){ .msg_iov = &in, .msg_iovlen = 1 };
	show("rrecvmsg", rrecvmsg(server, &msg, 0));
	show("rrecvfrom",
	     rrecvfrom(server, more, sizeof(more), MSG_WAITALL & 0, generic_addr(&from), &bytes));
	show("rsendto", rsendto(client, "x", 1, 0, NULL, 0));
	show("rrecv", rrecv(server, more, 1, MSG_WAITALL));
	show("rsendto an address", rsendto(client, "x", 1, 0, generic_addr(&server_addr), bytes));
	msg.msg_control = more;
	msg.msg_controllen = sizeof(more);
	show("rsendmsg with control data", rsendmsg(client, &msg, 0));
	show("rsend of nothing", rsend(client, buf, 0, 0));
}

/* What a sent byte's receiver learns of its sender. */
static void senders(int client, int server)
{
	struct sockaddr_in from = { 0 };
	struct iovec in = { &(char){ 0 }, 1 };
	struct msghdr msg = { .msg_iov = &in,
			      .msg_iovlen = 1,
			      .msg_name = &from,
			      .msg_namelen = sizeof(from),
			      .msg_flags = MSG_TRUNC };
	socklen_t bytes = sizeof(from);

	rwrite(client, "123", 3);
	show("rrecvfrom", rrecvfrom(server, in.iov_base, 1, 0, generic_addr(&from), &bytes));
	show("its size", bytes);
	show("family of its address", from.sin_family);
	bytes = 4;
	show("rrecvfrom, short", rrecvfrom(server, in.iov_base, 1, 0, generic_addr(&from), &bytes));
	show("its size", bytes);
	from.sin_family = 0;
	show("rrecvmsg with a name", rrecvmsg(server, &msg, 0));
	show("its size", msg.msg_namelen);
	show("family of its name", from.sin_family);
	show("its flags", msg.msg_flags);
}

/* Sends a message, and receives its byte at the other end if that succeeded. */
static void send_message(const char *what, int client, int server, const struct msghdr *msg)
{
	if (show(what, rsendmsg(client, msg, 0)) > 0)
		rrecv(server, &(char){ 0 }, 1, MSG_WAITALL);
}

static void parts_of_messages(int client, int server)
{
	char room[64] = "";
	struct iovec one = { room, 1 };
	struct msghdr msg = { .msg_iov = &one, .msg_iovlen = 1, .msg_controllen = sizeof(room) };

	send_message("rsendmsg with a size of control data", client, server, &msg);
	rwrite(client, "y", 1);
	show("rrecvmsg likewise", rrecvmsg(server, &msg, 0));
	show("its size", msg.msg_controllen);
	show("what is left", rrecv(server, room, 1, MSG_DONTWAIT));
	rwrite(client, "y", 1);
	msg.msg_control = room;
	msg.msg_controllen = sizeof(room);
	show("rrecvmsg with control data", rrecvmsg(server, &msg, 0));
	show("what is left", rrecv(server, room, 1, MSG_DONTWAIT));
	msg.msg_controllen = 0;
	send_message("rsendmsg with control data of no size", client, server, &msg);
	msg.msg_name = &server_addr;
	msg.msg_namelen = sizeof(server_addr);
	send_message("rsendmsg to an address", client, server, &msg);
	msg.msg_iovlen = 0;
	send_message("rsendmsg of no parts", client, server, &msg);
	show("rsendto with a size only", rsendto(client, "x", 1, 0, NULL, sizeof(server_addr)));
}

static void selecting(int client, int server)
{
	struct timeval patience = { .tv_sec = 10 };
	fd_set in, out;

	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_SET(server, &in);
	FD_SET(client, &out);
	rwrite(client, "x", 1);
	await(server, POLLIN);
	show("rselect",
	     rselect((server > client ? server : client) + 1, &in, &out, NULL, &patience));
	show("rpoll of nothing", await(server, 0));
	rread(server, &(char){ 0 }, 1);
}

static void ending(int client, int server)
{
	char c;

	show("rshutdown SHUT_WR", rshutdown(client, SHUT_WR));
	show("rsend after it", rsend(client, "x", 1, 0));
	show("rrecv of the end", rrecv(server, &c, 1, 0));
	show("rsend the other way", rsend(server, "y", 1, 0));
	show("rrecv of that", rrecv(client, &c, 1, 0));
	show("rclose", rclose(server));
	show("rrecv after the peer's end", rrecv(client, &c, 1, 0));
	show("POLLHUP", await(client, POLLIN) & POLLHUP);
	show("rclose of the other", rclose(client));
}

static void connected(void)
{
	int listener = listen_here(), server, client = connect_there(listener, &server);

	names(client, server);
	segments(client);
	route(client);
	transfers(client, server);
	senders(client, server);
	parts_of_messages(client, server);
	selecting(client, server);
	set_options(client, "connected");
	ending(client, server);
	client = connect_there(listener, &server);
	rclose(server);
	await(client, POLLIN);
	show("rrecv when the peer has closed", rrecv(client, &(char){ 0 }, 1, 0));
	show("rsend when the peer has closed", rsend(client, "x", 1, 0));
	rclose(client);
	rclose(listener);
}

/* Accepts from a listener with O_NONBLOCK. */
static void inherited(void)
{
	int listener = listen_here(), server, client;

	rfcntl(listener, F_SETFL, O_NONBLOCK);
	client = connect_there(listener, &server);
	show("an accepted socket inherits O_NONBLOCK",
	     (rfcntl(server, F_GETFL, 0) & O_NONBLOCK) == O_NONBLOCK);
	rclose(client);
	rclose(server);
	rclose(listener);
}

static void refused(bool is_ours)
{
	struct sockaddr_in addr = server_addr;
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);

	addr.sin_port = htons(NO_PORT);
	show("rconnect to nobody", rconnect(fd, generic_addr(&addr), sizeof(addr)));
	if (is_ours)
		show("rconnect after that", rconnect(fd, generic_addr(&addr), sizeof(addr)));
	rclose(fd);
}

/* rstream prints the errno that poll leaves after a failed connect. */
static void refused_later(void)
{
	struct sockaddr_in addr = server_addr;
	int fd = rsocket(AF_INET, SOCK_STREAM, 0), error = 0;
	socklen_t bytes = sizeof(error);

	addr.sin_port = htons(NO_PORT);
	rfcntl(fd, F_SETFL, O_NONBLOCK);
	rconnect(fd, generic_addr(&addr), sizeof(addr));
	show("rpoll says", await(fd, POLLOUT));
	show("and leaves in errno", -1);
	show("rpoll of more says", await(fd, POLLIN | POLLOUT));
	show("SO_ERROR", rgetsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes));
	show("that is ECONNREFUSED", error == ECONNREFUSED);
	show("rpoll after that", await(fd, POLLOUT));
	rclose(fd);
}

/* Before any other wait, of which a descriptor may be left. */
static void shut_without_descriptor(void)
{
	int listener = rsocket(AF_INET, SOCK_STREAM, 0), client = rsocket(AF_INET, SOCK_STREAM, 0);
	struct pollfd poll = { .fd = client, .events = POLLOUT };
	static const char bytes[1 << 16];
	struct rlimit all, none;
	int server;

	rfcntl(listener, F_SETFL, O_NONBLOCK);
	rfcntl(client, F_SETFL, O_NONBLOCK);
	if (rbind(listener, generic_addr(&server_addr), sizeof(server_addr)) ||
	    rlisten(listener, 1))
		die("rlisten");
	rconnect(client, generic_addr(&server_addr), sizeof(server_addr));
	while ((server = raccept(listener, NULL, NULL)) < 0)
		rpoll(&poll, 1, 0); /* stock's rconnect() goes on in it */
	while (!rpoll(&poll, 1, 0))
		;
	getrlimit(RLIMIT_NOFILE, &all);
	none = (struct rlimit){ .rlim_cur = STDERR_FILENO + 1, .rlim_max = all.rlim_max };
	while (rsend(client, bytes, sizeof(bytes), 0) > 0) /* so that some are not sent yet */
		;
	setrlimit(RLIMIT_NOFILE, &none);
	show("rshutdown without a free descriptor", rshutdown(client, SHUT_WR));
	setrlimit(RLIMIT_NOFILE, &all);
	rclose(server);
	rclose(client);
	rclose(listener);
}

int main(int argc, char **argv)
{
	bool is_ours = argc == 3 && !strcmp(argv[2], "ours");

	server_addr = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(PORT) };
	if (argc != 2 + is_ours || inet_pton(AF_INET, argv[1], &server_addr.sin_addr) != 1) {
		fprintf(stderr, "usage: sockets ADDRESS [ours]\n");
		return 2;
	}
	shut_without_descriptor();
	kinds();
	unconnected();
	connected();
	inherited();
	refused(is_ours);
	refused_later();
	return 0;
}

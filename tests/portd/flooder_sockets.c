/* SPDX-License-Identifier: BSD-2-Clause */
/* Attacks by sockets, without the library: see flooder.h. */
#include "tests/portd/flooder.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/portd/proto/datagram.h"
#include "lib/portd/proto/proto.h"

#define SILENT_MAX 500
#define LINGER_S   60
#define UNREAD_MAX 16

/* Return: a socket, or -1 */
static int connect_with(int flags)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | flags, 0);

	strncpy(addr.sun_path, getenv("PURECM_SOCKET"), sizeof(addr.sun_path) - 1);
	if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0)
		return fd;
	close(fd);
	return -1;
}

static int connect_silently(void)
{
	return connect_with(0);
}

/* A connection without a request uses no quota of requests. */
bool connect_repeatedly(void)
{
	int fd = connect_silently();

	return fd >= 0 && !close(fd);
}

/* A free place is taken before the waiting clients have been woken. */
bool connect_and_close(void)
{
	int fd = connect_with(SOCK_NONBLOCK);

	return fd >= 0 && !close(fd);
}

/*
 * Keeps the latest connections open, some of which always have time left for their first request.
 */
bool hold_idle_sockets(void)
{
	static int guest[SILENT_MAX];
	static unsigned int n;
	int *oldest = &guest[n++ % SILENT_MAX];

	if (*oldest > 0)
		close(*oldest);
	*oldest = connect_silently();
	return *oldest >= 0;
}

/* A socket whose close() waits: its peer, on the same host, does not read. */
static int lingering_socket(int *ret_peer)
{
	const struct linger linger = { .l_onoff = 1, .l_linger = LINGER_S };
	static int listener = -1;
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t bytes = sizeof(addr);
	char data[4096] = "";
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (listener < 0) {
		listener = socket(AF_INET, SOCK_STREAM, 0);
		if (bind(listener, (struct sockaddr *)&addr, sizeof(addr)) || listen(listener, 1))
			die("a listener", -errno);
	}
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){ 1 }, sizeof(int));
	if (getsockname(listener, (struct sockaddr *)&addr, &bytes) ||
	    connect(fd, (struct sockaddr *)&addr, bytes))
		die("a lingering socket", -errno);
	*ret_peer = accept(listener, NULL, NULL);
	while (send(fd, data, sizeof(data), MSG_DONTWAIT) > 0)
		continue;
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	return fd;
}

/* The first one waits until this process ends, others for a while. */
static int some_lingering_socket(void)
{
	static int peers[UNREAD_MAX];
	static unsigned int n;
	int *at = &peers[n++ ? 1 + n % (UNREAD_MAX - 1) : 0];

	if (*at > 0)
		close(*at);
	return lingering_socket(at);
}

/* Disconnects before it is accepted, and leaves that socket in the queue. */
bool leave_lingering_sockets(void)
{
	const struct portd_record release = { .type = PORTD_RELEASE };
	struct portd_datagram out = { .bytes = 0 };
	const int fd[2] = { some_lingering_socket(), -1 };
	int guest = connect_silently();
	int err;

	portd_put(&out, &release);
	err = guest < 0 ? -ENOTCONN : portd_datagram_send(guest, &out, fd, 0);
	close(fd[0]);
	close(guest);
	return !err;
}

bool send_lingering_sockets(void)
{
	static int guest = -1;
	const int fd[2] = { some_lingering_socket(), -1 };
	struct portd_datagram out = { .bytes = 0 };
	int err;

	if (guest < 0)
		guest = connect_silently();
	portd_put(&out, &(struct portd_record){ .type = PORTD_RELEASE });
	err = guest < 0 ? -ENOTCONN : portd_datagram_send(guest, &out, fd, 0);
	close(fd[0]);
	if (!err)
		return true;
	close(guest);
	guest = -1;
	return false;
}

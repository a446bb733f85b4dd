/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Privileged ports: see low_port.h.
 */
#include "lib/net/low_port.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "lib/net/port_space.h"

#define OTHERS_MAX 32

static int bind_to_port(int fd, uint16_t port)
{
	const struct sockaddr_in addr = { .sin_family = AF_INET,
					  .sin_port = htons(port),
					  .sin_addr.s_addr = htonl(LOW_PORT_ADDR) };

	return bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) ? -errno : 0;
}

/*
 * Binding any port that needs the privilege proves it: another one if a UDP service has this port,
 * or if this port does not need the privilege.
 */
static int bind_low(int fd, uint16_t port)
{
	struct port_limits limits;
	uint16_t other;
	int err;

	port_limits_read(&limits);
	err = limits.unprivileged_first <= 1 || port < limits.unprivileged_first
		      ? bind_to_port(fd, port)
		      : -EADDRINUSE;

	for (other = 1; err == -EADDRINUSE && other <= OTHERS_MAX; other++)
		err = bind_to_port(fd, other);
	return err;
}

int low_port_prove(uint16_t port, int *ret)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP);
	int on = 1;
	int err;

	if (fd < 0)
		return -errno;
	/* The address is not local while the loopback interface is down. */
	setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &on, sizeof(on));
	err = bind_low(fd, port);
	if (err)
		close(fd);
	else
		*ret = fd;
	return err;
}

/* Any user may choose the "port" of a ping socket, whose address looks the same. */
static bool is_udp(int fd)
{
	return fd_option_is(fd, SO_DOMAIN, AF_INET) && fd_option_is(fd, SO_TYPE, SOCK_DGRAM) &&
	       fd_option_is(fd, SO_PROTOCOL, IPPROTO_UDP);
}

uint16_t low_port_proved(int fd)
{
	struct sockaddr_in addr = { .sin_family = AF_UNSPEC };
	socklen_t bytes = sizeof(addr);

	if (fd < 0 || !is_udp(fd) || getsockname(fd, (struct sockaddr *)&addr, &bytes) ||
	    addr.sin_addr.s_addr != htonl(LOW_PORT_ADDR))
		return 0;
	return ntohs(addr.sin_port);
}

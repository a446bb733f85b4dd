/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of sockets: see preload.h. */
#include <string.h>

#include "lib/rsocket/preload/preload.h"

socklen_t name_unmap(const struct sockaddr *addr, socklen_t bytes, union name *ret)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET };

	memset(ret, 0, sizeof(*ret));
	if (!addr)
		return 0;
	bytes = bytes < sizeof(*ret) ? bytes : sizeof(*ret);
	memcpy(ret, addr, bytes);
	if (ret->any.sa_family != AF_INET6 || bytes < sizeof(ret->v6) ||
	    !IN6_IS_ADDR_V4MAPPED(&ret->v6.sin6_addr))
		return bytes;
	v4.sin_port = ret->v6.sin6_port;
	memcpy(&v4.sin_addr, &ret->v6.sin6_addr.s6_addr[12], sizeof(v4.sin_addr));
	ret->v4 = v4;
	return sizeof(ret->v4);
}

static socklen_t map_name(union name *name)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = name->v4.sin_port };

	v6.sin6_addr.s6_addr[10] = v6.sin6_addr.s6_addr[11] = 0xff;
	memcpy(&v6.sin6_addr.s6_addr[12], &name->v4.sin_addr, sizeof(name->v4.sin_addr));
	name->v6 = v6;
	return sizeof(v6);
}

int name_get(const struct sock *sock, int (*get)(int rs, struct sockaddr *addr, socklen_t *bytes),
	     struct sockaddr *addr, socklen_t *bytes)
{
	union name name;
	socklen_t own_bytes = sizeof(name);

	if (get(sock->rs, &name.any, &own_bytes))
		return -1;
	if (sock->domain == AF_INET6 && name.any.sa_family == AF_INET)
		own_bytes = map_name(&name);
	memcpy(addr, &name, own_bytes < *bytes ? own_bytes : *bytes);
	*bytes = own_bytes;
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of sockets: see preload.h. */
#include <rdma/rsocket.h>
#include <stddef.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

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

/* --- ends of relays -------------------------------------------------------- */

/* An abstract name: of a process, each once. */
struct relayed {
	char zero;
	char mark[11];
	pid_t pid;
	unsigned int n;
	struct sockaddr_in6 local, peer; /* or sockaddr_in */
};

static const char mark[sizeof(((struct relayed *)NULL)->mark)] = "purecm TCP";

struct unix_name {
	sa_family_t family;
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
};

#define NAME_BYTES (offsetof(struct unix_name, path) + sizeof(struct relayed))

void name_bind(int fd, const struct sock *sock)
{
	static unsigned int n; /* atomic */
	struct relayed it = { .pid = getpid() };
	struct unix_name name = { .family = AF_UNIX };
	socklen_t local_bytes = sizeof(it.local), peer_bytes = sizeof(it.peer);

	memcpy(it.mark, mark, sizeof(mark));
	it.n = __atomic_add_fetch(&n, 1, __ATOMIC_RELAXED);
	if (name_get(sock, rgetsockname, (struct sockaddr *)&it.local, &local_bytes) ||
	    name_get(sock, rgetpeername, (struct sockaddr *)&it.peer, &peer_bytes))
		return;
	memcpy(name.path, &it, sizeof(it));
	real()->bind(fd, (struct sockaddr *)&name, NAME_BYTES);
}

/* Another user's process may have such a name, but neither the pair nor a socket without a name. */
static bool is_pair(int fd)
{
	struct unix_name own;
	socklen_t bytes = sizeof(own);
	struct ucred maker;
	socklen_t maker_bytes = sizeof(maker);

	return real()->getsockname(fd, (struct sockaddr *)&own, &bytes) == 0 &&
	       bytes == sizeof(own.family) &&
	       real()->getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &maker, &maker_bytes) == 0 &&
	       (maker.uid == 0 || maker.uid == geteuid());
}

socklen_t name_get_relayed(int fd, bool is_peer, union name *ret)
{
	struct unix_name name;
	socklen_t bytes = sizeof(name);
	struct relayed it;

	if (real()->getpeername(fd, (struct sockaddr *)&name, &bytes) || bytes != NAME_BYTES ||
	    name.family != AF_UNIX)
		return 0;
	memcpy(&it, name.path, sizeof(it));
	if (it.zero || memcmp(it.mark, mark, sizeof(mark)) != 0 || !is_pair(fd))
		return 0;
	memset(ret, 0, sizeof(*ret));
	ret->v6 = is_peer ? it.peer : it.local;
	return ret->any.sa_family == AF_INET ? sizeof(ret->v4) : sizeof(ret->v6);
}
